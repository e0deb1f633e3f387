//! Requests to the core and its answers as Rust types.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::vocab::{QName, ThreadId, ns};

/// Asks for the payloads that the sender may call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ListCapabilities;

/// Asks for the XML Schema of a payload. The answer holds a document, which no Rust type is made for: take it as an
/// [`Element`](systole_xml::schema::Element) and read it with [`MetaAnswer::read`](super::MetaAnswer::read).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RequestSchema {
    /// The payload.
    #[serde(rename = "@payload", with = "display")]
    #[schemars(with = "String")]
    pub payload: QName,
}

/// Asks for a valid instance of a payload. The answer is read as for [`RequestSchema`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RequestExample {
    /// The payload.
    #[serde(rename = "@payload", with = "display")]
    #[schemars(with = "String")]
    pub payload: QName,
}

/// Asks for the text that a model needs to write a payload.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RequestPrompt {
    /// The payload; none for all.
    #[serde(rename = "@payload", with = "display_option", default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub payload: Option<QName>,
}

/// Clears the stored context of this thread.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClearContext;

/// Closes the spawned thread that this is addressed to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CloseThread;

/// The payloads that the asker may call.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Capabilities {
    /// A capability for each payload.
    #[serde(default)]
    pub capability: Vec<Capability>,
}

/// A payload, with its purpose in one line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Capability {
    /// The name of the payload.
    #[serde(rename = "@payload", with = "display")]
    #[schemars(with = "String")]
    pub payload: QName,
    /// The purpose, in one line.
    #[serde(rename = "$text")]
    pub description: String,
}

/// The text that a model needs to write a payload.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Prompt(pub String);

/// A fresh thread, which the asker alone can address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ThreadSpawned(
    /// The id of the thread.
    #[serde(with = "display")]
    #[schemars(with = "String")]
    pub ThreadId,
);

/// The stored context of the thread was cleared.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ContextCleared;

/// Payload types whose schema stands in a document under `schemas/`.
macro_rules! written_by_hand {
    ($($type:ident: $namespace:expr, $root:literal;)*) => {
        $(impl systole_xml::schema::Payload for $type {
            const NAMESPACE: &'static str = $namespace;
            const ROOT: &'static str = $root;

            fn contract() -> Result<systole_xml::schema::PayloadSchema, systole_xml::schema::ContractError> {
                let payload = Self::qname();
                let missing = || systole_xml::schema::ContractError::Reserved { payload: payload.clone() };
                systole_xml::schema::own_schema(&payload).cloned().ok_or_else(missing)
            }
        })*
    };
}
pub(super) use written_by_hand;

written_by_hand! {
    ListCapabilities: ns::META, "list-capabilities";
    RequestSchema: ns::META, "request-schema";
    RequestExample: ns::META, "request-example";
    RequestPrompt: ns::META, "request-prompt";
    ClearContext: ns::META, "clear-context";
    CloseThread: ns::META, "close-thread";
    Capabilities: ns::META, "capabilities";
    Prompt: ns::META, "prompt";
    ThreadSpawned: ns::META, "thread-spawned";
    ContextCleared: ns::META, "context-cleared";
}

/// Names, ids and times as text.
pub(crate) mod display {
    use std::fmt::Display;
    use std::str::FromStr;

    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(crate) fn serialize<T: Display, S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(value)
    }

    pub(crate) fn deserialize<'de, T, D>(deserializer: D) -> Result<T, D::Error>
    where
        T: FromStr<Err: Display>,
        D: Deserializer<'de>,
    {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

/// Text form of values that may be left out.
pub(crate) mod display_option {
    use std::fmt::Display;
    use std::str::FromStr;

    use serde::{Deserializer, Serializer};

    use super::display;

    pub(crate) fn serialize<T: Display, S: Serializer>(value: &Option<T>, serializer: S) -> Result<S::Ok, S::Error> {
        match value {
            Some(value) => display::serialize(value, serializer),
            None => serializer.serialize_none(),
        }
    }

    pub(crate) fn deserialize<'de, T, D>(deserializer: D) -> Result<Option<T>, D::Error>
    where
        T: FromStr<Err: Display>,
        D: Deserializer<'de>,
    {
        display::deserialize(deserializer).map(Some)
    }
}
