//! The queue of each target: in order within it, beside the others.

use super::peer::{Act, OK, Peer};
use super::setup::{Sender, delivery, id, options};
use crate::outbound::OutboundDelivery;

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
async fn targets_that_hang_hold_up_no_other_however_many_they_are() {
    let mut silent = Peer::start([Act::SayAndHang("")]).await;
    let peer = Peer::start([OK]).await;
    let sender = Sender::start(options());
    for number in 0..200 {
        let target = format!("silent-{number}").parse().unwrap();
        sender.send(OutboundDelivery { target, ..delivery(number, &silent.url()) });
        silent.next().await;
    }
    sender.deliver(delivery(200, &peer.url())).await.unwrap();
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
