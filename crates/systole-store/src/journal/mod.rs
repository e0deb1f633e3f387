//! Stores: their interface ([`Store`]), the writer that appends to one, and the one in an SQLite file, readable with the
//! usual tools.
//!
//! [`SqliteJournal`] is the writing end of that, behind [`Journal`](systole_core::journal::Journal); `docs/journal.md`
//! describes its tables, the promise of each durability, and the repair of a damaged file. `docs/journal-design.md` has
//! the rules of all stores.

mod adopt;
mod apply;
mod batch;
mod beside;
mod budget;
mod codec;
mod coded;
mod edit;
mod error;
mod fan;
mod fanout;
mod file_store;
mod lease;
mod logs;
mod look;
mod mail;
mod mailbox;
mod meta;
mod named;
mod open;
mod open_rows;
mod owner;
mod pending;
#[cfg(feature = "postgres")]
mod postgres;
mod principal;
mod principals;
mod query;
mod queue;
mod reader;
mod records;
mod recover;
mod retain;
mod retry;
mod row;
mod sqlite;
mod store;
mod sum;
mod text;
mod transcript;
mod verify;
mod weigh;
mod writer;

use std::path::PathBuf;

pub use crate::sqlite::{Cut, FileProblem, LogFull, Loss, Retention};
pub use beside::{KeptAct, KeptLetter, KeptMailbox, LetterFilter, LetterPosition, TaskFilter, TaskPosition};
pub use edit::Compacted;
pub use error::StoreError;
pub use lease::{Asking, ClusterState, LeaseState, LeaseStore, NodeCard, SeenNode};
pub use logs::Logs;
pub use look::{
    Condition, ConversationFilter, HistoryPosition, KeptConversation, KeptMessage, KeptThread, UsedDay, UsedDays,
};
pub use named::{NamedJournal, is_url};
pub use owner::JournalOwner;
#[cfg(feature = "postgres")]
pub use postgres::{AddressError, Postgres};
pub use principals::Principals;
pub use query::{History, Of};
pub use query::{JournalQuery, Page, Position, QueryError, Range, Sent, SentAnswer, StoredMail};
pub use reader::{HistoryEntry, HistoryRecord, JournalReader, Stat, ThreadEntry};
pub use retry::{Retry, RetryError};
pub use sqlite::SqliteJournal;
pub use store::{Answering, Claim, Editor, OpenStore, PrincipalStore, Query, Reader, Store};
pub use systole_core::journal::Durability;
pub use transcript::{Source, TranscriptError};
pub use verify::{Verdict, VerifyReport};
pub use weigh::Room;
pub use writer::{Adopted, JournalFeeder, JournalSender, JournalWriter, Lost, Told, Written};

/// File, durability and retention of an organism's journal: the [`Store`] in an SQLite file.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Journaled {
    /// The file.
    pub file: PathBuf,
    /// The failures that written steps survive.
    pub durability: Durability,
    /// Time and size for which ended rows are kept.
    pub retention: Retention,
}

impl Journaled {
    /// A journal in that file, with the default durability and retention.
    pub fn new(file: impl Into<PathBuf>) -> Self {
        Self { file: file.into(), durability: Durability::default(), retention: Retention::default() }
    }
}

systole_core::vocab::setters!(Journaled {
    file: impl Into<PathBuf>,
    durability: Durability,
    retention: Retention,
});

/// Options for opening a journal.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct JournalOptions {
    /// The failures that written steps survive.
    pub durability: Durability,
    /// Time and size for which ended rows are kept.
    pub retention: Retention,
    /// The secret of a new journal, drawn at random; an existing one has its own.
    pub key: [u8; 32],
    /// True if the part of the log behind a damaged place may be cut off.
    pub cut: bool,
}

systole_core::vocab::setters!(JournalOptions {
    durability: Durability,
    retention: Retention,
    key: [u8; 32],
    cut: bool,
});

impl JournalOptions {
    /// The default options, with that secret for a new journal.
    pub fn new(key: [u8; 32]) -> Self {
        Self { durability: Durability::default(), retention: Retention::default(), key, cut: false }
    }
}
