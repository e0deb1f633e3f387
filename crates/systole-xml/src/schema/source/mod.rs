//! Schema documents: their trees, links, and components by name. Callers pass in the texts; nothing is read or fetched.

mod broken_rule;
mod digest;
pub(super) mod documents;
pub(super) mod embed;
mod encoding;
mod needed;
mod place;
mod prolog;
pub(super) mod read;
pub(super) mod tree;
mod versions;

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::contract::{ContractError, DocumentProblem};
use crate::vocab::Position;
pub(super) use broken_rule::BrokenSchemaRule;
pub(super) use digest::{Digest, digest};
pub use encoding::{EncodingError, decoded};
pub(super) use place::Place;
pub(super) use prolog::plain;

/// A schema document as text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct XsdDocument {
    /// The name by which a `schemaLocation` of other documents refers to it: its path, relative to theirs.
    pub name: String,
    /// The document.
    pub text: String,
}

/// A document that declares a payload, or that such a one leads to, as its author wrote it. Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SourceDocument {
    /// The name under which it was given: mostly a path. One that ends with `.json` is a JSON Schema.
    pub name: Arc<str>,
    /// The text.
    pub text: Arc<str>,
}

impl SourceDocument {
    pub(super) fn new(name: &str, text: Arc<str>) -> Self {
        Self { name: name.into(), text }
    }
}

pub(super) fn document_error(document: &str, at: Position, problem: DocumentProblem) -> ContractError {
    ContractError::Document { document: document.to_owned(), at, problem: problem.bounded() }
}
