//! Ends and starts: the store has what the next engine needs.

use std::time::Duration;

use super::peer::{Act, OK, Peer};
use super::setup::{Sender, State, delivery, id, options, patient};
use crate::outbound::Cause;

/// The clock runs ahead while nothing happens: the wait goes on, and doesn't start again.
#[tokio::test(start_paused = true)]
async fn a_back_off_goes_on_after_a_crash_with_the_attempts_already_made() {
    let mut peer = Peer::start([Act::CloseAfterRequest]).await;
    let mut options = patient();
    options.policy.budget = Duration::from_secs(2000);
    let sender = Sender::start(options.clone());
    sender.send(delivery(7, &peer.url())).wait_for(|state| matches!(state, State::BackingOff { .. })).await;
    let first = peer.next().await;
    // Nothing is closed, as after a crash.
    let store = sender.store.clone();
    drop(sender);
    assert_eq!(store.attempts(id(7)), 1);
    let sender = Sender::over(store, options);
    let error = sender.store.handle(id(7)).outcome().await.unwrap_err();
    assert_eq!((error.cause, error.attempts, error.limit), (Cause::AttemptsExhausted, 3, 3), "{error}");
    let requests = peer.rest();
    assert_eq!(requests.len(), 2);
    assert!(requests.iter().all(|request| request.key() == first.key() && request.body == first.body));
}

#[tokio::test]
async fn an_attempt_that_was_interrupted_counts() {
    let mut peer = Peer::start([Act::SayAndHang("")]).await;
    let sender = Sender::start(options());
    sender.send(delivery(7, &peer.url()));
    let mut store = sender.store.clone();
    let mut running = Some(sender);
    for attempt in 1..=3 {
        let sender = running.take().unwrap_or_else(|| Sender::over(store.clone(), options()));
        peer.next().await;
        assert_eq!(store.attempts(id(7)), attempt);
        store = sender.close(Duration::ZERO).await;
    }
    let sender = Sender::over(store, options());
    let error = sender.store.handle(id(7)).outcome().await.unwrap_err();
    assert_eq!((error.cause, error.attempts), (Cause::AttemptsExhausted, 3), "{error}");
    assert_eq!(error.message, "the process ended during attempt 3");
    assert!(peer.rest().is_empty());
}

#[tokio::test]
async fn closing_waits_for_the_attempt_that_runs() {
    let mut peer = Peer::start([Act::SayWhenTold("HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\n<b/>"), OK]).await;
    let sender = Sender::start(options());
    let mut handle = sender.send(delivery(7, &peer.url()));
    let waiting = sender.send(delivery(8, &peer.url()));
    peer.next().await;
    let (outcome, store) = tokio::join!(
        async {
            peer.go_on();
            handle.outcome().await
        },
        sender.close(Duration::from_secs(60))
    );
    outcome.unwrap();
    assert_eq!(waiting.state(), State::Waiting);
    assert!(peer.rest().is_empty());
    let sender = Sender::over(store, options());
    sender.store.handle(id(8)).outcome().await.unwrap();
    assert_eq!(peer.rest().len(), 1);
}
