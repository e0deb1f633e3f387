//! Clients that write and read JSON.

use serde_json::json;
use systole::gateway::PrincipalKind;

use crate::kit::{Answer, Site, Who, ask, reply, text};

const JSON: (&str, &str) = ("Content-Type", "application/json");

/// Answers questions: an even number by its half.
const ORGANISM: &str = r#"organism: { name: halves }
durability: process
gateway: { listen: "127.0.0.1:0", requests: 1000000 }
clients:
  - { name: ada, calls: ["{urn:t}ask"] }
listeners:
  - name: halves
    command: ["true"]
    schemas: [t.xsd]
    accepts: ["{urn:t}ask"]
    replies: ["{urn:t}answer"]
"#;

fn half(_: &str, payload: &str) -> Option<String> {
    let number: u32 = payload.split(['>', '<']).nth(2)?.parse().ok()?;
    number.is_multiple_of(2).then(|| reply(&format!("half is \"{}\"", number / 2)))
}

fn site() -> Site {
    Site::of_programs(ORGANISM, [("halves", half as _)])
}

fn sent(ada: &Who, headers: &[(&str, &str)], body: &str) -> Answer {
    ada.ask("POST", "/v1/messages?wait=60", headers, body)
}

#[test]
fn a_payload_and_its_answer_are_json() {
    let site = site();
    let ada = site.party("ada");
    let answer = sent(&ada, &[JSON], r#"{"ask": 8}"#).is(200);
    assert_eq!(answer.header("content-type"), Some("application/json"));
    let value = answer.json();
    assert_eq!(value["payload"], json!({ "answer": "half is \"4\"" }), "{value}");
    assert_eq!((&value["state"], &value["from"]), (&json!("answered"), &json!("halves")), "{value}");
    assert_eq!(answer.header("location"), Some(&*format!("/v1/messages/{}", text(&value["id"]))));
    let fault = sent(&ada, &[JSON], r#"{"ask": 7}"#).is(200).json();
    assert_eq!(fault["state"], "faulted", "{fault}");
    assert!(fault["payload"].as_object().is_some_and(|payload| payload.len() == 1), "{fault}");
}

#[test]
fn the_answer_has_the_form_that_is_accepted() {
    let site = site();
    let ada = site.party("ada");
    let xml = ask(8);
    for (content, accept, expected) in [
        (None, None, "application/xml"),
        (None, Some("*/*"), "application/xml"),
        (None, Some("application/json"), "application/json"),
        (None, Some("application/xml;q=0.5, application/json"), "application/json"),
        (Some("application/json"), None, "application/json"),
        (Some("application/json; charset=utf-8"), Some("text/html, */*"), "application/json"),
        (Some("application/json"), Some("application/xml"), "application/xml"),
        (Some("application/json"), Some("application/json;q=0, application/xml;q=0.1"), "application/xml"),
        (Some("application/vnd.shop+json"), None, "application/json"),
        (Some("text/xml"), Some("application/problem+json, application/xml;q=0.9"), "application/json"),
    ] {
        let headers: Vec<_> = content
            .map(|content| ("Content-Type", content))
            .into_iter()
            .chain(accept.map(|accept| ("Accept", accept)))
            .collect();
        let body = if content.is_some_and(|content| content.contains("json")) { r#"{"ask": 8}"# } else { &xml };
        let answer = sent(&ada, &headers, body).is(200);
        assert_eq!(answer.header("content-type"), Some(expected), "{headers:?}");
    }
    let problem = sent(&ada, &[("Content-Type", "text/plain")], "8").problem(415, "media_type");
    assert_eq!(problem["takes"], json!(["application/xml", "application/json", "text/xml"]));
}

#[test]
fn mistakes_have_pointers() {
    let site = site();
    let ada = site.party("ada");
    let post = |body: &str| ada.ask("POST", "/v1/messages", &[JSON], body);
    let problem = post(r#"{"ask": 3000000000}"#).problem(422, "payload");
    assert_eq!(problem["pointer"], "/ask", "{problem}");
    assert!(text(&problem["rule"]).contains("found '3000000000', expected whole number"), "{problem}");
    assert!(text(&problem["example"]).starts_with("{\"ask\":"), "{problem}");
    let problem = post(r#"{"ask": true}"#).problem(422, "payload");
    assert_eq!(problem["pointer"], "/ask", "{problem}");
    assert!(text(&problem["rule"]).contains("found true or false, expected a whole number, such as 12"), "{problem}");
    let problem = post("{\"ask\": 1\n\"b\"").problem(422, "malformed");
    assert_eq!(problem["place"], json!({ "line": 2, "column": 1 }), "{problem}");
    let problem = post(r#"{"ask": 1, "ask": 2}"#).problem(422, "malformed");
    assert_eq!(problem["pointer"], "/ask", "{problem}");
    // A payload that ada may not call looks like one that is not there.
    for other in [r#"{"order": 1}"#, r#"{"nothing": 1}"#, "[]", "5"] {
        let problem = post(other).problem(422, "payload");
        // Those of the pump come behind it.
        assert!(text(&problem["rule"]).contains("{\"ask\": …}"), "{problem}");
    }
    post("").problem(422, "malformed");
    let deep = "[".repeat(500_000);
    post(&deep).problem(422, "malformed");
    let large = format!("{{\"ask\": {}1}}", " ".repeat(1 << 20));
    post(&large).problem(413, "too_large");
}

#[test]
fn one_key_sends_the_same_json_once_and_a_look_shows_the_answer_as_json() {
    let site = Site::new();
    let (ada, worker) = (site.party("ada"), site.party("worker"));
    let keyed = [JSON, ("Idempotency-Key", "k1")];
    let first = ada.ask("POST", "/v1/messages", &keyed, r#"{"ask": 1}"#).is(202).json();
    assert_eq!(ada.ask("POST", "/v1/messages", &keyed, r#" { "ask" : 1 } "#).is(202).json()["id"], first["id"]);
    ada.ask("POST", "/v1/messages", &keyed, r#"{"ask": 2}"#).problem(409, "key_reused");
    let leased = worker.lease("worker", "{}");
    assert!(text(&leased[0]["envelope"]).contains("<ask xmlns=\"urn:t\">1</ask>"), "{leased:?}");
    worker.post(&format!("/v1/messages/{}/reply", text(&leased[0]["id"])), &reply("a & b")).is(202);
    let place = format!("/v1/messages/{}", text(&first["id"]));
    let known = ada.until(&format!("{place}?payloads=json"), |known| known["reply"].is_object());
    assert_eq!(known["reply"]["json"], json!({ "answer": "a & b" }), "{known}");
    assert!(ada.get(&place).json()["reply"].get("json").is_none());
    ada.get(&format!("{place}?payloads=yaml")).problem(400, "bad_request");
}

/// A clerk asks a judge, who is a person.
const COURT: &str = r#"organism: { name: court }
durability: process
gateway: { listen: "127.0.0.1:0", requests: 1000000 }
clients:
  - { name: clerk, calls: ["{urn:t}ask"] }
listeners:
  - name: judge
    human: { people: [amy] }
    schemas: [t.xsd]
    accepts: ["{urn:t}ask"]
    replies: ["{urn:t}answer"]
"#;

#[test]
fn a_person_answers_in_json() {
    let site = Site::of(COURT);
    let clerk = site.party("clerk");
    let sent = clerk.ask("POST", "/v1/messages", &[JSON], r#"{"ask": 1}"#).is(202).json();
    let amy = site.who(&site.token_of("amy", PrincipalKind::Person));
    let page = amy.until("/v1/questions", |page| page["items"].as_array().is_some_and(|items| items.len() == 1));
    let act = |act: &str, body: &str| {
        let question = text(&page["items"][0]["question"]);
        amy.ask("POST", &format!("/v1/questions/{question}/{act}"), &[JSON], body)
    };
    let problem = act("answer", r#"{"answer": 5}"#).problem(422, "payload");
    assert_eq!(problem["pointer"], "/answer", "{problem}");
    let problem = act("answer", r#"{"order": 5}"#).problem(422, "payload");
    assert!(text(&problem["rule"]).contains("{\"answer\": …}"), "{problem}");
    let shown = act("preview", r#"{"answer": "not guilty"}"#).is(200).json();
    assert!(text(&shown["preview"]).contains("<answer xmlns=\"urn:t\">not guilty</answer>"), "{shown}");
    act("answer", r#"{"answer": "not guilty"}"#).is(200);
    let place = format!("/v1/messages/{}?payloads=json", text(&sent["id"]));
    let known = clerk.until(&place, |known| known["reply"].is_object());
    assert_eq!(known["reply"]["json"], json!({ "answer": "not guilty" }));
}

#[test]
fn an_agent_elsewhere_leases_and_replies_in_json() {
    let site = Site::new();
    let (ada, worker) = (site.party("ada"), site.party("worker"));
    let answers = |body: &str| {
        let sent = ada.ask("POST", "/v1/messages", &[JSON], r#"{"ask": 4}"#).is(202).json();
        let leased = worker.lease("worker", r#"{"payloads": "json"}"#);
        assert_eq!(leased[0]["json"], json!({ "ask": 4 }), "{leased:?}");
        let reply = format!("/v1/messages/{}/reply", text(&leased[0]["id"]));
        (sent, worker.ask("POST", &reply, &[JSON], body), reply)
    };
    let (sent, answer, _) = answers(r#"{"answer": "four"}"#);
    answer.is(202);
    let place = format!("/v1/messages/{}?payloads=json", text(&sent["id"]));
    let known = ada.until(&place, |known| known["reply"].is_object());
    assert_eq!(known["reply"]["json"], json!({ "answer": "four" }), "{known}");
    let (_, answer, reply) = answers(r#"[{"answer": "four"}, {"answer": 5}]"#);
    let problem = answer.problem(422, "payload");
    assert_eq!(problem["pointer"], "/1/answer", "{problem}");
    let again = |body: &str| worker.ask("POST", &reply, &[JSON], body);
    assert!(text(&again(r#"{"ask": 4}"#).problem(422, "payload")["rule"]).contains("{\"answer\": …}"));
    again("[{").problem(422, "malformed");
    again("[]").problem(422, "blank");
    again(r#"[{"answer": "four"}]"#).is(202);
    let stranger = ada.ask("POST", &reply, &[JSON], r#"{"answer": "mine"}"#);
    assert!([403, 404].contains(&stranger.status), "{}", stranger.body);
}
