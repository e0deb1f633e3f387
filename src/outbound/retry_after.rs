//! The header `Retry-After`.

use std::time::Duration;

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use systole_core::vocab::Time;

/// The three formats of a date in HTTP: RFC 9110, section 5.6.7.
const DATES: [&str; 3] = ["%a, %d %b %Y %H:%M:%S GMT", "%A, %d-%b-%y %H:%M:%S GMT", "%a %b %e %H:%M:%S %Y"];

/// Parses a `Retry-After` (RFC 9110, section 10.2.3): seconds, or a date; none if it is neither. Seconds may have a
/// fraction, as some servers write them.
pub(crate) fn parse(header: &str, now: Time) -> Option<Duration> {
    let header = header.trim();
    if !header.is_empty() && header.bytes().all(|byte| byte.is_ascii_digit()) {
        // A number too large for `u64` is longer than any delivery waits.
        return Some(Duration::from_secs(header.parse().unwrap_or(u64::MAX)));
    }
    if header.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
        && let Ok(seconds) = header.parse()
    {
        return Some(Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX));
    }
    let date = DATES.iter().find_map(|format| DateTime::strptime(format, header).ok())?;
    let at: Timestamp = date.to_zoned(TimeZone::UTC).ok()?.timestamp();
    let at = u64::try_from(at.as_nanosecond()).map_or(Time::default(), Time::from_nanos);
    Some(at.since(now))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_and_the_three_kinds_of_dates_are_read() {
        let now: Time = "1994-11-06T08:49:00Z".parse().unwrap();
        let after = |text: &str| parse(text, now).map(|wait| wait.as_secs());
        assert_eq!(after(" 120 "), Some(120));
        assert_eq!(after("Sun, 06 Nov 1994 08:49:37 GMT"), Some(37));
        assert_eq!(after("Sunday, 06-Nov-94 08:49:37 GMT"), Some(37));
        assert_eq!(after("Sun Nov  6 08:49:37 1994"), Some(37));
        assert_eq!(after("Sun, 06 Nov 1994 08:40:00 GMT"), Some(0), "that has passed");
        assert_eq!(after("99999999999999999999999999"), Some(u64::MAX));
        assert_eq!(parse("2.5", now), Some(Duration::from_millis(2500)));
        for bad in ["", "-1", ".", "1.2.3", "soon", "120s", "Mon, 06 Nov 1994 08:49:37 GMT", "2031-01-01T00:00:00Z"] {
            assert_eq!(after(bad), None, "{bad}");
        }
    }
}
