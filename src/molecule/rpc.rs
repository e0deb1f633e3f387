//! JSON-RPC 2.0 with one method: `message/send`.

use serde_json::{Value, json};

use crate::gateway::facade::{Problem, parse_json};

/// Codes of errors (JSON-RPC 2.0, section 5.1).
const PARSE_ERROR: i32 = -32700;
const INVALID_REQUEST: i32 = -32600;
const NO_METHOD: i32 = -32601;
const INVALID_PARAMS: i32 = -32602;

/// The one method.
pub(super) const METHOD: &str = "message/send";

/// Longest id of a message, in bytes.
const ID: usize = 255;

/// A request to send a text.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Send {
    pub(super) text: String,
    /// The sender's id of the message.
    pub(super) id: Option<String>,
    /// The row that it answers; the SDK leaves it out.
    pub(super) in_reply_to: Option<String>,
}

/// JSON Schema of a request.
pub(super) fn request_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "jsonrpc": { "const": "2.0" },
            "method": { "const": METHOD },
            "id": { "type": ["string", "integer", "null"] },
            "params": { "type": "object", "properties": { "message": { "type": "object" } }, "required": ["message"] },
        },
        "required": ["jsonrpc", "method", "params"],
    })
}

/// JSON Schema of an answer.
pub(super) fn answer_schema() -> Value {
    json!({
        "type": "object",
        "oneOf": [
            {
                "properties": {
                    "status": { "const": "queued" },
                    "delivery_mode": { "const": "poll" },
                    "method": { "const": METHOD },
                },
                "required": ["status", "delivery_mode", "method"],
            },
            {
                "description": "A listener in the organism answered at once.",
                "properties": {
                    "jsonrpc": { "const": "2.0" },
                    "id": { "type": ["string", "integer", "null"] },
                    "result": { "type": "object" },
                    "error": { "type": "object" },
                },
                "required": ["jsonrpc", "id"],
            },
        ],
    })
}

/// Parses the body of a request.
pub(super) fn parse(body: &[u8]) -> Result<Value, Problem> {
    parse_json(body).map_err(|error| refused(&Value::Null, PARSE_ERROR, &format!("the body: {error}")))
}

fn refused(request: &Value, code: i32, detail: &str) -> Problem {
    let error = json!({ "code": code, "message": detail });
    let id = request.get("id").filter(|id| id.is_string() || id.is_number()).cloned();
    Problem::bad_request(detail).with("jsonrpc", "2.0").with("id", id).with("error", error)
}

impl Send {
    /// Parses a request.
    pub(super) fn read(request: &Value) -> Result<Self, Problem> {
        let refused = |code, detail: &str| refused(request, code, detail);
        if request.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
            return Err(refused(INVALID_REQUEST, "'jsonrpc' has to be \"2.0\""));
        }
        match request.get("method").and_then(Value::as_str) {
            Some(METHOD) => {}
            Some(_) => return Err(refused(NO_METHOD, "the method that is known is message/send")),
            None => return Err(refused(INVALID_REQUEST, "'method' is missing")),
        }
        let message = request.pointer("/params/message").filter(|message| message.is_object());
        let message = message.ok_or_else(|| refused(INVALID_PARAMS, "'params.message' is missing"))?;
        let text = text(message).map_err(|detail| refused(INVALID_PARAMS, detail))?;
        let id = message.get("messageId").and_then(Value::as_str).filter(|id| !id.is_empty()).map(str::to_owned);
        if id.as_ref().is_some_and(|id| id.len() > ID) {
            return Err(refused(INVALID_PARAMS, "'messageId' has 255 bytes at most"));
        }
        let in_reply_to = message.pointer("/metadata/in_reply_to").and_then(Value::as_str).map(str::to_owned);
        Ok(Self { text, id, in_reply_to })
    }
}

/// The text of all parts, a line each.
pub(super) fn text(message: &Value) -> Result<String, &'static str> {
    let parts = message.get("parts").and_then(Value::as_array).ok_or("'params.message.parts' has to be a list")?;
    let text = |part: &Value| {
        let kind = part.get("kind").or_else(|| part.get("type")).and_then(Value::as_str);
        part.get("text").and_then(Value::as_str).filter(|_| kind.is_none_or(|kind| kind == "text")).map(str::to_owned)
    };
    let parts: Option<Vec<_>> = parts.iter().map(text).collect();
    let text = parts.ok_or("a part is no text: text alone travels here")?.join("\n");
    if text.trim().is_empty() { Err("there is no text in 'params.message.parts'") } else { Ok(text) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_text_of_all_parts_is_read_and_nothing_but_text() {
        let request =
            |message: Value| json!({ "jsonrpc": "2.0", "id": 1, "method": METHOD, "params": { "message": message } });
        let parts = json!([{ "kind": "text", "text": "a" }, { "type": "text", "text": "b" }]);
        let read = Send::read(&request(json!({ "messageId": "m", "parts": parts }))).unwrap();
        assert_eq!(read, Send { text: "a\nb".to_owned(), id: Some("m".to_owned()), in_reply_to: None });
        for bad in [
            json!({}),
            json!({ "parts": [] }),
            json!({ "parts": [{ "kind": "file" }] }),
            json!({ "parts": [{ "kind": "text", "text": "\t" }] }),
            json!({ "parts": "text" }),
        ] {
            assert!(Send::read(&request(bad.clone())).is_err(), "{bad}");
        }
        assert!(Send::read(&json!([])).is_err());
        assert!(Send::read(&json!({ "jsonrpc": "2.0", "method": "tasks/get" })).is_err());
    }
}
