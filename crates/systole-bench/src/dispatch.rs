//! Case (c): many threads that do nothing, with payloads whose proof of validity is passed on, so that no XML is parsed
//! or written.
//!
//! One conversation: the trunk calls the branches, each branch calls its leaves. All leaves are ready at the same time;
//! each turn of a leaf puts the same payload at the tail of its own mailbox. When all turns are used up, each leaf
//! replies to its branch, and each branch to the trunk.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use actix::{Actor, Context, Handler};
use systole::runtime::{Delivery, Emit, Organism, OrganismBuilder, Response, continue_with, none};
use systole_core::core::Routing;
use systole_core::vocab::Limits;
use systole_xml::schema::{Element, Payload, PayloadSchema};

use super::latency::Latencies;
use super::load::{Load, LoadError, Pump, Scale};
use super::messages::{Ball, Sample};

/// A tree of threads that take turns.
pub(super) struct Dispatch {
    pump: Pump,
    turns: Arc<AtomicU64>,
    /// The number of turns of all leaves together, beyond the first of each.
    budget: u64,
}

impl Dispatch {
    /// Starts a tree of about `leaves` threads that take `turns` turns each beyond the first; with none, every delivery
    /// opens a thread or closes one.
    pub(super) fn start(scale: Scale, leaves: u64, turns: u64) -> Result<Self, LoadError> {
        let leaves = scale.of(leaves);
        let width = (leaves as f64).sqrt().ceil() as usize;
        let used = Arc::new(AtomicU64::new(0));
        let ball = Ball::qname().to_string();
        let leaf = used.clone();
        let organism = tree("dispatch", width, "leaf")?
            .listener(
                "leaf",
                move || Leaf { turns: leaf.clone() },
                |c| c.accepts_element(&ball).replies_element(&ball).routing(Routing::Addressed),
            )
            .start()?;
        Ok(Self { pump: Pump::new(organism)?, turns: used, budget: (width * width) as u64 * turns })
    }
}

/// An organism of one shard in which a ball from the client reaches `width` branches, and from each of them as many
/// leaves. The caller adds the listener called `leaf`.
pub(super) fn tree(name: &str, width: usize, leaf: &'static str) -> Result<OrganismBuilder, LoadError> {
    let ball = Ball::qname().to_string();
    Ok(Organism::builder(name)
        .limits(wide(width))
        .schemas([PayloadSchema::of::<Ball>()?])
        .client("cli", |client| client.calls_element(&ball))
        .listener(
            "trunk",
            move || Branch { width, below: "branch" },
            |c| c.accepts_element(&ball).calls_element(&ball).returns_element(&ball).replies_element(&ball),
        )
        .listener(
            "branch",
            move || Branch { width, below: leaf },
            |c| {
                let c = c.accepts_element(&ball).calls_element(&ball).returns_element(&ball).replies_element(&ball);
                c.routing(Routing::Addressed)
            },
        )
        .shards(1))
}

impl Load for Dispatch {
    fn round(&mut self, _: &mut Latencies) -> Result<u64, LoadError> {
        self.turns.store(self.budget, Ordering::Relaxed);
        self.pump.converse(&Ball::envelope(), 1, 1, &mut Latencies::default())?;
        Ok(self.pump.delivered())
    }
}

/// The limits that a tree of this width needs.
pub(super) fn wide(width: usize) -> Limits {
    Limits::default()
        .fanout(width.max(256))
        .mailbox(width.max(1024))
        .queue(1 << 24)
        .queue_bytes(1 << 40)
        .egress(1 << 24)
        .egress_bytes(1 << 40)
        .conversation_threads(1 << 24)
        .conversation_messages(1 << 24)
        .conversation_bytes(1 << 40)
        .threads(1 << 24)
}

/// A listener that makes `width` calls, and replies once all are answered.
pub(super) struct Branch {
    pub(super) width: usize,
    pub(super) below: &'static str,
}

struct Leaf {
    turns: Arc<AtomicU64>,
}

impl Actor for Branch {
    type Context = Context<Self>;
}

impl Actor for Leaf {
    type Context = Context<Self>;
}

impl Handler<Delivery<Element>> for Branch {
    type Result = Response;

    fn handle(&mut self, delivery: Delivery<Element>, _: &mut Context<Self>) -> Response {
        Ok(match delivery.join() {
            None => std::iter::repeat_with(|| delivery.forward_to(self.below)).take(self.width).collect::<Emit>(),
            Some(position) if position.remaining == 0 => delivery.send_back(),
            Some(_) => none(),
        })
    }
}

impl Handler<Delivery<Element>> for Leaf {
    type Result = Response;

    fn handle(&mut self, delivery: Delivery<Element>, _: &mut Context<Self>) -> Response {
        // Only the OS thread of the single shard counts, so no atomic update is needed.
        let left = self.turns.load(Ordering::Relaxed);
        self.turns.store(left.saturating_sub(1), Ordering::Relaxed);
        Ok(match left {
            0 => delivery.send_back(),
            _ => continue_with(delivery.proof().clone(), Duration::ZERO),
        })
    }
}
