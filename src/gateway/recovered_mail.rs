//! Messages of mailboxes that a start or a takeover recovers, and that the pump may end before a handler has them again: their caller
//! or listener is gone from the configuration, or the schemas of today refuse their payload.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use systole_core::journal::{Number, Op, Recovered};
use systole_core::vocab::MessageId;

/// Messages of an earlier run that wait in mailboxes, by their numbers in a core.
#[derive(Debug, Default)]
pub(super) struct RecoveredMail {
    /// True while there are any: each step reads it.
    is_any: AtomicBool,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    messages: HashMap<Number, MessageId>,
    /// Numbers of the messages of each thread.
    threads: HashMap<Number, Vec<Number>>,
}

impl RecoveredMail {
    /// Notes the messages of these records that mailboxes expect to run again.
    pub(super) fn add(&self, recovered: &Recovered, expects: impl Fn(MessageId) -> bool) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        for message in recovered.messages.iter().filter(|message| expects(message.id)) {
            state.messages.insert(message.number, message.id);
            state.threads.entry(message.thread).or_default().push(message.number);
        }
        self.is_any.store(!state.messages.is_empty(), Ordering::Release);
    }

    /// Takes out the messages that a step of a core ends.
    pub(super) fn over(&self, ops: &[Op]) -> Vec<MessageId> {
        if !self.is_any.load(Ordering::Acquire) {
            return Vec::new();
        }
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let State { messages, threads } = &mut *state;
        let mut over = Vec::new();
        for op in ops {
            match op {
                Op::Done { message } | Op::Cancelled { message } => over.extend(messages.remove(message)),
                Op::Close { thread } => {
                    let numbers = threads.remove(thread).into_iter().flatten();
                    over.extend(numbers.filter_map(|number| messages.remove(&number)));
                }
                _ => {}
            }
        }
        self.is_any.store(!messages.is_empty(), Ordering::Release);
        over
    }
}
