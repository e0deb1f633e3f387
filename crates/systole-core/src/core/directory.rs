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
    pub(super) fn owner(&self, root: ThreadId) -> Option<ClientId> {
        self.roots.get(&root).map(|owner| *owner)
    }

    pub(super) fn insert(&self, root: ThreadId, client: ClientId) {
        self.roots.insert(root, client);
    }

    pub(super) fn remove(&self, root: ThreadId) {
        self.roots.remove(&root);
    }

    /// The next number of the present epoch.
    pub(super) fn next_number(&self) -> Number {
        self.numbers.fetch_add(1, Ordering::Relaxed) + 1
    }

    pub(super) fn thread_opened(&self) {
        self.threads.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn thread_closed(&self) {
        self.threads.fetch_sub(1, Ordering::Relaxed);
    }
}
