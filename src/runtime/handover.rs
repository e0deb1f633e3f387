//! Handovers: partitions leave the core that serves them, and a new one takes them over, while the others go on.
//!
//! For one process so far: a client's messages that wait at its port come again from the new core, as after a start. Parts
//! beside the cores (jobs, mailboxes of remote listeners) can't follow, so an organism that has some keeps its partitions.

use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Weak};

use systole_core::core::{CoreId, Input};
use systole_core::journal::JournalError;
use systole_core::vocab::{Partition, Partitions};
use tokio::sync::oneshot;

use super::journal_handle::JournalHandle;
use super::link::Command;
use super::organism::Shared;

/// Moves partitions between the cores of a durable organism.
pub(crate) struct Handover {
    shared: Arc<Shared>,
    /// The organism's; gone when it has ended.
    journal: Weak<JournalHandle>,
    /// The number of cores that were made so far.
    made: AtomicU16,
}

impl Handover {
    /// For an organism with that journal.
    pub(super) fn new(shared: Arc<Shared>, journal: &Arc<JournalHandle>) -> Self {
        let made = u16::try_from(shared.links.shards().count()).expect("made from a u16");
        Self { shared, journal: Arc::downgrade(journal), made: AtomicU16::new(made) }
    }

    /// Lets the core that serves a partition give up all that it serves. Its handlers are cancelled without effects, as
    /// at an end of the organism. Returns these partitions, once nothing of them is left there.
    ///
    /// # Errors
    /// [`JournalError`] if no core serves the partition, or parts beside the cores can't follow.
    ///
    /// # Cancel safety
    /// Once polled, the partitions are given up even if the future is dropped.
    pub(crate) async fn release(&self, partition: Partition) -> Result<Partitions, JournalError> {
        self.journal()?;
        let core = self.shared.directory.core_of(partition);
        let core = core.ok_or_else(|| refusal("no core serves this partition"))?;
        let (tell, told) = oneshot::channel();
        self.shared.links.send(core, Command::Release(tell));
        told.await.map_err(|_| refusal("the core ends already"))
    }

    /// Makes a core that takes partitions over, in the shard of that index.
    ///
    /// # Errors
    /// [`JournalError`] if a core serves one of the partitions, their records can't be read, or no address is left.
    ///
    /// # Cancel safety
    /// Once polled, the partitions are taken over or stay without a core; then this can be called again.
    pub(crate) async fn adopt(&self, partitions: Partitions, shard: usize) -> Result<(), JournalError> {
        let journal = self.journal()?;
        if partitions.iter().any(|partition| self.shared.directory.core_of(partition).is_some()) {
            return Err(refusal("a core serves one of these partitions"));
        }
        let recovered = Box::new(journal.adopt(partitions).await?);
        let core = self.address(shard)?;
        let (tell, told) = oneshot::channel();
        self.shared.links.send(core, Command::Adopt { partitions, recovered, tell });
        told.await.map_err(|_| refusal("the organism has ended"))?;
        if partitions.contains(Partition::BOOT) {
            let root = self.shared.root();
            self.shared.links.send(core, Command::Core(Input::Boot { root }));
        }
        Ok(())
    }

    /// Returns an address in a shard that no core had before: its remainder is the index of the shard.
    fn address(&self, shard: usize) -> Result<CoreId, JournalError> {
        let shards = u16::try_from(self.shared.links.shards().count()).expect("made from a u16");
        let next = |made: u16| made.checked_add(shards);
        let made = self.made.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
        let made = made.map_err(|_| refusal("no address is left for a core: start the organism again"))?;
        let shard = u16::try_from(shard % usize::from(shards)).expect("less than the number of shards");
        Ok(CoreId(made - made % shards + shard))
    }

    fn journal(&self) -> Result<Arc<JournalHandle>, JournalError> {
        let journal = self.journal.upgrade().ok_or_else(|| refusal("the organism has ended"))?;
        match journal.has_recoverables() {
            true => Err(refusal("jobs and mailboxes of remote listeners can't follow their conversations")),
            false => Ok(journal),
        }
    }
}

fn refusal(message: &str) -> JournalError {
    JournalError { message: message.to_owned() }
}
