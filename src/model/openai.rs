//! Chat Completions: OpenAI, and the many that speak as it does (vLLM, llama.cpp, OpenRouter, Groq).

use serde_json::{Value, json};

use super::reply::{Grown, count, reported, text};
use super::{Finish, ModelPrompt, Setback};

/// The last event of an answer.
pub(super) const END: &str = "[DONE]";

/// The body of a request to a host.
pub(super) fn body(model: &str, prompt: &ModelPrompt, host: Option<&str>) -> Value {
    let system = json!({ "role": "system", "content": prompt.system });
    let turns = prompt.turns.iter().map(|turn| json!({ "role": turn.role.as_str(), "content": turn.text }));
    let messages: Vec<Value> = std::iter::once(system).chain(turns).collect();
    let mut body = json!({
        "model": model,
        "messages": messages,
        "stream": true,
        "stream_options": { "include_usage": true },
    });
    // OpenAI's newer models refuse the name that all others have kept.
    let is_theirs = host.is_some_and(|host| host == "openai.com" || host.ends_with(".openai.com"));
    body[if is_theirs { "max_completion_tokens" } else { "max_tokens" }] = prompt.max_tokens.into();
    if let Some(temperature) = prompt.temperature {
        body["temperature"] = temperature.as_f64().into();
    }
    body
}

/// Takes an event of an answer.
pub(super) fn take(grown: &mut Grown, event: &Value) -> Result<(), Setback> {
    if let Some(error) = event.get("error").filter(|error| !error.is_null()) {
        return Err(reported(error));
    }
    if let Some(model) = text(event, "model").filter(|_| grown.model.is_empty()) {
        model.clone_into(&mut grown.model);
    }
    // One answer is asked for; another one that comes all the same is not mixed into it.
    let choices = event.get("choices").and_then(Value::as_array).into_iter().flatten();
    for choice in choices.filter(|choice| count(choice, "index") == 0) {
        if let Some(delta) = choice.get("delta") {
            grown.text.push_str(text(delta, "content").unwrap_or_default());
            let parts = delta.get("content").and_then(Value::as_array).into_iter().flatten();
            parts.filter_map(|part| text(part, "text")).for_each(|piece| grown.text.push_str(piece));
            grown.refusal.push_str(text(delta, "refusal").unwrap_or_default());
        }
        if let Some(reason) = text(choice, "finish_reason") {
            grown.end(match reason {
                "stop" | "eos" => Finish::Whole,
                "length" => Finish::Cut,
                other => Finish::Withheld(other.to_owned()),
            });
        }
    }
    if let Some(usage) = event.get("usage").filter(|usage| usage.is_object()) {
        grown.usage.input = count(usage, "prompt_tokens");
        grown.usage.output = count(usage, "completion_tokens");
        let cached = usage.get("prompt_tokens_details").map_or(0, |details| count(details, "cached_tokens"));
        grown.usage.cached = cached.min(grown.usage.input);
    }
    Ok(())
}
