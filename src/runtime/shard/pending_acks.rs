//! Pending acknowledgements: waits for the steps of the cores.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use dashmap::DashMap;
use systole_core::core::AttachmentEnd;
use tokio::sync::oneshot;

/// Called once, with the end of a ticket.
type Told = Box<dyn FnOnce(AttachmentEnd) + Send + Sync>;

/// Waiters for steps of the cores, by the number of the attachment that the step contains, because the shard that makes
/// the step need not be the one that received the input.
#[derive(Clone, Default)]
pub(crate) struct PendingAcks {
    waiting: Arc<DashMap<u64, Told>>,
    last: Arc<AtomicU64>,
    /// True if no more steps will be made.
    closed: Arc<AtomicBool>,
}

impl PendingAcks {
    /// Issues a ticket, and a receiver that waits for its step.
    pub(crate) fn issue(&self) -> (u64, oneshot::Receiver<()>) {
        let (tell, told) = oneshot::channel();
        let ticket = self.watch(move |end| {
            if end == AttachmentEnd::Effective {
                // The receiver may be gone.
                let _ = tell.send(());
            }
        });
        (ticket, told)
    }

    /// Issues a ticket whose step calls `told`, on the thread of its shard; at once, if no more steps will be made.
    pub(crate) fn watch(&self, told: impl FnOnce(AttachmentEnd) + Send + Sync + 'static) -> u64 {
        let ticket = self.last.fetch_add(1, Ordering::Relaxed);
        self.waiting.insert(ticket, Box::new(told));
        // After the insertion: either this load sees the flag, or `fail_all` sees the ticket.
        if self.closed.load(Ordering::SeqCst) {
            self.resolve(ticket, AttachmentEnd::Dropped);
        }
        ticket
    }

    /// Reports the end of a ticket: its step was made, or will not be.
    pub(crate) fn resolve(&self, ticket: u64, end: AttachmentEnd) {
        if let Some((_, told)) = self.waiting.remove(&ticket) {
            told(end);
        }
    }

    /// Makes a value that reports on a ticket when it is dropped: that its changes were written, if they were
    /// [`written`](ResolveOnDrop::written).
    #[cfg(feature = "gateway")]
    pub(crate) fn resolve_on_drop(&self, ticket: u64) -> ResolveOnDrop {
        ResolveOnDrop { pending_acks: self.clone(), ticket, end: AttachmentEnd::Dropped }
    }

    /// Ends all waits, present and later, as no more steps will be made.
    pub(crate) fn fail_all(&self) {
        self.closed.store(true, Ordering::SeqCst);
        let left: Vec<u64> = self.waiting.iter().map(|entry| *entry.key()).collect();
        left.into_iter().for_each(|ticket| self.resolve(ticket, AttachmentEnd::Dropped));
    }
}

/// A report that is made in any case, as the drop of this value.
#[cfg(feature = "gateway")]
pub(crate) struct ResolveOnDrop {
    pending_acks: PendingAcks,
    ticket: u64,
    end: AttachmentEnd,
}

#[cfg(feature = "gateway")]
impl ResolveOnDrop {
    /// Notes that the changes were written, without the handler that they were for.
    pub(crate) fn written(&mut self) {
        self.end = AttachmentEnd::Late;
    }
}

#[cfg(feature = "gateway")]
impl Drop for ResolveOnDrop {
    fn drop(&mut self) {
        self.pending_acks.resolve(self.ticket, self.end);
    }
}
