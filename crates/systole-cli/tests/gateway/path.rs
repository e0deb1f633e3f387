//! The whole way, over sockets: a client asks, an agent elsewhere answers.

use crate::kit::{Site, reply, text};

#[test]
fn a_message_goes_to_an_agent_elsewhere_and_its_answer_comes_back() {
    let site = Site::new();
    let (ada, worker) = (site.party("ada"), site.party("worker"));

    let sent = ada.send(7).is(202);
    assert_eq!(sent.header("content-type"), Some("application/json"));
    let place = sent.header("location").unwrap().to_owned();
    let sent = sent.json();
    assert_eq!(text(&sent["state"]), "queued");
    assert_eq!(place, format!("/v1/messages/{}", text(&sent["id"])));

    let page = worker.get("/v1/mailboxes/worker/messages?wait=60").is(200).json();
    let item = &page["items"][0];
    assert_eq!((text(&item["from"]), text(&item["type"])), ("ada", "{urn:t}ask"));
    assert!(text(&item["envelope"]).contains("<from>ada</from><to>worker</to>"), "{item}");

    let leased = worker.lease("worker", r#"{"wait":60}"#);
    assert_eq!((leased.len(), &leased[0]["id"], &leased[0]["deliveries"]), (1, &item["id"], &1.into()));
    worker.post(&format!("/v1/messages/{}/reply", text(&item["id"])), &reply("seven")).is(202);
    worker.handle("worker", &leased[0], "ack").is(204);

    let known = ada.until(&place, |known| known["reply"].is_object());
    assert_eq!((text(&known["state"]), text(&known["reply"]["from"])), ("answered", "worker"));
    assert!(text(&known["reply"]["envelope"]).contains("<answer xmlns=\"urn:t\">seven</answer>"), "{known}");
    let known = worker.get(&format!("/v1/messages/{}", text(&item["id"]))).is(200).json();
    assert_eq!((text(&known["state"]), &known["attempts"]), ("replied", &1.into()));
}
