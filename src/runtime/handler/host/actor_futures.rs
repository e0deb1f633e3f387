//! Futures of handlers that need their actor.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Wake, Waker};

use actix::{Actor, ResponseActFuture};

use crate::runtime::handler::response::Response;
use crate::runtime::shard::handlers::HandlerKey;

/// The futures of handlers that need their actor, each with a waker of its own, so that only woken futures are polled,
/// and the handler that caused a panic is known.
pub(super) struct ActorFutures<A: Actor> {
    slots: Vec<Option<PendingFuture<A>>>,
    free: Vec<usize>,
    ready: Arc<Ready>,
}

/// A future with its waker.
pub(super) struct PendingFuture<A: Actor> {
    pub(super) key: HandlerKey,
    pub(super) future: ResponseActFuture<A, Response>,
    pub(super) waker: Arc<FutureWaker>,
}

/// Slots of woken futures, and the waker of the feed.
#[derive(Default)]
struct Ready {
    state: Mutex<(VecDeque<usize>, Option<Waker>)>,
}

/// The waker of one future.
pub(super) struct FutureWaker {
    slot: usize,
    queued: AtomicBool,
    ready: Arc<Ready>,
}

impl Wake for FutureWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.queued.swap(true, Ordering::AcqRel) {
            let feed = {
                let mut state = self.ready.state.lock().unwrap_or_else(PoisonError::into_inner);
                state.0.push_back(self.slot);
                state.1.take()
            };
            if let Some(feed) = feed {
                feed.wake();
            }
        }
    }
}

impl<A: Actor> Default for ActorFutures<A> {
    fn default() -> Self {
        Self { slots: Vec::new(), free: Vec::new(), ready: Arc::default() }
    }
}

impl<A: Actor> ActorFutures<A> {
    /// Adds a future, ready to be polled.
    pub(super) fn insert(&mut self, key: HandlerKey, future: ResponseActFuture<A, Response>) {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() - 1
        });
        let waker = Arc::new(FutureWaker { slot, queued: AtomicBool::new(false), ready: self.ready.clone() });
        waker.wake_by_ref();
        self.slots[slot] = Some(PendingFuture { key, future, waker });
    }

    /// Takes out the next woken future.
    pub(super) fn next_ready(&mut self) -> Option<PendingFuture<A>> {
        loop {
            let slot = self.ready.state.lock().unwrap_or_else(PoisonError::into_inner).0.pop_front()?;
            if let Some(pending) = self.slots[slot].take() {
                pending.waker.queued.store(false, Ordering::Release);
                return Some(pending);
            }
        }
    }

    /// Puts a pending future back.
    pub(super) fn put_back(&mut self, pending: PendingFuture<A>) {
        let slot = pending.waker.slot;
        self.slots[slot] = Some(pending);
    }

    /// Frees the slot of a future that was taken out and has ended.
    pub(super) fn forget(&mut self, pending: &PendingFuture<A>) {
        self.free.push(pending.waker.slot);
    }

    /// Removes the future of a handler.
    pub(super) fn remove(&mut self, key: HandlerKey) -> Option<PendingFuture<A>> {
        let slot = self.slots.iter().position(|pending| pending.as_ref().is_some_and(|pending| pending.key == key))?;
        self.free.push(slot);
        self.slots[slot].take()
    }

    /// Removes all futures.
    pub(super) fn take_all(&mut self) -> Vec<PendingFuture<A>> {
        std::mem::take(self).slots.into_iter().flatten().collect()
    }

    /// Stores the feed's waker for the next woken future; returns `false` if one is woken already.
    pub(super) fn sleep(&self, feed: &Waker) -> bool {
        let mut state = self.ready.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.1 = Some(feed.clone());
        state.0.is_empty()
    }
}
