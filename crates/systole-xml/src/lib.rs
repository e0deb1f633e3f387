//! Strict XML, repair, Exclusive Canonicalization and XML Schema 1.0: the trust ladder of Systole, without its pump.
//!
//! - [`vocab`]: names, identifiers, positions and limits;
//! - [`ladder`]: pure functions from raw bytes to canonical XML and envelopes, with repair in between;
//! - [`schema`]: contracts of payloads, from Rust types or `.xsd` files: validation, encoding, decoding, examples.
//!
//! No module does I/O, reads a clock or fetches what a document names.
#![doc = ""]
#![doc = include_str!("../README.md")]

pub mod ladder;
pub mod schema;
pub mod vocab;
