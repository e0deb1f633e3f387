//! Refusals of payloads that came as JSON.

use std::fmt;
use std::str::Utf8Error;

use super::error::FromJsonError;
use super::read::JsonPayload;
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
        /// The rules, up to a limit; there is one at least.
        mistakes: Vec<JsonMistake>,
        /// A valid payload with its name, as JSON.
        example: Option<String>,
    },
}

/// A rule that JSON breaks, in words of JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct JsonMistake {
    /// The place as a JSON pointer (RFC 6901).
    pub pointer: String,
    /// The found and the expected value or property.
    pub rule: String,
}

impl fmt::Display for JsonMistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { pointer, rule } = self;
        if pointer.is_empty() { f.write_str(rule) } else { write!(f, "{}: {rule}", quoted(pointer)) }
    }
}

impl JsonRefusal {
    /// The refusal of a payload that was read from JSON and breaks its schema.
    pub(in crate::schema) fn of_rules(read: &JsonPayload<'_>, error: SchemaError, example: Option<String>) -> Self {
        let pointers = read.pointers(&error);
        let mistakes = pointers.into_iter().zip(error.into_json());
        Self::Rules { mistakes: mistakes.map(|(pointer, rule)| JsonMistake { pointer, rule }).collect(), example }
    }

    /// The place of the first mistake as a JSON pointer; empty for the whole document, `None` for bytes that are no text.
    pub fn pointer(&self) -> Option<&str> {
        match self {
            Self::Encoding(_) => None,
            Self::Form(error) => Some(&error.pointer),
            Self::Xml(_) => Some(""),
            Self::Rules { mistakes, .. } => Some(mistakes.first().map_or("", |mistake| &mistake.pointer)),
        }
    }

    /// The mistakes, each with its place, for a person: one, but for broken rules.
    pub fn mistakes(&self) -> Vec<String> {
        let Self::Rules { mistakes, .. } = self else { return vec![self.to_string()] };
        mistakes.iter().map(JsonMistake::to_string).collect()
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
            Self::Rules { mistakes, .. } => {
                mistakes.iter_mut().for_each(|mistake| mistake.pointer.insert_str(0, place));
            }
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
            Self::Rules { mistakes, .. } => mistakes.first().map_or(Ok(()), |mistake| mistake.fmt(f)),
        }
    }
}

impl std::error::Error for JsonRefusal {}
