//! The watchdog: a listener that blocks the thread of its shard.

use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};

use systole::core::EventKind;
use systole::prelude::*;
use systole::runtime::{Events, Observed};

use crate::calculator::*;

/// Waits for the next event of the watchdog: the listener, and whether the thread is free again.
async fn next(events: &mut Events) -> (String, bool) {
    loop {
        match within(events.next()).await {
            Some(Observed::Event(event)) => match event.kind {
                EventKind::Blocked { listener, .. } => return (listener.to_string(), false),
                EventKind::Released { listener, .. } => return (listener.to_string(), true),
                _ => {}
            },
            Some(Observed::Missed(_)) => {}
            None => panic!("the organism has ended"),
        }
    }
}

#[tokio::test]
async fn a_listener_that_blocks_its_shard_is_reported_while_it_lasts() {
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
            |c| c.accepts::<Question>().replies::<Answered>().timeout(std::time::Duration::from_millis(100)),
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
}
