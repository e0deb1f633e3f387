//! The encoder: from a value to canonical text, in one pass.
//!
//! The conventions are those of quick-xml's serde: a field is a child element, `@name` an attribute,
//! `$text` the text, `$value` an enum whose variant names the element. Three additions, which the
//! decoder reads back: `None` writes nothing, a list may hold unit variants, and the floats
//! that are no numbers are spelled as in XSD.

mod content;
mod element;
mod fields;
mod text;

use serde::Serialize;

use super::Canonical;
use crate::vocab::QName;
use element::Element;
pub(crate) use text::float_text;

/// Maximum depth of elements that a value is encoded as; the strict pass allows as many in a message.
pub(crate) const MAX_DEPTH: usize = 256;

/// Encodes a value as an element of that name; `qname` is the name once more.
///
/// # Errors
/// [`EncodeError`] names the field.
pub(crate) fn encode_as<T: Serialize>(
    value: &T,
    namespace: &'static str,
    root: &'static str,
    qname: QName,
) -> Result<Canonical, EncodeError> {
    let mut out = String::with_capacity(256);
    value.serialize(Element::root(&mut out, root, namespace))?;
    Ok(Canonical::from_encoder(out, qname))
}

/// The reason why a value has no XML form.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EncodeError {
    /// A character that XML 1.0 can't carry.
    #[error("{field} holds the character {character:?}, which XML can't carry: remove it or encode the text")]
    Character {
        /// The field, as a path of names.
        field: String,
        /// The character.
        character: char,
    },
    /// A shape that has no XML form.
    #[error("{field}: {shape}")]
    Shape {
        /// The field, as a path of names.
        field: String,
        /// The shape, with its correction.
        shape: Unencodable,
    },
    /// A value that is nested deeper than a message may be.
    #[error("{field} is nested deeper than {MAX_DEPTH} elements")]
    Depth {
        /// The field, as a path of names.
        field: String,
    },
    /// The type's own `Serialize` refused.
    #[error("{field}: {message}")]
    Refused {
        /// The field, as a path of names.
        field: String,
        /// The message of `Serialize`.
        message: String,
    },
}

/// A shape that the encoder can't write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Unencodable {
    /// A map, or a struct with a flattened field.
    #[error("a map or a flattened field has no fixed elements: write a struct that names each field")]
    Map,
    /// A list in a list.
    #[error("a list of lists loses its borders: wrap the inner list in a struct")]
    NestedList,
    /// A list where one value is expected.
    #[error("a list can't stand in an attribute, in text or at the root: put it into a field")]
    List,
    /// `None` where a value is expected.
    #[error("an absent value can't stand in a list, in text or at the root: use an Option field, or leave it out")]
    Absent,
    /// `Some(None)`.
    #[error("Some(None) would be read back as None: write one Option, or an enum that names the cases")]
    NestedOption,
    /// An enum with data in an ordinary field.
    #[error("an enum with data needs #[serde(rename = \"$value\")] on its field")]
    DataEnum,
    /// A tuple variant.
    #[error("a variant with several unnamed values has no names for them: name its fields")]
    TupleVariant,
    /// A type other than an enum in a `$value` field.
    #[error("$value is for enums: give the field a name, or rename it to $text")]
    Value,
    /// A struct in an attribute or in text.
    #[error("a struct can't stand in an attribute or in text: make it an element")]
    Struct,
    /// Raw bytes.
    #[error("bytes have no XML form: write a String in base64, or Vec<u8> as a list of numbers")]
    Bytes,
}

impl EncodeError {
    fn character(character: char) -> Self {
        Self::Character { field: String::new(), character }
    }

    fn shape(shape: Unencodable) -> Self {
        Self::Shape { field: String::new(), shape }
    }

    fn depth() -> Self {
        Self::Depth { field: String::new() }
    }

    /// Puts the name of the element around it in front of the path of the error.
    fn inside(mut self, name: &str) -> Self {
        let (Self::Character { field, .. }
        | Self::Shape { field, .. }
        | Self::Depth { field }
        | Self::Refused { field, .. }) = &mut self;
        // The path of a deep recursive value would repeat its names hundreds of times.
        if field.len() < 256 {
            let inner = std::mem::take(field);
            field.push_str(name);
            if !inner.is_empty() {
                field.push('/');
                field.push_str(&inner);
            }
        }
        self
    }
}

impl serde::ser::Error for EncodeError {
    fn custom<M: std::fmt::Display>(message: M) -> Self {
        Self::Refused { field: String::new(), message: message.to_string() }
    }
}
