//! A schema by itself, for documents that are no messages.

use std::sync::Arc;

use super::engine::{Components, Grammar, Judge, SchemaError, verdict};
use super::source::read::Reader;
use super::xsd::{self, compile};
use super::{ContractError, XsdDocument};
use crate::ladder::Canonical;
use crate::vocab::QName;

/// A schema of any declarations, and a validator of documents by it, for one OS thread.
///
/// A document is assessed by the declaration of its root, or else by its `xsi:type` (XML Schema part 1, section 5.2).
/// There may be no global element, and no proof is minted: a [`Validator`](super::Validator) judges payloads.
#[derive(Debug)]
pub struct Schema {
    grammar: Arc<Grammar>,
    judge: Judge,
    unresolved: Option<String>,
}

impl Schema {
    /// Compiles documents, which make one schema.
    ///
    /// # Errors
    /// [`ContractError::Document`] with the place and the reason.
    pub fn new(documents: &[XsdDocument]) -> Result<Self, ContractError> {
        let documents = xsd::documents(documents)?;
        let grammar = compile(&documents, &Reader::new(&documents)).map(Components::into_grammar)?;
        Ok(Self { grammar, judge: Judge::default(), unresolved: documents.unresolved() })
    }

    /// The names of its global elements, by local name.
    pub fn elements(&self) -> Vec<QName> {
        self.grammar.global_names()
    }

    /// A document that the schema includes or imports and that was not given, with the place of the reference, in words: such
    /// a one may declare what is missing.
    pub fn unresolved(&self) -> Option<&str> {
        self.unresolved.as_deref()
    }

    /// Validates a document. Takes linear time.
    ///
    /// # Errors
    /// [`SchemaError`] if the document breaks the schema, or no declaration and no type is known for its root.
    pub fn validate(&mut self, document: &Canonical) -> Result<(), SchemaError> {
        let root = document.root();
        let root = self.grammar.element(root.namespace(), root.local());
        verdict(&self.grammar, root, &mut self.judge, document)
    }
}
