//! Ready threads in the order of their turns: conversations first, the threads of each within.
//!
//! Conversations stand in one FIFO run queue. Each turn takes one thread of the conversation at the head, which then
//! goes to the tail if it has more. So with N conversations in the run queue, the next thread of each waits for N
//! dispatches at most, however many threads the others have; and with N threads in the run queue, none waits more than
//! N dispatches in a run queue of one conversation.

use std::collections::VecDeque;
use std::rc::Rc;

use crate::core::conversation::Conversation;
use crate::core::key::ThreadKey;
use crate::core::ready::Ticket;

/// The conversations that have threads which can be dispatched at once.
#[derive(Debug, Default)]
pub(super) struct RunQueue {
    conversations: VecDeque<Rc<Conversation>>,
    issued: u32,
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
