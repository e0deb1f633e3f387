//! Responses of OpenAI.

use serde_json::{Value, json};

use super::answer::Answer;
use super::request::{Asked, last, text, turns};
use super::{Protocol, named};

pub(super) struct Responses;

impl Protocol for Responses {
    fn asked(body: &Value) -> Result<Asked, String> {
        let asked = Asked::read(body, &["max_output_tokens"])?;
        let last = match &body["input"] {
            Value::String(text) => text.clone(),
            _ => last(turns(body, "input")?, is_models, said),
        };
        let mut tools = Vec::new();
        name_tools(&body["tools"], None, &mut tools);
        Ok(Asked { last, tools, ..asked })
    }

    fn whole(answer: &Answer) -> Value {
        let items = items(answer, true);
        response(answer, if answer.is_cut { "incomplete" } else { "completed" }, items)
    }

    fn begin(answer: &Answer) -> Vec<Value> {
        let started = || response(answer, "in_progress", Vec::new());
        let mut events = vec![
            json!({ "type": "response.created", "response": started() }),
            json!({ "type": "response.in_progress", "response": started() }),
        ];
        if let Some(item) = message(answer, false) {
            events.push(json!({ "type": "response.output_item.added", "output_index": 0, "item": item }));
            events.push(of_part(answer, "response.content_part.added", json!({ "part": part("") })));
        }
        events
    }

    fn piece(answer: &Answer, text: &str) -> Value {
        of_part(answer, "response.output_text.delta", json!({ "delta": text, "logprobs": [] }))
    }

    fn end(answer: &Answer) -> Vec<Value> {
        let mut events = Vec::new();
        let message = message(answer, true);
        let index = usize::from(message.is_some());
        if let Some(item) = message {
            events.push(of_part(answer, "response.output_text.done", json!({ "text": answer.text, "logprobs": [] })));
            events.push(of_part(answer, "response.content_part.done", json!({ "part": part(&answer.text) })));
            events.push(json!({ "type": "response.output_item.done", "output_index": 0, "item": item }));
        }
        if let Some((begun, done)) = call(answer, false).zip(call(answer, true)) {
            let id = answer.id("fc");
            let arguments = done["arguments"].clone();
            events.push(json!({ "type": "response.output_item.added", "output_index": index, "item": begun }));
            events.push(json!({
                "type": "response.function_call_arguments.delta", "item_id": id, "output_index": index, "delta": arguments,
            }));
            events.push(json!({
                "type": "response.function_call_arguments.done", "item_id": id, "output_index": index,
                "name": done["name"], "arguments": arguments,
            }));
            events.push(json!({ "type": "response.output_item.done", "output_index": index, "item": done }));
        }
        let kind = if answer.is_cut { "response.incomplete" } else { "response.completed" };
        events.push(json!({ "type": kind, "response": Self::whole(answer) }));
        events
    }

    fn frame(number: u64, mut event: Value) -> String {
        event["sequence_number"] = number.into();
        named(&event)
    }
}

/// Returns whether an item was written by the model.
fn is_models(item: &Value) -> bool {
    let kind = item["type"].as_str().unwrap_or("message");
    match kind {
        "message" => item["role"] == "assistant",
        _ => !kind.ends_with("_output"),
    }
}

/// The text of an item that is not the model's, but for instructions.
fn said(item: &Value) -> Option<String> {
    match item.get("output") {
        Some(output) => Some(text(output)),
        None => (!matches!(item["role"].as_str(), Some("system" | "developer"))).then(|| text(&item["content"])),
    }
}

/// Collects the names of functions: `namespace.name` in a namespace, since the name of a function has no dot.
fn name_tools(tools: &Value, namespace: Option<&str>, names: &mut Vec<String>) {
    for tool in tools.as_array().into_iter().flatten() {
        let Some(name) = tool["name"].as_str() else { continue };
        match (tool["type"].as_str(), namespace) {
            (Some("function"), Some(namespace)) => names.push(format!("{namespace}.{name}")),
            (Some("function"), None) => names.push(name.to_owned()),
            (Some("namespace"), None) => name_tools(&tool["tools"], Some(name), names),
            _ => {}
        }
    }
}

fn response(answer: &Answer, status: &str, output: Vec<Value>) -> Value {
    let Answer { input, output: tokens, .. } = answer;
    let usage = json!({
        "input_tokens": input, "input_tokens_details": { "cached_tokens": 0 },
        "output_tokens": tokens, "output_tokens_details": { "reasoning_tokens": 0 }, "total_tokens": input + tokens,
    });
    let cut = (status == "incomplete").then(|| json!({ "reason": "max_output_tokens" }));
    json!({
        "id": answer.id("resp"), "object": "response", "created_at": answer.created, "status": status,
        "background": false, "error": null, "incomplete_details": cut, "instructions": null, "metadata": {},
        "model": answer.model, "output": output, "parallel_tool_calls": true, "temperature": null,
        "tool_choice": "auto", "tools": [], "top_p": null,
        "usage": (status != "in_progress").then_some(usage),
    })
}

fn items(answer: &Answer, is_done: bool) -> Vec<Value> {
    message(answer, is_done).into_iter().chain(call(answer, is_done)).collect()
}

/// The item of the text; none if there is only a call.
fn message(answer: &Answer, is_done: bool) -> Option<Value> {
    let content: Vec<Value> = if is_done { vec![part(&answer.text)] } else { Vec::new() };
    (!answer.text.is_empty() || answer.call.is_none()).then(|| {
        json!({
            "type": "message", "id": answer.id("msg"), "status": status(is_done), "role": "assistant", "content": content,
        })
    })
}

fn call(answer: &Answer, is_done: bool) -> Option<Value> {
    let call = answer.call.as_ref()?;
    let arguments = if is_done { &*call.arguments } else { "" };
    let (namespace, name) = match call.name.split_once('.') {
        Some((namespace, name)) => (Some(namespace), name),
        None => (None, &*call.name),
    };
    let mut item = json!({
        "type": "function_call", "id": answer.id("fc"), "call_id": answer.id("call"), "name": name,
        "arguments": arguments, "status": status(is_done),
    });
    if let Some(namespace) = namespace {
        item["namespace"] = namespace.into();
    }
    Some(item)
}

fn status(is_done: bool) -> &'static str {
    if is_done { "completed" } else { "in_progress" }
}

fn part(text: &str) -> Value {
    json!({ "type": "output_text", "text": text, "annotations": [], "logprobs": [] })
}

/// An event of the text's part.
fn of_part(answer: &Answer, kind: &str, more: Value) -> Value {
    let mut event = json!({ "type": kind, "item_id": answer.id("msg"), "output_index": 0, "content_index": 0 });
    for (name, value) in more.as_object().into_iter().flatten() {
        event[name] = value.clone();
    }
    event
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_turn_is_all_behind_the_models_items() {
        let user = |text: &str| json!({ "role": "user", "content": [{ "type": "input_text", "text": text }] });
        let body = json!({
            "model": "m",
            "input": [
                user("u"), { "type": "reasoning", "summary": [] },
                { "type": "function_call", "call_id": "c", "name": "order", "arguments": "{}" },
                { "type": "function_call_output", "call_id": "c", "output": "r" },
                { "type": "function_call_output", "call_id": "d", "output": [{ "type": "input_text", "text": "s" }] },
                { "type": "message", "role": "developer", "content": "d" },
            ],
            "tools": [
                { "type": "function", "name": "shell" }, { "type": "web_search" },
                { "type": "namespace", "name": "mcp__shop", "tools": [{ "type": "function", "name": "order" }] },
            ],
        });
        let asked = Responses::asked(&body).unwrap();
        assert_eq!(asked.last, "r\ns");
        assert_eq!(asked.tools, ["shell", "mcp__shop.order"]);
        assert_eq!(Responses::asked(&json!({ "model": "m", "input": "u" })).unwrap().last, "u");
        assert_eq!(Responses::asked(&json!({ "model": "m", "input": [user("u")] })).unwrap().last, "u");
        assert!(Responses::asked(&json!({ "model": "m" })).unwrap_err().starts_with("input: "));
    }
}
