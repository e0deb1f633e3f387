//! Refused principals and requests.

use std::time::Duration;

use crate::kit::{Site, ask, text};

#[test]
fn a_mailbox_of_somebody_else_is_forbidden() {
    let site = Site::new();
    let (ada, bob) = (site.party("ada"), site.party("bob"));
    let (worker, other) = (site.party("worker"), site.party("other"));
    let boss = site.admin();
    let sent = ada.send(1).is(202).json();
    let leased = worker.lease("worker", r#"{"wait":60}"#);
    let (id, sent) = (text(&leased[0]["id"]), text(&sent["id"]));
    for who in [&other, &ada] {
        for path in ["messages", "stream", "dead"] {
            who.get(&format!("/v1/mailboxes/worker/{path}")).problem(403, "forbidden");
        }
        who.post("/v1/mailboxes/worker/lease", "").problem(403, "forbidden");
        who.post("/v1/mailboxes/worker/dead/redrive", "").problem(403, "forbidden");
        who.ask("DELETE", "/v1/mailboxes/worker/dead", &[], "").problem(403, "forbidden");
        // A message of another mailbox looks like one that never was.
        who.post(&format!("/v1/messages/{id}/reply"), "<a/>").problem(404, "not_found");
        who.post(&format!("/v1/messages/{id}/fail"), "").problem(404, "not_found");
        for verb in ["ack", "nack", "extend", "term"] {
            who.handle("worker", &leased[0], verb).problem(403, "forbidden");
        }
    }
    // A listener opens no conversation; an admin doesn't either, but has access to every mailbox.
    worker.post("/v1/messages", &ask(1)).problem(403, "forbidden");
    boss.post("/v1/messages", &ask(1)).problem(403, "forbidden");
    boss.get("/v1/mailboxes/worker/messages").is(200);
    boss.get("/v1/mailboxes/nobody/messages").problem(404, "not_found");
    // A message is visible to its sender and the admin.
    for who in [&bob, &worker, &other] {
        who.get(&format!("/v1/messages/{sent}")).problem(404, "not_found");
    }
    boss.get(&format!("/v1/messages/{sent}")).is(200);
    other.get(&format!("/v1/messages/{id}")).problem(404, "not_found");
}

#[test]
fn requests_that_make_no_sense_are_problems_of_one_shape() {
    let site = Site::new();
    let (ada, worker) = (site.party("ada"), site.party("worker"));
    ada.get("/").problem(404, "not_found");
    ada.get("/v1/messages/").problem(404, "not_found");
    ada.get("/v1/messages").problem(405, "method_not_allowed");
    ada.ask("DELETE", "/v1/listeners", &[], "").problem(405, "method_not_allowed");
    ada.get("/v1/messages/%ff").problem(400, "http");
    ada.get("/v1/messages/../../etc/passwd").problem(404, "not_found");
    for query in
        ["limit=0", "limit=501", "limit=-1", "limit=x", "limit=", "wait=61", "after=a&after=b", "x=1", "before=now"]
    {
        let problem = worker.get(&format!("/v1/mailboxes/worker/messages?{query}"));
        problem.problem(400, "bad_request");
    }
    for body in [
        "{",
        "[]",
        "null",
        r#"{"max":0}"#,
        r#"{"max":101}"#,
        r#"{"max":-1}"#,
        r#"{"max":1.5}"#,
        r#"{"max":1e300}"#,
        r#"{"wait":61}"#,
        r#"{"x":1}"#,
        "\u{0}",
    ] {
        worker.post("/v1/mailboxes/worker/lease", body).problem(400, "bad_request");
    }
    worker.post("/v1/mailboxes/worker/messages/x/ack", "{}").problem(404, "not_found");
}

#[test]
fn who_asks_too_often_is_told_when_to_ask_again() {
    let site = Site::with("requests: 1", "7d");
    let ada = site.party("ada");
    // A second has room for one request, and no time passes.
    ada.get("/v1/messages/x").is(404);
    let refused = ada.get("/v1/messages/x");
    assert_eq!(refused.header("retry-after"), Some("1"));
    refused.problem(429, "rate");
    // Other principals are not limited.
    site.party("bob").get("/v1/messages/x").is(404);
}

#[test]
fn what_the_organism_could_not_read_any_more_is_refused_at_once() {
    let site = Site::new();
    let ada = site.party("ada");
    let long = |bytes: usize| ask(1).replace(">1<", &format!(">{}1<", "0".repeat(bytes - ask(1).len())));
    // The message fits, but not with the ids that the pump adds.
    let problem = ada.post("/v1/messages", &long(1 << 20)).problem(413, "too_large");
    assert!(text(&problem["detail"]).contains("as re-encoded, and may have 1048576"), "{problem}");
    ada.post("/v1/messages", &long((1 << 20) - 1024)).is(202);
}

#[test]
fn who_waits_is_refused_once_the_token_is_revoked() {
    let site = Site::new();
    let (ada, worker) = (site.party("ada"), site.party("worker"));
    let waiting = [
        worker.begin("GET", "/v1/mailboxes/worker/messages?wait=60", ""),
        worker.begin("POST", "/v1/mailboxes/worker/lease", r#"{"wait":60}"#),
    ];
    // A call that takes longer may outlive its token.
    site.advance(Duration::from_secs(1));
    site.revoke("worker");
    ada.send(7).is(202);
    for waited in waiting {
        waited.answer().problem(401, "unauthorized");
    }
    worker.get("/v1/mailboxes/worker/messages").problem(401, "unauthorized");
}
