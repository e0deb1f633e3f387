//! Parts of an organism beside its cores, such as the tasks of its jobs.

use std::any::Any;
use std::collections::BTreeSet;
use std::sync::Arc;

#[cfg(feature = "gateway")]
use systole_core::core::OperationError;
#[cfg(feature = "gateway")]
use systole_core::journal::ActRecord;
use systole_core::vocab::Name;
#[cfg(feature = "gateway")]
use systole_core::vocab::{MessageId, Time};

#[cfg(feature = "gateway")]
use crate::runtime::handler::raw::BoxFuture;
use crate::runtime::start::StartRefusal;
use crate::runtime::write::appender::Recoverable;

/// A part of an organism beside its cores. A module above the runtime adds it to the builder, and finds it again in the
/// organism by its type.
pub(crate) trait Part: Any + Send + Sync {
    /// Reserves names against those of all listeners and clients, before the start; returns the reason if it can't start
    /// so.
    fn reserve(&self, parties: BTreeSet<Name>) -> Option<StartRefusal>;

    /// Lists what of it lives in the journal.
    fn recoverables(&self) -> Vec<Arc<dyn Recoverable>>;

    /// Lets it live in memory, as the organism has no journal.
    fn live_in_memory(&self);

    /// Returns whether messages may come from it, beside those of clients.
    fn sends(&self) -> bool {
        true
    }
}

/// Mailboxes of listeners elsewhere. They are paused in place of the slots of their listeners: messages come there, and
/// wait. They have dead letters of their own.
#[cfg(feature = "gateway")]
pub(crate) trait Elsewhere: Send + Sync {
    /// Acts on a mailbox; `None` if the listener has none here. It is done, and durable with the record of the act, when the
    /// future ends.
    fn act(&self, mailbox: &Name, act: MailboxAct, record: ActRecord) -> Option<ActedElsewhere>;

    /// Returns the time since which a listener is paused.
    fn paused_since(&self, listener: &Name) -> Option<Time>;

    /// Lists the mailboxes.
    fn names(&self) -> Vec<Name>;
}

/// The outcome of an act on a mailbox.
#[cfg(feature = "gateway")]
pub(crate) type ActedElsewhere = BoxFuture<'static, Result<(), OperationError>>;

/// An act of an operator on a mailbox.
#[cfg(feature = "gateway")]
#[derive(Debug, Clone, Copy)]
pub(crate) enum MailboxAct {
    /// Pauses it.
    Pause,
    /// Resumes it.
    Resume,
    /// Puts a dead letter behind its last message.
    Redrive(MessageId),
    /// Deletes a dead letter.
    Discard(MessageId),
}

/// The parts of an organism, at most one of each type.
#[derive(Default)]
pub(crate) struct Parts(Vec<Box<dyn Part>>);

impl Parts {
    /// Returns the part of that type; makes it if there is none.
    pub(crate) fn get_or_default<P: Part + Default>(&mut self) -> &mut P {
        let at = self.0.iter().position(|part| part_of::<P>(&**part).is_some()).unwrap_or_else(|| {
            self.0.push(Box::new(P::default()));
            self.0.len() - 1
        });
        let part: &mut dyn Any = &mut *self.0[at];
        part.downcast_mut().expect("it was found by its type")
    }

    /// Returns the part of that type.
    pub(crate) fn get<P: Part>(&self) -> Option<&P> {
        self.iter().find_map(part_of)
    }

    /// Lists all parts, in the order in which they were added.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &dyn Part> {
        self.0.iter().map(|part| &**part)
    }
}

fn part_of<P: Part>(part: &dyn Part) -> Option<&P> {
    let part: &dyn Any = part;
    part.downcast_ref()
}
