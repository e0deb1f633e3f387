//! The watchdog: a listener that blocks the thread of its shard.

use std::fmt;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use systole::core::EventKind;
use systole::prelude::*;
use systole::runtime::{Events, Observed};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Level, Metadata, Subscriber};

use crate::calculator::*;

/// Waits for the next event of the watchdog: the listener, and whether the thread is free again.
async fn next(events: &mut Events) -> (String, bool) {
    loop {
        match within(events.next()).await {
            Some(Observed::Event(event)) => match &event.kind {
                EventKind::Blocked { listener, .. } => return (listener.to_string(), false),
                EventKind::Released { listener, .. } => return (listener.to_string(), true),
                _ => {}
            },
            Some(Observed::Missed(_)) => {}
            None => panic!("the organism has ended"),
        }
    }
}

/// Sends the warnings of the log: their fields, the message among them.
struct Warnings(Mutex<Sender<String>>);

impl Subscriber for Warnings {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() == Level::WARN
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        let mut line = Line(String::new());
        event.record(&mut line);
        // The test may have ended.
        let _ = self.0.lock().unwrap().send(line.0);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0 += &format!("{field}={value:?} ");
    }
}

#[tokio::test]
async fn a_listener_that_blocks_its_shard_is_reported_while_it_lasts() {
    let (warn, warnings) = channel();
    tracing::subscriber::set_global_default(Warnings(Mutex::new(warn))).unwrap();
    let (release, gate) = channel::<()>();
    let gate = Arc::new(Mutex::new(gate));
    let block = move |q: Delivery<Question>| {
        let gate = gate.clone();
        async move {
            // No await: neither the timeout nor anything else on this thread can run.
            gate.lock().unwrap().recv()?;
            Ok(q.reply(answered(&*q.text)))
        }
    };
    let mut builder = Organism::builder("blocked")
        .shards(1)
        .listener(
            "oracle",
            move || Oracle(block.clone()),
            |c| c.accepts::<Question>().replies::<Answered>().timeout(Duration::from_millis(100)),
        )
        .client("cli", |c| c.calls::<Question>());
    let mut events = builder.events();
    let organism = builder.start().unwrap();
    let client = organism.client("cli").unwrap();
    client.tell(question("?")).unwrap();
    assert_eq!(next(&mut events).await, ("oracle".to_owned(), false));
    assert_eq!(next(&mut events).await, ("oracle".to_owned(), false), "again, while it lasts");
    release.send(()).unwrap();
    assert_eq!(next(&mut events).await, ("oracle".to_owned(), true));
    for said in ["blocks the thread of its shard", "blocks the thread of its shard", "has released the thread"] {
        let warning = warnings.recv_timeout(Duration::from_secs(60)).expect("a minute passed without a warning");
        assert!(warning.contains("listener=oracle ") && warning.contains(said), "{warning}");
    }
}
