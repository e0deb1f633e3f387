use std::sync::{Arc, Weak};

use super::clock::Clock;
use super::journal::Written;
use super::scribe::Scribe;
use crate::journal::{JournalError, Op, Recovered, Step};
use crate::vocab::Time;

/// Something beside the cores that lives in the journal of the organism as well.
pub(super) trait Resident: Send + Sync {
    /// Takes up what the journal holds of it, before anything runs, and writes there from now on.
    ///
    /// # Errors
    /// [`JournalError`] if it can't be what the journal says.
    fn move_in(self: Arc<Self>, recovered: &Recovered, ledger: Ledger) -> Result<(), JournalError>;
}

/// The journal, for what lives beside the cores.
///
/// Changes have one order, for all who write: what is handed over later is never durable before. So whoever hands a
/// change over while nobody else can see it may show it at once: what follows from it comes after it.
#[derive(Clone)]
pub(super) struct Ledger {
    /// The organism's; gone when that has ended.
    scribe: Weak<Scribe>,
    clock: Clock,
}

impl Ledger {
    pub(super) fn new(scribe: &Arc<Scribe>, clock: Clock) -> Self {
        Self { scribe: Arc::downgrade(scribe), clock }
    }

    /// Has changes written, all of them or none. `written` is called when they are, on the journal's thread; it is
    /// given back if they are already, and dropped if they won't be.
    pub(super) fn append(&self, ops: Vec<Op>, written: Written) -> Option<Written> {
        let step = Step { ops, at: self.now() };
        self.scribe.upgrade()?.append_beside(step, written)
    }

    /// The time of the organism.
    pub(super) fn now(&self) -> Time {
        self.clock.now()
    }

    /// Whether the organism is there.
    pub(super) fn is_open(&self) -> bool {
        self.scribe.strong_count() > 0
    }

    /// Whether the organism ends, and leaves what is under way to its next start.
    pub(super) fn is_sealed(&self) -> bool {
        self.scribe.upgrade().is_none_or(|scribe| scribe.is_sealed())
    }
}
