//! Validation of payloads, and the proof of it, [`Validated`]: the top rung of the trust ladder. It has no constructor, so
//! no other file can make one.

use std::fmt;
use std::sync::Arc;

use super::decode::{DecodeError, decode_canonical};
use super::engine::{Judge, SchemaError, verdict};
use super::{Catalog, Payload, PayloadSchema};
use crate::ladder::Canonical;

/// A validator of payloads, for one OS thread.
pub struct Validator {
    catalog: Arc<Catalog>,
    judge: Judge,
}

impl Validator {
    /// A validator of the payloads in a catalog.
    pub fn new(catalog: Arc<Catalog>) -> Self {
        Self { catalog, judge: Judge::default() }
    }

    /// The catalog of its payloads.
    pub fn catalog(&self) -> &Arc<Catalog> {
        &self.catalog
    }

    /// Validates a payload by the schema of its name, and mints the proof. Takes linear time.
    ///
    /// # Errors
    /// [`SchemaError`] if the payload breaks the schema, has none, or holds a processing instruction that its contract
    /// [does not ask for](Catalog::let_instructions).
    pub fn validate(&mut self, payload: Canonical) -> Result<Validated<Element>, SchemaError> {
        let Some(schema) = self.catalog.get(payload.root()) else {
            return Err(SchemaError::unknown(payload.root(), payload.position(0)));
        };
        if let Some(at) = instruction(payload.bytes())
            && !self.catalog.takes_instructions(payload.root())
        {
            return Err(SchemaError::instruction(&payload, at));
        }
        let (grammar, root) = schema.grammar();
        verdict(grammar, Some(root), &mut self.judge, &payload)?;
        Ok(Validated { schema: schema.clone(), value: Element(payload.clone()), payload })
    }
}

/// Place of the first processing instruction: in canonical form nothing else begins with `<?`.
fn instruction(canonical: &[u8]) -> Option<usize> {
    // A search for one byte needs no preparation, and a question mark is rarer than a tag.
    memchr::memchr_iter(b'?', canonical).find_map(|mark| Some(mark.checked_sub(1)?).filter(|&at| canonical[at] == b'<'))
}

impl fmt::Debug for Validator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Validator").finish_non_exhaustive()
    }
}

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
/// use systole_xml::ladder::Canonical;
/// use systole_xml::schema::Validated;
/// fn forge(payload: Canonical) -> Validated<u8> {
///     Validated { payload, value: 1 }
/// }
/// ```
#[derive(Debug, Clone)]
pub struct Validated<T> {
    /// The schema that it keeps: another one may have the same name.
    schema: PayloadSchema,
    payload: Canonical,
    value: T,
}

impl<T> Validated<T> {
    /// The payload as canonical XML.
    pub fn payload(&self) -> &Canonical {
        &self.payload
    }

    /// Returns whether the schema that it keeps is the one that a catalog has of its name.
    pub fn holds_in(&self, catalog: &Catalog) -> bool {
        catalog.get(self.payload.root()).is_some_and(|schema| schema.is_same(&self.schema))
    }

    /// The decoded value.
    pub fn value(&self) -> &T {
        &self.value
    }

    /// The decoded value, by value.
    pub fn into_value(self) -> T {
        self.value
    }
}

impl Validated<Element> {
    /// Decodes the payload, and keeps the proof with the value.
    ///
    /// # Errors
    /// As [`decode`](super::decode()).
    pub fn decode<T: Payload>(self) -> Result<Validated<T>, DecodeError> {
        let value = decode_canonical(&self.payload)?;
        Ok(Validated { schema: self.schema, payload: self.payload, value })
    }
}
