//! An active conversation: the messages that it holds, and its ready threads.
//!
//! The counts follow the messages themselves: the holder of a [`Share`] or a [`AwaitedAnswers`] is counted, and its drop gives
//! the place back. So a message that is delivered, cancelled or forgotten on any path is no longer counted.

use std::cell::{Cell, RefCell};
use std::collections::{BinaryHeap, VecDeque};
use std::rc::Rc;

use super::blueprint::Principal;
use super::contract::Scheduling;
use super::gauge::Permit;
use super::io::{Answer, Settled};
use super::key::ThreadKey;
use crate::vocab::Fault;

/// The counts and the place in the run queue of a conversation in which something happens. An idle root has none.
#[derive(Debug)]
pub(super) struct Conversation {
    messages: Cell<usize>,
    bytes: Cell<usize>,
    /// The principal whose conversation it is.
    pub principal: Principal,
    /// The threads that can be dispatched at once; `RunQueue` decides when.
    pub ready: RefCell<Ready>,
    /// States whether it stands in the run queue.
    pub is_queued: Cell<bool>,
}

/// The place of one message in its conversation and in the organism.
#[derive(Debug)]
pub(super) struct Share {
    permit: Permit,
    conversation: Rc<Conversation>,
}

/// The places of answers that a handler awaits, until they are handed to it.
#[derive(Debug)]
pub(super) struct AwaitedAnswers {
    conversation: Rc<Conversation>,
    messages: usize,
    bytes: usize,
}

impl Conversation {
    pub(super) fn new(principal: Principal, scheduling: Scheduling) -> Self {
        let (messages, bytes, is_queued) = (Cell::new(0), Cell::new(0), Cell::new(false));
        Self { messages, bytes, principal, ready: RefCell::new(Ready::new(scheduling)), is_queued }
    }

    /// Messages that it holds: in mailboxes and backlogs, delayed, and answers that handlers await.
    pub(super) fn messages(&self) -> usize {
        self.messages.get()
    }

    /// Bytes of those messages.
    pub(super) fn bytes(&self) -> usize {
        self.bytes.get()
    }

    fn take(&self, bytes: usize) {
        self.messages.set(self.messages.get() + 1);
        self.bytes.set(self.bytes.get() + bytes);
    }

    fn give_back(&self, messages: usize, bytes: usize) {
        self.messages.set(self.messages.get() - messages);
        self.bytes.set(self.bytes.get() - bytes);
    }
}

impl Share {
    /// Counts a message for a conversation.
    pub(super) fn new(conversation: Rc<Conversation>, permit: Permit) -> Self {
        conversation.take(permit.bytes());
        Self { permit, conversation }
    }
}

impl AwaitedAnswers {
    /// No answers yet.
    pub(super) fn new(conversation: Rc<Conversation>) -> Self {
        Self { conversation, messages: 0, bytes: 0 }
    }

    /// Counts one more answer.
    fn add(&mut self, bytes: usize) {
        self.conversation.take(bytes);
        self.messages += 1;
        self.bytes += bytes;
    }

    /// Counts the outcome of an awaited call.
    pub(super) fn add_outcome(&mut self, outcome: &Result<Answer, Fault>) {
        self.add(match outcome {
            Ok(answer) => answer.payload.payload().bytes().len(),
            Err(fault) => fault.message.len(),
        });
    }

    /// Counts the result of a group.
    pub(super) fn add_result(&mut self, result: &Result<Vec<Settled>, Fault>) {
        match result {
            Ok(settled) => settled.iter().for_each(|settled| self.add_outcome(&settled.outcome)),
            Err(fault) => self.add(fault.message.len()),
        }
    }
}

/// The number of a place in the run queue. A thread that leaves its place takes a new one at the tail
/// when it comes back: the old place must not bring it forward.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Ticket(pub u32);

/// The threads of one conversation that can be dispatched at once.
#[derive(Debug)]
pub(super) enum Ready {
    /// First in, first out.
    BreadthFirst(VecDeque<(ThreadKey, Ticket)>),
    /// The newest thread first.
    DepthFirst(BinaryHeap<(u64, ThreadKey, Ticket)>),
}

impl Ready {
    pub(super) fn new(scheduling: Scheduling) -> Self {
        match scheduling {
            Scheduling::BreadthFirst => Self::BreadthFirst(VecDeque::new()),
            Scheduling::DepthFirst => Self::DepthFirst(BinaryHeap::new()),
        }
    }

    pub(super) fn push(&mut self, thread: ThreadKey, sequence: u64, ticket: Ticket) {
        match self {
            Self::BreadthFirst(queue) => queue.push_back((thread, ticket)),
            Self::DepthFirst(heap) => heap.push((sequence, thread, ticket)),
        }
    }

    pub(super) fn pop(&mut self) -> Option<(ThreadKey, Ticket)> {
        match self {
            Self::BreadthFirst(queue) => queue.pop_front(),
            Self::DepthFirst(heap) => heap.pop().map(|(_, thread, ticket)| (thread, ticket)),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        match self {
            Self::BreadthFirst(queue) => queue.is_empty(),
            Self::DepthFirst(heap) => heap.is_empty(),
        }
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.conversation.give_back(1, self.permit.bytes());
    }
}

impl Drop for AwaitedAnswers {
    fn drop(&mut self) {
        self.conversation.give_back(self.messages, self.bytes);
    }
}
