//! The slots of listeners at a start from a journal: given in the order of the messages' numbers, across cores.
//!
//! Each core takes up its own part of the journal and knows nothing of the others'. So the home core of a listener
//! grants no slot before all cores have said that they are done, with [`CoreMessage::Recovered`]: what they want for
//! recovered messages comes before that, because messages between two cores keep their order. Then the threads that
//! want a slot wait in the order in which their messages came, which numbers of all cores tell; first those that had a slot,
//! as far as the journal knows: a listener with one slot has written which handlers began, and messages of mailboxes
//! stand there. Messages that come in meanwhile wait behind them. Stateless listeners have slots in each core, and need
//! none of this.

use super::{Turns, Waiter};
use crate::core::blueprint::ListenerId;
use crate::core::io::{CoreId, CoreMessage, Precedence};
use crate::core::setup::StepContext;

/// The slots that are wanted at a start from a journal, before any is granted.
#[derive(Debug)]
pub(super) struct Gathering {
    /// Cores that have not taken up all that is theirs.
    missing: u16,
    wants: Vec<Want>,
}

/// A slot that is wanted.
#[derive(Debug)]
pub(in crate::core) struct Want {
    pub at: Precedence,
    pub listener: ListenerId,
    pub waiter: Waiter,
    /// States whether it resumes a parked handler.
    pub resume: bool,
}

impl Gathering {
    pub(super) fn new(cores: u16) -> Self {
        Self { missing: cores, wants: Vec::new() }
    }

    pub(super) fn add(&mut self, want: Want) {
        self.wants.push(want);
    }
}

impl Turns {
    /// Notes the place of a recovered message that is about to want a slot.
    pub(in crate::core) fn arrives(&mut self, at: Precedence) {
        self.precedence = at;
    }

    /// Reports to the other cores that this one has recovered. Returns the slots that are wanted, if it was the last.
    pub(in crate::core) fn all_recovered(&mut self, step: &mut StepContext) -> Vec<Want> {
        self.precedence = Precedence::Later;
        if self.gathering.is_none() {
            return Vec::new();
        }
        let own = self.setup.core;
        for core in (0..self.setup.cores).map(CoreId).filter(|&core| core != own) {
            step.out.send(core, CoreMessage::Recovered);
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
