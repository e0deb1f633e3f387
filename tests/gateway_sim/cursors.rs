//! Cursors: places in a mailbox.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::kit::{Site, ask, text};

const ALL: &str = "/v1/mailboxes/worker/messages";

#[test]
fn a_mailbox_is_read_page_by_page_and_filtered() {
    let site = Site::new();
    let (ada, bob, worker) = (site.party("ada"), site.party("bob"), site.party("worker"));
    let sent = ada.send(1).is(202).json();
    let first = worker.get(&format!("{ALL}?wait=60")).is(200).json();
    bob.send(2).is(202);
    let next = text(&first["next"]);
    // To read on changes nothing, as often as anybody does: `ack` does.
    for _ in 0..2 {
        worker.get(&format!("{ALL}?wait=60&after={next}")).is(200);
        assert_eq!(text(&worker.get(&format!("{ALL}?limit=1")).json()["items"][0]["state"]), "waiting");
    }
    let second = worker.get(&format!("{ALL}?wait=60&ack={next}")).is(200).json();
    assert_eq!((text(&second["items"][0]["from"]), &second["has_more"]), ("bob", &false.into()));
    let page = worker.get(&format!("{ALL}?limit=1")).json();
    assert_eq!((&page["items"][0]["id"], &page["has_more"]), (&first["items"][0]["id"], &true.into()));
    // The listener acknowledged the message without an answer: it is done, and no reader holds it.
    assert_eq!(text(&page["items"][0]["state"]), "acked");
    let known = ada.until(&format!("/v1/messages/{}", text(&sent["id"])), |known| known["reply"].is_object());
    assert!(text(&known["reply"]["envelope"]).contains("silent"), "{known}");
    let only = |query: &str| worker.get(&format!("{ALL}?{query}")).is(200).json()["items"].as_array().unwrap().len();
    assert_eq!((only("peer=bob"), only("peer=eve"), only("type=%7Burn:t%7Dask"), only("type=ask")), (1, 0, 2, 0));
    assert_eq!((only("before=2001-01-01T00:00:00Z"), only("before=2200-01-01T00:00:00Z")), (0, 2));
    // No message comes behind the last one: the time runs out.
    let last = text(&second["next"]);
    let nothing = worker.get(&format!("{ALL}?wait=1&after={last}")).is(200).json();
    assert_eq!((nothing["items"].as_array().unwrap().len(), text(&nothing["next"])), (0, last));
}

#[test]
fn a_cursor_of_another_mailbox_answers_exactly_like_a_lost_one() {
    // Ended messages are forgotten at once.
    let site = Site::with("requests: 1000000", "1ms");
    let (ada, worker, other) = (site.party("ada"), site.party("worker"), site.party("other"));
    let foreign = other.get("/v1/mailboxes/other/messages").json();
    (1..=3).for_each(|number| drop(ada.send(number).is(202)));
    worker.until(ALL, |page| page["items"].as_array().unwrap().len() == 3);
    let first = worker.get(&format!("{ALL}?limit=1")).json();
    let after = format!("{ALL}?after={}", text(&first["next"]));
    worker.get(&after).is(200);
    let leased = worker.lease("worker", r#"{"max":3}"#);
    // The oldest one goes on waiting.
    leased[1..].iter().for_each(|item| drop(worker.handle("worker", item, "ack").is(204)));
    let lost = worker.wait("all but the oldest one is forgotten", || {
        // Each write forgets a few messages; the last forgotten one moves the place to go on from.
        worker.handle("worker", &leased[0], "extend").is(204);
        let page = worker.get(ALL).json();
        let answer = worker.get(&after);
        let is_over = page["items"].as_array().unwrap().len() == 1 && answer.status == 410;
        if is_over { Ok(answer.problem(410, "cursor_lost")) } else { Err(page) }
    });
    for cursor in [text(&foreign["next"]), "00", "", "zz%F0%9F%92%A9", &text(&first["next"])[1..]] {
        let told = worker.get(&format!("{ALL}?after={cursor}")).problem(410, "cursor_lost");
        assert_eq!(told, lost);
    }
    let rest = worker.get(&format!("{ALL}?after={}", text(&lost["oldest"]))).is(200).json();
    assert_eq!(rest["items"][0]["id"], leased[0]["id"], "what still waits is not skipped");
}

#[test]
fn a_thousand_senders_at_once_are_paged_by_seven_each_once_in_stable_order() {
    let site = Site::with("requests: 1000000, connections_per_principal: 1024", "7d");
    let (ada, worker) = (site.party("ada"), site.party("worker"));
    let senders = (0..1000).map(|number| ada.asking("POST", "/v1/messages", &[], &ask(number)));
    for sent in site.together(senders) {
        sent.is(202);
    }
    let all = || {
        let (mut seen, mut after) = (Vec::<Value>::new(), String::new());
        while seen.len() < 1000 {
            let page = worker.get(&format!("{ALL}?limit=7&wait=60{after}")).is(200).json();
            let items = page["items"].as_array().unwrap();
            assert!((1..=7).contains(&items.len()));
            seen.extend(items.iter().map(|item| item["id"].clone()));
            after = format!("&after={}", text(&page["next"]));
        }
        seen
    };
    let seen = all();
    assert_eq!(seen.iter().map(text).collect::<BTreeSet<_>>().len(), 1000);
    assert_eq!(seen, all());
}

#[test]
fn only_the_listener_acknowledges_by_a_cursor_and_only_what_it_has_seen() {
    let site = Site::new();
    let (ada, worker, boss) = (site.party("ada"), site.party("worker"), site.admin());
    ada.send(1).is(202);
    let page = worker.get(&format!("{ALL}?wait=60")).is(200).json();
    let filtered = worker.get(&format!("{ALL}?peer=ada")).is(200).json();
    let watched = boss.get(ALL).is(200).json();
    let streamed = worker.stream("/v1/mailboxes/worker/stream", None).next().0;
    let (seen, item) = (text(&page["next"]), text(&page["items"][0]["cursor"]));
    for place in [text(&filtered["next"]), text(&watched["next"]), &streamed] {
        worker.get(&format!("{ALL}?ack={place}")).problem(400, "bad_request");
        let behind = worker.get(&format!("{ALL}?after={place}")).is(200).json();
        worker.get(&format!("{ALL}?ack={}", text(&behind["next"]))).problem(400, "bad_request");
    }
    boss.get(&format!("{ALL}?ack={seen}")).problem(400, "bad_request");
    worker.get(&format!("{ALL}?ack={seen}&peer=ada")).problem(400, "bad_request");
    worker.get(&format!("{ALL}?ack={seen}&after={seen}")).problem(400, "bad_request");
    worker.get(&format!("{ALL}?ack=00")).problem(410, "cursor_lost");
    assert_eq!(text(&worker.get(ALL).json()["items"][0]["state"]), "waiting");
    // As a stream does not acknowledge, nor does the way to a place by its cursor.
    worker.get(&format!("{ALL}?after={streamed}")).is(200);
    worker.get(&format!("{ALL}?ack={item}")).is(200);
    assert_eq!(text(&worker.get(ALL).json()["items"][0]["state"]), "acked");
}
