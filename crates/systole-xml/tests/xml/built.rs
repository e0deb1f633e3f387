//! The schema of a Rust type, which is compiled from its model, beside that of its document, which is parsed: equal
//! verdicts with equal sentences, equal prompts, equal JSON Schemas.

use std::sync::Arc;

use bytes::Bytes;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};
use systole_xml::ladder::strict::canonicalize;
use systole_xml::schema::{Catalog, PayloadSchema, Validator, oracle};
use systole_xml::vocab::{QName, XmlLimits};

/// Compares the schema of a type with that of its document.
pub(crate) fn check_document(built: &PayloadSchema) {
    let document = built.document();
    let mut read = PayloadSchema::from_xsd("", document).unwrap_or_else(|error| panic!("{error}\n{document}"));
    let read = read.pop().unwrap();
    assert_eq!(read.qname(), built.qname());
    assert_eq!(without_examples(read.json_schema()), without_examples(built.json_schema()), "{document}");
    assert_eq!(rules(&read), rules(built), "{document}");
    let example = built.example().expect("a type has an example").as_str();
    let (mut one, mut other) = (validator(built), validator(&read));
    let mut verdicts = [0, 0];
    for instance in std::iter::once(example.to_owned()).chain(mutants(example)) {
        let Ok(canonical) = canonicalize(&Bytes::from(instance.clone()), &XmlLimits::default()) else { continue };
        let judged = |validator: &mut Validator| {
            let verdict = validator.validate(canonical.clone());
            verdict.map(drop).map_err(|error| (error.rule, error.at))
        };
        let (one, other) = (judged(&mut one), judged(&mut other));
        assert_eq!(one, other, "{instance}\n{document}");
        verdicts[usize::from(one.is_err())] += 1;
    }
    assert!(verdicts[0] > 0, "the example is valid");
}

fn validator(schema: &PayloadSchema) -> Validator {
    let mut catalog = Catalog::new();
    catalog.add(schema.clone()).unwrap();
    Validator::new(Arc::new(catalog))
}

/// The prompt up to the example, which may be the author's.
fn rules(schema: &PayloadSchema) -> &str {
    let prompt = schema.prompt();
    &prompt[..prompt.find("\nExample:\n").unwrap_or(prompt.len())]
}

/// A JSON Schema without the author's examples, which no document has, and without the spelling of its patterns, which
/// is that of the author or that of the document.
fn without_examples(schema: &Value) -> Value {
    match schema {
        Value::Object(fields) => {
            let kept = fields.iter().filter(|(name, value)| *name != "examples" || !value.is_array());
            let rule = |name: &str, value: &Value| match value {
                Value::String(_) if name == "pattern" => Value::Bool(true),
                value => without_examples(value),
            };
            kept.map(|(name, value)| (name.clone(), rule(name, value))).collect()
        }
        Value::Array(items) => items.iter().map(without_examples).collect(),
        other => other.clone(),
    }
}

/// Documents that differ from an instance at one place: an element that is missing, twice there or named otherwise,
/// another text, an attribute that is missing, unknown or has another value.
fn mutants(instance: &str) -> Vec<String> {
    let document = roxmltree::Document::parse(instance).unwrap();
    let mut mutants = Vec::new();
    let mut replace = |range: std::ops::Range<usize>, by: &str| {
        mutants.push(format!("{}{by}{}", &instance[..range.start], &instance[range.end..]));
    };
    for node in document.descendants() {
        let range = node.range();
        if node.is_text() {
            ["", "x", "-1", " 7 ", "300", "99999999999999999999", "1e3"]
                .iter()
                .for_each(|text| replace(range.clone(), text));
            continue;
        }
        for attribute in node.attributes() {
            replace(attribute.range(), "");
            ["", "x", "-1", "300"].iter().for_each(|value| replace(attribute.range_value(), value));
        }
        if node.is_element() {
            let name = range.start + 1 + node.tag_name().name().len();
            replace(name..name, " unknown='1'");
            replace(name..name, " xmlns:x='http://www.w3.org/2001/XMLSchema-instance' x:nil='true'");
            let own = instance[range.clone()].to_owned();
            if node != document.root_element() {
                replace(range.clone(), "");
                replace(range.clone(), &own.repeat(2));
                replace(range.clone(), "<unknown/>");
                replace(range.start..range.start, "text");
            }
        }
    }
    mutants
}

/// Descriptions of values of one element, as schemars writes them.
fn simple() -> impl Strategy<Value = Value> {
    let integer = (select(vec!["int8", "uint16", "int32", "uint64", "int64"]), any::<u8>(), any::<bool>());
    prop_oneof![
        integer.prop_map(|(format, bound, lower)| {
            let bound = bound % 100;
            json!({ "type": "integer", "format": format, if lower { "minimum" } else { "maximum" }: bound })
        }),
        Just(json!({ "type": "boolean" })),
        Just(json!({ "type": "number", "format": "double" })),
        (0..4u8).prop_map(
            |least| json!({ "type": "number", "format": "double", "exclusiveMinimum": f64::from(least) / 4.0 })
        ),
        (0..3u8, 3..9u8).prop_map(|(min, max)| json!({ "type": "string", "minLength": min, "maxLength": max })),
        select(vec!["^[a-c]+$", "x|yz", r"^\\d{2}$", "^<&>\"'{1,2}$", "^a*b?$"])
            .prop_map(|pattern| json!({ "type": "string", "pattern": pattern, "description": "A < b & c." })),
        select(vec!["date", "uuid", "ipv4"]).prop_map(|format| json!({ "type": "string", "format": format })),
        proptest::collection::btree_set("[a-z<&]{1,3}", 1..4)
            .prop_map(|values| json!({ "type": "string", "enum": values })),
    ]
}

fn structure(inner: impl Strategy<Value = Value> + Clone) -> impl Strategy<Value = Value> {
    let field = prop_oneof![
        3 => (inner.clone(), any::<bool>()).prop_map(|(field, required)| (field, required)),
        1 => (inner.clone(), 0..2u8, 2..5u8).prop_map(|(items, min, max)| {
            (json!({ "type": "array", "items": items, "minItems": min, "maxItems": max }), min > 0)
        }),
        1 => inner.clone().prop_map(|items| (json!({ "type": "array", "items": items }), false)),
    ];
    let attribute = (simple(), any::<bool>());
    let variants = proptest::option::of(proptest::collection::vec(inner, 1..3));
    let fields = proptest::collection::vec(field, 0..4);
    (fields, proptest::collection::vec(attribute, 0..3), variants, "[A-Z][a-z &]{0,9}").prop_map(
        |(fields, attributes, variants, doc)| {
            let (mut properties, mut required) = (serde_json::Map::new(), Vec::new());
            let mut add = |name: String, schema: Value, is_required: bool| {
                required.extend(is_required.then(|| name.clone()));
                properties.insert(name, schema);
            };
            fields.into_iter().enumerate().for_each(|(n, (field, required))| add(format!("f{n}"), field, required));
            attributes
                .into_iter()
                .enumerate()
                .for_each(|(n, (field, required))| add(format!("@a{n}"), field, required));
            if let Some(variants) = variants {
                let tagged = |(n, data): (usize, Value)| {
                    let name = format!("v{n}");
                    json!({ "type": "object", "properties": { &name: data }, "required": [name] })
                };
                let mut branches: Vec<Value> = variants.into_iter().enumerate().map(tagged).collect();
                branches.push(json!({ "type": "string", "const": "unit" }));
                add("$value".into(), json!({ "oneOf": branches }), true);
            }
            json!({ "type": "object", "properties": properties, "required": required, "description": doc })
        },
    )
}

fn described() -> impl Strategy<Value = Value> {
    simple().prop_recursive(3, 24, 4, |inner| structure(inner.boxed()))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn random_types_are_judged_as_their_documents(schema in structure(described().boxed())) {
        let payload = QName::new("urn:example:built:v1?a=1&b=2", "payload").unwrap();
        let built = oracle::described(payload, &schema);
        prop_assume!(built.is_ok());
        check_document(&built.unwrap());
    }
}

#[test]
fn most_random_types_are_contracts() {
    use proptest::strategy::ValueTree;
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let payload = QName::new("", "payload").unwrap();
    let schemas = (0..64).map(|_| structure(described().boxed()).new_tree(&mut runner).unwrap().current());
    let refused: Vec<_> = schemas.filter_map(|schema| oracle::described(payload.clone(), &schema).err()).collect();
    assert!(refused.len() < 16, "{} of 64: {}", refused.len(), refused[0]);
}
