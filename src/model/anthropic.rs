//! Messages, of Anthropic.

use serde_json::{Value, json};

use super::reply::{Grown, count, reported, text};
use super::{Finish, ModelPrompt, Setback};

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

/// Takes an event of an answer.
pub(super) fn take(grown: &mut Grown, event: &Value) -> Result<(), Setback> {
    match text(event, "type").unwrap_or_default() {
        "error" => return Err(reported(event.get("error").unwrap_or(event))),
        "message_start" => {
            let message = event.get("message").unwrap_or(event);
            text(message, "model").unwrap_or_default().clone_into(&mut grown.model);
            message.get("usage").into_iter().for_each(|usage| note(grown, usage));
            // A placeholder: the tokens of the answer are counted as it ends.
            grown.usage.output = 0;
        }
        kind @ ("content_block_start" | "content_block_delta") => {
            let part = event.get(if kind == "content_block_start" { "content_block" } else { "delta" });
            grown.text.push_str(part.and_then(|part| text(part, "text")).unwrap_or_default());
        }
        "message_delta" => {
            let reason = event.get("delta").and_then(|delta| text(delta, "stop_reason"));
            if let Some(reason) = reason {
                grown.end(match reason {
                    "end_turn" | "stop_sequence" => Finish::Whole,
                    "max_tokens" | "model_context_window_exceeded" => Finish::Cut,
                    other => Finish::Withheld(other.to_owned()),
                });
            }
            event.get("usage").into_iter().for_each(|usage| note(grown, usage));
        }
        "message_stop" => grown.is_over = true,
        _ => {}
    }
    Ok(())
}

/// Notes tokens. `input_tokens` leaves out tokens that were in the cache; later counts are those of the whole answer.
fn note(grown: &mut Grown, usage: &Value) {
    if usage.get("input_tokens").is_some_and(Value::is_u64) {
        grown.usage.cached = count(usage, "cache_read_input_tokens");
        let written = count(usage, "cache_creation_input_tokens");
        grown.usage.input = count(usage, "input_tokens").saturating_add(grown.usage.cached).saturating_add(written);
    }
    grown.usage.output = count(usage, "output_tokens").max(grown.usage.output);
}
