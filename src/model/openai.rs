//! Chat Completions: OpenAI, and the many that speak as it does (vLLM, llama.cpp, OpenRouter, Groq).

use serde_json::{Value, json};

use super::error::{error_in, reported};
use super::json::is_strict;
use super::part::{broken, holds_words, is_blank, is_thought, judge_role, take_content};
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
    if let Some(schema) = prompt.answer_schema.as_deref() {
        let format = json!({ "name": "answer", "schema": schema, "strict": is_strict(schema) });
        body["response_format"] = json!({ "type": "json_schema", "json_schema": format });
    }
    body
}

/// Takes an event of an answer, or a whole one.
pub(super) fn take(grown: &mut Grown, event: &Value) -> Result<(), Setback> {
    let usage = event.get("usage").filter(|usage| usage.is_object());
    usage.into_iter().for_each(|usage| note(grown, usage));
    if let Some(error) = error_in(event) {
        return Err(reported(error));
    }
    if let Some(model) = text(event, "model").filter(|_| grown.model.is_empty()) {
        model.clone_into(&mut grown.model);
    }
    match event.get("choices") {
        Some(Value::Array(choices)) if !choices.is_empty() => {
            choices.iter().try_for_each(|choice| take_choice(grown, choice))?;
        }
        None | Some(Value::Null | Value::Array(_)) if is_blank(event, &["choices", "usage"]) => {
            if usage.is_some() {
                grown.counted();
            }
        }
        _ => return Err(broken("an event has no choices of a known form", &event.to_string())),
    }
    Ok(())
}

/// Takes the one choice that is asked for. Another one with words is not mixed into it, and may be a part of it under a wrong
/// number; one without words is no matter.
fn take_choice(grown: &mut Grown, choice: &Value) -> Result<(), Setback> {
    let fail = |why: &str| Err(broken(why, &choice.to_string()));
    if !matches!(choice.get("index"), None | Some(Value::Null)) && !is_zero(&choice["index"]) {
        let is_blank = |delta: &Value| delta.is_null() || delta.is_object() && !has_part(delta);
        let is_silent = ["delta", "message"].iter().all(|field| choice.get(field).is_none_or(is_blank));
        let is_silent = is_silent && !holds_words(choice, "text");
        return if is_silent { Ok(()) } else { fail("it has a choice beside the first one") };
    }
    let found = ["delta", "message"].into_iter().filter_map(|field| choice.get(field)).find(|delta| !delta.is_null());
    let delta = found.unwrap_or(&Value::Null);
    if !choice.is_object() || !(delta.is_null() || delta.is_object()) {
        return fail("a choice, or its delta, is no object");
    }
    judge_role(delta)?;
    let is_part = has_part(delta);
    if is_part {
        grown.flow();
    }
    let begin = grown.text.len();
    if !is_thought(delta) {
        take_content(grown, delta.get("content").unwrap_or(&Value::Null))?;
    }
    // Some repeat what they say, or say all of it once more at the end.
    let message = choice.get("message").and_then(|message| text(message, "content"));
    let mut beside = [text(choice, "text"), text(delta, "text"), message].into_iter().flatten();
    if beside.any(|words| !words.is_empty() && words != &grown.text[begin..] && words != grown.text)
        && !is_thought(delta)
    {
        return fail("it has words beside the content of its delta");
    }
    grown.refusal.push_str(text(delta, "refusal").unwrap_or_default());
    if let Some(reason) = text(choice, "finish_reason") {
        grown.end(reason, is_part);
    }
    Ok(())
}

fn is_zero(index: &Value) -> bool {
    index.as_f64() == Some(0.0) || index == "0"
}

fn note(grown: &mut Grown, usage: &Value) {
    // Some count along, and some end with zeros: counts only grow.
    grown.usage.input = grown.usage.input.max(count(usage, "prompt_tokens"));
    // Some leave thoughts out of the tokens of the completion, but bill them: the total has them.
    let thoughts_included = count(usage, "total_tokens").saturating_sub(grown.usage.input);
    grown.usage.output = grown.usage.output.max(count(usage, "completion_tokens")).max(thoughts_included);
    let cached = usage.get("prompt_tokens_details").map_or(0, |details| count(details, "cached_tokens"));
    grown.usage.cached = grown.usage.cached.max(cached).min(grown.usage.input);
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
