//! The queue of each target: in order within it, beside the others.

use std::collections::HashSet;

use super::peer::{Act, OK, Peer};
use super::setup::{Sender, delivery, id, options};
use crate::outbound::{DeliveryOptions, OutboundDelivery};

#[tokio::test]
async fn a_target_gets_its_deliveries_in_order_whatever_fails() {
    let mut peer =
        Peer::start([OK, Act::CloseAfterRequest, OK, Act::CloseAfterRequest, Act::CloseAfterRequest, OK]).await;
    let sender = Sender::start(options());
    let mut handles = Vec::new();
    for number in 1..=20 {
        handles.push(sender.send(delivery(number, &peer.url())));
    }
    for handle in &mut handles {
        handle.outcome().await.unwrap();
    }
    let mut keys: Vec<_> = peer.rest().iter().map(|request| request.key().to_owned()).collect();
    assert_eq!(keys.len(), 23);
    keys.dedup();
    assert_eq!(keys, (1..=20).map(|number| id(number).to_string()).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_target_that_hangs_holds_up_nobody_else() {
    let mut silent = Peer::start([Act::SayAndHang("")]).await;
    let peer = Peer::start([OK]).await;
    let sender = Sender::start(options());
    let hangs = OutboundDelivery { target: "silent".parse().unwrap(), ..delivery(1, &silent.url()) };
    sender.send(hangs);
    silent.next().await;
    sender.deliver(delivery(2, &peer.url())).await.unwrap();
}

#[tokio::test]
async fn so_many_attempts_run_at_the_same_time_and_no_more() {
    let mut peer = Peer::start([Act::SayWhenTold("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")]).await;
    let sender = Sender::start(DeliveryOptions { attempts: 3, ..options() });
    let mut handles = Vec::new();
    for number in 0..10 {
        let target = format!("peer-{number}").parse().unwrap();
        handles.push(sender.send(OutboundDelivery { target, ..delivery(number, &peer.url()) }));
    }
    let mut seen = HashSet::new();
    for _ in 0..3 {
        seen.insert(peer.next().await.key().to_owned());
    }
    for _ in 0..7 {
        // Each that ends lets one begin, and only one.
        assert!(peer.rest().is_empty());
        peer.go_on();
        seen.insert(peer.next().await.key().to_owned());
    }
    assert_eq!(seen.len(), 10);
    (0..3).for_each(|_| peer.go_on());
}

#[tokio::test]
async fn many_targets_are_served() {
    let mut peer = Peer::start([OK]).await;
    let sender = Sender::start(options());
    let mut handles = Vec::new();
    for number in 0..300 {
        let target = format!("peer-{}", number % 100).parse().unwrap();
        handles.push(sender.send(OutboundDelivery { target, ..delivery(number, &peer.url()) }));
    }
    for handle in &mut handles {
        handle.outcome().await.unwrap();
    }
    let keys: Vec<_> = peer.rest().iter().map(|request| request.key().to_owned()).collect();
    let place = |number: u128| keys.iter().position(|key| *key == id(number).to_string()).unwrap();
    assert_eq!(keys.len(), 300);
    assert!((0..200).all(|number| place(number) < place(number + 100)), "each line is in order");
}
