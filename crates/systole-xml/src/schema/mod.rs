//! Layer 1, contracts of payloads: XSD, example and prompt from Rust types or `.xsd` files; validation,
//! encoding, decoding.
//!
//! A contract is a [`PayloadSchema`]; the [`Catalog`] holds those of an organism. A [`Validator`] judges canonical
//! payloads by them, and alone mints [`Validated`] ones; [`decode`] and [`encode`](encode()) convert between these
//! and Rust values. [`infer_namespace`] is the only repair that changes names by schemas; [`vocabulary`] gives
//! [`repair`](crate::ladder::repair) the names of contracts.
//!
//! Nothing here reads a file or the network, and nothing is fetched for a message or a schema.

mod catalog;
mod contract;
mod decode;
mod decoder;
mod derive;
mod document;
mod draft;
mod encode;
mod engine;
mod example;
mod infer_namespace;
mod json;
mod json_schema;
#[cfg(feature = "libxml")]
mod libxml2;
mod model;
mod opinion;
#[doc(hidden)]
pub mod oracle;
mod own_schemas;
mod pattern;
mod payload;
mod payload_schema;
mod probe;
mod prompt;
#[doc(hidden)]
pub mod properties;
mod shorten;
mod simple;
mod source;
mod standalone;
mod types;
mod validator;
mod vocabulary;
mod write;
mod xsd;

#[doc(inline)]
pub use crate::ladder::encode::{EncodeError, Unencodable};
pub use catalog::Catalog;
pub use contract::{ContractError, DocumentProblem, RoundTrip, TypePlace, TypeShape};
#[doc(hidden)]
pub use decode::decode_canonical;
pub use decode::{DecodeError, DecodeProblem, Undecodable};
pub use decoder::{DecodeFn, Decoded, decode, decoder, element_decoder};
pub use draft::{Draft, IntoDraft, Proven};
pub use encode::encode;
#[doc(hidden)]
pub use engine::{FieldKind, Form, FormField, FormPage, FormStep};
pub use engine::{Finding, SchemaError};
pub use infer_namespace::infer_namespace;
pub use json::{FromJsonError, JsonMistake, JsonPayload, JsonProblem, JsonRefusal};
#[cfg(feature = "libxml")]
pub use opinion::second_opinion;
pub use opinion::{Objection, Opinion};
#[doc(hidden)]
pub use own_schemas::own_schema;
pub use payload::Payload;
pub use payload_schema::PayloadSchema;
pub use source::{EncodingError, SourceDocument, XsdDocument, decoded};
pub use standalone::Schema;
pub use systole_macros::Payload;
pub use validator::{Element, Validated, Validator};
pub use vocabulary::{Sendable, vocabulary};
#[doc(hidden)]
pub use xsd::{Pitfall, XsdSet};
