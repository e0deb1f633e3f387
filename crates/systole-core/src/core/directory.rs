//! The directory of all shards: the shard of each conversation, and the number of threads.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use dashmap::DashMap;

use super::blueprint::ClientId;
use super::io::ShardId;
use crate::vocab::ThreadId;

/// Knowledge that shards and entrances share: the shard of each conversation of a client, the number of open threads,
/// and the numbers given in this start, so that those of all shards are in the order of events.
#[derive(Debug, Clone, Default)]
pub struct Directory {
    roots: Arc<DashMap<ThreadId, (ClientId, ShardId)>>,
    threads: Arc<AtomicUsize>,
    numbers: Arc<AtomicU64>,
}

impl Directory {
    /// The shard that a client's conversation lives in, while it is open.
    pub fn shard_of(&self, root: ThreadId) -> Option<ShardId> {
        self.roots.get(&root).map(|entry| entry.1)
    }

    /// Open threads of all shards.
    pub fn threads(&self) -> usize {
        self.threads.load(Ordering::Relaxed)
    }

    pub(super) fn owned_by(&self, root: ThreadId, client: ClientId) -> Option<ShardId> {
        self.roots.get(&root).filter(|entry| entry.0 == client).map(|entry| entry.1)
    }

    pub(super) fn insert(&self, root: ThreadId, client: ClientId, shard: ShardId) {
        self.roots.insert(root, (client, shard));
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
