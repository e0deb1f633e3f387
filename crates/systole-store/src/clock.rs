//! Clocks: the only module that reads one.
#![allow(clippy::disallowed_methods)]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use systole_core::vocab::Time;

#[cfg(feature = "testing")]
use crate::entered::{Entered, Place};

/// The time of a steady clock at its start: long, so that it has times for what was before.
const BEFORE: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

#[cfg(feature = "testing")]
thread_local! {
    static ENTERED: std::cell::RefCell<Option<Clock>> = const { std::cell::RefCell::new(None) };
}

/// Returns the present instant of the machine's monotonic clock.
pub fn instant() -> Instant {
    Instant::now()
}

/// Returns the time of the machine's steady clock, from a start of its own. On Linux it goes on while the machine sleeps.
pub fn steady() -> Duration {
    #[cfg(target_os = "linux")]
    let clock = rustix::time::ClockId::Boottime;
    // Elsewhere this one goes on while the machine sleeps.
    #[cfg(not(target_os = "linux"))]
    let clock = rustix::time::ClockId::Monotonic;
    let time = rustix::time::clock_gettime(clock);
    Duration::new(time.tv_sec.try_into().unwrap_or(0), time.tv_nsec.try_into().unwrap_or(0))
}

/// Source of an organism's time. It goes on by the monotonic clock, and follows the date of the machine when that is set,
/// or when the machine has slept: then it jumps, also back.
#[derive(Debug, Clone)]
pub enum Clock {
    /// The machine's clock.
    Real(RealClock),
    /// The clock of a paused tokio runtime; only to be read inside of it.
    Simulated {
        /// The date at the start.
        epoch: Time,
        /// The start.
        start: tokio::time::Instant,
    },
    /// The time since the start of a machine's clock, whatever happens to the date.
    Steady(Instant),
}

/// The machine's monotonic clock, and the date at its start. Clones share the date.
#[derive(Debug, Clone)]
pub struct RealClock {
    start: Instant,
    /// The date at the start in nanoseconds, by the last look at the machine's date.
    date: Arc<AtomicU64>,
}

impl RealClock {
    /// Difference from the machine's date that is a jump: less is left alone, so that time does not go back for nothing.
    const JUMP: Duration = Duration::from_secs(1);

    fn new() -> Self {
        Self { start: Instant::now(), date: Arc::new(AtomicU64::new(date().as_nanos())) }
    }

    fn now(&self) -> Time {
        let elapsed = self.start.elapsed();
        self.follow(date(), elapsed)
    }

    /// The time after that much of the monotonic clock, when the machine has that date.
    fn follow(&self, date: Time, elapsed: Duration) -> Time {
        let now = Time::from_nanos(self.date.load(Ordering::Relaxed)).after(elapsed);
        if date.since(now).max(now.since(date)) < Self::JUMP {
            return now;
        }
        let start = date.as_nanos().saturating_sub(u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX));
        self.date.store(start, Ordering::Relaxed);
        date
    }
}

/// The date of the machine.
fn date() -> Time {
    Time::default().after(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default())
}

impl Clock {
    /// Returns the machine's clock.
    pub fn real() -> Self {
        Self::Real(RealClock::new())
    }

    /// Returns the clock of the present tokio runtime, starting at `epoch`.
    pub fn simulated(epoch: Time) -> Self {
        Self::Simulated { epoch, start: tokio::time::Instant::now() }
    }

    /// Returns the clock of the present tokio runtime, starting at today's date: a test may pause it. In the world of a
    /// test it is the clock of that.
    pub fn of_runtime() -> Self {
        #[cfg(feature = "testing")]
        if let Some(clock) = ENTERED.with_borrow(Clone::clone) {
            return clock;
        }
        Self::simulated(Self::real().now())
    }

    /// Makes it the clock of this thread's runtime until the guard is dropped.
    #[cfg(feature = "testing")]
    pub fn enter(&self) -> Entered<Self> {
        let place: &'static Place<Self> = &ENTERED;
        Entered::new(place, self.clone())
    }

    /// Returns the same clock without its date: for time limits within the process, which a date that is set must not
    /// lengthen. Its times are to be compared with each other alone.
    #[must_use]
    pub fn steady(&self) -> Self {
        match self {
            Self::Real(RealClock { start, .. }) => Self::Steady(*start),
            Self::Simulated { .. } | Self::Steady(_) => self.clone(),
        }
    }

    /// Returns the time.
    pub fn now(&self) -> Time {
        match self {
            Self::Real(clock) => clock.now(),
            Self::Steady(start) => Time::default().after(BEFORE + start.elapsed()),
            Self::Simulated { epoch, start } => epoch.after(start.elapsed()),
        }
    }

    /// Returns the date at the start: it changes when the clock jumps.
    pub fn start(&self) -> Time {
        match self {
            Self::Real(clock) => Time::from_nanos(clock.date.load(Ordering::Relaxed)),
            Self::Simulated { epoch, .. } => *epoch,
            Self::Steady(_) => Time::default().after(BEFORE),
        }
    }

    /// Returns whether a test controls the clock.
    pub fn is_simulated(&self) -> bool {
        matches!(self, Self::Simulated { .. })
    }

    /// Returns the time left until `time`; zero if it has passed.
    pub fn until(&self, time: Time) -> Duration {
        time.since(self.now())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_follows_a_date_that_is_set_and_no_other() {
        let clock = RealClock { start: Instant::now(), date: Arc::new(AtomicU64::new(1_000_000_000_000)) };
        let (start, second) = (Time::from_nanos(1_000_000_000_000), Duration::from_secs(1));
        let other = clock.clone();
        let drifted = start.after(second * 10 + second / 2);
        assert_eq!(clock.follow(drifted, second * 10), start.after(second * 10));
        // The machine slept for an hour, in which the monotonic clock stood still.
        let woken = start.after(second * 3620);
        assert_eq!(clock.follow(woken, second * 20), woken);
        assert_eq!(other.follow(woken.after(second), second * 21), woken.after(second));
        // Then the date is corrected.
        let corrected = start.after(second * 30);
        assert_eq!(clock.follow(corrected, second * 30), corrected);
        assert_eq!(Clock::Real(other).start(), start);
    }

    #[test]
    fn a_steady_clock_follows_no_date() {
        let clock = RealClock { start: Instant::now(), date: Arc::new(AtomicU64::new(1_000_000_000_000)) };
        let (steady, hour) = (Clock::Real(clock.clone()).steady(), Duration::from_secs(3600));
        let before = steady.now();
        assert_eq!(
            clock.follow(Time::from_nanos(1_000_000_000_000).after(hour), Duration::ZERO).as_nanos(),
            4_600_000_000_000
        );
        let passed = steady.now().since(before);
        assert!(passed < hour && Clock::Real(clock).steady().now() >= before, "{passed:?}");
    }
}
