//! Dates and times.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt::{self, Write};

use super::decimal::is_digits;
use super::mismatch::Rule;
use super::value::owned;

/// A dateTime or a part of one (part 2, sections 3.2.7 to 3.2.14), as a point on the time line.
#[derive(Debug, Clone)]
pub(super) struct DateTime<'a> {
    kind: DateTimeKind,
    /// The seconds since 1970, in UTC if a time zone is given. Missing parts are taken from 1972-01-01T00:00:00.
    seconds: i64,
    /// The digits of the fraction of the seconds, without trailing zeros.
    fraction: Cow<'a, str>,
    zoned: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DateTimeKind {
    DateTime,
    Date,
    Time,
    GYearMonth,
    GYear,
    GMonthDay,
    GDay,
    GMonth,
}

const DAY: i64 = 24 * 60 * 60;
/// The greatest offset of a time zone from UTC, in seconds.
const FURTHEST: i64 = 14 * 60 * 60;
/// The greatest number of digits of a year, so that seconds fit 64 bits.
const YEAR_DIGITS: usize = 11;

impl<'a> DateTime<'a> {
    pub(super) fn parse(kind: DateTimeKind, text: &'a str) -> Result<Self, Rule> {
        use DateTimeKind as K;
        let mut rest = Literal(text);
        let mut seconds = 0;
        // 1972 is a leap year, for a 29th of February without a year.
        let (mut year, mut month, mut day, mut fraction) = (1972, 1, 1, "");
        match kind {
            K::DateTime | K::Date => (year, month, day) = (rest.year()?, rest.after("-")?, rest.after("-")?),
            K::GYearMonth => (year, month) = (rest.year()?, rest.after("-")?),
            K::GYear => year = rest.year()?,
            K::GMonthDay => (month, day) = (rest.after("--")?, rest.after("-")?),
            K::GDay => day = rest.after("---")?,
            K::GMonth => month = rest.after("--")?,
            K::Time => {}
        }
        if !(1..=12).contains(&month) || !(1..=days_in(year, month)).contains(&day) {
            return Err(Rule::Lexical);
        }
        if kind == K::DateTime {
            rest.expect("T")?;
        }
        if matches!(kind, K::DateTime | K::Time) {
            (seconds, fraction) = rest.time()?;
            // 24:00:00 is the start of the next day, which a time doesn't have.
            if kind == K::Time {
                seconds %= DAY;
            }
        }
        let zone = rest.zone()?;
        if !rest.0.is_empty() {
            return Err(Rule::Lexical);
        }
        let seconds = days(year, month, day) * DAY + seconds - zone.unwrap_or(0);
        Ok(Self { kind, seconds, fraction: fraction.into(), zoned: zone.is_some() })
    }

    /// The order of section 3.2.7.4: a moment without a time zone stands for all moments between the offsets +14:00 and
    /// -14:00.
    pub(super) fn order(&self, other: &Self) -> Option<Ordering> {
        if self.kind != other.kind {
            return None;
        }
        let order = |shift: i64| (self.seconds + shift, &self.fraction).cmp(&(other.seconds, &other.fraction));
        match (self.zoned, other.zoned) {
            (true, true) | (false, false) => Some(order(0)),
            // One is less if its latest moment is before the earliest one of the other.
            _ if order(FURTHEST) == Ordering::Less => Some(Ordering::Less),
            _ if order(-FURTHEST) == Ordering::Greater => Some(Ordering::Greater),
            _ => None,
        }
    }

    /// Writes a key: equal moments, and only they, have equal keys.
    pub(super) fn key(&self, out: &mut impl Write) -> fmt::Result {
        let zone = if self.zoned { "Z" } else { "" };
        write!(out, "{}{zone}{}.{}", self.kind as u8, self.seconds, self.fraction)
    }

    pub(super) fn into_owned(self) -> DateTime<'static> {
        DateTime { fraction: owned(self.fraction), kind: self.kind, seconds: self.seconds, zoned: self.zoned }
    }
}

/// The rest of a literal.
struct Literal<'a>(&'a str);

impl<'a> Literal<'a> {
    fn expect(&mut self, text: &str) -> Result<(), Rule> {
        self.0 = self.0.strip_prefix(text).ok_or(Rule::Lexical)?;
        Ok(())
    }

    /// Takes a separator and two digits.
    fn after(&mut self, text: &str) -> Result<i64, Rule> {
        self.expect(text)?;
        let (digits, rest) = self.0.split_at_checked(2).ok_or(Rule::Lexical)?;
        let [tens, ones] = *digits.as_bytes() else { return Err(Rule::Lexical) };
        if !is_digits(digits) {
            return Err(Rule::Lexical);
        }
        self.0 = rest;
        Ok(i64::from(tens - b'0') * 10 + i64::from(ones - b'0'))
    }

    /// Takes a year: at least four digits, leading zeros only in four; there is no year 0000.
    fn year(&mut self) -> Result<i64, Rule> {
        let negative = self.expect("-").is_ok();
        let digits = self.digits();
        if digits.len() < 4 || digits.len() > 4 && digits.starts_with('0') || digits == "0000" {
            return Err(Rule::Lexical);
        }
        if digits.len() > YEAR_DIGITS {
            return Err(Rule::Limit);
        }
        let year: i64 = digits.parse().map_err(|_| Rule::Limit)?;
        Ok(if negative { -year } else { year })
    }

    /// Takes a time of day: seconds since midnight, and the digits of the fraction.
    fn time(&mut self) -> Result<(i64, &'a str), Rule> {
        let (hour, minute, second) = (self.after("")?, self.after(":")?, self.after(":")?);
        let mut fraction = "";
        if self.expect(".").is_ok() {
            fraction = self.digits();
            if fraction.is_empty() {
                return Err(Rule::Lexical);
            }
            fraction = fraction.trim_end_matches('0');
        }
        let midnight = hour == 24 && minute == 0 && second == 0 && fraction.is_empty();
        if (hour < 24 || midnight) && minute < 60 && second < 60 {
            Ok((hour * 3600 + minute * 60 + second, fraction))
        } else {
            Err(Rule::Lexical)
        }
    }

    /// Takes a time zone, if there is one: seconds ahead of UTC.
    fn zone(&mut self) -> Result<Option<i64>, Rule> {
        let sign = match self.0.as_bytes().first() {
            None => return Ok(None),
            Some(b'Z') => {
                self.expect("Z")?;
                return Ok(Some(0));
            }
            Some(b'+') => 1,
            Some(b'-') => -1,
            Some(_) => return Err(Rule::Lexical),
        };
        let (hours, minutes) = (self.after(if sign > 0 { "+" } else { "-" })?, self.after(":")?);
        let offset = hours * 3600 + minutes * 60;
        if minutes < 60 && offset <= FURTHEST { Ok(Some(sign * offset)) } else { Err(Rule::Lexical) }
    }

    fn digits(&mut self) -> &'a str {
        let end = self.0.bytes().position(|byte| !byte.is_ascii_digit()).unwrap_or(self.0.len());
        let (digits, rest) = self.0.split_at(end);
        self.0 = rest;
        digits
    }
}

/// The number of days of a month (part 2, appendix E), also for years before the first.
fn days_in(year: i64, month: i64) -> i64 {
    let divides = |by: i64| year.rem_euclid(by) == 0;
    match month {
        2 if divides(400) || divides(4) && !divides(100) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days from 1970-01-01 to a day of the proleptic Gregorian calendar without a year 0. The method is Howard Hinnant's
/// `days_from_civil`: years start in March.
fn days(year: i64, month: i64, day: i64) -> i64 {
    // The formula counts the missing year 0, a leap year.
    let missing = if year < 0 { 366 } else { 0 };
    days_from_civil(year, month, day) + missing
}

pub(super) fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}
