//! The contract of a server: a payload for each tool, one for each typed result, and one that loads skills.

use std::collections::BTreeSet;

use systole_core::vocab::{Name, ns};
use systole_xml::ladder::escape::{EscapeContext, escape_lossy};
use systole_xml::schema::PayloadSchema;

use super::session::Listed;
use super::shape::{Form, annotate, element_of};
use crate::listeners::mcp::{LockedFile, LockedSkill, LockedTool, MOST, McpLock, SkillFacts, ToolFacts};
use crate::mcp;
use crate::terminal::readable;

/// The contract of a server, and its lock.
#[derive(Debug)]
#[non_exhaustive]
pub struct Contract {
    /// The schema document.
    pub document: String,
    /// The lock, which has the name of the file that the document is to be in.
    pub lock: McpLock,
    /// Remarks for whoever imports it: tools that are not as the server has them.
    pub remarks: Vec<String>,
    /// The reason why the server's list of skills can't be read, if it can't: those of an import before are not gone.
    pub unlisted: Option<String>,
}

impl Contract {
    /// Makes the contract of the tools and the skills of a listener, and judges it as the organism does. A tool whose schemas
    /// make none takes any JSON, with a remark; so do the largest ones, where all together are too many.
    ///
    /// # Errors
    /// The reason why there is no contract: neither tools nor skills, or more than fits into its files.
    pub(super) fn of(listener: &Name, listed: Listed) -> Result<Self, String> {
        let Listed { protocol, server, mut tools, mut skills, mut remarks, unlisted } = listed;
        if tools.is_empty() && skills.is_empty() {
            return Err("the server lists no tools, so there is nothing to call: many show tools to a client that has logged in, or that says in `command` what it may use".to_owned());
        }
        skills.sort_by(|one, other| one.name.cmp(&other.name));
        tools.sort_by(|one, other| one.name.cmp(&other.name));
        tools.dedup_by(|other, one| {
            let is_double = one.name == other.name;
            if is_double {
                remarks
                    .push(format!("the server lists the tool '{}' twice: the first one is taken", readable(&one.name)));
            }
            is_double
        });
        let mut head = head(&McpLock::namespace_of(listener), &server);
        let mut taken: BTreeSet<String> = tools.iter().map(|facts| element_of(&facts.name)).collect();
        let mut declared: Vec<Declared> = tools.into_iter().map(|facts| Declared::of(facts, &mut taken)).collect();
        let loads = (!skills.is_empty()).then(|| free("skill".to_owned(), &mut taken));
        if let Some(loads) = &loads {
            declare_skills(&mut head, loads, &skills);
        }
        if judged(&head, &declared).is_err() {
            for tool in &mut declared {
                if let Err(why) = judged(&head, [&*tool]) {
                    tool.make_untyped();
                    remarks.push(remark(tool, &why));
                }
            }
        }
        let mut most = 1;
        while let Err(why) = judged(&head, &declared) {
            let mut rest: Vec<_> = declared.iter_mut().filter(|tool| !tool.is_untyped).collect();
            if rest.is_empty() {
                return Err(format!("the tools of the server make no contract: {why}"));
            }
            rest.sort_by_key(|tool| std::cmp::Reverse(tool.text.len()));
            for tool in rest.into_iter().take(most) {
                tool.make_untyped();
                remarks.push(remark(tool, "all tools together are too large for a contract"));
            }
            most *= 2;
        }
        let document = document(&head, &declared);
        let blake3 = blake3::hash(document.as_bytes()).to_hex().to_string();
        let contract = LockedFile { file: format!("{listener}.mcp.xsd"), blake3 };
        let locked = declared.into_iter().map(Declared::locked).collect();
        let skills = skills.into_iter().map(|facts| LockedSkill { blake3: facts.hash(), facts }).collect();
        let lock = McpLock::new(listener, &protocol, &server, contract, locked).skills(loads, skills);
        Ok(Self { lock, document, remarks, unlisted })
    }
}

/// A name that is not taken, and that is so from now on.
fn free(mut name: String, taken: &mut BTreeSet<String>) -> String {
    while !taken.insert(name.clone()) {
        name.push('_');
    }
    name
}

/// Appends the declaration of the payload that loads a skill: its documentation tells what each is for.
fn declare_skills(out: &mut String, element: &str, skills: &[SkillFacts]) {
    let mut about = "Loads a skill: instructions for a task. Load that of a task before its first step.\n".to_owned();
    let mut names = String::new();
    for SkillFacts { name, description, .. } in skills {
        let description: Vec<&str> = description.split_whitespace().collect();
        about.push_str(&format!("\n- {name}: {}", description.join(" ")));
        names.push_str("              <xs:enumeration value=\"");
        escape_lossy(&mut names, name, EscapeContext::Attribute);
        names.push_str("\"/>\n");
    }
    out.push_str(&format!("  <xs:element name=\"{element}\">\n"));
    annotate(out, 4, &about);
    out.push_str("    <xs:complexType>\n      <xs:all>\n        <xs:element name=\"name\">\n");
    annotate(out, 10, "The skill.");
    out.push_str(&format!(
        "          <xs:simpleType>\n            <xs:restriction base=\"xs:string\">\n{names}            </xs:restriction>\n          </xs:simpleType>\n        </xs:element>\n"
    ));
    out.push_str("        <xs:element name=\"file\" type=\"xs:string\" minOccurs=\"0\">\n");
    annotate(
        out,
        10,
        "A file of the skill, by its path in it, such as its instructions name it; SKILL.md without this.",
    );
    out.push_str("        </xs:element>\n      </xs:all>\n    </xs:complexType>\n  </xs:element>\n");
}

/// A tool with the declarations of its payloads.
struct Declared {
    facts: ToolFacts,
    element: String,
    result: Option<String>,
    is_untyped: bool,
    text: String,
}

impl Declared {
    fn of(facts: ToolFacts, taken: &mut BTreeSet<String>) -> Self {
        let element = element_of(&facts.name);
        let result = facts.output_schema.as_ref().map(|_| free(format!("{element}-result"), taken));
        let mut tool = Self { facts, element, result, is_untyped: false, text: String::new() };
        tool.declare();
        tool
    }

    fn declare(&mut self) {
        let Self { facts, element, result, is_untyped, text } = self;
        let form = |schema| if *is_untyped { Form::ANY } else { Form::of(schema) };
        text.clear();
        let about = facts.description.as_deref().or(facts.title.as_deref()).unwrap_or_default();
        form(&facts.input_schema).declare(text, element, about);
        if let Some((result, schema)) = result.as_ref().zip(facts.output_schema.as_ref()) {
            form(schema).declare(text, result, &format!("The result of {}.", facts.name));
        }
    }

    /// Lets the payloads have any JSON.
    fn make_untyped(&mut self) {
        self.is_untyped = true;
        self.declare();
    }

    fn locked(self) -> LockedTool {
        let Self { facts, element, result, is_untyped, .. } = self;
        LockedTool { element, result, is_untyped, blake3: facts.hashes(), facts }
    }
}

fn remark(tool: &Declared, why: &str) -> String {
    format!(
        "the tool '{}' takes any JSON as its arguments, and the server alone judges them: {}",
        readable(&tool.facts.name),
        readable(why)
    )
}

fn document<'t>(head: &str, tools: impl IntoIterator<Item = &'t Declared>) -> String {
    let mut document = head.to_owned();
    tools.into_iter().for_each(|tool| document.push_str(&tool.text));
    document.push_str("</xs:schema>\n");
    document
}

/// Judges the contract of tools as the organism does.
fn judged<'t>(head: &str, tools: impl IntoIterator<Item = &'t Declared>) -> Result<(), String> {
    let document = document(head, tools);
    if document.len() as u64 > MOST {
        return Err(format!("it has {} bytes, and a file of an import has {MOST} at most", document.len()));
    }
    PayloadSchema::from_xsd("the contract", &document).map(drop).map_err(|error| error.to_string())
}

fn head(namespace: &str, server: &str) -> String {
    let mut about = String::new();
    escape_lossy(&mut about, server, EscapeContext::Text);
    format!(
        r#"<?xml version="1.0" encoding="UTF-8"?>
<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" xmlns:j="{json}" xmlns="{namespace}" targetNamespace="{namespace}" elementFormDefault="qualified">
  <xs:annotation>
    <xs:documentation>The tools of {about}, as `systole mcp import` read them. Replies without a schema of their own are content of {content}.</xs:documentation>
  </xs:annotation>
  <xs:import namespace="{json}"/>
  <xs:complexType name="json">
    <xs:annotation><xs:documentation>Any JSON value, as XSLT's json-to-xml writes it.</xs:documentation></xs:annotation>
    <xs:choice>
      <xs:element ref="j:map"/>
      <xs:element ref="j:array"/>
      <xs:element ref="j:string"/>
      <xs:element ref="j:number"/>
      <xs:element ref="j:boolean"/>
      <xs:element ref="j:null"/>
    </xs:choice>
  </xs:complexType>
"#,
        json = ns::JSON,
        content = mcp::NAMESPACE,
    )
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::{Value, json};
    use systole_core::vocab::XmlLimits;
    use systole_xml::ladder::{Raw, parse};
    use systole_xml::schema::{Catalog, Validator};

    use super::super::shape::Carried;
    use super::*;

    fn facts(name: &str, input: Value, output: Option<Value>) -> ToolFacts {
        let mut facts = ToolFacts { name: name.to_owned(), input_schema: input, ..ToolFacts::default() };
        facts.output_schema = output;
        facts
    }

    fn listed(tools: Vec<ToolFacts>, skills: Vec<SkillFacts>) -> Listed {
        let (protocol, server, remarks) = ("2025-11-25".to_owned(), "test <1>".to_owned(), Vec::new());
        Listed { protocol, server, tools, skills, remarks, unlisted: None }
    }

    fn contract(tools: Vec<ToolFacts>) -> (Contract, Vec<PayloadSchema>) {
        contract_of(listed(tools, Vec::new()))
    }

    fn contract_of(listed: Listed) -> (Contract, Vec<PayloadSchema>) {
        let contract = Contract::of(&Name::parse("tools").unwrap(), listed).unwrap();
        let schemas = PayloadSchema::from_xsd("tools.mcp.xsd", &contract.document);
        let schemas = schemas.unwrap_or_else(|error| panic!("{error}\n{}", contract.document));
        (contract, schemas)
    }

    /// Sends JSON through the payload, validates that, and returns the JSON of the tool.
    fn through(schema: Value, arguments: &Value) -> Result<Value, String> {
        let (contract, schemas) = contract(vec![facts("call", schema.clone(), None)]);
        assert!(contract.remarks.is_empty(), "{schema}: {:?}", contract.remarks);
        let form = Form::of(&schema);
        let Carried { json: payload, is_whole } = form.to_payload(&arguments.to_string())?;
        assert!(is_whole, "{arguments} by {schema}");
        let limits = XmlLimits::default();
        let xml = schemas[0].from_json(&payload, &limits).map_err(|error| error.to_string())?.into_xml();
        let canonical = parse(&Raw::new(xml), &limits).map_err(|error| error.to_string())?;
        let mut validator = Validator::new(Arc::new(Catalog::only(schemas.iter().cloned())));
        let proof = validator.validate(canonical).map_err(|error| error.to_string())?;
        Ok(serde_json::from_str(&form.to_tool(&schemas[0].to_json(proof.payload()))?).unwrap())
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
                "one": { "type": "array", "items": { "type": "integer" }, "minItems": 1, "maxItems": 1 },
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
            json!({ "text": "", "tags": ["x"], "one": [1] }),
            json!({ "text": "", "tags": ["x"], "grid": [[1, 2], []], "with space/and_x0020_": "w" }),
        ] {
            assert_eq!(through(schema.clone(), &arguments), Ok(arguments));
        }
        for broken in [
            json!({ "text": "a" , "tags": ["x"], "count": 0 }),
            json!({ "text": "a", "tags": ["x"], "level": "middle" }),
            json!({ "text": "a", "tags": ["x"], "one": 1 }),
            json!({ "tags": ["x"] }),
            json!({ "text": 7, "tags": [] }),
        ] {
            assert!(through(schema.clone(), &broken).is_err(), "{broken}");
        }
    }

    /// The JSON of a payload: the arguments of a call as the organism has them.
    fn named(schema: &Value, arguments: &Value) -> Result<Value, String> {
        let (contract, schemas) = contract(vec![facts("call", schema.clone(), None)]);
        assert!(contract.remarks.is_empty(), "{schema}: {:?}", contract.remarks);
        let limits = XmlLimits::default();
        let xml = schemas[0].from_json(&arguments.to_string(), &limits).map_err(|error| error.to_string())?.into_xml();
        let canonical = parse(&Raw::new(xml), &limits).map_err(|error| error.to_string())?;
        let mut validator = Validator::new(Arc::new(Catalog::only(schemas.iter().cloned())));
        let proof = validator.validate(canonical).map_err(|error| error.to_string())?;
        Ok(serde_json::from_str(&schemas[0].to_json(proof.payload())).unwrap())
    }

    #[test]
    fn the_object_of_a_payload_is_that_of_the_tool() {
        let with = |schema: Value| json!({ "type": "object", "properties": { "v": schema }, "required": ["v"] });
        let texts = json!({ "type": "array", "items": { "type": "string" } });
        let nil = json!({ "type": "null" });
        let nullable = json!({ "type": ["array", "null"], "items": { "type": "string" } });
        let any = json!({ "type": ["string", "null"] });
        let wide =
            json!({ "type": "object", "properties": { "a": { "type": "string" } }, "additionalProperties": true });
        let names =
            ["x y", "1", "a/b", "_x0041_", "größe", "$ref", "{urn:a}b", "xml:lang", "a\"<&\n\t b ", "x_x0020_y"];
        let named_so: serde_json::Map<String, Value> =
            names.iter().map(|name| (String::from(*name), json!({ "type": "integer" }))).collect();
        let all: serde_json::Map<String, Value> = names.iter().map(|name| (String::from(*name), json!(1))).collect();
        for (schema, values) in [
            // Null, an empty array and one with items are told apart, and so is none.
            (with(json!({ "anyOf": [texts, nil] })), vec![json!(null), json!([]), json!(["a"])]),
            (with(json!({ "oneOf": [nil, texts] })), vec![json!(null), json!([]), json!(["a"])]),
            (with(nullable.clone()), vec![json!(null), json!([]), json!(["a", ""])]),
            (with(texts.clone()), vec![json!([]), json!(["a"])]),
            (with(json!({ "type": "array", "items": any })), vec![json!([]), json!([null]), json!([null, "a"])]),
            (
                with(json!({ "type": "array", "items": texts, "maxItems": 1 })),
                vec![json!([]), json!([[]]), json!([["a"]])],
            ),
            (with(json!({ "type": "array", "items": { "type": "string" }, "minItems": 1 })), vec![json!(["a"])]),
            (with(wide.clone()), vec![json!({ "a": "b", "c": 1 }), json!({})]),
        ] {
            for value in values {
                let arguments = json!({ "v": value });
                assert_eq!(through(schema.clone(), &arguments), Ok(arguments.clone()), "{schema}");
                assert_eq!(named(&schema, &arguments), Ok(arguments), "{schema}");
            }
        }
        let branches = json!([{ "properties": { "b": { "type": "integer" } } }, { "required": ["a"] }]);
        for (schema, arguments) in [
            (wide, json!({ "a": "b", "c": 1 })),
            (json!({ "type": "object", "properties": named_so }), Value::Object(all)),
            (json!({ "type": "object", "properties": { "@a": {}, "$": {} } }), json!({ "@a": 1, "$": [2] })),
            (json!({ "type": "object", "properties": { "": {} } }), json!({ "": 1 })),
            (
                json!({ "type": "object", "properties": { "a": {} }, "patternProperties": { "^x": {} }, "additionalProperties": false }),
                json!({ "a": 1, "x1": 2 }),
            ),
            (
                json!({ "type": "object", "properties": { "a": { "type": "string" } }, "anyOf": branches }),
                json!({ "a": "b", "b": 1 }),
            ),
            (
                json!({ "type": "object", "properties": { "v": { "$ref": "#/$defs/a", "properties": { "b": {} } } }, "$defs": { "a": { "type": "object", "properties": { "a": {} } } } }),
                json!({ "v": { "a": 1, "b": 2 } }),
            ),
        ] {
            assert_eq!(through(schema.clone(), &arguments), Ok(arguments.clone()), "{schema}");
            assert_eq!(named(&schema, &arguments), Ok(arguments), "{schema}");
        }
        // An array that is required is there; what the schema does not name is no argument.
        assert!(named(&with(texts), &json!({})).unwrap_err().contains("'v' is missing"));
        let closed = json!({ "type": "object", "properties": { "a": { "type": "string" } } });
        assert!(named(&closed, &json!({ "a": "b", "c": 1 })).unwrap_err().contains("no property 'c' is known"));
    }

    #[test]
    fn a_result_is_taken_only_if_it_has_what_its_schema_describes() {
        let of = |schema: Value| json!({ "type": "object", "properties": { "x": schema }, "required": ["x"] });
        for (schema, taken, refused) in [
            (
                json!({ "type": ["boolean", "null"], "enum": [true] }),
                vec![json!(true)],
                vec![json!(false), json!(null)],
            ),
            (json!({ "type": ["boolean", "null"], "const": true }), vec![json!(true)], vec![json!(false), json!(null)]),
            (
                json!({ "type": ["boolean", "null"], "enum": [false, null] }),
                vec![json!(false), json!(null)],
                vec![json!(true)],
            ),
            (json!({ "type": "boolean", "const": false }), vec![json!(false)], vec![json!(true), json!(null)]),
            (json!({ "type": "boolean", "enum": [true, false] }), vec![json!(true), json!(false)], vec![json!(null)]),
            (json!({ "type": ["string", "null"], "enum": ["a"] }), vec![json!("a")], vec![json!("b"), json!(null)]),
            (json!({ "type": "string", "enum": ["a", "bc"], "const": "a" }), vec![json!("a")], vec![json!("bc")]),
            (json!({ "type": "string", "enum": ["a", "bc"], "maxLength": 1 }), vec![json!("a")], vec![json!("bc")]),
            (json!({ "type": "integer", "enum": [1, 9], "minimum": 2 }), vec![json!(9)], vec![json!(1)]),
        ] {
            let schema = of(schema);
            for value in taken {
                let value = json!({ "x": value });
                assert_eq!(through(schema.clone(), &value), Ok(value), "{schema}");
            }
            for value in refused {
                let value = json!({ "x": value });
                assert!(through(schema.clone(), &value).is_err(), "{schema} takes {value}");
            }
        }
        // A property without a name in the schema is left out of what is judged.
        let form = Form::of(&of(json!({ "type": "string" })));
        let carried = form.to_payload(r#"{"y":1,"x":"a"}"#).unwrap();
        assert_eq!((&*carried.json, carried.is_whole), (r#"{"x":"a"}"#, false));
        assert_eq!(form.to_payload(r#"{"y":1}"#).unwrap().json, "{}", "the contract misses x");
        let closed = json!({ "type": "object", "properties": {}, "additionalProperties": false });
        assert!(Form::of(&closed).to_payload(r#"{"y":1}"#).unwrap_err().contains("/y: there is no such property"));
    }

    #[test]
    fn a_value_that_is_any_json_tells_its_schema_to_a_reader() {
        let wide = json!({ "type": "object", "properties": { "a": { "description": "An <a>." } }, "additionalProperties": true });
        let (contract, _) = contract(vec![facts("call", wide, None)]);
        assert!(
            contract.document.contains("JSON Schema: {\"") && contract.document.contains("An &lt;a&gt;."),
            "{}",
            contract.document
        );
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
        assert_eq!(form.to_tool("{}").as_deref(), Ok("{}"));
        assert_eq!(form.to_tool(r#"{"json":{"a":1.50}}"#).as_deref(), Ok(r#"{"a":1.50}"#), "digits are kept");
        assert!(form.to_tool(r#"{"json":[1]}"#).unwrap_err().contains("are an object"));
        let (_, schemas) = contract(vec![facts("call", json!({ "type": "object" }), None)]);
        let example = schemas[0].example().unwrap();
        let example = form.to_tool(&schemas[0].to_json(example)).unwrap();
        assert!(
            serde_json::from_str::<Value>(&example).unwrap().is_object(),
            "an example is a call that works: {example}"
        );
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

    #[test]
    fn references_that_make_a_bomb_become_any_json() {
        let mut definitions = json!({ "x0": { "type": "object", "properties": { "a": { "type": "string" } } } });
        for n in 1..30 {
            let to = json!({ "$ref": format!("#/$defs/x{}", n - 1) });
            let properties: serde_json::Map<_, _> = ('a'..='h').map(|c| (c.to_string(), to.clone())).collect();
            definitions[format!("x{n}")] = json!({ "type": "object", "properties": properties });
        }
        let root = json!({ "$ref": "#/$defs/x29" });
        let bomb = json!({ "type": "object", "properties": { "r": root }, "$defs": definitions });
        let arguments = json!({ "r": { "a": { "b": {} } } });
        assert_eq!(through(bomb, &arguments), Ok(arguments));
        // A description that each of many references repeats.
        let about = json!({ "type": "string", "description": "x".repeat(10_000) });
        let properties: serde_json::Map<_, _> =
            (0..500).map(|n| (format!("p{n}"), json!({ "$ref": "#/$defs/x" }))).collect();
        let long = json!({ "type": "object", "properties": properties, "$defs": { "x": about } });
        let (contract, _) = contract(vec![facts("call", long, None)]);
        assert!(contract.document.len() < 10_000, "{}", contract.document.len());
    }

    #[test]
    fn a_tool_whose_schema_makes_no_contract_is_untyped_and_the_others_stay() {
        let with = |schema: Value| json!({ "type": "object", "properties": { "x": schema } });
        let values: Vec<_> = (0..100_000).map(|n| format!("v{n}")).collect();
        let (contract, schemas) = contract(vec![
            facts("bounds", with(json!({ "type": "integer", "minimum": 5, "maximum": 1 })), None),
            facts("values", with(json!({ "enum": values })), Some(with(json!({})))),
            facts("plain", with(json!({ "type": "integer" })), None),
            facts(&"n".repeat(3000), with(json!({ "type": "integer" })), None),
        ]);
        assert_eq!(schemas.len(), 5);
        let texts: Vec<_> = contract.lock.tools.iter().filter(|tool| tool.is_untyped).collect();
        assert_eq!(texts.len(), 1, "{:?}", contract.remarks);
        assert_eq!(texts[0].facts.name, "bounds");
        let [remark] = &contract.remarks[..] else { panic!("{:?}", contract.remarks) };
        assert!(remark.contains("'bounds'") && remark.contains("bound lies above"), "{remark}");
        assert!(contract.document.contains("<xs:element name=\"x\" minOccurs=\"0\" type=\"xs:integer\"/>"));
    }

    #[test]
    fn many_large_tools_fit_into_a_contract_all_the_same() {
        let properties: serde_json::Map<_, _> =
            (0..300).map(|n| (format!("p{n}"), json!({ "type": "string" }))).collect();
        let wide = json!({ "type": "object", "properties": properties });
        let tools: Vec<_> = (0..230).map(|n| facts(&format!("t{n}"), wide.clone(), None)).collect();
        let (contract, schemas) = contract(tools);
        assert_eq!(schemas.len(), 230);
        assert!(!contract.remarks.is_empty());
    }

    #[test]
    fn a_tool_that_is_listed_twice_and_a_list_without_tools_are_told() {
        let (contract, _) = contract(vec![facts("a", json!({}), None), facts("a", json!(true), None)]);
        assert_eq!(contract.lock.tools[0].facts.input_schema, json!({}));
        assert!(contract.remarks[0].contains("'a' twice"), "{:?}", contract.remarks);
        let none = Contract::of(&Name::parse("tools").unwrap(), listed(Vec::new(), Vec::new()));
        assert!(none.unwrap_err().contains("lists no tools"));
    }

    #[test]
    fn skills_are_one_payload_that_tells_what_each_is_for() {
        let skill = |name: &str, description: &str| SkillFacts {
            name: name.to_owned(),
            description: description.to_owned(),
            ..SkillFacts::default()
        };
        let skills = vec![skill("refunds", "Pays <back>,\n if asked."), skill("booking", "Books.")];
        let tools = vec![facts("skill", json!({}), None)];
        let (contract, schemas) = contract_of(listed(tools, skills));
        assert_eq!(contract.lock.loads.as_deref(), Some("skill_"), "a tool has the name");
        assert_eq!(contract.lock.accepts().count(), 2);
        let schema = schemas.iter().find(|schema| schema.qname().local() == "skill_").unwrap();
        let words = schema.words();
        assert!(words.contains("- booking: Books.\n- refunds: Pays <back>, if asked."), "{words}");
        let limits = XmlLimits::default();
        let judged = |json: &str| {
            let xml = schema.from_json(json, &limits).map_err(|error| error.to_string())?.into_xml();
            let canonical = parse(&Raw::new(xml), &limits).map_err(|error| error.to_string())?;
            let mut validator = Validator::new(Arc::new(Catalog::only(schemas.iter().cloned())));
            validator.validate(canonical).map(drop).map_err(|error| error.to_string())
        };
        assert_eq!(judged(r#"{"file": "references/fees.md", "name": "refunds"}"#), Ok(()));
        assert_eq!(judged(r#"{"name": "booking"}"#), Ok(()));
        assert!(judged(r#"{"name": "other"}"#).unwrap_err().contains("one of"));
    }
}
