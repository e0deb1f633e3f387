//! The circuit to a target, on a clock that runs ahead while nothing happens.

use std::time::Duration;

use super::peer::{Act, OK, Peer, Refusing};
use super::setup::{Sender, delivery, options, peer};
use crate::outbound::circuit::{CircuitPolicy, CircuitState};
use crate::outbound::{Cause, DeliveryOptions, OutboundDelivery};

fn with(failures: u32, cool_down: u64) -> DeliveryOptions {
    DeliveryOptions { circuit: CircuitPolicy { failures, cool_down: Duration::from_secs(cool_down) }, ..options() }
}

#[tokio::test(start_paused = true)]
async fn it_opens_waits_and_lets_one_attempt_decide() {
    let refusing = Refusing::new();
    let sender = Sender::start(with(3, 30));
    let error = sender.deliver(delivery(1, &refusing.url())).await.unwrap_err();
    assert_eq!((error.cause, error.attempts), (Cause::AttemptsExhausted, 3), "{error}");
    assert!(matches!(sender.circuit(), CircuitState::Open(_)));
    // Each attempt of the next one waits until the circuit has cooled down, fails, and opens it again.
    let error = sender.deliver(delivery(2, &refusing.url())).await.unwrap_err();
    assert_eq!((error.cause, error.attempts, error.elapsed.as_secs()), (Cause::AttemptsExhausted, 3, 90), "{error}");
    let mut answers = Peer::start([OK]).await;
    let answered = sender.send(delivery(3, &answers.url())).outcome().await;
    assert!(answered.is_ok());
    answers.next().await;
    assert_eq!(sender.circuit(), CircuitState::Closed);
}

#[tokio::test(start_paused = true)]
async fn a_delivery_that_would_wait_for_too_long_is_given_up_at_once() {
    let refusing = Refusing::new();
    let sender = Sender::start(with(3, 601));
    sender.deliver(delivery(1, &refusing.url())).await.unwrap_err();
    let error = sender.deliver(delivery(2, &refusing.url())).await.unwrap_err();
    assert_eq!((error.cause, error.attempts, error.elapsed), (Cause::CircuitOpen, 0, Duration::ZERO), "{error}");
    assert!(error.message.contains("earlier attempts to "), "{error}");
}

#[tokio::test(start_paused = true)]
async fn any_answer_closes_it_and_other_targets_have_their_own() {
    let sender = Sender::start(with(3, 601));
    let answers = [
        "HTTP/1.1 500 Internal Server Error\r\ncontent-length: 0\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 16\r\n\r\n{\"error\":\"sick\"}",
        "SSH-2.0-OpenSSH_9.6\r\n",
    ];
    for (number, said) in (10..).zip(answers) {
        let peer = Peer::start([Act::CloseAfterRequest, Act::CloseAfterRequest, Act::Say(said)]).await;
        let error = sender.deliver(delivery(number, &peer.url())).await.unwrap_err();
        assert_eq!(error.attempts, 3, "{error}");
        assert_eq!(sender.circuit(), CircuitState::Closed);
    }
    let refusing = Refusing::new();
    sender.deliver(delivery(3, &refusing.url())).await.unwrap_err();
    assert!(matches!(sender.circuit(), CircuitState::Open(_)));
    let answers = Peer::start([OK]).await;
    let other = OutboundDelivery { target: "other".parse().unwrap(), ..delivery(4, &answers.url()) };
    sender.deliver(other).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_target_that_moved_is_not_left_alone_for_what_it_left() {
    let refusing = Refusing::new();
    let sender = Sender::start(with(3, 601));
    sender.deliver(delivery(1, &refusing.url())).await.unwrap_err();
    assert!(matches!(sender.circuit(), CircuitState::Open(_)));
    sender.engine.move_target(&peer());
    assert_eq!(sender.circuit(), CircuitState::Closed);
    let mut answers = Peer::start([OK]).await;
    sender.deliver(delivery(2, &answers.url())).await.unwrap();
    answers.next().await;
}
