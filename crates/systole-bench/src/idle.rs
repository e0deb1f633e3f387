//! Case (f): idle threads, which cost only memory. Every round leaves more of them behind.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use actix::{Actor, Context, Handler};
use systole::runtime::{Client, Delivery, Organism, Response, block_on, continue_with, reply_any};
use systole_core::core::Routing;
use systole_xml::schema::{Element, Payload, PayloadSchema};

use super::dispatch::{tree, wide};
use super::latency::Latencies;
use super::load::{Load, LoadError, Pump, Scale};
use super::messages::{Ball, Sample};

const AN_HOUR: Duration = Duration::from_secs(3600);

/// The number of messages in flight while the client opens conversations.
const WINDOW: u64 = 64;

/// Answered conversations that the client may continue: each is one thread, its root.
pub(super) struct Conversations {
    pump: Pump,
    count: u64,
}

impl Conversations {
    pub(super) fn start(scale: Scale, count: u64) -> Result<Self, LoadError> {
        let organism = Organism::builder("idle")
            .limits(wide(0))
            .client("cli", |client| client.calls::<Ball>())
            .listener("echo", || Echo, |c| c.accepts::<Ball>().replies::<Ball>())
            .shards(1)
            .start()?;
        Ok(Self { pump: Pump::new(organism)?, count: scale.of(count) })
    }
}

impl Load for Conversations {
    fn round(&mut self, _: &mut Latencies) -> Result<u64, LoadError> {
        let client = &self.pump.client;
        block_on(async {
            for sent in 0..self.count {
                client.send(Ball::envelope())?;
                if sent >= WINDOW {
                    received(client).await?;
                }
            }
            for _ in 0..self.count.min(WINDOW) {
                received(client).await?;
            }
            Ok::<_, LoadError>(())
        })?;
        Ok(self.pump.delivered())
    }
}

async fn received(client: &Client) -> Result<(), LoadError> {
    let egress = client.receive().await.ok_or(LoadError::Silent)?;
    egress.fault.map_or(Ok(()), |fault| Err(fault.into()))
}

/// Chains of threads that wait for the answer of their only child, with a sleeping thread at the end of each.
pub(super) struct Chains {
    pump: Pump,
    chains: u64,
    /// The number of listeners still to be called in the growing chain.
    links: Arc<AtomicU64>,
}

impl Chains {
    /// The number of threads of one chain, with its root and the sleeper: the greatest depth of threads.
    const LENGTH: u64 = 65;

    pub(super) fn start(scale: Scale, count: u64) -> Result<Self, LoadError> {
        let ball = Ball::qname().to_string();
        let links = Arc::new(AtomicU64::new(0));
        let left = links.clone();
        let organism = Organism::builder("chains")
            .limits(wide(0))
            .schemas([PayloadSchema::of::<Ball>()?])
            .client("cli", |client| client.calls_element(&ball))
            .listener(
                "link",
                move || Link { left: left.clone() },
                |c| {
                    let c = c.accepts_element(&ball).calls_element(&ball).returns_element(&ball);
                    c.replies_element(&ball)
                },
            )
            .shards(1)
            .start()?;
        Ok(Self { pump: Pump::new(organism)?, chains: scale.of(count).div_ceil(Self::LENGTH), links })
    }
}

impl Load for Chains {
    fn round(&mut self, _: &mut Latencies) -> Result<u64, LoadError> {
        for _ in 0..self.chains {
            self.links.store(Self::LENGTH - 2, Ordering::Relaxed);
            self.pump.client.send(Ball::envelope())?;
            block_on(self.pump.organism.run_until_idle());
        }
        Ok(self.pump.delivered())
    }
}

/// Threads of one conversation that wait for a message to themselves in an hour: each holds a message and a timer.
pub(super) struct Sleepers {
    pump: Pump,
}

impl Sleepers {
    pub(super) fn start(scale: Scale, count: u64) -> Result<Self, LoadError> {
        let width = (scale.of(count) as f64).sqrt().ceil() as usize;
        let ball = Ball::qname().to_string();
        let organism = tree("asleep", width, "sleeper")?
            .listener(
                "sleeper",
                || Sleeper,
                |c| c.accepts_element(&ball).replies_element(&ball).routing(Routing::Addressed),
            )
            .start()?;
        Ok(Self { pump: Pump::new(organism)? })
    }
}

impl Load for Sleepers {
    fn round(&mut self, _: &mut Latencies) -> Result<u64, LoadError> {
        self.pump.client.send(Ball::envelope())?;
        Ok(self.pump.delivered())
    }
}

struct Echo;

struct Link {
    left: Arc<AtomicU64>,
}

struct Sleeper;

impl Actor for Echo {
    type Context = Context<Self>;
}

impl Actor for Link {
    type Context = Context<Self>;
}

impl Handler<Delivery<Element>> for Link {
    type Result = Response;

    fn handle(&mut self, ball: Delivery<Element>, _: &mut Context<Self>) -> Response {
        let left = self.left.load(Ordering::Relaxed).saturating_sub(1);
        self.left.store(left, Ordering::Relaxed);
        Ok(if left > 0 { ball.forward() } else { continue_with(ball.proof().clone(), AN_HOUR) })
    }
}

impl Actor for Sleeper {
    type Context = Context<Self>;
}

impl Handler<Delivery<Ball>> for Echo {
    type Result = Response;

    fn handle(&mut self, ball: Delivery<Ball>, _: &mut Context<Self>) -> Response {
        Ok(reply_any(ball.into_inner()))
    }
}

impl Handler<Delivery<Element>> for Sleeper {
    type Result = Response;

    fn handle(&mut self, ball: Delivery<Element>, _: &mut Context<Self>) -> Response {
        Ok(continue_with(ball.proof().clone(), AN_HOUR))
    }
}
