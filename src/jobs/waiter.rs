//! Handlers that wait for a task.

use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};

use systole_core::core::Failure;
use systole_core::inbox::payload::ResultPayload;
use systole_core::inbox::{InboxPrincipal, TaskAction};
use systole_core::vocab::{Fault, FaultCode, TaskId};
use tokio::sync::Notify;

use super::inboxes::Inboxes;
use super::shared::{Shared, lock};
use crate::runtime::JournalAppender;
use systole_store::clock::Clock;

/// Reason for the cancellation of a task whose submitter no longer waits.
pub(super) const GONE: &str = "the thread that submitted it ended";

/// A handler that waits for a task.
#[derive(Default)]
pub(super) struct Waiter {
    /// Notified at each event of the task.
    pub(super) news: Notify,
    /// The result; the task itself may be forgotten by then.
    pub(super) ended: OnceLock<ResultPayload>,
}

/// A handler's registration as a waiter for a task. When the last waiter leaves before the end, the task is cancelled,
/// unless the organism ends or the handler's conversation moves: then the handlers wait again in the next run.
pub(super) struct WaitGuard<I: Inboxes> {
    shared: Arc<Shared<I>>,
    clock: Clock,
    appender: Option<JournalAppender>,
    id: TaskId,
    submitter: InboxPrincipal,
    pub(super) waiter: Arc<Waiter>,
}

impl<I: Inboxes> WaitGuard<I> {
    pub(super) fn take(shared: Arc<Shared<I>>, clock: Clock, id: TaskId, submitter: InboxPrincipal) -> Self {
        let waiter = Arc::<Waiter>::default();
        lock(&shared.waiting).entry(id).or_default().push(waiter.clone());
        shared.waiters.fetch_add(1, Ordering::Relaxed);
        let appender = shared.lock().appender.clone();
        Self { shared, clock, appender, id, submitter, waiter }
    }

    /// Returns whether this waiter gets the questions, if several wait for one task.
    pub(super) fn is_first(&self) -> bool {
        let waiting = lock(&self.shared.waiting);
        let first = waiting.get(&self.id).and_then(|waiters| waiters.first());
        first.is_some_and(|first| Arc::ptr_eq(first, &self.waiter))
    }
}

impl<I: Inboxes> Drop for WaitGuard<I> {
    fn drop(&mut self) {
        self.shared.waiters.fetch_sub(1, Ordering::Relaxed);
        let last = {
            let mut waiting = lock(&self.shared.waiting);
            let Some(waiters) = waiting.get_mut(&self.id) else { return };
            waiters.retain(|waiter| !Arc::ptr_eq(waiter, &self.waiter));
            // The next waiter may be the first now.
            waiters.iter().for_each(|waiter| waiter.news.notify_one());
            let last = waiters.is_empty();
            if last {
                waiting.remove(&self.id);
            }
            last
        };
        let ends = self.appender.as_ref().is_some_and(JournalAppender::runs_again);
        if last && !ends && self.waiter.ended.get().is_none() {
            let now = self.clock.now();
            // The task may have ended unnoticed.
            self.shared.try_change(|inboxes| {
                inboxes.holding_mut(self.id)?.apply(&self.submitter, self.id, TaskAction::Cancel(GONE.to_owned()), now)
            });
        }
    }
}

/// Refuses a waiter beyond the limit. Several handlers may wait for one task; without a limit they could hold every
/// slot, and no message that ends a task could be handled.
pub(super) fn may_wait(waiters: usize, limit: usize) -> Result<(), Failure> {
    if waiters < limit {
        return Ok(());
    }
    let message = "too many handlers wait for tasks of this listener: submit detached, or try again later";
    let fault = Fault { retryable: true, ..Fault::new(FaultCode::Failed, message) };
    Err(Failure::passing(fault))
}
