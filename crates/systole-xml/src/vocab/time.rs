//! Points in time.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use jiff::Timestamp;

/// A point in time, in nanoseconds since the Unix epoch. Callers pass it in: nothing here reads a clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Time(u64);

/// A text that is no time within the range of [`Time`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{text}' is no time: write RFC 3339, such as 2031-05-07T12:00:00Z, between the years 1970 and 2554")]
#[non_exhaustive]
pub struct TimeError {
    /// The text, cut to 64 characters.
    pub text: String,
}

impl Time {
    /// The latest time, in the year 2554: it stands for "never".
    pub const MAX: Self = Self(u64::MAX);

    /// The time `nanos` nanoseconds after the Unix epoch.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since the Unix epoch.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// The time `duration` later, at most [`Time::MAX`].
    #[must_use]
    pub fn after(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)))
    }

    /// The duration from `earlier` to this time; zero if `earlier` is later.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl fmt::Display for Time {
    /// RFC 3339 in UTC.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Timestamp::from_nanosecond(i128::from(self.0)).unwrap_or(Timestamp::MAX).fmt(f)
    }
}

impl FromStr for Time {
    type Err = TimeError;

    fn from_str(text: &str) -> Result<Self, TimeError> {
        let error = || TimeError { text: text.chars().take(64).collect() };
        let moment: Timestamp = text.trim().parse().map_err(|_| error())?;
        u64::try_from(moment.as_nanosecond()).map(Self).map_err(|_| error())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rfc_3339_round_trips() {
        let time: Time = "2026-01-02T04:04:05.5+01:00".parse().unwrap();
        assert_eq!(time.to_string(), "2026-01-02T03:04:05.5Z");
        assert_eq!(Time::MAX.to_string().parse(), Ok(Time::MAX));
        assert!("2600-01-01T00:00:00Z".parse::<Time>().is_err());
        assert!("yesterday".parse::<Time>().is_err());
        assert!("1931-01-01T00:00:00Z".parse::<Time>().is_err());
    }
}
