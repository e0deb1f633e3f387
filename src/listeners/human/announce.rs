//! The announcement of questions.

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
