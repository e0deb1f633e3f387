//! Ready threads in the order of their turns: principals first, the conversations of each within, the threads of each
//! within.
//!
//! Principals take turns ([`Rounds`]). The turn of a principal takes one thread of its conversation at the head, which then
//! goes to the tail of that principal's conversations if it has more. So with P principals in the run queue, the next
//! thread of a principal that has N conversations there waits for P * N dispatches at most, however many conversations and
//! threads the others have; and with N threads in the run queue, none waits more than N dispatches in a run queue of one
//! conversation.

use std::rc::Rc;

use crate::core::conversation::Conversation;
use crate::core::key::ThreadKey;
use crate::core::ready::Ticket;
use crate::core::rounds::Rounds;

/// The conversations that have threads which can be dispatched at once.
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
