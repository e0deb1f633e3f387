//! Active conversations: the messages that each holds, and its ready threads.
//!
//! The counts follow the messages themselves: the holder of a [`Share`] or a [`Pile`] is counted, and its drop gives
//! the place back. So a message that is delivered, cancelled or forgotten on any path is no longer counted.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use super::{Thread, Tree};
use crate::core::contract::Scheduling;
use crate::core::gauge::Permit;
use crate::core::io::{Answer, Settled};
use crate::core::key::ThreadKey;
use crate::core::turns::Ready;
use crate::vocab::{Fault, ThreadId};

/// The amounts that a conversation holds at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Holding {
    /// The root of the conversation.
    pub root: ThreadId,
    /// Open threads, its root among them.
    pub threads: usize,
    /// Messages in mailboxes and backlogs, delayed, and answers that handlers await.
    pub messages: usize,
    /// Bytes of those messages.
    pub bytes: usize,
}

/// The counts and the place in the run queue of a conversation in which something happens. An idle root has none.
#[derive(Debug)]
pub(in crate::core) struct Conversation {
    messages: Cell<usize>,
    bytes: Cell<usize>,
    /// The threads that can be dispatched at once; `RunQueue` decides when.
    pub ready: RefCell<Ready>,
    /// States whether it stands in the run queue.
    pub is_queued: Cell<bool>,
}

/// The place of one message in its conversation and in the organism.
#[derive(Debug)]
pub(in crate::core) struct Share {
    permit: Permit,
    conversation: Rc<Conversation>,
}

/// The places of answers that a handler awaits, until they are handed to it.
#[derive(Debug)]
pub(in crate::core) struct Pile {
    conversation: Rc<Conversation>,
    messages: usize,
    bytes: usize,
}

impl Conversation {
    fn new(scheduling: Scheduling) -> Self {
        let (messages, bytes, is_queued) = (Cell::new(0), Cell::new(0), Cell::new(false));
        Self { messages, bytes, ready: RefCell::new(Ready::new(scheduling)), is_queued }
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

impl Pile {
    /// A pile without an answer.
    pub(in crate::core) fn new(conversation: Rc<Conversation>) -> Self {
        Self { conversation, messages: 0, bytes: 0 }
    }

    /// Counts one more answer.
    fn add(&mut self, bytes: usize) {
        self.conversation.take(bytes);
        self.messages += 1;
        self.bytes += bytes;
    }

    /// Counts the outcome of an awaited call.
    pub(in crate::core) fn add_outcome(&mut self, outcome: &Result<Answer, Fault>) {
        self.add(match outcome {
            Ok(answer) => answer.payload.payload().bytes().len(),
            Err(fault) => fault.message.len(),
        });
    }

    /// Counts the result of a group.
    pub(in crate::core) fn add_result(&mut self, result: &Result<Vec<Settled>, Fault>) {
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

impl Drop for Pile {
    fn drop(&mut self) {
        self.conversation.give_back(self.messages, self.bytes);
    }
}

impl Tree {
    /// The amounts that each open conversation holds, in no order.
    pub(in crate::core) fn holdings(&self) -> Vec<Holding> {
        let roots = self.threads.values().filter(|thread| thread.parent.is_none());
        let holding = |root: &Thread| {
            let state = root.extra.as_ref()?.root.as_ref()?;
            let held = state.conversation.as_ref().map_or((0, 0), |held| (held.messages(), held.bytes()));
            let (messages, bytes) = held;
            Some(Holding { root: root.id, threads: state.live_threads as usize, messages, bytes })
        };
        roots.filter_map(holding).collect()
    }

    /// The conversation of a thread, which becomes active.
    pub(in crate::core) fn conversation(&mut self, key: ThreadKey) -> Rc<Conversation> {
        let root = self.threads[key].root;
        let scheduling = self.setup.blueprint.scheduling;
        let state = self.threads[root].extra().root.get_or_insert_default();
        state.conversation.get_or_insert_with(|| Rc::new(Conversation::new(scheduling))).clone()
    }

    /// Counts a message for the conversation of a thread.
    pub(in crate::core) fn share(&mut self, key: ThreadKey, permit: Permit) -> Share {
        let conversation = self.conversation(key);
        conversation.take(permit.bytes());
        Share { permit, conversation }
    }

    /// Counts a message of so many bytes, regardless of the bounds.
    pub(in crate::core) fn count(&mut self, key: ThreadKey, bytes: usize) -> Share {
        let permit = self.gauge.count(bytes);
        self.share(key, permit)
    }

    /// Forgets the conversation of an idle root.
    pub(super) fn rest_conversation(&mut self, root: ThreadKey) {
        if let Some(state) = &mut self.threads[root].extra().root {
            state.conversation.take_if(|conversation| Rc::strong_count(conversation) == 1);
        }
    }
}
