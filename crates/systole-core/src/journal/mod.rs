//! The journal: the records that an organism writes so that it survives its process.
//!
//! A [`Step`] is what one step of the core changed: the message that was consumed, what it emitted, the threads that
//! opened and closed. A [`Journal`] writes whole steps, in order, and never a part of one; what it holds comes back as
//! [`Recovered`]. Records name listeners and clients by name, because their places may differ at the next start, and
//! everything else by [`Number`]s that are never given twice.
//!
//! Steps are appended to logs, one for each owner of partitions ([`Tail`], [`Batch`]), so that a store can refuse an owner
//! of before. No store is here but [`MemoryJournal`] and one that fails, for tests; `systole-store` has the others, and the
//! interface by which all of them are read.

mod error;
mod failing;
mod log;
mod mail;
mod memory;
mod moment;
mod record;
mod split;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

pub use error::{JournalError, JournalErrorKind};
pub use failing::FailingJournal;
pub use log::{AppendError, Batch, Heads, Tail};
pub use mail::{
    AddresseeRecord, AgentRecord, MailRecord, MailState, MailStatus, OpenMail, Registration, SubmissionRecord,
};
pub use memory::MemoryJournal;
pub use moment::{Moment, Torn};
pub use record::{
    ActRecord, AnswerRecord, BodyRecord, BudgetRecord, CallRecord, EgressRecord, FanId, FanOutcome, FanRecord,
    LAST_EPOCH, LetterPlace, LetterRecord, Link, MessageRecord, MessageState, NoteRecord, Number, Op, OrdinalRecord,
    Owner, PausedRecord, Recovered, RememberedRecord, ReplyTo, RequestRecord, Seen, SettledRecord, StateRecord, Step,
    TaskRecord, ThreadRecord, epoch_of, numbers_after,
};

use crate::vocab::{Partitions, Time};

/// The failures that written steps survive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// The end of the process, including `kill -9`: the steps are with the operating system.
    #[default]
    Process,
    /// The loss of power: the steps are on the disk.
    Power,
}

/// The writing end of a store of steps.
///
/// Appends are made by one thread, one after the other: a store that several machines hold needs one of these for each of
/// its places. [`Batch`] has the rule by which it refuses a writer that no longer owns its partitions.
pub trait Journal: Send {
    /// The failures that written steps survive; `None` if they end with the process.
    fn durability(&self) -> Option<Durability>;

    /// Returns whether an append may wait for a disk or another machine. Then a thread of its own makes all appends,
    /// with as many steps as come meanwhile; else a shard without other work makes small ones itself.
    fn may_block(&self) -> bool;

    /// Writes steps, all of them or none, in order. When this returns, they survive the failures that the
    /// [durability](Self::durability) names, and the tail of each log is one position further.
    ///
    /// # Errors
    /// [`AppendError`]: nothing was written. After `Failed` nothing more can be, and only another opening tells whether
    /// this batch was.
    fn append(&mut self, batch: &Batch) -> Result<(), AppendError>;

    /// Reads all records that are not over, and takes all partitions over, in a new epoch.
    ///
    /// # Errors
    /// [`JournalError`] if that can't be read, or can't be as it was written.
    fn recover(&mut self) -> Result<Recovered, JournalError>;

    /// Takes partitions over in a new epoch, while other logs go on, and reads their records that are not over. Appends of
    /// an earlier owner are refused from now on.
    ///
    /// # Errors
    /// As [`recover`](Self::recover).
    fn adopt(&mut self, partitions: &Partitions) -> Result<Recovered, JournalError>;

    /// Gives the partitions of a log up in order: no message of theirs was running.
    ///
    /// # Errors
    /// As [`append`](Self::append).
    fn release(&mut self, tail: &Tail) -> Result<(), AppendError>;

    /// Deletes some expired records, while there is nothing to write; whether there may be more. A store that keeps
    /// nothing of the past has nothing to do.
    ///
    /// # Errors
    /// [`JournalError`] if that can't be written: nothing more can be.
    fn tidy(&mut self, now: Time) -> Result<bool, JournalError> {
        let _ = now;
        Ok(false)
    }

    /// The interval in which [`tidy`](Self::tidy) is to be called while there is nothing to write.
    fn tidy_interval(&self) -> Duration {
        Duration::from_secs(60)
    }

    /// Returns whether readers of the store see all steps that are written. A store may write steps to a log of its own
    /// first, and feed its tables later.
    fn is_fed(&self) -> bool {
        true
    }

    /// Makes all steps that are written visible to readers of the store.
    ///
    /// # Errors
    /// [`JournalError`] if that can't be written: nothing more can be.
    fn feed(&mut self) -> Result<(), JournalError> {
        Ok(())
    }

    /// Notes that the organism has ended in order: no message was running.
    ///
    /// # Errors
    /// [`JournalError`] if that can't be written.
    fn close(&mut self) -> Result<(), JournalError>;
}

/// A journal behind a lock: a test reads the records that an organism writes.
impl<J: Journal> Journal for Arc<Mutex<J>> {
    fn durability(&self) -> Option<Durability> {
        self.lock().unwrap_or_else(PoisonError::into_inner).durability()
    }

    fn may_block(&self) -> bool {
        self.lock().unwrap_or_else(PoisonError::into_inner).may_block()
    }

    fn append(&mut self, batch: &Batch) -> Result<(), AppendError> {
        self.lock().unwrap_or_else(PoisonError::into_inner).append(batch)
    }

    fn recover(&mut self) -> Result<Recovered, JournalError> {
        self.lock().unwrap_or_else(PoisonError::into_inner).recover()
    }

    fn adopt(&mut self, partitions: &Partitions) -> Result<Recovered, JournalError> {
        self.lock().unwrap_or_else(PoisonError::into_inner).adopt(partitions)
    }

    fn release(&mut self, tail: &Tail) -> Result<(), AppendError> {
        self.lock().unwrap_or_else(PoisonError::into_inner).release(tail)
    }

    fn tidy(&mut self, now: Time) -> Result<bool, JournalError> {
        self.lock().unwrap_or_else(PoisonError::into_inner).tidy(now)
    }

    fn tidy_interval(&self) -> Duration {
        self.lock().unwrap_or_else(PoisonError::into_inner).tidy_interval()
    }

    fn is_fed(&self) -> bool {
        self.lock().unwrap_or_else(PoisonError::into_inner).is_fed()
    }

    fn feed(&mut self) -> Result<(), JournalError> {
        self.lock().unwrap_or_else(PoisonError::into_inner).feed()
    }

    fn close(&mut self) -> Result<(), JournalError> {
        self.lock().unwrap_or_else(PoisonError::into_inner).close()
    }
}
