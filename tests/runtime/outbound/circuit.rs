//! The circuit to a target, on a clock that runs ahead while nothing happens.

use std::time::Duration;

use systole::outbound::{Cause, CircuitPolicy, CircuitState, DeliveryOptions, State};
use systole::vocab::Name;

use super::peer::{Act, OK, Peer, Refusing};
use super::setup::{Folder, deliver, delivery, options};

fn with(failures: u32, cool_down: u64) -> DeliveryOptions {
    options().circuit(CircuitPolicy::default().failures(failures).cool_down(Duration::from_secs(cool_down)))
}

fn peer() -> Name {
    "peer".parse().unwrap()
}

#[tokio::test(start_paused = true)]
async fn it_opens_waits_and_lets_one_attempt_decide() {
    let refusing = Refusing::new();
    let folder = Folder::new();
    let outbound = folder.start(with(3, 30)).await;
    let error = deliver(&outbound, delivery(1, &refusing.url())).await.unwrap_err();
    assert_eq!((error.cause, error.attempts), (Cause::AttemptsExhausted, 3), "{error}");
    assert!(matches!(outbound.circuit(&peer()), CircuitState::Open(_)));
    // Each attempt of the next one waits until the circuit has cooled down, fails, and opens it again.
    let error = deliver(&outbound, delivery(2, &refusing.url())).await.unwrap_err();
    assert_eq!((error.cause, error.attempts, error.elapsed.as_secs()), (Cause::AttemptsExhausted, 3, 90), "{error}");
    let mut answers = Peer::start([OK]).await;
    let answered = outbound.send(delivery(3, &answers.url())).await.unwrap().outcome().await.unwrap();
    assert!(answered.is_ok());
    answers.next().await;
    assert_eq!(outbound.circuit(&peer()), CircuitState::Closed);
}

#[tokio::test(start_paused = true)]
async fn a_delivery_that_would_wait_for_too_long_is_given_up_at_once() {
    let refusing = Refusing::new();
    let folder = Folder::new();
    let outbound = folder.start(with(3, 601)).await;
    deliver(&outbound, delivery(1, &refusing.url())).await.unwrap_err();
    let error = deliver(&outbound, delivery(2, &refusing.url())).await.unwrap_err();
    assert_eq!((error.cause, error.attempts, error.elapsed), (Cause::CircuitOpen, 0, Duration::ZERO), "{error}");
    assert!(error.message.contains("earlier attempts to "), "{error}");
}

#[tokio::test(start_paused = true)]
async fn it_can_be_cancelled_while_it_waits_for_the_circuit() {
    let refusing = Refusing::new();
    let folder = Folder::new();
    let outbound = folder.start(with(3, 500)).await;
    deliver(&outbound, delivery(1, &refusing.url())).await.unwrap_err();
    let mut handle = outbound.send(delivery(2, &refusing.url())).await.unwrap();
    assert_eq!(handle.state(), State::Waiting);
    outbound.cancel(handle.id()).await.unwrap();
    assert_eq!(handle.outcome().await.unwrap().unwrap_err().attempts, 0);
}

#[tokio::test(start_paused = true)]
async fn any_answer_closes_it_and_other_targets_have_their_own() {
    let folder = Folder::new();
    let outbound = folder.start(with(3, 601)).await;
    let answers = [
        "HTTP/1.1 500 Internal Server Error\r\ncontent-length: 0\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 16\r\n\r\n{\"error\":\"sick\"}",
        "SSH-2.0-OpenSSH_9.6\r\n",
    ];
    for (number, said) in (10..).zip(answers) {
        let peer = Peer::start([Act::CloseAfterRequest, Act::CloseAfterRequest, Act::Say(said)]).await;
        let error = deliver(&outbound, delivery(number, &peer.url())).await.unwrap_err();
        assert_eq!(error.attempts, 3, "{error}");
        assert_eq!(outbound.circuit(&"peer".parse().unwrap()), CircuitState::Closed);
    }
    let refusing = Refusing::new();
    deliver(&outbound, delivery(3, &refusing.url())).await.unwrap_err();
    assert!(matches!(outbound.circuit(&peer()), CircuitState::Open(_)));
    let answers = Peer::start([OK]).await;
    let other = systole::outbound::OutboundDelivery { target: "other".parse().unwrap(), ..delivery(4, &answers.url()) };
    deliver(&outbound, other).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_target_that_moved_is_not_left_alone_for_what_it_left() {
    let refusing = Refusing::new();
    let folder = Folder::new();
    let outbound = folder.start(with(3, 601)).await;
    deliver(&outbound, delivery(1, &refusing.url())).await.unwrap_err();
    assert!(matches!(outbound.circuit(&peer()), CircuitState::Open(_)));
    outbound.close_circuit(&peer());
    assert_eq!(outbound.circuit(&peer()), CircuitState::Closed);
    let mut answers = Peer::start([OK]).await;
    deliver(&outbound, delivery(2, &answers.url())).await.unwrap();
    answers.next().await;
}
