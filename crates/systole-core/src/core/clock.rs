//! The time of the core, and its timers: one ordered queue, so that `next_wake` is exact.

use std::collections::BTreeMap;

use super::key::{FanOutKey, InvocationId, ThreadKey};
use super::queued::Queued;
use crate::vocab::Time;

/// The name of a timer that is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct TimerId {
    at: Time,
    sequence: u64,
}

/// The effect of a timer.
#[derive(Debug)]
pub(super) enum Timer {
    /// A handler has run too long.
    Handler(InvocationId),
    /// A thread has reached its deadline.
    Deadline(ThreadKey),
    /// A root has been idle too long.
    Idle(ThreadKey),
    /// The deadline of a group of awaited calls.
    Calls(FanOutKey),
    /// A delayed continue is due.
    Continue(ThreadKey, Box<Queued>),
}

/// The time of the last input or poll, and all timers of a core.
#[derive(Debug)]
pub(super) struct Clock {
    now: Time,
    timers: BTreeMap<TimerId, Timer>,
    sequence: u64,
}

impl Clock {
    pub(super) fn new(now: Time) -> Self {
        Self { now, timers: BTreeMap::new(), sequence: 0 }
    }

    /// The time of the present step.
    pub(super) fn now(&self) -> Time {
        self.now
    }

    /// Moves the time forward; it never goes back.
    pub(super) fn advance(&mut self, now: Time) {
        self.now = self.now.max(now);
    }

    /// Sets a timer.
    pub(super) fn set(&mut self, at: Time, timer: Timer) -> TimerId {
        self.sequence += 1;
        let id = TimerId { at, sequence: self.sequence };
        self.timers.insert(id, timer);
        id
    }

    /// Takes a timer back; `None` if it was due already.
    pub(super) fn cancel(&mut self, id: TimerId) -> Option<Timer> {
        self.timers.remove(&id)
    }

    /// The message of a delayed continue.
    pub(super) fn continued(&self, id: TimerId) -> Option<&Queued> {
        match self.timers.get(&id)? {
            Timer::Continue(_, message) => Some(message),
            Timer::Handler(_) | Timer::Deadline(_) | Timer::Idle(_) | Timer::Calls(_) => None,
        }
    }

    /// Takes the next timer that is due.
    pub(super) fn due(&mut self) -> Option<(TimerId, Timer)> {
        let entry = self.timers.first_entry()?;
        (entry.key().at <= self.now).then(|| entry.remove_entry())
    }

    /// The time of the next timer.
    pub(super) fn next(&self) -> Option<Time> {
        self.timers.first_key_value().map(|(id, _)| id.at)
    }
}
