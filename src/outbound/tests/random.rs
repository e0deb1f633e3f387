//! Random peers and crashes at random moments, in this process.

use std::collections::HashMap;
use std::time::Duration;

use super::peer::{Act, OK, Peer};
use super::setup::{Sender, delivery, id, options};
use crate::outbound::{Cause, OutboundDelivery};

/// Number of rounds, each with another seed.
const ROUNDS: u64 = 10;
const TARGETS: u64 = 3;
const DELIVERIES: u64 = 30;

/// xorshift64 (Marsaglia 2003)
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

fn script(random: &mut Random) -> Vec<Act> {
    let refusal = Act::Say("HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n");
    let acts = [OK, OK, Act::Close, Act::CloseAfterRequest, Act::Say("HTTP/1.1 2"), refusal];
    let mut script: Vec<_> = (0..60).map(|_| acts[random.below(acts.len() as u64) as usize]).collect();
    script.push(OK);
    script
}

#[tokio::test]
async fn whatever_happens_each_delivery_ends_once_in_order_within_its_attempts() {
    for seed in 1..=ROUNDS {
        play(&mut Random(seed)).await;
    }
}

async fn play(random: &mut Random) {
    let mut peers = Vec::new();
    for _ in 0..TARGETS {
        peers.push(Peer::start(script(random)).await);
    }
    let one = |number: u64| {
        let target = number % TARGETS;
        let name = format!("peer-{target}").parse().unwrap();
        OutboundDelivery { target: name, ..delivery(number.into(), &peers[target as usize].url()) }
    };
    let mut sender = Sender::start(options());
    for number in 0..DELIVERIES {
        sender.send(one(number));
        if random.below(4) == 0 {
            for _ in 0..random.below(200) {
                tokio::task::yield_now().await;
            }
            sender = Sender::over(sender.close(Duration::ZERO).await, options());
        }
    }
    let mut attempts = HashMap::new();
    for number in 0..DELIVERIES {
        let id = id(number.into());
        let outcome = sender.store.handle(id).outcome().await;
        let made = sender.store.attempts(id);
        assert!((1..=3).contains(&made), "{made} attempts");
        if let Err(error) = &outcome {
            assert!(matches!(error.cause, Cause::AttemptsExhausted | Cause::Rejected), "{error}");
        }
        attempts.insert(id.to_string(), (number, made, outcome.is_ok()));
    }
    for peer in &mut peers {
        let mut seen: HashMap<String, u32> = HashMap::new();
        let mut last = 0;
        for request in peer.rest() {
            let (number, ..) = attempts[request.key()];
            assert!(number >= last, "{number} came after {last}");
            last = number;
            *seen.entry(request.key().to_owned()).or_default() += 1;
        }
        for (key, times) in seen {
            assert!(times <= attempts.remove(&key).expect("it was sent").1, "{key} came {times} times");
        }
    }
    assert!(attempts.values().all(|(.., delivered)| !delivered), "delivered, and never sent: {attempts:?}");
}
