//! The slots of listeners at a start from a journal: given in the order of the messages' numbers, across shards.
//!
//! Each shard takes up its own part of the journal and knows nothing of the others'. So the home shard of a listener
//! grants no slot before all shards have said that they are done, with [`ShardMessage::Recovered`]: what they want for
//! recovered messages comes before that, because messages between two shards keep their order. Then those who want a
//! slot stand in line in the order in which their messages came, which numbers of all shards tell. Messages that come in
//! meanwhile stand behind them. Stateless listeners have slots in each shard, and need none of this.

use super::blueprint::ListenerId;
use super::concurrency::Waiter;
use super::io::{ShardId, ShardMessage};
use super::machine::Core;
use crate::journal::Number;

/// Wishes for slots that a shard collects at a start from a journal, before it grants any.
#[derive(Debug)]
pub(super) struct Gathering {
    /// Shards that have not taken up all that is theirs.
    missing: u16,
    wants: Vec<Want>,
    /// The place of the message for which its own threads want a slot.
    at: Number,
}

/// A slot that is wanted.
#[derive(Debug)]
struct Want {
    at: Number,
    listener: ListenerId,
    waiter: Waiter,
    resume: bool,
}

impl Gathering {
    /// The place of a message that was not in the journal at the start.
    const LATER: Number = Number::MAX;

    pub(super) fn new(shards: u16) -> Self {
        Self { missing: shards, wants: Vec::new(), at: Self::LATER }
    }
}

impl Core {
    /// The place of the message for which a thread wants a slot.
    pub(super) fn arrival(&self) -> Number {
        self.gathering.as_ref().map_or(Gathering::LATER, |gathering| gathering.at)
    }

    /// A recovered message is about to want a slot.
    pub(super) fn arrives(&mut self, place: Number) {
        if let Some(gathering) = &mut self.gathering {
            gathering.at = place;
        }
    }

    /// Notes that a slot is wanted, if none are granted yet; whether that is so.
    pub(super) fn gather(&mut self, listener: ListenerId, waiter: Waiter, resume: bool, at: Number) -> bool {
        let Some(gathering) = &mut self.gathering else { return false };
        gathering.wants.push(Want { at, listener, waiter, resume });
        true
    }

    /// This shard has taken up what is its own.
    pub(super) fn all_recovered(&mut self) {
        let Some(gathering) = &mut self.gathering else { return };
        gathering.at = Gathering::LATER;
        let own = self.shard;
        for shard in (0..self.shards).map(ShardId).filter(|&shard| shard != own) {
            self.send(shard, ShardMessage::Recovered);
        }
        self.shard_recovered();
    }

    /// A shard has taken up what is its own; the last one opens the lines.
    pub(super) fn shard_recovered(&mut self) {
        let Some(gathering) = &mut self.gathering else { return };
        gathering.missing = gathering.missing.saturating_sub(1);
        if gathering.missing > 0 {
            return;
        }
        let mut wants = self.gathering.take().map_or(Vec::new(), |gathering| gathering.wants);
        wants.sort_by_key(|want| want.at);
        // Whoever does not want it any more gives the slot back when it comes.
        for Want { at, listener, waiter, resume } in wants {
            self.slot_wanted(listener, waiter, resume, at);
        }
    }
}
