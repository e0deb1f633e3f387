//! Handovers: partitions leave the core that serves them, and a new one takes them over, while the others go on.
//!
//! Within one process: a client's messages that wait at its port wait there on, and come no second time from the new core.
//! Parts beside the cores (jobs, mailboxes of remote listeners) stay. What their handlers waited for waits for the same handlers
//! of the new core: a message of a mailbox takes no answer until then.
//!
//! A partition is in one move at a time: its [`Claim`](crate::runtime::shard::claim::Claim) travels with the commands, and ends with the move, so a caller
//! that drops its future leaves no move half done, and two callers don't make two cores for one partition.

use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Weak};

use systole_core::core::CoreId;
use systole_core::journal::{JournalError, JournalErrorKind, Step};
use systole_core::vocab::{Partition, Partitions};
use tokio::sync::oneshot;

use crate::journal::Written;
use crate::runtime::shard::claim::Moving;
use crate::runtime::shard::command::Command;
use crate::runtime::shard::shared::Shared;
use crate::runtime::write::appender::Ending;
use crate::runtime::write::handle::JournalHandle;

/// Moves partitions between the cores of a durable organism.
pub(crate) struct Handover {
    shared: Arc<Shared>,
    /// The organism's; gone when it has ended.
    journal: Weak<JournalHandle>,
    /// The number of addresses that were given so far, in each shard alike.
    made: AtomicU16,
    moving: Moving,
}

impl Handover {
    /// For an organism with that journal.
    pub(crate) fn new(shared: Arc<Shared>, journal: &Arc<JournalHandle>) -> Self {
        let made = AtomicU16::new(shards(&shared));
        Self { shared, journal: Arc::downgrade(journal), made, moving: Moving::default() }
    }

    /// Lets the core that serves a partition give up all that it serves. Its handlers are cancelled without effects, as
    /// at an end of the organism. Returns these partitions, once nothing of them is left there.
    ///
    /// # Errors
    /// [`JournalError`] if no core serves the partition, its core gives it up already, or the organism has ended.
    ///
    /// # Cancel safety
    /// Once polled, the partitions are given up even if the future is dropped.
    pub(crate) async fn release(&self, partition: Partition) -> Result<Partitions, JournalError> {
        self.journal()?;
        let directory = &self.shared.directory;
        let (core, claim) = self.moving.claim(|| {
            let core = directory.core_of(partition).ok_or_else(|| refusal("no core serves this partition"))?;
            Ok((core, Partition::all().filter(|&other| directory.core_of(other) == Some(core)).collect()))
        })?;
        let (tell, told) = oneshot::channel();
        self.shared.links.send(core, Command::Release { claim, tell });
        told.await.map_err(|_| ended())
    }

    /// Makes a core that takes partitions over, in the shard of that index modulo their number.
    ///
    /// # Errors
    /// [`JournalError`] if a core serves one of the partitions or one is in a move, their records can't be read, no
    /// address is left, or the organism ends.
    ///
    /// # Cancel safety
    /// Once polled, the partitions are taken over or stay without a core; then this can be called again.
    pub(crate) async fn adopt(&self, partitions: Partitions, shard: usize) -> Result<(), JournalError> {
        let journal = self.journal()?;
        let is_served = |partition| self.shared.directory.core_of(partition).is_some();
        let ((), claim) = self.moving.claim(|| match partitions.iter().any(is_served) {
            true => Err(refusal("a core serves one of these partitions")),
            false => Ok(((), partitions)),
        })?;
        let core = self.address(shard)?;
        let recovered = Box::new(journal.adopt(core, partitions).await?);
        journal.take_over(&recovered);
        let boot = partitions.contains(Partition::BOOT).then(|| self.shared.root());
        let (tell, told) = oneshot::channel();
        self.shared.links.send(core, Command::Adopt { claim, recovered, boot, tell });
        let message = "the organism ends: these partitions wait for its next start";
        told.await.map_err(|_| JournalError::new(JournalErrorKind::Closed, message))
    }

    /// Returns an address in a shard that no core had before: its remainder is the index of the shard.
    fn address(&self, shard: usize) -> Result<CoreId, JournalError> {
        let shards = shards(&self.shared);
        let next = |made: u16| made.checked_add(shards);
        let made = self.made.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
        let made = made.map_err(|_| refusal("no address is left for a core: start the organism again"))?;
        let shard = u16::try_from(shard % usize::from(shards)).expect("less than the number of shards");
        Ok(CoreId(made + shard))
    }

    /// Writes a step beside the cores: see [`JournalHandle::append_beside`].
    ///
    /// # Errors
    /// [`Ending`] if the organism ends.
    pub(crate) fn write_beside(&self, step: Step, written: Written) -> Result<(), Ending> {
        self.journal.upgrade().ok_or(Ending)?.append_beside(step, written)
    }

    fn journal(&self) -> Result<Arc<JournalHandle>, JournalError> {
        self.journal.upgrade().ok_or_else(ended)
    }
}

/// The number of shards.
fn shards(shared: &Shared) -> u16 {
    u16::try_from(shared.links.shards().count()).expect("made from a u16")
}

fn refusal(message: &str) -> JournalError {
    JournalError::new(JournalErrorKind::Refused, message)
}

fn ended() -> JournalError {
    JournalError::new(JournalErrorKind::Closed, "the organism has ended")
}

#[cfg(test)]
mod tests;
