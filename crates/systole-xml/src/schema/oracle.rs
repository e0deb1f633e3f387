//! The validators of this crate side by side: for differential tests and benchmarks. No part of the API.

#[cfg(feature = "libxml")]
mod both;

use std::sync::Arc;

#[cfg(feature = "libxml")]
pub use both::{Judges, compile_by_libxml};
use serde_json::Value;

use super::engine::{Components, Grammar};
use super::source::documents::Documents;
use super::source::plain;
use super::source::read::Reader;
use super::xsd::{self, compile};
use super::{ContractError, Payload, PayloadSchema, Schema, XsdDocument, types};
use crate::ladder::strict::canonicalize;
use crate::vocab::{QName, XmlLimits};

/// The verdict of a validator: valid, or the first rule that is broken.
pub type Verdict = Result<(), String>;

/// Reads a document and compiles it for the engine, as registration does. The result is the compiled form.
///
/// # Errors
/// The problem of the document, or a feature that the engine leaves to libxml.
pub fn compile_by_engine(document: &XsdDocument) -> Result<impl Sized + use<>, String> {
    let documents = xsd::documents(std::slice::from_ref(document)).map_err(|error| error.to_string())?;
    grammar(&documents)
}

/// Makes the schema of a Rust type, as its first registration in a process does.
///
/// # Errors
/// [`ContractError`] if XML can't carry the type.
pub fn contract<T: Payload>() -> Result<PayloadSchema, ContractError> {
    PayloadSchema::derive::<T>()
}

/// Makes the schema of the Rust type that a JSON Schema describes as schemars does, as far as no value of it is needed.
///
/// # Errors
/// [`ContractError`] if XML can't carry the type.
pub fn described(payload: QName, schema: &Value) -> Result<PayloadSchema, ContractError> {
    let model = types::model_of_description(payload.namespace(), payload.local(), schema)?;
    PayloadSchema::of_model(payload.local(), payload.clone(), model, |_, _, _| Ok(()))
}

fn grammar(documents: &Documents) -> Result<Arc<Grammar>, String> {
    let reader = Reader::new(documents);
    compile(documents, &reader).map(Components::into_grammar).map_err(|error| error.to_string())
}

/// A schema for texts such as those of the public test suite, which have a DOCTYPE or relative namespace names.
#[derive(Debug)]
pub struct Whole(Schema);

/// The reason why a document is no valid instance.
#[derive(Debug)]
pub enum Refusal {
    /// A schema that can't be compiled.
    Schema(String),
    /// A document that is not well-formed.
    NotWellFormed(String),
    /// The first rule of the schema that the document breaks.
    Invalid(String),
}

impl Whole {
    /// Compiles documents, which make one schema.
    ///
    /// # Errors
    /// [`ContractError::Document`] with the place and the reason.
    pub fn new(documents: &[XsdDocument]) -> Result<Self, ContractError> {
        Schema::new(documents).map(Self)
    }

    /// Judges a document. A root without declaration is judged by its `xsi:type`.
    ///
    /// # Errors
    /// [`Refusal`] with the reason.
    pub fn judge(&mut self, text: &str) -> Result<(), Refusal> {
        let text = plain(text).map_err(|(_, problem)| Refusal::NotWellFormed(problem))?;
        let limits = XmlLimits { relative_namespaces: true, ..XmlLimits::UNLIMITED };
        let document =
            canonicalize(&text.into(), &limits).map_err(|error| Refusal::NotWellFormed(error.to_string()))?;
        self.0.validate(&document).map_err(|error| Refusal::Invalid(error.rule))
    }
}
