//! Contracts from `.xsd` documents: the texts come in, nothing is read or fetched.

pub(super) mod documents;
pub(super) mod embed;
mod needed;
mod prolog;
pub(super) mod read;
mod simple;
pub(super) mod tree;
mod weight;

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use super::contract::{ContractError, DocumentProblem};
use super::engine;
use super::example::requires_too_many;
use super::libxml2::Compiled;
use super::model::{Complex, Content, Element, Model, Type};
use super::path::{Compilation, Path};
use super::payload_schema::{Digest, PayloadSchema};
use crate::vocab::{Position, QName};
use documents::Documents;
use read::Reader;

/// A schema document that is given by its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct XsdDocument {
    /// What other documents call it in a `schemaLocation`: its path, relative to theirs.
    pub name: String,
    /// The document.
    pub text: String,
}

impl PayloadSchema {
    /// The payloads of one document: its global elements.
    ///
    /// # Errors
    /// [`ContractError::Document`] says where and what is wrong.
    pub fn from_xsd(name: &str, text: &str) -> Result<Vec<Self>, ContractError> {
        Self::from_xsd_set(&[XsdDocument { name: name.to_owned(), text: text.to_owned() }])
    }

    /// The payloads of several documents, which may include and import each other: their global elements.
    ///
    /// An `xs:include` is found by its `schemaLocation` among the names (or by its last part, where only one
    /// document has that), an `xs:import` also by its namespace. Nothing else is ever loaded.
    ///
    /// # Errors
    /// [`ContractError::Document`] says where and what is wrong.
    pub fn from_xsd_set(documents: &[XsdDocument]) -> Result<Vec<Self>, ContractError> {
        let documents = Documents::new(documents)?;
        let mut known: HashMap<Digest, (Option<Compiled>, Compilation)> = HashMap::new();
        let mut schemas: Vec<Self> = Vec::new();
        for root in documents.roots() {
            let sources = documents.sources(root);
            let reader = Reader::new(&documents, root);
            // libxml finds the mistakes in schemas; the engine takes them for right. With some schemas libxml never
            // ends, and those that the engine knows of are kept from it.
            let (compiled, grammar) = match known.entry(sources.digest) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(new) => {
                    if let Some((place, problem)) = weight::too_large(&reader) {
                        return Err(documents.problem(&place, problem));
                    }
                    let grammar = grammar(&reader);
                    let compiled = match &grammar {
                        Ok(compiled) if compiled.by_union => None,
                        _ => Some(Compiled::new(&sources.main, &sources.others)),
                    };
                    let compiled = compiled.transpose().map_err(|faults| documents.error(root, faults))?;
                    new.insert((compiled, grammar))
                }
            };
            for (qname, element) in reader.elements() {
                if schemas.iter().any(|known| *known.qname() == qname) {
                    continue;
                }
                let model = reader.model(element).unwrap_or_else(|| opaque(&qname));
                if let Some(elements) = requires_too_many(&model) {
                    return Err(documents.problem(element, DocumentProblem::TooMany { elements }));
                }
                let document = documents.get(element.document);
                let embeddable = document.embeddable.clone();
                let text = document.given.clone();
                let path = Path::of(grammar, &qname);
                schemas.push(Self::of_element(
                    sources.clone(),
                    compiled.as_ref(),
                    path,
                    text,
                    embeddable,
                    &model,
                    qname,
                ));
            }
        }
        if schemas.is_empty() {
            return Err(documents.no_element());
        }
        Ok(schemas)
    }
}

/// The grammar of one document that refers to no other, or why there is none.
pub(super) fn grammar_of(document: &str) -> Result<Compilation, ContractError> {
    let documents = Documents::new(&[XsdDocument { name: String::new(), text: document.to_owned() }])?;
    let reader = Reader::new(&documents, 0);
    match weight::too_large(&reader) {
        Some((place, problem)) => Err(documents.problem(&place, problem)),
        None => Ok(grammar(&reader)),
    }
}

fn grammar(reader: &Reader) -> Compilation {
    engine::compile(reader).map_err(|unsupported| unsupported.0.into())
}

/// The model of an element of which only the name is understood.
fn opaque(qname: &QName) -> Model {
    let content = Complex { name: None, doc: String::new(), attributes: Vec::new(), content: Content::Empty };
    let root = Element {
        namespace: qname.namespace().into(),
        local: qname.local().to_owned(),
        doc: String::new(),
        ty: 0,
        fixed: None,
        hints: Vec::new(),
    };
    Model { root, types: vec![Type::Complex(content)] }
}

fn document_error(document: &str, at: Option<Position>, problem: DocumentProblem) -> ContractError {
    ContractError::Document { document: document.to_owned(), at, problem }
}
