//! What becomes of a message whose conversation ends in an unusual way: without an answer, without its client, in a fork.

use std::fs;
use std::time::Duration;

use rusqlite::Connection;
use serde_json::Value;
use systole::journal::{JournalOptions, Retry, SqliteJournal};
use systole::vocab::{MessageId, Name, Time};
use uuid::Uuid;

use crate::kit::{Site, Who, ask, organism, reply, text};

fn place(sent: &Value) -> String {
    format!("/v1/messages/{}", text(&sent["id"]))
}

fn write(site: &Site, organism: &str) {
    fs::write(site.folder.join("organism.yaml"), organism).unwrap();
}

#[test]
fn a_wait_ends_with_a_conversation_that_ends_without_an_answer() {
    let silent = organism("requests: 1000000", "7d").replace("mode: poll }", "mode: poll }\n    silence: idle");
    let site = Site::of(&silent);
    let (ada, worker) = (site.party("ada"), site.party("worker"));
    let times = || {
        let at = text(&ada.get(&place(&ada.send(9).is(202).json())).json()["at"]).to_owned();
        at.parse::<Time>().unwrap()
    };
    let began = times();
    for path in ["/v1/messages?wait=60", "/v1/sessions/s/call?wait=60"] {
        let waiting = ada.begin("POST", path, &ask(1));
        let leased = worker.wait("the message", || {
            let leased = worker.lease("worker", r#"{"max":9}"#);
            let of_it = leased.into_iter().find(|item| text(&item["envelope"]).contains(">1</ask>"));
            of_it.ok_or(Value::Null)
        });
        worker.handle("worker", &leased, "ack").is(204);
        let answer = waiting.answer().is(202).json();
        let sent = if answer["id"].is_string() { &answer } else { &answer["metadata"] };
        assert_eq!(text(&sent["state"]), "silent", "{answer}");
        assert_eq!(text(&ada.get(&place(sent)).is(200).json()["state"]), "silent");
    }
    // A repeated key looks into the journal.
    let keyed = || ada.ask("POST", "/v1/messages?wait=60", &[("Idempotency-Key", "k")], &ask(2));
    assert_eq!(text(&keyed().is(202).json()["state"]), "queued", "nobody has acknowledged it");
    let leased = worker.lease("worker", r#"{"max":9}"#);
    let of_it = leased.iter().find(|item| text(&item["envelope"]).contains(">2</ask>")).unwrap();
    worker.handle("worker", of_it, "ack").is(204);
    assert_eq!(text(&keyed().is(202).json()["state"]), "silent");
    // One minute was the wait for the one that nobody acknowledged.
    assert!(times().since(began) < Duration::from_secs(75), "each wait ended at once");
}

#[test]
fn a_client_that_was_left_out_for_a_start_finds_faults_for_what_was_open() {
    let whole = organism("requests: 1000000", "7d");
    let mut site = Site::of(&whole);
    let (ada, worker) = (site.party("ada"), site.party("worker"));
    let send =
        |who: &Who, key: &str, number| who.ask("POST", "/v1/messages", &[("Idempotency-Key", key)], &ask(number));
    let (open, done) = (send(&ada, "open", 1).is(202).json(), send(&ada, "done", 2).is(202).json());
    let leased = worker.lease("worker", r#"{"max":2}"#);
    let second = leased.iter().find(|item| text(&item["envelope"]).contains(">2</ask>")).unwrap();
    worker.post(&format!("/v1/messages/{}/reply", text(&second["id"])), &reply("two")).is(202);
    ada.until(&place(&done), |known| known["reply"].is_object());
    site.stop();
    write(&site, &whole.replace("  - { name: ada, calls: [\"{urn:t}ask\", \"{urn:t}order\"] }\n", ""));
    site.start();
    ada.get(&place(&open)).is(401);
    site.stop();
    write(&site, &whole);
    site.start();
    let known = ada.get(&place(&open)).is(200).json();
    assert_eq!((text(&known["state"]), text(&known["reply"]["fault"])), ("faulted", "cancelled"), "{known}");
    assert!(text(&known["reply"]["envelope"]).contains(&format!(">{}</in-reply-to>", text(&open["id"]))), "{known}");
    assert_eq!(known["replies"].as_array().unwrap().len(), 1);
    assert_eq!(text(&ada.get(&place(&done)).is(200).json()["state"]), "answered");
    for (key, number, sent) in [("open", 1, &open), ("done", 2, &done)] {
        assert_eq!(send(&ada, key, number).is(202).json()["id"], sent["id"]);
    }
}

#[test]
fn the_answer_of_a_retry_is_read_under_the_id_of_its_conversation() {
    let mut site = Site::new();
    let (ada, worker) = (site.party("ada"), site.party("worker"));
    let sent = ada.send(1).is(202).json();
    let answer = |words: &str| {
        let leased = worker.wait("the message", || worker.lease("worker", "{}").pop().ok_or(Value::Null));
        worker.post(&format!("/v1/messages/{}/reply", text(&leased["id"])), &reply(words)).is(202);
    };
    answer("first");
    ada.until(&place(&sent), |known| known["reply"].is_object());
    site.stop();
    let file = site.folder.join("systole.journal");
    let id = |sql: &str| Connection::open(&file).unwrap().query_row(sql, [], |row| row.get::<_, [u8; 16]>(0)).unwrap();
    let at = MessageId::from_uuid(Uuid::from_bytes(id("SELECT id FROM message ORDER BY number LIMIT 1")));
    let retry = Retry { conversation: text(&sent["thread"]).parse().unwrap(), at: Some(at), edit: None, owner: None };
    let retried = SqliteJournal::open(&file, &JournalOptions::new([7; 32]))
        .unwrap()
        .retry(&retry, &Name::system(), Time::default())
        .unwrap();
    site.start();
    let path = format!("/v1/messages/{retried}");
    assert_eq!(text(&ada.get(&path).is(200).json()["state"]), "delivered");
    site.party("bob").get(&path).problem(404, "not_found");
    answer("second");
    let known = ada.until(&path, |known| known["reply"].is_object());
    assert!(text(&known["reply"]["envelope"]).contains("second"), "{known}");
    assert!(text(&known["reply"]["envelope"]).contains(&format!(">{retried}</in-reply-to>")), "{known}");
    let first = ada.get(&place(&sent)).is(200).json();
    assert!(text(&first["reply"]["envelope"]).contains("first") && first["replies"].as_array().unwrap().len() == 1);
}

#[test]
fn leased_messages_are_answered_in_any_order_after_a_start_with_fewer_slots() {
    let many = organism("requests: 1000000", "7d");
    let mut site = Site::of(&many);
    let (ada, worker) = (site.party("ada"), site.party("worker"));
    let sent: Vec<_> = (1..=3).map(|number| ada.send(number).is(202).json()).collect();
    let leased = worker.lease("worker", r#"{"max":3,"visibility":3600}"#);
    assert_eq!(leased.len(), 3);
    site.stop();
    write(&site, &many.replace("mode: poll }", "mode: poll }\n    concurrency: 1"));
    site.start();
    let late = ada.send(4).is(202).json();
    for item in leased.iter().rev() {
        worker.post(&format!("/v1/messages/{}/reply", text(&item["id"])), &reply("done")).is(202);
    }
    for sent in &sent {
        assert_eq!(text(&ada.until(&place(sent), |known| known["reply"].is_object())["state"]), "answered");
    }
    // There is one slot for those that came later.
    ada.send(5).is(202);
    let next = worker.wait("the next message", || worker.lease("worker", r#"{"max":9}"#).pop().ok_or(Value::Null));
    assert!(text(&next["envelope"]).contains(">4</ask>") && worker.lease("worker", "{}").is_empty());
    worker.post(&format!("/v1/messages/{}/reply", text(&next["id"])), &reply("done")).is(202);
    assert_eq!(text(&ada.until(&place(&late), |known| known["reply"].is_object())["state"]), "answered");
}
