//! Parts of an answer, as the dialects share them: which of their words are the model's answer.
//!
//! An event whose shape is not known may hold a part of the answer, and the parts around it would be another answer. So it
//! is a failure, while members that are added to a known shape are no matter.

use serde_json::Value;

use super::reply::{Grown, text};
use super::{Again, Setback};
use crate::terminal::readable;

/// Members that tell what an event is, or what was counted or filtered; no part of an answer is in them.
const NAMES: [&str; 17] = [
    "id",
    "object",
    "type",
    "index",
    "created",
    "created_at",
    "model",
    "provider",
    "usage",
    "service_tier",
    "system_fingerprint",
    "prompt_filter_results",
    "content_filter_results",
    "x_groq",
    "timings",
    "obfuscation",
    "stop_reason",
];
/// Members that hold the words of an answer in some protocol.
const CARRIERS: [&str; 14] = [
    "choices",
    "delta",
    "message",
    "text",
    "content",
    "content_block",
    "response",
    "output",
    "output_text",
    "completion",
    "generated_text",
    "token",
    "candidates",
    "data",
];

/// The setback of an answer with a hole: something in it can't be read.
pub(super) fn broken(why: &str, quoted: &str) -> Setback {
    let message = format!("its answer has a part that can't be read: {why}");
    Setback { detail: format!("{message}: {}", readable(quoted)), ..Setback::new(message, Again::Later(None)) }
}

/// Tests that an event has no words of an answer beside its own members, those that the dialect reads: none in a member that
/// may hold some, and without its own members none at all.
pub(super) fn is_blank(event: &Value, own: &[&str]) -> bool {
    let Some(fields) = event.as_object() else { return false };
    let is_known = own.iter().any(|field| fields.get(*field).is_some_and(|value| !value.is_null()));
    let may_hold = |name: &str| if is_known { CARRIERS.contains(&name) } else { !NAMES.contains(&name) };
    fields.iter().all(|(name, value)| own.contains(&name.as_str()) || !may_hold(name) || !has_words(value))
}

/// Tests that a member of an event holds words.
pub(super) fn holds_words(event: &Value, name: &str) -> bool {
    event.get(name).is_some_and(has_words)
}

fn has_words(value: &Value) -> bool {
    match value {
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => items.iter().any(has_words),
        Value::Object(fields) => fields.values().any(has_words),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Checks that the model speaks in a delta or a message.
///
/// # Errors
/// The setback of an answer with the words of another role.
pub(super) fn judge_role(message: &Value) -> Result<(), Setback> {
    let is_own = match message.get("role") {
        None | Some(Value::Null) => true,
        Some(role) => role.as_str().is_some_and(|role| {
            ["", "assistant", "model"].into_iter().any(|own| role.trim().eq_ignore_ascii_case(own))
        }),
    };
    if is_own { Ok(()) } else { Err(broken("its role is not 'assistant'", &message.to_string())) }
}

/// Tests for the flag that marks a part or a delta as a thought.
pub(super) fn is_thought(part: &Value) -> bool {
    let flags = [part.get("thought"), part.pointer("/extra_content/google/thought")];
    flags.into_iter().flatten().any(|flag| *flag == Value::Bool(true))
}

/// Takes the content of a delta or a message: a text, or a list of parts.
///
/// # Errors
/// The setback of a content that is neither.
pub(super) fn take_content(grown: &mut Grown, content: &Value) -> Result<(), Setback> {
    match content {
        Value::Null => Ok(()),
        Value::String(text) => {
            grown.text.push_str(text);
            Ok(())
        }
        Value::Array(parts) => parts.iter().try_for_each(|part| match part {
            Value::String(text) => {
                grown.text.push_str(text);
                Ok(())
            }
            part => take_part(grown, part),
        }),
        Value::Bool(_) | Value::Number(_) | Value::Object(_) => {
            Err(broken("its content is neither a text nor a list of parts", &content.to_string()))
        }
    }
}

/// Takes a part of a content: only one of the type `text` is the answer; thoughts, results of tools and parts of unknown
/// types are not.
///
/// # Errors
/// The setback of a part without a type, or without a text.
pub(super) fn take_part(grown: &mut Grown, part: &Value) -> Result<(), Setback> {
    match text(part, "type") {
        Some("text" | "output_text") if is_thought(part) => Ok(()),
        Some("text" | "output_text") => match part.get("text") {
            None | Some(Value::Null) => Ok(()),
            Some(Value::String(text)) => {
                grown.text.push_str(text);
                Ok(())
            }
            Some(_) => Err(broken("its text is none", &part.to_string())),
        },
        Some("refusal") => {
            grown.refusal.push_str(text(part, "refusal").unwrap_or_default());
            Ok(())
        }
        Some(_) => Ok(()),
        None => Err(broken("a part of its content has no type", &part.to_string())),
    }
}
