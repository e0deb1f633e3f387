//! Clocks: the only module that reads one.
#![allow(clippy::disallowed_methods)]

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use systole_core::vocab::Time;

#[cfg(feature = "testing")]
use super::entered::{Entered, Place};

#[cfg(feature = "testing")]
thread_local! {
    static ENTERED: std::cell::RefCell<Option<Clock>> = const { std::cell::RefCell::new(None) };
}

/// Returns the present instant of the machine's monotonic clock.
pub(super) fn instant() -> Instant {
    Instant::now()
}

/// Source of an organism's time, which never goes back.
#[derive(Debug, Clone)]
pub enum Clock {
    /// The machine's clock: the date at the start, plus the time of its monotonic clock.
    Real {
        /// The date at the start.
        epoch: Time,
        /// The start.
        start: Instant,
    },
    /// The clock of a paused tokio runtime; only to be read inside of it.
    Simulated {
        /// The date at the start.
        epoch: Time,
        /// The start.
        start: tokio::time::Instant,
    },
}

impl Clock {
    /// Returns the machine's clock.
    pub fn real() -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self::Real { epoch: Time::default().after(since), start: Instant::now() }
    }

    /// Returns the clock of the present tokio runtime, starting at `epoch`.
    #[cfg(any(feature = "gateway", feature = "testing"))]
    pub(crate) fn simulated(epoch: Time) -> Self {
        Self::Simulated { epoch, start: tokio::time::Instant::now() }
    }

    /// Returns the clock of the present tokio runtime, starting at today's date: a test may pause it. In the world of a
    /// test it is the clock of that.
    #[cfg(feature = "gateway")]
    pub(crate) fn of_runtime() -> Self {
        #[cfg(feature = "testing")]
        if let Some(clock) = ENTERED.with_borrow(Clone::clone) {
            return clock;
        }
        Self::simulated(Self::real().now())
    }

    /// Makes it the clock of this thread's runtime until the guard is dropped.
    #[cfg(feature = "testing")]
    pub(crate) fn enter(&self) -> Entered<Self> {
        let place: &'static Place<Self> = &ENTERED;
        Entered::new(place, self.clone())
    }

    /// Returns the time.
    pub fn now(&self) -> Time {
        match self {
            Self::Real { epoch, start } => epoch.after(start.elapsed()),
            Self::Simulated { epoch, start } => epoch.after(start.elapsed()),
        }
    }

    /// Returns whether a test controls the clock.
    pub(crate) fn is_simulated(&self) -> bool {
        matches!(self, Self::Simulated { .. })
    }

    /// Returns the time left until `time`; zero if it has passed.
    pub(crate) fn until(&self, time: Time) -> Duration {
        time.since(self.now())
    }
}
