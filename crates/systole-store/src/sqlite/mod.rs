//! SQLite files of an organism: how they are created, recognized, locked and opened.
//!
//! A file has a [`Format`]: an id in its header and the tables of a version. Nothing is written to a file before it is
//! known to have that format and to be in order, including its log; one process at a time writes it, by whatever name
//! (see [`held`]). Created files can be read and written by their owner alone.

mod checkpoint;
mod file_lock;
mod format;
mod open;
mod place;
mod problem;
mod wal;

pub use checkpoint::LogFull;
pub(crate) use checkpoint::write_back;
pub(crate) use file_lock::Database;
pub(crate) use format::Format;
pub(crate) use open::{Opened, Opening, join_to_read, open_to_read, transaction, truncate_log, used};
pub(crate) use place::{beside, place, writable};
use std::time::Duration;
pub(crate) use {file_lock::is_written_here, open::join};

pub use problem::FileProblem;
pub use wal::{Cut, Loss};

/// Time and size for which ended rows are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Retention {
    /// Time for which a row is kept after its end.
    pub age: Duration,
    /// Size of the file in bytes beyond which the oldest ended rows are deleted before that time.
    pub bytes: u64,
}

systole_core::vocab::setters!(Retention { age: Duration, bytes: u64 });

impl Default for Retention {
    /// 7 days, 1 GiB.
    fn default() -> Self {
        Self { age: Duration::from_secs(7 * 24 * 60 * 60), bytes: 1 << 30 }
    }
}
