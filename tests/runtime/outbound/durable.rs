//! Durability and retention of deliveries.

use std::task::Poll;
use std::time::Duration;

use systole::outbound::{
    Cause, DeliveryError, FileProblem, Outbound, OutboundDelivery, OutboundError, OutboxError, Retention, State,
};

use super::peer::{Act, OK, Peer};
use super::setup::{Folder, deliver, delivery, id, options, patient};

async fn backs_off(outbound: &Outbound, delivery: OutboundDelivery) {
    let mut handle = outbound.send(delivery).await.unwrap();
    handle.wait_for(|state| matches!(state, State::BackingOff { .. })).await.unwrap();
}

#[tokio::test]
async fn the_same_delivery_is_one() {
    let folder = Folder::new();
    let outbound = folder.start(options()).await;
    let mut peer = Peer::start([Act::SayWhenTold("HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\n<b/>")]).await;
    let mut first = outbound.send(delivery(7, &peer.url())).await.unwrap();
    peer.next().await;
    let mut again = outbound.send(delivery(7, &peer.url())).await.unwrap();
    for other in [
        OutboundDelivery { body: "<b/>".into(), ..delivery(7, &peer.url()) },
        OutboundDelivery { target: "other".parse().unwrap(), ..delivery(7, &peer.url()) },
        delivery(7, "http://127.0.0.1:1/"),
    ] {
        let refused = outbound.send(other).await.unwrap_err();
        assert!(matches!(refused, DeliveryError::IdTaken { id: of } if of == id(7)), "{refused}");
    }
    peer.go_on();
    let outcome = first.outcome().await.unwrap();
    assert_eq!(again.outcome().await.unwrap(), outcome);
    // When it has ended, it is still one: here, and after the next start.
    assert_eq!(deliver(&outbound, delivery(7, &peer.url())).await, outcome);
    outbound.close(Duration::ZERO).await;
    let outbound = folder.start(options()).await;
    assert_eq!(deliver(&outbound, delivery(7, &peer.url())).await, outcome);
    let other = OutboundDelivery { body: "<b/>".into(), ..delivery(7, &peer.url()) };
    assert!(matches!(outbound.send(other).await, Err(DeliveryError::IdTaken { .. })));
    assert!(peer.rest().is_empty());
}

#[tokio::test]
async fn an_outcome_reads_back_as_it_was() {
    let folder = Folder::new();
    let outbound = folder.start(options()).await;
    let mut outcomes = Vec::new();
    for (number, said) in (1..).zip([
        "HTTP/1.1 200 OK\r\ncontent-type: text/xml; charset=utf-8\r\ncontent-length: 4\r\n\r\n<b/>",
        "HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n",
        "HTTP/1.1 418 I'm a teapot\r\ncontent-length: 5\r\n\r\nshort",
        "",
    ]) {
        let peer = Peer::start([Act::Say(said)]).await;
        outcomes.push((number, peer.url(), deliver(&outbound, delivery(number, &peer.url())).await));
    }
    outbound.close(Duration::ZERO).await;
    let outbound = folder.start(options()).await;
    for (number, url, outcome) in outcomes {
        let report = outbound.report(id(number)).await.unwrap().unwrap();
        assert_eq!(report.outcome, Some(outcome.clone()));
        assert_eq!(deliver(&outbound, delivery(number, &url)).await, outcome);
    }
}

/// The clock runs ahead while nothing happens: the wait goes on, and doesn't start again.
#[tokio::test(start_paused = true)]
async fn a_back_off_goes_on_after_a_crash_with_the_attempts_already_made() {
    let folder = Folder::new();
    let mut peer = Peer::start([Act::CloseAfterRequest]).await;
    let mut options = patient();
    options.policy.budget = Duration::from_secs(2000);
    let outbound = folder.start(options.clone()).await;
    backs_off(&outbound, delivery(7, &peer.url())).await;
    let first = peer.next().await;
    // Nothing is closed, as after a crash.
    drop(outbound);
    let outbound = loop {
        match Outbound::start(&folder.outbox(), options.clone()).await {
            Ok(outbound) => break outbound,
            // The thread of the outbox writer still runs.
            Err(OutboundError::Outbox(OutboxError::Store { problem, .. }))
                if matches!(*problem, FileProblem::InUse { .. }) =>
            {
                tokio::task::yield_now().await;
            }
            Err(error) => panic!("{error}"),
        }
    };
    let report = outbound.report(id(7)).await.unwrap().unwrap();
    assert_eq!(report.attempts, 1);
    assert!(report.next.is_some() && report.last_error.is_some_and(|error| error.contains("connection closed")));
    let settled = outbound.outcomes().next().await.unwrap();
    let error = settled.outcome.unwrap_err();
    assert_eq!((error.cause, error.attempts, error.limit), (Cause::AttemptsExhausted, 3, 3), "{error}");
    let requests = peer.rest();
    assert_eq!(requests.len(), 2);
    assert!(requests.iter().all(|request| request.key() == first.key() && request.body == first.body));
}

#[tokio::test]
async fn an_attempt_that_was_interrupted_counts() {
    let folder = Folder::new();
    let mut peer = Peer::start([Act::SayAndHang("")]).await;
    for attempt in 1..=3 {
        let outbound = folder.start(options()).await;
        outbound.send(delivery(7, &peer.url())).await.unwrap();
        peer.next().await;
        assert_eq!(outbound.report(id(7)).await.unwrap().unwrap().attempts, attempt);
        outbound.close(Duration::ZERO).await;
    }
    let outbound = folder.start(options()).await;
    let error = outbound.outcomes().next().await.unwrap().outcome.unwrap_err();
    assert_eq!((error.cause, error.attempts), (Cause::AttemptsExhausted, 3), "{error}");
    assert_eq!(error.message, "the process ended during attempt 3");
    assert!(peer.rest().is_empty());
}

#[tokio::test]
async fn closing_waits_for_the_attempt_that_runs() {
    let folder = Folder::new();
    let mut peer = Peer::start([Act::SayWhenTold("HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\n<b/>")]).await;
    let outbound = folder.start(options()).await;
    let mut handle = outbound.send(delivery(7, &peer.url())).await.unwrap();
    let mut waiting = outbound.send(delivery(8, &peer.url())).await.unwrap();
    peer.next().await;
    let close = outbound.close(Duration::from_secs(60));
    let (outcome, ()) = tokio::join!(
        async {
            peer.go_on();
            handle.outcome().await
        },
        close
    );
    outcome.unwrap().unwrap();
    assert!(matches!(waiting.outcome().await, Err(OutboxError::Closed)));
    assert!(matches!(outbound.send(delivery(9, &peer.url())).await, Err(DeliveryError::Outbox(OutboxError::Closed))));
    assert!(peer.rest().is_empty());
    let outbound = folder.start(options()).await;
    peer.next().await;
    peer.go_on();
    assert_eq!(outbound.outcomes().next().await.unwrap().id, id(8));
}

#[tokio::test]
async fn what_nobody_waits_for_comes_until_it_is_acknowledged() {
    let folder = Folder::new();
    let peer = Peer::start([OK]).await;
    let outbound = folder.start(options()).await;
    // The first and third have no handle.
    for number in 1..=3 {
        let mut handle = outbound.send(delivery(number, &peer.url())).await.unwrap();
        if number == 2 {
            handle.outcome().await.unwrap().unwrap();
        }
    }
    let mut outcomes = outbound.outcomes();
    assert_eq!(outcomes.next().await.unwrap().id, id(1));
    assert_eq!(outcomes.next().await.unwrap().id, id(3));
    assert!(outbound.acknowledge(id(1)).await.unwrap());
    assert!(!outbound.acknowledge(id(1)).await.unwrap(), "it was told");
    assert!(!outbound.acknowledge(id(9)).await.unwrap(), "there is none");
    outbound.close(Duration::ZERO).await;
    assert!(outcomes.next().await.is_err());
    let outbound = folder.start(options()).await;
    let mut outcomes = outbound.outcomes();
    assert_eq!(outcomes.next().await.unwrap().id, id(3));
    outbound.send(delivery(4, &peer.url())).await.unwrap();
    assert_eq!(outcomes.next().await.unwrap().id, id(4), "and what comes later");
}

#[tokio::test]
async fn cancelling_stops_it_wherever_it_is() {
    let folder = Folder::new();
    let mut peer = Peer::start([Act::CloseAfterRequest, Act::SayAndHang(""), OK]).await;
    let outbound = folder.start(patient()).await;
    let mut backing_off = outbound.send(delivery(1, &peer.url())).await.unwrap();
    backing_off.wait_for(|state| matches!(state, State::BackingOff { .. })).await.unwrap();
    let mut running = outbound.send(delivery(2, &peer.url())).await.unwrap();
    let mut in_line = outbound.send(delivery(3, &peer.url())).await.unwrap();
    assert!(outbound.cancel(id(3)).await.unwrap());
    let error = in_line.outcome().await.unwrap().unwrap_err();
    assert_eq!((error.cause, error.attempts), (Cause::Cancelled, 0), "{error}");
    assert!(outbound.cancel(id(1)).await.unwrap());
    let error = backing_off.outcome().await.unwrap().unwrap_err();
    assert_eq!((error.cause, error.attempts), (Cause::Cancelled, 1), "{error}");
    assert_eq!(peer.next().await.key(), id(1).to_string());
    assert_eq!(peer.next().await.key(), id(2).to_string());
    assert!(outbound.cancel(id(2)).await.unwrap());
    assert_eq!(running.outcome().await.unwrap().unwrap_err().cause, Cause::Cancelled);
    deliver(&outbound, delivery(4, &peer.url())).await.unwrap();
    for (number, why) in [(1, "it is cancelled"), (4, "it is delivered"), (9, "there is none")] {
        assert!(!outbound.cancel(id(number)).await.unwrap(), "{why}");
    }
    assert!(outbound.report(id(4)).await.unwrap().unwrap().outcome.unwrap().is_ok());
}

/// A caller that is dropped leaves no work half done.
#[tokio::test]
async fn what_is_dropped_while_it_is_asked_is_done_to_its_end() {
    let folder = Folder::new();
    let mut peer = Peer::start([OK]).await;
    let outbound = folder.start(options()).await;
    for number in 1..=50 {
        let mut send = std::pin::pin!(outbound.send(delivery(number, &peer.url())));
        let waits = std::future::poll_fn(|context| Poll::Ready(send.as_mut().poll(context).is_pending())).await;
        assert!(waits);
    }
    for number in 1..=50 {
        assert_eq!(peer.next().await.key(), id(number).to_string());
    }
}

#[tokio::test]
async fn what_was_cancelled_stays_cancelled() {
    let folder = Folder::new();
    let mut peer = Peer::start([Act::CloseAfterRequest]).await;
    let outbound = folder.start(patient()).await;
    backs_off(&outbound, delivery(7, &peer.url())).await;
    peer.next().await;
    outbound.cancel(id(7)).await.unwrap();
    outbound.close(Duration::ZERO).await;
    let outbound = folder.start(options()).await;
    assert_eq!(deliver(&outbound, delivery(7, &peer.url())).await.unwrap_err().cause, Cause::Cancelled);
    assert!(peer.rest().is_empty());
}

#[tokio::test(start_paused = true)]
async fn what_is_over_is_kept_for_a_while() {
    let folder = Folder::new();
    let peer = Peer::start([OK]).await;
    let retention = Retention::default().age(Duration::from_secs(60));
    let outbound = folder.start(options().retention(retention)).await;
    deliver(&outbound, delivery(1, &peer.url())).await.unwrap();
    tokio::time::advance(Duration::from_secs(59)).await;
    deliver(&outbound, delivery(2, &peer.url())).await.unwrap();
    assert!(outbound.report(id(1)).await.unwrap().is_some());
    tokio::time::advance(Duration::from_secs(2)).await;
    deliver(&outbound, delivery(3, &peer.url())).await.unwrap();
    assert_eq!(outbound.report(id(1)).await.unwrap(), None);
    assert!(outbound.report(id(2)).await.unwrap().is_some());
}

#[tokio::test(start_paused = true)]
async fn what_is_over_goes_with_time_although_nothing_comes() {
    let folder = Folder::new();
    let peer = Peer::start([OK, OK, Act::SayAndHang("")]).await;
    let age = Duration::from_secs(60);
    let outbound = folder.start(options().retention(Retention::default().age(age))).await;
    assert_eq!(outbound.tidy().await.unwrap(), None);
    for number in 1..=2 {
        deliver(&outbound, delivery(number, &peer.url())).await.unwrap();
    }
    outbound.send(delivery(3, &peer.url())).await.unwrap();
    assert!(outbound.tidy().await.unwrap().is_some());
    assert!(outbound.report(id(1)).await.unwrap().is_some());
    tokio::time::advance(age + Duration::from_secs(1)).await;
    assert_eq!(outbound.tidy().await.unwrap(), None);
    for number in 1..=2 {
        assert_eq!(outbound.report(id(number)).await.unwrap(), None);
    }
    assert_eq!(outbound.open().await.unwrap(), [id(3)]);
}

#[tokio::test]
async fn only_what_has_ended_is_forgotten_and_its_id_is_free() {
    let folder = Folder::new();
    let mut peer = Peer::start([OK]).await;
    let silent = Peer::start([Act::SayAndHang("")]).await;
    let outbound = folder.start(options()).await;
    outbound.send(delivery(1, &silent.url())).await.unwrap();
    assert!(!outbound.forget(id(1)).await.unwrap());
    assert!(matches!(outbound.send(delivery(1, &peer.url())).await, Err(DeliveryError::IdTaken { .. })));
    assert!(outbound.cancel(id(1)).await.unwrap());
    assert!(outbound.forget(id(1)).await.unwrap());
    assert!(!outbound.forget(id(1)).await.unwrap());
    deliver(&outbound, delivery(1, &peer.url())).await.unwrap();
    assert_eq!(peer.next().await.key(), id(1).to_string());
}

#[tokio::test]
async fn past_its_size_the_oldest_goes_and_what_waits_stays() {
    let folder = Folder::new();
    let retention = Retention::default().bytes(0);
    let peer = Peer::start([OK]).await;
    let silent = Peer::start([Act::SayAndHang("")]).await;
    let outbound = folder.start(options().retention(retention)).await;
    let target = "silent".parse().unwrap();
    outbound.send(OutboundDelivery { target, ..delivery(1, &silent.url()) }).await.unwrap();
    deliver(&outbound, delivery(2, &peer.url())).await.unwrap();
    deliver(&outbound, delivery(3, &peer.url())).await.unwrap();
    assert_eq!(outbound.report(id(2)).await.unwrap(), None);
    assert!(outbound.report(id(3)).await.unwrap().is_some());
    outbound.close(Duration::ZERO).await;
    let outbound = folder.start(options().retention(retention)).await;
    assert_eq!(outbound.report(id(3)).await.unwrap(), None);
    assert!(outbound.report(id(1)).await.unwrap().is_some());
}

#[tokio::test]
async fn an_outbox_that_is_full_says_so_and_takes_more_when_it_is_not() {
    let folder = Folder::new();
    let mut peer = Peer::start([Act::SayWhenTold("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")]).await;
    let mut limits = options().limits;
    limits.deliveries = 2;
    limits.bytes = 25;
    let outbound = folder.start(options().limits(limits)).await;
    let mut first = outbound.send(delivery(1, &peer.url())).await.unwrap();
    outbound.send(delivery(2, &peer.url())).await.unwrap();
    let refused = outbound.send(delivery(3, &peer.url())).await.unwrap_err();
    assert!(matches!(refused, DeliveryError::Full { deliveries: 2, bytes: 20 }), "{refused}");
    outbound.send(delivery(2, &peer.url())).await.expect("it is there");
    peer.next().await;
    peer.go_on();
    first.outcome().await.unwrap().unwrap();
    let long = OutboundDelivery { body: vec![b'x'; 16].into(), ..delivery(3, &peer.url()) };
    assert!(matches!(outbound.send(long).await, Err(DeliveryError::Full { deliveries: 1, bytes: 10 })));
    outbound.send(delivery(3, &peer.url())).await.unwrap();
    // Open deliveries are counted again after a start.
    outbound.close(Duration::ZERO).await;
    let outbound = folder.start(options().limits(limits)).await;
    assert!(matches!(
        outbound.send(delivery(4, &peer.url())).await,
        Err(DeliveryError::Full { deliveries: 2, bytes: 20 })
    ));
}

async fn refusal(folder: &Folder) -> String {
    Outbound::start(&folder.outbox(), options()).await.unwrap_err().to_string()
}

#[tokio::test]
async fn one_process_has_an_outbox() {
    let folder = Folder::new();
    let outbound = folder.start(options()).await;
    let second = refusal(&folder).await;
    assert!(second.contains(&format!("in use by process {}", std::process::id())), "{second}");
    outbound.close(Duration::ZERO).await;
    folder.start(options()).await;
}

#[tokio::test]
async fn what_is_no_outbox_is_left_as_it_is() {
    let folder = Folder::new();
    std::fs::write(folder.outbox(), "a diary").unwrap();
    assert!(refusal(&folder).await.contains("this is no outbox, and was left as it is"));
    assert_eq!(std::fs::read(folder.outbox()).unwrap(), b"a diary");
    let journal = systole::runtime::journal::JournalOptions::new([1; 32]);
    std::fs::remove_file(folder.outbox()).unwrap();
    drop(systole::runtime::journal::SqliteJournal::open(&folder.outbox(), &journal).unwrap());
    assert!(refusal(&folder).await.contains("this is no outbox"));
}

#[tokio::test]
async fn a_damaged_outbox_is_refused() {
    let folder = Folder::new();
    let outbound = folder.start(options()).await;
    outbound.send(delivery(1, "http://127.0.0.1:1/")).await.unwrap();
    outbound.close(Duration::ZERO).await;
    let mut bytes = std::fs::read(folder.outbox()).unwrap();
    let len = bytes.len();
    bytes[4096..len].fill(0xee);
    std::fs::write(folder.outbox(), bytes).unwrap();
    let refusal = refusal(&folder).await;
    assert!(refusal.starts_with(&format!("outbox {}: damaged: ", folder.outbox().display())), "{refusal}");
}
