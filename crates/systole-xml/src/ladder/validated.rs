//! The top rung: payloads that keep their schema.

use std::fmt;

use super::Canonical;

/// An undecoded payload, as a listener with an `.xsd` contract gets it.
#[derive(Debug, Clone)]
pub struct Element(Canonical);

impl Element {
    /// The payload as canonical XML.
    pub fn canonical(&self) -> &Canonical {
        &self.0
    }

    /// The canonical bytes as text.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }
}

impl fmt::Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A payload that keeps its schema, decoded as `T`: the top of the ladder.
///
/// Only the validator makes one, so no unvalidated payload reaches a listener:
///
/// ```compile_fail,E0451
/// use systole_xml::ladder::{Canonical, Validated};
/// fn forge(payload: Canonical) -> Validated<u8> {
///     Validated { payload, value: 1 }
/// }
/// ```
#[derive(Debug, Clone)]
pub struct Validated<T> {
    payload: Canonical,
    value: T,
}

impl<T> Validated<T> {
    /// The payload as canonical XML.
    pub fn payload(&self) -> &Canonical {
        &self.payload
    }

    /// The decoded value.
    pub fn value(&self) -> &T {
        &self.value
    }

    /// The decoded value, by value.
    pub fn into_value(self) -> T {
        self.value
    }

    /// The same payload with the value that a decoder made of it.
    pub(crate) fn decoded<U>(self, value: U) -> Validated<U> {
        Validated { payload: self.payload, value }
    }
}

impl Validated<Element> {
    /// A validated payload. Contract: the validator has just found that `payload` keeps its schema.
    pub(crate) fn by_schema(payload: Canonical) -> Self {
        Self { value: Element(payload.clone()), payload }
    }
}
