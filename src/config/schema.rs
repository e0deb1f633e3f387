//! The JSON Schema of an `organism.yaml`, for editors.

/// The rules for an `organism.yaml`, as JSON Schema (draft 2020-12): `schemas/organism.schema.json`.
pub const SCHEMA: &str = include_str!("../../schemas/organism.schema.json");

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use serde_json::{Map, Value, json};

    use super::*;
    use crate::config::{ConfigFinding, Look, Mistake, REFERENCE, UNADVISED, read};

    fn findings(source: &str) -> Vec<ConfigFinding> {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/config");
        match read("o.yaml", source, &directory, UNADVISED, Look::File).0 {
            Ok(config) => config.warnings,
            Err(findings) => findings,
        }
    }

    /// The mappings of the schema, each with a file (as JSON, which is YAML) around it that is right but for what stands for it.
    fn mappings(schema: &Value) -> Vec<(&Map<String, Value>, Value, &'static str)> {
        let mapping = |pointer: &str| schema.pointer(pointer).and_then(Value::as_object).expect(pointer);
        let root = json!({ "organism": { "name": "o" }, "listeners": [{ "name": "l", "echo": true }] });
        let inside = |pointer: &'static str, place: &'static str, kept: Value| {
            let mut file = root.clone();
            let (parent, key) = place.rsplit_once('/').expect("a pointer");
            let parent = file.pointer_mut(parent).expect("it is there");
            match parent {
                Value::Array(entries) => entries[0] = kept,
                parent => parent[key] = kept,
            }
            (mapping(pointer), file, place)
        };
        let of = |kind: &str, value: Value| json!({ "name": "l", kind: value });
        let mut all =
            vec![(mapping(""), root.clone(), ""), inside("/properties/organism", "/organism", json!({ "name": "o" }))];
        for key in ["limits", "meta", "retention", "gateway"] {
            let (pointer, place) = match key {
                "limits" => ("/properties/limits", "/limits"),
                "meta" => ("/properties/meta", "/meta"),
                "retention" => ("/properties/retention", "/retention"),
                _ => ("/properties/gateway", "/gateway"),
            };
            all.push(inside(pointer, place, json!({})));
        }
        all.push(inside("/$defs/budget", "/budget", json!({})));
        let mut tls = inside("/properties/gateway/properties/tls", "/gateway", json!({ "tls": {} }));
        tls.2 = "/gateway/tls";
        all.push(tls);
        let backend = json!({ "name": "b", "provider": "openai", "model": "m", "price": {} });
        for (pointer, place) in [
            ("/properties/llm", "/llm"),
            ("/properties/llm/properties/backends/items", "/llm/backends/0"),
            ("/properties/llm/properties/backends/items/properties/price", "/llm/backends/0/price"),
        ] {
            let mut file = inside(pointer, "/llm", json!({ "backends": [backend.clone()] }));
            file.2 = place;
            all.push(file);
        }
        let mut client = root.clone();
        client["clients"] = json!([{ "name": "cli" }]);
        all.push((mapping("/properties/clients/items"), client, "/clients/0"));
        all.push((mapping("/properties/listeners/items"), root.clone(), "/listeners/0"));
        for (pointer, kind, place, kept) in [
            (
                "/properties/listeners/items/properties/remote",
                "remote",
                "/listeners/0/remote",
                json!({ "mode": "push" }),
            ),
            ("/properties/listeners/items/properties/model", "model", "/listeners/0/model", json!({})),
            ("/properties/listeners/items/properties/job", "job", "/listeners/0/job", json!({ "owner": "l" })),
            ("/properties/listeners/items/properties/jobs", "jobs", "/listeners/0/jobs", json!({})),
        ] {
            let mut file = root.clone();
            file["listeners"][0] = of(kind, kept);
            all.push((mapping(pointer), file, place));
        }
        all
    }

    fn keys(mapping: &Map<String, Value>) -> BTreeSet<&str> {
        mapping["properties"].as_object().expect("a mapping has keys").keys().map(String::as_str).collect()
    }

    #[test]
    fn it_has_the_keys_of_the_reader() {
        let schema: Value = serde_json::from_str(SCHEMA).unwrap();
        for (mapping, mut file, place) in mappings(&schema) {
            file.pointer_mut(place).unwrap()["no-such-key"] = json!(1);
            let found = findings(&file.to_string());
            let known = found.iter().find_map(|finding| match finding.mistake() {
                Mistake::UnknownKey { key, known, .. } if key == "no-such-key" => Some(known),
                _ => None,
            });
            let known: BTreeSet<&str> = known.unwrap_or_else(|| panic!("{place}: {found:?}")).iter().copied().collect();
            assert_eq!(keys(mapping), known, "{place}");
            assert_eq!(mapping["additionalProperties"], json!(false), "{place}");
        }
    }

    #[test]
    fn it_has_the_words_and_the_needed_keys_of_the_reader() {
        let schema: Value = serde_json::from_str(SCHEMA).unwrap();
        for (mapping, file, place) in mappings(&schema) {
            for (key, property) in mapping["properties"].as_object().unwrap() {
                let mut file = file.clone();
                let written = file.pointer_mut(place).unwrap().as_object_mut().unwrap();
                if property.get("const").is_some() {
                    // The key sets the kind of the listener, of which there is one.
                    written.remove("echo");
                }
                written.insert(key.clone(), json!("no-such-word"));
                let found = findings(&file.to_string());
                let choices = found.iter().find_map(|finding| match finding.mistake() {
                    Mistake::Choice { found, choices, .. } if found == "no-such-word" => Some(choices.clone()),
                    _ => None,
                });
                let written = match (property.get("enum"), property.get("const"), property["type"] == json!("boolean"))
                {
                    (Some(words), ..) => {
                        let word = |word: &Value| word.as_str().map_or_else(|| word.to_string(), str::to_owned);
                        Some(words.as_array().expect("words").iter().map(word).collect())
                    }
                    (None, Some(_), _) | (None, None, true) => Some(vec!["true".to_owned(), "false".to_owned()]),
                    (None, None, false) => None,
                };
                let choices = choices.map(|choices| choices.into_iter().map(str::to_owned).collect::<Vec<_>>());
                assert_eq!(written, choices, "{place}: {key}: {found:?}");
            }
            for key in mapping.get("required").and_then(Value::as_array).into_iter().flatten() {
                let mut file = file.clone();
                file.pointer_mut(place).unwrap().as_object_mut().unwrap().remove(key.as_str().unwrap());
                let found = findings(&file.to_string());
                let is_missing = |finding: &ConfigFinding| match finding.mistake() {
                    Mistake::MissingKey { key: missing, .. } => missing == key,
                    _ => false,
                };
                assert!(found.iter().any(is_missing), "{place}: {key}: {found:?}");
            }
        }
    }

    #[test]
    fn its_defaults_are_those_of_the_reference() {
        let schema: Value = serde_json::from_str(SCHEMA).unwrap();
        // Keys that are off by default stand there as comments.
        let text: String = REFERENCE.lines().map(|line| format!("{}\n", line.replacen("# ", "", 1))).collect();
        for (mapping, _, place) in mappings(&schema) {
            for (key, property) in mapping["properties"].as_object().unwrap() {
                assert!(text.contains(&format!("{key}:")), "the reference has no {key} of {place:?}");
                let Some(default) = property.get("default") else { continue };
                let plain = default.as_str().map_or_else(|| default.to_string(), str::to_owned);
                let says = |line: &str| {
                    let written = format!("{key}: ");
                    let mut values = line.match_indices(&written).map(|(at, _)| &line[at + written.len()..]);
                    values.any(|value| value.starts_with(&plain))
                };
                assert!(text.lines().any(says), "the reference has no {key}: {plain} of {place:?}");
            }
        }
    }
}
