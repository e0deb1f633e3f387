//! The judges that a schema has in this crate, side by side: for differential tests and benchmarks. No part of the API.

use std::sync::Arc;

use super::engine::{Grammar, Judge};
use super::events::Events;
use super::libxml2::{Compiled, Fault};
use super::xsd::documents::Documents;
use super::xsd::read::Reader;
use super::xsd::{compile, plain};
use super::{ContractError, XsdDocument};
use crate::ladder::Canonical;
use crate::ladder::strict::canonicalize;
use crate::vocab::XmlLimits;

/// A schema, compiled for each judge.
#[derive(Debug)]
pub struct Judges {
    grammar: Result<Arc<Grammar>, String>,
    judge: Judge,
    compiled: Result<Compiled, String>,
    events: Events,
}

/// What a judge says: nothing, or the first rule that is broken.
pub type Verdict = Result<(), String>;

impl Judges {
    /// Compiles the first of several documents with those that it leads to.
    ///
    /// # Errors
    /// [`ContractError::Document`] if it is no schema document.
    pub fn new(documents: &[XsdDocument]) -> Result<Self, ContractError> {
        let documents = Documents::new(documents)?;
        let grammar = grammar(&documents);
        let compiled = libxml(&documents);
        Ok(Self { grammar, judge: Judge::default(), compiled, events: Events::default() })
    }

    /// Why the engine leaves the schema to libxml; `None` if it doesn't.
    pub fn unsupported(&self) -> Option<&str> {
        self.grammar.as_ref().err().map(String::as_str)
    }

    /// Judges by the engine of this crate; the error also tells that it doesn't support the schema.
    ///
    /// # Errors
    /// The first rule that the payload breaks.
    pub fn engine(&mut self, payload: &Canonical) -> Verdict {
        let grammar = self.grammar.as_ref().map_err(Clone::clone)?;
        let root = payload.root();
        let Some(element) = grammar.element(root.namespace(), root.local()) else {
            return Err(format!("no element {root} is declared"));
        };
        let violations = self.judge.judge(grammar, Some(element), payload, 1);
        violations.first().map_or(Ok(()), |violation| Err(format!("{violation:?}")))
    }

    /// Judges by libxml; the error also tells that it finds a mistake in the schema.
    ///
    /// # Errors
    /// The first rule that the payload breaks.
    pub fn libxml(&mut self, payload: &Canonical) -> Verdict {
        let compiled = self.compiled.as_ref().map_err(Clone::clone)?;
        self.events.read(payload.as_str());
        let violations = compiled.validate(&self.events, 1);
        violations.first().map_or(Ok(()), |violation| Err(violation.message.trim().to_owned()))
    }
}

/// What registration does for the engine: reads a document and compiles it. The result is the compiled form.
///
/// # Errors
/// What is wrong with it, or what the engine leaves to libxml.
pub fn compile_by_engine(document: &XsdDocument) -> Result<impl Sized + use<>, String> {
    let documents = Documents::new(std::slice::from_ref(document)).map_err(|error| error.to_string())?;
    grammar(&documents)
}

/// What libxml does with the same text.
///
/// # Errors
/// The first mistake that it finds.
pub fn compile_by_libxml(text: &str) -> Result<impl Sized + use<>, String> {
    Compiled::new(text, &[]).map_err(|faults| faults.first().map(|fault| fault.message.clone()).unwrap_or_default())
}

fn grammar(documents: &Documents) -> Result<Arc<Grammar>, String> {
    compile(documents, &Reader::new(documents)).map_err(|error| error.to_string())
}

fn libxml(documents: &Documents) -> Result<Compiled, String> {
    let (main, others) = documents.sources(0);
    let first = |faults: Vec<Fault>| faults.into_iter().next().map(|fault| fault.message).unwrap_or_default();
    Compiled::new(&main, &others).map_err(first)
}

/// A schema by itself, for documents that are no messages: what the public test suite judges.
#[derive(Debug)]
pub struct Whole {
    grammar: Arc<Grammar>,
    judge: Judge,
}

/// Why a document is no valid instance.
#[derive(Debug)]
pub enum Refusal {
    /// The schema is none.
    Schema(String),
    /// The document is not well-formed.
    NotWellFormed(String),
    /// It breaks a rule of the schema, the first one.
    Invalid(String),
}

impl Whole {
    /// Compiles documents, which make one schema.
    ///
    /// # Errors
    /// [`ContractError::Document`] says where and what is wrong.
    pub fn new(documents: &[XsdDocument]) -> Result<Self, ContractError> {
        let documents = Documents::new(documents)?;
        Ok(Self { grammar: compile(&documents, &Reader::new(&documents))?, judge: Judge::default() })
    }

    /// Judges a document. A root without declaration is judged by its `xsi:type`.
    ///
    /// # Errors
    /// [`Refusal`] says why it is not valid.
    pub fn judge(&mut self, text: &str) -> Result<(), Refusal> {
        let text = plain(text).map_err(|(_, problem)| Refusal::NotWellFormed(problem))?;
        let limits = XmlLimits { relative_namespaces: true, ..XmlLimits::UNLIMITED };
        let document =
            canonicalize(&text.into(), &limits).map_err(|error| Refusal::NotWellFormed(error.to_string()))?;
        let root = document.root();
        let root = self.grammar.element(root.namespace(), root.local());
        let violations = self.judge.judge(&self.grammar, root, &document, 1);
        violations.into_iter().next().map_or(Ok(()), |violation| Err(Refusal::Invalid(violation.rule)))
    }
}
