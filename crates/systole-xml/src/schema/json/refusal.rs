//! Refusals of payloads that came as JSON.

use std::fmt;
use std::str::Utf8Error;

use super::error::FromJsonError;
use crate::ladder::StrictError;
use crate::schema::engine::SchemaError;
use crate::schema::shorten::quoted;

/// The reason why JSON is no valid payload.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum JsonRefusal {
    /// The bytes are not UTF-8.
    Encoding(Utf8Error),
    /// The JSON is not well-formed, passes a limit, or is of another form than the schema has.
    Form(FromJsonError),
    /// The XML that it makes passes a limit.
    Xml(StrictError),
    /// It breaks rules of its schema.
    Rules {
        /// The rules, with their places in the XML.
        error: Box<SchemaError>,
        /// The places of the rules in the JSON, as JSON pointers (RFC 6901): that of the first, then those of
        /// [`SchemaError::more`].
        pointers: Vec<String>,
        /// A valid payload with its name, as JSON.
        example: Option<String>,
    },
}

impl JsonRefusal {
    /// The place of the first mistake as a JSON pointer; empty for the whole document, `None` for bytes that are no text.
    pub fn pointer(&self) -> Option<&str> {
        match self {
            Self::Encoding(_) => None,
            Self::Form(error) => Some(&error.pointer),
            Self::Xml(_) => Some(""),
            Self::Rules { pointers, .. } => Some(pointers.first().map_or("", String::as_str)),
        }
    }

    /// The mistakes, each with its place, for a person: one, but for broken rules.
    pub fn mistakes(&self) -> Vec<String> {
        let Self::Rules { error, pointers, .. } = self else { return vec![self.to_string()] };
        let rules = std::iter::once(&error.rule).chain(error.more.iter().map(|finding| &finding.rule));
        pointers.iter().zip(rules).map(|(at, rule)| at_pointer(at, rule)).collect()
    }

    /// Returns whether the document passes a limit.
    pub fn is_limit(&self) -> bool {
        match self {
            Self::Form(error) => error.problem.is_limit(),
            Self::Xml(error) => error.is_limit(),
            Self::Encoding(_) | Self::Rules { .. } => false,
        }
    }

    /// The refusal of a value that stands at a place of a larger document: `/2` for the third item of an array.
    #[must_use]
    pub fn inside(mut self, place: &str) -> Self {
        match &mut self {
            Self::Form(error) if error.at.is_none() => error.pointer.insert_str(0, place),
            Self::Rules { pointers, .. } => pointers.iter_mut().for_each(|pointer| pointer.insert_str(0, place)),
            Self::Encoding(_) | Self::Form(_) | Self::Xml(_) => {}
        }
        self
    }
}

/// The first mistake with its place.
impl fmt::Display for JsonRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Encoding(error) => write!(f, "not UTF-8: {error}"),
            Self::Form(error) => error.fmt(f),
            Self::Xml(error) => error.fmt(f),
            Self::Rules { error, pointers, .. } => {
                f.write_str(&at_pointer(pointers.first().map_or("", String::as_str), &error.rule))
            }
        }
    }
}

impl std::error::Error for JsonRefusal {}

fn at_pointer(pointer: &str, rule: &str) -> String {
    if pointer.is_empty() { rule.to_owned() } else { format!("{}: {rule}", quoted(pointer)) }
}
