//! Decimal numbers, such as costs.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A number in millionths: exact where a float is not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(from = "f64", into = "f64")]
pub struct Millionths(pub u64);

/// A text that is no decimal number with at most six digits behind the point.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("write digits, with at most six behind a point, such as 3 or 0.25")]
pub struct NoDecimal;

impl Millionths {
    /// The number one.
    pub const ONE: Self = Self(1_000_000);

    /// Parses a number; one that is too large is the largest.
    ///
    /// # Errors
    /// [`NoDecimal`] if the text is no decimal number.
    pub fn saturating(text: &str) -> Result<Self, NoDecimal> {
        digits(text).map(|_| text.parse().unwrap_or(Self(u64::MAX)))
    }

    /// The nearest float.
    pub fn as_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }
}

impl From<f64> for Millionths {
    /// The nearest number of millionths; 0 for what is below.
    fn from(value: f64) -> Self {
        Self((value * 1e6).round() as u64)
    }
}

impl From<Millionths> for f64 {
    fn from(value: Millionths) -> Self {
        value.as_f64()
    }
}

impl fmt::Display for Millionths {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, part) = (self.0 / 1_000_000, self.0 % 1_000_000);
        if part == 0 {
            return write!(f, "{whole}");
        }
        let part = format!("{part:06}");
        write!(f, "{whole}.{}", part.trim_end_matches('0'))
    }
}

impl FromStr for Millionths {
    type Err = NoDecimal;

    fn from_str(text: &str) -> Result<Self, NoDecimal> {
        let (whole, part) = digits(text)?;
        let whole = whole.parse::<u64>().ok().and_then(|whole| whole.checked_mul(Self::ONE.0));
        whole.and_then(|whole| whole.checked_add(part)).map(Self).ok_or(NoDecimal)
    }
}

/// The digits before the point, and the number of millionths behind it.
fn digits(text: &str) -> Result<(&str, u64), NoDecimal> {
    let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match digits(whole) && digits(part) && part.len() <= 6 {
        true => Ok((whole, format!("{part:0<6}").parse().map_err(|_| NoDecimal)?)),
        false => Err(NoDecimal),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn millionths_are_read_and_written_exactly() {
        for (text, millionths) in [("0", 0), ("3", 3_000_000), ("0.3", 300_000), ("0.000001", 1), ("12.5", 12_500_000)]
        {
            assert_eq!(text.parse(), Ok(Millionths(millionths)), "{text}");
            assert_eq!(Millionths(millionths).to_string(), text);
        }
        assert_eq!("0.250".parse(), Ok(Millionths(250_000)));
        for text in ["", ".5", "5.", "-1", "1e3", "1,5", "0.1234567", "99999999999999999999", "18446744073710"] {
            assert_eq!(text.parse::<Millionths>(), Err(NoDecimal), "{text}");
        }
    }
}
