//! What happens when time passes: one ordered queue, so that `next_wake` is exact.

use std::collections::BTreeMap;

use super::key::{FanKey, TaskId, ThreadKey};
use super::thread::Queued;
use crate::vocab::Time;

/// The name of a timer that is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct TimerId {
    at: Time,
    sequence: u64,
}

/// What a timer does.
#[derive(Debug)]
pub(super) enum Timer {
    /// A handler has run too long.
    Handler(TaskId),
    /// A thread has reached its deadline.
    Deadline(ThreadKey),
    /// A root has been idle too long.
    Idle(ThreadKey),
    /// A group of awaited calls has had its time.
    Calls(FanKey),
    /// A delayed continue is due.
    Continue(ThreadKey, Box<Queued>),
}

/// All timers of a core.
#[derive(Debug, Default)]
pub(super) struct Timers {
    queue: BTreeMap<TimerId, Timer>,
    sequence: u64,
}

impl Timers {
    pub(super) fn set(&mut self, at: Time, timer: Timer) -> TimerId {
        self.sequence += 1;
        let id = TimerId { at, sequence: self.sequence };
        self.queue.insert(id, timer);
        id
    }

    pub(super) fn cancel(&mut self, id: TimerId) -> Option<Timer> {
        self.queue.remove(&id)
    }

    /// The message of a delayed continue.
    pub(super) fn continued(&self, id: TimerId) -> Option<&Queued> {
        match self.queue.get(&id)? {
            Timer::Continue(_, message) => Some(message),
            Timer::Handler(_) | Timer::Deadline(_) | Timer::Idle(_) | Timer::Calls(_) => None,
        }
    }

    /// The next timer that is due.
    pub(super) fn due(&mut self, now: Time) -> Option<(TimerId, Timer)> {
        let entry = self.queue.first_entry()?;
        (entry.key().at <= now).then(|| entry.remove_entry())
    }

    pub(super) fn next(&self) -> Option<Time> {
        self.queue.first_key_value().map(|(id, _)| id.at)
    }
}
