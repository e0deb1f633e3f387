//! The directory of all shards: the shard of each partition, the open conversations, and the number of threads.

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, AtomicU64, AtomicUsize, Ordering};

use dashmap::DashMap;

use super::blueprint::ClientId;
use super::io::ShardId;
use crate::vocab::{Partition, Partitions, ThreadId};

/// Knowledge that shards and entrances share: the shard of each partition, the open conversations of clients, the
/// number of open threads, and the numbers given so far, so that those of all shards are in the order of events.
#[derive(Debug, Clone)]
pub struct Directory {
    shards: Arc<[AtomicU16; Partition::COUNT]>,
    roots: Arc<DashMap<ThreadId, ClientId>>,
    threads: Arc<AtomicUsize>,
    numbers: Arc<AtomicU64>,
}

/// The place of a partition that no shard serves.
const NOWHERE: u16 = u16::MAX;

impl Default for Directory {
    fn default() -> Self {
        Self {
            shards: Arc::new([const { AtomicU16::new(NOWHERE) }; Partition::COUNT]),
            roots: Arc::default(),
            threads: Arc::default(),
            numbers: Arc::default(),
        }
    }
}

impl Directory {
    /// The shard that serves a partition.
    pub fn shard_of(&self, partition: Partition) -> Option<ShardId> {
        let shard = self.shards[usize::from(partition.0)].load(Ordering::Acquire);
        (shard != NOWHERE).then_some(ShardId(shard))
    }

    /// Returns whether a client's conversation is open.
    pub fn is_open(&self, root: ThreadId) -> bool {
        self.roots.contains_key(&root)
    }

    /// Open threads of all shards.
    pub fn threads(&self) -> usize {
        self.threads.load(Ordering::Relaxed)
    }

    /// Notes that a shard serves these partitions from now on.
    pub(super) fn serve(&self, partitions: &Partitions, shard: ShardId) {
        for partition in partitions.iter() {
            self.shards[usize::from(partition.0)].store(shard.0, Ordering::Release);
        }
    }

    pub(super) fn is_owned_by(&self, root: ThreadId, client: ClientId) -> bool {
        self.roots.get(&root).is_some_and(|owner| *owner == client)
    }

    pub(super) fn insert(&self, root: ThreadId, client: ClientId) {
        self.roots.insert(root, client);
    }

    pub(super) fn remove(&self, root: ThreadId) {
        self.roots.remove(&root);
    }

    /// The next number, from 1.
    pub(super) fn next_number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed) + 1
    }

    pub(super) fn thread_opened(&self) {
        self.threads.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn thread_closed(&self) {
        self.threads.fetch_sub(1, Ordering::Relaxed);
    }
}
