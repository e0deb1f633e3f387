//! Contexts of tasks: keys and values, or an element of any name.

use std::fmt;

use bytes::Bytes;
use schemars::JsonSchema;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use systole_xml::ladder::Canonical;
use systole_xml::ladder::strict::canonicalize;

use super::error::InboxProblem;
use crate::vocab::XmlLimits;

/// The context of a task: data that helps its owner to do it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TaskContext {
    /// No context.
    #[default]
    None,
    /// Keys and their values, in order; each key once.
    Entries(Vec<ContextEntry>),
    /// An element of any name.
    Xml(#[schemars(with = "String")] Xml),
}

/// A key and its value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ContextEntry {
    /// The key; not empty.
    #[schemars(length(min = 1))]
    pub key: String,
    /// The value; may be empty.
    pub value: String,
}

impl TaskContext {
    /// Keys and their values; nothing if there are none.
    pub fn entries<K: Into<String>, V: Into<String>>(entries: impl IntoIterator<Item = (K, V)>) -> Self {
        let entries: Vec<_> =
            entries.into_iter().map(|(key, value)| ContextEntry { key: key.into(), value: value.into() }).collect();
        if entries.is_empty() { Self::None } else { Self::Entries(entries) }
    }

    /// An element, from text.
    ///
    /// # Errors
    /// [`InboxProblem::Xml`] if the text isn't one element.
    pub fn xml(text: &str) -> Result<Self, InboxProblem> {
        Xml::parse(text).map(Self::Xml)
    }
}

/// A canonical element that holds nothing of the message which it came in.
#[derive(Clone)]
pub struct Xml(Canonical);

impl Xml {
    /// The greatest depth of an element that still fits into a payload and its envelope.
    const DEPTH: usize = 240;

    /// Parses a text as one element.
    ///
    /// # Errors
    /// [`InboxProblem::Xml`] says where the text isn't one.
    pub fn parse(text: &str) -> Result<Self, InboxProblem> {
        let limits = XmlLimits::default().depth(Self::DEPTH);
        let element = canonicalize(&Bytes::copy_from_slice(text.as_bytes()), &limits);
        element.map(Self).map_err(|error| InboxProblem::Xml(error.to_string()))
    }

    /// The element.
    pub const fn element(&self) -> &Canonical {
        &self.0
    }

    /// The canonical bytes, as text.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }
}

impl PartialEq for Xml {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for Xml {}

impl fmt::Debug for Xml {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Xml").field(&self.as_str()).finish()
    }
}

impl Serialize for Xml {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for Xml {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::parse(&String::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}
