//! A journal that fails, for tests.

use super::{AppendError, Batch, Durability, Journal, JournalError, JournalErrorKind, Recovered, Tail};
use crate::vocab::{Partitions, Time};

/// A journal that fails at its n-th append as on a full disk, and takes nothing more.
#[derive(Debug)]
pub struct FailingJournal<J> {
    journal: J,
    left: u64,
}

impl<J: Journal> FailingJournal<J> {
    /// Takes `appends` appends, and fails at the next one.
    pub fn new(journal: J, appends: u64) -> Self {
        Self { journal, left: appends }
    }
}

impl<J: Journal> Journal for FailingJournal<J> {
    fn durability(&self) -> Option<Durability> {
        self.journal.durability()
    }

    fn may_block(&self) -> bool {
        self.journal.may_block()
    }

    fn append(&mut self, batch: &Batch) -> Result<(), AppendError> {
        let left = self.left.checked_sub(1);
        let full = || JournalError::new(JournalErrorKind::Full, "the journal fails, as it was told to");
        self.left = left.ok_or_else(full)?;
        self.journal.append(batch)
    }

    fn recover(&mut self) -> Result<Recovered, JournalError> {
        self.journal.recover()
    }

    fn adopt(&mut self, partitions: &Partitions) -> Result<Recovered, JournalError> {
        self.journal.adopt(partitions)
    }

    fn release(&mut self, tail: &Tail) -> Result<(), AppendError> {
        self.journal.release(tail)
    }

    fn tidy(&mut self, now: Time) -> Result<bool, JournalError> {
        self.journal.tidy(now)
    }

    fn is_fed(&self) -> bool {
        self.journal.is_fed()
    }

    fn feed(&mut self) -> Result<(), JournalError> {
        self.journal.feed()
    }

    fn close(&mut self) -> Result<(), JournalError> {
        self.journal.close()
    }
}
