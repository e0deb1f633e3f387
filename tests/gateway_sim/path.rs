//! The way of a message whose sender waits for the answer.

use crate::kit::{Site, ask, reply, text};

#[test]
fn whoever_waits_gets_the_reply_itself() {
    let site = Site::new();
    let (ada, worker) = (site.party("ada"), site.party("worker"));
    let asked = ada.begin("POST", "/v1/messages?wait=60", &ask(8));
    let leased = worker.lease("worker", r#"{"wait":60}"#);
    worker.post(&format!("/v1/messages/{}/reply", text(&leased[0]["id"])), &reply("eight")).is(202);
    let answer = asked.answer().is(200);
    assert_eq!(answer.header("content-type"), Some("application/xml"));
    assert!(answer.body.contains("<from>worker</from><to>ada</to>") && answer.body.contains("eight"), "{answer:?}");
}
