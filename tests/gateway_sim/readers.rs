//! Readers that vanish, and readers that answer nothing.

use std::time::Duration;

use crate::site::{Site, WORKER, text};

#[test]
fn a_message_that_five_readers_took_and_lost_is_a_dead_letter() {
    let site = Site::new();
    let sent = site.ask(1);
    for time in 1..=5 {
        let leased = site.lease(r#"{"visibility":1}"#);
        assert_eq!(leased[0]["deliveries"], time);
        site.kit().advance(Duration::from_secs(2));
    }
    // Nobody asks for it any more: the time alone ends it.
    let known = site.sent(&sent);
    assert_eq!((text(&known["state"]), text(&known["reply"]["fault"])), ("faulted".into(), "failed".into()), "{known}");
    assert!(site.lease("{}").is_empty());
    assert_eq!((site.metric("systole_gateway_waiting"), site.metric("systole_gateway_dead_letters")), (0, 1));
}

#[test]
fn a_reader_that_answers_nothing_fills_no_mailbox() {
    let site = Site::new();
    let count = 300;
    let sent: Vec<_> = (0..count).map(|number| site.ask(number)).collect();
    assert_eq!(site.metric("systole_gateway_waiting"), count as u64);
    let (mut read, mut after) = (0, String::new());
    loop {
        let page = site.get("worker", &format!("{WORKER}/messages?limit=7{after}")).is(200);
        let items = page["items"].as_array().unwrap();
        read += items.len();
        if items.is_empty() {
            break;
        }
        after = format!("&after={}", text(&page["next"]));
    }
    site.kit().settle();
    assert_eq!((read, site.metric("systole_gateway_waiting")), (count, 0));
    for id in sent {
        let known = site.sent(&id);
        assert_eq!(text(&known["reply"]["fault"]), "silent", "{known}");
    }
}

#[test]
fn what_a_reader_holds_is_passed_over_by_nobody() {
    let site = Site::new();
    let (held, left) = (site.ask(1), site.ask(2));
    let page = site.get("worker", &format!("{WORKER}/messages")).is(200);
    let id = text(&page["items"][0]["id"]);
    site.post("worker", &format!("{WORKER}/messages/{id}/hold"), None, "{}").is(200);
    site.get("worker", &format!("{WORKER}/messages?after={}", text(&page["next"]))).is(200);
    site.kit().settle();
    assert_eq!(text(&site.sent(&left)["state"]), "faulted");
    assert_eq!(text(&site.sent(&held)["state"]), "delivered");
    // Also by readers of a process that is killed.
    let site = site.killed();
    let page = site.get("worker", &format!("{WORKER}/messages")).is(200);
    site.get("worker", &format!("{WORKER}/messages?after={}", text(&page["next"]))).is(200);
    assert_eq!(text(&site.sent(&held)["state"]), "delivered");
}
