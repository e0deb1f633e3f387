//! Messages of a workspace in the format of its `A2AServer`, and the answers of that.

use std::fmt;

use bytes::Bytes;
use serde_json::{Value, json};
use systole_core::vocab::{MessageId, Name};

use super::rows::Row;
use super::said::Said;
use super::{Facade, row_references, rpc};
use crate::gateway::facade::{PushFormat, StoredMail, parse_json};

/// Depth of nested results that are searched: that of the server, of JSON-RPC, and a task's message.
const DEPTH: usize = 4;

/// States of a task that failed (A2A, `TaskState`).
const FAILED: [&str; 3] = ["failed", "rejected", "canceled"];

impl PushFormat for Facade {
    fn media_type(&self) -> &'static str {
        "application/json"
    }

    /// Writes the task of the server's documentation, and the JSON-RPC request that agents send each other: handlers
    /// are written for one or the other.
    fn write(&self, mail: &StoredMail) -> Option<Bytes> {
        let row = Row::of(&self.parties, mail.clone()).filter(Row::is_said)?;
        let shown = row.show(&self.parties, false);
        let Value::Object(mut body) = shown["request_body"].clone() else { return None };
        let data = &shown["data"];
        let sender = data.get("peer_id").filter(|id| id.is_string()).unwrap_or(&data["peer_name"]);
        let Value::Object(task) = json!({
            "task_id": shown["id"],
            "idempotency_key": shown["id"],
            "sender": sender,
            "message": data["text"],
            "data": data,
        }) else {
            return None;
        };
        body.extend(task);
        Some(Value::Object(body).to_string().into())
    }

    fn others(&self, id: MessageId, answer: &[u8]) -> Vec<MessageId> {
        parse_json(answer).map_or_else(|_| Vec::new(), |answer| row_references::others(&answer, id))
    }

    fn read(&self, listener: &Name, id: MessageId, answer: &[u8]) -> Result<Option<Bytes>, String> {
        let answer: Value = parse_json(answer).map_err(|error| format!("it can't be read as JSON: {error}"))?;
        if let Some(name) = of_another(&answer, &id.to_string()) {
            return Err(format!("it answers another message, as its {name} says"));
        }
        let Some(text) = text(&answer, DEPTH)?.filter(|text| !text.trim().is_empty()) else { return Ok(None) };
        let said = Said::by("peer_agent", listener.as_str(), text).write();
        said.map(|payload| Some(payload.bytes().clone()))
            .map_err(|_| "its text has characters that XML can't carry".to_owned())
    }
}

/// The field of an answer that shows that it is not for this row: the id of JSON-RPC, which is that of the request
/// (JSON-RPC 2.0, section 5), or an id of the task.
fn of_another(answer: &Value, row: &str) -> Option<&'static str> {
    let results = std::iter::successors(Some(answer), |answer| answer.get("result")).take(DEPTH + 1);
    results.into_iter().enumerate().find_map(|(depth, answer)| {
        let id = answer.get("jsonrpc").and_then(|_| answer.get("id"));
        let named =
            [("id", id), ("task_id", answer.get("task_id")), ("idempotency_key", answer.get("idempotency_key"))];
        let is_another = |(name, id): &(&'static str, Option<&Value>)| match id {
            None | Some(Value::Null) => false,
            Some(Value::String(id)) => id != row,
            // The id of a request of ours is a text. A handler may return a response that it got elsewhere.
            Some(_) => depth == 0 && *name == "id",
        };
        named.into_iter().find(is_another).map(|(name, _)| name)
    })
}

/// The text of an answer: of the server, of JSON-RPC, a message or a task of A2A, or `text` or `message` as the SDK
/// reads them; none if the answer is empty.
fn text(answer: &Value, depth: usize) -> Result<Option<String>, String> {
    let unknown = || {
        let known = "return a text, {\"text\": …}, or a message or task of A2A; or None for no answer";
        Err(format!("no text is found in it: {known}"))
    };
    let object = match answer {
        Value::Null => return Ok(None),
        Value::String(text) => return Ok(Some(text.clone())),
        Value::Object(object) if depth > 0 => object,
        _ => return unknown(),
    };
    if let Some(error) = object.get("error").filter(|error| !error.is_null()) {
        return Err(error_text(error));
    }
    if let Some(state) = answer.pointer("/status/state").and_then(Value::as_str).filter(|state| FAILED.contains(state))
    {
        let why = answer.pointer("/status/message").and_then(|message| rpc::text(message).ok()).unwrap_or_default();
        return Err(format!("the task is {state}: {why}"));
    }
    if let Some(result) = object.get("result") {
        return text(result, depth - 1);
    }
    if object.contains_key("parts") {
        return rpc::text(answer).map(Some).map_err(str::to_owned);
    }
    if let Some(artifacts) = object.get("artifacts").and_then(Value::as_array).filter(|list| !list.is_empty()) {
        let texts: Result<Vec<_>, _> = artifacts.iter().map(rpc::text).collect();
        return texts.map(|texts| Some(texts.join("\n"))).map_err(str::to_owned);
    }
    let said =
        ["text", "message"].iter().find_map(|key| object.get(*key)).or_else(|| answer.pointer("/status/message"));
    match said {
        Some(said) => text(said, depth - 1),
        None if object.is_empty() => Ok(None),
        None => unknown(),
    }
}

/// The text of an error.
fn error_text(error: &Value) -> String {
    let said = error.as_str().or_else(|| error.get("message").and_then(Value::as_str));
    said.map_or_else(|| "an error without a message".to_owned(), crate::terminal::readable)
}

impl fmt::Debug for Facade {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Facade").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(answer: &Value) -> Result<Option<String>, String> {
        text(answer, DEPTH)
    }

    #[test]
    fn the_text_of_each_kind_of_answer_is_found() {
        let parts = json!([{ "kind": "text", "text": "hi" }]);
        let message = json!({ "kind": "message", "role": "agent", "messageId": "m", "parts": parts });
        for result in [
            json!("hi"),
            json!({ "text": "hi" }),
            json!({ "message": "hi" }),
            json!({ "message": message }),
            message.clone(),
            json!({ "jsonrpc": "2.0", "id": 1, "result": message }),
            json!({ "kind": "task", "status": { "state": "completed" }, "artifacts": [{ "parts": parts }] }),
            json!({ "kind": "task", "status": { "state": "input-required", "message": message } }),
        ] {
            assert_eq!(read(&json!({ "status": "ok", "result": result })), Ok(Some("hi".into())), "{result}");
        }
        for nothing in [json!(null), json!({}), json!({ "text": null })] {
            assert_eq!(read(&json!({ "status": "ok", "result": nothing })), Ok(None), "{nothing}");
        }
    }

    #[test]
    fn an_answer_that_names_another_row_is_none_of_this_one() {
        for (answer, name) in [
            (json!({ "jsonrpc": "2.0", "id": "b", "result": "hi" }), "id"),
            (json!({ "status": "ok", "result": { "jsonrpc": "2.0", "id": "b", "result": "hi" } }), "id"),
            (json!({ "status": "ok", "task_id": "b", "result": "hi" }), "task_id"),
            (json!({ "result": { "idempotency_key": "b", "text": "hi" } }), "idempotency_key"),
        ] {
            assert_eq!(of_another(&answer, "a"), Some(name), "{answer}");
            assert_eq!(of_another(&answer, "b"), None, "{answer}");
        }
        // The id of a request of ours is a text.
        assert_eq!(of_another(&json!({ "jsonrpc": "2.0", "id": 7, "result": "hi" }), "7"), Some("id"));
        // A response that a handler got elsewhere has an id of its own, and that of a message is the agent's.
        let message = json!({ "kind": "message", "messageId": "m", "id": "m", "parts": [] });
        let own = json!({ "status": "ok", "result": { "jsonrpc": "2.0", "id": 1, "result": message } });
        assert_eq!(of_another(&own, "a"), None);
    }

    #[test]
    fn an_answer_without_a_text_is_an_error_and_never_guessed() {
        let deep = (0..100).fold(json!("hi"), |inner, _| json!({ "result": inner }));
        for answer in [json!({ "ack": true }), json!(7), json!([]), json!({ "text": 7 }), deep] {
            assert!(read(&answer).unwrap_err().contains("return a text"), "{answer}");
        }
        let error = json!({ "jsonrpc": "2.0", "id": 1, "error": { "code": -32603, "message": "no tool" } });
        assert_eq!(read(&json!({ "status": "ok", "result": error })), Err("no tool".into()));
        let failed = json!({ "kind": "task", "status": { "state": "failed" } });
        assert!(read(&failed).unwrap_err().contains("failed"));
        assert!(read(&json!({ "parts": [{ "kind": "file", "file": {} }] })).is_err());
    }
}
