//! Errors of JSON that is to become a payload.

use std::fmt;

use crate::schema::shorten::quoted;

/// The reason why a JSON document is no payload, with its place.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FromJsonError {
    /// The place of the value as a JSON pointer (RFC 6901); empty for the whole document.
    pub pointer: String,
    /// The line and the column, both from 1, of a mistake in the JSON itself.
    pub at: Option<(usize, usize)>,
    /// The mistake, with what to write instead.
    pub problem: JsonProblem,
}

/// The mistake of a JSON document that is to become a payload.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum JsonProblem {
    /// The text is no JSON (RFC 8259).
    #[error("not well-formed JSON: found {}, expected {expected}", Found(*found))]
    Syntax {
        /// The character at the place; `None` at the end of the document.
        found: Option<char>,
        /// The characters that may stand there.
        expected: &'static str,
    },
    /// An object has a key twice.
    #[error("the key '{}' is repeated: write it once", quoted(key))]
    Repeated {
        /// The key.
        key: String,
    },
    /// The document, or the payload made of it, is larger than a message may be.
    #[error(
        "as JSON or as the XML made of it more than {most} bytes, the limit of a message: send less in one message"
    )]
    TooLarge {
        /// The limit, in bytes.
        most: usize,
    },
    /// Values are nested deeper than a message may be.
    #[error("nested more than {most} deep: a message may not be deeper")]
    TooDeep {
        /// The limit.
        most: usize,
    },
    /// The value is of another type than the schema has there.
    #[error("found {found}, expected {expected}, such as {example}")]
    Type {
        /// The kind of the value.
        found: &'static str,
        /// The kinds that the schema has.
        expected: &'static str,
        /// A value of that kind.
        example: String,
    },
    /// The value is none of the alternatives that the schema has there.
    #[error("found '{}', expected {}", quoted(found), expected.join(" or "))]
    Alternatives {
        /// The value.
        found: String,
        /// The alternatives, each in words.
        expected: Vec<String>,
    },
    /// The object has a property that the schema doesn't know.
    #[error("no property '{}' is known here, expected {expected}", quoted(name))]
    Unknown {
        /// The name of the property.
        name: String,
        /// The properties that the schema has.
        expected: String,
    },
    /// A name is none that XML allows.
    #[error(
        "'{}' is no name of an element or attribute: write a letter or '_', then letters, digits, '-', '_' and '.'",
        quoted(name)
    )]
    Name {
        /// The name.
        name: String,
    },
    /// A string has a character that XML can't carry.
    #[error("XML can't carry the character U+{:04X}: leave it out, or send the text in base64", u32::from(*character))]
    Character {
        /// The character.
        character: char,
    },
    /// An array has no item, where the schema has at least one if the property is there.
    #[error("the array is empty: leave the property out, or write an item")]
    Empty,
    /// An array that has to be there, with or without items, is not.
    #[error("the property '{}' is missing: write it, as [] if it has no items", quoted(name))]
    Missing {
        /// The name of the property.
        name: String,
    },
    /// An item of a list of words is empty or has white space.
    #[error("an item of a list is a word without white space, such as \"red\": write one item for each word")]
    Word,
    /// A number has more digits than a message should carry.
    #[error("a number of more than {most} digits when its exponent is written out: write fewer")]
    Digits {
        /// The limit.
        most: usize,
    },
    /// The document names no payload, or more than one.
    #[error(
        "expected an object with one property, the name of the payload: {}",
        if expected.is_empty() { "and no payload may be sent here" } else { expected }
    )]
    Root {
        /// The names of the payloads; empty if none may be sent.
        expected: String,
    },
}

impl JsonProblem {
    /// Returns whether the document passes a limit.
    pub fn is_limit(&self) -> bool {
        matches!(self, Self::TooLarge { .. } | Self::TooDeep { .. } | Self::Digits { .. })
    }
}

impl FromJsonError {
    /// A mistake of the document as a whole.
    pub(in crate::schema) fn whole(problem: JsonProblem) -> Self {
        Self { pointer: String::new(), at: None, problem }
    }
}

impl fmt::Display for FromJsonError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.at {
            Some((line, column)) => write!(f, "line {line}, column {column}: ")?,
            None if self.pointer.is_empty() => {}
            None => write!(f, "{}: ", quoted(&self.pointer))?,
        }
        self.problem.fmt(f)
    }
}

impl std::error::Error for FromJsonError {}

struct Found(Option<char>);

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(character) => write!(f, "{character:?}"),
            None => f.write_str("the end"),
        }
    }
}
