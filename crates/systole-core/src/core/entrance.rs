//! The entrance: Queue 1, the rate limit of questions to the core during overload, and whether the organism still takes
//! messages.

use std::rc::Rc;

use uuid::Uuid;

use super::blueprint::ClientId;
use super::items::Item;
use super::rate_limit::RateLimit;
use super::rounds::{Principal, Rounds};
use super::setup::Setup;
use crate::vocab::{MessageId, ThreadId, Time};

/// The items that wait to be judged.
pub(super) struct Entrance {
    setup: Rc<Setup>,
    queue: Rounds<Item>,
    /// Messages on Queue 1.
    messages: usize,
    rate_limit: RateLimit,
    /// Messages that entered from outside so far.
    entries: u64,
    phase: Phase,
}

/// The phase of the organism's end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    Open,
    Draining,
    Stopped,
}

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

    /// Puts an item on Queue 1, at the end of the line of its principal.
    pub(super) fn push(&mut self, principal: Principal, item: Item) {
        self.messages += usize::from(item.is_message());
        self.queue.push(principal, item);
    }

    /// Takes the next item of Queue 1 of a principal that `may` go.
    pub(super) fn pop(&mut self, may: impl Fn(Principal) -> bool) -> Option<(Principal, Item)> {
        let (principal, item) = self.queue.pop_of(may)?;
        self.messages -= usize::from(item.is_message());
        Some((principal, item))
    }

    /// Takes all items of Queue 1.
    pub(super) fn take_all(&mut self) -> Vec<Item> {
        self.messages = 0;
        let mut queue = std::mem::take(&mut self.queue);
        std::iter::from_fn(|| queue.pop()).collect()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Messages on Queue 1.
    pub(super) fn messages(&self) -> usize {
        self.messages
    }

    /// Returns whether a client may use the reserve for questions to the core once more.
    pub(super) fn allows(&mut self, client: ClientId, now: Time) -> bool {
        self.rate_limit.take(client, now)
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

    /// Refuses continues and dead letters from now on.
    pub(super) fn drain(&mut self) {
        self.phase = self.phase.max(Phase::Draining);
    }

    /// Refuses everything from now on.
    pub(super) fn stop(&mut self) {
        self.phase = Phase::Stopped;
    }

    pub(super) fn is_draining(&self) -> bool {
        self.phase >= Phase::Draining
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.phase == Phase::Stopped
    }
}

impl Item {
    /// Returns whether it is a message of its own in the books.
    pub(super) fn is_message(&self) -> bool {
        match self {
            Self::Injected(..) | Self::Redriven(..) => true,
            Self::Response(_) | Self::Calls(_) | Self::Reattached(_) | Self::Left(_) | Self::Cancel(_) => false,
        }
    }
}
