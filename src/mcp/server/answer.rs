//! Answers of an organism as results of the protocol. A fault is a result that is an error, with rule, place and example, so
//! that a model can mend its call.

use rmcp::model::{
    CallToolResult, ContentBlock, GetPromptResult, MetaObject, PromptMessage, ReadResourceResult,
    Resource as LinkedResource, ResourceContents, Role,
};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use systole_core::core::Party;
use systole_core::protocol::read_fault;
use systole_core::vocab::FaultCode;
use systole_xml::ladder::Canonical;
use systole_xml::schema::{Payload, decode_canonical};

use super::written::kept;
use crate::gateway::facade::{Problem, SentAnswer, payload};
use crate::mcp::content::{Block, Body, Content};
use crate::runtime::Organism;

/// The member of `_meta` with a fault or a refusal, for programs.
const FAULT: &str = "systole/fault";

/// An answer: content, a payload as JSON, or a fault.
enum Said {
    Content(Content),
    /// The value, and its text, which keeps all digits.
    Json(Value, String),
    Fault {
        text: String,
        fault: Value,
    },
}

fn said(organism: &Organism, answer: &SentAnswer) -> Said {
    let Some(payload) = payload(&answer.envelope) else {
        let text = "the answer can't be read: see the log of the organism".to_owned();
        return Said::Fault { text, fault: json!({ "code": "internal" }) };
    };
    if answer.fault.is_some() {
        return faulted(&payload);
    }
    if *payload.root() == Content::qname()
        && let Ok(content) = decode_canonical(&payload)
    {
        return Said::Content(content);
    }
    let (blueprint, catalog) = (organism.blueprint(), organism.shared.catalog_for(&payload));
    let contract = match blueprint.party(answer.from.as_str()) {
        Some(Party::Listener(id)) => blueprint.listener(id),
        _ => None,
    };
    // The form is that of the contract, not of the answer: a program finds a value in the same place always.
    let is_only = contract.is_some_and(|contract| contract.replies.len() == 1);
    let json = catalog.and_then(|catalog| match catalog.get(payload.root()).filter(|_| is_only) {
        Some(schema) => Some(schema.to_canonical_json(&payload)),
        None => {
            let schema = catalog.get(payload.root())?;
            Some(schema.to_named_canonical_json(&payload, &catalog.json_name(payload.root())))
        }
    });
    let json = json.unwrap_or_else(|| Value::String(payload.as_str().to_owned()).to_string());
    match serde_json::from_str(&json) {
        // The text of a text is that without its quotes.
        Ok(Value::String(text)) => Said::Json(Value::String(text.clone()), text),
        Ok(value) => Said::Json(value, json),
        // A number that this library can't read, which its text keeps.
        Err(_) if json.starts_with('{') => Said::Json(Value::Object(Map::new()), json),
        Err(_) => Said::Json(Value::Null, json),
    }
}

fn faulted(payload: &Canonical) -> Said {
    let Ok(fault) = read_fault(payload) else {
        return Said::Fault { text: payload.as_str().to_owned(), fault: json!({ "code": "internal" }) };
    };
    let mut more = Map::new();
    more.insert("retryable".to_owned(), fault.retryable.into());
    if let Some(broken) = fault.rule {
        more.insert("rule".to_owned(), broken.rule.into());
        if let Some(at) = broken.at {
            more.insert("place".to_owned(), json!({ "line": at.line, "column": at.column }));
        }
        more.extend(broken.example.map(|example| ("example".to_owned(), example.into())));
    }
    Said::Fault { text: told(&fault.message, &more), fault: named(fault.code.as_str(), more) }
}

fn named(code: &str, more: Map<String, Value>) -> Value {
    let mut fault = Map::from_iter([("code".to_owned(), code.into())]);
    fault.extend(more);
    fault.into()
}

/// The words of a fault or a refusal for a model.
fn told(message: &str, more: &Map<String, Value>) -> String {
    let mut text = message.to_owned();
    let mut add = |words: &str, value: &str| {
        if !value.is_empty() && !text.contains(value) {
            text.push_str(words);
            text.push_str(value);
        }
    };
    let member = |name: &str| more.get(name).and_then(Value::as_str).unwrap_or_default();
    add("\nrule: ", member("rule"));
    add("\nplace: ", member("pointer"));
    for other in more.get("more").and_then(Value::as_array).into_iter().flatten() {
        let [pointer, rule] = ["pointer", "rule"].map(|name| other[name].as_str().unwrap_or_default());
        add("\nalso ", &format!("{pointer}: {rule}"));
    }
    add("\nexample: ", member("example"));
    text
}

/// A result that is an error.
pub(super) fn error(text: impl Into<String>, fault: Value) -> CallToolResult {
    let mut result = CallToolResult::error(vec![ContentBlock::text(text)]);
    result.meta = Some(MetaObject(Map::from_iter([(FAULT.to_owned(), fault)])));
    result
}

/// A refusal of a call, before it took effect.
pub(super) fn refusal(problem: &Problem) -> CallToolResult {
    let (code, detail, more) = problem.parts();
    error(told(detail, more), named(code, more.clone()))
}

/// The words of a refusal.
pub(super) fn words(problem: &Problem) -> String {
    let (_, detail, more) = problem.parts();
    told(detail, more)
}

/// The result of a tool: the first answer, or that there is none.
pub(super) fn result(organism: &Organism, answers: &[SentAnswer]) -> CallToolResult {
    let Some(answer) = answers.first() else {
        return CallToolResult::success(vec![ContentBlock::text("done, without an answer")]);
    };
    let mut result = match said(organism, answer) {
        Said::Fault { text, fault } => error(text, fault),
        Said::Json(json, text) => {
            let structured = json.is_object().then(|| kept(&text));
            let mut result = CallToolResult::success(vec![ContentBlock::text(text)]);
            result.structured_content = structured;
            result
        }
        Said::Content(content) => {
            let mut result = CallToolResult::success(Vec::new());
            for block in content.blocks {
                match block {
                    Block::Structured(structured) => match serde_json::from_str::<&RawValue>(&structured.json) {
                        Ok(json) => result.structured_content = Some(kept(json.get())),
                        Err(_) => result.content.push(ContentBlock::text(structured.json)),
                    },
                    block => result.content.push(shown(block)),
                }
            }
            result
        }
    };
    if answers.len() > 1 {
        let more = answers.len() - 1;
        result.content.push(ContentBlock::text(format!("this is the first answer; {more} more came with it")));
    }
    result
}

/// The code of an answer that the pump gave for a call that was cancelled, or for a failure that is none of the tool.
pub(super) fn end(answer: &SentAnswer) -> Option<FaultCode> {
    let is_end =
        |code: &FaultCode| matches!(code, FaultCode::Cancelled | FaultCode::Internal | FaultCode::ListenerFailed);
    answer.fault.filter(is_end)
}

fn shown(block: Block) -> ContentBlock {
    match block {
        Block::Text(text) => ContentBlock::text(text.text),
        Block::Image(media) => ContentBlock::image(media.data, media.mime),
        Block::Audio(media) => ContentBlock::audio(media.data, media.mime),
        Block::Resource(resource) => ContentBlock::resource(contents(resource.uri, resource.mime, resource.body)),
        Block::Link(link) => {
            let mut linked = LinkedResource::new(link.uri, link.name);
            (linked.title, linked.description, linked.mime_type) = (link.title, link.description, link.mime);
            ContentBlock::resource_link(linked)
        }
        Block::Structured(structured) => ContentBlock::text(structured.json),
    }
}

fn contents(uri: String, mime: Option<String>, body: Body) -> ResourceContents {
    let contents = match body {
        Body::Text(text) => ResourceContents::text(text, uri),
        Body::Blob(blob) => ResourceContents::blob(blob, uri),
    };
    match mime {
        Some(mime) => contents.with_mime_type(mime),
        None => contents,
    }
}

/// A prompt that a listener wrote.
///
/// # Errors
/// The words of a fault.
pub(super) fn prompt(organism: &Organism, answers: &[SentAnswer]) -> Result<GetPromptResult, String> {
    let answer = answers.first().ok_or("the listener wrote no prompt")?;
    let content = match said(organism, answer) {
        Said::Fault { text, .. } => return Err(text),
        Said::Json(_, text) => {
            return Ok(GetPromptResult::new(vec![PromptMessage::new_text(Role::User, text)]));
        }
        Said::Content(content) => content,
    };
    let message = |block: Block| {
        let is_own = role(&block) == Some("assistant");
        PromptMessage::new(if is_own { Role::Assistant } else { Role::User }, shown(block))
    };
    Ok(GetPromptResult::new(content.blocks.into_iter().map(message).collect()))
}

fn role(block: &Block) -> Option<&str> {
    match block {
        Block::Text(text) => text.role.as_deref(),
        Block::Image(media) | Block::Audio(media) => media.role.as_deref(),
        Block::Resource(resource) => resource.role.as_deref(),
        Block::Link(link) => link.role.as_deref(),
        Block::Structured(_) => None,
    }
}

/// A resource that a listener read.
///
/// # Errors
/// The words of a fault.
pub(super) fn resource(organism: &Organism, uri: &str, answers: &[SentAnswer]) -> Result<ReadResourceResult, String> {
    let answer = answers.first().ok_or("the listener read nothing")?;
    let of_json = |json: String| ResourceContents::text(json, uri).with_mime_type("application/json");
    let content = match said(organism, answer) {
        Said::Fault { text, .. } => return Err(text),
        Said::Json(value, text) => {
            let text = if value.is_string() { value.to_string() } else { text };
            return Ok(ReadResourceResult::new(vec![of_json(text)]));
        }
        Said::Content(content) => content,
    };
    let read = |block: Block| match block {
        Block::Resource(resource) => contents(resource.uri, resource.mime, resource.body),
        Block::Text(text) => ResourceContents::text(text.text, uri).with_mime_type("text/plain"),
        Block::Image(media) | Block::Audio(media) => ResourceContents::blob(media.data, uri).with_mime_type(media.mime),
        Block::Link(link) => ResourceContents::text(link.uri, uri).with_mime_type("text/uri-list"),
        Block::Structured(structured) => of_json(structured.json),
    };
    Ok(ReadResourceResult::new(content.blocks.into_iter().map(read).collect()))
}
