//! `/api/chat`, of Ollama.

use serde_json::{Value, json};

use super::error::{error_in, reported};
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
    json!({ "model": model, "messages": messages, "stream": true, "options": options })
}

/// Takes a line of an answer.
pub(super) fn take(grown: &mut Grown, line: &Value) -> Result<(), Setback> {
    if let Some(error) = error_in(line) {
        return Err(reported(error));
    }
    if let Some(model) = text(line, "model").filter(|_| grown.model.is_empty()) {
        model.clone_into(&mut grown.model);
    }
    let message = line.get("message").unwrap_or(&Value::Null);
    if ["content", "thinking"].into_iter().any(|field| text(message, field).is_some_and(|text| !text.is_empty())) {
        grown.flow();
    }
    grown.text.push_str(text(message, "content").unwrap_or_default());
    if line.get("done").and_then(Value::as_bool) == Some(true) {
        // Older servers give no reason.
        grown.end(text(line, "done_reason").unwrap_or_default(), false);
        grown.usage.input = count(line, "prompt_eval_count");
        grown.usage.output = count(line, "eval_count");
        grown.is_over = true;
    }
    Ok(())
}
