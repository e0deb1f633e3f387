//! Contracts from `.xsd` documents. Callers pass in the texts; nothing is read or fetched.

mod hints;
mod namesake;
mod pitfalls;
mod structure;

use super::contract::{ContractError, DocumentProblem};
use super::engine::{self, Components};
use super::example::{Measure, Sizes, too_many};
use super::payload_schema::{ExampleSearch, PayloadSchema};
use super::shorten::quoted;
use super::source::XsdDocument;
use super::source::documents::Documents;
use super::source::read::Reader;
use crate::ladder::chars::has_scheme;
use crate::vocab::{QName, ns};
use foldhash::{HashMap, HashMapExt, HashSet, HashSetExt};
pub use pitfalls::Pitfall;

impl PayloadSchema {
    /// The payloads of one document: its global elements.
    ///
    /// # Errors
    /// [`ContractError::Document`] with the place and the reason.
    pub fn from_xsd(name: &str, text: &str) -> Result<Vec<Self>, ContractError> {
        Self::from_xsd_set(&[XsdDocument { name: name.to_owned(), text: text.to_owned() }])
    }

    /// The payloads of several documents, which make one schema: their global elements.
    ///
    /// An `xs:include` is found by its `schemaLocation` among the names (or by its last part, if only one
    /// document has that), an `xs:import` also by its namespace. Nothing else is ever loaded.
    ///
    /// # Errors
    /// [`ContractError::Document`] with the place and the reason.
    pub fn from_xsd_set(documents: &[XsdDocument]) -> Result<Vec<Self>, ContractError> {
        let documents = self::documents(documents)?;
        XsdSet(documents).schemas()
    }

    /// The payloads of a document that is part of the program, whose structure its tests judge.
    ///
    /// # Errors
    /// As [`from_xsd`](Self::from_xsd), but for those of the structure.
    pub(super) fn built_in(name: &str, text: &str) -> Result<Vec<Self>, ContractError> {
        XsdSet(Documents::built_in(name, text)).schemas()
    }
}

/// A set of schema documents that was read.
pub struct XsdSet(Documents);

impl XsdSet {
    /// Reads documents.
    ///
    /// # Errors
    /// At least one [`ContractError::Document`], each with a place and a reason.
    pub fn read(given: &[XsdDocument]) -> Result<Self, Vec<ContractError>> {
        Documents::read(given, structure::flaws).map(Self)
    }

    /// Valid markup of the documents that rarely means what its author intends.
    pub fn pitfalls(&self) -> Vec<Pitfall> {
        pitfalls::pitfalls(&self.0)
    }

    /// A declaration that has the name of a payload but declares none: a text with its place and a correction.
    pub fn namesake(&self, payload: &QName) -> Option<String> {
        namesake::namesake(&self.0, payload)
    }

    /// The payloads of the documents.
    ///
    /// # Errors
    /// [`ContractError::Document`] for the first rule of XML Schema that their components break.
    pub fn schemas(&self) -> Result<Vec<PayloadSchema>, ContractError> {
        let documents = &self.0;
        let reader = Reader::new(documents);
        let mut names = NAMES;
        for (qname, element) in reader.elements() {
            let bytes = PAYLOAD + qname.namespace().len() + qname.local().len();
            names = names
                .checked_sub(bytes)
                .ok_or_else(|| documents.problem(element, DocumentProblem::Rule(TOO_MANY.to_owned())))?;
        }
        let components = compile(documents, &reader)?;
        check_namespaces(documents, &reader)?;
        let grammar = components.grammar();
        let (mut digests, mut sources) = (HashMap::new(), HashMap::new());
        let mut seen = HashSet::new();
        let declared: Vec<_> = reader
            .elements()
            .iter()
            // Those of the schema for schemas are there for others to refer to.
            .filter(|(qname, _)| qname.namespace() != ns::XSD && seen.insert(qname))
            .filter_map(|(qname, element)| Some((qname, element, grammar.element(qname.namespace(), qname.local())?)))
            .collect();
        let models = components.models(declared.iter().map(|(qname, _, root)| (*qname, *root)), PARTS);
        let sizes = models.first().map(|model| Sizes::of(model, Measure::ELEMENTS));
        let search = ExampleSearch::new(EXAMPLES, models.len());
        let mut schemas: Vec<PayloadSchema> = Vec::new();
        for ((qname, element, root), model) in declared.into_iter().zip(models) {
            if let Some(elements) = sizes.as_ref().and_then(|sizes| too_many(&model, sizes)) {
                return Err(documents.problem(element, DocumentProblem::TooMany { elements }));
            }
            let document = documents.get(element.document);
            let digest = digests.entry(element.document).or_insert_with(|| documents.digest(element.document));
            let own = sources.entry(element.document).or_insert_with(|| documents.given_from(element.document));
            schemas.push(PayloadSchema::of_element(
                *digest,
                (grammar.clone(), root),
                (document.given.clone(), own.clone()),
                model,
                qname.clone(),
                search.clone(),
            ));
        }
        if schemas.is_empty() {
            return Err(documents.no_element());
        }
        Ok(schemas)
    }
}

/// Maximum number of steps that are taken to make the examples of all payloads of a schema, of which each has an equal
/// share: bytes that are written or validated, mainly.
const EXAMPLES: usize = 2 << 20;

/// Maximum number of bytes of the names of all payloads of a schema, namespaces included; each counts for [`PAYLOAD`]
/// bytes more.
const NAMES: usize = 1_900_000;
const PAYLOAD: usize = 180;
const TOO_MANY: &str = "the schema declares too many payloads: more than 1,900,000 bytes of their names and namespaces, 180 \
                        more for each; make elements that no message carries local";

/// Maximum number of types, elements, attributes and facets in the models of all payloads of a schema together; those of
/// a type count once. Payloads beyond that have no example.
const PARTS: usize = 100_000;

/// Refuses a payload in a relative namespace. A schema may have one, but Canonical XML and thus each message forbids it
/// (Exclusive XML Canonicalization 1.0, section 1.3, and Canonical XML 1.0, section 1.3).
fn check_namespaces(documents: &Documents, reader: &Reader<'_>) -> Result<(), ContractError> {
    let is_relative = |name: &QName| !name.namespace().is_empty() && !has_scheme(name.namespace().as_bytes());
    let Some((name, place)) = reader.elements().iter().find(|(name, _)| is_relative(name)) else { return Ok(()) };
    let namespace = quoted(name.namespace());
    let rule = format!(
        "no message can carry <{}>, because its namespace '{namespace}' is relative: write an absolute URI for the targetNamespace, such as urn:example:{namespace}",
        quoted(name.local()),
    );
    Err(documents.problem(place, DocumentProblem::Rule(rule)))
}

/// Reads the documents of a set, and judges their structure.
pub(super) fn documents(given: &[XsdDocument]) -> Result<Documents, ContractError> {
    Documents::new(given, structure::flaws)
}

/// Compiles the components of documents, which make one schema.
pub(super) fn compile<'r, 'a>(
    documents: &Documents,
    reader: &'r Reader<'a>,
) -> Result<Components<'r, 'a>, ContractError> {
    engine::compile(reader).map_err(|wrong| documents.wrong(wrong))
}
