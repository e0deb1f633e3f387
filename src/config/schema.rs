//! The JSON Schema of an `organism.yaml`, for editors.

/// The rules for an `organism.yaml`, as JSON Schema (draft 2020-12): `schemas/organism.schema.json`. It is made of the types that
/// read the file.
pub const SCHEMA: &str = include_str!("../../schemas/organism.schema.json");

#[cfg(test)]
mod tests {
    use schemars::generate::SchemaSettings;
    use serde_json::{Map, Value, json};

    use super::*;
    use crate::config::REFERENCE;
    use crate::config::organism::RootKeys;

    #[test]
    fn it_is_made_of_the_types_that_read_the_file() {
        let mut schema = SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<RootKeys<'static>>();
        schema.insert("title".to_owned(), json!("organism.yaml"));
        let made = format!("{:#}\n", schema.as_value());
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            std::fs::write(concat!(env!("CARGO_MANIFEST_DIR"), "/schemas/organism.schema.json"), made).unwrap();
        } else {
            assert_eq!(made, SCHEMA, "UPDATE_GOLDEN=1 writes it");
        }
    }

    /// The mappings of a schema whose keys are known.
    fn mappings<'s>(schema: &'s Value, found: &mut Vec<&'s Map<String, Value>>) {
        match schema {
            Value::Object(map) => {
                found.extend(map.get("properties").and_then(Value::as_object));
                map.values().for_each(|inner| mappings(inner, found));
            }
            Value::Array(forms) => forms.iter().for_each(|inner| mappings(inner, found)),
            _ => {}
        }
    }

    #[test]
    fn its_defaults_are_those_of_the_reference() {
        let schema: Value = serde_json::from_str(SCHEMA).unwrap();
        // Keys that are off by default stand there as comments.
        let text: String = REFERENCE.lines().map(|line| format!("{}\n", line.replacen("# ", "", 1))).collect();
        let mut found = Vec::new();
        mappings(&schema, &mut found);
        assert!(found.len() > 15, "{}", found.len());
        for (key, property) in found.into_iter().flatten() {
            assert!(text.contains(&format!("{key}:")), "the reference has no {key}");
            let Some(default) = property.get("default") else { continue };
            let plain = default.as_str().map_or_else(|| default.to_string(), str::to_owned);
            let says = |line: &str| {
                let written = format!("{key}: ");
                let mut values = line.match_indices(&written).map(|(at, _)| &line[at + written.len()..]);
                values.any(|value| value.starts_with(&plain))
            };
            assert!(text.lines().any(says), "the reference has no {key}: {plain}");
        }
    }
}
