//! The XSD 1.0 engine: compiles schema documents to deterministic automata over names, and validates a payload in one
//! walk over its canonical bytes.
//!
//! Invariants: [`compile`](compile()) checks the schema itself, at registration: a schema that breaks a rule of
//! the Recommendation is refused with the place. A [`Grammar`] is immutable and shared by all threads. Validation takes
//! time linear in the payload (identity constraints: times its logarithm, with a bound), never recurses, and allocates
//! nothing per element of a valid payload, its keys apart.

mod compile;
mod form;
mod grammar;
mod judge;
mod namespace;
#[cfg(all(test, feature = "libxml"))]
mod tests;
mod verdict;

pub(super) use compile::{Components, compile};
pub(in crate::schema) use form::page as form_page;
pub use form::{FieldKind, Form, FormField, FormPage, FormStep};
pub(super) use grammar::{ElementId, Grammar};
pub(super) use judge::{Judge, Part, Violation, is_blank};
pub(super) use verdict::verdict;
pub use verdict::{Finding, SchemaError};
