//! Points in time.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use jiff::Timestamp;
use jiff::fmt::temporal::Pieces;

/// A point in time, in nanoseconds since the Unix epoch. Callers pass it in: nothing here reads a clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Time(u64);

/// A text that is no time within the range of [`Time`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{text}' is no time: write RFC 3339, such as 2031-05-07T12:00:00Z, from the year 1970 on")]
#[non_exhaustive]
pub struct TimeError {
    /// The text, cut to 64 characters.
    pub text: String,
}

impl Time {
    /// The latest time, in the year 2554: it stands for "never", and for all later times.
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
        // A time that is too late to be one of these never comes either.
        let error = || TimeError { text: text.chars().take(64).collect() };
        let text = &*without_picoseconds(text.trim());
        match text.parse::<Timestamp>() {
            Ok(moment) if moment.as_nanosecond() < 0 => Err(error()),
            Ok(moment) => Ok(u64::try_from(moment.as_nanosecond()).map_or(Self::MAX, Self)),
            // The last day of the year 9999 is beyond what the library calls a moment.
            Err(_) => match Pieces::parse(text) {
                Ok(pieces) if pieces.date().year() == 9999 && pieces.offset().is_some() && pieces.time().is_some() => {
                    Ok(Self::MAX)
                }
                _ => Err(error()),
            },
        }
    }
}

/// Cuts the digits of a fraction that a [`Time`] can't hold: RFC 3339 allows any number of them.
fn without_picoseconds(text: &str) -> Cow<'_, str> {
    const NANOSECONDS: usize = 9;
    let Some((whole, rest)) = text.split_once('.') else { return text.into() };
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    if digits <= NANOSECONDS {
        return text.into();
    }
    format!("{whole}.{}{}", &rest[..NANOSECONDS], &rest[digits..]).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rfc_3339_round_trips() {
        let time: Time = "2026-01-02T04:04:05.5+01:00".parse().unwrap();
        assert_eq!(time.to_string(), "2026-01-02T03:04:05.5Z");
        assert_eq!(Time::MAX.to_string().parse(), Ok(Time::MAX));
        for later in ["2600-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "9999-12-31T23:59:59.999-05:00"] {
            assert_eq!(later.parse(), Ok(Time::MAX), "{later}");
        }
        for digits in [10, 12, 30] {
            let fine = format!("2026-01-02T03:04:05.{}+01:00", "123456789".repeat(4).get(..digits).unwrap());
            assert_eq!(fine.parse::<Time>().unwrap().to_string(), "2026-01-02T02:04:05.123456789Z");
        }
        for none in [
            "2026-01-02T03:04:05.1234567890",
            "2026-01-02T03:04:05.1234567890x",
            "9999-12-31T23:59:60",
            "9999-12-31",
            "9999-13-31T23:59:59Z",
            "10000-01-01T00:00:00Z",
        ] {
            assert!(none.parse::<Time>().is_err(), "{none}");
        }
        assert!("yesterday".parse::<Time>().is_err());
        assert!("1931-01-01T00:00:00Z".parse::<Time>().is_err());
    }
}
