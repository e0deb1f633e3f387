use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use dashmap::DashMap;
use tokio::sync::oneshot;

/// Who waits to hear that a message was taken: by the number that it got at its entrance, because the shard that
/// takes it need not be the one that it came to first.
#[derive(Clone, Default)]
pub(super) struct Tickets {
    waiting: Arc<DashMap<u64, oneshot::Sender<()>>>,
    last: Arc<AtomicU64>,
}

impl Tickets {
    /// A new ticket, and what waits for it.
    pub(super) fn issue(&self) -> (u64, oneshot::Receiver<()>) {
        let ticket = self.last.fetch_add(1, Ordering::Relaxed);
        let (tell, told) = oneshot::channel();
        self.waiting.insert(ticket, tell);
        (ticket, told)
    }

    /// The message of a ticket was taken, or will not be.
    pub(super) fn punch(&self, ticket: u64, taken: bool) {
        if let Some((_, tell)) = self.waiting.remove(&ticket).filter(|_| taken) {
            // Whoever waited may have gone.
            let _ = tell.send(());
        }
    }

    /// Nothing more will be taken.
    pub(super) fn tear_all(&self) {
        self.waiting.clear();
    }
}
