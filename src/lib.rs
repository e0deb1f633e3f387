//! Systole is a message pump for organisms of actors.
//!
//! Listeners talk in XML envelopes; every envelope is repaired, canonicalized and checked
//! against its schemas before a listener sees it as a typed value. The layers, lowest first:
//!
//! - [`vocab`]: names, identifiers, spans, limits, fault codes;
//! - [`ladder`] and [`schema`]: pure functions from raw bytes to a validated payload;
//! - [`journal`]: what an organism writes down, so that it survives its process;
//! - [`core`]: the deterministic state machine that owns threads and mailboxes;
//! - [`inbox`]: tasks that others submit to a job, and the rules by which they move;
//! - [`mailbox`]: messages that wait for remote listeners, and how they are delivered and answered;
//! - [`shell`]: the runtime that turns the outputs of the core into work;
//! - `gateway`: the entrance over HTTP, and agents elsewhere, with the feature `gateway`;
//! - `outbound`: the one way to other machines over HTTP, with the same feature;
//! - `molecule`: agents of another platform's SDK, with the feature `compat-molecule`;
//! - `remote`: what a program needs to be an agent of an organism elsewhere, with the same feature.
//!
//! A module may use its own layer and those below; `tests/tidy.rs` enforces it.

#[cfg(panic = "abort")]
compile_error!("systole contains the panics of listeners by unwinding: build with panic = \"unwind\"");

// The derives of the prelude name these two crates through this one.
pub use {schemars, serde};

#[doc(hidden)]
pub use systole_macros::remove as __remove;

#[cfg(feature = "gateway")]
mod accept;
#[doc(hidden)]
#[cfg(feature = "libxml")]
pub mod bench;
pub mod cli;
pub mod core;
#[cfg(feature = "gateway")]
pub mod gateway;
pub mod inbox;
pub mod journal;
pub mod ladder;
pub mod mailbox;
#[cfg(feature = "compat-molecule")]
pub mod molecule;
#[cfg(feature = "gateway")]
pub mod outbound;
pub mod prelude;
pub mod protocol;
#[cfg(feature = "gateway")]
pub mod remote;
pub mod schema;
pub mod shell;
pub mod testing;
pub mod vocab;
