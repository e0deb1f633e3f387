//! An organism with two workspaces, one of which is called by its id, and a person.

use serde_json::{Value, json};

use crate::kit::{Answer, Site, Who, text};

/// The workspace whose name is an id.
pub(crate) const UUID: &str = "0f9a3c52-1111-4222-8333-444455556666";

/// `uuid.uuid5(uuid.NAMESPACE_URL, "urn:systole:workspace:scout")`
pub(crate) const SCOUT: &str = "3578ee30-02d5-5a4d-a967-969ed819a346";

const ORGANISM: &str = r#"organism: { name: chat }
durability: process
retention: { age: 90d }
gateway: { listen: "127.0.0.1:0", molecule: true, requests: 1000000 }
clients:
  - { name: ada, calls: ["{urn:systole:chat:v1}said"] }
listeners:
  - name: scout
    description: Looks around.
    remote: { mode: poll }
    routing: addressed
    accepts: ["{urn:systole:chat:v1}said"]
    replies: ["{urn:systole:chat:v1}said"]
    calls: ["{urn:systole:chat:v1}said"]
    returns: ["{urn:systole:chat:v1}said"]
  - name: 0f9a3c52-1111-4222-8333-444455556666
    remote: { mode: stream }
    routing: addressed
    accepts: ["{urn:systole:chat:v1}said"]
    replies: ["{urn:systole:chat:v1}said"]
    calls: ["{urn:systole:chat:v1}said"]
    returns: ["{urn:systole:chat:v1}said"]
"#;

/// The running organism.
pub(crate) fn office() -> Site {
    Site::of(ORGANISM)
}

/// An envelope with a text of a client.
pub(crate) fn said(to: &str, text: &str) -> String {
    format!(
        "<message xmlns=\"https://xml-pipeline.org/ns/envelope/v1\"><meta><from>x</from><to>{to}</to></meta>\
         <said xmlns=\"urn:systole:chat:v1\"><text>{text}</text></said></message>"
    )
}

/// A request of JSON-RPC with a text.
pub(crate) fn message(text: &str, id: &str) -> Value {
    let message = json!({ "role": "user", "messageId": id, "parts": [{ "kind": "text", "text": text }] });
    json!({ "jsonrpc": "2.0", "id": id, "method": "message/send", "params": { "message": message } })
}

/// Sends a text to a listener.
pub(crate) fn a2a(who: &Who, to: &str, text: &str, id: &str) -> Answer {
    who.post(&format!("/workspaces/{to}/a2a"), &message(text, id).to_string())
}

/// The rows that a query finds, once there are that many.
pub(crate) fn rows(who: &Who, workspace: &str, query: &str, count: usize) -> Vec<Value> {
    let path = format!("/workspaces/{workspace}/activity?{query}");
    let found = who.until(&path, |rows| rows.as_array().unwrap().len() >= count);
    let found = found.as_array().unwrap().clone();
    assert_eq!(found.len(), count, "{found:?}");
    found
}

/// The texts of rows.
pub(crate) fn texts(rows: &[Value]) -> Vec<&str> {
    rows.iter().map(|row| text(&row["data"]["text"])).collect()
}

/// The answer to a client's message, once it is there.
pub(crate) fn reply(who: &Who, sent: &Answer) -> String {
    let path = format!("/v1/messages/{}", text(&sent.json()["id"]));
    let done = who.until(&path, |message| !message["reply"].is_null());
    text(&done["reply"]["envelope"]).to_owned()
}
