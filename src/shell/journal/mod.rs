//! The journal on disk: an SQLite file that people can look into.
//!
//! [`SqliteJournal`] is the store behind [`Journal`](systole_core::journal::Journal); `docs/journal.md` says what its tables
//! hold, what each durability promises, and what to do with a damaged file.

mod apply;
mod edit;
mod error;
mod fan;
mod fanout;
mod fork;
mod mail;
mod mailbox;
mod meta;
mod moment;
mod open;
mod principal;
#[cfg(feature = "gateway")]
mod principals;
#[cfg(feature = "gateway")]
mod query;
mod queue;
mod reader;
mod records;
mod recover;
mod renew;
mod retain;
mod row;
mod schema;
mod sqlite;
mod sum;
mod takeover;
mod text;
mod verify;
mod writer;

use std::path::PathBuf;

pub use super::sqlite::{Cut, Durability, Problem, Retention};
pub use edit::Compacted;
pub use error::StoreError;
pub use fork::{Fork, ForkError};
pub use open::check_place;
#[cfg(feature = "gateway")]
pub use principals::Principals;
#[cfg(feature = "facade")]
pub(crate) use query::{History, Of};
#[cfg(feature = "gateway")]
pub(crate) use query::{JournalQuery, Page, Position, QueryError, Range, Sent, SentAnswer, StoredMail};
pub use reader::{Conversation, Entry, JournalReader, Said, Stat, ThreadEntry};
pub use sqlite::SqliteJournal;
pub use takeover::Takeover;
pub use verify::Verdict;
pub use writer::{JournalSender, JournalWriter, Told, Written};

/// Where an organism keeps what must survive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Journaled {
    /// The file.
    pub file: PathBuf,
    /// What survives what.
    pub durability: Durability,
    /// How long what is over is kept.
    pub retention: Retention,
}

/// How a journal is opened.
#[derive(Debug, Clone)]
pub struct Options {
    /// What survives.
    pub durability: Durability,
    /// What is kept of the past.
    pub retention: Retention,
    /// The secret of a journal that is new, drawn at random; one that is there has its own.
    pub key: [u8; 32],
    /// Whether what stands behind a damaged place in the log may be given up.
    pub cut: bool,
}

impl Options {
    /// The usual ones, with that secret for a new journal.
    pub fn new(key: [u8; 32]) -> Self {
        Self { durability: Durability::default(), retention: Retention::default(), key, cut: false }
    }
}
