use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use super::events::Events;
use super::libxml2::Compiled;
use super::payload_schema::Digest;
use super::{Catalog, PayloadSchema, messages};
use crate::ladder::{Canonical, Element, Validated};
use crate::vocab::{Position, QName};

/// Violations that are told at most: a message can have as many as it has elements.
const MOST: usize = 8;

/// Why a payload breaks its schema.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{rule}")]
pub struct SchemaError {
    /// The first rule that is broken: the element, what was found, what was expected.
    pub rule: String,
    /// Where the element starts, in what the sender wrote.
    pub at: Option<Position>,
    /// What else is wrong, as far as it was looked at.
    pub more: Vec<Finding>,
}

/// One more broken rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The element, what was found, what was expected.
    pub rule: String,
    /// Where the element starts, in what the sender wrote.
    pub at: Option<Position>,
}

/// The compiled schemas of one thread, compiled when first needed.
pub struct Validator {
    catalog: Arc<Catalog>,
    compiled: HashMap<Digest, Result<Compiled, String>>,
    events: Events,
}

impl Validator {
    /// A validator of the payloads that the catalog knows.
    pub fn new(catalog: Arc<Catalog>) -> Self {
        Self { catalog, compiled: HashMap::new(), events: Events::default() }
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
        let Some(schema) = self.catalog.get(payload.root()) else {
            return Err(SchemaError::unknown(payload.root(), payload.position(0)));
        };
        let compiled = self.compiled.entry(schema.digest()).or_insert_with(|| compile(schema));
        match compiled {
            Ok(compiled) => {
                check(compiled, &mut self.events, &payload, |element, attribute| schema.expected(element, attribute))?;
            }
            Err(rule) => return Err(SchemaError { rule: rule.clone(), at: None, more: Vec::new() }),
        }
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

/// Judges a payload by a compiled schema. `expected` tells what an element, or an attribute of it, should hold.
pub(super) fn check<'a>(
    compiled: &Compiled,
    events: &mut Events,
    payload: &Canonical,
    expected: impl Fn(&str, Option<&str>) -> Option<&'a str>,
) -> Result<(), SchemaError> {
    events.read(payload.as_str());
    let mut findings: Vec<Finding> = Vec::new();
    let mut facet_at = None;
    for violation in compiled.validate(events, MOST) {
        // A broken facet is told twice: by its rule, and as a value that is none of its type.
        if facet_at == Some(violation.element) && messages::repeats_facet(&violation.message) {
            continue;
        }
        facet_at = messages::is_facet(&violation.message).then_some(violation.element);
        let rule = messages::sentence(&violation.message, payload.root().namespace(), &expected);
        findings.push(Finding { rule, at: payload.position(violation.element) });
    }
    let mut findings = findings.into_iter();
    match findings.next() {
        Some(Finding { rule, at }) => Err(SchemaError { rule, at, more: findings.collect() }),
        None => Ok(()),
    }
}

impl SchemaError {
    fn unknown(payload: &QName, at: Option<Position>) -> Self {
        Self { rule: format!("no schema is known for {payload}"), at, more: Vec::new() }
    }
}
