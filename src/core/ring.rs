//! Ready threads in the order of their turns.

use std::collections::{BinaryHeap, VecDeque};

use super::contract::Scheduling;
use super::key::ThreadKey;

/// The threads that can be dispatched at once.
#[derive(Debug)]
pub(super) struct Ring {
    places: Places,
    issued: u32,
}

/// The number of a place in the ring. A thread that leaves its place takes a new one at the tail
/// when it comes back: the old place must not bring it forward.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Ticket(u32);

#[derive(Debug)]
enum Places {
    /// First in, first out: with N threads none waits more than N dispatches.
    BreadthFirst(VecDeque<(ThreadKey, Ticket)>),
    /// The newest thread first.
    DepthFirst(BinaryHeap<(u64, ThreadKey, Ticket)>),
}

impl Ring {
    pub(super) fn new(scheduling: Scheduling) -> Self {
        let places = match scheduling {
            Scheduling::BreadthFirst => Places::BreadthFirst(VecDeque::new()),
            Scheduling::DepthFirst => Places::DepthFirst(BinaryHeap::new()),
        };
        Self { places, issued: 0 }
    }

    pub(super) fn push(&mut self, thread: ThreadKey, sequence: u64) -> Ticket {
        self.issued = self.issued.wrapping_add(1);
        let ticket = Ticket(self.issued);
        match &mut self.places {
            Places::BreadthFirst(queue) => queue.push_back((thread, ticket)),
            Places::DepthFirst(heap) => heap.push((sequence, thread, ticket)),
        }
        ticket
    }

    pub(super) fn pop(&mut self) -> Option<(ThreadKey, Ticket)> {
        match &mut self.places {
            Places::BreadthFirst(queue) => queue.pop_front(),
            Places::DepthFirst(heap) => heap.pop().map(|(_, thread, ticket)| (thread, ticket)),
        }
    }
}
