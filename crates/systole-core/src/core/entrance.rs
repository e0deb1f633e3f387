//! The entrance of a core: the queue of items to be judged, the rate limit of questions to the core during overload, and
//! whether the organism still takes messages.

use std::rc::Rc;
use std::time::Duration;

use systole_xml::ladder::Canonical;
use uuid::Uuid;

use super::blueprint::{ClientId, Principal};
use super::books::Entry;
use super::conversation::Rounds;
use super::gauge::Permit;
use super::invocations::Holdings;
use super::io::{CallId, Emission, HandlerOutcome, Injected, Join};
use super::key::{InvocationId, ThreadKey};
use super::setup::Setup;
use crate::journal::{ActRecord, Number};
use crate::vocab::{MessageId, Name, ThreadId, Time};

/// The items that wait to be judged.
pub(super) struct Entrance {
    pub setup: Rc<Setup>,
    queue: Rounds<Item>,
    /// Messages on the entrance queue.
    pub messages: usize,
    pub rate_limit: RateLimit,
    /// Messages that entered from outside so far.
    entries: u64,
    pub phase: Phase,
}

/// The phase of the organism's end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Phase {
    Open,
    /// Continues and dead letters are refused.
    Draining,
    /// Everything is refused.
    Stopped,
}

/// An item of the entrance queue.
pub(super) enum Item {
    Injected(Injected, Entry),
    Response(Response),
    Calls(Calls),
    /// The calls of the handler come first: they stand before this.
    Reattached(InvocationId),
    Redriven(Redriven, Entry),
    /// The messages that the client sent before it left come first.
    Left(ThreadId),
    Cancel(ThreadId),
}

/// The response of a handler, on the entrance queue.
pub(super) struct Response {
    pub thread: ThreadKey,
    /// The call that the thread owed an answer to.
    pub answers: MessageId,
    /// The message that was handled.
    pub handled: MessageId,
    pub source: Source,
    pub holdings: Holdings,
    pub outcome: HandlerOutcome,
}

/// The source of emissions.
#[derive(Debug, Clone, Copy)]
pub(super) struct Source {
    /// The id from which those of its emissions are derived.
    pub message: MessageId,
    /// The number of the message that was handled in the journal.
    pub number: Number,
    /// The index of the first emission: awaited calls went before.
    pub index: u64,
}

/// A group of calls that a handler awaits, on the entrance queue.
pub(super) struct Calls {
    pub thread: ThreadKey,
    pub invocation: InvocationId,
    pub call: CallId,
    pub requests: Vec<Emission>,
    pub join: Join,
    pub within: Option<Duration>,
}

/// An act that is answered later: its number, and the record that is written with its effect.
pub(super) type AskedAct = (u64, Option<Box<ActRecord>>);

/// A dead letter on the entrance queue.
pub(super) struct Redriven {
    pub from: Name,
    pub to: Option<Name>,
    pub payload: Canonical,
    /// The number that it had.
    pub number: Number,
    /// The conversation that it was in.
    pub conversation: Option<ThreadId>,
    /// The id of the root that it opens, in the partition of the letter.
    pub root: ThreadId,
    pub permit: Permit,
    /// The act of an operator that redrives it.
    pub asked: Option<AskedAct>,
}

/// The questions to the core that each client may send through the reserve: a token bucket for each.
#[derive(Debug, Default)]
pub(super) struct RateLimit {
    buckets: Vec<Option<Bucket>>,
}

#[derive(Debug, Clone, Copy)]
struct Bucket {
    tokens: u32,
    /// The time up to which tokens were filled in.
    filled: Time,
}

/// Messages that a client may send through the reserve at once.
const BURST: u32 = 16;
/// The time until it may send one more.
const REFILL: Duration = Duration::from_millis(100);

impl Entrance {
    /// An entrance after so many entries.
    pub(super) fn new(setup: Rc<Setup>, entries: u64) -> Self {
        Self {
            setup,
            queue: Rounds::default(),
            messages: 0,
            rate_limit: RateLimit::default(),
            entries,
            phase: Phase::Open,
        }
    }

    /// Puts an item on the entrance queue, at the end of the line of its principal.
    pub(super) fn push(&mut self, principal: Principal, item: Item) {
        self.messages += usize::from(item.has_entry());
        self.queue.push(principal, item);
    }

    /// Takes the next item of the entrance queue of a principal that `may` go.
    pub(super) fn pop(&mut self, may: impl Fn(Principal) -> bool) -> Option<(Principal, Item)> {
        let (principal, item) = self.queue.pop_of(may)?;
        self.messages -= usize::from(item.has_entry());
        Some((principal, item))
    }

    /// Takes all items of the entrance queue.
    pub(super) fn take_all(&mut self) -> Vec<Item> {
        self.messages = 0;
        let mut queue = std::mem::take(&mut self.queue);
        std::iter::from_fn(|| queue.pop()).collect()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// The ids of a message that enters from outside and belongs to no conversation of this core: derived from its
    /// address, because the core of a conversation derives from the root.
    pub(super) fn stray_ids(&mut self) -> (MessageId, ThreadId) {
        self.next_ids(ThreadId::from_uuid(Uuid::from_u128(self.setup.core.0.into())))
    }

    /// The ids of the next message that enters a conversation of this core from outside.
    pub(super) fn next_ids(&mut self, root: ThreadId) -> (MessageId, ThreadId) {
        self.entries += 1;
        self.setup.key.derive_entry(root, self.entries)
    }
}

impl Item {
    /// Returns whether it is a message of its own in the books.
    fn has_entry(&self) -> bool {
        match self {
            Self::Injected(..) | Self::Redriven(..) => true,
            Self::Response(_) | Self::Calls(_) | Self::Reattached(_) | Self::Left(_) | Self::Cancel(_) => false,
        }
    }
}

impl RateLimit {
    /// Takes a token of the client; `false` if it has none left.
    pub(super) fn take(&mut self, client: ClientId, now: Time) -> bool {
        let index = client.0 as usize;
        if self.buckets.len() <= index {
            self.buckets.resize(index + 1, None);
        }
        let bucket = self.buckets[index].get_or_insert(Bucket { tokens: BURST, filled: now });
        let earned = now.since(bucket.filled).as_nanos() / REFILL.as_nanos();
        match u32::try_from(earned) {
            Ok(earned) if earned < BURST => {
                bucket.tokens = (bucket.tokens + earned).min(BURST);
                bucket.filled = bucket.filled.after(REFILL * earned);
            }
            _ => *bucket = Bucket { tokens: BURST, filled: now },
        }
        match bucket.tokens.checked_sub(1) {
            Some(left) => {
                bucket.tokens = left;
                true
            }
            None => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Time {
        Time::from_nanos(millis * 1_000_000)
    }

    fn burst(limit: &mut RateLimit, client: ClientId, now: Time) -> usize {
        std::iter::from_fn(|| limit.take(client, now).then_some(())).take(1000).count()
    }

    #[test]
    fn each_client_has_a_burst_and_gets_more_with_time() {
        let mut limit = RateLimit::default();
        assert_eq!(burst(&mut limit, ClientId(3), at(1000)), 16);
        assert_eq!(burst(&mut limit, ClientId(0), at(1000)), 16);
        assert_eq!(burst(&mut limit, ClientId(3), at(1099)), 0);
        assert_eq!(burst(&mut limit, ClientId(3), at(1250)), 2);
        assert_eq!(burst(&mut limit, ClientId(3), at(1300)), 1, "the half that was earned is not lost");
        assert_eq!(burst(&mut limit, ClientId(3), at(60_000)), 16);
    }
}
