//! Partitions that leave their core while agents elsewhere hold messages of their conversations.

use systole::vocab::{Partition, Partitions};

use crate::site::{Site, answer, text};

#[test]
fn a_message_that_waits_for_an_agent_waits_on_while_its_conversation_moves() {
    let site = Site::new();
    let first = site.ask(1);
    let leased = site.lease(r#"{"max":9}"#);
    assert_eq!(leased.len(), 1);
    let reply = format!("/v1/messages/{}/reply", text(&leased[0]["id"]));
    assert_eq!(site.kit().release(Partition::BOOT).unwrap(), Partitions::ALL);
    // No handler waits for the answer: the agent is told to come again, and a client, too.
    site.post("worker", &reply, None, &answer("one")).is(503);
    site.post("ada", "/v1/messages", None, &crate::site::ask(2)).is(503);
    assert_eq!(text(&site.sent(&first)["state"]), "delivered");
    site.kit().adopt(Partitions::ALL).unwrap();
    site.kit().settle();
    site.post("worker", &reply, None, &answer("one")).is(202);
    site.kit().settle();
    assert!(site.sent(&first)["reply"].is_object(), "{}", site.sent(&first));
    // It was asked once.
    assert_eq!(site.all().len(), 1);
    let second = site.ask(3);
    assert_eq!(site.lease(r#"{"max":9}"#).len(), 1);
    assert_eq!(text(&site.sent(&second)["state"]), "delivered");
    let again = site.killed();
    assert!(again.sent(&first)["reply"].is_object(), "what an agent was told is durable");
    assert_eq!(again.all().len(), 2);
}
