//! Durations.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt::{self, Write};

use super::date_time::days_from_civil;
use super::mismatch::Rule;
use super::value::owned;

/// A duration (part 2, section 3.2.6): without a start date, months and seconds are not comparable.
#[derive(Debug, Clone)]
pub(super) struct Duration<'a> {
    /// The sign; zero is not negative.
    negative: bool,
    /// The months, less than 400 years.
    months: i16,
    seconds: i128,
    /// The digits of the fraction of the seconds, without trailing zeros.
    fraction: Cow<'a, str>,
}

/// The greatest number of digits of a number, so that the arithmetic can't overflow.
const DIGITS: usize = 15;
const DAY: i128 = 24 * 60 * 60;

/// The designators in their order, each with its months and seconds. `P` precedes the date part, `T` the time part.
const DATE: [(u8, i128, i128); 3] = [(b'Y', 12, 0), (b'M', 1, 0), (b'D', 0, DAY)];
const TIME: [(u8, i128, i128); 3] = [(b'H', 0, 3600), (b'M', 0, 60), (b'S', 0, 1)];

impl<'a> Duration<'a> {
    pub(super) fn parse(text: &'a str) -> Result<Self, Rule> {
        let (negative, text) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
        let text = text.strip_prefix('P').ok_or(Rule::Lexical)?;
        let (date, time) = text.split_once('T').map_or((text, None), |(date, time)| (date, Some(time)));
        if time.unwrap_or(date).is_empty() {
            return Err(Rule::Lexical);
        }
        let mut duration = Self { negative, months: 0, seconds: 0, fraction: Cow::Borrowed("") };
        let months = duration.add(date, &DATE)? + duration.add(time.unwrap_or_default(), &TIME)?;
        // 400 years have the same number of days from any start; so equal durations have equal fields.
        duration.seconds += months / 4800 * 146_097 * DAY;
        duration.months = i16::try_from(months % 4800).map_err(|_| Rule::Limit)?;
        duration.negative &= duration.months != 0 || duration.seconds != 0 || !duration.fraction.is_empty();
        Ok(duration)
    }

    /// Adds the seconds of numbers with their designators, each at most once and in order. Returns the months.
    fn add(&mut self, text: &'a str, designators: &[(u8, i128, i128)]) -> Result<i128, Rule> {
        let mut sum = 0;
        let mut rest = text;
        let mut allowed = designators.iter();
        while !rest.is_empty() {
            let (number, behind) = digits(rest);
            let (mut fraction, mut behind) = (None, behind);
            if let Some(point) = behind.strip_prefix('.') {
                let (digits, end) = digits(point);
                (fraction, behind) = (Some(digits), end);
            }
            let designator = *behind.as_bytes().first().ok_or(Rule::Lexical)?;
            let &(_, months, seconds) = allowed.find(|(known, ..)| *known == designator).ok_or(Rule::Lexical)?;
            match fraction {
                Some(digits) if designator == b'S' && !digits.is_empty() => {
                    self.fraction = digits.trim_end_matches('0').into();
                }
                Some(_) => return Err(Rule::Lexical),
                None => {}
            }
            let number = count(number)?;
            sum += number * months;
            self.seconds += number * seconds;
            rest = &behind[1..];
        }
        Ok(sum)
    }

    /// The order of section 3.2.6.2: a duration is less if it is less from each of four start dates.
    pub(super) fn order(&self, other: &Self) -> Option<Ordering> {
        const STARTS: [(i64, i64); 4] = [(1696, 9), (1697, 2), (1903, 3), (1903, 7)];
        let from = |start| {
            let (mine, others) = (self.from(start), other.from(start));
            mine.cmp(&others).then_with(|| self.tail().cmp(other.tail()))
        };
        // Equal months end on the same day from each start.
        if self.signed_months() == other.signed_months() {
            return Some(from(&STARTS[0]));
        }
        let mut orders = STARTS.iter().map(from);
        let first = orders.next()?;
        orders.all(|order| order == first).then_some(first)
    }

    /// The last whole second not after the end of the duration, from the start of a month.
    fn from(&self, &(year, month): &(i64, i64)) -> i128 {
        let seconds = if self.negative { -self.seconds } else { self.seconds };
        let months = year * 12 + month - 1 + self.signed_months();
        let days = days_from_civil(months.div_euclid(12), months.rem_euclid(12) + 1, 1);
        i128::from(days) * DAY + seconds - i128::from(self.borrows())
    }

    fn signed_months(&self) -> i64 {
        let months = i64::from(self.months);
        if self.negative { -months } else { months }
    }

    /// The digits of the fraction from that second to the end.
    fn tail(&self) -> impl Iterator<Item = u8> {
        // The complement to one: the last digit to ten, the others to nine.
        let last = self.fraction.len().wrapping_sub(1);
        let borrows = self.borrows();
        self.fraction.bytes().enumerate().map(move |(at, digit)| match digit - b'0' {
            digit if !borrows => digit,
            digit if at == last => 10 - digit,
            digit => 9 - digit,
        })
    }

    /// Reports whether a negative fraction takes one from the seconds.
    fn borrows(&self) -> bool {
        self.negative && !self.fraction.is_empty()
    }

    /// Writes a key: equal durations, and only they, have equal keys.
    pub(super) fn key(&self, out: &mut impl Write) -> fmt::Result {
        let sign = if self.negative { "-" } else { "" };
        write!(out, "{sign}{}M{}.{}", self.months, self.seconds, self.fraction)
    }

    pub(super) fn into_owned(self) -> Duration<'static> {
        Duration { fraction: owned(self.fraction), negative: self.negative, months: self.months, seconds: self.seconds }
    }
}

/// Splits the leading digits off a text.
fn digits(text: &str) -> (&str, &str) {
    text.split_at(text.bytes().position(|byte| !byte.is_ascii_digit()).unwrap_or(text.len()))
}

fn count(digits: &str) -> Result<i128, Rule> {
    if digits.is_empty() {
        return Err(Rule::Lexical);
    }
    let digits = digits.trim_start_matches('0');
    if digits.len() > DIGITS {
        return Err(Rule::Limit);
    }
    if digits.is_empty() { Ok(0) } else { digits.parse().map_err(|_| Rule::Limit) }
}
