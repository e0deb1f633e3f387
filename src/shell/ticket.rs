use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use dashmap::DashMap;
use tokio::sync::oneshot;

/// Called once: whether the step of a ticket was made.
type Told = Box<dyn FnOnce(bool) + Send + Sync>;

/// Waiters for steps of the cores: by the number that the attachment of a step got where it was made, because the shard
/// that makes the step need not be the one that it came to first.
#[derive(Clone, Default)]
pub(super) struct Tickets {
    waiting: Arc<DashMap<u64, Told>>,
    last: Arc<AtomicU64>,
    /// Whether no step will be made any more.
    torn: Arc<AtomicBool>,
}

impl Tickets {
    /// Issues a ticket, and what waits for it.
    pub(super) fn issue(&self) -> (u64, oneshot::Receiver<()>) {
        let (tell, told) = oneshot::channel();
        let ticket = self.watch(move |taken| {
            if taken {
                // The waiter may have gone.
                let _ = tell.send(());
            }
        });
        (ticket, told)
    }

    /// Issues a ticket whose step calls a function, on the thread of its shard; at once, if no step will be made any more.
    pub(super) fn watch(&self, told: impl FnOnce(bool) + Send + Sync + 'static) -> u64 {
        let ticket = self.last.fetch_add(1, Ordering::Relaxed);
        self.waiting.insert(ticket, Box::new(told));
        // Behind the insertion: either this sees that, or `tear_all` sees the ticket.
        if self.torn.load(Ordering::SeqCst) {
            self.punch(ticket, false);
        }
        ticket
    }

    /// The step of a ticket was made, or will not be.
    pub(super) fn punch(&self, ticket: u64, taken: bool) {
        if let Some((_, told)) = self.waiting.remove(&ticket) {
            told(taken);
        }
    }

    /// Ends all waits, present and later: no step will be made any more.
    pub(super) fn tear_all(&self) {
        self.torn.store(true, Ordering::SeqCst);
        let left: Vec<u64> = self.waiting.iter().map(|entry| *entry.key()).collect();
        left.into_iter().for_each(|ticket| self.punch(ticket, false));
    }
}
