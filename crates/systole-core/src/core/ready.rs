//! The threads of one conversation that wait for their turn, and their places.

use std::collections::{BinaryHeap, VecDeque};

use super::contract::Scheduling;
use super::key::ThreadKey;

/// The number of a place in the run queue. A thread that leaves its place takes a new one at the tail
/// when it comes back: the old place must not bring it forward.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Ticket(pub(super) u32);

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
