//! Messages that a reader holds and answers later.

use serde_json::{Value, json};

use crate::kit::{Site, Who, reply, text};

fn site() -> (Site, Who, Who) {
    let site = Site::new();
    let (ada, worker) = (site.party("ada"), site.party("worker"));
    (site, ada, worker)
}

/// Leases the only message, for a second.
fn lease(worker: &Who) -> Value {
    worker.lease("worker", r#"{"wait":60,"visibility":1}"#).remove(0)
}

/// Checks that no message can be leased, also once a lease of a second would be over.
fn nothing(worker: &Who) {
    assert_eq!(worker.lease("worker", r#"{"wait":2}"#), [] as [Value; 0]);
}

fn say(worker: &Who, item: &Value, verb: &str, body: &str) -> u16 {
    worker.post(&format!("/v1/messages/{}/{verb}", text(&item["id"])), body).status
}

fn answered(ada: &Who, sent: &Value) -> Value {
    ada.until(&format!("/v1/messages/{}", text(&sent["id"])), |known| known["reply"].is_object())
}

#[test]
fn what_is_held_goes_to_nobody_else_until_it_is_answered() {
    let (mut site, ada, worker) = site();
    let sent = ada.send(1).is(202).json();
    let item = lease(&worker);
    worker.handle("worker", &item, "hold").is(204);
    worker.handle("worker", &item, "hold").is(204);
    // A call that was in flight when it was held changes nothing.
    worker.handle("worker", &item, "extend").is(204);
    nothing(&worker);
    for _ in 0..2 {
        site.kill();
        site.start();
        let listed = worker.get("/v1/mailboxes/worker/messages").is(200).json();
        assert_eq!(text(&listed["items"][0]["state"]), "waiting", "{listed}");
    }
    // The pump hands the message over again: it is the same, and held.
    let next = ada.send(2).is(202).json();
    let second = lease(&worker);
    assert_ne!(second["id"], item["id"]);
    worker.handle("worker", &second, "ack").is(204);
    answered(&ada, &next);
    nothing(&worker);
    assert_eq!(say(&worker, &item, "reply", &reply("later")), 202);
    let known = answered(&ada, &sent);
    assert!(text(&known["reply"]["envelope"]).contains("later"), "{known}");
    assert_eq!(known["replies"].as_array().unwrap().len(), 1, "{known}");
}

#[test]
fn who_holds_a_message_fails_it_or_gives_it_back() {
    let (_site, ada, worker) = site();
    let sent = ada.send(1).is(202).json();
    let item = lease(&worker);
    worker.handle("worker", &item, "hold").is(204);
    worker.handle("worker", &item, "nack").is(204);
    worker.handle("worker", &item, "hold").problem(409, "stale_receipt");
    let item = lease(&worker);
    assert_eq!(item["deliveries"], 2);
    worker.handle("worker", &item, "hold").is(204);
    assert_eq!(say(&worker, &item, "fail", r#"{"message":"no more coffee"}"#), 202);
    let known = answered(&ada, &sent);
    assert_eq!(text(&known["reply"]["fault"]), "failed", "{known}");
    assert!(text(&known["reply"]["envelope"]).contains("no more coffee"), "{known}");
    worker.handle("worker", &item, "hold").problem(409, "settled");
}

#[test]
fn an_answer_may_come_before_it_is_said_that_it_comes_later() {
    let (_site, ada, worker) = site();
    ada.send(1).is(202);
    let item = lease(&worker);
    assert_eq!(say(&worker, &item, "reply", &reply("fast")), 202);
    worker.handle("worker", &item, "hold").is(204);
}

#[test]
fn only_who_has_a_message_holds_it() {
    let (site, ada, worker) = site();
    let other = site.party("other");
    ada.send(1).is(202);
    let item = lease(&worker);
    let strange = json!({ "id": item["id"], "receipt": "00000000-0000-4000-8000-000000000000" });
    worker.handle("worker", &strange, "hold").problem(409, "stale_receipt");
    other.handle("worker", &item, "hold").problem(403, "forbidden");
    other.handle("other", &item, "hold").problem(404, "not_found");
    ada.handle("worker", &item, "hold").problem(403, "forbidden");
    let place = format!("/v1/mailboxes/worker/messages/{}/hold", text(&item["id"]));
    // A reader in order may hold a message that is not leased.
    worker.post(&place, "{}").problem(409, "stale_receipt");
    worker.get(&place).problem(405, "method_not_allowed");
    // A message whose lease is over is free.
    let again = lease(&worker);
    assert_eq!((&again["id"], &again["deliveries"]), (&item["id"], &2.into()));
    worker.handle("worker", &item, "hold").problem(409, "stale_receipt");
}
