//! The payload `said`, in which text travels.

use bytes::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use systole_xml::ladder::Canonical;
use systole_xml::schema::{ContractError, Payload, PayloadSchema, decode_canonical, encode};

use super::schemas;
use crate::gateway::facade::{Problem, payload};

/// A text of a sender. Its reply is a text of the receiver.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Said {
    /// The speaker.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Speaker>,
    /// The text.
    pub text: String,
}

/// The speaker of a text. The pump stamps the sender: this counts where a listener speaks for a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Speaker {
    /// `canvas_user` or `user` for a person, `peer_agent` for an agent.
    #[serde(rename = "@kind")]
    pub kind: String,
    /// The id of the speaker.
    #[serde(rename = "@id", default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
}

impl Payload for Said {
    const NAMESPACE: &'static str = "urn:systole:chat:v1";
    const ROOT: &'static str = "said";

    fn contract() -> Result<PayloadSchema, ContractError> {
        let known = schemas().iter().find(|schema| *schema.qname() == Self::qname());
        known.cloned().ok_or_else(|| ContractError::Reserved { payload: Self::qname() })
    }
}

impl Said {
    /// Makes a text with a speaker.
    pub(super) fn by(kind: &str, id: &str, text: String) -> Self {
        Self { source: Some(Speaker { kind: kind.to_owned(), id: Some(id.to_owned()) }), text }
    }

    /// Encodes the payload.
    pub(super) fn write(&self) -> Result<Canonical, Problem> {
        encode(self).map_err(|error| Problem::unprocessable("payload", format!("the text: {error}")))
    }

    /// Decodes the payload of an envelope of the pump.
    pub(super) fn read(envelope: &Bytes) -> Option<Self> {
        decode_canonical(&payload(envelope)?).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_comes_back_as_it_was() {
        for text in ["hello", " two\nlines <&> \t", "]]>", "\u{1f600}"] {
            let said = Said::by("peer_agent", "a<b>", text.to_owned());
            let envelope = format!(
                "<message xmlns=\"https://xml-pipeline.org/ns/envelope/v1\"><meta><from>x</from></meta>{}</message>",
                said.write().unwrap().as_str()
            );
            assert_eq!(Said::read(&envelope.into()), Some(said));
        }
        assert!(Said::by("user", "x", "\0".to_owned()).write().is_err());
        assert_eq!(Said::read(&"<message/>".into()), None);
    }
}
