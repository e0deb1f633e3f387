//! Clocks: the only module that reads one.
#![allow(clippy::disallowed_methods)]

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use systole_core::vocab::Time;

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

    /// Returns the clock of the present tokio runtime, starting at today's date: a test may pause it.
    #[cfg(feature = "gateway")]
    pub(crate) fn of_runtime() -> Self {
        Self::simulated(Self::real().now())
    }

    /// Returns the time.
    pub fn now(&self) -> Time {
        match self {
            Self::Real { epoch, start } => epoch.after(start.elapsed()),
            Self::Simulated { epoch, start } => epoch.after(start.elapsed()),
        }
    }

    /// Tells whether a test controls the clock.
    pub(crate) fn is_simulated(&self) -> bool {
        matches!(self, Self::Simulated { .. })
    }

    /// Returns the time left until `time`; zero if it has passed.
    pub(crate) fn until(&self, time: Time) -> Duration {
        time.since(self.now())
    }
}
