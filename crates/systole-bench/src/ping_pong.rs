//! Case (e): two listeners and one ball, with never more than one message in flight.

use std::sync::{Arc, Mutex, PoisonError};

use actix::{Actor, Context, Handler, ResponseFuture};
use systole::runtime::{Delivery, Organism, Response};
use systole_core::core::Routing;

use super::latency::Latencies;
use super::load::{Load, LoadError, Pump, Scale};
use super::messages::{Ball, Sample};
use super::stopwatch;

/// A load of one handler that awaits answer after answer.
pub(super) struct PingPong {
    pump: Pump,
    took: Arc<Mutex<Latencies>>,
}

impl PingPong {
    pub(super) fn start(scale: Scale) -> Result<Self, LoadError> {
        let turns = u32::try_from(scale.of(20_000)).unwrap_or(u32::MAX);
        let took = Arc::new(Mutex::new(Latencies::default()));
        let watched = took.clone();
        let organism = Organism::builder("ping-pong")
            .client("cli", |client| client.calls::<Ball>())
            .listener("ping", move || Ping { turns, took: watched.clone() }, |c| c.answers::<Ball>().calls::<Ball>())
            .listener("pong", || Pong, |c| c.answers::<Ball>().routing(Routing::Addressed))
            .shards(1)
            .start()?;
        Ok(Self { pump: Pump::new(organism)?, took })
    }
}

impl Load for PingPong {
    fn round(&mut self, latencies: &mut Latencies) -> Result<u64, LoadError> {
        self.pump.converse(&Ball::envelope(), 1, 1, &mut Latencies::default())?;
        latencies.append(std::mem::take(&mut *self.took.lock().unwrap_or_else(PoisonError::into_inner)));
        Ok(self.pump.delivered())
    }
}

struct Ping {
    turns: u32,
    took: Arc<Mutex<Latencies>>,
}

struct Pong;

impl Actor for Ping {
    type Context = Context<Self>;
}

impl Actor for Pong {
    type Context = Context<Self>;
}

impl Handler<Delivery<Ball>> for Ping {
    type Result = ResponseFuture<Response>;

    fn handle(&mut self, start: Delivery<Ball>, _: &mut Context<Self>) -> Self::Result {
        let (turns, took) = (self.turns, self.took.clone());
        Box::pin(async move {
            let mut latencies = Latencies::default();
            let mut ball = Ball { turn: start.turn };
            while ball.turn < turns {
                let thrown = stopwatch::wall();
                ball = start.thread().call_to("pong", ball).await?;
                latencies.add(stopwatch::wall() - thrown);
            }
            *took.lock().unwrap_or_else(PoisonError::into_inner) = latencies;
            Ok(start.reply(ball))
        })
    }
}

impl Handler<Delivery<Ball>> for Pong {
    type Result = Response;

    fn handle(&mut self, ball: Delivery<Ball>, _: &mut Context<Self>) -> Response {
        Ok(ball.reply(Ball { turn: ball.turn + 1 }))
    }
}
