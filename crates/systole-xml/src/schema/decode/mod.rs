//! The decoder: from a validated payload to a value, straight from the canonical bytes.
//!
//! The conventions are those of [`encode`](super::encode()). Attributes of other namespaces (`xsi:type`,
//! `xml:lang`) are no fields: a sender can't reach a field `@type` through them.

mod element;
mod field;
mod fields;
mod forward;
mod reader;
mod text;
mod variant;

use serde::de::DeserializeOwned;

use crate::ladder::Canonical;
use crate::vocab::Position;
use reader::Reader;

/// Maximum depth of elements that a value is decoded from. Types nest on the stack while they are decoded.
const MAX_DEPTH: usize = 256;

/// Decodes a payload that was not validated.
///
/// # Errors
/// [`DecodeError`] if the type refuses the payload.
pub fn decode_canonical<T: DeserializeOwned>(payload: &Canonical) -> Result<T, DecodeError> {
    payload.read(|cursor| {
        let mut reader = Reader::new(cursor);
        let value = reader.element().and_then(T::deserialize);
        value.map_err(|mut error| {
            error.at = payload.position(reader.elements().saturating_sub(1));
            error
        })
    })
}

/// The reason why valid XML is no value of the type.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error("{problem}")]
#[non_exhaustive]
pub struct DecodeError {
    /// The problem.
    pub problem: DecodeProblem,
    /// The place of the element where it was found, in the sender's bytes.
    pub at: Option<Position>,
}

crate::vocab::debug_is_display!(DecodeError);

impl DecodeError {
    /// Makes the error of a problem at that place.
    pub fn new(problem: DecodeProblem, at: Option<Position>) -> Self {
        Self { problem, at }
    }
}

/// The problem of a [`DecodeError`].
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeProblem {
    /// Text that is no value of a simple type.
    #[error("found '{found}', expected {expected}")]
    Value {
        /// The text, cut to 64 characters.
        found: String,
        /// The expected value.
        expected: &'static str,
    },
    /// A shape that can't be read from XML.
    #[error(transparent)]
    Shape(#[from] Undecodable),
    /// A value that is nested deeper than the decoder allows.
    #[error("elements are nested deeper than {MAX_DEPTH}")]
    Depth,
    /// The type's own `Deserialize` refused.
    #[error("{0}")]
    Refused(String),
}

crate::vocab::debug_is_display!(DecodeProblem);

/// A shape that [`decode`](super::decode()) can't read.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Undecodable {
    /// A map, or a struct with a flattened field.
    #[error("a map or a flattened field has no fixed elements")]
    Map,
    /// A type that asks XML for its kind: an untagged or internally tagged enum.
    #[error("XML doesn't say of which kind a value is")]
    Untyped,
    /// A list in a list, at the root, in text or in an attribute.
    #[error("a list can stand in a field only")]
    List,
    /// An enum with data outside of a `$value` field, or another type inside of one.
    #[error("only an enum can stand in $value, and one with data nowhere else")]
    DataEnum,
    /// Elements where only text is expected.
    #[error("an element stands where only text may")]
    Element,
    /// An Option in an Option, or in a newtype in one.
    #[error("an Option in an Option has a value that XML can't tell from none")]
    NestedOption,
    /// An Option of `()` in a newtype or a list.
    #[error("an Option of () in another type is nothing or an empty element: only a field can tell which")]
    OptionalUnit,
    /// Raw bytes.
    #[error("bytes have no XML form")]
    Bytes,
    /// Bytes that are not canonical: a bug in the pump.
    #[error("the payload ends too early")]
    End,
}

crate::vocab::debug_is_display!(Undecodable);

/// The type around a value, as far as it decides the meaning of an absent value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Within {
    /// A field, or no type.
    Field,
    /// A newtype or a list.
    Wrapper,
    /// An Option that is a field.
    Option,
    /// An Option in a newtype or a list.
    WrappedOption,
}

impl Within {
    /// The state inside of an Option. An absent value of an Option in another one looks like an absent outer Option.
    fn option(self) -> Result<Self, DecodeError> {
        match self {
            Self::Field => Ok(Self::Option),
            Self::Wrapper => Ok(Self::WrappedOption),
            Self::Option | Self::WrappedOption => Err(Undecodable::NestedOption.into()),
        }
    }

    /// The state inside of a newtype.
    fn wrapper(self) -> Self {
        match self {
            Self::Field => Self::Wrapper,
            within => within,
        }
    }
}

impl From<DecodeProblem> for DecodeError {
    fn from(problem: DecodeProblem) -> Self {
        Self { problem, at: None }
    }
}

impl From<Undecodable> for DecodeError {
    fn from(shape: Undecodable) -> Self {
        DecodeProblem::from(shape).into()
    }
}

impl serde::de::Error for DecodeError {
    fn custom<M: std::fmt::Display>(message: M) -> Self {
        DecodeProblem::Refused(message.to_string()).into()
    }
}

#[cfg(test)]
mod tests;
