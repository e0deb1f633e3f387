//! Contracts that are written as JSON Schema: each rule, each refusal with its place, and random schemas with Python's
//! `jsonschema` as the judge.

use serde_json::{Value, json};
use systole_xml::ladder::{Raw, parse};
use systole_xml::schema::{Catalog, ContractError, PayloadSchema, Validator};
use systole_xml::vocab::XmlLimits;

use super::judges::{self, Case};
use crate::random_schemas::tree::Dice;

fn read(schema: &Value) -> Vec<PayloadSchema> {
    let text = schema.to_string();
    PayloadSchema::from_json_schema("folder/order.schema.json", &text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn one(schema: &Value) -> PayloadSchema {
    read(schema).remove(0)
}

/// The XML of a payload, and its JSON again; or the first mistake.
fn through(schema: &PayloadSchema, value: &Value) -> Result<(String, Value), String> {
    let mut validator = Validator::new(Catalog::only([schema.clone()]).into());
    let named = json!({ schema.qname().local(): value }).to_string();
    let valid = validator.payload_of_json(named.as_bytes(), |_| true, &XmlLimits::default());
    let valid = valid.map_err(|refusal| refusal.to_string())?;
    let back = validator.catalog().to_named_json(valid.payload()).unwrap();
    let back: Value = serde_json::from_str(&back).unwrap();
    Ok((valid.payload().as_str().to_owned(), back[schema.qname().local()].clone()))
}

fn object(properties: Value, required: &[&str]) -> Value {
    json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false })
}

#[test]
fn an_object_is_an_element_and_its_json_is_that_of_the_schema() {
    let schema = json!({
        "$id": "urn:example:shop:v1",
        "type": "object",
        "description": "An order.",
        "properties": {
            "@id": { "type": "integer" },
            "buyer": { "type": "string", "minLength": 1 },
            "unit price": { "type": ["number", "null"] },
            "line": { "type": "array", "items": { "$ref": "#/$defs/Line" } },
            "tags": { "type": "array", "items": { "type": "string" }, "minItems": 2 },
            "note": { "anyOf": [{ "type": "string" }, { "type": "null" }], "default": "none" },
            "gift": { "const": true },
            "way": { "enum": ["sent", "fetched"] },
        },
        "required": ["buyer", "line"],
        "$defs": { "Line": { "type": "object", "properties": { "article": { "type": "string" }, "part": { "$ref": "#/$defs/Line" } } } },
    });
    let schema = one(&schema);
    assert_eq!(schema.qname().to_string(), "{urn:example:shop:v1}order");
    let value = json!({
        "@id": 7, "buyer": "Ada", "unit price": null, "line": [{ "article": "tea", "part": {} }], "tags": ["a", "b"],
        "note": null, "gift": true, "way": "sent",
    });
    let (xml, back) = through(&schema, &value).unwrap();
    assert_eq!(
        xml,
        "<order xmlns=\"urn:example:shop:v1\" id=\"7\"><buyer>Ada</buyer><unit_x0020_price \
         xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" xsi:nil=\"true\"></unit_x0020_price>\
         <line><article>tea</article><part></part></line><tags>a</tags><tags>b</tags><note \
         xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" xsi:nil=\"true\"></note><gift>true</gift><way>sent</way></order>"
    );
    assert_eq!(back, value);
    // The order of properties is free, and a required array may be empty.
    let (xml, back) = through(&schema, &json!({ "line": [], "buyer": "Ada" })).unwrap();
    assert_eq!(xml, "<order xmlns=\"urn:example:shop:v1\"><buyer>Ada</buyer></order>");
    assert_eq!(back, json!({ "buyer": "Ada", "line": [] }));
    for (value, told) in [
        (json!({ "buyer": "Ada" }), "/order: the property 'line' is missing: write it, as [] if it has no items"),
        (json!({ "line": [] }), "/order: "),
        (json!({ "buyer": "", "line": [] }), "/order/buyer: "),
        (json!({ "buyer": "Ada", "line": [], "tags": ["a"] }), "/order"),
        (json!({ "buyer": "Ada", "line": [], "tags": [] }), "/order/tags: the array is empty"),
        (json!({ "buyer": "Ada", "line": [], "gift": false }), "/order/gift: "),
        (json!({ "buyer": "Ada", "line": [], "gift": "1" }), "/order/gift: found a string, expected true or false"),
        (
            json!({ "buyer": "Ada", "line": [], "unit price": "INF" }),
            "/order/unit price: found a string, expected a number",
        ),
        (json!({ "buyer": "Ada", "line": [], "@id": "07" }), "/order/@id: found a string, expected a whole number"),
        (
            json!({ "buyer": "Ada", "line": [], "@xsi:type": "x" }),
            "/order/@xsi:type: no property '@xsi:type' is known here",
        ),
        (json!({ "buyer": "Ada", "line": {} }), "/order/line: found an object, expected an array"),
        (json!({ "$": [{ "buyer": "Ada" }] }), "no property '$' is known here"),
    ] {
        let refusal = through(&schema, &value).unwrap_err();
        assert!(refusal.starts_with(told) || refusal.contains(told), "{value}: {refusal}");
    }
    assert!(schema.json_schema()["properties"]["note"]["description"].as_str().unwrap().contains("Default: \"none\"."));
}

#[test]
fn definitions_are_payloads_where_the_document_is_none() {
    let schema = json!({ "$defs": {
        "TakeOrder": object(json!({ "line": { "$ref": "#/$defs/line" } }), &["line"]),
        "line": object(json!({ "article": { "type": "string" } }), &[]),
        "age": { "type": "integer", "minimum": 0.5, "exclusiveMaximum": 130 },
    } });
    let schemas = read(&schema);
    let names: Vec<String> = schemas.iter().map(|schema| schema.qname().to_string()).collect();
    assert_eq!(names, ["take-order", "line", "age"], "without an $id they have no namespace");
    assert_eq!(through(&schemas[0], &json!({ "line": {} })).unwrap().0, "<take-order><line></line></take-order>");
    assert_eq!(through(&schemas[2], &json!(1)).unwrap(), ("<age>1</age>".to_owned(), json!(1)));
    assert!(through(&schemas[2], &json!(0)).is_err() && through(&schemas[2], &json!(130)).is_err());
}

#[test]
fn the_first_example_of_the_author_is_the_example() {
    let mut schema = object(json!({ "a": { "type": "string", "pattern": "^x+$" } }), &["a"]);
    schema["examples"] = json!([{ "a": "xxx" }]);
    assert_eq!(one(&schema).example().unwrap().as_str(), "<order><a>xxx</a></order>");
    schema["examples"] = json!([{ "a": "y" }]);
    let error = PayloadSchema::from_json_schema("order.json", &schema.to_string()).unwrap_err();
    assert!(error.to_string().contains("/examples/0: the example is not valid: /order/a: "), "{error}");
}

#[test]
fn what_has_no_counterpart_is_refused_with_its_place() {
    let within = |property: Value| object(json!({ "p": property }), &[]);
    for (schema, told) in [
        (json!([]), "a JSON Schema is an object"),
        (json!({}), "it describes no value"),
        (json!({ "$id": "orders", "type": "object" }), "/$id: it becomes the namespace"),
        (json!({ "type": "array", "items": {} }), "a payload can't be an array"),
        (json!({ "type": ["object", "null"] }), "a payload can't be null"),
        (json!({ "type": "object", "required": ["a"] }), "/required/0: it is required, and not among"),
        (within(json!({ "type": "text" })), "/properties/p/type: expected a type"),
        (within(json!({ "$ref": "other.json" })), "/properties/p/$ref: only references within the document"),
        (within(json!({ "$ref": "#/$defs/none" })), "/properties/p/$ref: there is no '#/$defs/none'"),
        (within(json!({ "$ref": "#/properties/p" })), "/properties/p: its references lead in a circle"),
        (within(json!({ "type": "array", "items": { "type": "string" }, "maxItems": 0 })), "no array has so few items"),
        (within(json!({ "type": "string", "minLength": -1 })), "/properties/p/minLength: expected a whole number"),
        (
            within(json!({ "type": "integer", "minimum": 2, "maximum": 1 })),
            "/properties/p: no whole number lies between",
        ),
        (within(json!(3)), "/properties/p: expected a schema"),
        (
            within(json!({ "type": "string", "pattern": "a(?=x)" })),
            "/properties/p/pattern: the pattern 'a(?=x)' can't be judged in linear time",
        ),
        (within(json!({ "type": "number", "multipleOf": 0 })), "/properties/p/multipleOf: expected a number above 0"),
        (within(json!({ "type": ["text", "null"] })), "/properties/p/type/0: expected a type"),
        (
            within(json!({ "anyOf": [{ "type": "string" }, { "$ref": "#/properties/p" }] })),
            "/properties/p: its references lead in a circle",
        ),
        (
            within(json!({ "unevaluatedProperties": false, "type": "object" })),
            "/properties/p/unevaluatedProperties: contracts can't have this keyword",
        ),
        (within(json!({ "items": [true], "type": "array" })), "/properties/p/items: schemas of single items"),
        (within(json!({ "oneOf": {} })), "/properties/p/oneOf: expected an array"),
        (within(json!({ "oneOf": [] })), "/properties/p/oneOf: expected at least one schema"),
        (within(json!({ "type": [] })), "/properties/p/type: expected at least one type"),
        (within(json!({ "type": ["null", "null"] })), "/properties/p/type/1: the type is repeated"),
        (json!({ "type": "object", "required": "a" }), "/required: expected an array"),
        (within(json!({ "type": "object", "required": [1] })), "/properties/p/required/0: expected a string"),
        (within(json!({ "anyOf": [{ "required": "a" }, {}] })), "/properties/p/anyOf/0/required: expected an array"),
        (within(json!({ "type": "string", "enum": "a" })), "/properties/p/enum: expected an array"),
        (within(json!({ "type": "string", "description": 1 })), "/properties/p/description: expected a string"),
        (within(json!({ "type": "integer", "minimum": "1" })), "/properties/p/minimum: expected a number"),
        (within(json!({ "type": "integer", "exclusiveMinimum": true })), "/exclusiveMinimum: expected a number"),
        (within(json!({ "type": "array", "items": 1 })), "/properties/p/items: expected a schema"),
        (within(json!({ "uniqueItems": 1 })), "/properties/p/uniqueItems: expected true or false"),
        (within(json!({ "dependentRequired": { "a": "b" } })), "/dependentRequired/a: expected an array"),
        (json!({ "type": "object", "properties": [] }), "/properties: expected an object"),
        (json!({ "type": "object", "$defs": { "a": { "type": "text" } } }), "/$defs/a/type: expected a type"),
        (within(json!({ "type": "string", "$id": "urn:p" })), "/properties/p/$id: a schema within a document"),
        (within(json!({ "$ref": "#place" })), "/properties/p/$ref: anchors are not followed"),
        (within(json!({ "$ref": "#/a%2" })), "/properties/p/$ref: a '%' stands before two hexadecimal digits"),
        (
            within(json!({ "type": "string", "maxLength": 1e30 })),
            "/maxLength: expected a whole number from 0 to 2^53 - 1",
        ),
        (within(json!({ "type": "string", "minLength": 2, "maxLength": 1 })), "/properties/p: no string is so long"),
        (within(json!({ "type": "number", "minimum": 2, "maximum": 1 })), "/properties/p: no number lies between"),
        (
            within(json!({ "type": "number", "minimum": 1, "exclusiveMaximum": 1 })),
            "/properties/p: no number lies between",
        ),
        (
            json!({ "anyOf": [{ "type": "string" }, { "type": "integer" }] }),
            "a payload is an object, or a value of one type",
        ),
        (within(json!({ "enum": ["a\u{0}"] })), "/properties/p/enum/0: XML can't carry"),
        (
            within(json!({ "enum": ["a", 1.5, null], "type": ["boolean", "null"] })),
            "/properties/p/enum/0: the value is not of the type of the schema: leave it out",
        ),
        (within(json!({ "enum": ["a", 1], "type": "string" })), "/properties/p/enum/1: the value is not of the type"),
        (
            within(json!({ "oneOf": [{ "const": false }, { "const": 1.5 }], "type": "boolean" })),
            "/properties/p/oneOf/1/const: the value is not of the type",
        ),
        (
            json!({ "additionalProperties": false, "$defs": { "a": { "type": "string" } } }),
            "/additionalProperties: 'additionalProperties' narrows a value, and the document describes none",
        ),
        (json!({ "required": ["a"] }), "/required: 'required' narrows a value, and the document describes none"),
        (object(json!({ "$": { "type": "string" } }), &[]), "/properties/$: a property can't have this name"),
        (object(json!({ "@a b": { "type": "string" } }), &[]), "/properties/@a b: '@' marks an attribute"),
        (object(json!({ "@a": { "type": "object" } }), &[]), "/properties/@a: an attribute ('@') is a string"),
        (
            within(json!({ "anyOf": [object(json!({ "@k": { "type": "string" } }), &["@k"]), { "type": "null" }] })),
            "/properties/p: a value that may be null has a required attribute",
        ),
        (object(json!({ "a": { "$ref": "#" } }), &["a"]), "each value would need another one in it without end"),
    ] {
        let error = PayloadSchema::from_json_schema("order.json", &schema.to_string()).expect_err(&schema.to_string());
        assert!(error.to_string().contains(told), "{schema}: {error}");
        assert!(matches!(error, ContractError::Document { ref document, .. } if document == "order.json"), "{error}");
    }
    let far = r#"{"type":"object","properties":{"p":{"type":"number","minimum":-1e400}}}"#;
    let error = PayloadSchema::from_json_schema("order.json", far).unwrap_err();
    assert!(error.to_string().contains("/properties/p/minimum: the bound lies past the numbers of 64 bits"), "{error}");
    let text = "{\n  \"type\": \"object\",\n  \"properties\": { \"p\": {\"type\": \"text\"} }\n}";
    let Err(ContractError::Document { at, .. }) = PayloadSchema::from_json_schema("order.json", text) else { panic!() };
    assert_eq!((at.line, at.column), (3, 33));
    let Err(ContractError::Document { at, problem, .. }) = PayloadSchema::from_json_schema("order.json", "{\n  ]")
    else {
        panic!()
    };
    assert_eq!((at.line, at.column), (2, 3), "{problem}");
}

/// The XML of a value in the vocabulary, and the text of its JSON again.
fn told(schema: &PayloadSchema, json: &str) -> Result<(String, String), String> {
    let mut validator = Validator::new(Catalog::only([schema.clone()]).into());
    let name = schema.qname().local();
    let valid = validator.payload_of_json(format!("{{\"{name}\":{json}}}").as_bytes(), |_| true, &XmlLimits::default());
    let valid = valid.map_err(|refusal| refusal.to_string())?;
    let back = schema.to_named_json(valid.payload(), name);
    Ok((valid.payload().as_str().to_owned(), back[name.len() + 4..back.len() - 1].to_owned()))
}

#[test]
fn a_value_without_a_form_travels_in_the_vocabulary_of_json() {
    let schema = one(&json!({
        "$id": "urn:example:shop:v1",
        "type": "object",
        "properties": {
            "pet": { "oneOf": [{ "$ref": "#/$defs/Cat" }, { "$ref": "#/$defs/Dog" }] },
            "pets": { "type": "array", "items": { "anyOf": [{ "$ref": "#/$defs/Cat" }, { "type": "string" }] } },
            "scores": { "type": "object", "additionalProperties": { "type": "integer", "minimum": 0 }, "description": "Points." },
            "grid": { "type": "array", "items": { "type": "array", "items": { "type": "number" } } },
            "any": {},
        },
        "required": ["pet"],
        "$defs": {
            "Cat": { "type": "object", "properties": { "kind": { "const": "cat" }, "lives": { "type": "integer" } }, "required": ["kind", "lives"] },
            "Dog": { "type": "object", "properties": { "kind": { "const": "dog" }, "friends": { "type": "array", "items": { "$ref": "#/$defs/Dog" } } }, "required": ["kind"] },
        },
    }));
    let json = r#"{"pet":{"kind":"dog","friends":[{"kind":"dog"}]},"pets":["x",{"kind":"cat","lives":9}],"scores":{"a b":1,"":123456789012345678901234567890},"grid":[[1.50,-0.0],[]],"any":[null,true,1E+400,"<\n>"]}"#;
    let (xml, back) = told(&schema, json).unwrap();
    assert_eq!(back, json, "digits, order and keys are kept");
    let fn_ = "xmlns=\"http://www.w3.org/2005/xpath-functions\"";
    assert_eq!(
        xml,
        format!(
            "<order xmlns=\"urn:example:shop:v1\"><pet><map {fn_}><string key=\"kind\">dog</string><array key=\"friends\"><map><string key=\"kind\">dog</string></map></array></map></pet>\
             <pets><string {fn_}>x</string></pets><pets><map {fn_}><string key=\"kind\">cat</string><number key=\"lives\">9</number></map></pets>\
             <scores><map {fn_}><number key=\"a b\">1</number><number key=\"\">123456789012345678901234567890</number></map></scores>\
             <grid><array {fn_}><number>1.50</number><number>-0.0</number></array></grid><grid><array {fn_}></array></grid>\
             <any><array {fn_}><null></null><boolean>true</boolean><number>1E+400</number><string>&lt;\n&gt;</string></array></any></order>"
        )
    );
    for (json, refusal) in [
        (
            r#"{"pet":{"kind":"cow"}}"#,
            "/order/pet: <pet>: the property 'kind' is \"cow\", expected one of \"cat\", \"dog\"",
        ),
        (r#"{"pet":{"kind":"cat"}}"#, "/order/pet: <pet>: the property 'lives' is missing"),
        (
            r#"{"pet":{"kind":"cat","lives":"9"}}"#,
            "/order/pet/lives: <pet>, at /lives: found \"9\", expected a whole number",
        ),
        (
            r#"{"pet":{"kind":"dog"},"scores":{"a":-1}}"#,
            "/order/scores/a: <scores>, at /a: found -1, expected at least 0",
        ),
        (
            r#"{"pet":{"kind":"dog"},"grid":[[1,[]]]}"#,
            "/order/grid/0/1: <grid>, at /1: found an array, expected a number",
        ),
        (r#"{"pet":{"kind":"dog"},"any":"\u0000"}"#, "/order/any: XML can't carry"),
        (r#"{"pet":{"kind":"dog"},"any":{"a":1,"a":2}}"#, "the key 'a' is repeated"),
    ] {
        let told = told(&schema, json).unwrap_err();
        assert!(told.contains(refusal), "{json}: {told}");
    }
    assert!(schema.example().unwrap().as_str().contains("<pet><map "), "{:?}", schema.example());
    // The words for a model, and the part for a message, have the vocabulary.
    assert!(schema.prompt().contains("http://www.w3.org/2005/xpath-functions"), "{}", schema.prompt());
    let document = schema.embeddable_document().unwrap().as_str();
    assert!(document.contains("xpath-functions") && document.contains("xs:import"), "{document}");
    assert_eq!(schema.json_schema()["properties"]["scores"]["additionalProperties"]["minimum"], 0);
    assert!(schema.json_schema()["$defs"]["Cat"]["properties"]["lives"].is_object(), "{}", schema.json_schema());
}

#[test]
fn xml_in_the_vocabulary_is_judged_as_its_json() {
    let schema = one(&object(
        json!({ "v": { "type": "object", "additionalProperties": { "type": ["integer", "array", "null"] } } }),
        &["v"],
    ));
    let judge = |content: &str| {
        let xml =
            format!("<order><v>{content}</v></order>").replace("F=", "xmlns='http://www.w3.org/2005/xpath-functions'");
        let canonical = parse(&Raw::new(xml), &XmlLimits::default()).unwrap();
        Validator::new(Catalog::only([schema.clone()]).into())
            .validate(canonical)
            .map(drop)
            .map_err(|error| error.to_string())
    };
    for taken in [
        "<map F=/>",
        "<map F=>\n  <number key='a'>1.0</number> <array key='b'><string>x</string></array></map>",
        "<j:map xmlns:j='http://www.w3.org/2005/xpath-functions'><j:null key='a&lt;'/></j:map>",
    ] {
        judge(taken).unwrap_or_else(|error| panic!("{taken}: {error}"));
    }
    for (refused, told) in [
        ("", "<v>"),
        ("text", "<v>"),
        ("<map F=/><map F=/>", "<v>"),
        ("<object F=/>", "object>: not expected here"),
        ("<map F=><number>1</number></map>", "key"),
        ("<map F=><number key='a'>01</number></map>", "number>: found '01'"),
        ("<map F=><number key='a'> 1</number></map>", "number>: found ' 1'"),
        ("<map F=><boolean key='a'>1</boolean></map>", "boolean>: found '1'"),
        ("<map F=><number key='a'>1</number><null key='a'/></map>", "<v>, at /a: the key 'a' is repeated"),
        (
            "<map F=><number key='a'>1.5</number></map>",
            "<v>, at /a: found 1.5, expected null, a whole number or an array",
        ),
        ("<array F=/>", "<v>: found an array, expected an object"),
        ("<map F= escaped='true'/>", "escaped"),
    ] {
        let error = judge(refused).expect_err(refused);
        assert!(error.contains(told), "{refused}: {error}");
    }
    let nil = "<order><v xmlns:xsi='http://www.w3.org/2001/XMLSchema-instance' xsi:noNamespaceSchemaLocation='a'><map xmlns='http://www.w3.org/2005/xpath-functions'/></v></order>";
    let canonical = parse(&Raw::new(nil), &XmlLimits::default()).unwrap();
    let error = Validator::new(Catalog::only([schema.clone()]).into()).validate(canonical).unwrap_err();
    assert!(error.to_string().contains("has no attributes"), "{error}");
}

#[test]
fn one_truth_value_beside_null_takes_null() {
    let only = json!({ "const": true, "type": "boolean" });
    for schema in [
        json!({ "anyOf": [only, { "type": "null" }] }),
        json!({ "anyOf": [{ "$ref": "#/$defs/Only" }, { "type": "null" }] }),
        json!({ "enum": [null, true] }),
        json!({ "type": ["boolean", "null"], "enum": [true, null] }),
    ] {
        let mut document = object(json!({ "v": schema, "all": { "type": "array", "items": schema } }), &["v"]);
        document["$defs"] = json!({ "Only": only });
        let payload = one(&document);
        for taken in [json!({ "v": true }), json!({ "v": null }), json!({ "v": null, "all": [null, true] })] {
            assert_eq!(through(&payload, &taken).map(|(_, back)| back), Ok(taken), "{schema}");
        }
        for refused in [json!({ "v": false }), json!({ "v": true, "all": [false] })] {
            assert!(through(&payload, &refused).is_err(), "{schema} takes {refused}");
        }
    }
}

#[test]
fn constants_beside_null_or_in_a_choice_are_judged() {
    let string = json!({ "type": "string" });
    for (schema, taken, refused) in [
        (json!({ "type": ["string", "null"], "enum": ["a"] }), json!("a"), json!(null)),
        (json!({ "type": ["integer", "null"], "const": 1 }), json!(1), json!(null)),
        (json!({ "type": ["string", "null"], "const": null }), json!(null), json!("a")),
        (json!({ "type": ["string", "null"], "enum": ["a", null] }), json!(null), json!("b")),
        (json!({ "type": "array", "items": string, "const": ["a"] }), json!(["a"]), json!(["b"])),
        (json!({ "type": "array", "items": string, "enum": [["a"], ["b"]] }), json!(["b"]), json!(["c"])),
        (json!({ "oneOf": [{ "const": "a", "not": {} }, { "const": "b" }] }), json!("b"), json!("a")),
        (
            json!({ "type": "string", "anyOf": [{ "const": "a", "minLength": 2 }, { "const": "b" }] }),
            json!("b"),
            json!("a"),
        ),
        (
            json!({ "type": "string", "pattern": "^b", "oneOf": [{ "const": "a" }, { "const": "b" }] }),
            json!("b"),
            json!("a"),
        ),
        (json!({ "oneOf": [{ "const": 1 }, { "const": 1.0 }, { "const": 2 }] }), json!(2), json!(1)),
        (json!({ "oneOf": [{ "type": ["string", "null"] }, { "type": "null" }] }), json!("a"), json!(null)),
        (json!({ "oneOf": [{ "enum": ["a", null] }, { "type": "null" }] }), json!("a"), json!(null)),
    ] {
        let payload = one(&object(json!({ "v": schema }), &[]));
        let taken = json!({ "v": taken });
        assert_eq!(through(&payload, &taken).map(|(_, back)| back), Ok(taken), "{schema}");
        assert!(through(&payload, &json!({ "v": refused })).is_err(), "{schema} takes {refused}");
    }
}

/// Each place of a value: a property, one that is required, the items of an array, and the items of an array of arrays.
#[test]
fn keywords_side_by_side_hold_together() {
    let constants = |values: &[Value]| values.iter().map(|value| json!({ "const": value })).collect::<Vec<_>>();
    let numbers = constants(&[json!(1.5), json!(false)]);
    let either = json!([{ "type": "string" }, { "type": "null" }]);
    let string = json!({ "$ref": "#/$defs/S" });
    for (schema, taken, refused) in [
        (json!({ "$ref": "#/$defs/S", "oneOf": numbers }), vec![], vec![json!("a"), json!(1.5), json!(false)]),
        (
            json!({ "$ref": "#/$defs/S", "anyOf": constants(&[json!("a"), json!(1)]) }),
            vec![json!("a")],
            vec![json!("b"), json!(1)],
        ),
        (json!({ "$ref": "#/$defs/S", "allOf": [{ "maxLength": 1 }] }), vec![json!("a")], vec![json!("ab")]),
        (json!({ "allOf": [string], "oneOf": either }), vec![json!("a")], vec![json!(null), json!(1)]),
        (json!({ "allOf": [string], "not": { "const": "b" } }), vec![json!("a")], vec![json!("b")]),
        (json!({ "oneOf": numbers, "anyOf": either }), vec![], vec![json!(null), json!("a"), json!(1.5)]),
        (json!({ "oneOf": [string], "anyOf": [{ "maxLength": 1 }] }), vec![json!("a")], vec![json!("ab"), json!(1)]),
        (
            json!({ "oneOf": numbers, "type": ["boolean", "null"] }),
            vec![json!(false)],
            vec![json!(null), json!(true), json!(1.5)],
        ),
        (
            json!({ "oneOf": constants(&[json!(true), json!(false)]), "type": ["boolean", "null"] }),
            vec![json!(true)],
            vec![json!(null)],
        ),
        (
            json!({ "oneOf": constants(&[json!("a"), json!("b")]), "type": ["null", "string"] }),
            vec![json!("b")],
            vec![json!(null), json!("c")],
        ),
        (
            json!({ "anyOf": [{ "const": "a" }, { "const": "b" }, { "type": "null" }], "type": "string" }),
            vec![json!("a")],
            vec![json!(null)],
        ),
        (
            json!({ "anyOf": [{ "const": "a" }, { "const": "b" }, { "type": "null" }], "type": ["string", "null"] }),
            vec![json!("a"), json!(null)],
            vec![json!("c")],
        ),
        (
            json!({ "anyOf": [{ "type": "string" }, { "type": "null", "not": {} }] }),
            vec![json!("a")],
            vec![json!(null)],
        ),
        (
            json!({ "anyOf": [{ "const": "a" }, { "const": "b" }], "enum": ["b", "c"] }),
            vec![json!("b")],
            vec![json!("a"), json!("c")],
        ),
        (json!({ "enum": [false, null], "const": true }), vec![], vec![json!(true), json!(null), json!(false)]),
        (json!({ "const": "a", "enum": [true] }), vec![], vec![json!("a"), json!(true)]),
        (json!({ "const": "a", "enum": ["a", "b"] }), vec![json!("a")], vec![json!("b")]),
    ] {
        let list = json!({ "type": "array", "items": schema });
        let mut document = object(
            json!({ "v": schema, "must": schema, "all": list, "deep": { "type": "array", "items": list } }),
            &[],
        );
        document["$defs"] = json!({ "S": { "type": "string" } });
        let payload = one(&document);
        let places: [fn(&Value) -> Value; 3] =
            [|v| json!({ "v": v }), |v| json!({ "all": [v] }), |v| json!({ "deep": [[v]] })];
        document["required"] = json!(["must"]);
        let required = one(&document);
        for value in taken {
            for place in places {
                assert_eq!(through(&payload, &place(&value)).map(|(_, back)| back), Ok(place(&value)), "{schema}");
            }
            let value = json!({ "must": value });
            assert_eq!(through(&required, &value).map(|(_, back)| back), Ok(value), "{schema}");
        }
        for value in refused {
            for place in places {
                assert!(through(&payload, &place(&value)).is_err(), "{schema} takes {}", place(&value));
            }
            assert!(through(&required, &json!({ "must": value })).is_err(), "{schema} takes {value}");
        }
    }
}

#[test]
fn a_reference_may_have_any_character_of_a_name_percent_encoded() {
    let mut schema = object(
        json!({ "a": { "$ref": "#/$defs/a%20b" }, "b": { "$ref": "#/$defs/100%25" }, "c": { "$ref": "#/$defs/x~1y%7E0gr%C3%B6%C3%9Fe" } }),
        &[],
    );
    schema["$defs"] =
        json!({ "a b": { "type": "integer" }, "100%": { "type": "boolean" }, "x/y~größe": { "type": "string" } });
    let value = json!({ "a": 1, "b": true, "c": "s" });
    assert_eq!(through(&one(&schema), &value).map(|(_, back)| back), Ok(value));
}

#[test]
fn patterns_are_those_of_ecma_in_types_and_in_values() {
    for is_value in [false, true] {
        let judged = |pattern: &str, text: &str| {
            let mut property = json!({ "type": "string", "pattern": pattern });
            if is_value {
                property = json!({ "anyOf": [property, { "type": "integer", "minimum": 7 }, { "type": "boolean" }] });
            }
            through(&one(&object(json!({ "v": property }), &[])), &json!({ "v": text })).is_ok()
        };
        for (pattern, taken, refused) in [
            ("^[a&&b]$", "&", "c"),
            ("^[a~~b]$", "~", "c"),
            ("^[+--]$", ",", "."),
            ("^.$", "a", "\u{2028}"),
            ("^\\s$", "\u{feff}", "\u{85}"),
            ("^\\d$", "7", "٣"),
            // Characters that XML can't carry are in no text.
            ("\\f|b", "b", "\u{fffd}"),
            ("[\\f\\0]|b", "b", "\u{fffd}"),
            ("^[\\f\\0b]$", "b", "\u{fffd}"),
            ("^\\cA*b$", "b", "\u{fffd}b"),
            ("\\u0001?b$", "b", "\u{fffd}"),
            ("^[^\\f]$", "\u{fffd}", "bb"),
            ("a\\uffffb|b", "b", "a\u{fffd}a"),
        ] {
            assert!(judged(pattern, taken), "{pattern} {taken} {is_value}");
            assert!(!judged(pattern, refused), "{pattern} {refused} {is_value}");
        }
    }
}

#[test]
fn a_choice_of_many_shapes_is_judged_by_what_tells_them_apart() {
    let shapes = 800;
    let by_constant = |n: usize| {
        object(json!({ "kind": { "const": format!("k{n}") }, "size": { "type": "integer" } }), &["kind", "size"])
    };
    let by_key = |n: usize| object(json!({ (format!("p{n}")): { "type": "integer" } }), &[&format!("p{n}")]);
    let constants: Vec<Value> = (0..shapes).map(by_constant).collect();
    let keys: Vec<Value> = (0..shapes).map(by_key).chain([json!({ "type": "string" })]).collect();
    let values: Vec<Value> = (0..shapes).map(|n| json!({ "const": [n] })).chain([json!({ "type": "null" })]).collect();
    let plain: Vec<Value> = (0..shapes).map(|n| json!({ "type": "integer", "minimum": n, "maximum": n })).collect();
    for (keyword, alternatives, item, wrong, told) in [
        (
            "oneOf",
            &constants,
            r#"{"size":N,"kind":"kN"}"#,
            r#"{"size":"1","kind":"k7"}"#,
            "/size: found \"1\", expected a whole number",
        ),
        (
            "anyOf",
            &constants,
            r#"{"size":N,"kind":"kN"}"#,
            r#"{"size":1,"kind":"other"}"#,
            "the property 'kind' is \"other\", expected one of",
        ),
        ("anyOf", &constants, r#"{"size":N,"kind":"kN"}"#, r#"{"size":1}"#, "which fits none of the 800 alternatives"),
        ("oneOf", &keys, r#"{"pN":N}"#, r#"{"p7":"x"}"#, "which fits none of the 801 alternatives"),
        ("anyOf", &values, "[N]", "[800]", "which fits none of the 801 alternatives"),
        ("anyOf", &plain[..3].to_vec(), "1", "7", "which fits none of the 3 alternatives"),
    ] {
        let items = json!({ (keyword): alternatives });
        let schema = one(&object(
            json!({ "v": { "type": "object", "properties": { "all": { "type": "array", "items": items } }, "minProperties": 1 } }),
            &["v"],
        ));
        let all: Vec<String> = (0..2_000).map(|n| item.replace('N', &(n % shapes).to_string())).collect();
        let json = format!(r#"{{"v":{{"all":[{}]}}}}"#, all.join(","));
        self::told(&schema, &json).unwrap_or_else(|error| panic!("{keyword} of {item}: {error}"));
        let refused = self::told(&schema, &format!(r#"{{"v":{{"all":[{wrong}]}}}}"#)).unwrap_err();
        assert!(refused.contains(told), "{refused}");
    }
    // Two alternatives of one constant: both fit.
    let twice = [by_constant(1), by_constant(1)].into_iter().chain((2..20).map(by_constant)).collect::<Vec<_>>();
    let schema = one(&object(json!({ "v": { "oneOf": twice } }), &["v"]));
    let refused = self::told(&schema, r#"{"v":{"kind":"k1","size":1}}"#).unwrap_err();
    assert!(refused.contains("fits 2 alternatives"), "{refused}");
    self::told(&schema, r#"{"v":{"kind":"k2","size":1}}"#).unwrap();
}

#[test]
fn any_name_of_a_property_is_a_key_of_its_json() {
    for name in ["a\":1,\"admin", "a\"b", "C:\\x", "a\u{1}\"b\\", "a\u{0}b"] {
        let schema = one(&object(json!({ (name): { "type": "string" } }), &[]));
        let value = json!({ (name): "x" });
        assert_eq!(through(&schema, &value).map(|(_, back)| back), Ok(value), "{name:?}");
    }
}

#[test]
fn an_open_object_is_a_payload() {
    let schema = one(
        &json!({ "type": "object", "properties": { "a": { "type": "integer" } }, "additionalProperties": { "type": "string" } }),
    );
    let (xml, back) = told(&schema, r#"{"b":"x","a":1}"#).unwrap();
    assert_eq!(
        xml,
        "<order><map xmlns=\"http://www.w3.org/2005/xpath-functions\"><string key=\"b\">x</string><number key=\"a\">1</number></map></order>"
    );
    assert_eq!(back, r#"{"b":"x","a":1}"#);
    assert!(told(&schema, "[]").unwrap_err().contains("/order: <order>: found an array, expected an object"));
    assert!(told(&schema, r#"{"b":1}"#).unwrap_err().contains("/order/b: "));
    assert_eq!(schema.json_schema()["type"], "object");
    let choice = one(
        &json!({ "oneOf": [object(json!({ "a": { "type": "string" } }), &["a"]), object(json!({ "b": {} }), &["b"])] }),
    );
    told(&choice, r#"{"b":[1]}"#).unwrap();
    assert!(told(&choice, r#"{"c":1}"#).is_err());
    assert!(choice.example().is_some());
}

#[test]
fn deep_and_large_values_take_linear_time_and_no_stack() {
    let schema = one(&object(json!({ "v": { "$ref": "#/$defs/Tree" } }), &["v"])
        .as_object()
        .map(|schema| {
            let mut schema = schema.clone();
            schema.insert(
                "$defs".to_owned(),
                json!({ "Tree": { "anyOf": [
            { "type": "array", "items": { "$ref": "#/$defs/Tree" } },
            { "type": "object", "additionalProperties": { "$ref": "#/$defs/Tree" } },
            { "type": "integer" },
        ] } }),
            );
            Value::Object(schema)
        })
        .unwrap());
    let mut limits = XmlLimits::default();
    (limits.depth, limits.message_bytes) = (60_000, 8 << 20);
    let mut validator = Validator::new(Catalog::only([schema.clone()]).into());
    let deep = format!("{{\"order\":{{\"v\":{}1{}}}}}", "[".repeat(50_000), "]".repeat(50_000));
    let valid =
        validator.payload_of_json(deep.as_bytes(), |_| true, &limits).unwrap_or_else(|refusal| panic!("{refusal}"));
    assert_eq!(schema.to_named_json(valid.payload(), "order"), deep);
    let wrong = deep.replace('1', "true");
    let refusal = validator.payload_of_json(wrong.as_bytes(), |_| true, &limits).unwrap_err();
    assert!(refusal.to_string().contains("expected"), "{refusal}");
    let wide = format!("{{\"order\":{{\"v\":[{}1]}}}}", "1,".repeat(100_000));
    validator.payload_of_json(wide.as_bytes(), |_| true, &limits).unwrap_or_else(|refusal| panic!("{refusal}"));
}

#[test]
fn a_document_that_doubles_with_each_definition_is_refused_in_time() {
    let mut definitions =
        json!({ "d0": { "type": "array", "items": object(json!({ "a": { "type": "string" } }), &[]) } });
    for at in 1..60 {
        let before = json!({ "$ref": format!("#/$defs/d{}", at - 1) });
        let items = object(json!({ "a": before, "b": before }), &[]);
        definitions[format!("d{at}")] = json!({ "type": "array", "items": items });
    }
    let mut schema = object(json!({ "a": { "$ref": "#/$defs/d59" } }), &[]);
    schema["$defs"] = definitions;
    let error = PayloadSchema::from_json_schema("order.json", &schema.to_string()).unwrap_err();
    assert!(error.to_string().contains("more than 100,000 types"), "{error}");
}

#[test]
fn alternatives_have_their_descriptions() {
    let schema = one(&object(
        json!({ "way": { "oneOf": [{ "const": "sent", "description": "By post." }, { "const": "fetched" }] }, "n": { "enum": [1, 2, null] } }),
        &[],
    ));
    let way = &schema.json_schema()["properties"]["way"]["oneOf"];
    assert_eq!(way[0], json!({ "description": "By post.", "const": "sent" }), "{way}");
    for (value, is_taken) in
        [(json!({ "way": "sent", "n": 2 }), true), (json!({ "n": null }), true), (json!({ "n": 3 }), false)]
    {
        assert_eq!(through(&schema, &value).is_ok(), is_taken, "{value}");
    }
}

/// A random schema of a property, with values that it takes and others.
fn property(dice: &mut Dice, depth: usize, definitions: usize) -> Value {
    match dice.roll(if depth == 0 { 9 } else { 20 }) {
        0 => json!({ "type": "string" }),
        1 => json!({ "type": "string", "minLength": 1, "maxLength": 3, "description": "Short." }),
        2 => json!({ "type": "string", "pattern": dice.pick(&["^[a-c]+$", "b", "^a", "[0-9]{2}$"]) }),
        3 => json!({ "type": "integer" }),
        4 => json!({ "type": "integer", "minimum": -2, "exclusiveMaximum": 5 }),
        5 => json!({ "type": "number", "exclusiveMinimum": dice.pick(&[-1.5, 0.0]), "maximum": 100 }),
        6 => json!({ "type": "boolean" }),
        7 => dice.pick(&[
            json!({ "enum": ["a", "b", "ab"] }),
            json!({ "enum": [1, 2, 12] }),
            json!({ "const": "a" }),
            json!({ "const": true }),
        ]),
        8 => json!({ "type": dice.pick(&[json!(["string", "null"]), json!(["null", "integer"]), json!("number")]) }),
        9 => {
            let mut list = json!({ "type": "array", "items": loop {
                let item = property(dice, depth - 1, definitions);
                if item.get("type").is_none_or(|ty| ty != "array") { break item; }
            } });
            if dice.roll(2) == 0 {
                list["minItems"] = dice.roll(3).into();
            }
            if dice.roll(2) == 0 {
                list["maxItems"] = (2 + dice.roll(2)).into();
            }
            list
        }
        10 => json!({ "$ref": format!("#/$defs/d{}", dice.roll(definitions)) }),
        11 => json!({ "anyOf": [{ "$ref": format!("#/$defs/d{}", dice.roll(definitions)) }, { "type": "null" }] }),
        12 => shape(dice, depth - 1, definitions),
        13..16 => beside(dice),
        _ => formless(dice, depth - 1, definitions),
    }
}

/// Values that keywords side by side take or refuse.
const SCALARS: [&str; 8] = ["null", "true", "false", "\"a\"", "\"ab\"", "1", "1.5", "-2"];

/// Keywords that compose, of which [`beside`] takes some.
const COMPOSING: [&str; 8] = ["$ref", "allOf", "anyOf", "oneOf", "const", "enum", "type", "maxLength"];

/// A random schema of scalars in which several keywords stand side by side.
fn beside(dice: &mut Dice) -> Value {
    fn scalar(dice: &mut Dice) -> Value {
        serde_json::from_str(dice.pick(&SCALARS)).unwrap()
    }
    fn scalars(dice: &mut Dice) -> Value {
        (0..=dice.roll(3)).map(|_| scalar(dice)).collect()
    }
    fn alternatives(dice: &mut Dice) -> Value {
        let alternative = |dice: &mut Dice| match dice.roll(8) {
            0..4 => json!({ "const": scalar(dice) }),
            4 | 5 => json!({ "type": "null" }),
            6 => json!({ "$ref": format!("#/$defs/s{}", dice.roll(3)) }),
            _ => json!({ "type": dice.pick(&["string", "boolean", "number"]), "enum": [scalar(dice), scalar(dice)] }),
        };
        (0..=dice.roll(3)).map(|_| alternative(dice)).collect()
    }
    let mut out = json!({});
    for keyword in COMPOSING {
        if dice.roll(3) > 0 {
            continue;
        }
        out[keyword] = match keyword {
            "$ref" => json!(format!("#/$defs/s{}", dice.roll(3))),
            "const" => scalar(dice),
            "enum" => scalars(dice),
            "maxLength" => json!(1),
            "type" => dice.pick(&[
                json!("string"),
                json!("boolean"),
                json!("number"),
                json!(["string", "null"]),
                json!(["null", "boolean"]),
                json!(["integer", "null"]),
            ]),
            "allOf" => json!([alternatives(dice)[0]]),
            _ => alternatives(dice),
        };
    }
    out
}

/// A random schema of values that have no form in XML Schema.
fn formless(dice: &mut Dice, depth: usize, definitions: usize) -> Value {
    let kind = dice.roll(20);
    let mut inner = || property(dice, depth, definitions);
    match kind {
        0 => json!({ "anyOf": [inner(), inner(), { "type": "null" }] }),
        1 => json!({ "oneOf": [inner(), inner()] }),
        2 => json!({ "type": "object", "additionalProperties": inner() }),
        3 => json!({ "type": "array", "items": { "type": "array", "items": inner(), "maxItems": 2 } }),
        4 => json!({ "type": ["string", "integer", "null"], "maxLength": 2, "minimum": 1 }),
        5 => json!({}),
        6 => json!(true),
        7 => json!({ "type": "array", "items": inner(), "uniqueItems": true }),
        8 => json!({ "type": "array", "prefixItems": [inner(), inner()], "items": inner() }),
        9 => json!({ "type": "array", "contains": inner(), "minContains": 1, "maxContains": 2 }),
        10 => json!({ "type": "object", "minProperties": 1, "maxProperties": 2, "properties": { "a": inner() } }),
        11 => json!({ "type": "object", "patternProperties": { "^[ab]": inner() }, "additionalProperties": inner() }),
        12 => json!({ "type": "object", "propertyNames": { "maxLength": 1 } }),
        13 => {
            json!({ "dependentRequired": { "a": ["b"] }, "dependentSchemas": { "b": { "properties": { "a": inner() } } } })
        }
        14 => json!({ "not": inner() }),
        15 => json!({ "if": inner(), "then": inner(), "else": inner() }),
        16 => json!({ "allOf": [inner(), { "type": ["string", "object", "integer"] }] }),
        17 => json!({ "type": "integer", "multipleOf": 3 }),
        18 => json!({ "enum": [1, "a", null, [1.0, { "a": true }], { "a": 1, "b": [] }] }),
        _ => json!({ "type": "string", "pattern": "^(?=.*a)(?!b).+$" }),
    }
}

/// A random JSON value.
fn any(dice: &mut Dice, depth: usize) -> Value {
    match dice.roll(if depth == 0 { 8 } else { 12 }) {
        0 => json!(null),
        1 => json!("a"),
        2 => json!("bca"),
        3 => json!(1),
        4 => json!(-0.5),
        5 => json!(true),
        6 => json!(3),
        7 => json!(12),
        8 => json!([1, { "a": true }]),
        9 => json!({ "b": [], "a": 1.0 }),
        10 => (0..dice.roll(4)).map(|_| any(dice, depth - 1)).collect(),
        _ => {
            let keys = ["a", "b", "b c", "größe", "c\n\"<"];
            (0..dice.roll(4))
                .map(|at| (keys[at].to_owned(), any(dice, depth - 1)))
                .collect::<serde_json::Map<_, _>>()
                .into()
        }
    }
}

fn shape(dice: &mut Dice, depth: usize, definitions: usize) -> Value {
    let names = ["a", "b c", "1", "größe", "@k", "d-e", "_x0041_"];
    let (mut properties, mut required) = (json!({}), Vec::new());
    for name in names {
        if dice.roll(2) == 0 {
            continue;
        }
        let schema = if name == "@k" {
            dice.pick(&[json!({ "type": "string" }), json!({ "type": "integer" }), json!({ "type": "boolean" })])
        } else {
            property(dice, depth, definitions)
        };
        properties[name] = schema;
        // A value that may be null, as definitions may, has no required attribute.
        if dice.roll(2) == 0 && (name != "@k" || depth > 0) {
            required.push(name);
        }
    }
    object(properties, &required)
}

/// A random value, mostly of the form of a schema.
fn value(dice: &mut Dice, schema: &Value, whole: &Value, depth: usize) -> Value {
    if dice.roll(24) == 0 || depth == 0 {
        return dice.pick(&[
            json!(null),
            json!("a"),
            json!("12"),
            json!(1),
            json!(-0.5),
            json!(true),
            json!([]),
            json!({}),
            json!("INF"),
        ]);
    }
    if COMPOSING.iter().filter(|key| schema.get(**key).is_some()).count() > 1 && dice.roll(2) == 0 {
        return serde_json::from_str(dice.pick(&SCALARS)).unwrap();
    }
    if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
        return value(dice, &whole.pointer(&reference[1..]).unwrap().clone(), whole, depth - 1);
    }
    if let Some(options) = ["anyOf", "oneOf", "allOf"].iter().find_map(|key| schema.get(*key)).and_then(Value::as_array)
    {
        let option = &options[dice.roll(options.len())];
        return value(dice, option, whole, depth - 1);
    }
    if let Some(values) = schema.get("enum").and_then(Value::as_array) {
        return values[dice.roll(values.len())].clone();
    }
    if let Some(value) = schema.get("const") {
        return value.clone();
    }
    if schema.get("type").is_none() || dice.roll(12) == 0 {
        return any(dice, depth.min(3));
    }
    let ty = match &schema["type"] {
        Value::Array(types) => types[dice.roll(types.len())].as_str().unwrap().to_owned(),
        ty => ty.as_str().unwrap().to_owned(),
    };
    match ty.as_str() {
        "null" => json!(null),
        // The schemas of values that have no form have such strings, too.
        "string" if schema.get("maxLength").is_none() && dice.roll(3) == 0 => any(dice, 0),
        "string" => {
            dice.pick(&[json!(""), json!("a"), json!("abc"), json!("b\n<&>"), json!("x12"), json!(" é\u{1f600}")])
        }
        "integer" => dice.pick(&[json!(0), json!(-2), json!(4), json!(5), json!(1.0), json!(9007199254740991i64)]),
        "number" => dice.pick(&[json!(0), json!(-1.5), json!(0.1), json!(100), json!(1e30)]),
        "boolean" => json!(dice.roll(2) == 0),
        "array" => {
            let items = schema.get("items").or(schema.get("contains")).cloned().unwrap_or(json!({}));
            let of = |at: usize| schema["prefixItems"].get(at).unwrap_or(&items).clone();
            (0..dice.roll(4)).map(|at| value(dice, &of(at), whole, depth - 1)).collect()
        }
        _ => {
            let mut out = json!({});
            let known = schema.get("properties").and_then(Value::as_object);
            let mut properties: Vec<(String, Value)> =
                known.into_iter().flatten().map(|(key, schema)| (key.clone(), schema.clone())).collect();
            if let Some(others) = schema.get("additionalProperties").filter(|others| **others != json!(false)) {
                properties.extend(["a", "b", "c"].map(|key| (key.to_owned(), others.clone())));
            }
            let required = schema.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
            for (key, schema) in properties {
                let is_required = required.iter().any(|name| *name == *key);
                if is_required && dice.roll(24) > 0 || !is_required && dice.roll(2) == 0 {
                    out[key] = value(dice, &schema, whole, depth - 1);
                }
            }
            if dice.roll(24) == 0 {
                out["unknown"] = json!(1);
            }
            out
        }
    }
}

/// JSON that the written schema takes is a valid payload, and what it refuses is none; the payload written as JSON again is taken
/// by both the written schema and the one that is made of the payload.
#[test]
fn json_is_valid_if_the_written_schema_takes_it() {
    let mut dice = Dice(11);
    let (mut cases, mut verdicts) = (Vec::new(), Vec::new());
    while cases.len() < 600 {
        let definitions = 2;
        let mut written = shape(&mut dice, 3, definitions);
        for definition in 0..definitions {
            let name = format!("d{definition}");
            // A definition refers to none, so that each has an end.
            written["$defs"][name] = shape(&mut dice, 0, definitions);
        }
        written["$defs"]["s0"] = json!({ "type": "string" });
        written["$defs"]["s1"] = json!({ "type": ["boolean", "null"] });
        written["$defs"]["s2"] = json!({ "type": "number", "enum": [1, 1.5] });
        let schema = match PayloadSchema::from_json_schema("order.json", &written.to_string()) {
            Ok(schemas) => schemas.into_iter().next().unwrap(),
            // A constant of another type than its schema, which is refused with its place.
            Err(error) if error.to_string().contains("not of the type of the schema") => continue,
            Err(error) => panic!("{error}: {written}"),
        };
        let values: Vec<Value> = (0..12).map(|_| value(&mut dice, &written, &written, 8)).collect();
        let found: Vec<_> = values.iter().map(|value| through(&schema, value)).collect();
        let back: Vec<Value> = found.iter().flatten().map(|(_, back)| back.clone()).collect();
        for given in [&written, schema.json_schema()] {
            cases.push(Case::Schema { schema: given.clone(), values: values.clone() });
            verdicts.push((
                written.clone(),
                values.clone(),
                found.iter().map(|found| found.clone().map(|_| ()).err()).collect::<Vec<_>>(),
            ));
            cases.push(Case::Schema { schema: given.clone(), values: back.clone() });
            verdicts.push((written.clone(), back.clone(), vec![None; back.len()]));
        }
    }
    let Some(answers) = judges::python(&cases) else { return };
    let (mut taken, mut refused) = (0, 0);
    for (answers, (written, values, found)) in answers.iter().zip(&verdicts) {
        for ((is_taken, value), refusal) in answers.iter().zip(values).zip(found) {
            assert_eq!(*is_taken, refusal.is_none(), "{value} by {written}: {refusal:?}");
            *(if *is_taken { &mut taken } else { &mut refused }) += 1;
        }
    }
    assert!(taken > 500 && refused > 500, "{taken} values are taken, and {refused} refused");
}
