//! Listeners whose handlers are people. A question waits for one of those who may answer it: at the terminal of the organism,
//! or elsewhere, by the operations of the organism ([`crate::operations::Questions`]).

pub(crate) mod announce;
mod console;
pub(crate) mod judge;
mod keyboard;
mod listener;
pub(crate) mod people;
mod questions;

pub use announce::Announce;
pub use console::{Console, OpenQuestion, PrintText};
pub use keyboard::Keyboard;
pub use listener::HumanListener;
pub use people::People;
#[doc(hidden)]
pub use questions::{Heard, PersonEntry};
pub use systole_core::question::Addressees;
