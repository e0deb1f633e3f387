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
    /// The summary of messages between the opening and the others, which comes back in their place. Its size is not
    /// counted either: there is one.
    summary: Option<Entry>,
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

/// The bounds of a history.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    messages: usize,
    bytes: usize,
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

impl Bounds {
    /// The bounds of the history of a listener: twice those of a context, if it condenses that.
    pub(super) fn of(limits: &Limits, condenses: bool) -> Self {
        let times = if condenses { 2 } else { 1 };
        Self {
            messages: limits.context_messages.saturating_mul(times),
            bytes: limits.context_bytes.saturating_mul(times),
        }
    }
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
        bounds: Bounds,
        total: &Gauge,
    ) -> Change {
        let size = message.payload.bytes().len();
        let is_opening = message.place.number == 1;
        self.places = self.places.max(message.place.number);
        let most = bounds.messages.saturating_sub(usize::from(self.opening.is_some()));
        let mut forgotten = 0;
        let has_room = bounds.messages > 0 && bounds.bytes > 0;
        if !has_room || !is_opening && (size > bounds.bytes || most == 0) {
            return Change { is_kept: false, forgotten };
        }
        while !is_opening && (self.entries.len() >= most || self.bytes + size > bounds.bytes) {
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
        (self.summary, self.entries, self.bytes) = (None, VecDeque::new(), 0);
    }

    /// Forgets the messages up to a place, but for the one that opened the thread, and a summary of earlier ones; the
    /// number of the messages, and that of the summary.
    pub(super) fn forget_until(&mut self, place: u32) -> (u32, Option<Number>) {
        let mut forgotten = 0;
        while self.entries.front().is_some_and(|entry| entry.message.place.number <= place) {
            forgotten += self.forget_oldest();
        }
        (forgotten, self.summary.take().map(|summary| summary.number))
    }

    /// Keeps the summary of forgotten messages; false if it finds no room.
    pub(super) fn summarize(&mut self, number: Number, message: Remembered, total: &Gauge) -> bool {
        let Ok(permit) = total.admit(message.payload.bytes().len()) else { return false };
        self.places = self.places.max(message.place.number);
        self.summary = Some(Entry { number, message, calls: Vec::new(), _permit: permit });
        true
    }

    /// The messages that were remembered before a number, and the summary of earlier ones, whenever it was made.
    pub(super) fn messages(&self, before: Number) -> Vec<Remembered> {
        let is_earlier = |entry: &&Entry| entry.number < before;
        let opening = self.opening.iter().filter(is_earlier);
        let earlier = opening.chain(&self.summary).chain(self.entries.iter().take_while(is_earlier));
        earlier.map(|entry| entry.message.clone()).collect()
    }

    /// Pairs of numbers between which no entry is kept: of the entry that opened the thread, 0 for none, and of the
    /// oldest other one, `Number::MAX` for none. The summary, which came later than what it stands for, divides them.
    pub(super) fn gaps(&self) -> [Option<(Number, Number)>; 2] {
        let number = |entry: Option<&Entry>| entry.map(|entry| entry.number);
        let opening = number(self.opening.as_ref()).unwrap_or(0);
        let oldest = number(self.entries.front()).unwrap_or(Number::MAX);
        match number(self.summary.as_ref()).filter(|summary| opening < *summary && *summary < oldest) {
            Some(summary) => [Some((opening, summary)), Some((summary, oldest))],
            None => [Some((opening, oldest)), None],
        }
    }

    fn forget_oldest(&mut self) -> u32 {
        let Some(oldest) = self.entries.pop_front() else { return 0 };
        self.bytes -= oldest.message.payload.bytes().len();
        1
    }
}
