//! Types, filters and answers that are refused, and those that look alike.

use crate::kit::{Site, ask, text};

#[test]
fn media_types_that_say_what_the_call_takes_are_taken() {
    let site = Site::new();
    let (ada, worker) = (site.party("ada"), site.party("worker"));
    for kind in
        ["application/xml", "text/xml; charset=utf-8", "Application/SOAP+XML", "application/x-www-form-urlencoded"]
    {
        ada.ask("POST", "/v1/messages", &[("Content-Type", kind)], &ask(1)).is(202);
    }
    for kind in ["application/json", "application/json;charset=UTF-8", "application/merge-patch+json"] {
        worker.ask("POST", "/v1/mailboxes/worker/lease", &[("Content-Type", kind)], "{}").is(200);
    }
    // An empty body has no type.
    worker.ask("POST", "/v1/mailboxes/worker/lease", &[("Content-Type", "text/plain")], "").is(200);
    let problem = worker.ask("POST", "/v1/mailboxes/worker/lease", &[("Content-Type", "text/plain")], "{}");
    assert_eq!(problem.problem(415, "media_type")["takes"], serde_json::json!(["application/json"]));
}

#[test]
fn an_answer_to_anothers_message_and_to_none_look_alike() {
    let site = Site::new();
    let (ada, worker, other) = (site.party("ada"), site.party("worker"), site.party("other"));
    ada.send(1).is(202);
    let leased = worker.lease("worker", r#"{"wait":60}"#);
    let id = text(&leased[0]["id"]);
    for who in [&other, &ada] {
        for (verb, body) in [("reply", "<a/>"), ("fail", "{}")] {
            let [known, unknown, none] = [id, "9f3a0000-0000-4000-8000-000000000001", "x"]
                .map(|id| who.post(&format!("/v1/messages/{id}/{verb}"), body).is(404).body);
            assert_eq!((&known, &known), (&unknown, &none), "{verb}");
        }
    }
    worker.post(&format!("/v1/messages/{id}/reply"), "<answer xmlns=\"urn:t\">1</answer>").is(202);
}

#[test]
fn filters_that_can_match_nothing_are_refused() {
    let site = Site::new();
    let worker = site.party("worker");
    for query in ["type=%7Bx", "type=", "type=%7Burn:t%7D", "peer=a%20b", "peer="] {
        worker.get(&format!("/v1/mailboxes/worker/messages?{query}")).problem(400, "bad_request");
    }
    worker.get("/v1/mailboxes/worker/messages?type=%7Burn:t%7Dask&peer=ada").is(200);
}

#[test]
fn an_empty_last_event_id_is_none() {
    let site = Site::new();
    let (ada, other) = (site.party("ada"), site.party("other"));
    ada.post("/v1/messages", &crate::kit::envelope("<order xmlns=\"urn:t\">1</order>")).is(202);
    let path = "/v1/mailboxes/other/stream";
    assert!(text(&other.stream(path, Some("")).next().1["envelope"]).contains(">1</order>"));
    other.ask("GET", path, &[("Last-Event-ID", "nonsense")], "").problem(410, "cursor_lost");
}

#[test]
fn a_key_that_a_body_repeats_is_refused_and_named() {
    let site = Site::new();
    let worker = site.party("worker");
    let contract = r#"{"name":"worker","mode":"poll","contract":{"calls":["{urn:t}ask"],"calls":[]}}"#;
    for (path, body, key) in [
        ("/v1/mailboxes/worker/lease", r#"{"max":1,"max":2}"#, "max"),
        ("/v1/mailboxes/worker/lease", r#"{"max":1,"m\u0061x":1}"#, "max"),
        ("/v1/listeners", contract, "calls"),
    ] {
        let problem = worker.post(path, body).problem(400, "bad_request");
        assert!(text(&problem["detail"]).contains(&format!("the key \"{key}\" is repeated")), "{problem}");
    }
}
