//! The XSD 1.0 engine: schema documents become deterministic automata over names, and a payload is judged by them
//! in one walk over its canonical bytes.
//!
//! What always holds: [`compile`](compile()) decides once, at registration, whether it understands all of a schema;
//! what it doesn't is [`Unsupported`](simple::Unsupported) and is left to libxml, never guessed. A [`Grammar`] is immutable and shared by
//! all threads. Judging takes time linear in the payload, never recurses, and allocates nothing per element of a
//! valid one.
//!
//! What it does not do: look for mistakes in schemas. libxml compiles each of them first, and finds those.

mod compile;
mod grammar;
mod judge;
mod namespace;
mod simple;
#[cfg(test)]
mod tests;

pub(super) use compile::{Compilation, compile};
pub(super) use grammar::{ElementId, Grammar};
pub(super) use judge::{Judge, Part, Violation, paths};
