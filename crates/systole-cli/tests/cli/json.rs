//! Payloads as JSON on the command line: asked, converted, described.

use std::fs;

use serde_json::{Value, json};

use crate::kit::{Scratch, said};

const SCHEMA: &str = r#"<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" targetNamespace="urn:calc" elementFormDefault="qualified">
  <xs:element name="add"><xs:complexType><xs:sequence>
    <xs:element name="a" type="xs:int"/><xs:element name="b" type="xs:int"/>
  </xs:sequence></xs:complexType></xs:element>
</xs:schema>
"#;

const ORGANISM: &str = r#"organism: { name: calc }
clients:
  - { name: cli, calls: ["{urn:calc}add"] }
listeners:
  - { name: parrot, echo: true, schemas: [calc.xsd], accepts: ["{urn:calc}add"], replies: ["{urn:calc}add"] }
"#;

fn folder(name: &str) -> Scratch {
    let folder = Scratch::new(name);
    fs::write(folder.join("calc.xsd"), SCHEMA).unwrap();
    fs::write(folder.join("organism.yaml"), ORGANISM).unwrap();
    folder
}

#[test]
fn a_question_in_json_has_an_answer_in_json() {
    let folder = folder("json-ask");
    let message = r#"{"add": {"b": 2, "a": 1}}"#;
    let (code, out, err) = said(&folder, &["ask", "organism.yaml", message], "");
    assert_eq!((code, out.as_str(), err.as_str()), (0, "{\"add\":{\"a\":1,\"b\":2}}\n", ""));
    let (code, out, err) = said(&folder, &["ask", "organism.yaml", "-"], message);
    assert_eq!((code, out.as_str(), err.as_str()), (0, "{\"add\":{\"a\":1,\"b\":2}}\n", ""));
    let (code, out, _) = said(&folder, &["ask", "organism.yaml", "--envelope", message], "");
    assert!(code == 0 && out.starts_with("<message ") && out.contains("<a>1</a>"), "{out}");
    for (message, told) in [
        (r#"{"add": {"a": 1, "b": 3000000000}}"#, "/add/b: found '3000000000', expected whole number"),
        (r#"{"add": {"a": 1, "c": 2}}"#, "/add/c: no property 'c' is known here, expected 'a', 'b'"),
        (r#"{"add": {"a": 1}}"#, "/add: something is missing: expected 'b'"),
        (r#"{"sub": {}}"#, "the name of the payload: {\"add\": …}"),
        (r#"{"add": }"#, "line 1, column 9: not well-formed JSON"),
    ] {
        let (code, out, err) = said(&folder, &["ask", "organism.yaml", message], "");
        assert!(code == 2 && out.is_empty() && err.contains(told), "{message}: {code} {out}{err}");
    }
}

#[test]
fn a_payload_is_converted_both_ways() {
    let folder = folder("json-convert");
    let convert = |input: &str| said(&folder, &["xml", "json", "--schema", "calc.xsd"], input);
    let xml = "<add xmlns=\"urn:calc\"><a>1</a><b>2</b></add>";
    let json = "{\"add\":{\"a\":1,\"b\":2}}\n";
    assert_eq!(convert(xml), (0, json.to_owned(), String::new()));
    assert_eq!(convert(json), (0, xml.to_owned(), String::new()));
    let (code, out, err) = convert(r#"{"add": {"a": 1, "b": "x"}}"#);
    assert!(code == 1 && out.is_empty() && err.starts_with("-: /add/b: found 'x', expected whole number"), "{err}");
    let (code, out, err) = convert("<add xmlns='urn:calc'><a>1</a></add>");
    assert!(code == 1 && out.is_empty() && err.contains("<add>"), "{err}");
}

#[test]
fn the_schema_of_the_json_is_printed() {
    let folder = folder("json-schema");
    let (code, out, err) = said(&folder, &["schema", "organism.yaml", "add", "--json"], "");
    assert_eq!(code, 0, "{err}");
    let schema: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(schema["required"], json!(["a", "b"]), "{schema:#}");
    assert_eq!(schema["properties"]["a"]["type"], "integer", "{schema:#}");
}
