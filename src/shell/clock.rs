//! The only place that reads a clock.
#![allow(clippy::disallowed_methods)]

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use systole_core::vocab::Time;

/// Where the time of an organism comes from. It never goes back.
#[derive(Debug, Clone)]
pub enum Clock {
    /// The machine's: the date at the start, and what its monotonic clock adds to it.
    Real {
        /// The date at the start.
        epoch: Time,
        /// The start.
        start: Instant,
    },
    /// The one of a paused tokio runtime; only to be read inside of it.
    Simulated {
        /// The date at the start.
        epoch: Time,
        /// The start.
        start: tokio::time::Instant,
    },
}

impl Clock {
    /// The machine's clock.
    pub fn real() -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self::Real { epoch: Time::default().after(since), start: Instant::now() }
    }

    /// The clock of the tokio runtime that this is called in, from `epoch` on.
    #[cfg(any(feature = "gateway", feature = "testing"))]
    pub(crate) fn simulated(epoch: Time) -> Self {
        Self::Simulated { epoch, start: tokio::time::Instant::now() }
    }

    /// The clock of the tokio runtime that this is called in, from today's date on: a test may pause it.
    #[cfg(feature = "gateway")]
    pub(crate) fn of_runtime() -> Self {
        Self::simulated(Self::real().now())
    }

    /// The time.
    pub fn now(&self) -> Time {
        match self {
            Self::Real { epoch, start } => epoch.after(start.elapsed()),
            Self::Simulated { epoch, start } => epoch.after(start.elapsed()),
        }
    }

    /// Whether a test turns it.
    pub(crate) fn is_simulated(&self) -> bool {
        matches!(self, Self::Simulated { .. })
    }

    /// How long it is until `time`; zero if it has passed.
    pub(crate) fn until(&self, time: Time) -> Duration {
        time.since(self.now())
    }
}
