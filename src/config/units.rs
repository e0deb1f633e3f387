//! Sizes such as `1MiB` and durations such as `30s`.

use std::time::Duration;

use systole_core::vocab::Budget;

use super::Mistake;

const SIZES: [(&str, u64); 8] = [
    ("B", 1),
    ("kB", 1000),
    ("KB", 1000),
    ("MB", 1000 * 1000),
    ("GB", 1000 * 1000 * 1000),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
];

const DURATIONS: [(&str, u64); 6] =
    [("ms", 1), ("s", 1000), ("m", 60_000), ("min", 60_000), ("h", 3_600_000), ("d", 86_400_000)];

/// Parses a number of bytes: a whole number with `B`, `kB`, `MB`, `GB`, `KiB`, `MiB`, `GiB` or no unit.
pub(super) fn size(text: &str) -> Option<usize> {
    let (number, unit) = split(text)?;
    let factor = if unit.is_empty() { 1 } else { factor(&SIZES, unit)? };
    usize::try_from(number.checked_mul(factor)?).ok()
}

/// Parses a duration of at least `least` and at most 100 years: a whole number with `ms`, `s`, `m`, `min`, `h` or `d`. The
/// unit can't be left out.
pub(super) fn duration(text: &str, least: Duration) -> Result<Duration, Mistake> {
    let found = unbounded(text);
    // Where the unit is missing, the bounds are reported first: a correction must keep them.
    let meant = found.or_else(|| unbounded(&short(text)?));
    match (found, meant) {
        (_, Some(meant)) if meant > Budget::MAX_TIME => Err(Mistake::TooLong { text: text.to_owned() }),
        (_, Some(meant)) if meant < least => Err(Mistake::TooShort { text: text.to_owned(), least }),
        (Some(found), _) => Ok(found),
        (None, _) => Err(Mistake::Duration { text: text.to_owned() }),
    }
}

fn unbounded(text: &str) -> Option<Duration> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '_')?;
    let millis = saturating(&text[..end])?.saturating_mul(factor(&DURATIONS, text[end..].trim_start())?);
    Some(Duration::from_millis(millis))
}

/// The duration that is probably meant by a text whose unit is missing or written out: `5s` for `5 seconds`.
pub(super) fn short(text: &str) -> Option<String> {
    const LONG: [(&[&str], &str); 5] = [
        (&["", "sec", "secs", "second", "seconds", "S"], "s"),
        (&["msec", "msecs", "millis", "millisecond", "milliseconds"], "ms"),
        (&["mins", "minute", "minutes"], "min"),
        (&["hr", "hrs", "hour", "hours", "H"], "h"),
        (&["day", "days", "D"], "d"),
    ];
    let (number, unit) = split(text)?;
    let (_, unit) = LONG.iter().find(|(long, _)| long.contains(&unit))?;
    Some(format!("{number}{unit}"))
}

/// Parses a whole number; `_` may stand between digits. One that is too large is the largest.
pub(super) fn saturating(text: &str) -> Option<u64> {
    digits(text).map(|digits| digits.parse().unwrap_or(u64::MAX))
}

/// The digits of a whole number.
fn digits(text: &str) -> Option<String> {
    let digits = text.replace('_', "");
    let clean = digits.bytes().all(|b| b.is_ascii_digit()) && !text.starts_with('_') && !text.ends_with('_');
    (clean && !digits.is_empty()).then_some(digits)
}

fn split(text: &str) -> Option<(u64, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '_').unwrap_or(text.len());
    Some((digits(&text[..end])?.parse().ok()?, text[end..].trim_start()))
}

fn factor(units: &[(&str, u64)], unit: &str) -> Option<u64> {
    units.iter().find(|(name, _)| *name == unit).map(|&(_, factor)| factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_binary_and_decimal_units() {
        for (text, bytes) in
            [("1MiB", 1 << 20), ("256 MiB", 256 << 20), ("64KiB", 65_536), ("2kB", 2000), ("10_000", 10_000)]
        {
            assert_eq!(size(text), Some(bytes), "{text}");
        }
        for text in ["", "MiB", "1.5MiB", "1Mib", "-1", "1 M iB", "99999999999GiB", "_1", "1_"] {
            assert_eq!(size(text), None, "{text}");
        }
    }

    #[test]
    fn durations_need_their_unit() {
        for (text, ms) in [
            ("30s", 30_000),
            ("250ms", 250),
            ("15min", 900_000),
            ("15m", 900_000),
            ("1 h", 3_600_000),
            ("7d", 604_800_000),
        ] {
            assert_eq!(duration(text, Duration::ZERO), Ok(Duration::from_millis(ms)), "{text}");
        }
        for (long, short) in [("5 seconds", "5s"), ("30", "30s"), ("2 Days", ""), ("2days", "2d"), ("1 hour", "1h")] {
            assert_eq!(super::short(long).unwrap_or_default(), short, "{long}");
        }
        for text in ["", "30", "s", "30sec", "0.5s", "-1s", "_1s", "1_s", "0"] {
            assert_eq!(duration(text, Duration::ZERO), Err(Mistake::Duration { text: text.to_owned() }), "{text}");
        }
    }

    #[test]
    fn durations_have_bounds() {
        let least = Duration::from_millis(1);
        for (text, ms) in [("1ms", 1), ("876000h", 876_000 * 3_600_000)] {
            assert_eq!(duration(text, least), Ok(Duration::from_millis(ms)));
        }
        for text in ["876001h", "99999999999999h", "18446744073709551616ms", "9000000 hours"] {
            assert_eq!(duration(text, least), Err(Mistake::TooLong { text: text.to_owned() }));
        }
        for text in ["0", "0s", "0 seconds"] {
            assert_eq!(duration(text, least), Err(Mistake::TooShort { text: text.to_owned(), least }));
        }
        assert_eq!(duration("0s", Duration::ZERO), Ok(Duration::ZERO));
        let short = duration("500ms", Duration::from_secs(1)).unwrap_err();
        assert_eq!(short.help().as_deref(), Some("write at least 1s"));
    }
}
