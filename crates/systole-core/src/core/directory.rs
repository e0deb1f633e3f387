//! The directory of all cores: the core of each partition, the open conversations, the number of threads, and the sizes of
//! the dead letters.

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, AtomicU64, AtomicUsize, Ordering};

use dashmap::DashMap;

use super::blueprint::ClientId;
use super::dead_letters::AllLetters;
use super::io::CoreId;
use crate::journal::{Number, numbers_after};
use crate::vocab::{Partition, Partitions, ThreadId};

/// Knowledge that cores and entrances share: the core of each partition, the open conversations of clients, the
/// number of open threads, the sizes of the dead letters, and the numbers given so far, so that those of all cores are in
/// the order of events.
#[derive(Debug, Clone)]
pub struct Directory {
    cores: Arc<[AtomicU16; Partition::COUNT]>,
    roots: Arc<DashMap<ThreadId, ClientId>>,
    threads: Arc<AtomicUsize>,
    numbers: Arc<AtomicU64>,
    pub(super) dead: AllLetters,
}

/// The place of a conversation that a message belongs to.
pub(super) struct Home {
    pub root: ThreadId,
    /// The core of its partition, if one serves it.
    pub core: Option<CoreId>,
    /// True if it is open, and another client's.
    pub is_taken: bool,
}

/// The place of a partition that no core serves.
const NOWHERE: u16 = u16::MAX;

impl Default for Directory {
    fn default() -> Self {
        Self {
            cores: Arc::new([const { AtomicU16::new(NOWHERE) }; Partition::COUNT]),
            roots: Arc::default(),
            threads: Arc::default(),
            numbers: Arc::default(),
            dead: AllLetters::default(),
        }
    }
}

impl Directory {
    /// The core that serves a partition.
    pub fn core_of(&self, partition: Partition) -> Option<CoreId> {
        let core = self.cores[usize::from(partition.0)].load(Ordering::Acquire);
        (core != NOWHERE).then_some(CoreId(core))
    }

    /// Open threads of all cores.
    pub fn threads(&self) -> usize {
        self.threads.load(Ordering::Relaxed)
    }

    /// Begins an epoch: later numbers belong to it.
    pub(super) fn begin(&self, epoch: u32) {
        self.numbers.fetch_max(numbers_after(epoch), Ordering::Relaxed);
    }

    /// Notes that a core serves its partitions no more.
    pub(super) fn withdraw(&self, core: CoreId) {
        for served in &*self.cores {
            let _ = served.compare_exchange(core.0, NOWHERE, Ordering::AcqRel, Ordering::Relaxed);
        }
    }

    /// Notes that a core serves these partitions from now on.
    pub(super) fn serve(&self, partitions: &Partitions, core: CoreId) {
        for partition in partitions.iter() {
            self.cores[usize::from(partition.0)].store(core.0, Ordering::Release);
        }
    }

    /// The client of a conversation, if that is open.
    fn owner(&self, root: ThreadId) -> Option<ClientId> {
        self.roots.get(&root).map(|owner| *owner)
    }

    /// The conversation that a message of a client belongs to: the one that it names, if that is the client's own, else the one
    /// that the entrance gave it.
    pub(super) fn conversation_for(&self, client: ClientId, claimed: Option<ThreadId>, given: ThreadId) -> Home {
        let own = claimed.into_iter().chain([given]).find(|&id| self.owner(id) == Some(client));
        let root = own.unwrap_or(given);
        Home { root, core: self.core_of(Partition::of(root)), is_taken: own.is_none() && self.owner(given).is_some() }
    }

    /// The next number of the present epoch.
    pub(super) fn next_number(&self) -> Number {
        self.numbers.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Notes that a thread opened; one without a parent that a client owns opens a conversation.
    pub(super) fn opened(&self, root: Option<(ThreadId, ClientId)>) {
        self.threads.fetch_add(1, Ordering::Relaxed);
        if let Some((root, client)) = root {
            self.roots.insert(root, client);
        }
    }

    /// Notes that a thread closed, and with it the conversation that it opened.
    pub(super) fn closed(&self, root: Option<ThreadId>) {
        self.threads.fetch_sub(1, Ordering::Relaxed);
        if let Some(root) = root {
            self.roots.remove(&root);
        }
    }
}
