//! The schema of one payload.

use std::any::TypeId;
use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, OnceLock, PoisonError};

use schemars::SchemaGenerator;
use serde_json::Value;

use super::contract::{ContractError, RoundTrip, TypePlace, TypeShape};
use super::engine::{ElementId, Grammar, Judge};
use super::example::{Examples, Measure, Parts, Sizes, Wanted, Wish, too_many};
use super::model::Model;
use super::validator::{SchemaError, by_engine};
use super::xsd::{self, embed};
use super::{Payload, document, probe, prompt, types, vocabulary};
use crate::ladder::Canonical;
use crate::ladder::repair::Vocabulary;
use crate::vocab::{QName, ns};

/// The schema of one payload, with its example, prompt and documents. Cheap to clone.
#[derive(Debug, Clone)]
pub struct PayloadSchema(Arc<Inner>);

/// BLAKE3 hash of the documents of a schema.
pub(super) type Digest = [u8; 32];

#[derive(Debug)]
struct Inner {
    qname: QName,
    digest: Digest,
    /// The grammar that judges the payload, shared by all OS threads, and the payload's declaration in it.
    grammar: (Arc<Grammar>, ElementId),
    document: Arc<str>,
    /// The part of the documents that the payload needs, made on demand.
    part: OnceLock<Option<Canonical>>,
    /// The content of the payload. What examples, prompts and repair need of it is made on demand: most payloads of a
    /// large schema are never sent.
    model: Model,
    example: OnceLock<Option<Canonical>>,
    room: ExampleRoom,
    description: OnceLock<String>,
    prompt: OnceLock<Prompt>,
    json_schema: Option<Value>,
    vocabulary: OnceLock<Option<Vocabulary>>,
}

/// The state that the search for the examples of all payloads of a schema shares. No question changes what another one
/// finds.
#[derive(Debug, Clone)]
pub(super) struct ExampleRoom(Arc<Room>);

#[derive(Debug)]
struct Room {
    /// Number of steps for all payloads together: a step for each byte that is written or validated, and for each part of
    /// a model that is visited.
    steps: usize,
    /// Number of payloads.
    payloads: usize,
    /// The parts of examples, found when the first one is asked for.
    parts: OnceLock<Parts>,
}

impl ExampleRoom {
    /// Maximum number of steps for the values of all types.
    const VALUES: usize = 1 << 20;

    /// The least number of steps for a payload: an example of few elements.
    const LEAST: usize = 1 << 10;

    pub(super) fn new(steps: usize, payloads: usize) -> Self {
        Self(Arc::new(Room { steps, payloads, parts: OnceLock::new() }))
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

    fn derive<T: Payload>() -> Result<Self, ContractError> {
        let type_name = T::schema_name().into_owned();
        let qname = name_of::<T>(&type_name)?;
        let model = types::model_of::<T>(T::NAMESPACE, T::ROOT)?;
        let refuse = |shape| {
            let place = TypePlace { type_name: type_name.clone(), field: None };
            ContractError::Shape { place, shape }
        };
        let depths = Sizes::of(&model, Measure::DEPTH);
        if depths.element(&model.root).is_none() {
            return Err(refuse(TypeShape::Endless));
        }
        if let Some(elements) = too_many(&model, &Sizes::of(&model, Measure::ELEMENTS)) {
            return Err(refuse(TypeShape::TooMany { elements }));
        }
        let document = document::write(&model);
        let round_trip = |problem| ContractError::RoundTrip { type_name: type_name.clone(), problem };
        let grammar = xsd::grammar_of(&document).map_err(|error| round_trip(RoundTrip::Schema(error.to_string())))?;
        let root = grammar.element(qname.namespace(), qname.local());
        let root = root.ok_or_else(|| round_trip(RoundTrip::Schema("its element is not declared".to_owned())))?;
        let path = (grammar, root);
        let checker = || Checker::new(&path.0, path.1);
        let parts = Parts::of(&model, Wanted { enumerated: usize::MAX, others: 2, steps: usize::MAX });
        let examples = Examples::of(&model, &parts);
        probe::probe::<T>(&qname, (T::NAMESPACE, T::ROOT), (&model, &examples), checker()).map_err(round_trip)?;
        let example = valid_example(&examples, true, checker(), usize::MAX);
        let example = example.ok_or_else(|| refuse(TypeShape::NoExample))?;
        let json_schema = SchemaGenerator::default().into_root_schema_for::<T>().to_value();
        let digest = digest([blake3::hash(document.as_bytes()).into()]);
        let (example, room) = (OnceLock::from(Some(example)), ExampleRoom::new(0, 1));
        Ok(Self::assemble(qname, (digest, path), document.into(), model, (example, room), Some(json_schema)))
    }

    /// The schema of a global element of `.xsd` documents.
    pub(super) fn of_element(
        digest: Digest,
        grammar: (Arc<Grammar>, ElementId),
        document: Arc<str>,
        model: Model,
        qname: QName,
        room: ExampleRoom,
    ) -> Self {
        Self::assemble(qname, (digest, grammar), document, model, (OnceLock::new(), room), None)
    }

    fn assemble(
        qname: QName,
        (digest, grammar): (Digest, (Arc<Grammar>, ElementId)),
        document: Arc<str>,
        model: Model,
        (example, room): (OnceLock<Option<Canonical>>, ExampleRoom),
        json_schema: Option<Value>,
    ) -> Self {
        Self(Arc::new(Inner {
            description: OnceLock::new(),
            prompt: OnceLock::new(),
            vocabulary: OnceLock::new(),
            model,
            qname,
            digest,
            grammar,
            document,
            part: OnceLock::new(),
            example,
            room,
            json_schema,
        }))
    }

    /// The name of the payload.
    pub fn qname(&self) -> &QName {
        &self.0.qname
    }

    /// The XSD document that declares the payload.
    pub fn document(&self) -> &str {
        &self.0.document
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
            let (parts, steps) = self.0.room.share(&self.0.model);
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

    /// The JSON Schema of a Rust type.
    pub fn json_schema(&self) -> Option<&Value> {
        self.0.json_schema.as_ref()
    }

    /// Tells whether the elements inside of the payload are in its namespace.
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

    pub(super) fn digest(&self) -> Digest {
        self.0.digest
    }
}

/// The judge of examples while a schema is made.
pub(super) struct Checker<'g> {
    grammar: &'g Grammar,
    root: ElementId,
    judge: Judge,
}

impl<'g> Checker<'g> {
    fn new(grammar: &'g Grammar, root: ElementId) -> Self {
        Self { grammar, root, judge: Judge::default() }
    }

    pub(super) fn check(&mut self, payload: &Canonical) -> Result<(), SchemaError> {
        by_engine(self.grammar, self.root, &mut self.judge, payload)
    }

    /// Tells whether a payload is valid; takes the steps of the validation from `room`.
    fn allows(&mut self, payload: &Canonical, room: &mut usize) -> bool {
        self.judge.allows(self.grammar, self.root, payload, room)
    }
}

/// The digest of documents by their own digests, sorted.
pub(super) fn digest(documents: impl IntoIterator<Item = Digest>) -> Digest {
    let mut digests: Vec<Digest> = documents.into_iter().collect();
    digests.dedup();
    blake3::hash(digests.as_flattened()).into()
}

/// The example to show: the author's if it is valid, else a generated one, found within `steps`.
fn valid_example(examples: &Examples, has_hints: bool, mut checker: Checker, steps: usize) -> Option<Canonical> {
    let least = |choice| Wish { full: false, hints: false, choice, ..Wish::SHOWN };
    let full = |hints| Wish { hints, ..Wish::SHOWN };
    let mut wishes = vec![full(false), least(0), least(1), least(2)];
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
    QName::new(T::NAMESPACE, T::ROOT)
        .map_err(|_| refuse("ROOT must be a name without colon that starts with a letter or '_', such as add"))
}
