//! Case (h): the latency of a fast listener, alone and beside a slow one.

use std::time::Duration;

use actix::{Actor, Context, Handler, ResponseFuture};
use systole::runtime::{BlockingHandler, Conversation, Delivery, Organism, Response, reply_any};
use systole_core::core::Routing;

use super::latency::Latencies;
use super::load::{Load, LoadError, Pump, Scale};
use super::messages::Add;

/// The time that a slow listener takes for one message.
const SLOW: Duration = Duration::from_millis(5);
/// The number of conversations that wait for each slow listener, which is more than its concurrency slots.
const WAITING: usize = 256;

/// A client that asks a fast listener one question at a time.
pub(super) struct Beside {
    pump: Pump,
    count: u64,
    /// The conversations that keep the slow listeners busy.
    waiting: Vec<(Conversation, &'static str)>,
}

impl Beside {
    pub(super) fn start(scale: Scale, slow: bool) -> Result<Self, LoadError> {
        let organism = Organism::builder("beside")
            .client("cli", |client| client.calls::<Add>())
            .listener("fast", || Fast, |c| c.accepts::<Add>().replies::<Add>().routing(Routing::Addressed))
            .listener("slow", || Slow, |c| c.accepts::<Add>().replies::<Add>().routing(Routing::Addressed))
            .blocking_listener(
                "blocking",
                || Blocking,
                |c| c.accepts::<Add>().replies::<Add>().routing(Routing::Addressed).concurrency(2),
            )
            .shards(1)
            .start()?;
        let pump = Pump::new(organism)?;
        let names = ["slow", "blocking"].into_iter().flat_map(|name| std::iter::repeat_n(name, WAITING));
        let waiting = names.take(if slow { usize::MAX } else { 0 }).map(|name| (pump.client.converse(), name));
        let mut beside = Self { waiting: waiting.collect(), pump, count: scale.of(4000) };
        for (conversation, name) in &mut beside.waiting {
            conversation.send_bytes(Add::to(name))?;
        }
        Ok(beside)
    }

    /// Sends a new question to the slow listeners for each answered one.
    fn refill(&mut self) -> Result<(), LoadError> {
        for (conversation, name) in &mut self.waiting {
            while let Some(egress) = conversation.try_receive() {
                egress.fault.map_or(Ok(()), Err)?;
                conversation.send_bytes(Add::to(name))?;
            }
        }
        Ok(())
    }
}

impl Load for Beside {
    fn round(&mut self, latencies: &mut Latencies) -> Result<u64, LoadError> {
        let fast = Add::to("fast");
        // Counts the two messages of each fast conversation, not those of the slow listeners meanwhile.
        for _ in 0..self.count {
            self.refill()?;
            self.pump.converse(&fast, 1, 1, latencies)?;
        }
        Ok(2 * self.count)
    }
}

struct Fast;

/// A listener that keeps its slot for a while without blocking its OS thread.
struct Slow;

/// A listener that blocks an OS thread of its own pool.
struct Blocking;

impl Actor for Fast {
    type Context = Context<Self>;
}

impl Actor for Slow {
    type Context = Context<Self>;
}

impl Handler<Delivery<Add>> for Fast {
    type Result = Response;

    fn handle(&mut self, add: Delivery<Add>, _: &mut Context<Self>) -> Response {
        Ok(reply_any(add.into_inner()))
    }
}

impl Handler<Delivery<Add>> for Slow {
    type Result = ResponseFuture<Response>;

    fn handle(&mut self, add: Delivery<Add>, _: &mut Context<Self>) -> Self::Result {
        Box::pin(async move {
            tokio::time::sleep(SLOW).await;
            Ok(reply_any(add.into_inner()))
        })
    }
}

impl BlockingHandler<Add> for Blocking {
    fn handle(&self, add: Delivery<Add>) -> Response {
        std::thread::sleep(SLOW);
        Ok(reply_any(add.into_inner()))
    }
}
