use std::fmt;
use std::sync::Arc;

use super::Catalog;
use super::engine::{self, ElementId, Grammar, Judge, Violation};
use crate::ladder::{Canonical, Element, Part, Validated};
use crate::vocab::{Position, QName};

/// Violations that are told at most: a message can have as many as it has elements.
const MOST: usize = 8;

/// Why a payload breaks its schema.
///
/// It is displayed as its first rule, with the path where the name of an element doesn't tell which one it is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{rule}{}", AtPath(path))]
pub struct SchemaError {
    /// The first rule that is broken: the element, what was found, what was expected.
    pub rule: String,
    /// Where that is in what the sender wrote: the attribute, the text or the start of the element.
    pub at: Option<Position>,
    /// The element by its place in the payload, such as `order/item[2]/price`; empty if there is none.
    pub path: String,
    /// What else is wrong, as far as it was looked at.
    pub more: Vec<Finding>,
}

/// One more broken rule, displayed as the first one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The element, what was found, what was expected.
    pub rule: String,
    /// Where that is in what the sender wrote: the attribute, the text or the start of the element.
    pub at: Option<Position>,
    /// The element by its place in the payload, such as `order/item[2]/price`.
    pub path: String,
}

/// A path behind a sentence, where it says more than the name of its element.
struct AtPath<'p>(&'p str);

/// Judges payloads on one thread.
pub struct Validator {
    catalog: Arc<Catalog>,
    judge: Judge,
}

impl Validator {
    /// A validator of the payloads that the catalog knows.
    pub fn new(catalog: Arc<Catalog>) -> Self {
        Self { catalog, judge: Judge::default() }
    }

    /// The catalog whose payloads it knows.
    pub fn catalog(&self) -> &Arc<Catalog> {
        &self.catalog
    }

    /// Checks a payload against the schema of its name, and mints the proof. Takes linear time.
    ///
    /// # Errors
    /// [`SchemaError`] if it breaks the schema, or if there is none.
    pub fn validate(&mut self, payload: Canonical) -> Result<Validated<Element>, SchemaError> {
        let Some(schema) = self.catalog.get(payload.root()) else {
            return Err(SchemaError::unknown(payload.root(), payload.position(0)));
        };
        let (grammar, root) = schema.grammar();
        by_engine(grammar, root, &mut self.judge, &payload)?;
        Ok(Validated::by_schema(payload))
    }
}

impl fmt::Debug for Validator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Validator").finish_non_exhaustive()
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

    /// What is wrong with a payload as a whole.
    fn whole(rule: String, at: Option<Position>) -> Self {
        Self { rule, at, path: String::new(), more: Vec::new() }
    }

    /// The rules that are broken, each with its element and place.
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
