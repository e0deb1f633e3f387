//! Listeners whose handlers are people. A question waits for one of those who may answer it: at the terminal of the organism,
//! or elsewhere, by the operations of the organism ([`crate::operations::Questions`]).

mod console;
pub(crate) mod judge;
mod keyboard;
mod listener;
pub(crate) mod people;
mod questions;

pub use console::{Console, OpenQuestion, PrintText};
pub use keyboard::Keyboard;
pub use listener::HumanListener;
#[cfg(any(feature = "gateway", feature = "yaml"))]
pub(crate) use people::CALLER;
pub use people::People;
#[doc(hidden)]
pub use questions::{Heard, PersonEntry};
pub use systole_core::question::Addressees;

pub(crate) use self::listener::NOTE;

use crate::process::CommandSpec;
use crate::settings::Push;

/// The way in which questions are announced where people look.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Announce {
    /// A program that runs once for each question. It gets the envelope of the question as its standard input.
    Command(CommandSpec),
    /// A webhook, to which the envelope is pushed as to a remote listener.
    Push(Push),
}
