//! The journal for parts of an organism beside the cores.

use std::sync::{Arc, Weak};

#[cfg(feature = "gateway")]
use systole_core::core::{Attachment, AttachmentEnd};
use systole_core::journal::{JournalError, Op, Recovered, Step};
use systole_core::vocab::Time;

use super::handle::JournalHandle;
use crate::journal::Written;
use crate::runtime::shard::handlers::is_moving;
use crate::runtime::shard::pending_acks::PendingAcks;
use systole_store::clock::Clock;

/// A part of an organism beside the cores that lives in its journal.
pub(crate) trait Recoverable: Send + Sync {
    /// Restores its state from the journal, before anything runs, and writes there from now on.
    ///
    /// # Errors
    /// [`JournalError`] if the journal's state is invalid here.
    fn move_in(self: Arc<Self>, recovered: &Recovered, appender: JournalAppender) -> Result<(), JournalError>;

    /// Learns of conversations that a core of this organism takes over, before that core has them.
    fn take_over(&self, _recovered: &Recovered) {}

    /// Prepares the consequence of a core's step, which is carried out once the step is on its way into the journal.
    fn follow(self: Arc<Self>, _ops: &[Op]) -> Option<Following> {
        None
    }
}

/// The consequence of a step.
pub(crate) type Following = Box<dyn FnOnce() + Send>;

/// The organism ends, and its journal takes no more changes: the requested one has not happened, or may be gone after
/// the next start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the organism ends: ask again after its next start")]
pub(crate) struct Ending;

/// The journal, for recoverables. A part without a journal has no appender, and lives in memory; one with an appender
/// lives in the journal, and changes nothing more once that is [sealed](Ending).
///
/// Changes of all writers have one order: a later change is never durable before an earlier one. So a writer that hands
/// a change over while it still hides the change may publish it at once: consequences are written after it.
#[derive(Clone)]
pub(crate) struct JournalAppender {
    /// Gone when the organism has ended.
    journal_handle: Weak<JournalHandle>,
    #[cfg_attr(not(feature = "gateway"), expect(dead_code, reason = "only the gateway attaches changes to inputs"))]
    pending_acks: PendingAcks,
    clock: Clock,
}

impl JournalAppender {
    pub(crate) fn new(journal_handle: &Arc<JournalHandle>, pending_acks: PendingAcks, clock: Clock) -> Self {
        Self { journal_handle: Arc::downgrade(journal_handle), pending_acks, clock }
    }

    /// Writes operations, all of them or none. Afterwards `written` is called on the journal's thread, never before
    /// this method returns; it is dropped if the operations won't be written.
    ///
    /// # Errors
    /// [`Ending`]: they won't.
    pub(crate) fn append(&self, ops: Vec<Op>, written: Written) -> Result<(), Ending> {
        let step = Step { ops, at: self.now() };
        self.journal_handle.upgrade().ok_or(Ending)?.append_beside(step, written)
    }

    /// Wraps operations for an input of a core: `told` is called with their end, when the step that contains them is durable,
    /// or once there will be none.
    #[cfg(feature = "gateway")]
    pub(crate) fn attach(&self, ops: Vec<Op>, told: impl FnOnce(AttachmentEnd) + Send + Sync + 'static) -> Attachment {
        Attachment { ops, note: None, ticket: self.pending_acks.watch(told) }
    }

    /// Writes the operations of an attachment that no core got, because the pump no longer waits for them. Where the
    /// organism ends they are dropped, and their ticket ends so: the next start runs the handler again.
    #[cfg(feature = "gateway")]
    pub(crate) fn append_attached(&self, attachment: Attachment) {
        let Attachment { ops, ticket, .. } = attachment;
        let mut resolved = self.pending_acks.resolve_on_drop(ticket);
        // Reported by the drop of `resolved`.
        let _ = self.append(ops, Box::new(move || resolved.written()));
    }

    /// Returns the time of the organism.
    pub(crate) fn now(&self) -> Time {
        self.clock.now()
    }

    /// Returns the clock of the organism.
    #[cfg(feature = "gateway")]
    pub(crate) fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Drops an attachment that no core got, because its handler is dropped and its message runs again: its changes have
    /// not happened.
    #[cfg(feature = "gateway")]
    pub(crate) fn drop_attached(&self, attachment: Attachment) {
        self.pending_acks.resolve(attachment.ticket, AttachmentEnd::Dropped);
    }

    /// Returns whether the message of the handler that this thread drops runs again: the organism ends, or the
    /// conversation moves to another core.
    pub(crate) fn runs_again(&self) -> bool {
        is_moving() || self.is_sealed()
    }

    /// Returns whether the organism ends or has ended, leaving open work to its next start.
    pub(crate) fn is_sealed(&self) -> bool {
        self.journal_handle.upgrade().is_none_or(|journal_handle| journal_handle.is_sealed())
    }
}
