//! The agreement between reading and writing of a type.

use serde_json::{Map, Value};

use super::at;
use crate::schema::contract::{ContractError, TypePlace, TypeShape};

/// Checks that a type is read by the same rules as it is written.
///
/// schemars describes both directions separately; if they differ, no single schema is right.
pub(super) fn check(type_name: &str, read: &Value, written: &Value) -> Result<(), ContractError> {
    let (Value::Object(read), Value::Object(written)) = (read, written) else { return Ok(()) };
    fields(type_name, read, written)?;
    // Enums hold the schemas of their variants; they nest as deep as the types do in the source.
    for key in ["oneOf", "anyOf"] {
        let branches =
            |schema: &Map<String, Value>| schema.get(key).and_then(Value::as_array).cloned().unwrap_or_default();
        for (read, written) in branches(read).iter().zip(&branches(written)) {
            check(type_name, read, written)?;
        }
    }
    Ok(())
}

fn fields(type_name: &str, read: &Map<String, Value>, written: &Map<String, Value>) -> Result<(), ContractError> {
    let place = |field: &str| TypePlace { type_name: type_name.to_owned(), field: Some(field.to_owned()) };
    let (readable, writable) = (properties(read), properties(written));
    let one_way = |field: &&String| !readable.contains_key(*field) || !writable.contains_key(*field);
    if let Some(field) = readable.keys().chain(writable.keys()).find(one_way) {
        return Err(at(&place(field))(TypeShape::OneWay));
    }
    let required = |schema: &Map<String, Value>, field: &str| {
        schema
            .get("required")
            .and_then(Value::as_array)
            .is_some_and(|required| required.iter().any(|name| name == field))
    };
    for (field, schema) in &readable {
        if required(read, field) && !required(written, field) {
            return Err(at(&place(field))(TypeShape::SkippedButRequired));
        }
        let marked = |mark: &str| schema.get(mark) == Some(&Value::Bool(true));
        if marked("readOnly") || marked("writeOnly") {
            return Err(at(&place(field))(TypeShape::OneWay));
        }
        check(type_name, schema, writable.get(field).unwrap_or(&Value::Null))?;
    }
    Ok(())
}

fn properties(schema: &Map<String, Value>) -> Map<String, Value> {
    schema.get("properties").and_then(Value::as_object).cloned().unwrap_or_default()
}
