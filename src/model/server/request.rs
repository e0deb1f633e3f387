//! Requests for an answer, as a script sees them in any protocol.

use serde_json::Value;

use crate::model::prompt::BYTES_A_TOKEN;

/// A request.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Asked {
    pub(super) model: String,
    /// The texts behind the last turn of the model, such as results of its calls.
    pub(super) last: String,
    /// The names of the tools that the model may call.
    pub(super) tools: Vec<String>,
    /// Tokens of the request, as estimated.
    pub(super) input: u64,
    /// Tokens of the answer, at most.
    pub(super) most: u64,
    pub(super) streams: bool,
    /// Whether a stream of Chat Completions ends with the tokens.
    pub(super) counts: bool,
}

impl Asked {
    /// Reads the members that all protocols have; `most` names those with the limit of tokens.
    ///
    /// # Errors
    /// The member that is wrong, and what to write.
    pub(super) fn read(body: &Value, most: &[&str]) -> Result<Self, String> {
        if !body.is_object() {
            return Err("the body is no object: write {\"model\": …}".to_owned());
        }
        let model = body["model"].as_str().filter(|model| !model.is_empty());
        let model = model.ok_or("model: write the name of a model, such as \"scripted\"")?.to_owned();
        let limit = most.iter().find_map(|name| Some((*name, body.get(*name).filter(|value| !value.is_null())?)));
        let most = match limit {
            None => u64::MAX,
            Some((name, value)) => value
                .as_u64()
                .filter(|most| *most > 0)
                .ok_or_else(|| format!("{name}: write a whole number of tokens, at least 1"))?,
        };
        let streams = match body.get("stream") {
            None | Some(Value::Null) => false,
            Some(Value::Bool(streams)) => *streams,
            Some(_) => return Err("stream: write true or false".to_owned()),
        };
        let input = (body.to_string().len() as u64).div_ceil(BYTES_A_TOKEN);
        Ok(Self { model, input, most, streams, ..Self::default() })
    }
}

/// The list of turns in a member; not empty.
///
/// # Errors
/// The member, and what to write.
pub(super) fn turns<'b>(body: &'b Value, name: &str) -> Result<&'b [Value], String> {
    match body[name].as_array() {
        Some(turns) if !turns.is_empty() => Ok(turns),
        _ => Err(format!("{name}: write a list of at least one message")),
    }
}

/// The texts of the turns behind the last one of the model, a line or more each.
pub(super) fn last<'b>(
    turns: &'b [Value],
    is_models: impl Fn(&Value) -> bool,
    text: impl Fn(&'b Value) -> Option<String>,
) -> String {
    let behind = turns.iter().rposition(is_models).map_or(0, |at| at + 1);
    turns[behind..].iter().filter_map(text).filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n")
}

/// The text of a content: a text, or the texts of its parts, and of the results of calls among them.
pub(super) fn text(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let one = |part: &Value| match &part["text"] {
                Value::String(text) => text.clone(),
                _ => text(&part["content"]),
            };
            parts.iter().map(one).filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n")
        }
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_content_is_all_of_its_texts() {
        let parts = json!([
            { "type": "text", "text": "a" },
            { "type": "image_url", "image_url": {} },
            { "type": "tool_result", "tool_use_id": "1", "content": [{ "type": "text", "text": "b" }] },
            { "type": "tool_result", "tool_use_id": "2", "content": "c" },
        ]);
        assert_eq!(text(&parts), "a\nb\nc");
        assert_eq!(text(&json!("a")), "a");
        assert_eq!(text(&Value::Null), "");
    }

    #[test]
    fn members_that_are_wrong_are_named() {
        for (body, named) in [
            (json!([]), "object"),
            (json!({}), "model"),
            (json!({ "model": "" }), "model"),
            (json!({ "model": "m", "stream": "yes" }), "stream"),
            (json!({ "model": "m", "max_tokens": 0 }), "max_tokens"),
            (json!({ "model": "m", "max_tokens": "3" }), "max_tokens"),
        ] {
            let why = Asked::read(&body, &["max_tokens"]).unwrap_err();
            assert!(why.contains(named), "{body}: {why}");
        }
        let asked = Asked::read(&json!({ "model": "m", "max_tokens": null }), &["max_tokens"]).unwrap();
        assert_eq!((asked.most, asked.streams, asked.input), (u64::MAX, false, 8));
    }
}
