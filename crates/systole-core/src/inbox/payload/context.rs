//! The context of a task as a part of payloads.

use schemars::JsonSchema;
use serde::de::IgnoredAny;
use serde::ser::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use systole_xml::ladder::Canonical;
use systole_xml::ladder::scan::{ScanToken, Scanner};
use systole_xml::ladder::strict::{StrictError, canonicalize};
use systole_xml::schema::{EncodeError, Payload, encode};

use crate::inbox::{ContextEntry, InboxProblem, TaskContext, Xml};
use crate::protocol::embedded;
use crate::vocab::XmlLimits;

/// Data that helps to do a task: keys and values, or one element of any name.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "context")]
pub struct ContextPayload {
    /// Keys and their values; none if there is an element.
    #[serde(default)]
    pub entry: Vec<EntryPayload>,
    /// The element.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    pub xml: Option<XmlContext>,
}

/// A value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "entry")]
pub struct EntryPayload {
    /// The key; no two entries have the same.
    #[serde(rename = "@key")]
    #[schemars(length(min = 1))]
    pub key: String,
    /// The value; may be empty.
    #[serde(rename = "$text", default)]
    pub value: String,
}

/// An element of any name, inside of a payload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum XmlContext {
    /// The element was not read: a decoder reads Rust types only.
    Unread,
    /// The element.
    Element(Xml),
}

/// The reason why a payload with an element of any name can't be written.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The other parts can't be encoded.
    #[error(transparent)]
    Encode(#[from] EncodeError),
    /// The whole payload is no message.
    #[error(transparent)]
    Strict(#[from] StrictError),
}

crate::vocab::debug_is_display!(WriteError);

impl Serialize for XmlContext {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            // The place of the element, which `write` fills.
            Self::Unread => serializer.serialize_unit(),
            Self::Element(_) => Err(S::Error::custom("an element of any name is sent with write(), not as a value")),
        }
    }
}

impl<'de> Deserialize<'de> for XmlContext {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        IgnoredAny::deserialize(deserializer).map(|_| Self::Unread)
    }
}

impl From<&TaskContext> for Option<ContextPayload> {
    fn from(context: &TaskContext) -> Self {
        match context {
            TaskContext::None => None,
            TaskContext::Entries(entries) => {
                let entry = |entry: &ContextEntry| EntryPayload { key: entry.key.clone(), value: entry.value.clone() };
                Some(ContextPayload { entry: entries.iter().map(entry).collect(), xml: None })
            }
            TaskContext::Xml(xml) => {
                Some(ContextPayload { entry: Vec::new(), xml: Some(XmlContext::Element(xml.clone())) })
            }
        }
    }
}

impl ContextPayload {
    /// The context, once its element was read.
    pub fn into_context(self) -> TaskContext {
        match self.xml {
            Some(XmlContext::Element(xml)) => TaskContext::Xml(xml),
            Some(XmlContext::Unread) | None => {
                TaskContext::entries(self.entry.into_iter().map(|entry| (entry.key, entry.value)))
            }
        }
    }

    /// Takes the element from the payload that it came in.
    pub(super) fn fill(&mut self, payload: &Canonical) -> Result<(), InboxProblem> {
        if let (Some(xml), Some(element)) = (&mut self.xml, element_in(payload)) {
            *xml = XmlContext::Element(Xml::parse(element.as_str())?);
        }
        Ok(())
    }
}

/// Writes and reads a payload with a context.
macro_rules! carries_context {
    ($type:ident) => {
        impl $type {
            /// Writes the payload, with a context of any kind.
            ///
            /// # Errors
            /// [`WriteError`] for a character that XML can't carry, or if it is larger than a message.
            pub fn write(&self) -> Result<Canonical, WriteError> {
                let mut hollow = self.clone();
                let element = context::hollow(&mut hollow.context);
                context::write(&hollow, element.as_ref())
            }

            /// Takes the element in the context from the payload that this was decoded from.
            ///
            /// # Errors
            /// [`InboxProblem::Xml`] if the element is nested too deep.
            pub fn read_context(mut self, payload: &Canonical) -> Result<Self, InboxProblem> {
                if let Some(context) = &mut self.context {
                    context.fill(payload)?;
                }
                Ok(self)
            }
        }
    };
}
pub(super) use carries_context;

/// A value without the element in its context, and that element apart: as canonical bytes of both.
pub(super) fn write<T: Payload>(hollow: &T, element: Option<&Xml>) -> Result<Canonical, WriteError> {
    let payload = encode(hollow)?;
    let Some(xml) = element else { return Ok(payload) };
    // No text of the value can look like this: it has no bare `<`.
    let filled = payload.as_str().replacen("<xml></xml>", &format!("<xml>{}</xml>", embedded(xml.element())), 1);
    Ok(canonicalize(&filled.into(), &XmlLimits::default())?)
}

/// The element in the context, taken out of a value; its place stays.
pub(super) fn hollow(context: &mut Option<ContextPayload>) -> Option<Xml> {
    let xml = context.as_mut()?.xml.as_mut()?;
    match std::mem::replace(xml, XmlContext::Unread) {
        XmlContext::Element(element) => Some(element),
        XmlContext::Unread => None,
    }
}

/// The element in `<context><xml>` of a payload.
fn element_in(payload: &Canonical) -> Option<Canonical> {
    let (mut path, mut elements): (Vec<&str>, usize) = (Vec::new(), 0);
    for token in Scanner::new(payload.as_str()) {
        match token {
            ScanToken::Start(tag) => {
                if matches!(path[..], [_, "context", "xml"]) {
                    return payload.subtree(elements);
                }
                path.push(tag.local());
                elements += 1;
            }
            ScanToken::End => drop(path.pop()),
            ScanToken::Text(_) => {}
        }
    }
    None
}
