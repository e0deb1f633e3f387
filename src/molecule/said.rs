use bytes::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use systole_core::vocab::XmlLimits;
use systole_xml::ladder::{Canonical, Envelope, strict};
use systole_xml::schema::{ContractError, Payload, PayloadSchema, decode_canonical, encode};

use super::schemas;
use crate::gateway::seam::Problem;

/// Somebody said something. It is answered by what is said back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Said {
    /// Who says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Speaker>,
    /// What is said.
    pub text: String,
}

/// Who says something. The pump says who a sender is: this counts where a listener speaks for a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Speaker {
    /// `canvas_user` or `user` for a person, `peer_agent` for an agent.
    #[serde(rename = "@kind")]
    pub kind: String,
    /// Whom it is known by.
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
    /// What somebody says.
    pub(super) fn by(kind: &str, id: &str, text: String) -> Self {
        Self { source: Some(Speaker { kind: kind.to_owned(), id: Some(id.to_owned()) }), text }
    }

    /// It as a payload.
    pub(super) fn write(&self) -> Result<Canonical, Problem> {
        encode(self).map_err(|error| Problem::unprocessable("payload", format!("the text: {error}")))
    }

    /// What an envelope of the pump says.
    pub(super) fn read(envelope: &Bytes) -> Option<Self> {
        decode_canonical(&payload(envelope)?).ok()
    }
}

/// What an envelope of the pump holds.
pub(super) fn payload(envelope: &Bytes) -> Option<Canonical> {
    // The pump wrote it: it has no limits any more.
    let canonical = strict::canonicalize(envelope, &XmlLimits::UNLIMITED).ok()?;
    Some(Envelope::open(canonical).ok()?.into_parts().1)
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
