use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use super::engine::{self, ElementId, Grammar, Judge, Violation};
use super::events::Events;
use super::libxml2::Compiled;
use super::path::Path;
use super::payload_schema::Digest;
use super::{Catalog, PayloadSchema, messages};
use crate::ladder::{Canonical, Element, Part, Validated};
use crate::vocab::{Position, QName};

/// Violations that are told at most: a message can have as many as it has elements.
const MOST: usize = 8;

/// The largest payload that libxml is given, in bytes: some of its checks take more than linear time.
const LARGEST_FOR_LIBXML: usize = 64 << 10;

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

/// Judges payloads on one thread. What libxml judges is compiled here when first needed.
pub struct Validator {
    catalog: Arc<Catalog>,
    compiled: HashMap<Digest, Result<Compiled, String>>,
    events: Events,
    judge: Judge,
}

impl Validator {
    /// A validator of the payloads that the catalog knows.
    pub fn new(catalog: Arc<Catalog>) -> Self {
        Self { catalog, compiled: HashMap::new(), events: Events::default(), judge: Judge::default() }
    }

    /// The catalog whose payloads it knows.
    pub fn catalog(&self) -> &Arc<Catalog> {
        &self.catalog
    }

    /// Checks a payload against the schema of its name, and mints the proof.
    ///
    /// # Errors
    /// [`SchemaError`] if it breaks the schema, or if there is none.
    pub fn validate(&mut self, payload: Canonical) -> Result<Validated<Element>, SchemaError> {
        match self.validate_at_once(payload.clone()) {
            Some(verdict) => verdict,
            None => self.validate_by_libxml(payload),
        }
    }

    /// As [`validate`](Self::validate), where that takes linear time; `None` where libxml has to judge, which may
    /// take long: a thread with something else to do leaves that to another one.
    pub fn validate_at_once(&mut self, payload: Canonical) -> Option<Result<Validated<Element>, SchemaError>> {
        let Some(schema) = self.catalog.get(payload.root()) else {
            return Some(Err(SchemaError::unknown(payload.root(), payload.position(0))));
        };
        match schema.path() {
            Path::Engine(grammar, root) => {
                let verdict = by_engine(grammar, *root, &mut self.judge, &payload);
                Some(verdict.map(|()| Validated::by_schema(payload)))
            }
            Path::Libxml(reason) => {
                let bytes = payload.bytes().len();
                (bytes > LARGEST_FOR_LIBXML).then(|| Err(SchemaError::too_large(bytes, reason)))
            }
        }
    }

    fn validate_by_libxml(&mut self, payload: Canonical) -> Result<Validated<Element>, SchemaError> {
        let Some(schema) = self.catalog.get(payload.root()) else {
            return Err(SchemaError::unknown(payload.root(), payload.position(0)));
        };
        let compiled = self.compiled.entry(schema.digest()).or_insert_with(|| compile(schema));
        let compiled = compiled.as_ref().map_err(|rule| SchemaError::whole(rule.clone(), None))?;
        by_libxml(compiled, &mut self.events, &payload, |element, attribute| schema.expected(element, attribute))?;
        Ok(Validated::by_schema(payload))
    }
}

impl fmt::Debug for Validator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Validator").field("compiled", &self.compiled.len()).finish_non_exhaustive()
    }
}

/// Schemas were compiled once when they were made, so this fails only for want of memory.
fn compile(schema: &PayloadSchema) -> Result<Compiled, String> {
    schema.compile().map_err(|error| error.to_string())
}

/// Judges a payload by the grammar of its schema.
pub(super) fn by_engine(
    grammar: &Grammar,
    root: ElementId,
    judge: &mut Judge,
    payload: &Canonical,
) -> Result<(), SchemaError> {
    let violations = judge.judge(grammar, root, payload, MOST);
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

/// Judges a payload by a schema that libxml compiled. `expected` tells what an element, or an attribute of it, should hold.
pub(super) fn by_libxml<'a>(
    compiled: &Compiled,
    events: &mut Events,
    payload: &Canonical,
    expected: impl Fn(&str, Option<&str>) -> Option<&'a str>,
) -> Result<(), SchemaError> {
    events.read(payload.as_str());
    let mut findings = Vec::new();
    let mut facet_at = None;
    for violation in compiled.validate(events, MOST) {
        // A broken facet is told twice: by its rule, and as a value that is none of its type.
        if facet_at == Some(violation.element) && messages::repeats_facet(&violation.message) {
            continue;
        }
        facet_at = messages::is_facet(&violation.message).then_some(violation.element);
        let rule = messages::sentence(&violation.message, payload.root().namespace(), &expected);
        findings.push((rule, (violation.element, payload.position(violation.element))));
    }
    SchemaError::told(payload, findings)
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

    /// The validator failed on a payload.
    pub(crate) fn unjudged(payload: &QName) -> Self {
        Self::whole(format!("{payload} could not be judged: the validator failed, which is a bug of the pump"), None)
    }

    /// Neither judge takes the schema.
    pub(super) fn left_alone(reason: &str) -> Self {
        Self::whole(format!("its schema can't be judged ({reason})"), None)
    }

    fn too_large(bytes: usize, reason: &str) -> Self {
        let rule = format!(
            "the payload has {bytes} bytes; its schema is judged by libxml, which takes {LARGEST_FOR_LIBXML} at most \
             ({reason})"
        );
        Self::whole(rule, None)
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
