//! The state of one thread. Most of an organism's memory is idle threads, so this is small.

use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;

use crate::core::blueprint::{ClientId, ListenerId};
use crate::core::clock::TimerId;
use crate::core::conversation::Conversation;
use crate::core::exit::ExitPlace;
use crate::core::key::{FanOutKey, InvocationId, ThreadKey};
use crate::core::queued::{Origin, Queued, Sender};
use crate::core::ready::Ticket;
use crate::vocab::{MessageId, ThreadId, Time};

/// A thread: one step of a conversation.
#[derive(Debug)]
pub(in crate::core) struct Thread {
    pub id: ThreadId,
    pub owner: Owner,
    pub parent: Option<ThreadKey>,
    pub root: ThreadKey,
    /// The message whose answer it owes; for a root, nothing.
    pub opened_by: MessageId,
    /// The destination of the answer that it owes.
    pub origin: Origin,
    /// The end of the thread; `Time::MAX` for none.
    pub deadline: Time,
    /// The number of the thread, in the order of opening: depth-first runs the newest first.
    pub sequence: u64,
    pub mailbox: Mailbox,
    /// The handler of the message in flight, running or parked.
    pub invocation: Option<InvocationId>,
    pub children: Children,
    /// The children of the listener that it called first, which for most threads is the only one; the others
    /// stand in `extra`.
    pub made: Made,
    /// The place among the children of the same listener and parent.
    pub ordinal: u32,
    pub depth: u16,
    pub turn: Turn,
    /// Responses in a row without one valid emission.
    pub invalid: u8,
    /// States whether it has called since the request that it owes an answer to, or since it last went on by itself.
    pub has_called: bool,
    /// Responses and awaited calls of this thread on Queue 1.
    pub judging: u32,
    pub extra: Option<Box<Extra>>,
}

const _: () = assert!(size_of::<Thread>() <= 168, "the bar is 200 bytes, with a place in the tables that lead to it");

/// The owner of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::core) enum Owner {
    Listener(ListenerId),
    Client(ClientId),
    /// No owner: the root of boot, or of a redriven dead letter. Answers to it are dead letters.
    None,
}

/// The place of a thread in the queues for its turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::core) enum Turn {
    /// The thread stands in none.
    None,
    /// The thread waits for a slot of its listener.
    Waiting,
    /// The thread is in the run queue; `slot` is true if it holds a slot of its listener.
    Queued { slot: bool, ticket: Ticket },
}

/// The messages of a thread: allocated only while there are any.
#[derive(Debug, Default)]
#[expect(clippy::box_collection, reason = "an idle thread pays for a pointer, not for a queue")]
pub(in crate::core) struct Mailbox(Option<Box<VecDeque<Queued>>>);

/// The open children of a thread, and its own place among those of its parent: `children` keeps it.
#[derive(Debug, Default)]
pub(in crate::core) struct Children {
    pub first: Option<ThreadKey>,
    /// The child before it; of the first child, the last one: no thread needs a pointer to its last child.
    pub previous: Option<ThreadKey>,
    pub next: Option<ThreadKey>,
    /// Children that owe an answer.
    pub open: u32,
}

/// The number of children of a listener that a thread has opened so far: their ordinals.
#[derive(Debug, Clone, Copy)]
pub(in crate::core) struct Made {
    pub listener: ListenerId,
    pub count: u32,
}

/// State that few threads need.
#[derive(Debug, Default)]
pub(in crate::core) struct Extra {
    /// The label that the client gave the message which opened this child of a root.
    pub label: Option<Arc<str>>,
    pub traceparent: Option<Arc<str>>,
    /// The timer of a deadline of its own, or of an idle root.
    pub timer: Option<TimerId>,
    pub continues: Vec<TimerId>,
    /// States whether a drain cancelled one: it is not the listener's fault if the thread gives no answer.
    pub drained: bool,
    pub(super) history: Option<super::context::History>,
    /// The rounds after the first one, which most threads don't have.
    pub(super) rounds: Option<Box<super::loops::Rounds>>,
    /// The children of each listener, by listener.
    pub made: Vec<Made>,
    /// The fan-outs of this thread that are not over.
    pub fans: Vec<FanOutKey>,
    pub root: Option<RootState>,
    /// Calls that a spawned thread has not started; `None` for other threads.
    pub spawned: Option<VecDeque<Backlog>>,
}

/// State of roots.
#[derive(Debug, Default)]
pub(in crate::core) struct RootState {
    pub live_threads: u32,
    /// The conversation, while anything happens in it.
    pub conversation: Option<Rc<Conversation>>,
    pub left: bool,
    /// States whether it is the root of `<boot>`.
    pub boot: bool,
    /// Places in the exit of the client for the answers of the children that owe one: never more than these.
    pub places: Option<ExitPlace>,
}

/// A call on a spawned thread that waits for the one before it.
#[derive(Debug)]
pub(in crate::core) struct Backlog {
    pub message: Queued,
    pub origin: Origin,
}

impl Owner {
    /// The owner as the sender of the messages of its thread.
    pub(in crate::core) fn sender(self) -> Sender {
        match self {
            Self::Listener(listener) => Sender::Listener(listener),
            Self::Client(client) => Sender::Client(client),
            Self::None => Sender::System,
        }
    }

    /// The client that owns it, if one does.
    pub(in crate::core) fn client(self) -> Option<ClientId> {
        match self {
            Self::Client(client) => Some(client),
            Self::Listener(_) | Self::None => None,
        }
    }
}

impl Thread {
    /// Returns whether it is the root of `<boot>`.
    pub(in crate::core) fn is_boot(&self) -> bool {
        self.extra.as_ref().and_then(|extra| extra.root.as_ref()).is_some_and(|root| root.boot)
    }

    pub(in crate::core) fn extra(&mut self) -> &mut Extra {
        self.extra.get_or_insert_default()
    }

    /// The ordinal of the child that it opens next, of a listener.
    pub(in crate::core) fn next_ordinal(&mut self, listener: ListenerId) -> u32 {
        if self.made.count == 0 {
            self.made.listener = listener;
        }
        let count = if self.made.listener == listener { &mut self.made.count } else { self.extra().made(listener) };
        *count = count.saturating_add(1);
        *count
    }

    /// Reserves the ordinals of the children of a listener up to one: no child that opens later gets them.
    pub(in crate::core) fn reserve_ordinals(&mut self, listener: ListenerId, last: u32) {
        if self.made.count == 0 {
            self.made.listener = listener;
        }
        let count = if self.made.listener == listener { &mut self.made.count } else { self.extra().made(listener) };
        *count = last.max(*count);
    }

    /// The listener whose thread it is.
    pub(in crate::core) fn listener(&self) -> Option<ListenerId> {
        match self.owner {
            Owner::Listener(listener) => Some(listener),
            Owner::Client(_) | Owner::None => None,
        }
    }

    pub(in crate::core) fn traceparent(&self) -> Option<&Arc<str>> {
        self.extra.as_ref()?.traceparent.as_ref()
    }

    pub(in crate::core) fn label(&self) -> Option<&Arc<str>> {
        self.extra.as_ref()?.label.as_ref()
    }

    pub(in crate::core) fn is_spawned(&self) -> bool {
        self.extra.as_ref().is_some_and(|extra| extra.spawned.is_some())
    }

    fn pending_continues(&self) -> usize {
        self.extra.as_ref().map_or(0, |extra| extra.continues.len())
    }

    pub(in crate::core) fn was_drained(&self) -> bool {
        self.extra.as_ref().is_some_and(|extra| extra.drained)
    }

    pub(in crate::core) fn backlog_len(&self) -> usize {
        self.extra.as_ref().and_then(|extra| extra.spawned.as_ref()).map_or(0, VecDeque::len)
    }

    /// Returns the number of slots in its mailbox that are taken: by queued messages and by promised answers.
    pub(in crate::core) fn reserved(&self) -> usize {
        self.children.open as usize + self.mailbox.len() + self.pending_continues() + self.backlog_len()
    }

    /// Returns whether something can still happen on it without a message from outside.
    pub(in crate::core) fn is_busy(&self) -> bool {
        self.invocation.is_some()
            || self.judging > 0
            || self.children.open > 0
            || self.mailbox.len() > 0
            || self.pending_continues() > 0
    }
}

impl Extra {
    fn made(&mut self, listener: ListenerId) -> &mut u32 {
        let at = self.made.binary_search_by_key(&listener, |made| made.listener).unwrap_or_else(|at| {
            self.made.insert(at, Made { listener, count: 0 });
            at
        });
        &mut self.made[at].count
    }
}

impl Made {
    /// No threads of any listener.
    pub(in crate::core) const NONE: Self = Self { listener: ListenerId(0), count: 0 };
}

impl Mailbox {
    pub(in crate::core) fn len(&self) -> usize {
        self.0.as_ref().map_or(0, |queue| queue.len())
    }

    pub(in crate::core) fn push(&mut self, message: Queued) {
        // Most hold one message: room for more comes with the second.
        self.0.get_or_insert_with(|| Box::new(VecDeque::with_capacity(1))).push_back(message);
    }

    pub(in crate::core) fn iter(&self) -> impl Iterator<Item = &Queued> {
        self.0.iter().flat_map(|queue| queue.iter())
    }

    pub(in crate::core) fn front(&self) -> Option<&Queued> {
        self.0.as_ref()?.front()
    }

    pub(in crate::core) fn pop(&mut self) -> Option<Queued> {
        let queue = self.0.as_mut()?;
        let message = queue.pop_front();
        if queue.is_empty() {
            self.0 = None;
        }
        message
    }
}
