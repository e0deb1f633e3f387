//! Properties of payloads that hold for any bytes: the bodies of the fuzz targets.
//!
//! Each function panics if its property is broken. No part of the API.

#[cfg(feature = "libxml")]
mod beside;

use std::cell::RefCell;
use std::sync::Arc;

use bytes::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[cfg(feature = "libxml")]
pub use beside::libxml;

use super::{Catalog, FromJsonError, JsonProblem, Payload, PayloadSchema, Validator, decode, encode};
use crate::ladder::Canonical;
use crate::ladder::strict::canonicalize;
use crate::schema::{Element, Validated};
use crate::vocab::XmlLimits;

/// A field of each shape that a contract can have.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
struct Sample {
    #[serde(rename = "@id")]
    id: u16,
    #[serde(rename = "@tag")]
    tag: Option<String>,
    #[schemars(range(min = -5, max = 5))]
    small: i64,
    #[schemars(length(min = 2, max = 4))]
    short: String,
    #[schemars(regex(pattern = "^([a-c]+(-[0-9]{2})?)*$"))]
    code: String,
    ratio: f64,
    sure: bool,
    #[schemars(length(max = 3))]
    #[serde(default)]
    colour: Vec<Colour>,
    #[serde(default)]
    child: Vec<Sample>,
    #[serde(rename = "$value", default)]
    leaves: Vec<Leaf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Colour {
    Red,
    Green,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
enum Leaf {
    Empty,
    Number(f64),
    Named { name: String, value: Option<u8> },
}

impl Payload for Sample {
    const NAMESPACE: &'static str = "urn:s";
    const ROOT: &'static str = "s";
}

thread_local! {
    static SAMPLE: PayloadSchema = PayloadSchema::of::<Sample>().expect("the sample is a contract");
    static VALIDATOR: RefCell<Validator> = RefCell::new({
        let mut catalog = Catalog::new();
        catalog.add(SAMPLE.with(Clone::clone)).expect("there is one");
        Validator::new(Arc::new(catalog))
    });
}

/// A verdict names a rule and a place, and is the same for the same bytes.
pub fn validation(data: &[u8]) {
    let Some(payload) = payload(data) else { return };
    match (judge(&payload), judge(&payload)) {
        (Ok(first), Ok(second)) => assert_eq!(first.payload().bytes(), second.payload().bytes()),
        (Err(first), Err(second)) => {
            assert_eq!(first, second);
            assert!(!first.rule.is_empty());
            assert!(first.at.is_some(), "{first} has no place in {payload:?}");
        }
        (first, second) => panic!("{first:?}, then {second:?}"),
    }
}

/// A valid payload is decoded; the encoded value is valid, and decoded to the same value.
pub fn decoding(data: &[u8]) {
    let of_type = payload(data).filter(|payload| *payload.root() == Sample::qname());
    let Some(valid) = of_type.and_then(|payload| judge(&payload).ok()) else { return };
    let value: Sample = decode(&valid).unwrap_or_else(|error| panic!("{error} in {valid:?}"));
    let encoded = encode(&value).unwrap_or_else(|error| panic!("{error} of {value:?}"));
    let strict = canonicalize(encoded.bytes(), &XmlLimits::default()).expect("what is encoded is well-formed");
    assert_eq!(strict.bytes(), encoded.bytes());
    let again = judge(&encoded).unwrap_or_else(|error| panic!("{error} in {encoded:?}"));
    let again: Sample = decode(&again).unwrap_or_else(|error| panic!("{error} in {encoded:?}"));
    // The bytes are compared instead of the values: NaN differs from itself.
    assert_eq!(encode(&again).expect("it was encoded before").bytes(), encoded.bytes());
}

/// A valid payload comes back from its JSON byte for byte, white space between elements and prefixes apart; other JSON is read, or
/// refused with a place, and what is read is XML.
pub fn json(data: &[u8]) {
    SAMPLE.with(|schema| {
        let limits = XmlLimits::default();
        let read = |json: &str| {
            let read = schema.from_json(json, &limits)?;
            Ok::<_, FromJsonError>(canonicalize(&Bytes::from(read.into_xml()), &limits))
        };
        let text = String::from_utf8_lossy(data);
        match (read(&text), serde_json::from_str::<serde_json::Value>(&text)) {
            (Ok(payload), Ok(_)) => drop(payload),
            (Ok(_), Err(error))
                if ["recursion", "out of range"].iter().any(|limit| error.to_string().contains(limit)) => {}
            (Ok(_), Err(error)) => panic!("{error}: {text}"),
            (Err(error), known) => {
                let is_syntax = matches!(error.problem, JsonProblem::Syntax { .. });
                assert!(!is_syntax || known.is_err(), "{error}: {text}");
            }
        }
        let of_type = payload(data).filter(|payload| payload.root() == schema.qname());
        if let Some(valid) = of_type.filter(|payload| judge(payload).is_ok()) {
            let json = schema.to_json(&valid);
            let back = read(&json).unwrap_or_else(|error| panic!("{error}: {json}")).expect("it is XML");
            judge(&back).unwrap_or_else(|error| panic!("{error}: {json}"));
            assert_eq!(schema.to_json(&back), json);
        }
    });
}

/// The data as a payload, or as the content of one.
fn payload(data: &[u8]) -> Option<Canonical> {
    let limits = XmlLimits::default();
    let inside = [&b"<s xmlns='urn:s' id='1'>"[..], data, b"</s>"].concat();
    canonicalize(&Bytes::copy_from_slice(data), &limits).or_else(|_| canonicalize(&inside.into(), &limits)).ok()
}

fn judge(payload: &Canonical) -> Result<Validated<Element>, super::SchemaError> {
    VALIDATOR.with_borrow_mut(|validator| validator.validate(payload.clone()))
}
