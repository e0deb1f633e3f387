//! Variants of enums.

use serde_json::{Map, Value};

use crate::schema::contract::TypeShape;

/// A variant of an externally tagged enum.
pub(super) struct Variant<'a> {
    pub(super) name: &'a str,
    pub(super) doc: &'a str,
    /// The schema of the data; `None` for a unit variant.
    pub(super) data: Option<&'a Value>,
}

/// The variants of a schema with `enum`, `const`, `oneOf` or `anyOf`.
pub(super) fn of(schema: &Map<String, Value>) -> Result<Vec<Variant<'_>>, TypeShape> {
    if schema.contains_key("anyOf") {
        return Err(TypeShape::Untagged);
    }
    let Some(Value::Array(branches)) = schema.get("oneOf") else {
        return units(schema);
    };
    let mut variants = Vec::new();
    for branch in branches {
        let branch = branch.as_object().ok_or(TypeShape::Untagged)?;
        if branch.contains_key("enum") || branch.contains_key("const") {
            variants.extend(units(branch)?);
        } else {
            variants.push(tagged(branch)?);
        }
    }
    Ok(variants)
}

fn units(schema: &Map<String, Value>) -> Result<Vec<Variant<'_>>, TypeShape> {
    let doc = schema.get("description").and_then(Value::as_str).unwrap_or_default();
    let values: Vec<&Value> = match schema.get("enum") {
        // An optional enum counts null among its values.
        Some(Value::Array(values)) => values.iter().filter(|value| !value.is_null()).collect(),
        _ => schema.get("const").into_iter().collect(),
    };
    // A description beside several values is that of the enum, not of each value.
    let doc = if schema.contains_key("enum") { "" } else { doc };
    values
        .into_iter()
        .map(|value| Ok(Variant { name: value.as_str().ok_or(TypeShape::EnumValue)?, doc, data: None }))
        .collect()
}

/// The variant of an object whose only property is its name.
fn tagged(schema: &Map<String, Value>) -> Result<Variant<'_>, TypeShape> {
    let properties = schema.get("properties").and_then(Value::as_object).ok_or(TypeShape::Untagged)?;
    let required = schema.get("required").and_then(Value::as_array).map_or(0, Vec::len);
    let mut entries = properties.iter();
    match (entries.next(), entries.next()) {
        (Some((name, data)), None) if required == 1 && data.get("const").is_none() => {
            let doc = schema.get("description").and_then(Value::as_str).unwrap_or_default();
            Ok(Variant { name, doc, data: Some(data) })
        }
        _ => Err(TypeShape::Tagged),
    }
}
