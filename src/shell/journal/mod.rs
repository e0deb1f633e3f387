//! The journal on disk: an SQLite file that people can look into.
//!
//! [`SqliteJournal`] is the store behind [`Journal`](crate::journal::Journal); `docs/journal.md` says what its tables
//! hold, what each durability promises, and what to do with a damaged file.

mod apply;
mod edit;
mod error;
mod fan;
mod lock;
mod meta;
mod open;
mod reader;
mod records;
mod recover;
mod retain;
mod row;
mod schema;
mod sqlite;
mod sum;
mod text;
mod verify;
mod wal;
mod writer;

use std::time::Duration;

pub use edit::Compacted;
pub use error::{Problem, StoreError};
#[cfg(feature = "gateway")]
pub(crate) use lock::Lock;
pub use reader::{Conversation, Entry, JournalReader, Said, Stat, ThreadEntry};
pub use sqlite::SqliteJournal;
pub use verify::Verdict;
pub use wal::Cut;
pub use writer::{JournalSender, JournalWriter, Told};

/// What survives once a step is said to be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// The end of the process, `kill -9` included: the system has it.
    #[default]
    Process,
    /// The loss of power: the disk has it.
    Power,
}

/// How long what is over stays to be looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// So long after its end.
    pub age: Duration,
    /// Past that size of the file in bytes, the oldest goes before its time.
    pub bytes: u64,
}

impl Default for Retention {
    /// 7 days, 1 GiB.
    fn default() -> Self {
        Self { age: Duration::from_secs(7 * 24 * 60 * 60), bytes: 1 << 30 }
    }
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
