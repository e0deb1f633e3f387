//! Case (d): one question becomes a hundred calls in parallel, and one answer.

use actix::{Actor, Context, Handler, ResponseFuture};
use systole::runtime::{Delivery, Emit, Organism, Response, call_to, none, reply_any};
use systole_core::core::{Join, Routing};

use super::latency::Latencies;
use super::load::{Load, LoadError, Pump, Scale};
use super::messages::Add;

/// The number of calls of one fan-out.
const WIDTH: i64 = 100;
/// The number of concurrent fan-outs.
const WINDOW: usize = 4;

/// The way in which the hub joins the answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    /// The answers come one by one, as messages.
    Messages,
    /// The handler awaits all answers.
    Awaited,
}

/// A load of fan-outs of [`WIDTH`] calls.
pub(super) struct FanOut {
    pump: Pump,
    count: u64,
}

impl FanOut {
    pub(super) fn start(scale: Scale, style: Style) -> Result<Self, LoadError> {
        let builder = Organism::builder("fan-out").client("cli", |client| client.calls::<Add>()).listener(
            "calculator",
            || Calculator,
            |c| c.answers::<Add>().routing(Routing::Addressed),
        );
        let builder = match style {
            Style::Messages => {
                builder.listener("hub", Collector::default, |c| c.answers::<Add>().calls::<Add>().returns::<Add>())
            }
            Style::Awaited => builder.listener("hub", || Waiter, |c| c.answers::<Add>().calls::<Add>()),
        };
        Ok(Self { pump: Pump::new(builder.shards(1).start()?)?, count: scale.of(500) })
    }
}

impl Load for FanOut {
    fn round(&mut self, latencies: &mut Latencies) -> Result<u64, LoadError> {
        self.pump.converse(&Add::to("hub"), self.count, WINDOW, latencies)?;
        Ok(self.pump.delivered())
    }
}

struct Calculator;

/// A hub that replies with the last answer of each fan-out: a sum would need state per thread.
#[derive(Default)]
struct Collector;

struct Waiter;

impl Actor for Calculator {
    type Context = Context<Self>;
}

impl Actor for Collector {
    type Context = Context<Self>;
}

impl Actor for Waiter {
    type Context = Context<Self>;
}

impl Handler<Delivery<Add>> for Calculator {
    type Result = Response;

    fn handle(&mut self, add: Delivery<Add>, _: &mut Context<Self>) -> Response {
        Ok(add.reply(Add { a: add.a + add.b, b: 0 }))
    }
}

impl Handler<Delivery<Add>> for Collector {
    type Result = Response;

    fn handle(&mut self, add: Delivery<Add>, _: &mut Context<Self>) -> Response {
        Ok(match add.join() {
            None => (0..WIDTH).map(|b| call_to("calculator", Add { a: add.a, b })).collect::<Emit>(),
            Some(position) if position.remaining == 0 => reply_any(add.into_inner()),
            Some(_) => none(),
        })
    }
}

impl Handler<Delivery<Add>> for Waiter {
    type Result = ResponseFuture<Response>;

    fn handle(&mut self, add: Delivery<Add>, _: &mut Context<Self>) -> Self::Result {
        Box::pin(async move {
            let calls = (0..WIDTH).map(|b| call_to("calculator", Add { a: add.a, b }));
            let sums = add.thread().call_all_any(calls, Join::All).await?.decode::<Add>()?;
            Ok(add.reply(Add { a: sums.iter().map(|sum| sum.a).sum(), b: 0 }))
        })
    }
}
