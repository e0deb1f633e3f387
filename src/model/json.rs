//! Answers of models as JSON: where it stands in a text, and the schema that a provider holds an answer to.
//!
//! An answer is the JSON alone, or one code fence with it alone, behind the thoughts of the model if it writes them in tags.
//! Whatever else stands there may take the JSON back, announce a draft or quote another party, so it is refused: the model is
//! told, and answers again.

use serde_json::{Map, Value, json};
use systole_core::core::{Contract, Silence};
use systole_core::vocab::{BrokenRule, Fault, FaultCode};
use systole_xml::schema::Catalog;

/// Elements in which models think, at the beginning of an answer.
const THOUGHTS: [&str; 3] = ["think", "thinking", "thought"];

/// The JSON of an answer; empty if it says nothing.
///
/// # Errors
/// A fault for a text with anything else in it.
pub(super) fn json_in(answer: &str) -> Result<&str, Fault> {
    let text = behind_thoughts(answer.trim())?;
    let Some(fenced) = text.strip_prefix("```") else {
        return if text.is_empty() || text.starts_with(['{', '[']) { Ok(text) } else { Err(refused(PROSE)) };
    };
    let (info, rest) = fenced.split_once('\n').ok_or_else(|| refused(FENCE))?;
    let is_json = info.trim().is_empty() || info.trim().eq_ignore_ascii_case("json");
    let body = rest.strip_suffix("```").filter(|body| body.is_empty() || body.ends_with('\n'));
    let body = body.filter(|body| is_json && !body.contains("```")).ok_or_else(|| refused(FENCE))?.trim();
    if body.is_empty() || body.starts_with(['{', '[']) { Ok(body) } else { Err(refused(PROSE)) }
}

/// The text behind the thoughts at its beginning.
fn behind_thoughts(text: &str) -> Result<&str, Fault> {
    let lower = text.to_ascii_lowercase();
    let Some(name) = THOUGHTS.into_iter().find(|name| lower.starts_with(&format!("<{name}>"))) else { return Ok(text) };
    let (start, end) = (format!("<{name}>"), format!("</{name}>"));
    // Of thoughts that end twice, or in which others begin, nobody can tell where the answer begins.
    let once = lower.matches(&end).count() == 1 && lower.matches(&start).count() == 1;
    let behind = lower.find(&end).filter(|_| once).map(|at| at + end.len());
    behind.map(|at| text[at..].trim_start()).ok_or_else(|| refused(THOUGHT))
}

const PROSE: &str =
    "the answer has words beside its JSON, or no JSON: write the JSON alone, without a word before or behind it";
const FENCE: &str =
    "a code fence holds the JSON alone, begins with ```json and ends with ```, and nothing stands before or behind it";
const THOUGHT: &str = "the thoughts in tags have no clear end: end them once, and write the JSON behind that";

fn refused(rule: &str) -> Fault {
    let rule = BrokenRule { rule: rule.to_owned(), at: None, example: None };
    Fault { rule: Some(Box::new(rule)), ..Fault::new(FaultCode::Malformed, "an answer is not JSON alone") }
}

/// Completes a refusal with an example of a payload that may be sent, as JSON.
pub(super) fn explained(fault: Fault, contract: &Contract, catalog: &Catalog) -> Fault {
    let BrokenRule { rule, at, example } =
        fault.rule.as_deref().cloned().unwrap_or(BrokenRule { rule: String::new(), at: None, example: None });
    let of = |payload| catalog.to_named_json(catalog.get(payload)?.example()?);
    let example = example.or_else(|| contract.replies.iter().chain(&contract.calls).find_map(of));
    Fault { rule: Some(Box::new(BrokenRule { rule, at, example })), ..fault }
}

/// The schema of all answers that a contract allows, for providers that hold a model to one: an object with one of the replies.
/// `None` where an answer may be something else: several calls at once, or nothing.
pub(super) fn answer_schema(contract: &Contract, catalog: &Catalog) -> Option<Value> {
    if !contract.calls.is_empty() || contract.replies.is_empty() || contract.silence == Silence::Idle {
        return None;
    }
    let (mut properties, mut definitions) = (Map::new(), Map::new());
    for reply in &contract.replies {
        let Value::Object(mut named) = catalog.named_json_schema(reply)? else { return None };
        let Some(Value::Object(own)) = named.remove("properties") else { return None };
        properties.extend(own);
        if let Some(Value::Object(own)) = named.remove("$defs") {
            // Names of types of several payloads may clash.
            if own.keys().any(|name| definitions.contains_key(name)) {
                return None;
            }
            definitions.extend(own);
        }
    }
    let is_open = |schemas: &Map<String, Value>| schemas.values().any(|schema| is_untyped(schema) || is_free(schema));
    if is_recursive(&definitions) || is_open(&properties) || is_open(&definitions) {
        return None;
    }
    let mut schema = json!({ "type": "object", "properties": properties, "additionalProperties": false });
    if contract.replies.len() == 1 {
        schema["required"] = properties.keys().cloned().collect::<Vec<_>>().into();
    }
    if !definitions.is_empty() {
        schema["$defs"] = definitions.into();
    }
    Some(reduced(&schema))
}

/// Returns whether a definition refers to itself, directly or through others: providers refuse such schemas.
fn is_recursive(definitions: &Map<String, Value>) -> bool {
    fn references<'v>(value: &'v Value, found: &mut Vec<&'v str>) {
        match value {
            Value::Object(members) => {
                let own = members.get("$ref").and_then(Value::as_str);
                found.extend(own.and_then(|reference| reference.strip_prefix("#/$defs/")));
                members.values().for_each(|member| references(member, found));
            }
            Value::Array(items) => items.iter().for_each(|item| references(item, found)),
            _ => {}
        }
    }
    definitions.keys().any(|start| {
        let (mut seen, mut pending) = (Vec::new(), vec![start.as_str()]);
        while let Some(name) = pending.pop() {
            let mut found = Vec::new();
            definitions.get(name).into_iter().for_each(|definition| references(definition, &mut found));
            if found.contains(&start.as_str()) {
                return true;
            }
            pending.extend(found.into_iter().filter(|name| !seen.contains(name)));
            seen.push(name);
        }
        false
    })
}

/// Returns whether a schema has values that a provider would be held to have none of: any properties, tuples, or values of any
/// type. Recurses as deep as the schema.
fn is_free(schema: &Value) -> bool {
    let Value::Object(members) = schema else { return false };
    members.iter().any(|(keyword, value)| match (keyword.as_str(), value) {
        ("patternProperties" | "prefixItems" | "allOf" | "not" | "if", _) => true,
        // Attributes of any name have a pattern, and are left out.
        ("additionalProperties", value) => *value != Value::Bool(false) && !members.contains_key("propertyNames"),
        ("properties" | "$defs", Value::Object(inner)) => {
            inner.values().any(|inner| is_untyped(inner) || is_free(inner))
        }
        ("items", items) => is_untyped(items) || is_free(items),
        ("anyOf" | "oneOf", Value::Array(options)) => options.iter().any(is_free),
        _ => false,
    })
}

/// Returns whether a schema doesn't tell the type of its values.
fn is_untyped(schema: &Value) -> bool {
    !is_typed(schema) && !["anyOf", "oneOf"].iter().any(|keyword| schema.get(keyword).is_some())
}

/// The part of a schema that all providers take. What is left out is judged when the answer is there. Recurses as deep as the
/// schema, of which the model of the payload bounds the depth.
fn reduced(schema: &Value) -> Value {
    let Value::Object(members) = schema else { return schema.clone() };
    let mut out = Map::new();
    for (keyword, value) in members {
        let kept = match (keyword.as_str(), value) {
            ("properties" | "$defs", Value::Object(inner)) => {
                let inner: Map<_, _> = inner.iter().map(|(name, schema)| (name.clone(), reduced(schema))).collect();
                inner.into()
            }
            ("items", schema) => reduced(schema),
            // Alternatives of what may stand together have no types of their own.
            ("anyOf" | "oneOf", Value::Array(options)) if options.iter().all(is_typed) => {
                out.insert("anyOf".to_owned(), options.iter().map(reduced).collect::<Vec<_>>().into());
                continue;
            }
            ("type", Value::Array(types)) => {
                let option = |name: &Value| json!({ "type": name });
                out.insert("anyOf".to_owned(), types.iter().map(option).collect::<Vec<_>>().into());
                continue;
            }
            ("type" | "required" | "enum" | "const" | "description" | "$ref", value) => value.clone(),
            ("additionalProperties", _) => false.into(),
            _ => continue,
        };
        out.insert(keyword.clone(), kept);
    }
    Value::Object(out)
}

fn is_typed(schema: &Value) -> bool {
    ["type", "$ref", "const", "enum"].iter().any(|keyword| schema.get(keyword).is_some())
}

/// Returns whether each object of a schema requires all its properties, as the strict mode of Chat Completions demands.
pub(super) fn is_strict(schema: &Value) -> bool {
    match schema {
        Value::Object(members) => {
            let required = members.get("required").and_then(Value::as_array).map_or(0, Vec::len);
            let own = members.get("properties").and_then(Value::as_object).map_or(0, Map::len);
            required == own && members.values().all(is_strict)
        }
        Value::Array(items) => items.iter().all(is_strict),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_its_json_alone() {
        for (answer, json) in [
            ("{\"a\": 1}", "{\"a\": 1}"),
            (" [{}]\n", "[{}]"),
            ("```json\n{\"a\": 1}\n```", "{\"a\": 1}"),
            ("```\n{}\n```\n", "{}"),
            ("```JSON \n\n{}\n\n```", "{}"),
            ("", ""),
            ("<think>{\"a\": 0}? No: 1.</think>\n{\"a\": 1}", "{\"a\": 1}"),
            ("<Thinking>\nhm\n</thinking>```json\n{}\n```", "{}"),
            // The reader of JSON refuses what stands behind the first value.
            ("{} {}", "{} {}"),
        ] {
            assert_eq!(json_in(answer).unwrap_or_else(|fault| panic!("{answer}: {fault:?}")), json, "{answer}");
        }
    }

    #[test]
    fn what_may_take_the_json_back_is_refused() {
        for answer in [
            "Here it is: {\"a\": 1}",
            "I can't help with that.",
            "Draft:\n```json\n{\"a\": 1}\n```",
            "```json\n{\"a\": 1}\n```\nThat would be wrong, of course.",
            "```json\n{\"a\": 1}\n```\n```json\n{\"a\": 2}\n```",
            "```json\n{\"a\": 1}",
            "```json\n{\"a\": 1}```",
            "```yaml\na: 1\n```",
            "```json\nsorry\n```",
            "```{\"a\": 1}```",
            "<think>{\"a\": 1}",
            "<think>a</think>{\"a\": 1}</think>{\"a\": 2}",
            "<think>a <think>b</think> {\"a\": 1}",
            "<think>a</think> so: {\"a\": 1}",
            "\"{}\"",
        ] {
            let fault = json_in(answer).expect_err(answer);
            assert_eq!(fault.code, FaultCode::Malformed, "{answer}");
            assert!(fault.rule.is_some_and(|broken| !broken.rule.is_empty()), "{answer}");
        }
    }

    #[test]
    fn values_that_a_provider_would_leave_out_are_free() {
        let typed = || json!({ "type": "string" });
        let object = |inner: Value| json!({ "type": "object", "properties": { "a": inner, "not": typed() } });
        for free in [
            json!({ "type": "object", "additionalProperties": typed() }),
            json!({ "type": "array", "prefixItems": [typed()] }),
            json!({ "type": "array", "items": {} }),
            json!({ "anyOf": [typed(), { "type": "object", "additionalProperties": true }] }),
            json!({}),
        ] {
            assert!(is_free(&object(free.clone())), "{free}");
        }
        for held in [
            typed(),
            json!({ "oneOf": [{ "required": ["a"] }, { "required": ["b"] }], "type": "object" }),
            json!({ "type": "object", "additionalProperties": false }),
            json!({ "type": "object", "additionalProperties": typed(), "propertyNames": { "pattern": "^@" } }),
        ] {
            assert!(!is_free(&object(held.clone())), "{held}");
        }
    }

    #[test]
    fn the_schema_for_providers_has_the_keywords_that_all_of_them_take() {
        let schema = json!({
            "type": "object",
            "properties": {
                "a": { "type": ["integer", "string"], "minimum": 1, "pattern": "^x$" },
                "b": { "type": "array", "items": { "$ref": "#/$defs/c" }, "minItems": 1 },
            },
            "required": ["a"],
            "oneOf": [{ "required": ["a"] }, { "required": ["b"] }],
        });
        let expected = json!({
            "type": "object",
            "properties": {
                "a": { "anyOf": [{ "type": "integer" }, { "type": "string" }] },
                "b": { "type": "array", "items": { "$ref": "#/$defs/c" } },
            },
            "required": ["a"],
        });
        assert_eq!(reduced(&schema), expected);
        assert!(!is_strict(&expected));
        assert!(is_strict(&json!({ "type": "object", "properties": { "a": {} }, "required": ["a"] })));
        let definitions = |of: &str| json!({ "c": { "items": { "$ref": of } }, "d": { "$ref": "#/$defs/c" } });
        assert!(is_recursive(definitions("#/$defs/d").as_object().unwrap()));
        assert!(!is_recursive(definitions("#/$defs/e").as_object().unwrap()));
    }
}
