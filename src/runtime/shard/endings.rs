//! Ends of conversations, for requests that wait for them.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use systole_core::vocab::ThreadId;
use tokio::sync::Notify;

/// The conversations whose end is waited for.
#[derive(Default)]
pub(crate) struct Endings {
    waited: Mutex<HashMap<ThreadId, Vec<Arc<Notify>>>>,
    /// Their number: mostly there is none, and no conversation that ends takes the lock.
    count: AtomicUsize,
}

/// A wait for the end of a conversation, until it is dropped.
#[must_use = "the wait ends when this is dropped"]
pub(crate) struct WatchedEnd {
    endings: Arc<Endings>,
    root: ThreadId,
    notify: Arc<Notify>,
}

impl Endings {
    /// Notifies `notify` when a conversation ends, as far as that is durable. The caller looks, afterwards, whether it
    /// has ended before.
    pub(crate) fn watch(self: &Arc<Self>, root: ThreadId, notify: &Arc<Notify>) -> WatchedEnd {
        let mut waited = self.lock();
        waited.entry(root).or_default().push(notify.clone());
        self.count.store(waited.len(), Ordering::SeqCst);
        WatchedEnd { endings: self.clone(), root, notify: notify.clone() }
    }

    /// Notes that a conversation has ended.
    pub(crate) fn over(&self, root: ThreadId) {
        if self.count.load(Ordering::SeqCst) == 0 {
            return;
        }
        let mut waited = self.lock();
        let waiting = waited.remove(&root).unwrap_or_default();
        self.count.store(waited.len(), Ordering::SeqCst);
        drop(waited);
        waiting.iter().for_each(|notify| notify.notify_waiters());
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ThreadId, Vec<Arc<Notify>>>> {
        self.waited.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for WatchedEnd {
    fn drop(&mut self) {
        let mut waited = self.endings.lock();
        if let Some(waiting) = waited.get_mut(&self.root) {
            if let Some(at) = waiting.iter().position(|notify| Arc::ptr_eq(notify, &self.notify)) {
                waiting.swap_remove(at);
            }
            if waiting.is_empty() {
                waited.remove(&self.root);
            }
        }
        self.endings.count.store(waited.len(), Ordering::SeqCst);
    }
}
