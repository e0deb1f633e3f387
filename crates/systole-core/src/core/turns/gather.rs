//! The slots of listeners at a start from a journal: given in the order of the messages' numbers, across cores.
//!
//! Each core takes up its own part of the journal and knows nothing of the others'. So the home core of a listener
//! grants no slot before all cores have said that they are done, with [`CoreMessage::Recovered`]: what they want for
//! recovered messages comes before that, because messages between two cores keep their order. Then the threads that
//! want a slot wait in the order in which their messages came, which numbers of all cores tell; first those that had a slot,
//! as far as the journal knows: their messages stand in a mailbox. Messages that come in meanwhile wait behind them. Stateless listeners have slots in each core, and need none of this.

use super::{Turns, Waiter};
use crate::core::blueprint::ListenerId;
use crate::core::io::{CoreId, CoreMessage};
use crate::core::outputs::Outputs;
use crate::journal::Number;

/// The slots that are wanted at a start from a journal, before any is granted.
#[derive(Debug)]
pub(super) struct Gathering {
    /// Cores that have not taken up all that is theirs.
    missing: u16,
    wants: Vec<Want>,
    /// The place of the message for which a thread of this core is about to want a slot.
    at: Number,
}

/// A slot that is wanted.
#[derive(Debug)]
pub(in crate::core) struct Want {
    /// The place of its message in the journal at the start; the greatest number if it came later.
    pub at: Number,
    pub listener: ListenerId,
    pub waiter: Waiter,
    /// States whether it resumes a parked handler.
    pub resume: bool,
}

impl Gathering {
    /// The place of a message that was not in the journal at the start.
    const LATER: Number = Number::MAX;

    pub(super) fn new(cores: u16) -> Self {
        Self { missing: cores, wants: Vec::new(), at: Self::LATER }
    }

    pub(super) fn add(&mut self, want: Want) {
        self.wants.push(want);
    }
}

impl Turns {
    /// The place of the message for which a thread wants a slot.
    pub(super) fn arrival(&self) -> Number {
        self.gathering.as_ref().map_or(Gathering::LATER, |gathering| gathering.at)
    }

    /// Notes the place of a recovered message that is about to want a slot.
    pub(in crate::core) fn arrives(&mut self, place: Number) {
        if let Some(gathering) = &mut self.gathering {
            gathering.at = place;
        }
    }

    /// Reports to the other cores that this one has recovered. Returns the slots that are wanted, if it was the last.
    pub(in crate::core) fn all_recovered(&mut self, out: &mut Outputs) -> Vec<Want> {
        let Some(gathering) = &mut self.gathering else { return Vec::new() };
        gathering.at = Gathering::LATER;
        let own = self.setup.core;
        for core in (0..self.setup.cores).map(CoreId).filter(|&core| core != own) {
            out.send(core, CoreMessage::Recovered);
        }
        self.core_recovered()
    }

    /// Counts a core that has recovered. Returns the slots that are wanted, in the order of their messages, if it was
    /// the last.
    pub(in crate::core) fn core_recovered(&mut self) -> Vec<Want> {
        let Some(gathering) = &mut self.gathering else { return Vec::new() };
        gathering.missing = gathering.missing.saturating_sub(1);
        if gathering.missing > 0 {
            return Vec::new();
        }
        let mut wants = self.gathering.take().map_or(Vec::new(), |gathering| gathering.wants);
        wants.sort_by_key(|want| want.at);
        wants
    }
}
