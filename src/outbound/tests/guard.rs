//! Refused addresses.

use std::time::Duration;

use super::peer::{Act, OK, Peer};
use super::setup::{Sender, State, delivery, id, options, outcome, patient};
use crate::outbound::{Cause, DeliveryOptions, Guard, OutboundDelivery};

/// Options to public addresses alone.
fn public(options: DeliveryOptions) -> DeliveryOptions {
    DeliveryOptions { guard: Guard::new(), ..options }
}

#[tokio::test]
async fn a_name_that_leads_inside_is_refused_after_it_was_looked_up() {
    let mut peer = Peer::start([OK]).await;
    let url = format!("http://localhost:{}/", peer.address.port());
    let error = outcome(public(options()), delivery(7, &url)).await.unwrap_err();
    assert_eq!((error.cause, error.attempts), (Cause::AddressRefused, 1), "{error}");
    assert!(error.message.contains("is loopback: nothing is sent there unless its network is allowed"), "{error}");
    assert!(peer.rest().is_empty());
    // The same name, allowed.
    outcome(options(), delivery(7, &url)).await.unwrap();
    peer.next().await;
}

#[tokio::test(start_paused = true)]
async fn an_address_that_was_allowed_before_is_judged_again() {
    let mut peer = Peer::start([Act::CloseAfterRequest]).await;
    let sender = Sender::start(patient());
    sender.send(delivery(7, &peer.url())).wait_for(|state| matches!(state, State::BackingOff { .. })).await;
    peer.next().await;
    let store = sender.close(Duration::ZERO).await;
    let sender = Sender::over(store, public(patient()));
    let error = sender.store.handle(id(7)).outcome().await.unwrap_err();
    assert_eq!((error.cause, error.attempts), (Cause::AddressRefused, 2), "{error}");
    assert!(peer.rest().is_empty());
}

#[tokio::test]
async fn a_target_can_have_a_guard_of_its_own() {
    let mut peer = Peer::start([OK]).await;
    let guards = [("peer".parse().unwrap(), options().guard)].into();
    let sender = Sender::start(DeliveryOptions { guards, ..public(options()) });
    let by_name = format!("http://localhost:{}/", peer.address.port());
    for (number, url) in (1..).zip([peer.url(), by_name.clone()]) {
        let other = OutboundDelivery { target: "other".parse().unwrap(), ..delivery(number, &url) };
        let error = sender.deliver(other).await.unwrap_err();
        assert_eq!(error.cause, Cause::AddressRefused, "{error}");
    }
    assert!(peer.rest().is_empty());
    for (number, url) in (9..).zip([peer.url(), by_name]) {
        sender.deliver(delivery(number, &url)).await.unwrap();
        peer.next().await;
    }
}
