//! JSON Schemas of payloads: of Rust types, by the JSON that serde_json makes of their values; of `.xsd` documents, by
//! golden files and instances.

mod checker;
mod contracts;
mod judges;
mod payloads;
mod random;

use serde_json::{Map, Value, json};
use systole_xml::ladder::Canonical;
use systole_xml::ladder::strict::canonicalize;
use systole_xml::schema::PayloadSchema;
use systole_xml::vocab::XmlLimits;

use crate::types::{golden, pretty};
use checker::check;

/// Checks the JSON of a valid payload against its schema and back, and that the schema refuses it once a property is missing or
/// unknown.
pub(crate) fn check_payload(schema: &PayloadSchema, payload: &Canonical) {
    let text = schema.to_json(payload);
    let value: Value = serde_json::from_str(&text).unwrap();
    let json = schema.json_schema();
    check(json, &value).unwrap_or_else(|error| panic!("{error}\n{value:#}\n{json:#}"));
    let read = schema.from_json(&text, &XmlLimits::default()).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let again = canonicalize(&read.into_xml().into(), &XmlLimits::default()).unwrap();
    assert_eq!(again.as_str(), payload.as_str(), "{text}");
    let fields = value.as_object().unwrap();
    let with = |change: &dyn Fn(&mut Map<String, Value>)| {
        let mut fields = fields.clone();
        change(&mut fields);
        check(json, &Value::Object(fields))
    };
    assert!(with(&|fields| drop(fields.insert("unknown".into(), json!(1)))).is_err(), "{value:#}");
    let required = json.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
    for name in required.iter().filter_map(Value::as_str) {
        assert!(with(&|fields| drop(fields.shift_remove(name))).is_err(), "{name} is missing in {value:#}");
    }
}

/// Checks that the examples in a schema are valid by it.
pub(crate) fn check_examples(json: &Value) {
    for example in json.get("examples").and_then(Value::as_array).into_iter().flatten() {
        check(json, example).unwrap_or_else(|error| panic!("{error}\n{example:#}\n{json:#}"));
    }
}

fn schema(declarations: &str) -> PayloadSchema {
    let document = format!(
        "<xs:schema xmlns:xs='http://www.w3.org/2001/XMLSchema' xmlns:t='urn:t' targetNamespace='urn:t' \
         elementFormDefault='qualified'>{declarations}</xs:schema>"
    );
    let schemas = PayloadSchema::from_xsd("test.xsd", &document).unwrap_or_else(|error| panic!("{error}"));
    schemas.into_iter().find(|schema| schema.qname().local() == "r").unwrap()
}

/// A payload with a content model.
fn content(model: &str) -> PayloadSchema {
    schema(&format!("<xs:element name='r'><xs:complexType>{model}</xs:complexType></xs:element>"))
}

/// A payload whose text is of a simple type.
fn text(ty: &str) -> PayloadSchema {
    schema(&format!("<xs:element name='r'><xs:simpleType>{ty}</xs:simpleType></xs:element>"))
}

fn restricted(base: &str, facets: &[(&str, &str)]) -> PayloadSchema {
    let facets: String = facets.iter().map(|(name, value)| format!("<xs:{name} value='{value}'/>")).collect();
    text(&format!("<xs:restriction base='xs:{base}'>{facets}</xs:restriction>"))
}

#[test]
fn a_document_has_the_schemas_of_the_golden_files() {
    let document = include_str!("../../corpus/json/orders.xsd");
    for schema in PayloadSchema::from_xsd("orders.xsd", document).unwrap_or_else(|error| panic!("{error}")) {
        golden(&format!("json/orders-{}.json", schema.qname().local()), &pretty(schema.json_schema()));
    }
}

#[test]
fn instances_are_judged_as_their_xml() {
    let order = json!({
        "@id": "A-7", "@xml:lang": "en", "buyer": { "@since": "2026-01-31", "$": "Ada" },
        "line": [{ "article": "tea", "count": 2, "price": 1.5 }], "fetched": {}, "tags": ["a", "b"], "limit": "none",
    });
    let document = include_str!("../../corpus/json/orders.xsd");
    let schemas = PayloadSchema::from_xsd("orders.xsd", document).unwrap();
    let json = schemas.iter().find(|schema| schema.qname().local() == "order").unwrap().json_schema();
    check(json, &order).unwrap();
    let changes = [
        ("/@id", json!("7"), false),
        ("/line", json!([]), false),
        ("/line/0/count", json!(0), false),
        ("/line/0/count", json!(1000), false),
        ("/line/0/price", json!(-0.5), false),
        ("/line/0/article", json!(""), false),
        ("/fetched", json!(null), false),
        ("/fetched", json!({ "street": "Mill Lane 3" }), false),
        ("/tags", json!(["a", "b", "c", "d"]), false),
        ("/limit", json!(12), true),
        ("/limit", json!("some"), false),
        ("/buyer", json!("Ada"), false),
        ("/buyer/@since", json!(5), false),
    ];
    for (at, value, valid) in changes {
        let mut changed = order.clone();
        *changed.pointer_mut(at).unwrap() = value;
        assert_eq!(check(json, &changed).is_ok(), valid, "{at}: {changed:#}");
    }
    let mut brought = order.clone();
    brought.as_object_mut().unwrap().shift_remove("fetched");
    assert!(check(json, &brought).is_err(), "one of the choice");
    brought["courier"] = json!({ "street": "Mill Lane 3" });
    check(json, &brought).unwrap();
    brought["fetched"] = json!({});
    assert!(check(json, &brought).is_err(), "both of the choice");
}

#[test]
fn content_that_properties_can_not_hold_is_an_array() {
    let two = "<xs:element name='a' type='xs:int'/>";
    for (model, outline) in [
        (format!("<xs:sequence>{two}<xs:element name='b'/>{two}</xs:sequence>"), "(a, b, a)"),
        (format!("<xs:sequence maxOccurs='unbounded'>{two}<xs:element name='b'/></xs:sequence>"), "(a, b)+"),
        (
            format!("<xs:sequence><xs:choice maxOccurs='9'>{two}<xs:element name='b'/></xs:choice></xs:sequence>"),
            "((a | b){1,9})",
        ),
    ] {
        let schema = content(&model);
        let items = schema.json_schema().pointer("/properties/$").unwrap();
        assert_eq!(items["description"], format!("in this order: {outline}"));
        check(schema.json_schema(), &json!({ "$": [{ "a": 1 }, { "b": "x" }, { "a": 2 }] })).unwrap();
        assert!(check(schema.json_schema(), &json!({ "$": [{ "a": 1, "b": "2" }, { "b": "1" }] })).is_err());
        assert!(check(schema.json_schema(), &json!({ "$": [{ "d": 1 }, { "a": 1 }, { "a": 1 }] })).is_err());
    }
    let mixed = schema(
        "<xs:element name='r'><xs:complexType mixed='true'><xs:sequence><xs:element name='em' type='xs:string' \
         minOccurs='0' maxOccurs='unbounded'/><xs:element name='br' minOccurs='0'><xs:complexType/></xs:element>\
         </xs:sequence></xs:complexType></xs:element>",
    );
    check(mixed.json_schema(), &json!({ "$": ["so ", { "em": "many" }, " words", { "br": {} }] })).unwrap();
    assert!(check(mixed.json_schema(), &json!({ "$": [{ "strong": "many" }] })).is_err());
}

#[test]
fn rules_beyond_the_keywords_are_described() {
    for (schema, words) in [
        (restricted("string", &[("pattern", r"\d{4}")]), r"xs:string: text, matching \d{4}"),
        (restricted("decimal", &[("fractionDigits", "2")]), "xs:decimal: number, at most 2 digits behind the point"),
        (
            restricted("int", &[("pattern", "[1-9]+")]),
            "xs:int: whole number from -2147483648 to 2147483647, matching [1-9]+",
        ),
        (restricted("dateTime", &[]), "xs:dateTime: date and time"),
        (restricted("base64Binary", &[("maxLength", "9")]), "xs:base64Binary: bytes in base64, at most 9 bytes"),
        (
            restricted("decimal", &[("maxInclusive", "0.1000000000000000000001")]),
            "xs:decimal: number, at most 0.1000000000000000000001",
        ),
        (restricted("NCName", &[]), "xs:NCName: name"),
    ] {
        let text = schema.json_schema().pointer("/properties/$").unwrap();
        assert_eq!(text["description"], words, "{text:#}");
        let told = text.as_object().unwrap().keys().map(String::as_str);
        let told: Vec<&str> = told.filter(|keyword| !["description", "type"].contains(keyword)).collect();
        let expected: &[&str] = match words.split(':').nth(1) {
            Some("int") => &["minimum", "maximum"],
            // Numbers that not each reader of JSON keeps are strings.
            Some("decimal") => &["pattern"],
            _ => &[],
        };
        assert_eq!(told, expected, "{text:#}");
    }
}

#[test]
fn keywords_tell_the_facets_that_they_can() {
    for (schema, keywords) in [
        (restricted("string", &[("pattern", "[A-Z]{2}^$")]), json!({ "type": "string", "pattern": r"^[A-Z]{2}\^\$$" })),
        (restricted("token", &[("length", "3")]), json!({ "type": "string", "minLength": 3, "maxLength": 3 })),
        (
            restricted("unsignedByte", &[("minExclusive", "4")]),
            json!({ "type": "integer", "exclusiveMinimum": 4, "maximum": 255 }),
        ),
        (
            restricted("integer", &[]),
            json!({ "type": ["integer", "string"], "pattern": r"^[ \t\n\r]*[+-]?[0-9]+[ \t\n\r]*$" }),
        ),
        (restricted("double", &[]), json!({ "type": ["number", "string"], "pattern": "^(?:-?INF|NaN)$" })),
        (
            restricted("token", &[("enumeration", " a  b "), ("enumeration", "c")]),
            json!({ "type": "string", "enum": ["a b", "c"] }),
        ),
        (
            restricted("int", &[("enumeration", "1"), ("enumeration", "+2")]),
            json!({ "type": "integer", "enum": [1, 2] }),
        ),
        (restricted("boolean", &[]), json!({ "type": "boolean" })),
    ] {
        assert_eq!(*schema.json_schema().pointer("/properties/$").unwrap(), keywords);
    }
    for (schema, keyword, bound) in [
        (restricted("unsignedLong", &[]), "maximum", json!(u64::MAX)),
        (restricted("double", &[("maxExclusive", "1e3")]), "exclusiveMaximum", json!(1000.0)),
        (restricted("decimal", &[("minInclusive", "0.50")]), "minimum", json!(0.5)),
    ] {
        assert_eq!(schema.json_schema()["properties"]["$"][keyword], bound, "bounds of numbers stay");
    }
    let hex = restricted("hexBinary", &[("maxLength", "4")]);
    assert_eq!(hex.json_schema().pointer("/properties/$/maxLength"), Some(&json!(8)), "two digits for a byte");
}

#[test]
fn nil_elements_are_null_and_keep_their_attributes() {
    let element = |content: &str| {
        content_of(&format!(
            "<xs:element name='a' nillable='true'><xs:complexType>{content}</xs:complexType></xs:element>"
        ))
    };
    let required = "<xs:attribute name='k' type='xs:int' use='required'/>";
    check(element("<xs:attribute name='k' type='xs:int'/>").json_schema(), &json!({ "a": null })).unwrap();
    assert!(check(element(required).json_schema(), &json!({ "a": null })).is_err());
    check(element(required).json_schema(), &json!({ "a": { "@k": 1, "@xsi:nil": true } })).unwrap();
    let simple = content_of("<xs:element name='a' nillable='true' type='xs:int'/>");
    check(simple.json_schema(), &json!({ "a": null })).unwrap();
    check(simple.json_schema(), &json!({ "a": 1 })).unwrap();
    assert!(check(simple.json_schema(), &json!({ "a": "1" })).is_err());
}

#[test]
fn a_pattern_of_truth_values_tells_their_spellings() {
    let digits = restricted("boolean", &[("pattern", "0|1")]);
    assert_eq!(digits.json_schema()["properties"]["$"]["enum"], json!(["1", "0"]));
    let words = restricted("boolean", &[("pattern", "true")]);
    assert_eq!(words.json_schema()["properties"]["$"]["enum"], json!([true]));
    for (schema, taken, refused) in [(&digits, json!("1"), json!(true)), (&words, json!(true), json!("1"))] {
        check(schema.json_schema(), &json!({ "$": taken })).unwrap();
        assert!(check(schema.json_schema(), &json!({ "$": refused })).is_err());
    }
}

fn content_of(element: &str) -> PayloadSchema {
    content(&format!("<xs:sequence>{element}</xs:sequence>"))
}

#[test]
fn fixed_values_abstract_types_and_wildcards_are_kept() {
    let fixed = content_of("<xs:element name='a' type='xs:int' fixed='07'/>");
    check(fixed.json_schema(), &json!({ "a": 7 })).unwrap();
    assert!(check(fixed.json_schema(), &json!({ "a": 8 })).is_err());
    let base = schema(
        "<xs:complexType name='B' abstract='true'><xs:sequence/></xs:complexType><xs:complexType name='C'>\
         <xs:complexContent><xs:extension base='t:B'><xs:sequence><xs:element name='next' type='t:B' minOccurs='0'/>\
         </xs:sequence></xs:extension></xs:complexContent></xs:complexType><xs:element name='r' type='t:B'/>",
    );
    let inner = json!({ "@xsi:type": "{urn:t}C" });
    check(base.json_schema(), &json!({ "@xsi:type": "{urn:t}C", "next": inner })).unwrap();
    assert!(check(base.json_schema(), &json!({ "next": inner })).is_err());
    let open = content(
        "<xs:sequence><xs:element name='a' type='xs:int'/><xs:any namespace='##other' processContents='lax'/>\
         </xs:sequence><xs:anyAttribute namespace='##other'/>",
    );
    let any = json!([{ "{urn:o}b": { "@k": "1", "$": ["text", { "{}c": "1" }] } }]);
    check(open.json_schema(), &json!({ "a": 1, "$any": any, "@{urn:o}k": "1" })).unwrap();
    assert!(check(open.json_schema(), &json!({ "a": "x", "$any": any })).is_err());
    assert!(check(open.json_schema(), &json!({ "a": 1, "$any": [{ "{urn:o}b": 1 }] })).is_err());
    let closed = content("<xs:sequence><xs:element name='a' type='xs:int'/></xs:sequence>");
    assert!(check(closed.json_schema(), &json!({ "a": 1, "@k": "1" })).is_err());
}

#[test]
fn wide_groups_make_schemas_of_their_own_size() {
    let element = |n: usize, least: usize| format!("<xs:element name='e{n}' type='xs:int' minOccurs='{least}'/>");
    let all = |least: usize| (0..3_000).map(|n| element(n, least)).collect::<String>();
    for model in [
        format!("<xs:sequence minOccurs='0'>{}</xs:sequence>", all(1)),
        format!("<xs:choice>{}</xs:choice>", all(1)),
        format!("<xs:choice>{}</xs:choice>", all(0)),
    ] {
        let schema = content(&model);
        let text = schema.json_schema().to_string();
        assert!(text.len() < 3_000 * 200, "{} bytes", text.len());
        let one = check(schema.json_schema(), &json!({ "e7": 1 }));
        assert_eq!(one.is_ok(), model.starts_with("<xs:choice"), "{one:?}");
    }
}

/// A chain of types as long as a schema may have, each used once, and types that double the references to the next one.
#[test]
fn deep_and_doubling_types_make_schemas_of_their_own_size() {
    let link = |n: usize, times: usize| {
        let child = |at| format!("<xs:element name='e{at}' type='t:T{}' minOccurs='0'/>", n + 1);
        format!(
            "<xs:complexType name='T{n}'><xs:sequence>{}</xs:sequence></xs:complexType>",
            (0..times).map(child).collect::<String>()
        )
    };
    for (links, times) in [(3_000, 1), (200, 2)] {
        let types: String = (0..links).map(|n| link(n, times)).collect();
        let end = format!("<xs:complexType name='T{links}'><xs:attribute name='k' type='xs:int'/></xs:complexType>");
        let schema = schema(&format!("<xs:element name='r' type='t:T0'/>{types}{end}"));
        let text = schema.json_schema().to_string();
        assert!(text.len() < links * 1_000, "{} bytes", text.len());
        check(schema.json_schema(), &json!({ "e0": { "e0": {} } })).unwrap();
    }
}
