use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt::{self, Write};

use super::mismatch::Rule;
use super::moment::days_from_civil;
use super::value::owned;

/// A duration (part 2, section 3.2.6): months and seconds don't compare without a date to start from.
#[derive(Debug, Clone)]
pub(super) struct Duration<'a> {
    /// Zero is not negative.
    negative: bool,
    /// Less than 400 years.
    months: i128,
    seconds: i128,
    /// The digits behind the point of the seconds, without trailing zeros.
    fraction: Cow<'a, str>,
}

/// Digits of a number that are counted with.
const DIGITS: usize = 15;
const DAY: i128 = 24 * 60 * 60;

/// Each designator with what it counts, in their order: `P` goes before, `T` before the hours.
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
        duration.add(date, &DATE)?;
        duration.add(time.unwrap_or_default(), &TIME)?;
        // 400 years have as many days wherever they start; so equal durations have equal fields.
        duration.seconds += duration.months / 4800 * 146_097 * DAY;
        duration.months %= 4800;
        duration.negative &= duration.months != 0 || duration.seconds != 0 || !duration.fraction.is_empty();
        Ok(duration)
    }

    /// Adds numbers with their designators, each at most once and in order.
    fn add(&mut self, text: &'a str, designators: &[(u8, i128, i128)]) -> Result<(), Rule> {
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
            self.months += number * months;
            self.seconds += number * seconds;
            rest = &behind[1..];
        }
        Ok(())
    }

    /// The order of section 3.2.6.2: one is less if it is so from each of four dates on.
    pub(super) fn order(&self, other: &Self) -> Option<Ordering> {
        const STARTS: [(i128, i128); 4] = [(1696, 9), (1697, 2), (1903, 3), (1903, 7)];
        let mut orders = STARTS.iter().map(|start| {
            let (mine, others) = (self.from(start), other.from(start));
            mine.cmp(&others).then_with(|| self.tail().cmp(other.tail()))
        });
        let first = orders.next()?;
        orders.all(|order| order == first).then_some(first)
    }

    /// The last whole second not behind the end of the duration, if it starts in a month.
    fn from(&self, &(year, month): &(i128, i128)) -> i128 {
        let sign = if self.negative { -1 } else { 1 };
        let months = year * 12 + month - 1 + sign * self.months;
        // 400 years are 146,097 days; the rest fits the calendar of 64 bits.
        let (eras, rest) = (months.div_euclid(4800), i64::try_from(months.rem_euclid(4800)).unwrap_or(0));
        let days = eras * 146_097 + i128::from(days_from_civil(rest / 12, rest % 12 + 1, 1));
        let borrowed = i128::from(self.borrows());
        days * DAY + sign * self.seconds - borrowed
    }

    /// The digits behind the point of that last second's rest.
    fn tail(&self) -> impl Iterator<Item = u8> {
        // What is missing to one: the last digit to ten, the others to nine.
        let last = self.fraction.len().wrapping_sub(1);
        let borrows = self.borrows();
        self.fraction.bytes().enumerate().map(move |(at, digit)| match digit - b'0' {
            digit if !borrows => digit,
            digit if at == last => 10 - digit,
            digit => 9 - digit,
        })
    }

    /// Whether a negative fraction takes one from the seconds.
    fn borrows(&self) -> bool {
        self.negative && !self.fraction.is_empty()
    }

    /// Writes what equal durations have in common, and others don't.
    pub(super) fn key(&self, out: &mut impl Write) -> fmt::Result {
        let sign = if self.negative { "-" } else { "" };
        write!(out, "{sign}{}M{}.{}", self.months, self.seconds, self.fraction)
    }

    pub(super) fn into_owned(self) -> Duration<'static> {
        Duration { fraction: owned(self.fraction), negative: self.negative, months: self.months, seconds: self.seconds }
    }
}

/// The digits at the start of a text, and what follows.
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
