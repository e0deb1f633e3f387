//! Conversations under way: the front has asked the back, which answers in an hour. Every round leaves more of them
//! behind.

use std::time::Duration;

use actix::{Actor, Context, Handler};
use bytes::Bytes;
use systole::runtime::{Delivery, Organism, Response, block_on, call_to, continue_with};
use systole_core::core::Routing;

use super::dispatch::wide;
use super::latency::Latencies;
use super::load::{Load, LoadError, Pump, Scale};
use super::messages::{Note, Sample};

const AN_HOUR: Duration = Duration::from_secs(3600);

/// The number of conversations that the client opens before it waits for the organism.
const WINDOW: u64 = 256;

/// Conversations of two hops whose last message waits.
pub(super) struct UnderWay {
    pump: Pump,
    count: u64,
}

impl UnderWay {
    pub(super) fn start(scale: Scale, count: u64) -> Result<Self, LoadError> {
        let organism = Organism::builder("under-way")
            .limits(wide(0))
            .client("cli", |client| client.calls::<Note>())
            .listener("front", || Front, |c| c.accepts::<Note>().calls::<Note>().returns::<Note>().replies::<Note>())
            .listener("back", || Back, |c| c.accepts::<Note>().replies::<Note>().routing(Routing::Addressed))
            .shards(1)
            .start()?;
        Ok(Self { pump: Pump::new(organism)?, count: scale.of(count) })
    }
}

impl Load for UnderWay {
    fn round(&mut self, _: &mut Latencies) -> Result<u64, LoadError> {
        let envelope = Note::envelope();
        for sent in 1..=self.count {
            // Each has bytes of its own, as if it came over a socket.
            self.pump.client.send(Bytes::copy_from_slice(&envelope))?;
            if sent % WINDOW == 0 || sent == self.count {
                block_on(self.pump.organism.run_until_idle());
            }
        }
        Ok(self.pump.delivered())
    }
}

struct Front;

struct Back;

impl Actor for Front {
    type Context = Context<Self>;
}

impl Actor for Back {
    type Context = Context<Self>;
}

impl Handler<Delivery<Note>> for Front {
    type Result = Response;

    fn handle(&mut self, note: Delivery<Note>, _: &mut Context<Self>) -> Response {
        Ok(call_to("back", note.into_inner()))
    }
}

impl Handler<Delivery<Note>> for Back {
    type Result = Response;

    fn handle(&mut self, note: Delivery<Note>, _: &mut Context<Self>) -> Response {
        Ok(continue_with(note.proof().clone(), AN_HOUR))
    }
}
