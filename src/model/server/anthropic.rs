//! Messages of Anthropic.

use serde_json::{Value, json};

use super::answer::Answer;
use super::request::{Asked, last, text, turns};
use super::{Protocol, named};

pub(super) struct Messages;

/// Reads a request whose tokens are counted: it needs no limit.
///
/// # Errors
/// The member that is wrong, and what to write.
pub(super) fn counted(body: &Value) -> Result<Asked, String> {
    let asked = Asked::read(body, &["max_tokens"])?;
    let last = last(
        turns(body, "messages")?,
        |turn| turn["role"] == "assistant",
        |turn| (turn["role"] != "system").then(|| text(&turn["content"])),
    );
    let tools = body["tools"].as_array().into_iter().flatten();
    let tools = tools.filter_map(|tool| tool["name"].as_str().map(str::to_owned)).collect();
    Ok(Asked { last, tools, ..asked })
}

impl Protocol for Messages {
    fn asked(body: &Value) -> Result<Asked, String> {
        let asked = counted(body)?;
        match body["max_tokens"].is_null() {
            true => Err("max_tokens: write the most tokens of the answer, such as 1024".to_owned()),
            false => Ok(asked),
        }
    }

    fn whole(answer: &Answer) -> Value {
        let mut message = opened(answer);
        let text = (!answer.text.is_empty()).then(|| json!({ "type": "text", "text": answer.text }));
        let call = answer.call.as_ref().map(|call| {
            let input: Value = serde_json::from_str(&call.arguments).unwrap_or_default();
            json!({ "type": "tool_use", "id": answer.id("toolu"), "name": call.name, "input": input })
        });
        message["content"] = text.into_iter().chain(call).collect();
        message["stop_reason"] = stop(answer).into();
        message["usage"]["output_tokens"] = answer.output.into();
        message
    }

    fn begin(answer: &Answer) -> Vec<Value> {
        let mut events = vec![json!({ "type": "message_start", "message": opened(answer) })];
        if !answer.text.is_empty() {
            let block = json!({ "type": "text", "text": "" });
            events.push(json!({ "type": "content_block_start", "index": 0, "content_block": block }));
        }
        events
    }

    fn piece(_: &Answer, text: &str) -> Value {
        let delta = json!({ "type": "text_delta", "text": text });
        json!({ "type": "content_block_delta", "index": 0, "delta": delta })
    }

    fn end(answer: &Answer) -> Vec<Value> {
        let has_text = !answer.text.is_empty();
        let stopped = |index: u64| json!({ "type": "content_block_stop", "index": index });
        let mut events: Vec<Value> = has_text.then(|| stopped(0)).into_iter().collect();
        if let Some(call) = &answer.call {
            let index = u64::from(has_text);
            let block = json!({ "type": "tool_use", "id": answer.id("toolu"), "name": call.name, "input": {} });
            let delta = json!({ "type": "input_json_delta", "partial_json": call.arguments });
            events.push(json!({ "type": "content_block_start", "index": index, "content_block": block }));
            events.push(json!({ "type": "content_block_delta", "index": index, "delta": delta }));
            events.push(stopped(index));
        }
        let delta = json!({ "stop_reason": stop(answer), "stop_sequence": null });
        let usage = json!({ "output_tokens": answer.output });
        events.push(json!({ "type": "message_delta", "delta": delta, "usage": usage }));
        events.push(json!({ "type": "message_stop" }));
        events
    }

    fn frame(_: u64, event: Value) -> String {
        named(&event)
    }
}

/// The message before its content.
fn opened(answer: &Answer) -> Value {
    json!({
        "id": answer.id("msg"), "type": "message", "role": "assistant", "model": answer.model, "content": [],
        "stop_reason": null, "stop_sequence": null,
        "usage": { "input_tokens": answer.input, "output_tokens": 0 },
    })
}

fn stop(answer: &Answer) -> &'static str {
    match (answer.is_cut, &answer.call) {
        (true, _) => "max_tokens",
        (false, Some(_)) => "tool_use",
        (false, None) => "end_turn",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_has_a_limit_and_the_results_of_calls_are_its_last_turn() {
        let result =
            json!([{ "type": "tool_result", "tool_use_id": "t", "content": [{ "type": "text", "text": "r" }] }]);
        let mut body = json!({
            "model": "m", "max_tokens": 9, "tools": [{ "name": "order", "input_schema": {} }],
            "messages": [
                { "role": "user", "content": "u" }, { "role": "assistant", "content": [] },
                { "role": "user", "content": result },
            ],
        });
        let asked = Messages::asked(&body).unwrap();
        assert_eq!((&*asked.last, asked.most, asked.tools), ("r", 9, vec!["order".to_owned()]));
        body["max_tokens"] = Value::Null;
        assert!(Messages::asked(&body).unwrap_err().starts_with("max_tokens: "));
        assert!(counted(&body).is_ok());
    }
}
