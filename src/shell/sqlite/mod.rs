//! Files of SQLite that are ours: how they are made, recognized, locked and opened.
//!
//! A file has a [`Format`]: an id in its header and tables of a version. Nothing is written to one before it is known
//! to be of that format and in order, its log included; one process at a time writes it, by whatever name
//! ([`held`] says how). What is made can be read and written by its owner alone.

mod checkpoint;
mod format;
mod held;
mod open;
mod place;
mod problem;
mod wal;

pub(crate) use format::Format;
pub(crate) use held::{Database, Held};
pub(crate) use open::{Opened, Opening, join_to_read, open_to_read, truncate_log, used};
#[cfg(feature = "gateway")]
pub(crate) use open::{join, transaction};
pub(crate) use place::{beside, place};
use std::time::Duration;

pub use problem::Problem;
pub use wal::Cut;
pub(crate) use wal::inspect;

/// What survives once something is said to be written.
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
