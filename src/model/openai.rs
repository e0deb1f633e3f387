//! Chat Completions: OpenAI, and the many that speak as it does (vLLM, llama.cpp, OpenRouter, Groq).

use serde_json::{Value, json};

use super::error::{error_in, reported};
use super::reply::{Grown, count, text};
use super::{ModelPrompt, Setback};

/// The last event of an answer.
pub(super) const END: &str = "[DONE]";

/// The body of a request.
pub(super) fn body(model: &str, prompt: &ModelPrompt) -> Value {
    let system = json!({ "role": "system", "content": prompt.system });
    let turns = prompt.turns.iter().map(|turn| json!({ "role": turn.role.as_str(), "content": turn.text }));
    let messages: Vec<Value> = std::iter::once(system).chain(turns).collect();
    let mut body = json!({
        "model": model,
        "messages": messages,
        "stream": true,
        "stream_options": { "include_usage": true },
        "max_tokens": prompt.max_tokens,
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
    if let Some(model) = text(event, "model").filter(|_| grown.model.is_empty()) {
        model.clone_into(&mut grown.model);
    }
    let choices = event.get("choices").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    // One answer is asked for; another one that comes all the same is not mixed into it.
    for choice in choices.iter().filter(|choice| count(choice, "index") == 0) {
        let delta = choice.get("delta").or(choice.get("message")).unwrap_or(&Value::Null);
        let is_part = has_part(delta);
        if is_part {
            grown.flow();
        }
        grown.text.push_str(text(delta, "content").unwrap_or_default());
        let parts = delta.get("content").and_then(Value::as_array).into_iter().flatten();
        parts.filter_map(|part| text(part, "text")).for_each(|piece| grown.text.push_str(piece));
        grown.refusal.push_str(text(delta, "refusal").unwrap_or_default());
        if let Some(reason) = text(choice, "finish_reason") {
            grown.end(reason, is_part);
        }
    }
    if let Some(usage) = event.get("usage").filter(|usage| usage.is_object()) {
        // Some count along, and some end with zeros: counts only grow.
        grown.usage.input = grown.usage.input.max(count(usage, "prompt_tokens"));
        // Some leave thoughts out of the tokens of the completion, but bill them: the total has them.
        let thoughts_included = count(usage, "total_tokens").saturating_sub(grown.usage.input);
        grown.usage.output = grown.usage.output.max(count(usage, "completion_tokens")).max(thoughts_included);
        let cached = usage.get("prompt_tokens_details").map_or(0, |details| count(details, "cached_tokens"));
        grown.usage.cached = grown.usage.cached.max(cached).min(grown.usage.input);
        if choices.is_empty() {
            grown.counted();
        }
    }
    Ok(())
}

/// Tests for a part of an answer: text, thoughts, a refusal, a call.
fn has_part(delta: &Value) -> bool {
    let fields = delta.as_object().into_iter().flatten();
    fields.filter(|(name, _)| *name != "role").any(|(_, value)| match value {
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    })
}
