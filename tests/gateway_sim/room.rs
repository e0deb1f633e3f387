//! What a client was promised, beside another one that sends too much.

use std::time::Duration;

use serde_json::Value;

use crate::kit::{Answer, Program, Site, Who, ask, text};

const ORGANISM: &str = r#"organism: { name: room }
durability: process
gateway: { listen: "127.0.0.1:0", requests: 1000000 }
retention: { age: 7d, bytes: 1MiB }
clients:
  - { name: ada, calls: ["{urn:t}ask"] }
  - { name: eve, calls: ["{urn:t}ask"] }
listeners:
  - name: writer
    command: ["true"]
    schemas: [t.xsd]
    accepts: ["{urn:t}ask"]
    replies: ["{urn:t}answer"]
"#;

fn at_length(from: &str, _: &str) -> Option<String> {
    let length = if from == "eve" { 50_000 } else { 10 };
    Some(format!("<answer xmlns=\"urn:t\">{}</answer>", "x".repeat(length)))
}

fn send(who: &Who, key: usize) -> Answer {
    who.ask("POST", "/v1/messages", &[("Idempotency-Key", &format!("key {key}"))], &ask(1))
}

fn answered(who: &Who, sent: &Value) -> Value {
    who.until(&format!("/v1/messages/{}", text(&sent["id"])), |known| known["reply"].is_object())
}

#[test]
fn who_sends_too_much_is_refused_and_takes_no_answer_and_no_key_of_others() {
    let mut site = Site::of_programs(ORGANISM, [("writer", at_length as Program)]);
    let (ada, eve) = (site.party("ada"), site.party("eve"));
    let promised: Vec<_> = (0..20).map(|key| send(&ada, key).is(202).json()).collect();
    promised.iter().for_each(|sent| drop(answered(&ada, sent)));
    let mut taken = Vec::new();
    let refused = loop {
        let sent = send(&eve, taken.len());
        if sent.status != 202 {
            break sent;
        }
        let sent = sent.json();
        answered(&eve, &sent);
        taken.push(sent);
        assert!(taken.len() < 100, "each answer takes 100 KB of 1 MiB");
    };
    let problem = refused.problem(507, "no_room");
    assert!(text(&problem["detail"]).contains("retention.bytes"), "{problem}");
    for round in 0..3 {
        // An hour and a start change nothing: what was accepted is kept, and a repeated key is no new message.
        for sent in &taken {
            answered(&eve, sent);
        }
        for (key, sent) in promised.iter().enumerate() {
            answered(&ada, sent);
            assert_eq!(send(&ada, key).is(202).json()["id"], sent["id"], "round {round}");
        }
        assert_eq!(send(&eve, 0).is(202).json()["id"], taken[0]["id"], "what it may ask again is not refused");
        send(&eve, 1000).problem(507, "no_room");
        send(&ada, 1000 + round).is(202);
        site.advance(Duration::from_secs(3600));
        if round == 0 {
            site.stop();
            site.start();
        }
    }
    // There is room again once their time is over: by a date that is days ahead, once it has stood for an hour.
    site.advance(Duration::from_secs(8 * 86_400));
    send(&ada, 2000).is(202);
    site.advance(Duration::from_secs(120));
    send(&ada, 2001).is(202);
    site.advance(Duration::from_secs(2 * 3600));
    send(&ada, 2002).is(202);
    site.advance(Duration::from_secs(120));
    send(&ada, 2003).is(202);
    site.wait("room for eve", || (send(&eve, 2000).status == 202).then_some(()));
}
