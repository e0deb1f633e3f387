//! Decimal numbers.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt::{self, Write};

use super::value::owned;

/// A decimal number of any size, as its digits (part 2, section 3.2.3).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Decimal<'a> {
    /// The sign; zero is not negative.
    negative: bool,
    /// The digits before the point, without leading zeros; empty for zero.
    whole: Cow<'a, str>,
    /// The digits after the point, without trailing zeros; empty for a whole number.
    fraction: Cow<'a, str>,
}

impl<'a> Decimal<'a> {
    pub(super) fn parse(text: &'a str) -> Option<Self> {
        let (negative, digits) = signed(text);
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        if whole.len() + fraction.len() == 0 || !is_digits(whole) || !is_digits(fraction) {
            return None;
        }
        let (whole, fraction) = (whole.trim_start_matches('0'), fraction.trim_end_matches('0'));
        let zero = whole.is_empty() && fraction.is_empty();
        Some(Self { negative: negative && !zero, whole: whole.into(), fraction: fraction.into() })
    }

    /// The digits that the facet `totalDigits` counts: the value is i × 10^-n with |i| < 10^digits and n <= digits.
    pub(super) fn total_digits(&self) -> usize {
        self.whole.len() + self.fraction.len()
    }

    /// The digits that the facet `fractionDigits` counts.
    pub(super) fn fraction_digits(&self) -> usize {
        self.fraction.len()
    }

    /// Writes a key: equal numbers, and only they, have equal keys.
    pub(super) fn key(&self, out: &mut impl Write) -> fmt::Result {
        out.write_str(if self.negative { "-" } else { "" })?;
        out.write_str(&self.whole)?;
        out.write_char('.')?;
        out.write_str(&self.fraction)
    }

    pub(super) fn into_owned(self) -> Decimal<'static> {
        Decimal { negative: self.negative, whole: owned(self.whole), fraction: owned(self.fraction) }
    }
}

impl Ord for Decimal<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        let size = |number: &Self| number.whole.len();
        let ascending = match (self.negative, other.negative) {
            (true, false) => return Ordering::Less,
            (false, true) => return Ordering::Greater,
            // The number with fewer digits is less; with equally many, the first difference decides.
            _ => size(self)
                .cmp(&size(other))
                .then_with(|| self.whole.cmp(&other.whole))
                .then_with(|| self.fraction.cmp(&other.fraction)),
        };
        if self.negative { ascending.reverse() } else { ascending }
    }
}

impl PartialOrd for Decimal<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Splits the sign off a number: `true` for a minus, and the digits.
pub(super) fn signed(text: &str) -> (bool, &str) {
    match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    }
}

/// Reports whether a text has only digits, or is empty.
pub(super) fn is_digits(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}
