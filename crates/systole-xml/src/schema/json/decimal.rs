//! Numbers of JSON as exact decimals: `1`, `1.0` and `10e-1` are one value (JSON Schema core, section 4.2.2), and none loses a digit.

use std::cmp::Ordering;

/// A number: `0.DIGITS * 10^exponent`, without leading and trailing zeros in its digits; zero has none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::schema) struct Decimal {
    is_negative: bool,
    digits: String,
    exponent: i64,
}

impl Decimal {
    /// The value of a number as JSON writes it. An exponent past 64 bits is that of the greatest one.
    pub(in crate::schema) fn of(number: &str) -> Self {
        let (mantissa, exponent) = number.split_once(['e', 'E']).unwrap_or((number, "0"));
        let (is_negative, mantissa) = mantissa.strip_prefix('-').map_or((false, mantissa), |rest| (true, rest));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let end = if exponent.starts_with('-') { i64::MIN / 2 } else { i64::MAX / 2 };
        let exponent = exponent.parse::<i64>().unwrap_or(end).clamp(i64::MIN / 2, i64::MAX / 2);
        let digits = format!("{whole}{fraction}");
        let kept = digits.trim_start_matches('0');
        let leading = (digits.len() - kept.len()) as i64;
        let kept = kept.trim_end_matches('0');
        if kept.is_empty() {
            return Self { is_negative: false, digits: String::new(), exponent: 0 };
        }
        Self { is_negative, digits: kept.to_owned(), exponent: exponent + whole.len() as i64 - leading }
    }

    /// Returns whether the value is whole.
    pub(in crate::schema) fn is_whole(&self) -> bool {
        self.digits.len() as i64 <= self.exponent || self.digits.is_empty()
    }

    /// The value as a divisor for [`Self::is_multiple_of`]: its digits as a whole number, and the power of ten that they are
    /// multiplied by. `None` for zero, negative numbers and more than 18 digits.
    pub(in crate::schema) fn divisor(&self) -> Option<(u64, i64)> {
        let is_one = !self.is_negative && (1..=18).contains(&self.digits.len());
        is_one.then(|| Some((self.digits.parse().ok()?, self.exponent - self.digits.len() as i64))).flatten()
    }

    /// Returns whether the value is a multiple of a divisor.
    pub(in crate::schema) fn is_multiple_of(&self, (divisor, power): (u64, i64)) -> bool {
        let Some(shift) = (self.exponent - self.digits.len() as i64).checked_sub(power) else { return false };
        if self.digits.is_empty() {
            return true;
        }
        // Its last digit is not zero, so that a division by ten leaves a rest.
        let Ok(mut shift) = u64::try_from(shift) else { return false };
        let modulo = u128::from(divisor);
        let digit = |rest: u128, byte: u8| (rest * 10 + u128::from(byte - b'0')) % modulo;
        let mut rest = self.digits.bytes().fold(0, digit);
        let mut factor = 10 % modulo;
        while shift > 0 {
            if shift & 1 == 1 {
                rest = rest * factor % modulo;
            }
            factor = factor * factor % modulo;
            shift >>= 1;
        }
        rest == 0
    }

    /// A text that only equal values have.
    pub(in crate::schema) fn key(&self) -> String {
        format!("{}{}e{}", if self.is_negative { "-" } else { "" }, self.digits, self.exponent)
    }
}

impl Ord for Decimal {
    fn cmp(&self, other: &Self) -> Ordering {
        let sign = |decimal: &Self| match (decimal.digits.is_empty(), decimal.is_negative) {
            (true, _) => 0,
            (false, true) => -1,
            (false, false) => 1,
        };
        let size = || self.exponent.cmp(&other.exponent).then_with(|| self.digits.cmp(&other.digits));
        sign(self).cmp(&sign(other)).then_with(|| match sign(self) {
            0 => Ordering::Equal,
            1 => size(),
            _ => size().reverse(),
        })
    }
}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_value_has_one_form() {
        for [one, other] in [["1", "1.0"], ["10e-1", "1"], ["0", "-0.0e5"], ["0.050", "5E-2"], ["-120", "-1.2e+2"]] {
            assert_eq!(Decimal::of(one), Decimal::of(other), "{one} {other}");
            assert_eq!(Decimal::of(one).key(), Decimal::of(other).key());
        }
    }

    #[test]
    fn values_have_their_order() {
        let ordered =
            ["-1e400", "-10.5", "-10", "-0.1", "0", "1e-400", "0.1", "0.11", "2", "10", "10.000000000000000001"];
        for (at, one) in ordered.iter().enumerate() {
            for (to, other) in ordered.iter().enumerate() {
                assert_eq!(Decimal::of(one).cmp(&Decimal::of(other)), at.cmp(&to), "{one} {other}");
            }
        }
    }

    #[test]
    fn multiples_are_exact() {
        let is_multiple = |one: &str, of: &str| Decimal::of(one).is_multiple_of(Decimal::of(of).divisor().unwrap());
        for (one, of) in [("0.3", "0.1"), ("12", "3"), ("0", "7"), ("-1.5", "0.5"), ("1e300", "8"), ("100", "0.01")] {
            assert!(is_multiple(one, of), "{one} {of}");
        }
        for (one, of) in [("0.35", "0.1"), ("1", "3"), ("1", "2"), ("1e300", "7"), ("0.01", "100")] {
            assert!(!is_multiple(one, of), "{one} {of}");
        }
        for whole in ["1", "1.0", "12e3", "0", "-7", "1.5e1"] {
            assert!(Decimal::of(whole).is_whole(), "{whole}");
        }
        assert!(!Decimal::of("0.5").is_whole() && !Decimal::of("15e-1").is_whole());
    }
}
