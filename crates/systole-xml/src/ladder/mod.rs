//! Layer 1, the trust ladder: `Raw` -> `Repaired` -> `Canonical` -> `Envelope` -> `Validated<T>`.
//!
//! Each rung is a type with private fields that only its own module can make. Every function is pure: it takes one
//! rung and returns the next, or an error with a place and a reason. The top rung,
//! [`Validated`](crate::schema::Validated), is beside the validator, which alone makes it; the encoder is here because it
//! makes canonical text without the strict pass.

mod blocks;
pub(crate) mod chars;
pub(crate) mod encode;
mod envelope;
#[doc(hidden)]
pub mod escape;
mod known;
mod names;
mod parse;
#[doc(hidden)]
pub mod properties;
mod raw;
pub mod repair;
#[doc(hidden)]
pub mod scan;
pub mod signature;
pub mod split;
pub mod strict;
pub(crate) mod tape;
pub mod transcript;

pub use envelope::{Claim, Claims, Envelope, EnvelopeError, Meta, with_metadata, write_envelope, write_example};
pub use parse::{Emitter, Fragment, LadderError, mend, parse, parse_fragment};
pub use raw::Raw;
pub use repair::{Repair, RepairError, RepairKind, Repaired};
pub use strict::{Canonical, Part, StrictError, root_of};
