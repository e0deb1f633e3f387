//! Primitive types.

use super::date_time::{DateTime, DateTimeKind};
use super::decimal::{Decimal, is_digits, signed};
use super::duration::Duration;
use super::mismatch::Rule;
use super::value::Value;
use super::{Prefixes, binary, uri};
use crate::vocab::{is_ncname, ns};

/// The primitive types (part 2, section 3.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Primitive {
    String,
    Boolean,
    Decimal,
    Float,
    Double,
    Duration,
    DateTime(DateTimeKind),
    Hex,
    Base64,
    Uri,
    QName,
    Notation,
}

impl Primitive {
    /// The value of a literal with normalized white space.
    pub(super) fn value<'a>(self, text: &'a str, prefixes: &'a dyn Prefixes) -> Result<Value<'a>, Rule> {
        let literal = |is: bool, value: Value<'a>| if is { Ok(value) } else { Err(Rule::Lexical) };
        match self {
            Self::String => Ok(Value::Text(text.into())),
            Self::Boolean => match text {
                "true" | "1" => Ok(Value::Boolean(true)),
                "false" | "0" => Ok(Value::Boolean(false)),
                _ => Err(Rule::Lexical),
            },
            Self::Decimal => Decimal::parse(text).map(Value::Decimal).ok_or(Rule::Lexical),
            Self::Float => float(text).map(Value::Float),
            Self::Double => float(text).map(Value::Double),
            Self::Duration => Duration::parse(text).map(Value::Duration),
            Self::DateTime(kind) => DateTime::parse(kind, text).map(Value::DateTime),
            Self::Hex => literal(binary::is_hex(text), Value::Hex(text.into())),
            Self::Base64 => literal(binary::is_base64(text), Value::Base64(text.into())),
            Self::Uri => literal(uri::is_uri(text), Value::Uri(text.into())),
            Self::QName | Self::Notation => name(text, prefixes),
        }
    }

    /// Checks a literal with normalized white space, without computing its value if that is expensive.
    pub(super) fn check(self, text: &str, prefixes: &dyn Prefixes) -> Result<(), Rule> {
        match self {
            Self::Float | Self::Double => {
                if is_float(text) {
                    Ok(())
                } else {
                    Err(Rule::Lexical)
                }
            }
            _ => self.value(text, prefixes).map(drop),
        }
    }

    /// The length for the length facets (section 4.3.1.3); `None` for qualified names, which satisfy any.
    pub(super) fn length(self, text: &str) -> Option<usize> {
        match self {
            Self::String | Self::Uri => Some(text.chars().count()),
            Self::Hex => Some(binary::hex_len(text)),
            Self::Base64 => Some(binary::base64_len(text)),
            _ => None,
        }
    }

    /// Reports whether a facet may restrict the type (section 4.1.5).
    pub(super) fn has_facet(self, facet: &str) -> bool {
        match facet {
            "pattern" | "whiteSpace" => true,
            "enumeration" => self != Self::Boolean,
            "length" | "minLength" | "maxLength" => {
                matches!(self, Self::String | Self::Hex | Self::Base64 | Self::Uri | Self::QName | Self::Notation)
            }
            "minInclusive" | "minExclusive" | "maxInclusive" | "maxExclusive" => {
                matches!(self, Self::Decimal | Self::Float | Self::Double | Self::Duration | Self::DateTime(_))
            }
            "totalDigits" | "fractionDigits" => self == Self::Decimal,
            _ => false,
        }
    }
}

/// A float or double (sections 3.2.4 and 3.2.5); a number too large for the type becomes infinite.
fn float<F: std::str::FromStr + From<f32>>(text: &str) -> Result<F, Rule> {
    match text {
        "INF" => return Ok(f32::INFINITY.into()),
        "-INF" => return Ok(f32::NEG_INFINITY.into()),
        "NaN" => return Ok(f32::NAN.into()),
        _ => {}
    }
    if is_float(text) { text.parse().map_err(|_| Rule::Lexical) } else { Err(Rule::Lexical) }
}

fn is_float(text: &str) -> bool {
    let exponent_at = text.bytes().position(|byte| matches!(byte, b'e' | b'E'));
    let (mantissa, exponent) = exponent_at.map_or((text, "0"), |at| (&text[..at], &text[at + 1..]));
    let exponent = signed(exponent).1;
    let number = !exponent.is_empty() && is_digits(exponent) && is_decimal(mantissa);
    number || matches!(text, "INF" | "-INF" | "NaN")
}

/// Reports whether a text is digits with at most one point before, between or after them (section 3.2.3.1).
fn is_decimal(text: &str) -> bool {
    let (mut digits, mut points) = (0usize, 0usize);
    let fits = signed(text).1.bytes().all(|byte| {
        digits += usize::from(byte.is_ascii_digit());
        points += usize::from(byte == b'.');
        byte.is_ascii_digit() || byte == b'.'
    });
    fits && digits > 0 && points < 2
}

/// A qualified name; without a prefix it is in the default namespace (section 3.2.18).
fn name<'a>(text: &'a str, prefixes: &'a dyn Prefixes) -> Result<Value<'a>, Rule> {
    let (prefix, local) = text.split_once(':').map_or((None, text), |(prefix, local)| (Some(prefix), local));
    if !is_ncname(local) || prefix.is_some_and(|prefix| !is_ncname(prefix)) {
        return Err(Rule::Lexical);
    }
    let namespace = match prefix {
        None => prefixes.namespace("").unwrap_or_default(),
        Some("xml") => ns::XML,
        Some(prefix) => prefixes.namespace(prefix).ok_or(Rule::Prefix)?,
    };
    Ok(Value::Name { namespace: namespace.into(), local: local.into() })
}
