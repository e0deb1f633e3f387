//! The bounded history of a thread.

use std::collections::VecDeque;

use crate::core::gauge::{Gauge, Permit};
use crate::core::io::{Place, Remembered};
use crate::journal::Number;
use crate::vocab::{Limits, MessageId};

/// The message that opened a thread, and its last ones, oldest first. Each message has a place, also one that is not
/// kept: so a reader sees what was left step.out.
#[derive(Debug, Default)]
pub(super) struct History {
    /// The first message of the thread, which stays as long as the thread: it says what the others are about. Its size
    /// is not counted among that of the others.
    opening: Option<Entry>,
    entries: VecDeque<Entry>,
    /// Bytes of `entries`.
    bytes: usize,
    /// Messages of the thread so far, kept or not.
    places: u32,
}

/// A message that a history keeps.
#[derive(Debug)]
struct Entry {
    /// The number of its record.
    number: Number,
    message: Remembered,
    /// The calls that the payload makes.
    calls: Vec<MessageId>,
    _permit: Permit,
}

/// The calls that a message in a context is about.
#[derive(Debug)]
pub(in crate::core) enum About {
    Nothing,
    /// The calls that it makes.
    Calls(Vec<MessageId>),
    /// The call that it answers.
    Answers(MessageId),
}

/// The effect of a message on the context of its thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Change {
    /// False if it found no room.
    pub is_kept: bool,
    /// The number of messages that it drove step.out.
    pub forgotten: u32,
}

impl History {
    /// The place of the next message. The call that it answers must be one that the history keeps.
    pub(super) fn next_place(&self, answers: Option<MessageId>) -> Place {
        let call = |id| self.entries.iter().find(|entry| entry.calls.contains(&id));
        let answers = answers.and_then(call).map(|entry| entry.message.place.number);
        Place { number: self.places.saturating_add(1), answers }
    }

    /// Remembers a message at its place. Others are forgotten past a bound of the thread or the organism, the oldest
    /// first, but for the one that opened the thread.
    pub(super) fn remember(
        &mut self,
        (number, message, calls): (Number, Remembered, Vec<MessageId>),
        limits: &Limits,
        total: &Gauge,
    ) -> Change {
        let size = message.payload.bytes().len();
        let is_opening = message.place.number == 1;
        self.places = self.places.max(message.place.number);
        let most = limits.context_messages.saturating_sub(usize::from(self.opening.is_some()));
        let mut forgotten = 0;
        let has_room = limits.context_messages > 0 && limits.context_bytes > 0;
        if !has_room || !is_opening && (size > limits.context_bytes || most == 0) {
            return Change { is_kept: false, forgotten };
        }
        while !is_opening && (self.entries.len() >= most || self.bytes + size > limits.context_bytes) {
            forgotten += self.forget_oldest();
        }
        let permit = loop {
            match total.admit(size) {
                Ok(permit) => break permit,
                Err(_) if self.entries.is_empty() => return Change { is_kept: false, forgotten },
                Err(_) => forgotten += self.forget_oldest(),
            }
        };
        let entry = Entry { number, message, calls, _permit: permit };
        if is_opening {
            self.opening = Some(entry);
        } else {
            self.bytes += size;
            self.entries.push_back(entry);
        }
        Change { is_kept: true, forgotten }
    }

    /// Forgets all but the message that opened the thread.
    pub(super) fn clear(&mut self) {
        (self.entries, self.bytes) = (VecDeque::new(), 0);
    }

    /// The messages that were remembered before a number.
    pub(super) fn messages(&self, before: Number) -> Vec<Remembered> {
        let earlier = self.opening.iter().chain(&self.entries).take_while(|entry| entry.number < before);
        earlier.map(|entry| entry.message.clone()).collect()
    }

    /// Numbers of the entry that opened the thread, 0 for none, and of the oldest other one, `Number::MAX` for none: no
    /// entry between them is kept.
    pub(super) fn gap(&self) -> (Number, Number) {
        let number = |entry: Option<&Entry>| entry.map(|entry| entry.number);
        (number(self.opening.as_ref()).unwrap_or(0), number(self.entries.front()).unwrap_or(Number::MAX))
    }

    fn forget_oldest(&mut self) -> u32 {
        let Some(oldest) = self.entries.pop_front() else { return 0 };
        self.bytes -= oldest.message.payload.bytes().len();
        1
    }
}
