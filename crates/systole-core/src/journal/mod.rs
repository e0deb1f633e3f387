//! The journal: the records that an organism writes so that it survives its process.
//!
//! A [`Step`] is what one step of the core changed: the message that was consumed, what it emitted, the threads that
//! opened and closed. A [`Journal`] writes whole steps, in order, and never a part of one; what it holds comes back as
//! [`Recovered`]. Records name listeners and clients by name, because their places may differ at the next start, and
//! everything else by [`Number`]s that are never given twice.
//!
//! No store is here but [`MemoryJournal`]: the one on disk belongs to the runtime.

mod error;
mod failing;
mod mail;
mod memory;
mod moment;
mod record;
mod split;

use std::sync::{Arc, Mutex, PoisonError};

pub use error::{JournalError, JournalErrorKind};
pub use failing::FailingJournal;
pub use mail::{
    AddresseeRecord, AgentRecord, MailRecord, MailState, MailStatus, OpenMail, Registration, SubmissionRecord,
};
pub use memory::MemoryJournal;
pub use moment::{Moment, Torn};
pub use record::{
    AnswerRecord, BodyRecord, BudgetRecord, CallRecord, EgressRecord, FanId, FanOutcome, FanRecord, LAST_EPOCH,
    LetterPlace, LetterRecord, Link, MessageRecord, MessageState, NoteRecord, Number, Op, OrdinalRecord, Owner,
    PausedRecord, Recovered, RememberedRecord, ReplyTo, RequestRecord, Seen, SettledRecord, StateRecord, Step,
    TaskRecord, ThreadRecord, epoch_of, numbers_after,
};

use crate::vocab::{Partitions, Time};

/// A store of steps.
pub trait Journal: Send {
    /// Writes steps, all of them or none, in order. When this returns, they survive the failures that the durability of
    /// the journal names.
    ///
    /// # Errors
    /// [`JournalError`]: nothing of them was written, and nothing more can be.
    fn append(&mut self, steps: &[Step]) -> Result<(), JournalError>;

    /// Reads all records that are not over.
    ///
    /// # Errors
    /// [`JournalError`] if that can't be read, or can't be as it was written.
    fn recover(&mut self) -> Result<Recovered, JournalError>;

    /// Begins an epoch for a core that takes partitions over, while other cores go on, and reads the records of those
    /// partitions that are not over. Their earlier owner writes no more. A store that can't select reads all.
    ///
    /// # Errors
    /// As [`recover`](Self::recover).
    fn adopt(&mut self, partitions: &Partitions) -> Result<Recovered, JournalError> {
        Ok(self.recover()?.split(&[*partitions]).pop().unwrap_or_default())
    }

    /// Deletes some expired records, while there is nothing to write; whether there may be more. A store that keeps
    /// nothing of the past has nothing to do.
    ///
    /// # Errors
    /// [`JournalError`] if that can't be written: nothing more can be.
    fn tidy(&mut self, now: Time) -> Result<bool, JournalError> {
        let _ = now;
        Ok(false)
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
    fn append(&mut self, steps: &[Step]) -> Result<(), JournalError> {
        self.lock().unwrap_or_else(PoisonError::into_inner).append(steps)
    }

    fn recover(&mut self) -> Result<Recovered, JournalError> {
        self.lock().unwrap_or_else(PoisonError::into_inner).recover()
    }

    fn adopt(&mut self, partitions: &Partitions) -> Result<Recovered, JournalError> {
        self.lock().unwrap_or_else(PoisonError::into_inner).adopt(partitions)
    }

    fn tidy(&mut self, now: Time) -> Result<bool, JournalError> {
        self.lock().unwrap_or_else(PoisonError::into_inner).tidy(now)
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
