//! The schema of one payload.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, OnceLock};

use serde_json::Value;

use super::contract::ContractError;
use super::engine::{ElementId, Form, FormPage, FormStep, Grammar, Judge, SchemaError, form_page, verdict};
use super::example::{Examples, Parts, Wanted, Wish};
use super::json::values::ValueRules;
use super::model::Model;
use super::source::{Digest, SourceDocument, embed};
use super::{FromJsonError, JsonPayload, Payload, json, prompt, vocabulary};
use crate::ladder::Canonical;
use crate::ladder::repair::Vocabulary;
use crate::vocab::{QName, XmlLimits};

/// The schema of one payload, with its example, prompt and documents. Cheap to clone.
#[derive(Clone)]
pub struct PayloadSchema(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    qname: QName,
    digest: Digest,
    /// The grammar that judges the payload, shared by all OS threads, and the payload's declaration in it.
    grammar: (Arc<Grammar>, ElementId),
    /// The XSD document that declares the payload.
    document: Arc<str>,
    /// The documents of its author.
    sources: Arc<[SourceDocument]>,
    /// The part of the documents that the payload needs, made on demand.
    part: OnceLock<Option<Canonical>>,
    /// The content of the payload. What examples, prompts and repair need of it is made on demand: most payloads of a
    /// large schema are never sent.
    model: Model,
    /// The rules of the JSON values in it, if a JSON Schema is its source.
    values: Option<ValueRules>,
    example: OnceLock<Option<Canonical>>,
    search: ExampleSearch,
    description: OnceLock<String>,
    prompt: OnceLock<Prompt>,
    json_schema: OnceLock<Value>,
    json: OnceLock<json::Mapping>,
    vocabulary: OnceLock<Option<Vocabulary>>,
}

/// The state that the search for the examples of all payloads of a schema shares. No question changes what another one
/// finds.
#[derive(Debug, Clone)]
pub(super) struct ExampleSearch(Arc<SharedSearch>);

#[derive(Debug)]
struct SharedSearch {
    /// Number of steps for all payloads together: a step for each byte that is written or validated, and for each part of
    /// a model that is visited.
    steps: usize,
    /// Number of payloads.
    payloads: usize,
    /// The parts of examples, found when the first one is asked for.
    parts: OnceLock<Parts>,
}

impl ExampleSearch {
    /// Maximum number of steps for the values of all types.
    const VALUES: usize = 1 << 20;

    /// The least number of steps for a payload, however many others its schema has: an example of some hundred elements. An
    /// example is made when it is asked for, so that only those of the payloads in use cost anything.
    const LEAST: usize = 1 << 15;

    pub(super) fn new(steps: usize, payloads: usize) -> Self {
        Self(Arc::new(SharedSearch { steps, payloads, parts: OnceLock::new() }))
    }

    /// The parts of examples, and the number of steps for each payload.
    fn share(&self, model: &Model) -> (&Parts, usize) {
        let wanted = Wanted { enumerated: 1, others: 1, steps: Self::VALUES };
        let parts = self.0.parts.get_or_init(|| Parts::of(model, wanted));
        let share = self.0.steps.saturating_sub(parts.work) / self.0.payloads.max(1);
        (parts, share.max(Self::LEAST))
    }
}

#[derive(Debug)]
struct Prompt {
    text: String,
    /// Length of the part before the words on how to send the payload.
    described: usize,
}

impl PayloadSchema {
    /// The schema of a Rust type.
    ///
    /// # Errors
    /// [`ContractError`] names the type and field that XML can't carry, with a correction.
    pub fn of<T: Payload>() -> Result<Self, ContractError> {
        T::contract()
    }

    /// The schema of a global element of `.xsd` documents.
    pub(super) fn of_element(
        digest: Digest,
        grammar: (Arc<Grammar>, ElementId),
        written: (Arc<str>, Arc<[SourceDocument]>),
        model: Model,
        qname: QName,
        search: ExampleSearch,
    ) -> Self {
        Self::assemble(qname, (digest, grammar), written, (model, None), (OnceLock::new(), search))
    }

    pub(super) fn assemble(
        qname: QName,
        (digest, grammar): (Digest, (Arc<Grammar>, ElementId)),
        (document, sources): (Arc<str>, Arc<[SourceDocument]>),
        (model, values): (Model, Option<ValueRules>),
        (example, search): (OnceLock<Option<Canonical>>, ExampleSearch),
    ) -> Self {
        Self(Arc::new(Inner {
            description: OnceLock::new(),
            prompt: OnceLock::new(),
            vocabulary: OnceLock::new(),
            model,
            values,
            qname,
            digest,
            grammar,
            document,
            sources,
            part: OnceLock::new(),
            example,
            search,
            json_schema: OnceLock::new(),
            json: OnceLock::new(),
        }))
    }

    /// The same with a valid instance as its example, or without one.
    pub(super) fn with_example(self, example: Option<Canonical>) -> Self {
        // None has been asked for.
        let _ = self.0.example.set(example);
        self
    }

    /// Judges the JSON values in a payload that its grammar allows.
    ///
    /// # Errors
    /// The first broken rule.
    pub(super) fn check_values(&self, payload: &Canonical) -> Result<(), SchemaError> {
        json::values::check(self.mapping(), self.0.values.as_ref(), payload)
    }

    /// Returns whether a JSON Schema judges values in it.
    pub(super) fn has_values(&self) -> bool {
        self.0.values.is_some()
    }

    /// The content of the payload.
    pub(super) fn model(&self) -> &Model {
        &self.0.model
    }

    /// The name of the payload.
    pub fn qname(&self) -> &QName {
        &self.0.qname
    }

    /// The XSD document that declares the payload.
    pub fn document(&self) -> &str {
        &self.0.document
    }

    /// The documents that declare the payload, as their author wrote them: the first one has the declaration, and the others
    /// are those that it leads to. A contract that is written as JSON Schema is one document; that of a Rust type is the XSD
    /// document that was made of it.
    pub fn sources(&self) -> &[SourceDocument] {
        &self.0.sources
    }

    /// The declaration of the payload, with the types and other components of its document that it refers to, as one
    /// canonical schema that can be embedded in a message: each prefix that its references use is bound where
    /// canonicalization keeps it. Other declarations of the document are left out.
    pub fn embeddable_document(&self) -> Option<&Canonical> {
        self.0.part.get_or_init(|| embed::part(&self.0.document, &self.0.qname)).as_ref()
    }

    /// A valid instance. A Rust type always has one, an `.xsd` contract only if one was found.
    pub fn example(&self) -> Option<&Canonical> {
        let make = || {
            let (grammar, root) = self.grammar();
            let (parts, steps) = self.0.search.share(&self.0.model);
            valid_example(&Examples::of(&self.0.model, parts), false, Checker::new(grammar, root), steps)
        };
        self.0.example.get_or_init(make).as_ref()
    }

    /// The purpose of the payload in one line; empty without docs.
    pub fn description(&self) -> &str {
        self.0.description.get_or_init(|| prompt::description(&self.0.model))
    }

    /// A prompt fragment for a language model: description, fields with docs and bounds, example, and how to reply.
    pub fn prompt(&self) -> &str {
        &self.made_prompt().text
    }

    /// The part of the prompt before how to reply: for a prompt that describes several payloads.
    pub fn words(&self) -> &str {
        let Prompt { text, described } = self.made_prompt();
        text[..*described].trim_end()
    }

    fn made_prompt(&self) -> &Prompt {
        self.0.prompt.get_or_init(|| {
            let (text, described) = prompt::prompt(&self.0.model, self.example());
            Prompt { text, described }
        })
    }

    /// The JSON Schema (draft 2020-12) of the payload as a JSON object, as [`Self::to_json`] writes it and
    /// [`Self::from_json`] reads it. Rules that JSON Schema can't express are in its descriptions.
    pub fn json_schema(&self) -> &Value {
        self.0.json_schema.get_or_init(|| {
            let example = || serde_json::from_str(&self.to_json(self.example()?)).ok();
            json::schema(&self.0.model, self.0.values.as_ref(), example)
        })
    }

    /// Writes a valid payload of this schema as a JSON object. Takes linear time.
    ///
    /// The names of prefixes and white space between elements are not kept; [`Self::from_json`] makes the rest of the
    /// payload again, byte for byte.
    pub fn to_json(&self, payload: &Canonical) -> String {
        json::to_json(self.mapping(), payload, None, json::Literals::Written)
    }

    /// Writes a valid payload as [`Self::to_json`] does, but each number and truth value as JSON writes it: `true` for the `1` of an
    /// `xs:boolean`, `0.5` for `.5`. [`Self::from_json`] makes a payload of the same values.
    pub fn to_canonical_json(&self, payload: &Canonical) -> String {
        json::to_json(self.mapping(), payload, None, json::Literals::Canonical)
    }

    /// Writes a valid payload as [`Self::to_named_json`] does, with the values of [`Self::to_canonical_json`].
    pub fn to_named_canonical_json(&self, payload: &Canonical, name: &str) -> String {
        json::to_json(self.mapping(), payload, Some(name), json::Literals::Canonical)
    }

    /// Writes a valid payload of this schema as JSON with its name: an object of one property, `{"name": …}`.
    pub fn to_named_json(&self, payload: &Canonical, name: &str) -> String {
        json::to_json(self.mapping(), payload, Some(name), json::Literals::Written)
    }

    /// Reads a JSON object as a payload. The XML that comes out is as trusted as the JSON was: the ladder and the
    /// [`Validator`](super::Validator) judge it as always. Takes linear time, and never recurses.
    ///
    /// # Errors
    /// [`FromJsonError`](super::FromJsonError) with the place, if the text is no JSON, passes a limit, or is of another form than the
    /// schema has.
    pub fn from_json<'t>(&self, json: &'t str, limits: &XmlLimits) -> Result<JsonPayload<'t>, FromJsonError> {
        json::convert(self.mapping(), json::parse(json, limits)?, 0, false, limits)
    }

    /// The mapping to JSON, which a payload that is never written as JSON doesn't need.
    pub(super) fn mapping(&self) -> &json::Mapping {
        self.0.json.get_or_init(|| json::Mapping::of(&self.0.model))
    }

    /// Starts a form in which a person writes the payload. Returns the form and its first question.
    #[doc(hidden)]
    pub fn form(&self, limits: XmlLimits) -> (Form, FormStep) {
        Form::new(self.0.grammar.clone(), self.is_qualified(), limits)
    }

    /// Makes a page with the questions of the form, filled with answers by the keys of their fields.
    #[doc(hidden)]
    pub fn form_page(&self, limits: &XmlLimits, answers: &HashMap<String, String>) -> FormPage {
        let (grammar, root) = &self.0.grammar;
        form_page((grammar, *root), self.is_qualified(), limits, answers)
    }

    /// Returns whether the elements inside of the payload are in its namespace.
    pub fn is_qualified(&self) -> bool {
        self.0.model.is_qualified()
    }

    /// The elements of the payload, for the repair of instances; `None` if an instance may have others.
    pub(super) fn vocabulary(&self) -> Option<&Vocabulary> {
        self.0.vocabulary.get_or_init(|| vocabulary::of_model(&self.0.model)).as_ref()
    }

    /// The grammar that judges the payload, and the payload's declaration in it.
    pub(super) fn grammar(&self) -> (&Grammar, ElementId) {
        (&self.0.grammar.0, self.0.grammar.1)
    }

    /// Returns whether it is the same declaration of the same documents.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || (self.0.digest == other.0.digest && self.0.qname == other.0.qname)
    }

    pub(super) fn digest(&self) -> Digest {
        self.0.digest
    }
}

impl fmt::Debug for PayloadSchema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PayloadSchema").field(&self.0.qname).finish()
    }
}

/// The judge of examples while a schema is made.
pub(super) struct Checker<'g> {
    grammar: &'g Grammar,
    root: ElementId,
    judge: Judge,
}

impl<'g> Checker<'g> {
    pub(super) fn new(grammar: &'g Grammar, root: ElementId) -> Self {
        Self { grammar, root, judge: Judge::default() }
    }

    pub(super) fn check(&mut self, payload: &Canonical) -> Result<(), SchemaError> {
        verdict(self.grammar, Some(self.root), &mut self.judge, payload)
    }

    /// Returns whether a payload is valid; takes the steps of the validation from `room`.
    fn allows(&mut self, payload: &Canonical, room: &mut usize) -> bool {
        self.judge.allows(self.grammar, self.root, payload, room)
    }
}

/// The example to show: the author's if it is valid, else a generated one, found within `steps`.
pub(super) fn valid_example(
    examples: &Examples,
    has_hints: bool,
    mut checker: Checker,
    steps: usize,
) -> Option<Canonical> {
    let least = |choice| Wish { full: false, hints: false, choice, ..Wish::SHOWN };
    let full = |hints| Wish { hints, ..Wish::SHOWN };
    let mut wishes = vec![full(false), least(0), least(1), least(2)];
    if checker.grammar.has_keys() {
        let distinct = |wish| Wish { distinct: true, ..wish };
        wishes = vec![full(false), distinct(full(false)), least(0), distinct(least(0)), least(1), least(2)];
    }
    // Only Rust types have examples of their author.
    if has_hints {
        wishes = vec![full(true), full(false), Wish { hints: true, ..least(0) }, least(0)];
    }
    let mut left = steps;
    wishes.into_iter().find_map(|wish| {
        // A try has half of the steps at most, so that a smaller example can follow.
        let mut room = left / 2;
        left -= room;
        let found = examples.example(wish, &mut room).filter(|example| checker.allows(example, &mut room));
        left += room;
        found
    })
}
