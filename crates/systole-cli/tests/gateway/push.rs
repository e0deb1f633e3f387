//! Listeners that are pushed to, where a test needs the process: the rest is in `tests/gateway_sim` of the crate `systole`.

use std::fs;

use serde_json::{Value, json};

use crate::kit::{Site, Who, ask, reply, text};
use crate::peer::{Act, Peer, Request, say};

const SECRET: &[u8] = b"0123456789abcdef0123456789abcdef";

/// An organism whose listener `worker` is pushed to at that URL.
fn organism(url: &str, more: &str) -> String {
    format!(
        r#"organism: {{ name: remote }}
durability: process
gateway: {{ listen: "127.0.0.1:0", requests: 1000000 }}
retention: {{ age: 7d }}
clients:
  - {{ name: ada, calls: ["{{urn:t}}ask"] }}
listeners:
  - name: worker
    remote: {{ mode: push, url: "{url}"{more} }}
    schemas: [t.xsd]
    accepts: ["{{urn:t}}ask"]
    replies: ["{{urn:t}}answer"]
"#
    )
}

/// A site whose worker is that peer, and its client.
fn site(peer: &Peer) -> (Site, Who) {
    let site = Site::idle(&organism(&peer.url(), ", secret: worker.secret, allow_private: true"));
    fs::write(site.folder.join("worker.secret"), [SECRET, b"\n"].concat()).unwrap();
    started(site)
}

fn started(mut site: Site) -> (Site, Who) {
    site.start();
    let ada = site.party("ada");
    (site, ada)
}

fn place(sent: &Value) -> String {
    format!("/v1/messages/{}", text(&sent["id"]))
}

fn answered(ada: &Who, sent: &Value) -> Value {
    ada.until(&place(sent), |known| known["reply"].is_object())
}

/// Checks that the only answer is a fault with that reason.
fn failed(ada: &Who, sent: &Value, why: &str) {
    let known = answered(ada, sent);
    assert_eq!((text(&known["state"]), text(&known["reply"]["fault"])), ("faulted", "failed"), "{known}");
    assert!(text(&known["reply"]["envelope"]).contains(why), "{known}");
    assert_eq!(known["replies"].as_array().unwrap().len(), 1, "{known}");
    assert!(!known.to_string().contains("hush"), "where it is, is its own business: {known}");
}

#[test]
fn kills_at_any_time_lose_nothing_and_answer_nothing_twice() {
    let peer = Peer::start([Act::Close, say("200 OK", &reply("done"))]);
    let (mut site, mut ada) = site(&peer);
    let (mut sent, mut came) = (Vec::new(), Vec::new());
    for round in 0..4 {
        sent.extend((0..10).map(|number| ada.send(round * 10 + number).is(202).json()));
        came.extend((0..5).map(|_| peer.next().id()));
        site.kill();
        site.start();
        ada.address = site.address;
    }
    for sent in &sent {
        let known = answered(&ada, sent);
        assert_eq!((text(&known["state"]), known["replies"].as_array().unwrap().len()), ("answered", 1), "{known}");
    }
    came.extend(peer.rest().iter().map(Request::id));
    came.sort_unstable();
    came.dedup();
    assert_eq!(came.len(), sent.len(), "each has one id");
}

#[test]
fn secrets_are_neither_logged_nor_kept_nor_listed() {
    let peer = Peer::start([say("500 No", ""), say("200 OK", &reply("one"))]);
    let (site, ada) = site(&peer);
    let worker = site.party("worker");
    failed(&ada, &ada.send(1).is(202).json(), "rejected");
    answered(&ada, &ada.send(2).is(202).json());
    let listed = worker.get("/v1/mailboxes/worker/messages").body + &worker.get("/v1/mailboxes/worker/dead").body;
    let checked = site.systole(&["check", "organism.yaml"]).output().unwrap();
    assert!(checked.status.success() && checked.stderr.is_empty(), "{checked:?}");
    let mut all = vec![listed.into_bytes(), checked.stdout, site.log().into_bytes()];
    for file in fs::read_dir(&site.folder).unwrap().map(|entry| entry.unwrap().path()) {
        // The socket of operators is no file to read.
        if !file.ends_with("worker.secret") && file.is_file() {
            all.push(fs::read(file).unwrap());
        }
    }
    assert!(!all.iter().any(|bytes| bytes.windows(SECRET.len()).any(|part| part == SECRET)));
    assert!(!site.log().contains("hush"), "{}", site.log());
}

#[test]
fn what_was_delivered_is_forgotten_after_its_time() {
    let peer = Peer::start([say("200 OK", &reply("one"))]);
    let written = organism(&peer.url(), ", allow_private: true").replace("age: 7d", "age: 1ms");
    let (mut site, ada) = started(Site::idle(&written));
    assert!(ada.post("/v1/messages?wait=60", &ask(1)).is(200).body.contains("one"));
    assert!(peer.next().header("systole-signature").is_none(), "it has no secret");
    // A start is one of the times at which a journal is tidied.
    site.kill();
    site.start();
    let worker = site.party("worker");
    worker.until("/v1/mailboxes/worker/messages", |page| page["items"] == json!([]));
}
