//! Fast path for the most frequent types of fields.

use std::cmp::Ordering;

use super::bound::Bound;
use super::decimal::{is_digits, signed};
use super::definition::{Definition, Variety};
use super::facets::Facets;
use super::lexis::Lexis;
use super::primitive::Primitive;

/// A fast path: the most frequent kinds of types, with a check that accepts clearly valid literals without parsing a
/// value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FastPath {
    /// Any text.
    Text,
    Boolean,
    /// A whole number between bounds.
    Whole {
        least: i64,
        most: i64,
    },
    /// A float or double without bounds.
    Float,
    /// A type without a fast path.
    Other,
}

impl FastPath {
    pub(super) fn of(definition: &Definition) -> Self {
        let Definition { variety, lexis, facets, .. } = definition;
        let is_free = facets.ignore_values() && has_no_other(facets);
        match (variety, lexis) {
            (Variety::Any | Variety::Atomic(Primitive::String), Lexis::Any) if is_free => Self::Text,
            (Variety::Atomic(Primitive::Boolean), Lexis::Any) if is_free => Self::Boolean,
            (Variety::Atomic(Primitive::Float | Primitive::Double), Lexis::Any) if is_free => Self::Float,
            (Variety::Atomic(Primitive::Decimal), Lexis::Integer) => whole(facets).unwrap_or(Self::Other),
            _ => Self::Other,
        }
    }

    /// Reports whether a literal as written is clearly valid; otherwise the full check decides.
    #[inline]
    pub(super) fn allows(self, text: &str) -> bool {
        match self {
            Self::Text => true,
            Self::Boolean => matches!(text, "true" | "false"),
            Self::Whole { least, most } => number(text).is_some_and(|number| (least..=most).contains(&number)),
            Self::Float => is_number(text),
            Self::Other => false,
        }
    }
}

/// Reports whether there are no length facets and no patterns.
fn has_no_other(facets: &Facets) -> bool {
    let Facets { length, min_length, max_length, patterns, .. } = facets;
    length.is_none() && min_length.is_none() && max_length.is_none() && patterns.is_empty()
}

fn whole(facets: &Facets) -> Option<FastPath> {
    let Facets { least, most, values, total_digits, fraction_digits, .. } = facets;
    if !has_no_other(facets) || values.is_some() || total_digits.is_some() || fraction_digits.is_some() {
        return None;
    }
    Some(FastPath::Whole {
        least: bound(least.as_ref(), Ordering::Greater)?,
        most: bound(most.as_ref(), Ordering::Less)?,
    })
}

/// The inclusive bound in 64 bits, or the end of their range if the bound lies beyond it; `None` for a bound that the
/// fast path can't express.
fn bound(bound: Option<&Bound>, side: Ordering) -> Option<i64> {
    let (far, inward) = if side == Ordering::Greater { (i64::MIN, 1) } else { (i64::MAX, -1) };
    let Some(Bound { inclusive, written, .. }) = bound else { return Some(far) };
    let (negative, digits) = signed(written);
    let digits = digits.trim_start_matches('0');
    if !is_digits(digits) {
        return None;
    }
    if digits.len() > DIGITS {
        return (negative == (side == Ordering::Greater)).then_some(far);
    }
    let size = number(digits).unwrap_or(0);
    let number = if negative { -size } else { size };
    Some(if *inclusive { number } else { number + inward })
}

/// The greatest number of digits for which each number fits 64 bits.
const DIGITS: usize = 18;

/// A whole number of at most [`DIGITS`] digits.
#[inline]
fn number(text: &str) -> Option<i64> {
    let (negative, digits) = match text.as_bytes() {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    if digits.is_empty() || digits.len() > DIGITS {
        return None;
    }
    let mut number = 0i64;
    for byte in digits {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        number = number * 10 + i64::from(digit);
    }
    Some(if negative { -number } else { number })
}

/// Reports whether a text is digits with at most one point between them.
#[inline]
fn is_number(text: &str) -> bool {
    let digits = match text.as_bytes() {
        [b'-', digits @ ..] => digits,
        digits => digits,
    };
    let whole = digits.iter().take_while(|byte| byte.is_ascii_digit()).count();
    match &digits[whole..] {
        [] => whole > 0,
        [b'.', fraction @ ..] => whole > 0 && !fraction.is_empty() && fraction.iter().all(u8::is_ascii_digit),
        _ => false,
    }
}
