use std::sync::{Arc, Weak};

#[cfg(feature = "gateway")]
use systole_core::core::Attachment;
use systole_core::journal::{JournalError, Op, Recovered, Step};
use systole_core::vocab::Time;

use super::clock::Clock;
use super::journal::Written;
use super::scribe::Scribe;
use super::ticket::Tickets;

/// Something beside the cores that lives in the journal of the organism as well.
pub(crate) trait Resident: Send + Sync {
    /// Takes up what the journal holds of it, before anything runs, and writes there from now on.
    ///
    /// # Errors
    /// [`JournalError`] if it can't be what the journal says.
    fn move_in(self: Arc<Self>, recovered: &Recovered, ledger: Ledger) -> Result<(), JournalError>;

    /// What follows here from a step of a core, to be done once the step is on its way into the journal.
    fn follow(self: Arc<Self>, _ops: &[Op]) -> Option<Following> {
        None
    }
}

/// Something that follows from a step.
pub(crate) type Following = Box<dyn FnOnce() + Send>;

/// The journal, for what lives beside the cores.
///
/// Changes have one order, for all who write: what is handed over later is never durable before. So whoever hands a
/// change over while nobody else can see it may show it at once: what follows from it comes after it.
#[derive(Clone)]
pub(crate) struct Ledger {
    /// The organism's; gone when that has ended.
    scribe: Weak<Scribe>,
    #[cfg_attr(not(feature = "gateway"), expect(dead_code, reason = "only the gateway attaches changes to inputs"))]
    tickets: Tickets,
    clock: Clock,
}

impl Ledger {
    pub(super) fn new(scribe: &Arc<Scribe>, tickets: Tickets, clock: Clock) -> Self {
        Self { scribe: Arc::downgrade(scribe), tickets, clock }
    }

    /// Has changes written, all of them or none. `written` is called when they are, on the journal's thread and after
    /// this has come back; it is dropped if they won't be.
    pub(crate) fn append(&self, ops: Vec<Op>, written: Written) {
        let step = Step { ops, at: self.now() };
        if let Some(scribe) = self.scribe.upgrade() {
            scribe.append_beside(step, written);
        }
    }

    /// Wraps changes up that travel with an input of a core: `told` is called when the step is durable that they are
    /// part of, with `false` if the organism ends first.
    #[cfg(feature = "gateway")]
    pub(crate) fn attach(&self, ops: Vec<Op>, told: impl FnOnce(bool) + Send + Sync + 'static) -> Attachment {
        Attachment { ops, ticket: self.tickets.watch(told) }
    }

    /// Has an attachment written that no core got.
    #[cfg(feature = "gateway")]
    pub(crate) fn append_attached(&self, attachment: Attachment) {
        let Attachment { ops, ticket } = attachment;
        let tickets = self.tickets.clone();
        self.append(ops, Box::new(move || tickets.punch(ticket, true)));
    }

    /// The time of the organism.
    pub(crate) fn now(&self) -> Time {
        self.clock.now()
    }

    /// The clock of the organism.
    #[cfg(feature = "gateway")]
    pub(crate) fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Whether the organism is there.
    pub(crate) fn is_open(&self) -> bool {
        self.scribe.strong_count() > 0
    }

    /// Whether the organism ends, and leaves what is under way to its next start.
    pub(crate) fn is_sealed(&self) -> bool {
        self.scribe.upgrade().is_none_or(|scribe| scribe.is_sealed())
    }
}
