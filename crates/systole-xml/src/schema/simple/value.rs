//! Values of simple types, with their equality and order.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt::Write;

use super::binary;
use super::date_time::DateTime;
use super::decimal::Decimal;
use super::duration::Duration;

/// A value, for equality and order. Value spaces of different primitive types are disjoint.
#[derive(Debug, Clone)]
pub(super) enum Value<'a> {
    Text(Cow<'a, str>),
    Uri(Cow<'a, str>),
    Boolean(bool),
    Decimal(Decimal<'a>),
    Float(f32),
    Double(f64),
    Duration(Duration<'a>),
    DateTime(DateTime<'a>),
    /// The literal of `hexBinary`.
    Hex(Cow<'a, str>),
    /// The literal of `base64Binary`.
    Base64(Cow<'a, str>),
    /// `QName` or `NOTATION`; the namespace is empty for none.
    Name {
        namespace: Cow<'a, str>,
        local: Cow<'a, str>,
    },
    List(Vec<Value<'a>>),
}

impl PartialEq for Value<'_> {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Text(a), Self::Text(b)) | (Self::Uri(a), Self::Uri(b)) => a == b,
            (Self::Boolean(a), Self::Boolean(b)) => a == b,
            // NaN equals itself (sections 3.2.4 and 3.2.5).
            (Self::Float(a), Self::Float(b)) => a == b || a.is_nan() && b.is_nan(),
            (Self::Double(a), Self::Double(b)) => a == b || a.is_nan() && b.is_nan(),
            (Self::Hex(a), Self::Hex(b)) => a.eq_ignore_ascii_case(b),
            (Self::Base64(a), Self::Base64(b)) => binary::characters(a).eq(binary::characters(b)),
            (Self::Name { namespace, local }, Self::Name { namespace: other, local: name }) => {
                local == name && namespace == other
            }
            (Self::List(a), Self::List(b)) => a == b,
            _ => self.order(other) == Some(Ordering::Equal),
        }
    }
}

impl Value<'_> {
    /// The order of two values of one primitive type; `None` if they are incomparable, or the type has no order.
    pub(super) fn order(&self, other: &Self) -> Option<Ordering> {
        match (self, other) {
            (Self::Decimal(a), Self::Decimal(b)) => Some(a.cmp(b)),
            (Self::Float(a), Self::Float(b)) => a.partial_cmp(b),
            (Self::Double(a), Self::Double(b)) => a.partial_cmp(b),
            (Self::Duration(a), Self::Duration(b)) => a.order(b),
            (Self::DateTime(a), Self::DateTime(b)) => a.order(b),
            _ => None,
        }
    }

    /// Writes a key: equal values, and only they, have equal keys. A letter for the value space comes first.
    pub(super) fn key(&self, out: &mut impl Write) {
        let _ = match self {
            // Positive and negative zero are equal.
            Self::Float(value) => write!(out, "f{:?}", value + 0.0),
            Self::Double(value) => write!(out, "d{:?}", value + 0.0),
            Self::Hex(text) => {
                let digits = text.chars().map(|digit| digit.to_ascii_uppercase());
                std::iter::once('h').chain(digits).try_for_each(|digit| out.write_char(digit))
            }
            Self::Base64(text) => {
                let digits = binary::characters(text).map(char::from);
                std::iter::once('b').chain(digits).try_for_each(|digit| out.write_char(digit))
            }
            Self::Text(text) => out.write_char('t').and_then(|()| out.write_str(text)),
            Self::Uri(text) => out.write_char('u').and_then(|()| out.write_str(text)),
            Self::Boolean(value) => out.write_str(if *value { "o1" } else { "o0" }),
            Self::Decimal(decimal) => out.write_char('n').and_then(|()| decimal.key(out)),
            Self::Duration(duration) => out.write_char('p').and_then(|()| duration.key(out)),
            Self::DateTime(moment) => out.write_char('m').and_then(|()| moment.key(out)),
            // A local name can't contain a space, which separates it from the namespace.
            Self::Name { namespace, local } => write!(out, "q{local} {namespace}"),
            Self::List(items) => out.write_char('l').and_then(|()| {
                items.iter().try_for_each(|item| {
                    item.key(out);
                    out.write_char('\u{1}')
                })
            }),
        };
    }

    pub(super) fn into_owned(self) -> Value<'static> {
        match self {
            Self::Text(text) => Value::Text(owned(text)),
            Self::Uri(text) => Value::Uri(owned(text)),
            Self::Boolean(value) => Value::Boolean(value),
            Self::Decimal(decimal) => Value::Decimal(decimal.into_owned()),
            Self::Float(value) => Value::Float(value),
            Self::Double(value) => Value::Double(value),
            Self::Duration(duration) => Value::Duration(duration.into_owned()),
            Self::DateTime(moment) => Value::DateTime(moment.into_owned()),
            Self::Hex(text) => Value::Hex(owned(text)),
            Self::Base64(text) => Value::Base64(owned(text)),
            Self::Name { namespace, local } => Value::Name { namespace: owned(namespace), local: owned(local) },
            Self::List(items) => Value::List(items.into_iter().map(Value::into_owned).collect()),
        }
    }
}

pub(super) fn owned(text: Cow<'_, str>) -> Cow<'static, str> {
    Cow::Owned(text.into_owned())
}
