//! The bounded history of a thread.

use std::collections::VecDeque;
use std::sync::Arc;

use systole_xml::ladder::Canonical;

use super::{Thread, Tree};
use crate::core::event::EventKind;
use crate::core::gauge::{Gauge, Permit};
use crate::core::io::{Place, Remembered};
use crate::core::key::ThreadKey;
use crate::core::setup::{Setup, StepContext};
use crate::journal::{Link, Number, Op, RememberedRecord};
use crate::protocol::summary_qname;
use crate::vocab::{MessageId, Name};

/// The message that opened a thread, and its last ones, oldest first. Each message has a place, also one that is not
/// kept: so a reader sees what was left out.
#[derive(Debug, Default)]
pub(in crate::core) struct History {
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
struct Bounds {
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
struct Change {
    /// False if it found no room.
    is_kept: bool,
    /// The number of messages that it drove out.
    forgotten: u32,
    /// The bound for which messages are left out.
    bound: &'static str,
}

impl Bounds {
    /// The bounds of the history of a thread: twice those of a context, if its listener condenses that.
    fn of(thread: &Thread, setup: &Setup) -> Self {
        let limits = &setup.blueprint.limits;
        let condenses = thread.listener().is_some_and(|listener| setup.blueprint[listener].condenses);
        let times = if condenses { 2 } else { 1 };
        Self {
            messages: limits.context_messages.saturating_mul(times),
            bytes: limits.context_bytes.saturating_mul(times),
        }
    }
}

impl History {
    /// The place of the next message. The call that it answers must be one that the history keeps.
    fn next_place(&self, answers: Option<MessageId>) -> Place {
        let call = |id| self.entries.iter().find(|entry| entry.calls.contains(&id));
        let answers = answers.and_then(call).map(|entry| entry.message.place.number);
        Place { number: self.places.saturating_add(1), answers }
    }

    /// Remembers a message at its place. Others are forgotten past a bound of the thread or the organism, the oldest
    /// first, but for the one that opened the thread.
    fn remember(
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
        let is_crowded = self.entries.len() >= most;
        let mut bound = if is_crowded { "context_messages" } else { "context_bytes" };
        let has_room = bounds.messages > 0 && bounds.bytes > 0;
        if !has_room || !is_opening && (size > bounds.bytes || most == 0) {
            return Change { is_kept: false, forgotten, bound };
        }
        while !is_opening && (self.entries.len() >= most || self.bytes + size > bounds.bytes) {
            forgotten += self.forget_oldest();
        }
        let permit = loop {
            match total.admit(size) {
                Ok(permit) => break permit,
                Err(_) => bound = "context_total_bytes",
            }
            if self.entries.is_empty() {
                return Change { is_kept: false, forgotten, bound };
            }
            forgotten += self.forget_oldest();
        };
        let entry = Entry { number, message, calls, _permit: permit };
        if is_opening {
            self.opening = Some(entry);
        } else {
            self.bytes += size;
            self.entries.push_back(entry);
        }
        Change { is_kept: true, forgotten, bound }
    }

    /// Forgets all but the message that opened the thread.
    fn clear(&mut self) {
        (self.summary, self.entries, self.bytes) = (None, VecDeque::new(), 0);
    }

    /// Forgets the messages up to a place, but for the one that opened the thread, and a summary of earlier ones; the
    /// number of the messages, and that of the summary.
    fn forget_until(&mut self, place: u32) -> (u32, Option<Number>) {
        let mut forgotten = 0;
        while self.entries.front().is_some_and(|entry| entry.message.place.number <= place) {
            forgotten += self.forget_oldest();
        }
        (forgotten, self.summary.take().map(|summary| summary.number))
    }

    /// Keeps the summary of forgotten messages; false if it finds no room.
    fn summarize(&mut self, number: Number, message: Remembered, total: &Gauge) -> bool {
        let Ok(permit) = total.admit(message.payload.bytes().len()) else { return false };
        self.places = self.places.max(message.place.number);
        self.summary = Some(Entry { number, message, calls: Vec::new(), _permit: permit });
        true
    }

    /// The messages that were remembered before a number, and the summary of earlier ones, whenever it was made.
    pub(in crate::core) fn messages(&self, before: Number) -> Vec<Remembered> {
        let is_earlier = |entry: &&Entry| entry.number < before;
        let opening = self.opening.iter().filter(is_earlier);
        let earlier = opening.chain(&self.summary).chain(self.entries.iter().take_while(is_earlier));
        earlier.map(|entry| entry.message.clone()).collect()
    }

    /// Pairs of numbers between which no entry is kept: of the entry that opened the thread, 0 for none, and of the
    /// oldest other one, `Number::MAX` for none. The summary, which came later than what it stands for, divides them.
    fn gaps(&self) -> [Option<(Number, Number)>; 2] {
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

impl Tree {
    /// Adds to the context of a thread; the number and the place that it has there.
    pub(in crate::core) fn remember(
        &mut self,
        key: ThreadKey,
        (from, payload): (Name, Canonical),
        about: About,
        step: &mut StepContext,
    ) -> (Number, Place) {
        let number = if step.out.writes() { step.out.next_number() } else { 0 };
        let Self { threads, setup, context, .. } = self;
        let bounds = Bounds::of(&threads[key], setup);
        let history = threads[key].extra.get_or_insert_default().history.get_or_insert_default();
        let (calls, answers) = match about {
            About::Nothing => (Vec::new(), None),
            About::Calls(calls) => (calls, None),
            About::Answers(call) => (Vec::new(), Some(call)),
        };
        let place = history.next_place(answers);
        let message = Remembered { from, payload, place };
        let kept = step.out.writes().then(|| (message.clone(), calls.clone()));
        let Change { is_kept, forgotten, bound } = history.remember((number, message, calls), bounds, context);
        let gaps = history.gaps();
        if let Some((message, calls)) = kept {
            let thread = threads[key].sequence;
            if is_kept {
                step.out.write(|| remembered(number, thread, &message, &calls));
            }
            if forgotten > 0 {
                write_forgotten(thread, gaps, step);
            }
        }
        let messages = forgotten + u32::from(!is_kept);
        if messages > 0 {
            self.event(key, step, || EventKind::LeftOut { messages, why: format!("limits: {bound}").into() });
        }
        (number, place)
    }

    /// Lets the context of a thread remember a message again that the journal has there.
    pub(in crate::core) fn remember_again(
        &mut self,
        key: ThreadKey,
        (number, mut message, calls): (Number, Remembered, Vec<MessageId>),
    ) {
        let Self { threads, setup, context, .. } = self;
        let bounds = Bounds::of(&threads[key], setup);
        let history = threads[key].extra.get_or_insert_default().history.get_or_insert_default();
        if message.from == Name::core() && *message.payload.root() == summary_qname() {
            history.summarize(number, message, context);
            return;
        }
        if message.place.number == 0 {
            message.place = history.next_place(None);
        }
        history.remember((number, message, calls), bounds, context);
    }

    /// Clears the context of a thread, but for the message that opened it.
    pub(in crate::core) fn clear_history(&mut self, key: ThreadKey, step: &mut StepContext) {
        let history = self.threads[key].extra.get_or_insert_default().history.get_or_insert_default();
        history.clear();
        let gaps = history.gaps();
        write_forgotten(self.threads[key].sequence, gaps, step);
    }

    /// Puts a summary in place of the messages of a context up to a place, or nothing.
    pub(in crate::core) fn condense(
        &mut self,
        key: ThreadKey,
        until: u32,
        summary: Result<Canonical, Arc<str>>,
        step: &mut StepContext,
    ) {
        let Self { threads, context, .. } = self;
        let thread = threads[key].sequence;
        let history = threads[key].extra.get_or_insert_default().history.get_or_insert_default();
        let (messages, former) = history.forget_until(until);
        if messages == 0 && former.is_none() {
            return;
        }
        let summary = summary.and_then(|payload| {
            let number = if step.out.writes() { step.out.next_number() } else { 0 };
            let place = Place { number: until, answers: None };
            let entry = Remembered { from: Name::core(), payload, place };
            let is_kept = history.summarize(number, entry.clone(), context);
            is_kept.then_some((number, entry)).ok_or_else(|| "there is no room for the summary".into())
        });
        let gaps = history.gaps();
        if let Some(former) = former.filter(|_| step.out.writes()) {
            write_forgotten(thread, [Some((former.saturating_sub(1), former.saturating_add(1))), None], step);
        }
        write_forgotten(thread, gaps, step);
        match summary {
            Ok((number, entry)) => {
                step.out.write(|| remembered(number, thread, &entry, &[]));
                let bytes = entry.payload.bytes().len();
                self.event(key, step, || EventKind::Summarized { messages, bytes });
            }
            Err(why) => {
                self.event(key, step, || EventKind::LeftOut { messages, why: format!("no summary: {why}").into() })
            }
        }
    }
}

/// Writes that the context of a thread has forgotten the entries between pairs of numbers.
fn write_forgotten(thread: Number, gaps: [Option<(Number, Number)>; 2], step: &mut StepContext) {
    for (after, before) in gaps.into_iter().flatten() {
        step.out.write(|| match after {
            0 => Op::Forget { thread, before },
            _ => Op::ForgetBetween { thread, after, before },
        });
    }
}

/// The operation by which the context of a thread remembers a message.
fn remembered(number: Number, thread: Number, message: &Remembered, calls: &[MessageId]) -> Op {
    let (from, payload, place) = (message.from.clone(), message.payload.bytes().clone(), message.place.number);
    let link = match message.place.answers {
        Some(call) => Link::Answers(call),
        None if calls.is_empty() => Link::None,
        None => Link::Calls(calls.to_vec()),
    };
    Op::Remember(RememberedRecord { number, thread, place, link, from, payload })
}
