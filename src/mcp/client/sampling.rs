//! Requests of servers for completions of a model (sampling, revision 2025-11-25 and before): each is a call of the listener
//! that completes texts, within the budget of the conversation that the server's call is in.
#![expect(deprecated, reason = "servers of earlier revisions ask for completions so")]

use rmcp::model::{
    CreateMessageRequestParams, CreateMessageResult, ErrorCode, ErrorData, Role, SamplingMessage,
    SamplingMessageContentBlock,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use systole_core::core::Answer;
use systole_core::vocab::Fault;
use systole_xml::ladder::escape::carriable;
use systole_xml::schema::{ContractError, Payload, PayloadSchema};

use super::schemas;
use crate::mcp::NAMESPACE;
use crate::mcp::content::payloads;

/// A request of a server for the completion of a text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct Sampling {
    /// The listener whose server asks.
    #[serde(rename = "@server")]
    pub server: String,
    /// The greatest number of tokens that the server wants.
    #[serde(rename = "@tokens")]
    pub tokens: u32,
    /// The instructions of the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system: Option<String>,
    /// The messages so far.
    #[serde(default)]
    pub message: Vec<Said>,
}

/// A message of a text that is to be completed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct Said {
    /// The speaker.
    #[serde(rename = "@role")]
    pub role: Speaker,
    /// The text.
    #[serde(rename = "$text", default)]
    pub text: String,
}

/// The speaker of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Speaker {
    /// The one who asks.
    User,
    /// The model.
    Assistant,
}

/// The completion of a text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct Sampled {
    /// The text.
    #[serde(rename = "$text", default)]
    pub text: String,
}

payloads!(Sampling = "sampling", Sampled = "sampled");

/// A request as a payload.
///
/// # Errors
/// The reason why it can't be one: only texts are completed.
pub(super) fn request(server: &str, asked: CreateMessageRequestParams) -> Result<Sampling, String> {
    if asked.tools.is_some_and(|tools| !tools.is_empty()) {
        return Err("a completion has no tools here: ask without `tools`".to_owned());
    }
    let mut message = Vec::new();
    for SamplingMessage { role, content, .. } in asked.messages {
        let role = if role == Role::Assistant { Speaker::Assistant } else { Speaker::User };
        for block in content.into_vec() {
            let SamplingMessageContentBlock::Text(text) = block else {
                return Err("only texts are completed here: ask without images, sounds and calls of tools".to_owned());
            };
            message.push(Said { role, text: carriable(&text.text).into_owned() });
        }
    }
    let system = asked.system_prompt.map(|text| carriable(&text).into_owned());
    Ok(Sampling { server: server.to_owned(), tokens: asked.max_tokens, system, message })
}

/// The result for the server.
///
/// # Errors
/// The fault of the listener, in its words.
pub(super) fn result(outcome: Result<Answer, Fault>) -> Result<CreateMessageResult, ErrorData> {
    let failed = |why: String| ErrorData::new(ErrorCode::INTERNAL_ERROR, why, None);
    let answer = outcome.map_err(|fault| failed(fault.message.to_string()))?;
    let model = answer.from.to_string();
    let Sampled { text } = answer.decode::<Sampled>().map_err(|error| failed(error.to_string()))?;
    let result = CreateMessageResult::new(SamplingMessage::assistant_text(text), model);
    Ok(result.with_stop_reason(CreateMessageResult::STOP_REASON_END_TURN))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::{Value, json};
    use systole_xml::schema::{Catalog, Validator, encode};

    use super::*;

    fn asked(content: Value) -> CreateMessageRequestParams {
        let message = json!({ "role": "user", "content": content });
        serde_json::from_value(json!({ "messages": [message], "systemPrompt": "Be\u{1} brief.", "maxTokens": 7 }))
            .unwrap()
    }

    #[test]
    fn a_request_for_a_completion_is_a_payload() {
        let request = request("files", asked(json!({ "type": "text", "text": "a < b" }))).unwrap();
        assert_eq!((request.tokens, request.system.as_deref()), (7, Some("Be\u{fffd} brief.")));
        assert_eq!(request.message, [Said { role: Speaker::User, text: "a < b".to_owned() }]);
        let mut validator = Validator::new(Arc::new(Catalog::only(schemas().iter().cloned())));
        validator.validate(encode(&request).unwrap()).unwrap();
        validator.validate(encode(&Sampled { text: "so".to_owned() }).unwrap()).unwrap();
    }

    #[test]
    fn a_request_for_more_than_texts_is_refused() {
        let image = json!({ "type": "image", "data": "aGk=", "mimeType": "image/png" });
        assert!(request("files", asked(image)).unwrap_err().contains("only texts"));
        let mut with_tools = asked(json!({ "type": "text", "text": "a" }));
        let tool = json!([{ "name": "t", "inputSchema": { "type": "object" } }]);
        with_tools.tools = serde_json::from_value(tool).unwrap();
        assert!(request("files", with_tools).unwrap_err().contains("without `tools`"));
    }
}
