//! Validation of payloads, and the proof of it, [`Validated`]: the top rung of the trust ladder. It has no constructor, so
//! no other file can make one.

use std::fmt;
use std::sync::Arc;

use super::engine::{self, ElementId, Grammar, Judge, Violation};
use super::{Catalog, DecodeError, Payload, decode};
use crate::ladder::{Canonical, Part};
use crate::vocab::{Position, QName};

/// Maximum number of violations to report: a message can have as many as it has elements.
const MOST: usize = 8;

/// The reason why a payload breaks its schema.
///
/// Displayed as its first rule, with the path if the name of the element doesn't identify it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{rule}{}", AtPath(path))]
#[non_exhaustive]
pub struct SchemaError {
    /// The first broken rule: the element, the value or element found, and the expected one.
    pub rule: String,
    /// The place in the sender's bytes: the attribute, the text or the start of the element.
    pub at: Option<Position>,
    /// The path of the element in the payload, such as `order/item[2]/price`; empty if there is none.
    pub path: String,
    /// Further broken rules, up to a limit.
    pub more: Vec<Finding>,
}

/// A further broken rule, displayed like the first one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The broken rule: the element, the value or element found, and the expected one.
    pub rule: String,
    /// The place in the sender's bytes: the attribute, the text or the start of the element.
    pub at: Option<Position>,
    /// The path of the element in the payload, such as `order/item[2]/price`.
    pub path: String,
}

/// A path behind a sentence, displayed only if it says more than the name of its element.
struct AtPath<'p>(&'p str);

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
    /// [`SchemaError`] if the payload breaks the schema, or has none.
    pub fn validate(&mut self, payload: Canonical) -> Result<Validated<Element>, SchemaError> {
        let Some(schema) = self.catalog.get(payload.root()) else {
            return Err(SchemaError::unknown(payload.root(), payload.position(0)));
        };
        let (grammar, root) = schema.grammar();
        by_engine(grammar, root, &mut self.judge, &payload)?;
        Ok(Validated { value: Element(payload.clone()), payload })
    }
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
}

impl Validated<Element> {
    /// Decodes the payload, and keeps the proof with the value.
    ///
    /// # Errors
    /// As [`decode`].
    pub fn decode<T: Payload>(self) -> Result<Validated<T>, DecodeError> {
        let value = decode(&self)?;
        Ok(Validated { payload: self.payload, value })
    }
}

/// Judges a payload by the grammar of its schema.
pub(super) fn by_engine(
    grammar: &Grammar,
    root: ElementId,
    judge: &mut Judge,
    payload: &Canonical,
) -> Result<(), SchemaError> {
    let violations = judge.judge(grammar, Some(root), payload, MOST);
    if violations.is_empty() {
        return Ok(());
    }
    let place = |violation: &Violation| {
        let part = match &violation.part {
            engine::Part::Tag => Part::Tag,
            engine::Part::Attribute(name) => Part::Attribute(name),
            engine::Part::Content => Part::Content,
        };
        (violation.element, payload.position_of(violation.element, part))
    };
    let places: Vec<_> = violations.iter().map(place).collect();
    SchemaError::told(payload, violations.into_iter().map(|violation| violation.rule).zip(places).collect())
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.rule, AtPath(&self.path))
    }
}

impl fmt::Display for AtPath<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.contains('[') { write!(f, " ({})", self.0) } else { Ok(()) }
    }
}

impl SchemaError {
    fn unknown(payload: &QName, at: Option<Position>) -> Self {
        Self::whole(format!("no schema is known for {payload}"), at)
    }

    /// An error of a payload as a whole.
    fn whole(rule: String, at: Option<Position>) -> Self {
        Self { rule, at, path: String::new(), more: Vec::new() }
    }

    /// An error of all broken rules, each with its element and place; `Ok` if there are none.
    fn told(payload: &Canonical, rules: Vec<(String, (usize, Option<Position>))>) -> Result<(), Self> {
        let elements: Vec<usize> = rules.iter().map(|(_, (element, _))| *element).collect();
        let paths = engine::paths(payload.as_str(), &elements);
        let findings = rules.into_iter().zip(paths).map(|((rule, (_, at)), path)| Finding { rule, at, path });
        let mut findings = findings.collect::<Vec<_>>().into_iter();
        match findings.next() {
            Some(Finding { rule, at, path }) => Err(Self { rule, at, path, more: findings.collect() }),
            None => Ok(()),
        }
    }
}
