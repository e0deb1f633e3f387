//! Errors of journals.

use std::fmt;

/// Failure to write or read a journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JournalError {
    kind: JournalErrorKind,
    message: String,
}

/// Kind of failure of a journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum JournalErrorKind {
    /// Another writer has the journal.
    InUse,
    /// No journal is at its place.
    Missing,
    /// The file at the place of the journal can't be opened; nothing was changed.
    Unusable,
    /// The program is too old for the version of the journal, or too new while an earlier one uses it.
    Version,
    /// Contents of the journal differ from what was written.
    Damaged,
    /// The disk is full, or the process may write no file so large.
    Full,
    /// The journal can't be written by this user, or is on a file system that can't be written.
    ReadOnly,
    /// The journal was deleted, moved or replaced while it was open.
    Moved,
    /// The journal takes no more steps: it has failed before, or its organism ends.
    Closed,
    /// Another process has taken over what this one appends to.
    Fenced,
    /// Partitions can't leave or enter a core in the present state of the organism.
    Refused,
    /// The code of the journal panicked.
    Panicked,
    /// Another failure; the message has the cause.
    Other,
}

impl JournalError {
    /// Makes an error. The message has the failure, its cause, and the remedy.
    pub fn new(kind: JournalErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }

    /// The kind of failure.
    pub fn kind(&self) -> JournalErrorKind {
        self.kind
    }
}

impl fmt::Display for JournalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for JournalError {}
