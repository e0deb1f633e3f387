//! The contract of a server: a payload for each tool, and one for each typed result.

use std::collections::BTreeSet;

use systole_core::vocab::Name;

use super::shape::{Form, element_of};
use crate::listeners::mcp::{LockedFile, LockedTool, McpLock, ToolFacts};
use crate::mcp;

/// The contract of a server, and its lock.
#[derive(Debug)]
#[non_exhaustive]
pub struct Contract {
    /// The schema document.
    pub document: String,
    /// The lock, which has the name of the file that the document is to be in.
    pub lock: McpLock,
}

impl Contract {
    /// Makes the contract of the tools of a listener.
    pub(super) fn of(listener: &Name, protocol: &str, server: &str, mut tools: Vec<ToolFacts>) -> Self {
        tools.sort_by(|one, other| one.name.cmp(&other.name));
        tools.dedup_by(|one, other| one.name == other.name);
        let namespace = McpLock::namespace_of(listener);
        let mut document = head(&namespace, server);
        let mut taken: BTreeSet<String> = tools.iter().map(|facts| element_of(&facts.name)).collect();
        let mut locked = Vec::with_capacity(tools.len());
        for facts in tools {
            let element = element_of(&facts.name);
            let about = facts.description.as_deref().or(facts.title.as_deref()).unwrap_or_default();
            Form::of(&facts.input_schema).declare(&mut document, &element, about);
            let result = facts.output_schema.as_ref().map(|schema| {
                let mut result = format!("{element}-result");
                while !taken.insert(result.clone()) {
                    result.push('_');
                }
                let about = format!("The result of {}.", facts.name);
                Form::of(schema).declare(&mut document, &result, &about);
                result
            });
            locked.push(LockedTool { element, result, blake3: facts.hashes(), facts });
        }
        document.push_str("</xs:schema>\n");
        let blake3 = blake3::hash(document.as_bytes()).to_hex().to_string();
        let contract = LockedFile { file: format!("{listener}.mcp.xsd"), blake3 };
        Self { lock: McpLock::new(listener, protocol, server, contract, locked), document }
    }
}

fn head(namespace: &str, server: &str) -> String {
    let mut about = String::new();
    let escape = systole_xml::ladder::escape::escape_lossy;
    escape(&mut about, server, systole_xml::ladder::escape::EscapeContext::Text);
    format!(
        r#"<?xml version="1.0" encoding="UTF-8"?>
<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" xmlns="{namespace}" targetNamespace="{namespace}" elementFormDefault="qualified">
  <xs:annotation>
    <xs:documentation>The tools of {about}, as `systole mcp import` read them. Replies without a schema of their own are content of {content}.</xs:documentation>
  </xs:annotation>
  <xs:simpleType name="json">
    <xs:annotation><xs:documentation>JSON, as a text.</xs:documentation></xs:annotation>
    <xs:restriction base="xs:string"><xs:pattern value="\{{\}}|\s*([\{{\[][\s\S]*[\}}\]]|&quot;[\s\S]*&quot;|true|false|null|-?[0-9][0-9.eE+\-]*)\s*"/></xs:restriction>
  </xs:simpleType>
"#,
        content = mcp::NAMESPACE,
    )
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::{Value, json};
    use systole_core::vocab::XmlLimits;
    use systole_xml::ladder::{Raw, parse};
    use systole_xml::schema::{Catalog, PayloadSchema, Validator};

    use super::*;

    fn facts(name: &str, input: Value, output: Option<Value>) -> ToolFacts {
        let mut facts = ToolFacts { name: name.to_owned(), input_schema: input, ..ToolFacts::default() };
        facts.output_schema = output;
        facts
    }

    fn contract(tools: Vec<ToolFacts>) -> (Contract, Vec<PayloadSchema>) {
        let contract = Contract::of(&Name::parse("tools").unwrap(), "2025-11-25", "test <1>", tools);
        let schemas = PayloadSchema::from_xsd("tools.mcp.xsd", &contract.document);
        let schemas = schemas.unwrap_or_else(|error| panic!("{error}\n{}", contract.document));
        (contract, schemas)
    }

    /// Sends JSON through the payload, validates that, and returns the JSON of the tool.
    fn through(schema: Value, arguments: &Value) -> Result<Value, String> {
        let (_, schemas) = contract(vec![facts("call", schema.clone(), None)]);
        let form = Form::of(&schema);
        let payload = form.to_payload(arguments.clone()).map_err(|error| format!("{error:?}"))?;
        let limits = XmlLimits::default();
        let xml = schemas[0].from_json(&payload.to_string(), &limits).map_err(|error| error.to_string())?.into_xml();
        let canonical = parse(&Raw::new(xml), &limits).map_err(|error| error.to_string())?;
        let mut validator = Validator::new(Arc::new(Catalog::only(schemas.iter().cloned())));
        let proof = validator.validate(canonical).map_err(|error| error.to_string())?;
        form.to_tool(serde_json::from_str(&schemas[0].to_json(proof.payload())).unwrap())
    }

    #[test]
    fn arguments_come_through_a_payload_as_they_were() {
        let address =
            json!({ "type": "object", "properties": { "street": { "type": "string" } }, "required": ["street"] });
        let schema = json!({
            "$schema": "http://json-schema.org/draft-07/schema#",
            "type": "object",
            "definitions": { "address": address },
            "properties": {
                "text": { "type": "string", "description": "A <text>." },
                "count": { "type": "integer", "minimum": 1, "maximum": 9_007_199_254_740_991_i64 },
                "ratio": { "type": "number", "exclusiveMinimum": 0 },
                "flag": { "type": "boolean", "default": false },
                "level": { "enum": ["low", "high"] },
                "tags": { "type": "array", "items": { "type": "string" } },
                "home": { "$ref": "#/definitions/address" },
                "others": { "type": "array", "items": { "$ref": "#/definitions/address" }, "maxItems": 3 },
                "maybe": { "anyOf": [{ "type": "string" }, { "type": "null" }], "default": null },
                "filter": { "oneOf": [{ "type": "string" }, { "type": "object" }] },
                "any": {},
                "map": { "type": "object", "additionalProperties": { "type": "number" } },
                "grid": { "type": "array", "items": { "type": "array", "items": { "type": "number" } } },
                "with space/and_x0020_": { "type": "string" },
                "2nd": { "type": ["integer", "null"] },
            },
            "required": ["text", "tags"],
        });
        for arguments in [
            json!({ "text": "a\n <b> & \u{e9}", "tags": [] }),
            json!({ "text": "", "tags": ["x", ""], "count": 9_007_199_254_740_991_i64, "ratio": 0.5, "flag": true }),
            json!({ "text": "", "tags": ["x"], "level": "low", "home": { "street": "s" }, "others": [{ "street": "t" }] }),
            json!({ "text": "", "tags": ["x"], "maybe": null, "filter": { "a": [1, null] }, "any": null, "2nd": null }),
            json!({ "text": "", "tags": ["x"], "maybe": "m", "filter": "f", "any": [1.5], "map": { "a b": 1 }, "2nd": 2 }),
            json!({ "text": "", "tags": ["x"], "grid": [[1, 2], []], "with space/and_x0020_": "w" }),
        ] {
            assert_eq!(through(schema.clone(), &arguments), Ok(arguments));
        }
        for broken in [
            json!({ "text": "a" , "tags": ["x"], "count": 0 }),
            json!({ "text": "a", "tags": ["x"], "level": "middle" }),
            json!({ "tags": ["x"] }),
            json!({ "text": 7, "tags": [] }),
        ] {
            assert!(through(schema.clone(), &broken).is_err(), "{broken}");
        }
    }

    #[test]
    fn each_tool_can_be_called_whatever_its_schema_is() {
        let cyclic = json!({
            "type": "object",
            "properties": { "node": { "$ref": "#" }, "list": { "type": "array", "items": { "$ref": "#/properties/node" } } }
        });
        for (schema, arguments) in [
            (json!({}), json!({ "a": 1 })),
            (json!(true), json!({ "a": 1 })),
            (json!({ "type": "object" }), json!({ "a": [1] })),
            (json!({ "type": "object" }), json!({})),
            (json!({ "type": "object", "additionalProperties": false }), json!({})),
            (
                json!({ "type": "object", "properties": {}, "additionalProperties": { "type": "string" } }),
                json!({ "k": "v" }),
            ),
            (json!({ "oneOf": [{ "type": "object", "properties": { "a": {} } }] }), json!({ "a": 2 })),
            (json!({ "type": "object", "required": ["a"] }), json!({ "a": 2 })),
            (json!({ "$ref": "#/$defs/none" }), json!({ "a": 2 })),
            (cyclic, json!({ "node": { "node": {} }, "list": [{}] })),
        ] {
            assert_eq!(through(schema.clone(), &arguments), Ok(arguments), "{schema}");
        }
    }

    #[test]
    fn an_absent_json_is_an_empty_object() {
        let form = Form::of(&json!({ "type": "object" }));
        assert_eq!(form.to_tool(json!({})), Ok(json!({})));
        assert!(form.to_tool(json!({ "json": "{a}" })).unwrap_err().contains("no JSON"));
        let (_, schemas) = contract(vec![facts("call", json!({ "type": "object" }), None)]);
        let example = schemas[0].example().unwrap();
        let example = form.to_tool(serde_json::from_str(&schemas[0].to_json(example)).unwrap());
        assert_eq!(example, Ok(json!({})), "an example is a call that works");
    }

    #[test]
    fn elements_of_tools_and_results_are_distinct_names() {
        let object = || json!({ "type": "object", "properties": { "a": { "type": "string" } } });
        let (contract, schemas) = contract(vec![
            facts("b.c/d", object(), Some(object())),
            facts("a", object(), Some(object())),
            facts("a-result", object(), None),
            facts("1", object(), None),
        ]);
        let names: Vec<_> = schemas.iter().map(|schema| schema.qname().local().to_owned()).collect();
        assert_eq!(names.len(), 6, "{names:?}");
        assert!(names.contains(&"a-result_".to_owned()) && names.contains(&"b.c_x002F_d".to_owned()), "{names:?}");
        assert_eq!(contract.lock.accepts().count(), 4);
        assert_eq!(contract.lock.results().count(), 2);
    }
}
