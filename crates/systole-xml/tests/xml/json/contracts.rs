//! Contracts that are written as JSON Schema: each rule, each refusal with its place, and random schemas with Python's
//! `jsonschema` as the judge.

use serde_json::{Value, json};
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
        (
            json!({ "type": "object", "additionalProperties": true }),
            "/additionalProperties: an object with any properties",
        ),
        (json!({ "type": "object", "additionalProperties": { "type": "string" } }), "/additionalProperties: "),
        (json!({ "type": "object", "required": ["a"] }), "/required/0: it is required, and not among"),
        (json!({ "type": "object", "patternProperties": {} }), "/patternProperties: contracts can't have this keyword"),
        (within(json!(true)), "/properties/p: a schema that allows everything"),
        (within(json!({})), "/properties/p: it says nothing of the value"),
        (within(json!({ "type": "text" })), "/properties/p/type: expected a type"),
        (within(json!({ "type": ["string", "integer"] })), "/properties/p/type: a value of several types"),
        (
            within(json!({ "anyOf": [{ "type": "string" }, { "type": "object" }] })),
            "/properties/p/anyOf: a choice of several shapes",
        ),
        (
            within(json!({ "oneOf": [{ "$ref": "#/$defs/a" }, { "$ref": "#/$defs/b" }] })),
            "/properties/p/oneOf: a choice",
        ),
        (
            within(json!({ "allOf": [{ "type": "string" }, { "minLength": 1 }] })),
            "/properties/p/allOf: several schemas at once",
        ),
        (
            within(json!({ "allOf": [{ "type": "string" }], "minLength": 1 })),
            "/properties/p/minLength: write it in the schema",
        ),
        (within(json!({ "$ref": "other.json" })), "/properties/p/$ref: only references within the document"),
        (within(json!({ "$ref": "#/$defs/none" })), "/properties/p/$ref: there is no '#/$defs/none'"),
        (within(json!({ "$ref": "#/properties/p" })), "/properties/p: its references lead in a circle"),
        (within(json!({ "type": "number", "multipleOf": 0.1 })), "/properties/p/multipleOf: contracts can't have"),
        (within(json!({ "type": "array" })), "/properties/p: an array of anything"),
        (
            within(json!({ "type": "array", "items": { "type": "array", "items": { "type": "string" } } })),
            "/properties/p/items: an array in an array",
        ),
        (
            within(json!({ "type": "array", "items": { "type": "string" }, "uniqueItems": true })),
            "/properties/p/uniqueItems: ",
        ),
        (within(json!({ "type": "array", "items": { "type": "string" }, "maxItems": 0 })), "no array has so few items"),
        (
            within(json!({ "type": "string", "pattern": "(?=x)" })),
            "/properties/p/pattern: XML Schema has no counterpart",
        ),
        (within(json!({ "type": "string", "minLength": -1 })), "/properties/p/minLength: expected a whole number"),
        (
            within(json!({ "type": "integer", "minimum": 2, "maximum": 1 })),
            "/properties/p: no whole number lies between",
        ),
        (within(json!({ "enum": ["a", 1] })), "/properties/p: values of several types"),
        (within(json!({ "enum": ["a\u{0}"] })), "/properties/p/enum/0: XML can't carry"),
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
    let text = "{\n  \"type\": \"object\",\n  \"properties\": { \"p\": {\"type\": \"text\"} }\n}";
    let Err(ContractError::Document { at, .. }) = PayloadSchema::from_json_schema("order.json", text) else { panic!() };
    assert_eq!((at.line, at.column), (3, 33));
    let Err(ContractError::Document { at, problem, .. }) = PayloadSchema::from_json_schema("order.json", "{\n  ]")
    else {
        panic!()
    };
    assert_eq!((at.line, at.column), (2, 3), "{problem}");
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
    match dice.roll(if depth == 0 { 9 } else { 13 }) {
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
        _ => shape(dice, depth - 1, definitions),
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
    if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
        return value(dice, &whole.pointer(&reference[1..]).unwrap().clone(), whole, depth - 1);
    }
    if let Some(options) = schema.get("anyOf").and_then(Value::as_array) {
        let option = &options[dice.roll(options.len())];
        return value(dice, option, whole, depth - 1);
    }
    if let Some(values) = schema.get("enum").and_then(Value::as_array) {
        return values[dice.roll(values.len())].clone();
    }
    if let Some(value) = schema.get("const") {
        return value.clone();
    }
    let ty = match &schema["type"] {
        Value::Array(types) => types[dice.roll(types.len())].as_str().unwrap().to_owned(),
        ty => ty.as_str().unwrap().to_owned(),
    };
    match ty.as_str() {
        "null" => json!(null),
        "string" => {
            dice.pick(&[json!(""), json!("a"), json!("abc"), json!("b\n<&>"), json!("x12"), json!(" é\u{1f600}")])
        }
        "integer" => dice.pick(&[json!(0), json!(-2), json!(4), json!(5), json!(1.0), json!(9007199254740991i64)]),
        "number" => dice.pick(&[json!(0), json!(-1.5), json!(0.1), json!(100), json!(1e30)]),
        "boolean" => json!(dice.roll(2) == 0),
        "array" => (0..dice.roll(4)).map(|_| value(dice, &schema["items"], whole, depth - 1)).collect(),
        _ => {
            let mut out = json!({});
            let properties: Vec<(String, Value)> = schema["properties"]
                .as_object()
                .unwrap()
                .iter()
                .map(|(key, schema)| (key.clone(), schema.clone()))
                .collect();
            let required = schema["required"].as_array().unwrap();
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
        let schema = match PayloadSchema::from_json_schema("order.json", &written.to_string()) {
            Ok(schemas) => schemas.into_iter().next().unwrap(),
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
