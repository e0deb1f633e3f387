//! Messages, of Anthropic.

use serde_json::{Value, json};

use super::error::{error_in, reported};
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
    body
}

/// Takes an event of an answer, or a whole one.
pub(super) fn take(grown: &mut Grown, event: &Value) -> Result<(), Setback> {
    if let Some(error) = error_in(event) {
        return Err(reported(error));
    }
    match text(event, "type").unwrap_or_default() {
        "message_start" => {
            begin(grown, event.get("message").unwrap_or(event));
            // A placeholder: the tokens of the answer are counted as it ends.
            grown.usage.output = 0;
        }
        "message" => {
            begin(grown, event);
            let parts = event.get("content").and_then(Value::as_array).into_iter().flatten();
            parts.for_each(|part| take_part(grown, part));
            end(grown, event);
        }
        "content_block_start" => event.get("content_block").into_iter().for_each(|part| take_part(grown, part)),
        "content_block_delta" => event.get("delta").into_iter().for_each(|part| take_part(grown, part)),
        "message_delta" => {
            event.get("delta").into_iter().for_each(|delta| end(grown, delta));
            event.get("usage").into_iter().for_each(|usage| note(grown, usage));
        }
        "message_stop" => grown.is_over = true,
        _ => {}
    }
    Ok(())
}

fn begin(grown: &mut Grown, message: &Value) {
    text(message, "model").unwrap_or_default().clone_into(&mut grown.model);
    message.get("usage").into_iter().for_each(|usage| note(grown, usage));
}

/// Takes a part of an answer: text, thoughts, a call.
fn take_part(grown: &mut Grown, part: &Value) {
    let is_part = part.as_object().into_iter().flatten().any(|(name, value)| {
        name != "type" && !matches!(value, Value::Null) && value.as_str().is_none_or(|text| !text.is_empty())
    });
    if is_part {
        grown.flow();
    }
    grown.text.push_str(text(part, "text").unwrap_or_default());
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
