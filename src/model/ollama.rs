//! `/api/chat`, of Ollama.

use serde_json::{Value, json};

use super::error::{error_in, reported};
use super::part::{broken, is_blank, is_thought, judge_role, take_content};
use super::reply::{Grown, count, text};
use super::{ModelPrompt, Setback};

/// Tokens of a context, where the settings have none.
const CONTEXT: u64 = 8192;

/// The body of a request. `num_ctx` is always there: without it Ollama cuts a request that is longer than its default,
/// without an error.
pub(super) fn body(model: &str, prompt: &ModelPrompt, context: Option<u32>) -> Value {
    let system = json!({ "role": "system", "content": prompt.system });
    let turns = prompt.turns.iter().map(|turn| json!({ "role": turn.role.as_str(), "content": turn.text }));
    let messages: Vec<Value> = std::iter::once(system).chain(turns).collect();
    let context = context.map_or_else(|| prompt.estimate().max(CONTEXT), u64::from);
    let mut options = json!({ "num_predict": prompt.max_tokens, "num_ctx": context });
    if let Some(temperature) = prompt.temperature {
        options["temperature"] = temperature.as_f64().into();
    }
    let mut body = json!({ "model": model, "messages": messages, "stream": true, "options": options });
    if let Some(schema) = prompt.answer_schema.as_deref() {
        body["format"] = schema.clone();
    }
    body
}

/// Takes a line of an answer.
pub(super) fn take(grown: &mut Grown, line: &Value) -> Result<(), Setback> {
    grown.usage.input = grown.usage.input.max(count(line, "prompt_eval_count"));
    grown.usage.output = grown.usage.output.max(count(line, "eval_count"));
    if let Some(error) = error_in(line) {
        return Err(reported(error));
    }
    if let Some(model) = text(line, "model").filter(|_| grown.model.is_empty()) {
        model.clone_into(&mut grown.model);
    }
    let (message, done) = (line.get("message").unwrap_or(&Value::Null), line.get("done").unwrap_or(&Value::Null));
    let is_known = matches!(message, Value::Null | Value::Object(_)) && matches!(done, Value::Null | Value::Bool(_));
    if !is_known || !is_blank(line, &["message", "done"]) || text(message, "text").is_some_and(|text| !text.is_empty())
    {
        return Err(broken("a line is of an unknown form", &line.to_string()));
    }
    judge_role(message)?;
    let is_said = |content: &Value| content.as_str().is_none_or(|text| !text.is_empty()) && !content.is_null();
    if ["content", "thinking"].into_iter().any(|field| message.get(field).is_some_and(is_said)) {
        grown.flow();
    }
    if !is_thought(message) {
        take_content(grown, message.get("content").unwrap_or(&Value::Null))?;
    }
    if *done == Value::Bool(true) {
        // Older servers give no reason.
        grown.end(text(line, "done_reason").unwrap_or_default(), false);
        grown.is_over = true;
    }
    Ok(())
}
