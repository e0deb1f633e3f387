//! A mailbox as a stream.

use std::fs;

use serde_json::json;
use systole::remote::{InboundDelivery, StreamDelivery};

use super::peer::{Act, Peer};
use super::setup::{Seen, asked, cursor, id, item, mailbox, of, say, take, within};
use crate::kit::Site;

#[test]
fn messages_come_as_they_are_sent_and_go_on_behind_the_last_one() {
    let site = Site::new();
    let (ada, worker) = (site.party("ada"), site.party("worker"));
    let (seen, file) = (Seen::default(), cursor(&site));
    let handler = seen.echo();
    let mut stream = StreamDelivery::new(mailbox(&worker, "worker")).cursor_file(&file).unwrap();
    for number in 0..3 {
        ada.send(number).is(202);
        site.run(take(&mut stream, &handler, 1));
    }
    site.run(stream.stop());
    ada.send(3).is(202);
    // Another process goes on at the cursor in the file.
    let mut stream = StreamDelivery::new(mailbox(&worker, "worker")).cursor_file(&file).unwrap();
    site.run(take(&mut stream, &handler, 1));
    assert_eq!(seen.numbers(), [0, 1, 2, 3]);
}

#[test]
fn a_stream_is_made_anew_after_the_pump_was_killed() {
    let mut site = Site::new();
    let (ada, worker) = (site.party("ada"), site.party("worker"));
    let seen = Seen::default();
    let handler = seen.echo();
    let mut stream = StreamDelivery::new(mailbox(&worker, "worker"));
    ada.send(0).is(202);
    site.run(take(&mut stream, &handler, 1));
    site.kill();
    assert!(site.run(stream.run_once(&handler)).is_err(), "it is told");
    assert!(site.run(stream.run_once(&handler)).is_err(), "nobody is there");
    assert!(!stream.interval().is_zero(), "it waits before it asks again");
    site.start();
    ada.send(1).is(202);
    site.run(take(&mut stream, &handler, 1));
    assert!(stream.interval().is_zero());
    assert_eq!(seen.numbers(), [0, 1]);
}

#[test]
fn a_lost_place_is_cleared_and_what_is_left_comes() {
    let site = Site::new();
    let (ada, worker) = (site.party("ada"), site.party("worker"));
    asked(&ada, &worker, 0..2);
    let (seen, file) = (Seen::default(), cursor(&site));
    fs::write(&file, "7").unwrap();
    let mut stream = StreamDelivery::new(mailbox(&worker, "worker")).cursor_file(&file).unwrap();
    assert_eq!(site.run(stream.run_once(&seen.echo())).unwrap(), 0);
    assert!(!file.exists());
    site.run(take(&mut stream, &seen.echo(), 2));
    assert!(file.exists());
}

/// Sends events, all at once.
fn events(text: &str) -> Act {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
    Act::Say(Box::leak(format!("{head}{text}").into_boxed_str()))
}

#[test]
fn what_is_broken_in_a_stream_stops_nobody() {
    within(async {
        let strange = "event: other\ndata: {}\n\nid: c1\ndata: no json\n\nid: c2\ndata: 7\n\n";
        let text = format!(":\n\n{strange}id: c3\r\nevent: message\r\ndata: {}\r\n\r\n", item(3));
        let mut peer = Peer::start([events(&text), say("202 Accepted", &json!({})), events("")]).await;
        let seen = Seen::default();
        let handler = seen.echo();
        let mut stream = StreamDelivery::new(of(&peer));
        let mut handled = 0;
        while handled == 0 {
            handled += stream.run_once(&handler).await.unwrap();
        }
        assert!(stream.run_once(&handler).await.is_err(), "it has ended");
        assert!(stream.run_once(&handler).await.is_err(), "the next one, too");
        assert_eq!(seen.numbers(), [3]);
        let requests = peer.rest();
        assert!(requests[1].head.starts_with(&format!("POST /v1/messages/{}/reply ", id(3))));
        assert_eq!((requests[0].header("last-event-id"), requests[2].header("last-event-id")), (None, Some("c3")));
    });
}

#[test]
fn a_connection_that_says_nothing_is_given_up() {
    within(async {
        let silent = Act::SayAndHang("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n");
        let peer = Peer::start([silent]).await;
        let handler = Seen::default().echo();
        let mut stream = StreamDelivery::new(of(&peer));
        for _ in 0..2 {
            assert_eq!(stream.run_once(&handler).await.unwrap(), 0, "a batch waits 20 s");
        }
        let error = stream.run_once(&handler).await.unwrap_err();
        assert!(error.to_string().contains("nothing came for 45s"), "{error}");
    });
}
