//! Refused addresses.

use std::time::Duration;

use systole::outbound::{Cause, DeliveryError, Guard, OutboundDelivery, State};

use super::peer::{Act, OK, Peer};
use super::setup::{Folder, deliver, delivery, id, options, outcome, patient};

#[tokio::test]
async fn a_name_that_leads_inside_is_refused_after_it_was_looked_up() {
    let mut peer = Peer::start([OK]).await;
    let url = format!("http://localhost:{}/", peer.address.port());
    let error = outcome(options().guard(Guard::new()), delivery(7, &url)).await.unwrap_err();
    assert_eq!((error.cause, error.attempts), (Cause::AddressRefused, 1), "{error}");
    assert!(error.message.contains("is loopback: nothing is sent there unless its network is allowed"), "{error}");
    assert!(peer.rest().is_empty());
    // The same name, allowed.
    outcome(options(), delivery(7, &url)).await.unwrap();
    peer.next().await;
}

#[tokio::test]
async fn an_address_is_refused_before_it_is_taken() {
    let folder = Folder::new();
    let outbound = folder.start(options().guard(Guard::new())).await;
    let refused = outbound.send(delivery(7, "http://[::ffff:127.0.0.1]:1/")).await.unwrap_err();
    assert!(matches!(refused, DeliveryError::Address { .. }), "{refused}");
    assert_eq!(outbound.report(id(7)).await.unwrap(), None);
}

#[tokio::test(start_paused = true)]
async fn an_address_that_was_allowed_before_is_judged_again() {
    let folder = Folder::new();
    let mut peer = Peer::start([Act::CloseAfterRequest]).await;
    let outbound = folder.start(patient()).await;
    let mut handle = outbound.send(delivery(7, &peer.url())).await.unwrap();
    handle.wait_for(|state| matches!(state, State::BackingOff { .. })).await.unwrap();
    peer.next().await;
    outbound.close(Duration::ZERO).await;
    let outbound = folder.start(patient().guard(Guard::new())).await;
    let error = outbound.outcomes().next().await.unwrap().outcome.unwrap_err();
    assert_eq!((error.cause, error.attempts), (Cause::AddressRefused, 2), "{error}");
    assert!(peer.rest().is_empty());
}

#[tokio::test]
async fn a_target_can_have_a_guard_of_its_own() {
    let folder = Folder::new();
    let mut peer = Peer::start([OK]).await;
    let guards = [("peer".parse().unwrap(), options().guard)].into();
    let outbound = folder.start(options().guard(Guard::new()).guards(guards)).await;
    let other = OutboundDelivery { target: "other".parse().unwrap(), ..delivery(8, &peer.url()) };
    let refused = outbound.send(other.clone()).await.unwrap_err();
    assert!(matches!(refused, DeliveryError::Address { .. }), "{refused}");
    let url = format!("http://localhost:{}/", peer.address.port());
    let error = deliver(&outbound, OutboundDelivery { url: url.clone(), ..other }).await.unwrap_err();
    assert_eq!(error.cause, Cause::AddressRefused, "{error}");
    assert!(peer.rest().is_empty());
    for (number, url) in (9..).zip([peer.url(), url]) {
        deliver(&outbound, delivery(number, &url)).await.unwrap();
        peer.next().await;
    }
}
