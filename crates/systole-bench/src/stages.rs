//! Case (g): the stages of the ladder one by one, and references that do the same work.

use std::hint::black_box;
use std::sync::Arc;

use bytes::Bytes;
use systole_core::vocab::XmlLimits;
use systole_xml::ladder::{Canonical, Envelope, Raw, parse};
use systole_xml::schema::{Catalog, Element, Payload, PayloadSchema, Validated, Validator, decode, encode};

#[cfg(feature = "libxml")]
use super::libxml2::Libxml;
use super::load::LoadError;
use super::messages::{Add, Note, Order, Sample, orders};
use super::reference::{deserialize, tokenize};

/// A message for measuring the stages.
pub struct Specimen {
    /// The name.
    pub name: &'static str,
    /// The length in bytes.
    pub bytes: usize,
    message: Bytes,
    prepare: fn(Bytes) -> Result<Vec<Stage>, LoadError>,
}

/// An operation on a message, which can run repeatedly.
pub struct Stage {
    /// The name.
    pub name: &'static str,
    /// The side that does the work.
    pub side: Side,
    run: Box<dyn FnMut()>,
}

/// The software that does the work of a stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// Systole.
    Systole,
    /// libxml2 and quick-xml.
    Reference,
}

/// The name of the stage that takes a message through the whole ladder, and of its reference.
pub const ALL: &str = "all of these";
/// The name of the stage that makes the payload of its JSON, and JSON of the payload.
pub const JSON: &str = "JSON to XML to JSON";
/// The name of the stage that parses and prints that JSON.
pub const SERDE_JSON: &str = "serde_json parse and print";
/// The name of the stage that only tokenizes.
pub const TOKENS: &str = "quick-xml tokens";

/// The messages, smallest first.
pub fn specimens() -> [Specimen; 5] {
    [
        Specimen::new::<Add>("171 B", Add::envelope()),
        Specimen::new::<Order>("945 B", Order::envelope()),
        Specimen::new::<Order>("canonical", canonical(&Order::envelope()).bytes().clone()),
        Specimen::new::<Note>("1 KB text", Note::envelope()),
        Specimen::new::<Order>("16 KB", orders(130)),
    ]
}

impl Specimen {
    fn new<T: Sample>(name: &'static str, message: Bytes) -> Self {
        Self { name, bytes: message.len(), message, prepare: stages::<T> }
    }

    /// Compiles the schemas and takes the message up the ladder once, so that each stage has its input.
    ///
    /// # Errors
    /// [`LoadError`] if a payload of the benchmarks is no contract.
    ///
    /// # Panics
    /// If a message is not valid for its schema.
    pub fn stages(&self) -> Result<Vec<Stage>, LoadError> {
        (self.prepare)(self.message.clone())
    }
}

impl Stage {
    /// Runs the operation once.
    pub fn run(&mut self) {
        (self.run)();
    }
}

fn stages<T: Sample>(message: Bytes) -> Result<Vec<Stage>, LoadError> {
    let schema = PayloadSchema::of::<T>()?;
    let mut stages = references::<T>(&message, &schema);
    stages.extend(json(&message, &schema));
    let mut catalog = Catalog::new();
    catalog.add(schema)?;
    stages.splice(0..0, ladder::<T>(message, Arc::new(catalog)));
    Ok(stages)
}

/// The payload as JSON: to XML, and the canonical payload to JSON; and the same text through serde_json.
fn json(message: &Bytes, schema: &PayloadSchema) -> [Stage; 2] {
    let payload = opened(canonical(message)).payload().clone();
    let (schema, limits) = (schema.clone(), XmlLimits::default());
    let text: Arc<str> = schema.to_json(&payload).into();
    let again = text.clone();
    let both = move || {
        drop(black_box(schema.from_json(&text, &limits).expect("the samples keep their schemas")));
        drop(black_box(schema.to_json(&payload)));
    };
    let reference = move || {
        let value: serde_json::Value = serde_json::from_str(&again).expect("it is JSON");
        drop(black_box(black_box(value).to_string()));
    };
    [
        Stage { side: Side::Systole, name: JSON, run: Box::new(both) },
        Stage { side: Side::Reference, name: SERDE_JSON, run: Box::new(reference) },
    ]
}

fn ladder<T: Sample>(message: Bytes, catalog: Arc<Catalog>) -> Vec<Stage> {
    let strict = canonical(&message);
    let envelope = opened(strict.clone());
    let payload = envelope.payload().clone();
    let mut validator = Validator::new(catalog.clone());
    let proof = valid(&mut validator, payload.clone());
    let value: T = decoded(&proof);
    let raw = Raw::new(message);
    let (limits, mut whole, everything) = (XmlLimits::default(), Validator::new(catalog), raw.clone());
    let stage = |name, run| Stage { side: Side::Systole, name, run };
    vec![
        stage("strict pass, C14N", Box::new(move || drop(black_box(parse(&raw, &limits))))),
        stage("envelope", Box::new(move || drop(black_box(Envelope::open(strict.clone()))))),
        stage("validation", Box::new(move || drop(black_box(validator.validate(payload.clone()))))),
        stage("decoding", Box::new(move || drop(black_box(decode::<T>(&proof))))),
        stage(
            ALL,
            Box::new(move || {
                let envelope = opened(canonical(everything.bytes()));
                black_box(decoded::<T>(&valid(&mut whole, envelope.payload().clone())));
            }),
        ),
        stage("encoding", Box::new(move || drop(black_box(encode(&value))))),
    ]
}

fn references<T: Payload>(message: &Bytes, schema: &PayloadSchema) -> Vec<Stage> {
    let text: Arc<str> = std::str::from_utf8(message).expect("the samples are UTF-8").into();
    let (read, tokens) = (text.clone(), text);
    let mut stages = of_libxml2::<T>(message, schema, &read);
    let stage = |name, run| Stage { side: Side::Reference, name, run };
    stages.push(stage("quick-xml serde", Box::new(move || drop(black_box(deserialize::<T>(&read))))));
    stages.push(stage(TOKENS, Box::new(move || _ = black_box(tokenize(&tokens)))));
    stages
}

#[cfg(not(feature = "libxml"))]
#[expect(clippy::extra_unused_type_parameters, reason = "the signature with the feature")]
fn of_libxml2<T: Payload>(_: &Bytes, _: &PayloadSchema, _: &Arc<str>) -> Vec<Stage> {
    Vec::new()
}

#[cfg(feature = "libxml")]
fn of_libxml2<T: Payload>(message: &Bytes, schema: &PayloadSchema, text: &Arc<str>) -> Vec<Stage> {
    let libxml = || Libxml::new(schema.document());
    let (parser, mut validator, mut payload, mut whole) = (libxml(), libxml(), libxml(), libxml());
    let document = parser.parse(message);
    let (validated, judged) = (parser.parse(message), parser.parse(message));
    let (parsed, everything, read) = (message.clone(), message.clone(), text.clone());
    let stage = |name, run| Stage { side: Side::Reference, name, run };
    vec![
        stage("libxml2 parse", Box::new(move || drop(black_box(parser.parse(&parsed))))),
        stage("libxml2 C14N", Box::new(move || drop(black_box(Libxml::canonicalize(&document))))),
        stage("libxml2 XSD", Box::new(move || validator.validate(&validated))),
        stage("libxml2 XSD, payload", Box::new(move || payload.validate_payload(&judged))),
        stage(
            ALL,
            Box::new(move || {
                let document = whole.parse(&everything);
                drop(black_box(Libxml::canonicalize(&document)));
                whole.validate(&document);
                drop(black_box(deserialize::<T>(&read)));
            }),
        ),
    ]
}

fn canonical(message: &Bytes) -> Canonical {
    parse(&Raw::new(message.clone()), &XmlLimits::default()).expect("the samples are well-formed")
}

fn opened(message: Canonical) -> Envelope {
    Envelope::open(message).expect("the samples are envelopes")
}

fn valid(validator: &mut Validator, payload: Canonical) -> Validated<Element> {
    validator.validate(payload).expect("the samples keep their schemas")
}

fn decoded<T: Payload>(payload: &Validated<Element>) -> T {
    decode(payload).expect("the samples are what they say")
}
