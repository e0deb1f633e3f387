//! Values of simple types as JSON.

use serde_json::Number;

use super::write::{Literals, canonical, push_value};
use crate::schema::model::{Model, Simple};
use crate::schema::simple::{Kind, NoPrefixes, SimpleType, XsdType};

/// The value of a literal, as payloads have it.
pub(super) fn value(model: &Model, simple: &Simple, text: &str) -> Option<serde_json::Value> {
    let definition = simple.definition.as_ref()?;
    let value = super::mapping::Value::of(model, simple);
    if definition.has_prefixes() {
        return None;
    }
    let mut out = String::new();
    push_value(&mut out, &value, &canonical(&value, &definition.normalized(text)), Literals::Written);
    serde_json::from_str(&out).ok()
}

/// The number of a literal of a numeric type, if JSON can write just this number.
pub(super) fn number(xsd_type: &XsdType, text: &str) -> Option<Number> {
    if let Ok(whole) = text.parse::<i128>() {
        return integer(whole);
    }
    let number = text.parse::<f64>().ok().filter(|number| number.is_finite())?;
    let written = Number::from_f64(number)?;
    // A decimal may have more digits than a binary number.
    let is_exact = match xsd_type.kind() {
        Kind::Float => true,
        _ => SimpleType::xsd_type("decimal")?.equal(text, &format!("{number}"), &NoPrefixes).is_ok_and(|equal| equal),
    };
    is_exact.then_some(written)
}

/// A whole number, if it has 64 bits.
pub(super) fn integer(number: i128) -> Option<Number> {
    i64::try_from(number).map(Number::from).or_else(|_| u64::try_from(number).map(Number::from)).ok()
}
