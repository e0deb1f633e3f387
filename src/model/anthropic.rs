//! Messages, of Anthropic.

use serde_json::{Value, json};

use super::error::{error_in, reported};
use super::part::{broken, holds_words, is_blank, is_thought, judge_role, take_content, take_part};
use super::reply::{Grown, count, text};
use super::{ModelPrompt, Setback};

/// The header that a request must have.
pub(super) const VERSION: (&str, &str) = ("anthropic-version", "2023-06-01");

/// The body of a request. The system prompt is the same each time: the provider is to keep it.
pub(super) fn body(model: &str, prompt: &ModelPrompt) -> Value {
    let turns = prompt.turns.iter().map(|turn| json!({ "role": turn.role.as_str(), "content": turn.text }));
    let mut body = json!({
        "model": model,
        "max_tokens": prompt.max_tokens,
        "system": [{ "type": "text", "text": prompt.system, "cache_control": { "type": "ephemeral" } }],
        "messages": turns.collect::<Vec<_>>(),
        "stream": true,
    });
    if let Some(temperature) = prompt.temperature {
        body["temperature"] = temperature.as_f64().into();
    }
    if let Some(schema) = prompt.answer_schema.as_deref() {
        body["output_config"] = json!({ "format": { "type": "json_schema", "schema": schema } });
    }
    body
}

/// Takes an event of an answer, or a whole one.
pub(super) fn take(grown: &mut Grown, event: &Value) -> Result<(), Setback> {
    if let Some(error) = error_in(event) {
        event.get("usage").into_iter().for_each(|usage| note(grown, usage));
        return Err(reported(error));
    }
    match text(event, "type").unwrap_or_default() {
        "message_start" => {
            let message = event.get("message").unwrap_or(event);
            judge_role(message)?;
            begin(grown, message);
            // A placeholder: the tokens of the answer are counted as it ends.
            grown.usage.output = 0;
            take_message(grown, message)
        }
        "message" => {
            judge_role(event)?;
            begin(grown, event);
            take_message(grown, event)?;
            end(grown, event);
            Ok(())
        }
        "content_block_start" => match event.get("content_block").filter(|block| block.is_object()) {
            Some(block) => {
                let index = count(event, "index");
                match text(block, "type") {
                    Some("text") => grown.unread_blocks.remove(&index),
                    _ => grown.unread_blocks.insert(index),
                };
                flow(grown, block);
                take_part(grown, block)
            }
            None => Err(broken("a block of its content is no object", &event.to_string())),
        },
        "content_block_delta" => take_delta(grown, event),
        "message_delta" => {
            event.get("usage").into_iter().for_each(|usage| note(grown, usage));
            let delta = event.get("delta").filter(|delta| !delta.is_null());
            if delta.is_some_and(|delta| !is_blank(delta, &["stop_reason", "stop_sequence", "container"])) {
                return Err(broken("the end of a message has words", &event.to_string()));
            }
            delta.into_iter().for_each(|delta| end(grown, delta));
            Ok(())
        }
        "message_stop" if is_blank(event, &[]) => {
            grown.is_over = true;
            Ok(())
        }
        // New types may come, and are no matter unless they bring a piece of a message.
        "" if is_blank(event, &[]) => Ok(()),
        "" | "message_stop" => Err(broken("an event has words and no type that has any", &event.to_string())),
        _ if ["delta", "content_block", "content", "message"].iter().all(|field| !holds_words(event, field)) => Ok(()),
        _ => Err(broken("an event of an unknown type has a piece of a message", &event.to_string())),
    }
}

fn begin(grown: &mut Grown, message: &Value) {
    text(message, "model").unwrap_or_default().clone_into(&mut grown.model);
    message.get("usage").into_iter().for_each(|usage| note(grown, usage));
}

fn take_message(grown: &mut Grown, message: &Value) -> Result<(), Setback> {
    let content = message.get("content").unwrap_or(&Value::Null);
    content.as_array().into_iter().flatten().for_each(|part| flow(grown, part));
    take_content(grown, content)
}

/// Takes a piece of a block: text in a block of text, or in one whose beginning did not come.
fn take_delta(grown: &mut Grown, event: &Value) -> Result<(), Setback> {
    let delta = event.get("delta").unwrap_or(&Value::Null);
    flow(grown, delta);
    match (text(delta, "type"), delta.get("text")) {
        (Some(_), _) if grown.unread_blocks.contains(&count(event, "index")) || is_thought(delta) => Ok(()),
        (Some("text_delta"), Some(Value::String(text))) => {
            grown.text.push_str(text);
            Ok(())
        }
        (Some("thinking_delta" | "signature_delta" | "input_json_delta" | "citations_delta"), _) => Ok(()),
        _ => Err(broken("a piece of a block is of an unknown type", &event.to_string())),
    }
}

/// Notes that a part of an answer comes, unless it is empty: text, thoughts, a call.
fn flow(grown: &mut Grown, part: &Value) {
    let is_part = part.as_object().into_iter().flatten().any(|(name, value)| {
        name != "type" && !matches!(value, Value::Null) && value.as_str().is_none_or(|text| !text.is_empty())
    });
    if is_part {
        grown.flow();
    }
}

fn end(grown: &mut Grown, message: &Value) {
    if let Some(reason) = text(message, "stop_reason") {
        grown.end(reason, false);
    }
}

/// Notes tokens. `input_tokens` leaves out tokens that were in the cache, or that were written there; later counts are those of the whole answer.
fn note(grown: &mut Grown, usage: &Value) {
    if usage.get("input_tokens").is_some_and(Value::is_number) {
        grown.usage.cached = count(usage, "cache_read_input_tokens");
        grown.usage.written = count(usage, "cache_creation_input_tokens");
        let elsewhere = grown.usage.cached.saturating_add(grown.usage.written);
        grown.usage.input = count(usage, "input_tokens").saturating_add(elsewhere);
    }
    grown.usage.output = count(usage, "output_tokens").max(grown.usage.output);
}
