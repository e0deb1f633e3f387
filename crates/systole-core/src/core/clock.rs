//! The time of the core, and its timers: one ordered queue, so that `next_wake` is exact.

use std::collections::BTreeMap;
use std::time::Duration;

use super::key::{FanOutKey, InvocationId, ThreadKey};
use super::queued::Queued;
use crate::vocab::Time;

/// The name of a timer that is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct TimerId {
    at: Time,
    sequence: u64,
    waits: Waits,
}

/// The time of something that runs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Span {
    /// The start, without the jumps of the date.
    since: Time,
    timer: Option<TimerId>,
}

/// The event that a timer waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Waits {
    /// A date.
    Date,
    /// The end of a while, however the date is set meanwhile.
    While,
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

impl Timer {
    fn waits(&self) -> Waits {
        match self {
            Self::Deadline(_) => Waits::Date,
            Self::Handler(_) | Self::Idle(_) | Self::Calls(_) | Self::Continue(..) => Waits::While,
        }
    }
}

/// The time of the last input or poll, and all timers of a core.
#[derive(Debug)]
pub(super) struct Clock {
    /// The time of the present step; only `advance` and `jump` change it.
    pub now: Time,
    /// The sum of the jumps of the date, in nanoseconds.
    jumped: i64,
    /// Timers for a date.
    dates: BTreeMap<TimerId, Timer>,
    /// Timers for the end of a while, by times without the jumps.
    whiles: BTreeMap<TimerId, Timer>,
    sequence: u64,
}

impl Clock {
    pub(super) fn new(now: Time) -> Self {
        Self { now, jumped: 0, dates: BTreeMap::new(), whiles: BTreeMap::new(), sequence: 0 }
    }

    /// The time of the present step without the jumps of the date: for durations.
    pub(super) fn steady(&self) -> Time {
        moved(self.now, self.jumped.saturating_neg())
    }

    /// Moves the time forward; it never goes back.
    pub(super) fn advance(&mut self, now: Time) {
        self.now = self.now.max(now);
    }

    /// The date was set: a time that was the first is the second.
    pub(super) fn jump(&mut self, before: Time, after: Time) {
        let by = after.as_nanos().cast_signed().saturating_sub(before.as_nanos().cast_signed());
        self.jumped = self.jumped.saturating_add(by);
        self.now = moved(self.now, by);
    }

    /// Sets a timer for a time by the present date.
    pub(super) fn set(&mut self, at: Time, timer: Timer) -> TimerId {
        self.sequence += 1;
        let waits = timer.waits();
        let at = match waits {
            Waits::Date => at,
            Waits::While => moved(at, self.jumped.saturating_neg()),
        };
        let id = TimerId { at, sequence: self.sequence, waits };
        self.timers(waits).insert(id, timer);
        id
    }

    /// Starts the time of something that runs; `timer` is due when it has run that long.
    pub(super) fn start(&mut self, most: Option<Duration>, timer: Timer) -> Span {
        let due = most.map(|most| self.now.after(most));
        Span { since: self.steady(), timer: due.map(|due| self.set(due, timer)) }
    }

    /// Stops a time, of which no timer is due any more. Returns how long it was.
    pub(super) fn stop(&mut self, Span { since, timer }: Span) -> Duration {
        if let Some(timer) = timer {
            self.cancel(timer);
        }
        self.steady().since(since)
    }

    fn timers(&mut self, waits: Waits) -> &mut BTreeMap<TimerId, Timer> {
        match waits {
            Waits::Date => &mut self.dates,
            Waits::While => &mut self.whiles,
        }
    }

    /// Takes a timer back; `None` if it was due already.
    pub(super) fn cancel(&mut self, id: TimerId) -> Option<Timer> {
        self.timers(id.waits).remove(&id)
    }

    /// The message of a delayed continue.
    pub(super) fn continued(&self, id: TimerId) -> Option<&Queued> {
        match self.whiles.get(&id)? {
            Timer::Continue(_, message) => Some(message),
            Timer::Handler(_) | Timer::Deadline(_) | Timer::Idle(_) | Timer::Calls(_) => None,
        }
    }

    /// Takes the next timer that is due.
    pub(super) fn due(&mut self) -> Option<(TimerId, Timer)> {
        let next = self.next_id().filter(|id| self.date_of(*id) <= self.now)?;
        self.timers(next.waits).remove_entry(&next)
    }

    /// The time of the next timer.
    pub(super) fn next(&self) -> Option<Time> {
        self.next_id().map(|id| self.date_of(id))
    }

    fn next_id(&self) -> Option<TimerId> {
        let firsts = [&self.dates, &self.whiles].map(|timers| timers.first_key_value().map(|(id, _)| *id));
        firsts.into_iter().flatten().min_by_key(|id| (self.date_of(*id), id.sequence))
    }

    /// The date at which a timer is due.
    fn date_of(&self, id: TimerId) -> Time {
        match id.waits {
            Waits::Date => id.at,
            Waits::While => moved(id.at, self.jumped),
        }
    }
}

/// A time moved by nanoseconds; "never" stays.
fn moved(time: Time, by: i64) -> Time {
    if time == Time::MAX { time } else { Time::from_nanos(time.as_nanos().saturating_add_signed(by)) }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use slotmap::Key;

    use super::*;

    #[test]
    fn a_while_lasts_as_long_however_the_date_is_set_and_a_date_is_a_date() {
        let second = Duration::from_secs(1);
        let start = Time::from_nanos(1_000_000_000_000);
        for (to, first_is_date) in [(start.after(second * 3600), true), (Time::from_nanos(1_000_000_000), false)] {
            let mut clock = Clock::new(start);
            let span = clock.set(start.after(second * 30), Timer::Handler(InvocationId::null()));
            let date = clock.set(start.after(second * 40), Timer::Deadline(ThreadKey::null()));
            clock.advance(start.after(second * 10));
            clock.jump(start, to);
            let now = to.after(second * 10);
            assert_eq!((clock.now, clock.steady()), (now, start.after(second * 10)));
            clock.advance(now.after(second * 19));
            let due = clock.due().map(|(id, _)| id);
            assert_eq!(due, first_is_date.then_some(date));
            assert_eq!(clock.next(), Some(to.after(second * 30)));
            clock.advance(to.after(second * 30));
            assert_eq!(clock.due().map(|(id, _)| id), Some(span));
            assert!(clock.cancel(span).is_none());
        }
    }
}
