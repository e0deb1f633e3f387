//! Active conversations: the messages that they hold, and the queues in which they take turns.
//!
//! The counts follow the messages themselves: the holder of a [`Share`] or a [`AwaitedAnswers`] is counted, and its drop gives
//! the place back. So a message that is delivered, cancelled or forgotten on any path is no longer counted.
//!
//! Principals take turns, wherever their work waits: on the entrance queue, in the run queue, for a slot of a listener. Each
//! has a line of its own, first in, first out. Each turn takes one item of the principal at the head, which then goes to
//! the tail if it has more. So the first item of each waits for one turn of each other principal at most, however much those
//! have waiting ([`Rounds`]).

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

/// The lines of the principals, and the order of their turns.
#[derive(Debug)]
pub(super) struct Rounds<T> {
    lines: Vec<VecDeque<T>>,
    /// The principals whose lines are not empty.
    turns: VecDeque<Principal>,
}

impl<T> Default for Rounds<T> {
    fn default() -> Self {
        Self { lines: Vec::new(), turns: VecDeque::new() }
    }
}

impl<T> Rounds<T> {
    /// Puts an item at the end of the line of a principal.
    pub(super) fn push(&mut self, principal: Principal, item: T) {
        let place = principal.0 as usize;
        if self.lines.len() <= place {
            self.lines.resize_with(place + 1, VecDeque::new);
        }
        let line = &mut self.lines[place];
        if line.is_empty() {
            self.turns.push_back(principal);
        }
        line.push_back(item);
    }

    /// Takes the next item of a principal that `may` go, with that principal; others keep their turns.
    pub(super) fn pop_of(&mut self, may: impl Fn(Principal) -> bool) -> Option<(Principal, T)> {
        let at = self.turns.iter().position(|principal| may(*principal))?;
        let principal = self.turns.remove(at)?;
        let line = &mut self.lines[principal.0 as usize];
        let item = line.pop_front()?;
        if !line.is_empty() {
            self.turns.push_back(principal);
        }
        Some((principal, item))
    }

    /// Takes from the line of the principal whose turn it is. A line that `take` empties without a result has no turn.
    pub(super) fn take<R>(&mut self, mut take: impl FnMut(&mut VecDeque<T>) -> Option<R>) -> Option<R> {
        while let Some(principal) = self.turns.pop_front() {
            let line = &mut self.lines[principal.0 as usize];
            let mut taken = None;
            while taken.is_none() && !line.is_empty() {
                taken = take(line);
            }
            if !line.is_empty() {
                self.turns.push_back(principal);
            }
            if taken.is_some() {
                return taken;
            }
        }
        None
    }

    /// Takes the next item.
    pub(super) fn pop(&mut self) -> Option<T> {
        self.take(VecDeque::pop_front)
    }

    /// Keeps the items for which `keep` holds.
    pub(super) fn retain(&mut self, mut keep: impl FnMut(&T) -> bool) {
        let Self { lines, turns } = self;
        turns.retain(|principal| {
            let line = &mut lines[principal.0 as usize];
            line.retain(&mut keep);
            !line.is_empty()
        });
    }

    pub(super) fn is_empty(&self) -> bool {
        self.turns.is_empty()
    }
}

/// The run queue: the conversations that have threads which can be dispatched at once.
///
/// The turn of a principal takes one thread of its conversation at the head, which then goes to the tail of that principal's
/// conversations if it has more. So with P principals in the run queue, the next thread of a principal that has N conversations
/// there waits for P * N dispatches at most, however many conversations and threads the others have; and with N threads in
/// the run queue, none waits more than N dispatches in a run queue of one conversation.
#[derive(Debug, Default)]
pub(super) struct RunQueue {
    conversations: Rounds<Rc<Conversation>>,
    issued: u32,
}

impl RunQueue {
    pub(super) fn push(&mut self, conversation: Rc<Conversation>, thread: ThreadKey, sequence: u64) -> Ticket {
        self.issued = self.issued.wrapping_add(1);
        let ticket = Ticket(self.issued);
        conversation.ready.borrow_mut().push(thread, sequence, ticket);
        if !conversation.is_queued.replace(true) {
            self.conversations.push(conversation.principal, conversation);
        }
        ticket
    }

    /// The next thread whose place `stands`: those that were left take no turn.
    pub(super) fn pop(&mut self, stands: impl Fn(ThreadKey, Ticket) -> bool) -> Option<ThreadKey> {
        self.conversations.take(|conversations| {
            let conversation = conversations.pop_front()?;
            let mut ready = conversation.ready.borrow_mut();
            let next = std::iter::from_fn(|| ready.pop()).find(|(thread, ticket)| stands(*thread, *ticket));
            let is_empty = ready.is_empty();
            drop(ready);
            if is_empty {
                conversation.is_queued.set(false);
            } else {
                conversations.push_back(conversation);
            }
            next.map(|(thread, _)| thread)
        })
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

    fn push(&mut self, thread: ThreadKey, sequence: u64, ticket: Ticket) {
        match self {
            Self::BreadthFirst(queue) => queue.push_back((thread, ticket)),
            Self::DepthFirst(heap) => heap.push((sequence, thread, ticket)),
        }
    }

    fn pop(&mut self) -> Option<(ThreadKey, Ticket)> {
        match self {
            Self::BreadthFirst(queue) => queue.pop_front(),
            Self::DepthFirst(heap) => heap.pop().map(|(_, thread, ticket)| (thread, ticket)),
        }
    }

    fn is_empty(&self) -> bool {
        match self {
            Self::BreadthFirst(queue) => queue.is_empty(),
            Self::DepthFirst(heap) => heap.is_empty(),
        }
    }
}
