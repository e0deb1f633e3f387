//! A delivery of each kind against the real gateway, over real sockets: the rest of them is in `tests/gateway_sim` of the
//! crate `systole`.

use std::time::Duration;

use systole::remote::{InboundDelivery, LeaseDelivery, StreamDelivery};

use super::setup::{Seen, asked, mailbox, stay_here, take};
use crate::kit::Site;

#[tokio::test]
async fn several_workers_share_the_messages_and_each_is_handled_once() {
    let site = Site::new();
    let (ada, worker) = (site.party("ada"), site.party("worker"));
    let mut all = asked(&ada, &worker, 0..30);
    let seen = Seen::default();
    let mut workers = tokio::task::JoinSet::new();
    for _ in 0..4 {
        let (handler, mailbox) = (seen.echo(), mailbox(&worker, "worker"));
        workers.spawn(async move {
            let mut lease = LeaseDelivery::new(mailbox).wait(Duration::ZERO);
            while lease.run_once(&handler).await.unwrap() == 1 {}
        });
    }
    while let Some(ended) = workers.join_next().await {
        ended.unwrap();
    }
    let mut numbers = seen.numbers();
    numbers.sort_unstable();
    all.sort_unstable();
    assert_eq!(numbers, all);
}

#[tokio::test]
async fn a_stream_is_made_anew_after_the_pump_was_killed() {
    let mut site = Site::new();
    let (ada, worker) = (site.party("ada"), site.party("worker"));
    stay_here(&site);
    let seen = Seen::default();
    let handler = seen.echo();
    let mut stream = StreamDelivery::new(mailbox(&worker, "worker"));
    ada.send(0).is(202);
    take(&mut stream, &handler, 1).await;
    site.kill();
    assert!(stream.run_once(&handler).await.is_err(), "it is told");
    assert!(stream.run_once(&handler).await.is_err(), "nobody is there");
    assert!(!stream.interval().is_zero(), "it waits before it asks again");
    site.start();
    ada.send(1).is(202);
    take(&mut stream, &handler, 1).await;
    assert!(stream.interval().is_zero());
    assert_eq!(seen.numbers(), [0, 1]);
}
