//! The calls of the gateway, row by row of their table.

use std::time::Duration;

use serde_json::{Value, json};

use crate::kit::{Site, Stream, Who, ask, envelope, reply, text};

fn place(sent: &Value) -> String {
    format!("/v1/messages/{}", text(&sent["id"]))
}

fn answered(who: &Who, sent: &Value) -> Value {
    who.until(&place(sent), |known| known["reply"].is_object())
}

#[test]
fn an_ended_message_is_forgotten_past_its_retention() {
    let site = Site::with("requests: 1000000", "1h");
    let (ada, worker) = (site.party("ada"), site.party("worker"));
    let sent = ada.send(1).is(202).json();
    let leased = worker.lease("worker", "{}");
    worker.post(&format!("/v1/messages/{}/reply", text(&leased[0]["id"])), &reply("one")).is(202);
    answered(&ada, &sent);
    site.advance(Duration::from_secs(45 * 60));
    ada.send(2).is(202);
    ada.get(&place(&sent)).is(200);
    site.advance(Duration::from_secs(30 * 60));
    ada.send(3).is(202);
    ada.get(&place(&sent)).problem(404, "not_found");
}

#[test]
fn what_breaks_a_rule_is_told_with_the_rule_its_place_and_an_example() {
    let site = Site::new();
    let (ada, bob) = (site.party("ada"), site.party("bob"));
    let problem = ada.post("/v1/messages", &envelope("<ask xmlns=\"urn:t\">many</ask>")).problem(422, "payload");
    assert!(text(&problem["rule"]).contains("ask"), "{problem}");
    assert_eq!(problem["place"], json!({ "line": 1, "column": 104 }), "{problem}");
    assert!(text(&problem["example"]).starts_with("<ask xmlns=\"urn:t\">"), "{problem}");
    ada.post("/v1/messages", "").problem(422, "malformed");
    let problem = ada.post("/v1/messages", "<aks xmlns=\"urn:t\">1</aks>").problem(422, "envelope");
    assert!(text(&problem["rule"]).ends_with("did you mean {urn:t}ask?"), "{problem}");
    assert!(text(&problem["example"]).starts_with("<message "), "{problem}");

    // A payload that exists but not for bob, and one that doesn't exist.
    let order = bob.post("/v1/messages", &envelope("<order xmlns=\"urn:t\">1</order>")).problem(404, "route");
    let nobody = bob.post("/v1/messages", &envelope("<other xmlns=\"urn:t\">1</other>")).problem(404, "route");
    assert_eq!(text(&order["detail"]).replace("order", "other"), text(&nobody["detail"]));
}

#[test]
fn a_payload_alone_and_an_envelope_without_meta_are_messages() {
    let site = Site::new();
    let (ada, worker) = (site.party("ada"), site.party("worker"));
    let ask = "<ask xmlns=\"urn:t\">1</ask>";
    let bare = format!("<message xmlns='https://xml-pipeline.org/ns/envelope/v1'>{ask}</message>");
    for (count, body) in [ask, "<ask>1</ask>", &bare].into_iter().enumerate() {
        ada.post("/v1/messages", body).is(202);
        let page =
            worker.until("/v1/mailboxes/worker/messages", |page| page["items"].as_array().unwrap().len() > count);
        let item = &page["items"][count];
        // The envelope between pumps is whole.
        assert!(text(&item["envelope"]).contains("<meta><from>ada</from><to>worker</to><thread>"), "{item}");
        assert!(text(&item["envelope"]).contains(ask), "{item}");
    }
}

#[test]
fn dirty_envelopes_are_taken_and_from_is_who_the_token_says() {
    let site = Site::new();
    let (ada, worker) = (site.party("ada"), site.party("worker"));
    let forged = ask(5).replace("<from>x</from>", "<from>bob</from>").replace("5</ask>", "5");
    ada.post("/v1/messages", &format!("Sure! ```xml\n{forged}\n```")).is(202);
    let item = &worker.get("/v1/mailboxes/worker/messages?wait=60").json()["items"][0];
    assert_eq!(text(&item["from"]), "ada");
    assert!(text(&item["envelope"]).contains("<ask xmlns=\"urn:t\">5</ask>"), "{item}");
}

#[test]
fn the_same_key_sends_once() {
    let site = Site::new();
    let (ada, worker) = (site.party("ada"), site.party("worker"));
    let keyed = |body: &str| ada.ask("POST", "/v1/messages", &[("Idempotency-Key", "k1")], body);
    let first = keyed(&ask(1)).is(202).json();
    assert_eq!(keyed(&ask(1)).is(202).json()["id"], first["id"]);
    keyed(&ask(2)).problem(409, "key_reused");
    ada.ask("POST", "/v1/messages", &[("Idempotency-Key", "")], &ask(1)).problem(400, "bad_request");
    // Another principal has keys of its own.
    let bob = site.party("bob").ask("POST", "/v1/messages", &[("Idempotency-Key", "k1")], &ask(3)).is(202).json();
    assert_ne!(bob["id"], first["id"]);
    let seen = worker.until("/v1/mailboxes/worker/messages", |page| page["items"].as_array().unwrap().len() >= 2);
    assert_eq!(seen["items"].as_array().unwrap().len(), 2);
    let leased = worker.lease("worker", r#"{"max":2.0,"wait":null}"#);
    let one = leased.iter().find(|item| text(&item["from"]) == "ada").unwrap();
    worker.post(&format!("/v1/messages/{}/reply", text(&one["id"])), &reply("one")).is(202);
    answered(&ada, &first);
    // A repeated submission has the same answer as the first; the reply is for requests that wait.
    assert_eq!(keyed(&ask(1)).is(202).json(), first);
    let waits = ada.ask("POST", "/v1/messages?wait=60", &[("Idempotency-Key", "k1")], &ask(1));
    assert!(waits.is(200).body.contains("one"));
}

#[test]
fn a_reply_is_judged_once_and_given_once() {
    let site = Site::new();
    let (ada, worker) = (site.party("ada"), site.party("worker"));
    let sent = ada.send(1).is(202).json();
    let leased = worker.lease("worker", r#"{"wait":60}"#);
    let place = format!("/v1/messages/{}", text(&leased[0]["id"]));
    worker.post(&format!("{place}/reply"), " \n").problem(422, "blank");
    worker.post(&format!("{place}/reply"), &reply("a")).is(202);
    worker.post(&format!("{place}/reply"), &reply("a")).is(202);
    worker.post(&format!("{place}/reply"), &reply("b")).problem(409, "settled");
    worker.post(&format!("{place}/fail"), "{}").problem(409, "settled");
    assert_eq!(answered(&ada, &sent)["replies"].as_array().unwrap().len(), 1);
    worker.post("/v1/messages/00000000-0000-4000-8000-000000000000/reply", "x").problem(404, "not_found");
}

#[test]
fn a_reply_that_breaks_the_contract_is_refused_to_its_author() {
    let site = Site::new();
    let (ada, worker) = (site.party("ada"), site.party("worker"));
    let sent = ada.send(2).is(202).json();
    let leased = worker.lease("worker", r#"{"wait":60}"#);
    let id = text(&leased[0]["id"]);
    let place = format!("/v1/messages/{id}");
    let refuse = |body: &str, code: &str| worker.post(&format!("{place}/reply"), body).problem(422, code);

    let broken = "<answer xmlns=\"urn:t\" left=\"1\">a</answer>";
    let problem = refuse(broken, "payload");
    assert!(text(&problem["rule"]).contains("expected no attributes"), "{problem}");
    assert_eq!(problem["place"], json!({ "line": 1, "column": 23 }), "{problem}");
    assert!(text(&problem["example"]).contains("<answer"), "{problem}");
    // A long document is judged on another thread, with the same verdict.
    refuse(&format!("{broken}{}", " ".repeat(20_000)), "payload");
    refuse("<bomb xmlns=\"urn:x\"/>", "route");
    // A request that the listener may not make, and an unknown one.
    refuse(&ask(1), "route");
    refuse("<nothing xmlns=\"https://xml-pipeline.org/ns/meta/v1\"/>", "route");
    refuse("<message xmlns=\"https://xml-pipeline.org/ns/envelope/v1\"/>", "envelope");
    refuse("hello!", "malformed");

    // The envelope of an answer to another message.
    let other = ada.send(3).is(202).json();
    let next = worker.lease("worker", r#"{"wait":60}"#);
    let to = |id: &str| {
        envelope(&reply("two"))
            .replace("</from>", &format!("</from><in-reply-to xmlns=\"urn:systole:meta:v1\">{id}</in-reply-to>"))
    };
    let problem = refuse(&to(text(&next[0]["id"])), "envelope");
    assert!(text(&problem["rule"]).contains(id), "{problem}");

    // The envelope of an answer in another thread.
    let of_thread = |id: &str| envelope(&reply("two")).replace("</from>", &format!("</from><thread>{id}</thread>"));
    let problem = refuse(&of_thread(text(&next[0]["thread"])), "envelope");
    assert!(text(&problem["rule"]).contains(&format!("write {}", text(&leased[0]["thread"]))), "{problem}");
    refuse(&of_thread("x"), "envelope");

    // Nothing has ended.
    let known = worker.get(&place).is(200).json();
    assert_eq!((text(&known["state"]), &known["attempts"]), ("waiting", &1.into()), "{known}");
    let own = to(id).replace("</from>", &format!("</from><thread>{}</thread>", text(&leased[0]["thread"])));
    worker.post(&format!("{place}/reply"), &own).is(202);
    let known = answered(&ada, &sent);
    assert!(text(&known["reply"]["envelope"]).contains(">two</answer>"), "{known}");
    // An invalid payload beside a valid reply costs nothing.
    worker
        .post(&format!("/v1/messages/{}/reply", text(&next[0]["id"])), &format!("{broken}{}", reply("three")))
        .is(202);
    let known = answered(&ada, &other);
    assert!(text(&known["reply"]["envelope"]).contains(">three</answer>"), "{known}");
}

#[test]
fn a_failure_answers_the_caller_and_is_a_dead_letter() {
    let site = Site::new();
    let (ada, worker) = (site.party("ada"), site.party("worker"));
    let sent = ada.send(1).is(202).json();
    let leased = worker.lease("worker", r#"{"wait":60}"#);
    let id = text(&leased[0]["id"]);
    worker.post(&format!("/v1/messages/{id}/fail"), r#"{"message":"no more coffee"}"#).is(202);
    let known = answered(&ada, &sent);
    assert_eq!((text(&known["state"]), text(&known["reply"]["fault"])), ("faulted", "failed"));
    assert!(text(&known["reply"]["envelope"]).contains("no more coffee"), "{known}");

    let dead = worker.get("/v1/mailboxes/worker/dead").is(200).json();
    assert_eq!((&dead["items"][0]["id"], text(&dead["items"][0]["last_error"])), (&leased[0]["id"], "no more coffee"));
    let listed = worker.get("/v1/mailboxes/worker/messages").is(200).json();
    let behind = format!("/v1/mailboxes/worker/messages?after={}", text(&listed["next"]));
    assert_eq!(worker.get(&behind).json()["items"], json!([]));
    let redriven = worker.post("/v1/mailboxes/worker/dead/redrive", &json!({ "id": id }).to_string()).is(200);
    assert_eq!(redriven.json()["redriven"], 1);
    assert_eq!(worker.get(&behind).json()["items"][0]["id"], leased[0]["id"], "it comes to who reads on, too");
    let again = worker.lease("worker", "");
    assert_eq!((&again[0]["id"], &again[0]["deliveries"]), (&leased[0]["id"], &1.into()));
    worker.post(&format!("/v1/messages/{id}/fail"), "").is(202);
    assert_eq!(
        worker.ask("DELETE", &format!("/v1/mailboxes/worker/dead?id={id}"), &[], "").is(200).json()["deleted"],
        1
    );
    worker.ask("DELETE", &format!("/v1/mailboxes/worker/dead?id={id}"), &[], "").problem(404, "not_found");
    assert_eq!(worker.get("/v1/mailboxes/worker/dead").json()["items"], json!([]));
    assert_eq!(ada.get(&place(&sent)).json()["replies"].as_array().unwrap().len(), 1, "the caller has one answer");
}

#[test]
fn what_is_given_back_five_times_is_dead_and_its_caller_is_told() {
    let site = Site::new();
    let (ada, worker) = (site.party("ada"), site.party("worker"));
    let sent = ada.send(1).is(202).json();
    for delivery in 1..=5 {
        let leased = worker.lease("worker", r#"{"wait":60}"#);
        assert_eq!(leased[0]["deliveries"], delivery);
        assert!(worker.lease("worker", "").is_empty(), "somebody has it");
        worker.handle("worker", &leased[0], "extend").is(204);
        worker.handle("worker", &leased[0], "nack").is(204);
        worker.handle("worker", &leased[0], "ack").is(409);
    }
    assert!(worker.lease("worker", "").is_empty());
    assert_eq!(text(&answered(&ada, &sent)["reply"]["fault"]), "failed");
    assert_eq!(worker.get("/v1/mailboxes/worker/dead").json()["items"].as_array().unwrap().len(), 1);
}

#[test]
fn leases_that_end_by_themselves_are_counted_too() {
    let site = Site::new();
    let (ada, worker) = (site.party("ada"), site.party("worker"));
    let sent = ada.send(1).is(202).json();
    let mut last = Value::Null;
    for delivery in 1..=5 {
        let leased = worker.lease("worker", r#"{"wait":60,"visibility":1}"#);
        assert_eq!(leased[0]["deliveries"], delivery);
        if last["receipt"].is_string() {
            worker.handle("worker", &last, "ack").problem(409, "stale_receipt");
        }
        last = leased[0].clone();
    }
    assert!(text(&answered(&ada, &sent)["reply"]["envelope"]).contains("took this message 5 times"));
}

#[test]
fn what_ends_without_a_reply_is_silence() {
    let site = Site::new();
    let (ada, worker) = (site.party("ada"), site.party("worker"));
    for verb in ["ack", "term"] {
        let sent = ada.send(1).is(202).json();
        let leased = worker.lease("worker", r#"{"wait":60}"#);
        worker.handle("worker", &leased[0], verb).is(204);
        worker.handle("worker", &leased[0], verb).is(204);
        assert_eq!(text(&answered(&ada, &sent)["reply"]["fault"]), "silent");
    }
}

#[test]
fn a_listener_registers_what_is_declared_for_it() {
    let site = Site::new();
    let (worker, other, ada) = (site.party("worker"), site.party("other"), site.party("ada"));
    let register = |who: &Who, body: Value| who.post("/v1/listeners", &body.to_string());
    for _ in 0..2 {
        let contract = json!({ "accepts": ["{urn:t}ask"], "replies": ["{urn:t}answer"], "calls": [] });
        let made = register(&worker, json!({ "name": "worker", "mode": "poll", "contract": contract })).is(201).json();
        assert_eq!((text(&made["token"]), text(&made["mailbox"])), (worker.token(), "/v1/mailboxes/worker"));
    }
    // A listener of another token, a name that is none's, and one of another kind look alike.
    for who in [&other, &ada] {
        let told = ["worker", "writer", "ada"].map(|name| {
            let answer = register(who, json!({ "name": name, "mode": "poll" }));
            (answer.status, answer.body.replace(name, "NAME"))
        });
        assert_eq!((&told[0], &told[0]), (&told[1], &told[2]));
        assert_eq!(told[0].0, if who.token() == ada.token() { 403 } else { 404 });
    }
    register(&worker, json!({ "name": "worker", "mode": "push", "url": "http://x/" })).problem(400, "bad_request");
    let contract = json!({ "replies": ["{urn:t}ask"] });
    let problem = register(&worker, json!({ "name": "worker", "mode": "poll", "contract": contract }));
    let problem = problem.problem(400, "bad_request");
    assert_eq!((text(&problem["place"]), &problem["declared"]), ("contract.replies", &json!(["{urn:t}answer"])));
}

#[test]
fn a_mailbox_is_a_stream_that_goes_on_where_its_reader_was() {
    let site = Site::new();
    let (ada, worker) = (site.party("ada"), site.party("worker"));
    let path = "/v1/mailboxes/worker/stream";
    let next = |events: &mut Stream| {
        let (id, item) = events.next();
        (id, text(&item["envelope"]).to_owned())
    };
    let mut lines = worker.stream(path, None);
    ada.send(1).is(202);
    let (first, envelope) = next(&mut lines);
    assert!(envelope.contains(">1</ask>"));
    ada.send(2).is(202);
    assert!(next(&mut lines).1.contains(">2</ask>"));
    assert!(next(&mut worker.stream(path, Some(&first))).1.contains(">2</ask>"));
    assert!(next(&mut worker.stream(path, None)).1.contains(">1</ask>"));
    worker.ask("GET", path, &[("Last-Event-ID", "7")], "").problem(410, "cursor_lost");
}

#[test]
fn health_figures_and_the_description_need_no_token() {
    let site = Site::new();
    let nobody = site.who("");
    for path in ["/livez", "/readyz"] {
        assert_eq!(nobody.get(path).is(200).json(), json!({ "status": "ok" }));
    }
    let metrics = nobody.get("/metrics").is(200).body;
    assert!(
        metrics.contains("systole_messages_total{fate=\"injected\"} 0") && !metrics.contains("worker"),
        "{metrics}"
    );
    assert_eq!(nobody.get("/openapi.json").is(200).json()["openapi"], "3.1.0");
}
