//! The engine beside libxml2.

use std::sync::Arc;

use super::{Verdict, grammar};
use crate::ladder::Canonical;
use crate::schema::engine::{Grammar, Judge};
use crate::schema::libxml2::{Compiled, Fault};
use crate::schema::{ContractError, XsdDocument};

/// A schema, compiled for both validators.
#[derive(Debug)]
pub struct Judges {
    grammar: Result<Arc<Grammar>, String>,
    judge: Judge,
    compiled: Result<Compiled, String>,
}

impl Judges {
    /// Compiles the first of several documents together with those that it refers to.
    ///
    /// # Errors
    /// [`ContractError::Document`] if it is no schema document.
    pub fn new(documents: &[XsdDocument]) -> Result<Self, ContractError> {
        let documents = crate::schema::xsd::documents(documents)?;
        let grammar = grammar(&documents);
        let (main, others) = documents.sources(&[0]);
        let compiled = Compiled::new(&main, &others).map_err(first);
        Ok(Self { grammar, judge: Judge::default(), compiled })
    }

    /// The reason for which the engine leaves the schema to libxml; `None` if it doesn't.
    pub fn unsupported(&self) -> Option<&str> {
        self.grammar.as_ref().err().map(String::as_str)
    }

    /// Validates by the engine of this crate. A schema that it doesn't support is an error, too.
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

    /// Validates by libxml. An error that it finds in the schema is an error, too.
    ///
    /// # Errors
    /// The first rule that the payload breaks.
    pub fn libxml(&self, payload: &Canonical) -> Verdict {
        let compiled = self.compiled.as_ref().map_err(Clone::clone)?;
        compiled.validate(payload.as_str()).map_err(|fault| fault.message)
    }
}

/// Compiles a schema document by libxml.
///
/// # Errors
/// The first error that libxml reports.
pub fn compile_by_libxml(text: &str) -> Result<impl Sized + use<>, String> {
    Compiled::new(text, &[]).map_err(first)
}

fn first(faults: Vec<Fault>) -> String {
    faults.into_iter().next().map(|fault| fault.message).unwrap_or_default()
}
