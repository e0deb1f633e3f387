//! Values of simple types as JSON.

use serde_json::{Number, Value};

use crate::schema::model::{Model, Simple, Variety};
use crate::schema::simple::{Kind, NoPrefixes, SimpleType, XsdType};

/// The value of a literal; `None` if JSON has no such value.
pub(super) fn value(model: &Model, simple: &Simple, text: &str) -> Option<Value> {
    let definition = simple.definition.as_ref()?;
    let text = &*definition.normalized(text);
    match &simple.variety {
        Variety::Atomic(xsd_type) => match xsd_type.item() {
            Some(item) => text.split(' ').map(|word| atomic(item, word)).collect(),
            None => atomic(xsd_type, text),
        },
        Variety::List(item) => {
            let item = model.simple(*item)?;
            text.split(' ').filter(|word| !word.is_empty()).map(|word| value(model, item, word)).collect()
        }
        Variety::Union(members) => {
            let mut members = members.iter().filter_map(|member| model.simple(*member));
            let takes = |simple: &&Simple| {
                simple.definition.as_ref().is_some_and(|definition| definition.check(text, &NoPrefixes).is_ok())
            };
            value(model, members.find(takes)?, text)
        }
    }
}

fn atomic(xsd_type: &XsdType, text: &str) -> Option<Value> {
    match xsd_type.kind() {
        Kind::Boolean => Some(matches!(text, "true" | "1").into()),
        Kind::Integer(..) | Kind::Decimal | Kind::Float => number(xsd_type, text).map(Value::Number),
        Kind::Text | Kind::Form => Some(text.into()),
    }
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
