//! Validation of payloads, and the proof of it, [`Validated`]: the top rung of the trust ladder. It has no constructor, so
//! no other file can make one.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;

use super::decode::{DecodeError, decode_canonical};
use super::engine::{Judge, SchemaError, verdict};
use super::{Catalog, JsonPayload, JsonRefusal, Payload, PayloadSchema, json};
use crate::ladder::Canonical;
use crate::ladder::strict::canonicalize;
use crate::vocab::{QName, XmlLimits};

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
        schema.check_values(&payload)?;
        Ok(Validated { schema: schema.clone(), value: Element(payload.clone()), payload })
    }

    /// Reads a payload that came as JSON and names itself, `{"name": …}`, as [`Catalog::from_named_json`] does, and validates
    /// it. Takes linear time.
    ///
    /// # Errors
    /// [`JsonRefusal`] with the places as JSON pointers.
    ///
    /// # Examples
    /// ```
    /// use std::sync::Arc;
    /// use systole_xml::schema::{Catalog, PayloadSchema, Validator};
    /// use systole_xml::vocab::XmlLimits;
    ///
    /// let document = r#"<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema"><xs:element name="age" type="xs:byte"/></xs:schema>"#;
    /// let schemas = PayloadSchema::from_xsd("age.xsd", document)?;
    /// let mut validator = Validator::new(Arc::new(Catalog::only(schemas)));
    /// let limits = XmlLimits::default();
    /// let payload = validator.payload_of_json(br#"{"age": 12}"#, |_| true, &limits)?;
    /// assert_eq!(payload.payload().as_str(), "<age>12</age>");
    /// let refusal = validator.payload_of_json(br#"{"age": 200}"#, |_| true, &limits).unwrap_err();
    /// assert_eq!(refusal.pointer(), Some("/age"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn payload_of_json(
        &mut self,
        json: &[u8],
        may_be: impl Fn(&QName) -> bool,
        limits: &XmlLimits,
    ) -> Result<Validated<Element>, JsonRefusal> {
        let text = std::str::from_utf8(json).map_err(JsonRefusal::Encoding)?;
        let read = self.catalog.from_named_json(text, may_be, limits).map_err(JsonRefusal::Form)?;
        self.validate_json(&read, limits, |catalog, example| catalog.to_named_json(example))
    }

    /// Reads a payload of a schema of the catalog that came as the JSON object behind its name, as
    /// [`PayloadSchema::from_json`] does, and validates it. Takes linear time.
    ///
    /// # Errors
    /// [`JsonRefusal`] with the places as JSON pointers, and the example without a name, too.
    pub fn payload_of_object(
        &mut self,
        json: &[u8],
        schema: &PayloadSchema,
        limits: &XmlLimits,
    ) -> Result<Validated<Element>, JsonRefusal> {
        let text = std::str::from_utf8(json).map_err(JsonRefusal::Encoding)?;
        let read = schema.from_json(text, limits).map_err(JsonRefusal::Form)?;
        self.validate_json(&read, limits, |_, example| Some(schema.to_json(example)))
    }

    fn validate_json(
        &mut self,
        read: &JsonPayload<'_>,
        limits: &XmlLimits,
        write: impl FnOnce(&Catalog, &Canonical) -> Option<String>,
    ) -> Result<Validated<Element>, JsonRefusal> {
        let payload = canonicalize(&Bytes::copy_from_slice(read.xml().as_bytes()), limits).map_err(JsonRefusal::Xml)?;
        let root = payload.root().clone();
        self.validate(payload).map_err(|error| {
            let schema = self.catalog.get(&root);
            let example = schema.and_then(|schema| write(&self.catalog, schema.example()?));
            JsonRefusal::of_rules(read, error, example)
        })
    }

    /// Reads the payloads of a JSON document, each as [`payload_of_json`](Self::payload_of_json) does: one object, or an array
    /// of them.
    ///
    /// # Errors
    /// The [`JsonRefusal`] of the first payload that is not valid.
    pub fn payloads_of_json(
        &mut self,
        json: &[u8],
        may_be: impl Fn(&QName) -> bool,
        limits: &XmlLimits,
    ) -> Result<Vec<Validated<Element>>, JsonRefusal> {
        if !json.trim_ascii_start().starts_with(b"[") {
            return self.payload_of_json(json, may_be, limits).map(|payload| vec![payload]);
        }
        let text = std::str::from_utf8(json).map_err(JsonRefusal::Encoding)?;
        let items = json::objects(text, limits).map_err(JsonRefusal::Form)?.unwrap_or_default();
        let read = |(index, item): (usize, &str)| {
            let payload = self.payload_of_json(item.as_bytes(), &may_be, limits);
            payload.map_err(|refusal| refusal.inside(&format!("/{index}")))
        };
        items.into_iter().enumerate().map(read).collect()
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
