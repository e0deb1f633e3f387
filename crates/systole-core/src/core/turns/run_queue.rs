//! Ready threads in the order of their turns: conversations first, the threads of each within.
//!
//! Conversations stand in one FIFO run queue. Each turn takes one thread of the conversation at the head, which then
//! goes to the tail if it has more. So with N conversations in the run queue, the next thread of each waits for N
//! dispatches at most, however many threads the others have; and with N threads in the run queue, none waits more than
//! N dispatches in a run queue of one conversation.

use std::collections::{BinaryHeap, VecDeque};
use std::rc::Rc;

use crate::core::contract::Scheduling;
use crate::core::key::ThreadKey;
use crate::core::tree::Conversation;

/// The conversations that have threads which can be dispatched at once.
#[derive(Debug, Default)]
pub(super) struct RunQueue {
    conversations: VecDeque<Rc<Conversation>>,
    issued: u32,
}

/// The number of a place in the run queue. A thread that leaves its place takes a new one at the tail
/// when it comes back: the old place must not bring it forward.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::core) struct Ticket(u32);

/// The threads of one conversation that can be dispatched at once.
#[derive(Debug)]
pub(in crate::core) enum Ready {
    /// First in, first out.
    BreadthFirst(VecDeque<(ThreadKey, Ticket)>),
    /// The newest thread first.
    DepthFirst(BinaryHeap<(u64, ThreadKey, Ticket)>),
}

impl RunQueue {
    pub(super) fn push(&mut self, conversation: Rc<Conversation>, thread: ThreadKey, sequence: u64) -> Ticket {
        self.issued = self.issued.wrapping_add(1);
        let ticket = Ticket(self.issued);
        conversation.ready.borrow_mut().push(thread, sequence, ticket);
        if !conversation.is_queued.replace(true) {
            self.conversations.push_back(conversation);
        }
        ticket
    }

    /// The next thread whose place `stands`: those that were left take no turn.
    pub(super) fn pop(&mut self, stands: impl Fn(ThreadKey, Ticket) -> bool) -> Option<ThreadKey> {
        while let Some(conversation) = self.conversations.pop_front() {
            let mut ready = conversation.ready.borrow_mut();
            let next = std::iter::from_fn(|| ready.pop()).find(|(thread, ticket)| stands(*thread, *ticket));
            let is_empty = ready.is_empty();
            drop(ready);
            if is_empty {
                conversation.is_queued.set(false);
            } else {
                self.conversations.push_back(conversation);
            }
            if let Some((thread, _)) = next {
                return Some(thread);
            }
        }
        None
    }
}

impl Ready {
    pub(in crate::core) fn new(scheduling: Scheduling) -> Self {
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
