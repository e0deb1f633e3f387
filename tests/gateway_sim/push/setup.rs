//! An organism with a listener that is pushed to.

use std::fs;

use serde_json::Value;

use super::peer::Peer;
use crate::kit::{Site, Who, text};

pub(crate) const SECRET: &[u8] = b"0123456789abcdef0123456789abcdef";

/// An organism whose listener `worker` is pushed to at that URL.
pub(crate) fn organism(url: &str, more: &str) -> String {
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
pub(crate) fn site(peer: &Peer) -> (Site, Who) {
    let site =
        Site::idle_in(peer.world.clone(), &organism(&peer.url(), ", secret: worker.secret, allow_private: true"));
    fs::write(site.folder.join("worker.secret"), [SECRET, b"\n"].concat()).unwrap();
    started(site)
}

pub(crate) fn started(mut site: Site) -> (Site, Who) {
    site.start();
    let ada = site.party("ada");
    (site, ada)
}

pub(crate) fn place(sent: &Value) -> String {
    format!("/v1/messages/{}", text(&sent["id"]))
}

pub(crate) fn answered(ada: &Who, sent: &Value) -> Value {
    ada.until(&place(sent), |known| known["reply"].is_object())
}

/// Checks that the only answer is a fault with that reason.
pub(crate) fn failed(ada: &Who, sent: &Value, why: &str) {
    let known = answered(ada, sent);
    assert_eq!((text(&known["state"]), text(&known["reply"]["fault"])), ("faulted", "failed"), "{known}");
    assert!(text(&known["reply"]["envelope"]).contains(why), "{known}");
    assert_eq!(known["replies"].as_array().unwrap().len(), 1, "{known}");
    assert!(!known.to_string().contains("hush"), "where it is, is its own business: {known}");
}

pub(crate) fn dead(worker: &Who) -> Vec<Value> {
    worker.get("/v1/mailboxes/worker/dead").is(200).json()["items"].as_array().unwrap().clone()
}
