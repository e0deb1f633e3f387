//! Several workers on one mailbox.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use systole::remote::{Failed, Inbound, InboundDelivery, LeaseDelivery};
use tokio::sync::Notify;

use super::peer::{Act, Peer};
use super::setup::{Seen, answer, answered, asked, hang, id, item, mailbox, of, say, status, take, within};
use crate::kit::{Site, text};

#[test]
fn several_workers_share_the_messages_and_each_is_handled_once() {
    let site = Site::new();
    let (ada, worker) = (site.party("ada"), site.party("worker"));
    let mut all = asked(&ada, &worker, 0..30);
    let seen = Seen::default();
    site.run(async {
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
    });
    let mut numbers = seen.numbers();
    numbers.sort_unstable();
    all.sort_unstable();
    assert_eq!(numbers, all);
}

#[test]
fn each_outcome_ends_its_message() {
    let site = Site::new();
    let (ada, worker) = (site.party("ada"), site.party("worker"));
    let handler = Seen::default().handler(|number, _| match number {
        0 => Ok(answer("yes")),
        1 => Err(Failed::new("no more coffee")),
        _ => Ok(String::new()),
    });
    let mut lease = LeaseDelivery::new(mailbox(&worker, "worker"));
    for (number, state, fault) in
        [(0, "answered", None), (1, "faulted", Some("failed")), (2, "faulted", Some("silent"))]
    {
        let sent = ada.send(number).is(202).json();
        site.run(take(&mut lease, &handler, 1));
        let known = answered(&ada, &sent);
        assert_eq!((text(&known["state"]), known["reply"]["fault"].as_str()), (state, fault), "{known}");
    }
}

#[test]
fn what_a_worker_leaves_goes_to_the_next_one() {
    let site = Site::new();
    let (ada, worker) = (site.party("ada"), site.party("worker"));
    let sent = ada.send(0).is(202).json();
    let (hang, began) = hang();
    let second = Duration::from_secs(1);
    let mut lease = LeaseDelivery::new(mailbox(&worker, "worker")).visibility(second);
    site.run(async {
        tokio::select! {
            done = lease.run_once(&hang) => panic!("it hangs: {done:?}"),
            () = began.notified() => {}
        }
    });
    let seen = Seen::default();
    site.run(take(&mut LeaseDelivery::new(mailbox(&worker, "worker")), &seen.echo(), 1));
    assert_eq!(seen.all()[0].deliveries, 2);
    assert_eq!(text(&answered(&ada, &sent)["state"]), "answered");
}

fn leased(deliveries: u32) -> Act {
    let mut item = item(1);
    item["receipt"] = "r1".into();
    item["deliveries"] = deliveries.into();
    say("200 OK", &json!({ "items": [item] }))
}

fn done() -> Act {
    Act::Say("HTTP/1.1 204 No Content\r\n\r\n")
}

fn said(body: &[u8]) -> Value {
    serde_json::from_slice(body).unwrap()
}

#[test]
fn a_lease_is_extended_while_its_handler_runs() {
    within(async {
        let mut peer = Peer::start([leased(1), done(), done(), done()]).await;
        let go = Arc::new(Notify::new());
        let handler = {
            let go = go.clone();
            move |_: Inbound| {
                let go = go.clone();
                async move {
                    go.notified().await;
                    Ok::<_, Failed>(answer("yes"))
                }
            }
        };
        let mut lease = LeaseDelivery::new(of(&peer));
        let told = async {
            let asked = peer.next().await;
            assert!(asked.head.starts_with("POST /v1/mailboxes/worker/lease "));
            assert_eq!(said(&asked.body), json!({ "max": 1, "wait": 60, "visibility": 30 }));
            for _ in 0..2 {
                let extended = peer.next().await;
                assert!(extended.head.contains(&format!("/messages/{}/extend ", id(1))), "{}", extended.head);
                assert_eq!(said(&extended.body), json!({ "receipt": "r1", "visibility": 30 }));
            }
            go.notify_one();
            peer.next().await
        };
        let (handled, replied) = tokio::join!(lease.run_once(&handler), told);
        assert_eq!(handled.unwrap(), 1);
        assert!(replied.head.contains("/reply "), "{}", replied.head);
    });
}

#[test]
fn a_message_that_is_lost_is_handled_no_more() {
    within(async {
        struct Gone(Arc<AtomicBool>);
        impl Drop for Gone {
            fn drop(&mut self) {
                self.0.store(true, Ordering::Relaxed);
            }
        }
        let settled = say("409 Conflict", &json!({ "code": "settled", "detail": "the message is gone by now" }));
        let mut peer = Peer::start([leased(1), settled]).await;
        let gone = Arc::new(AtomicBool::new(false));
        let handler = {
            let gone = gone.clone();
            move |_: Inbound| {
                let guard = Gone(gone.clone());
                async move {
                    let _guard = guard;
                    std::future::pending::<Result<String, Failed>>().await
                }
            }
        };
        assert_eq!(LeaseDelivery::new(of(&peer)).run_once(&handler).await.unwrap(), 1);
        assert!(gone.load(Ordering::Relaxed));
        assert_eq!(peer.rest().len(), 2, "nothing is said of it");
    });
}

#[test]
fn what_can_not_be_done_now_is_given_back_for_longer_each_time() {
    within(async {
        for (deliveries, delay) in [(1, 1), (3, 4)] {
            let mut peer = Peer::start([leased(deliveries), done()]).await;
            let options = systole::remote::CallOptions::default();
            let url = format!("http://{}", peer.address);
            let mailbox = systole::remote::Mailbox::new(&url, "worker".parse().unwrap(), "t", options).unwrap();
            let handler = Seen::default().handler(|_, _| Err(Failed::for_now("the printer is away")));
            assert_eq!(LeaseDelivery::new(mailbox).run_once(&handler).await.unwrap(), 1);
            peer.next().await;
            let back = peer.next().await;
            assert!(back.head.contains("/nack "), "{}", back.head);
            let expected = json!({ "receipt": "r1", "error": "the printer is away", "delay": delay });
            assert_eq!(said(&back.body), expected);
        }
    });
}

#[test]
fn a_lease_of_what_is_no_message_is_failed_or_refused() {
    within(async {
        let broken = json!({ "items": [{ "id": id(1), "receipt": "r1", "envelope": "hm" }] });
        let mut peer = Peer::start([say("200 OK", &broken), say("202 Accepted", &json!({}))]).await;
        let handler = Seen::default().echo();
        assert_eq!(LeaseDelivery::new(of(&peer)).run_once(&handler).await.unwrap(), 0);
        assert!(peer.rest()[1].head.contains("/fail "));
        for strange in [json!({ "items": [{ "id": id(1) }] }), json!({ "items": [{ "receipt": "r1" }] }), json!({})] {
            let peer = Peer::start([say("200 OK", &strange)]).await;
            LeaseDelivery::new(of(&peer)).run_once(&handler).await.unwrap_err();
        }
        let peer = Peer::start([say("401 Unauthorized", &json!({ "code": "unauthorized" }))]).await;
        assert_eq!(status(LeaseDelivery::new(of(&peer)).run_once(&handler).await), 401);
    });
}
