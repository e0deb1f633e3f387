//! Readers that vanish, and readers that never answer.

use std::time::Duration;

use serde_json::json;
use systole::core::{Contract, Silence};

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
    // No reader asks for it any more: the time alone ends it.
    let known = site.sent(&sent);
    assert_eq!((text(&known["state"]), text(&known["reply"]["fault"])), ("faulted".into(), "failed".into()), "{known}");
    assert!(site.lease("{}").is_empty());
    assert_eq!((site.metric("systole_gateway_waiting"), site.metric("systole_gateway_dead_letters")), (0, 1));
}

/// Reads on and acknowledges, behind a cursor at first, until so many messages were seen; the numbers of all, and the cursor behind them.
fn read_on(site: &Site, mut after: String, count: usize) -> (Vec<usize>, String) {
    let mut read = Vec::new();
    while read.len() < count {
        let page = site.get("worker", &format!("{WORKER}/messages?limit=7&wait=60{after}")).is(200);
        let items = page["items"].as_array().unwrap();
        assert!(!items.is_empty(), "nothing comes behind {read:?}");
        read.extend(items.iter().map(|item| number(&text(&item["envelope"]))));
        after = format!("&ack={}", text(&page["next"]));
    }
    (read, after)
}

fn number(envelope: &str) -> usize {
    let (_, rest) = envelope.split_once("<ask xmlns=\"urn:t\">").unwrap();
    rest.split('<').next().unwrap().parse().unwrap()
}

#[test]
fn a_reader_that_answers_nothing_gets_all_messages_however_few_slots_there_are() {
    const COUNT: usize = 300;
    const SLOTS: usize = 25;
    let sites = [Silence::Error, Silence::Idle].map(|silence| {
        let set: fn(&mut Contract) = match silence {
            Silence::Error => |contract| contract.concurrency = SLOTS as u32,
            _ => |contract| (contract.concurrency, contract.silence) = (SLOTS as u32, Silence::Idle),
        };
        (silence, Site::with(set))
    });
    for (silence, site) in sites {
        let sent: Vec<_> = (0..COUNT).map(|number| site.ask(number)).collect();
        let figures = |site: &Site| (site.metric("systole_gateway_waiting"), site.metric("systole_messages_waiting"));
        assert_eq!(figures(&site), (SLOTS as u64, (COUNT - SLOTS) as u64));
        assert_eq!(site.get("worker", &format!("{WORKER}/messages?limit=1")).is(200)["waiting"], SLOTS);
        let (mut read, after) = read_on(&site, String::new(), COUNT / 2);
        // The rest is read from a process that was killed there.
        let site = site.killed();
        let (rest, after) = read_on(&site, after, COUNT - read.len());
        read.extend(rest);
        assert_eq!(read, (0..COUNT).collect::<Vec<_>>(), "{silence:?}");
        let page = site.get("worker", &format!("{WORKER}/messages?wait=1{after}")).is(200);
        site.kit().settle();
        assert_eq!((figures(&site), &page["waiting"]), ((0, 0), &0.into()));
        for id in sent {
            let known = site.sent(&id);
            match silence {
                Silence::Error => assert_eq!(text(&known["reply"]["fault"]), "silent", "{known}"),
                _ => assert_eq!((text(&known["state"]), &known["replies"]), ("silent".to_owned(), &json!([]))),
            }
        }
        assert_eq!(site.metric("systole_gateway_waiters"), 0);
    }
}

#[test]
fn a_message_that_comes_back_behind_a_waiting_reader_keeps_its_slot_from_nobody() {
    let site = Site::with(|contract| contract.concurrency = 1);
    let sent = [site.ask(0), site.ask(1)];
    let (_, after) = read_on(&site, String::new(), 1);
    // Another reader takes it, and vanishes.
    assert_eq!(site.lease(r#"{"visibility":5}"#).len(), 1);
    let began = site.kit().now();
    assert_eq!(read_on(&site, after, 1).0, [1]);
    let took = site.kit().now().since(began);
    assert!((5..60).contains(&took.as_secs()), "it came {took:?} later");
    assert_eq!(text(&site.sent(&sent[0])["reply"]["fault"]), "silent");
}

#[test]
fn what_a_reader_holds_is_passed_over_by_nobody() {
    let site = Site::new();
    let (held, left) = (site.ask(1), site.ask(2));
    let page = site.get("worker", &format!("{WORKER}/messages")).is(200);
    let id = text(&page["items"][0]["id"]);
    site.post("worker", &format!("{WORKER}/messages/{id}/hold"), None, "{}").is(200);
    site.get("worker", &format!("{WORKER}/messages?ack={}", text(&page["next"]))).is(200);
    site.kit().settle();
    assert_eq!(text(&site.sent(&left)["state"]), "faulted");
    assert_eq!(text(&site.sent(&held)["state"]), "delivered");
    // Also by readers of a process that is killed.
    let site = site.killed();
    let page = site.get("worker", &format!("{WORKER}/messages")).is(200);
    site.get("worker", &format!("{WORKER}/messages?ack={}", text(&page["next"]))).is(200);
    assert_eq!(text(&site.sent(&held)["state"]), "delivered");
}
