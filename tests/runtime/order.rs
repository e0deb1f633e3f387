//! Order: a durable organism that ends with open work and starts again, with the same number of shards or another one.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use systole::journal::MemoryJournal;
use systole::prelude::*;
use tokio::sync::{Semaphore, mpsc};

use crate::calculator::*;

fn durable(
    journal: &Arc<Mutex<MemoryJournal>>,
    shards: u16,
    gate: Arc<Semaphore>,
) -> (Organism, Client, mpsc::UnboundedReceiver<String>) {
    held_back(Organism::builder("durable").shards(shards).journal(journal.clone()), 1, gate)
}

#[tokio::test]
async fn a_listener_with_one_slot_gets_what_was_left_in_order_after_a_start() {
    for (before, after) in [(1, 1), (2, 2), (2, 3), (4, 1), (3, 4)] {
        let journal = Arc::new(Mutex::new(MemoryJournal::new([9; 32])));
        let texts: Vec<_> = (0..12).map(|n| format!("m{n}")).collect();
        let (organism, client, mut begun) = durable(&journal, before, Arc::new(Semaphore::new(0)));
        for text in &texts {
            client.post(question(text)).await.unwrap();
        }
        assert_eq!(within(begun.recv()).await.as_deref(), Some("m0"));
        organism.drain(Duration::ZERO).await;
        assert!(begun.try_recv().is_err(), "it has one slot");
        let gate = Arc::new(Semaphore::new(0));
        let (organism, _client, mut begun) = durable(&journal, after, gate.clone());
        let mut order = Vec::new();
        for _ in &texts {
            order.push(within(begun.recv()).await.expect("the oracle is there"));
            assert!(begun.try_recv().is_err(), "two at once: {order:?}");
            gate.add_permits(1);
        }
        assert_eq!(order, texts, "{before} shards, then {after}");
        within(organism.run_until_idle()).await;
        organism.drain(Duration::from_secs(30)).await;
    }
}
