//! Scripted gateways: away, busy, broken, or something else.

use std::time::Duration;

use serde_json::json;
use systole::remote::{CallOptions, InboundDelivery, Mailbox, PollDelivery, RemoteError};
use tokio::time::Instant;

use super::peer::{Act, Peer};
use super::setup::{Seen, answer, id, item, item_from, of, page, say, status, within};

fn ok() -> Act {
    say("202 Accepted", &json!({}))
}

fn refused(status: &str, code: &str) -> Act {
    say(status, &json!({ "code": code, "detail": "because" }))
}

fn paths(peer: &mut Peer) -> Vec<String> {
    let line = |head: &str| head.split(' ').take(2).collect::<Vec<_>>().join(" ");
    peer.rest().iter().map(|request| line(&request.head)).collect()
}

#[test]
fn messages_without_an_id_or_a_text_stop_nobody() {
    within(async {
        let (blank, broken) =
            (json!({ "id": id(2), "cursor": "c2" }), json!({ "id": id(3), "cursor": "c3", "envelope": "hm" }));
        let items = [json!({ "cursor": "c1", "envelope": "<a/>" }), blank, broken, json!(7), item(4)];
        let mut peer = Peer::start([page(&items), ok(), ok(), ok(), page(&[])]).await;
        let seen = Seen::default();
        let handler = seen.echo();
        let mut poll = PollDelivery::new(of(&peer)).wait(Duration::ZERO);
        assert_eq!(poll.run_once(&handler).await.unwrap(), 1);
        assert_eq!(poll.run_once(&handler).await.unwrap(), 0);
        assert_eq!(seen.numbers(), [4]);
        let told = |number, what| format!("POST /v1/messages/{}/{what}", id(number));
        assert_eq!(
            paths(&mut peer),
            [
                "GET /v1/mailboxes/worker/messages?limit=20&wait=0",
                // The caller gets an answer.
                &told(2, "fail"),
                &told(3, "fail"),
                &told(4, "reply"),
                "GET /v1/mailboxes/worker/messages?ack=end&limit=20&wait=0",
            ]
        );
    });
}

#[test]
fn a_reply_to_an_unknown_source_is_an_error_and_no_guess() {
    within(async {
        let mut peer = Peer::start([page(&[item_from(1, " "), item_from(2, "user")]), ok()]).await;
        let seen = Seen::default();
        let mut poll = PollDelivery::new(of(&peer)).wait(Duration::ZERO);
        assert_eq!(poll.run_once(&seen.echo()).await.unwrap(), 2);
        peer.next().await;
        let (first, second) = (peer.next().await, peer.next().await);
        assert!(first.head.contains(&format!("{}/fail", id(1))), "{}", first.head);
        assert!(String::from_utf8_lossy(&first.body).contains("the source of the message is unknown"));
        assert!(second.head.contains(&format!("{}/reply", id(2))), "{}", second.head);
        assert_eq!(second.body, answer("to 2.").as_bytes());
    });
}

#[test]
fn a_gateway_that_is_busy_is_asked_again_when_it_says() {
    within(async {
        let busy = Act::Say("HTTP/1.1 429 Too Many Requests\r\nretry-after: 7\r\ncontent-length: 0\r\n\r\n");
        let mut peer = Peer::start([busy, Act::CloseAfterRequest, Act::Close, page(&[])]).await;
        let start = Instant::now();
        let mut poll = PollDelivery::new(of(&peer)).wait(Duration::ZERO);
        assert_eq!(poll.run_once(&Seen::default().echo()).await.unwrap(), 0);
        assert!(start.elapsed() >= Duration::from_secs(7), "{:?}", start.elapsed());
        assert_eq!(peer.rest().len(), 3);
    });
}

#[test]
fn an_answer_that_says_no_is_final_and_the_next_batch_waits_longer() {
    within(async {
        let garbage = Act::Say("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n<html");
        let no_items = say("200 OK", &json!({ "next": "c9" }));
        let no_http = Act::Say("SSH-2.0-OpenSSH\r\n\r\n");
        let script = [refused("500 Internal Server Error", "x"), garbage, no_items, no_http, page(&[])];
        let mut peer = Peer::start(script).await;
        let policy = CallOptions::default().policy.jitter(0.0);
        let options = CallOptions::default().policy(policy);
        let url = format!("http://{}/below/", peer.address);
        let mailbox = Mailbox::new(&url, "worker".parse().unwrap(), "t", options).unwrap();
        let mut poll = PollDelivery::new(mailbox);
        let handler = Seen::default().echo();
        let mut waits = vec![poll.interval()];
        assert_eq!(status(poll.run_once(&handler).await), 500);
        waits.push(poll.interval());
        for _ in 0..2 {
            let error = poll.run_once(&handler).await.unwrap_err();
            assert!(matches!(error, RemoteError::Unusable { .. }), "{error}");
            waits.push(poll.interval());
        }
        let error = poll.run_once(&handler).await.unwrap_err();
        assert!(matches!(error, RemoteError::Unanswered { .. }), "{error}");
        waits.push(poll.interval());
        poll.run_once(&handler).await.unwrap();
        waits.push(poll.interval());
        assert_eq!(waits.iter().map(Duration::as_secs).collect::<Vec<_>>(), [0, 1, 2, 4, 8, 0]);
        let requests = peer.rest();
        assert_eq!(requests.len(), 5, "nothing of it is asked again by itself");
        assert!(requests[0].head.starts_with("GET /below/v1/mailboxes/worker/messages?limit=20&wait=60 "));
        assert_eq!(requests[0].header("authorization"), Some("Bearer t"));
    });
}

#[test]
fn an_answer_that_is_too_long_is_refused() {
    within(async {
        let peer = Peer::start([page(&[json!({ "x": "x".repeat(2000) })])]).await;
        let options = super::setup::options().answer(1000);
        let mailbox =
            Mailbox::new(&format!("http://{}", peer.address), "worker".parse().unwrap(), "t", options).unwrap();
        let error = PollDelivery::new(mailbox).run_once(&Seen::default().echo()).await.unwrap_err();
        assert!(error.to_string().contains("more than 1000 bytes"), "{error}");
    });
}

#[test]
fn what_could_not_be_said_is_said_in_the_next_batch_and_no_handler_runs_again() {
    within(async {
        let broken = refused("502 Bad Gateway", "x");
        let mut peer = Peer::start([page(&[item(1), item(2)]), broken, broken, ok(), page(&[item(2)]), ok()]).await;
        let seen = Seen::default();
        let handler = seen.echo();
        let mut poll = PollDelivery::new(of(&peer)).wait(Duration::ZERO);
        assert_eq!(status(poll.run_once(&handler).await), 502);
        assert_eq!(status(poll.run_once(&handler).await), 502);
        assert_eq!(poll.run_once(&handler).await.unwrap(), 1);
        assert_eq!(seen.numbers(), [1, 2]);
        let told = |number| format!("POST /v1/messages/{}/reply", id(number));
        let paths = paths(&mut peer);
        assert_eq!(paths[1..4], [told(1), told(1), told(1)]);
        assert_eq!(paths[4..], ["GET /v1/mailboxes/worker/messages?ack=c1&limit=20&wait=0", &told(2)]);
    });
}

#[test]
fn an_outcome_that_is_always_refused_is_given_up_and_the_next_one_comes() {
    within(async {
        let broken = refused("500 Internal Server Error", "x");
        let script = [page(&[item(1)]), broken, broken, broken, broken, broken, page(&[item(2)]), ok()];
        let peer = Peer::start(script).await;
        let seen = Seen::default();
        let handler = seen.echo();
        let mut poll = PollDelivery::new(of(&peer)).wait(Duration::ZERO);
        for _ in 0..4 {
            assert_eq!(status(poll.run_once(&handler).await), 500);
        }
        assert_eq!(poll.run_once(&handler).await.unwrap(), 1);
        assert_eq!(seen.numbers(), [1, 2]);
    });
}

#[test]
fn a_reply_that_is_refused_for_good_fails_its_message() {
    within(async {
        let script = [
            page(&[item(1), item(2)]),
            refused("413 Content Too Large", "too_large"),
            ok(),
            refused("409 Conflict", "settled"),
        ];
        let mut peer = Peer::start(script).await;
        let mut poll = PollDelivery::new(of(&peer)).wait(Duration::ZERO);
        assert_eq!(poll.run_once(&Seen::default().echo()).await.unwrap(), 2);
        let requests = peer.rest();
        assert_eq!(requests.len(), 4, "one that has another answer is left alone");
        assert!(
            requests[2].head.contains("/fail ") && String::from_utf8_lossy(&requests[2].body).contains("too_large")
        );
    });
}

#[test]
fn a_page_that_would_come_for_ever_is_an_error() {
    within(async {
        let peer = Peer::start([say("200 OK", &json!({ "items": [{ "envelope": "<a/>" }] }))]).await;
        let mut poll = PollDelivery::new(of(&peer)).wait(Duration::ZERO);
        let error = poll.run_once(&Seen::default().echo()).await.unwrap_err();
        assert!(error.to_string().contains("have a cursor"), "{error}");
    });
}
