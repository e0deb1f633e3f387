//! An active conversation: the messages that it holds.
//!
//! The counts follow the messages themselves: the holder of a [`Share`] or a [`AwaitedAnswers`] is counted, and its drop gives
//! the place back. So a message that is delivered, cancelled or forgotten on any path is no longer counted.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use super::blueprint::Principal;
use super::contract::Scheduling;
use super::gauge::Permit;
use super::io::{Answer, Settled};
use super::rounds::Ready;
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
