//! Changes of a running organism, as clients and agents of its gateway see them.

use std::fs;

use serde_json::{Value, json};

use crate::kit::{Answer, Site, Who, organism, text, wait};

/// The schema that the answers of the worker have behind the change, and its question.
const CHANGED: &str = r#"<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" targetNamespace="urn:t" elementFormDefault="qualified">
  <xs:element name="ask">
    <xs:complexType><xs:sequence><xs:element name="number" type="xs:int"/></xs:sequence></xs:complexType>
  </xs:element>
  <xs:element name="order" type="xs:int"/>
  <xs:element name="answer">
    <xs:complexType><xs:sequence><xs:element name="words" type="xs:string"/></xs:sequence></xs:complexType>
  </xs:element>
</xs:schema>
"#;

fn reload(site: &Site) {
    let ran = site.systole(&["reload"]).output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
}

fn change_schema(site: &Site) {
    fs::write(site.folder.join("t.xsd"), CHANGED).unwrap();
    reload(site);
}

fn post(who: &Who, key: &str, json: &Value) -> Answer {
    let headers = [("content-type", "application/json"), ("idempotency-key", key)];
    who.ask("POST", "/v1/messages", &headers, &json.to_string())
}

/// Leases a message with its payload as JSON.
fn leased(worker: &Who) -> Value {
    wait("a message for the worker", || worker.lease("worker", r#"{"wait":1,"payloads":"json"}"#).pop())
}

fn answer(worker: &Who, item: &Value, json: &Value) {
    let path = format!("/v1/messages/{}/reply", text(&item["id"]));
    worker.ask("POST", &path, &[("content-type", "application/json")], &json.to_string()).is(202);
}

#[test]
fn the_json_of_a_conversation_is_that_of_the_organism_that_it_began_with() {
    let site = Site::new();
    let (ada, worker) = (site.party("ada"), site.party("worker"));
    let first = post(&ada, "first", &json!({ "ask": 7 })).is(202).json();
    change_schema(&site);
    // What was accepted is known by its key, though its body would be refused now.
    assert_eq!(post(&ada, "first", &json!({ "ask": 7 })).is(202).json()["id"], first["id"]);
    post(&ada, "first", &json!({ "ask": 8 })).problem(422, "payload");
    post(&ada, "other", &json!({ "ask": 7 })).problem(422, "payload");
    let second = post(&ada, "second", &json!({ "ask": { "number": 8 } })).is(202).json();
    let mut items = [leased(&worker), leased(&worker)];
    items.sort_by_key(|item| item["json"]["ask"].is_object());
    assert_eq!(items.each_ref().map(|item| &item["json"]), [&json!({ "ask": 7 }), &json!({ "ask": { "number": 8 } })]);
    let answers = [json!({ "answer": "seven" }), json!({ "answer": { "words": "eight" } })];
    items.iter().zip(&answers).for_each(|(item, words)| answer(&worker, item, words));
    for (sent, answer) in [first, second].iter().zip(&answers) {
        let path = format!("/v1/messages/{}?payloads=json", text(&sent["id"]));
        let known = ada.until(&path, |known| known["reply"].is_object());
        assert_eq!(known["reply"]["json"], *answer);
    }
}

#[test]
fn a_key_is_known_although_a_start_has_changed_the_schema() {
    let mut site = Site::new();
    let ada = site.party("ada");
    let first = post(&ada, "first", &json!({ "ask": 7 })).is(202).json();
    site.kill();
    fs::write(site.folder.join("t.xsd"), CHANGED).unwrap();
    site.start();
    let ada = site.who(&ada.token);
    assert_eq!(post(&ada, "first", &json!({ "ask": 7 })).is(202).json()["id"], first["id"]);
}

#[test]
fn a_changed_contract_is_told_and_one_that_is_held_to_is_refused() {
    let site = Site::new();
    let ada = site.party("ada");
    let tag = || ada.get("/v1/contract").is(200).header("etag").unwrap().to_owned();
    let held = tag();
    let send = |number: u32| {
        let payload = json!({ "ask": { "number": number } }).to_string();
        ada.ask("POST", "/v1/messages", &[("if-match", &held), ("content-type", "application/json")], &payload)
    };
    // The contract is the right one, and the payload is none of it.
    send(1).problem(422, "payload");
    change_schema(&site);
    assert_ne!(tag(), held);
    send(1).problem(412, "contract");
    for tag in ["", "abc", "W/", "\"", "\"a\", b"] {
        ada.ask("POST", "/v1/messages", &[("if-match", tag)], "").problem(400, "bad_request");
    }
    let site = Site::new();
    let bob = site.party("bob");
    bob.get("/v1/contract").is(200);
    let without_bob = organism("requests: 1000000", "7d").replace("  - { name: bob, calls: [\"{urn:t}ask\"] }\n", "");
    fs::write(site.folder.join("organism.yaml"), without_bob).unwrap();
    reload(&site);
    bob.get("/v1/contract").problem(401, "unauthorized");
    bob.send(1).problem(401, "unauthorized");
    fs::write(site.folder.join("organism.yaml"), organism("requests: 1000000", "7d")).unwrap();
    reload(&site);
    bob.send(1).is(202);
}

#[test]
fn a_conversation_past_its_time_is_told_why_and_operators_see_who_ended_it() {
    let site = Site::of(&format!("{}reload: {{ keep: 1s }}\n", organism("requests: 1000000", "7d")));
    let ada = site.party("ada");
    let sent = ada.send(1).is(202).json();
    reload(&site);
    let path = format!("/v1/messages/{}", text(&sent["id"]));
    let known = ada.until(&path, |known| known["reply"].is_object());
    assert!(text(&known["reply"]["envelope"]).contains("it began with an earlier version of the organism"), "{known}");
    let boss = site.who(&site.token(&["boss", "--kind", "admin"]));
    let acts = boss.get("/v1/admin/acts").is(200).json();
    let cancelled =
        acts["items"].as_array().unwrap().iter().find(|act| act["act"] == "cancel").expect("an entry").clone();
    assert_eq!((&cancelled["by"], &cancelled["of"]), (&json!("system"), &sent["thread"]));
}
