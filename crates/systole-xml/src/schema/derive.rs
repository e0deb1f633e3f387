//! Schemas of Rust types.

use std::any::TypeId;
use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, OnceLock, PoisonError};

use super::contract::{ContractError, RoundTrip, TypePlace, TypeShape};
use super::engine::Grammar;
use super::example::{Examples, Measure, Parts, Sizes, Wanted, too_many};
use super::model::Model;
use super::payload_schema::{Checker, ExampleSearch, valid_example};
use super::source::documents::Documents;
use super::source::read::Reader;
use super::source::{SourceDocument, digest};
use super::{Payload, PayloadSchema, document, probe, types, xsd};
use crate::ladder::chars::has_scheme;
use crate::vocab::{QName, ns};

impl PayloadSchema {
    /// The schema from the fields and docs of a Rust type. It is made once in a process, and shared.
    pub(super) fn derived<T: Payload>() -> Result<Self, ContractError> {
        static DERIVED: LazyLock<Mutex<HashMap<TypeId, PayloadSchema>>> = LazyLock::new(Mutex::default);
        let derived = || DERIVED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = derived().get(&TypeId::of::<T>()) {
            return Ok(known.clone());
        }
        // Made outside of the lock: if several OS threads make it at once, the first one stored is used.
        let made = Self::derive::<T>()?;
        Ok(derived().entry(TypeId::of::<T>()).or_insert(made).clone())
    }

    /// The schema, made anew.
    pub(super) fn derive<T: Payload>() -> Result<Self, ContractError> {
        let type_name = T::schema_name().into_owned();
        let qname = name_of::<T>(&type_name)?;
        let model = types::model_of::<T>(T::NAMESPACE, T::ROOT)?;
        let probe = |model: &Model, examples: &Examples, checker: Checker| {
            probe::probe::<T>(&qname, (T::NAMESPACE, T::ROOT), (model, examples), checker)
        };
        Self::of_model(&type_name, qname.clone(), model, probe)
    }

    /// The schema of a model whose examples pass a test.
    pub(super) fn of_model(
        type_name: &str,
        qname: QName,
        mut model: Model,
        probe: impl FnOnce(&Model, &Examples, Checker) -> Result<(), RoundTrip>,
    ) -> Result<Self, ContractError> {
        let refuse = |shape| {
            let place = TypePlace { type_name: type_name.to_owned(), field: None };
            ContractError::Shape { place, shape }
        };
        let depths = Sizes::of(&model, Measure::DEPTH);
        if depths.element(&model.root).is_none() {
            return Err(refuse(TypeShape::Endless));
        }
        if let Some(elements) = too_many(&model, &Sizes::of(&model, Measure::ELEMENTS)) {
            return Err(refuse(TypeShape::TooMany { elements }));
        }
        let round_trip = |problem| ContractError::RoundTrip { type_name: type_name.to_owned(), problem };
        let compiled = compile(&mut model).map_err(|error| round_trip(RoundTrip::Schema(error.to_string())));
        let (document, grammar) = compiled?;
        let root = grammar.element(qname.namespace(), qname.local());
        let root = root.ok_or_else(|| round_trip(RoundTrip::Schema("its element is not declared".to_owned())))?;
        let path = (grammar, root);
        let checker = || Checker::new(&path.0, path.1);
        let parts =
            Parts::of(&model, Wanted { enumerated: 2 * probe::MOST_ALTERNATIVES, others: 2, steps: usize::MAX });
        let examples = Examples::of(&model, &parts);
        probe(&model, &examples, checker()).map_err(round_trip)?;
        let example = valid_example(&examples, true, checker(), usize::MAX);
        let example = example.ok_or_else(|| refuse(TypeShape::NoExample))?;
        let digest = digest([blake3::hash(document.as_bytes()).into()]);
        let (example, search) = (OnceLock::from(Some(example)), ExampleSearch::new(0, 1));
        let sources = Arc::new([SourceDocument::new(&format!("{}.xsd", qname.local()), document.clone())]);
        Ok(Self::assemble(qname, (digest, path), (document, sources), (model, None), (example, search)))
    }
}

/// Compiles a model by its document, and gives its simple types their compiled form.
pub(super) fn compile(model: &mut Model) -> Result<(Arc<str>, Arc<Grammar>), ContractError> {
    let (text, defined) = document::write(model);
    let documents = Documents::written(text)?;
    let reader = Reader::new(&documents);
    let components = xsd::compile(&documents, &reader)?;
    let types = components.simple_types();
    model.define(defined.iter().filter_map(|(node, id)| Some((*id, types.get(node)?.clone()))));
    Ok((documents.get(0).given.clone(), components.into_grammar()))
}

fn name_of<T: Payload>(type_name: &str) -> Result<QName, ContractError> {
    let refuse = |reason| ContractError::Name {
        type_name: type_name.to_owned(),
        namespace: T::NAMESPACE.to_owned(),
        root: T::ROOT.to_owned(),
        reason,
    };
    if [ns::XML, ns::XMLNS, ns::XSI].contains(&T::NAMESPACE) {
        return Err(refuse("that namespace belongs to XML itself: choose one of your own"));
    }
    if T::NAMESPACE.chars().any(|c| c.is_whitespace() || c.is_control() || matches!(c, '<' | '>' | '"' | '{' | '}')) {
        return Err(refuse("a namespace is a URI without spaces: write NAMESPACE such as urn:example:calculator:v1"));
    }
    if !T::NAMESPACE.is_empty() && !has_scheme(T::NAMESPACE.as_bytes()) {
        return Err(refuse("a relative namespace is in no message: write NAMESPACE such as urn:example:calculator:v1"));
    }
    QName::new(T::NAMESPACE, T::ROOT)
        .map_err(|_| refuse("ROOT must be a name without colon that starts with a letter or '_', such as add"))
}
