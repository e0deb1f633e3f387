//! Chat Completions of OpenAI.

use serde_json::{Value, json};

use super::Protocol;
use super::answer::Answer;
use super::request::{Asked, last, text, turns};

pub(super) struct Chat;

impl Protocol for Chat {
    const LAST: &'static str = "data: [DONE]\n\n";

    fn asked(body: &Value) -> Result<Asked, String> {
        let asked = Asked::read(body, &["max_completion_tokens", "max_tokens"])?;
        let of_user = |turn: &Value| {
            (!matches!(turn["role"].as_str(), Some("system" | "developer"))).then(|| text(&turn["content"]))
        };
        let last = last(turns(body, "messages")?, |turn| turn["role"] == "assistant", of_user);
        let tools = body["tools"].as_array().into_iter().flatten();
        let tools = tools.filter_map(|tool| tool["function"]["name"].as_str().map(str::to_owned)).collect();
        let counts = body["stream_options"]["include_usage"] == true;
        Ok(Asked { last, tools, counts, ..asked })
    }

    fn whole(answer: &Answer) -> Value {
        let content = (!answer.text.is_empty() || answer.call.is_none()).then_some(&answer.text);
        let mut message = json!({ "role": "assistant", "content": content, "refusal": null });
        if let Some(call) = called(answer) {
            message["tool_calls"] = json!([call]);
        }
        let choice = json!({ "index": 0, "message": message, "logprobs": null, "finish_reason": finish(answer) });
        json!({
            "id": answer.id("chatcmpl"), "object": "chat.completion", "created": answer.created, "model": answer.model,
            "choices": [choice], "usage": usage(answer),
        })
    }

    fn begin(answer: &Answer) -> Vec<Value> {
        vec![chunk(answer, json!({ "role": "assistant", "content": "" }), None)]
    }

    fn piece(answer: &Answer, text: &str) -> Value {
        chunk(answer, json!({ "content": text }), None)
    }

    fn end(answer: &Answer) -> Vec<Value> {
        let mut events = Vec::new();
        if let Some(mut call) = called(answer) {
            call["index"] = 0.into();
            events.push(chunk(answer, json!({ "tool_calls": [call] }), None));
        }
        events.push(chunk(answer, json!({}), Some(finish(answer))));
        if answer.counts {
            let mut counted = chunk(answer, json!({}), None);
            (counted["choices"], counted["usage"]) = (json!([]), usage(answer));
            events.push(counted);
        }
        events
    }

    fn frame(_: u64, event: Value) -> String {
        format!("data: {event}\n\n")
    }
}

fn chunk(answer: &Answer, delta: Value, finish: Option<&str>) -> Value {
    json!({
        "id": answer.id("chatcmpl"), "object": "chat.completion.chunk", "created": answer.created, "model": answer.model,
        "choices": [{ "index": 0, "delta": delta, "logprobs": null, "finish_reason": finish }],
    })
}

fn called(answer: &Answer) -> Option<Value> {
    let call = answer.call.as_ref()?;
    let function = json!({ "name": call.name, "arguments": call.arguments });
    Some(json!({ "id": answer.id("call"), "type": "function", "function": function }))
}

fn finish(answer: &Answer) -> &'static str {
    match (answer.is_cut, &answer.call) {
        (true, _) => "length",
        (false, Some(_)) => "tool_calls",
        (false, None) => "stop",
    }
}

fn usage(answer: &Answer) -> Value {
    let Answer { input, output, .. } = answer;
    json!({ "prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::openai::END;

    #[test]
    fn the_last_line_is_that_which_clients_await() {
        assert_eq!(Chat::LAST, format!("data: {END}\n\n"));
    }

    #[test]
    fn the_last_turn_is_all_behind_the_models() {
        let body = json!({
            "model": "m", "tools": [{ "type": "function", "function": { "name": "order" } }],
            "messages": [
                { "role": "system", "content": "s" }, { "role": "user", "content": "u" },
                { "role": "assistant", "content": null, "tool_calls": [] },
                { "role": "tool", "tool_call_id": "c", "content": "r" }, { "role": "user", "content": "v" },
            ],
        });
        let asked = Chat::asked(&body).unwrap();
        assert_eq!((&*asked.last, asked.tools), ("r\nv", vec!["order".to_owned()]));
        let first = json!({ "model": "m", "messages": [{ "role": "system", "content": "s" }, { "role": "user", "content": "u" }] });
        assert_eq!(Chat::asked(&first).unwrap().last, "u", "the system prompt is no turn");
        assert!(Chat::asked(&json!({ "model": "m", "messages": [] })).unwrap_err().starts_with("messages: "));
    }
}
