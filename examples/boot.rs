//! A listener that wakes at boot and ticks with `continue`: a loop that lives in its mailbox.

use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use systole::actor::*;
use systole::prelude::*;

/// A beat of the clock.
#[derive(Debug, Serialize, Deserialize, JsonSchema, Payload)]
#[payload(namespace = "urn:example:clock:v1")]
struct Tick {
    /// The number of this beat, from 1.
    beat: u32,
}

const PERIOD: Duration = Duration::from_millis(50);

struct Clock {
    beats: Sender<u32>,
}

impl Actor for Clock {
    type Context = Context<Self>;
}

impl Handler<Delivery<Boot>> for Clock {
    type Result = Response;

    fn handle(&mut self, boot: Delivery<Boot>, _: &mut Context<Self>) -> Response {
        println!("'{}' booted with {} listener(s)", boot.organism, boot.listeners);
        Ok(continue_with(Tick { beat: 1 }, PERIOD))
    }
}

impl Handler<Delivery<Tick>> for Clock {
    type Result = Response;

    fn handle(&mut self, tick: Delivery<Tick>, _: &mut Context<Self>) -> Response {
        println!("tick {}", tick.beat);
        self.beats.send(tick.beat)?;
        Ok(continue_with(Tick { beat: tick.beat + 1 }, PERIOD))
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (beats, heard) = channel();
    let organism = Organism::builder("clockwork")
        .listener("clock", move || Clock { beats: beats.clone() }, |c| c.accepts_boot().accepts::<Tick>())
        .start()?;
    let heard: Vec<u32> = heard.iter().take(3).collect();
    assert_eq!(heard, [1, 2, 3]);
    let open = block_on(organism.snapshot()).threads;
    assert_eq!(open.iter().map(|thread| thread.path.to_string()).collect::<Vec<_>>(), ["root", "root/clock"]);
    // The clock would tick for ever: a drain cancels its wait.
    let drained = block_on(organism.drain(Duration::from_secs(10)));
    assert!(drained.idle && drained.ended, "{drained:?}");
    println!("drained: {} message(s) delivered", drained.counts.delivered);
    Ok(())
}
