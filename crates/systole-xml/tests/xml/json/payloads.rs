//! Payloads as JSON and back: each part of the mapping, its limits, and the errors.

use serde_json::{Value, json};
use systole_xml::ladder::Canonical;
use systole_xml::ladder::strict::canonicalize;
use systole_xml::schema::{Catalog, FromJsonError, JsonProblem, JsonRefusal, PayloadSchema, Validator};
use systole_xml::vocab::XmlLimits;

use super::{content, schema, text};

fn canonical(xml: &str) -> Canonical {
    canonicalize(&xml.to_owned().into(), &XmlLimits::default()).unwrap()
}

/// Checks that a valid payload is this JSON, which makes the same payload again.
fn is_json(schema: &PayloadSchema, xml: &str, json: &str) {
    let payload = canonical(xml);
    Validator::new(Catalog::only([schema.clone()]).into()).validate(payload.clone()).unwrap();
    assert_eq!(schema.to_json(&payload), json);
    becomes(schema, json, payload.as_str());
}

/// Checks that JSON makes this payload.
fn becomes(schema: &PayloadSchema, json: &str, xml: &str) {
    let read = schema.from_json(json, &XmlLimits::default()).unwrap_or_else(|error| panic!("{error}: {json}"));
    let payload = canonical(read.xml());
    assert_eq!(payload.as_str(), xml, "{json}");
    Validator::new(Catalog::only([schema.clone()]).into()).validate(payload).unwrap();
}

fn refused(schema: &PayloadSchema, json: &str) -> FromJsonError {
    schema.from_json(json, &XmlLimits::default()).unwrap_err()
}

fn simple(ty: &str) -> PayloadSchema {
    text(&format!("<xs:restriction base='xs:{ty}'/>"))
}

fn root(inside: &str) -> String {
    format!("<r xmlns=\"urn:t\">{inside}</r>")
}

#[test]
fn white_space_where_only_elements_may_stand_is_no_content() {
    let repeated = content(
        "<xs:sequence maxOccurs='2'><xs:element name='a' type='xs:int'/><xs:element name='b' type='xs:int'/></xs:sequence>",
    );
    let json = r#"{"$":[{"a":1},{"b":2}]}"#;
    for inside in ["<a>1</a><b>2</b>", "\n  <a>1</a>\n  <b>2</b>\n", "&#xD;<a>1</a>&#x9; <b>2</b>"] {
        let payload = canonical(&root(inside));
        Validator::new(Catalog::only([repeated.clone()]).into()).validate(payload.clone()).unwrap();
        assert_eq!(repeated.to_json(&payload), json, "{inside:?}");
    }
    becomes(&repeated, json, &root("<a>1</a><b>2</b>"));
    for text in [r#""\t""#, r#""""#, r#""text""#] {
        let error = refused(&repeated, &format!(r#"{{"$": [{text}, {{"a": 1}}, {{"b": 2}}]}}"#));
        assert_eq!(error.pointer, "/$/0");
        assert!(error.to_string().contains("expected an object with one property"), "{error}");
    }
    let optional =
        content("<xs:sequence minOccurs='0' maxOccurs='2'><xs:element name='a' type='xs:int'/></xs:sequence>");
    assert_eq!(optional.to_json(&canonical(&root("\n"))), "{}");
    let mixed = schema(
        "<xs:element name='r'><xs:complexType mixed='true'><xs:sequence maxOccurs='2'><xs:element name='a' type='xs:int'/>\
         </xs:sequence></xs:complexType></xs:element>",
    );
    is_json(&mixed, &root("\n<a>1</a> "), r#"{"$":["\n",{"a":1}," "]}"#);
}

#[test]
fn values_are_what_json_carries_without_loss_and_else_strings() {
    for (ty, literal, json) in [
        ("int", "-12", "-12"),
        ("int", "+12", r#""+12""#),
        ("int", "007", r#""007""#),
        ("integer", "9007199254740991", "9007199254740991"),
        ("integer", "9007199254740992", r#""9007199254740992""#),
        ("unsignedLong", "18446744073709551615", r#""18446744073709551615""#),
        ("decimal", "1.50", "1.50"),
        ("decimal", "0.123456789012345", "0.123456789012345"),
        ("decimal", "0.1234567890123456", r#""0.1234567890123456""#),
        ("decimal", ".5", r#"".5""#),
        ("double", "1e3", "1e3"),
        ("double", "0.30000000000000004", "0.30000000000000004"),
        ("double", "-INF", r#""-INF""#),
        ("double", "1e400", "1e400"),
        ("boolean", "true", "true"),
        ("boolean", "1", r#""1""#),
        ("string", "12", r#""12""#),
        ("string", "", r#""""#),
        ("date", "2026-01-31", r#""2026-01-31""#),
        ("NMTOKENS", "a b", r#"["a","b"]"#),
        ("NMTOKENS", "a  b", r#""a  b""#),
    ] {
        is_json(&simple(ty), &root(literal), &format!(r#"{{"$":{json}}}"#));
    }
    let union = text("<xs:union memberTypes='xs:int xs:boolean xs:NMTOKENS'/>");
    for (literal, json) in [("12", "12"), ("true", "true"), ("a b", r#"["a","b"]"#), ("+1", r#""+1""#)] {
        is_json(&union, &root(literal), &format!(r#"{{"$":{json}}}"#));
    }
}

#[test]
fn the_schema_of_a_number_takes_each_text_that_a_literal_becomes() {
    for (ty, literals) in [
        ("decimal", &["+1.50", ".5", "5.", "01", " 1 ", "1234567890123456.5", "-.5"][..]),
        ("integer", &["+12", "007", " -7 ", "123456789012345678901234567890"][..]),
        ("long", &["+3", "9007199254740993"][..]),
    ] {
        for literal in literals {
            let schema = simple(ty);
            let json: Value = serde_json::from_str(&schema.to_json(&canonical(&root(literal)))).unwrap();
            let checked = super::checker::check(schema.json_schema(), &json);
            assert!(json["$"].is_string() && checked.is_ok(), "{ty} {literal}: {json} {checked:?}");
        }
    }
}

#[test]
fn numbers_of_json_are_written_as_xml_writes_them() {
    for (ty, json, literal) in [
        ("int", "1.0", "1"),
        ("int", "12e1", "120"),
        ("int", "-0", "-0"),
        ("decimal", "1.5E-3", "0.0015"),
        ("decimal", "12.5e1", "125"),
        ("decimal", "123456789012345678901234567890.5", "123456789012345678901234567890.5"),
        ("decimal", "\"19.90\"", "19.90"),
        ("long", "\"9007199254740993\"", "9007199254740993"),
        ("double", "1E+2", "1E+2"),
    ] {
        becomes(&simple(ty), &format!(r#"{{"$": {json}}}"#), &root(literal));
    }
    for (ty, json, said) in [
        ("int", "\"12\"", "found a string, expected a whole number, such as 12"),
        ("int", "true", "found true or false, expected a whole number, such as 12"),
        ("string", "12", "found a number, expected a string, such as \"text\""),
        ("boolean", "\"true\"", "found a string, expected true or false, such as true"),
        ("boolean", "1", "found a number, expected true or false, such as true"),
        ("double", "\"1.5\"", "found a string, expected a number, such as 1.5"),
        ("int", "null", "found null, expected a whole number, such as 12"),
        ("NMTOKENS", "\"a b\"", "found a string, expected an array, such as [\"a\", \"b\"]"),
        ("NMTOKENS", "[\"a b\"]", "an item of a list is a word without white space"),
        ("decimal", "1e1001", "a number of more than 1000 digits"),
    ] {
        let error = refused(&simple(ty), &format!(r#"{{"$": {json}}}"#)).to_string();
        assert!(error.contains(said), "{error}");
        assert!(error.starts_with("/$"), "{error}");
    }
}

#[test]
fn elements_are_properties_in_any_order_and_arrays_where_there_may_be_several() {
    let order = content(
        "<xs:sequence><xs:element name='who' type='xs:string'/>\
         <xs:element name='line' maxOccurs='9'><xs:complexType><xs:sequence><xs:element name='n' type='xs:int'/></xs:sequence>\
         <xs:attribute name='of' type='xs:string'/></xs:complexType></xs:element>\
         <xs:choice><xs:element name='card' type='xs:string'/><xs:element name='cash'><xs:complexType/></xs:element>\
         </xs:choice></xs:sequence><xs:attribute name='k' type='xs:int'/>",
    );
    let xml = "<r xmlns=\"urn:t\" k=\"1\"><who>Ada</who><line of=\"tea\"><n>2</n></line><line><n>3</n></line><cash></cash></r>";
    is_json(&order, xml, r#"{"@k":1,"who":"Ada","line":[{"@of":"tea","n":2},{"n":3}],"cash":{}}"#);
    becomes(&order, r#"{"cash": {}, "line": [{"n": 2, "@of": "tea"}, {"n": 3}], "who": "Ada", "@k": 1}"#, xml);
    // White space between elements, and prefixes, are not kept.
    let spaced = "<p:r xmlns:p='urn:t' k='1'>\n <p:who>Ada</p:who>\n <p:line of='tea'><p:n>2</p:n></p:line><p:line><p:n>3</p:n></p:line><p:cash/>\n</p:r>";
    assert_eq!(order.to_json(&canonical(spaced)), order.to_json(&canonical(xml)));
    for (json, pointer, said) in [
        (
            r#"{"who": "Ada", "lines": []}"#,
            "/lines",
            "no property 'lines' is known here, expected '@k', 'who', 'line', 'card', 'cash'",
        ),
        (r#"{"line": {"n": 1}}"#, "/line", "found an object, expected an array"),
        (r#"{"line": [{"n": 1}, 5]}"#, "/line/1", "found a number, expected an object, such as {\"@of\": …}"),
        (r#"{"line": []}"#, "/line", "the array is empty"),
        (r#"{"who": null}"#, "/who", "found null, expected a string"),
        (r#"{"who": ["Ada"]}"#, "/who", "found an array, expected a string"),
        (r#"{"who": "a\u0001"}"#, "/who", "XML can't carry the character U+0001"),
        ("[]", "", "found an array, expected an object"),
    ] {
        let error = refused(&order, json);
        assert_eq!(error.pointer, pointer, "{error}");
        assert!(error.problem.to_string().contains(said), "{error}");
    }
}

#[test]
fn rules_that_a_payload_breaks_have_pointers() {
    let order = content(
        "<xs:sequence><xs:element name='a~b' type='xs:string' minOccurs='0'/>\
         <xs:element name='line' maxOccurs='9'><xs:complexType><xs:sequence><xs:element name='n' type='xs:byte'/></xs:sequence>\
         <xs:attribute name='of' type='xs:byte'/></xs:complexType></xs:element></xs:sequence>"
            .replace("a~b", "ab")
            .as_str(),
    );
    let judge = |json: &str| {
        let read = order.from_json(json, &XmlLimits::default()).unwrap();
        let judged = Validator::new(Catalog::only([order.clone()]).into()).validate(canonical(read.xml()));
        let error = judged.unwrap_err();
        let rules = std::iter::once(error.rule.clone()).chain(error.more.iter().map(|finding| finding.rule.clone()));
        read.pointers(&error).into_iter().zip(rules).collect::<Vec<_>>()
    };
    let told = judge(r#"{"line": [{"n": 1}, {"n": 300, "@of": 128}, {}]}"#);
    let pointers: Vec<&str> = told.iter().map(|(pointer, _)| pointer.as_str()).collect();
    assert_eq!(pointers, ["/line/1/@of", "/line/1/n", "/line/2"], "{told:?}");
    assert!(told[1].1.contains("found '300', expected whole number"), "{told:?}");
    assert_eq!(judge("{}")[0].0, "");
}

#[test]
fn nil_mixed_and_open_content_is_lossless() {
    let part = schema(
        "<xs:element name='r'><xs:complexType><xs:sequence><xs:element name='a' type='xs:int' nillable='true'/>\
         <xs:element name='b' nillable='true' minOccurs='0'><xs:complexType><xs:attribute name='k' type='xs:int'/></xs:complexType>\
         </xs:element></xs:sequence></xs:complexType></xs:element>",
    );
    let xsi = "xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\"";
    is_json(&part, &root(&format!("<a {xsi} xsi:nil=\"true\"></a>")), r#"{"a":null}"#);
    is_json(&part, &root(&format!("<a {xsi} xsi:nil=\"false\">5</a>")), r#"{"a":{"@xsi:nil":false,"$":5}}"#);
    is_json(
        &part,
        &root(&format!("<a>5</a><b {xsi} k=\"1\" xsi:nil=\"true\"></b>")),
        r#"{"a":5,"b":{"@k":1,"@xsi:nil":true}}"#,
    );
    is_json(&part, &root(&format!("<a>5</a><b {xsi} xsi:nil=\"1\"></b>")), r#"{"a":5,"b":{"@xsi:nil":"1"}}"#);
    let mixed = content(
        "<xs:choice minOccurs='0' maxOccurs='unbounded'><xs:element name='em' type='xs:string'/>\
         <xs:element name='n' type='xs:int'/></xs:choice>",
    );
    is_json(&mixed, &root("<em>a</em><n>1</n><em>b</em>"), r#"{"$":[{"em":"a"},{"n":1},{"em":"b"}]}"#);
    is_json(&mixed, &root(""), "{}");
    let open = content(
        "<xs:sequence><xs:element name='a' type='xs:int'/><xs:any namespace='##other' processContents='skip' minOccurs='0' \
         maxOccurs='9'/></xs:sequence><xs:anyAttribute processContents='skip'/>",
    );
    let xml = "<r xmlns=\"urn:t\" xmlns:a1=\"urn:o\" a1:k=\"x\"><a>1</a><i xmlns=\"urn:o\"> <j xmlns=\"\" k=\"1\">t</j>&amp;</i></r>";
    let json =
        r#"{"@xmlns:a1":"urn:o","@{urn:o}k":"x","a":1,"$any":[{"{urn:o}i":[" ",{"{}j":{"@k":"1","$":"t"}},"&"]}]}"#;
    is_json(&open, xml, &json.replace("[\" \"", "{\"$\":[\" \"").replace("\"&\"]", "\"&\"]}"));
    // The meaning of prefixes in values of content that no schema describes.
    let named = "<r xmlns=\"urn:t\" xmlns:q=\"urn:q\"><a>1</a><i xmlns=\"urn:o\">q:name</i></r>";
    is_json(&open, named, r#"{"@xmlns:q":"urn:q","a":1,"$any":[{"{urn:o}i":"q:name"}]}"#);
    let typed = schema(
        "<xs:complexType name='B'><xs:sequence/></xs:complexType><xs:complexType name='C'><xs:complexContent><xs:extension \
         base='t:B'><xs:sequence><xs:element name='n' type='xs:int'/></xs:sequence></xs:extension></xs:complexContent>\
         </xs:complexType><xs:element name='r'><xs:complexType><xs:sequence><xs:element name='x' type='t:B'/></xs:sequence>\
         </xs:complexType></xs:element>",
    );
    let xml = format!("<r xmlns=\"urn:t\"><x xmlns:n1=\"urn:t\" {xsi} xsi:type=\"n1:C\"><n>5</n></x></r>");
    let json = r#"{"x":{"@xsi:type":"{urn:t}C","$":[{"n":"5"}]}}"#;
    becomes(&typed, json, canonical(&xml).as_str());
}

#[test]
fn qualified_names_are_in_clark_notation() {
    let schema = content(
        "<xs:sequence><xs:element name='q' type='xs:QName'/></xs:sequence><xs:attribute name='k' type='xs:QName'/>",
    );
    let xml = "<r xmlns=\"urn:t\" xmlns:n1=\"urn:q\" k=\"n1:a\"><q xmlns:n1=\"urn:o\">n1:b</q></r>";
    is_json(&schema, xml, r#"{"@k":"{urn:q}a","q":"{urn:o}b"}"#);
    assert!(matches!(refused(&schema, r#"{"q": "b"}"#).problem, JsonProblem::Name { .. }));
}

#[test]
fn mistakes_in_the_text_have_a_place_and_a_correction() {
    let schema = content("<xs:sequence><xs:element name='a' type='xs:string'/></xs:sequence>");
    for (json, at, pointer, said) in [
        ("", (1, 1), "", "found the end, expected a JSON value"),
        ("{\"a\": \"x\"", (1, 10), "/a", "expected ',' or '}'"),
        ("{\"a\": \"x\",}", (1, 11), "/a", "found '}', expected a key in double quotes"),
        ("{a: 1}", (1, 2), "", "expected a key in double quotes"),
        ("{\n \"a\": [1,\n 2 3]}", (3, 4), "/a/1", "expected ',' or ']'"),
        ("{\"a\": 01}", (1, 7), "/a", "expected a number, such as"),
        ("{\"a\": nul}", (1, 7), "/a", "expected a JSON value"),
        ("{\"a\": \"\\x\"}", (1, 8), "/a", "expected an escape of JSON"),
        ("{\"a\": \"\\ud800\"}", (1, 8), "/a", "both halves of a pair"),
        ("{\"a\": \"\n\"}", (1, 8), "/a", "in place of the control character"),
        ("{\"a\": 1} x", (1, 10), "", "expected the end of the document"),
        ("{\"a\": {\"b\": 1, \"\\u0062\": 2}}", (1, 28), "/a/b", "the key 'b' is repeated: write it once"),
        ("{\"a\": \"x\", \"a\": \"y\"}", (1, 21), "/a", "the key 'a' is repeated"),
    ] {
        let error = refused(&schema, json);
        assert_eq!((error.at, error.pointer.as_str()), (Some(at), pointer), "{json}: {error}");
        assert!(error.to_string().contains(said), "{error}");
    }
    becomes(&schema, "{\"\\u0061\": \"\\ud83d\\ude00\\/\\\"\\n\"}", "<r xmlns=\"urn:t\"><a>\u{1F600}/\"\n</a></r>");
}

#[test]
fn documents_are_bounded_and_nothing_recurses() {
    let schema = schema(
        "<xs:element name='r' type='t:R'/><xs:complexType name='R'><xs:sequence><xs:element name='r' type='t:R' minOccurs='0' \
         maxOccurs='unbounded'/></xs:sequence></xs:complexType>",
    );
    let deep = "[".repeat(1_000_000);
    assert!(matches!(refused(&schema, &deep).problem, JsonProblem::TooDeep { most: 768 }));
    let nested = |depth: usize| format!("{}{}", "{\"r\":[".repeat(depth), "]}".repeat(depth));
    assert!(matches!(refused(&schema, &nested(400)).problem, JsonProblem::TooDeep { .. }));
    schema.from_json(&nested(300).replace("[]", "[{}]"), &XmlLimits::default()).unwrap();
    let large = format!("{{\"r\": [{}]}}", vec!["{}"; 200_000].join(","));
    assert!(
        matches!(refused(&schema, &large).problem, JsonProblem::TooLarge { .. }),
        "the XML is larger than its JSON"
    );
    let larger = " ".repeat((1 << 20) + 1);
    assert!(matches!(refused(&schema, &larger).problem, JsonProblem::TooLarge { most } if most == 1 << 20));
    let limits = XmlLimits::default().depth(200_000).message_bytes(1 << 24);
    let deep = nested(100_000).replace("[]", "[{}]");
    let read = schema.from_json(&deep, &limits).unwrap();
    let payload = canonicalize(&read.into_xml().into(), &limits).unwrap();
    assert_eq!(schema.to_json(&payload).len(), deep.len());
    let keys: String = (0..50_000).map(|number| format!("\"k{number}\":1,")).collect();
    let error = refused(&schema, &format!("{{{keys}\"k7\":1}}"));
    assert_eq!(error.problem, JsonProblem::Repeated { key: "k7".to_owned() });
}

#[test]
fn a_payload_that_names_itself_is_found_by_its_name() {
    let declare = |namespace: &str| {
        let xsd = format!(
            "<xs:schema xmlns:xs='http://www.w3.org/2001/XMLSchema' targetNamespace='{namespace}'><xs:element name='add' \
             type='xs:int'/><xs:element name='{}' type='xs:string'/></xs:schema>",
            &namespace[4..]
        );
        PayloadSchema::from_xsd("s.xsd", &xsd).unwrap()
    };
    let catalog = Catalog::only(declare("urn:one").into_iter().chain(declare("urn:two")));
    let read = |json: &str, may_be: &str| {
        let limits = XmlLimits::default();
        catalog.from_named_json(json, |name| name.namespace().contains(may_be), &limits).map(|read| read.into_xml())
    };
    assert_eq!(read(r#"{"one": "x"}"#, "").unwrap(), "<one xmlns=\"urn:one\">x</one>");
    assert_eq!(read(r#"{"add": 5}"#, "two").unwrap(), "<add xmlns=\"urn:two\">5</add>");
    assert_eq!(read(r#"{"{urn:one}add": 5}"#, "").unwrap(), "<add xmlns=\"urn:one\">5</add>");
    let error = read(r#"{"add": 5}"#, "").unwrap_err().to_string();
    assert!(error.contains("the name of the payload: {\"{urn:one}add\": …}, {\"{urn:two}add\": …}"), "{error}");
    for wrong in [r#"{"sub": 5}"#, "5", "{}", r#"{"one": "x", "add": 5}"#] {
        let error = read(wrong, "").unwrap_err().to_string();
        assert!(error.contains("expected an object with one property") && error.contains("{\"one\": …}"), "{error}");
    }
    let payload = canonical("<add xmlns='urn:one'>5</add>");
    let json: Value = serde_json::from_str(&catalog.to_named_json(&payload).unwrap()).unwrap();
    assert_eq!(json, json!({ "{urn:one}add": 5 }), "the name is shared");
    let payload = canonical("<one xmlns='urn:one'>5</one>");
    assert_eq!(catalog.to_named_json(&payload).unwrap(), r#"{"one":"5"}"#);
    assert_eq!(catalog.to_named_json(&canonical("<other/>")), None);
}

#[test]
fn payloads_that_name_themselves_are_read_and_proved_at_once() {
    let limits = XmlLimits::default();
    let schema = text("<xs:restriction base='xs:byte'/>");
    let mut validator = Validator::new(Catalog::only([schema]).into());
    let mut read = |json: &str| validator.payloads_of_json(json.as_bytes(), |_| true, &limits);
    let written = |json: &str, read: &mut dyn FnMut(&str) -> Result<Vec<_>, JsonRefusal>| -> Vec<String> {
        let valid: Vec<systole_xml::schema::Validated<_>> = read(json).unwrap();
        valid.iter().map(|valid| valid.payload().as_str().to_owned()).collect()
    };
    assert_eq!(written(r#"{"r": 1}"#, &mut read), ["<r xmlns=\"urn:t\">1</r>"]);
    assert_eq!(written(" [{\"r\": 1}, {\"{urn:t}r\": 2}]\n", &mut read).len(), 2);
    assert_eq!(written("[]", &mut read).len(), 0);
    for (json, pointer, mistake) in [
        (r#"{"r": 200}"#, Some("/r"), "/r: "),
        (r#"[{"r": 1}, {"r": 200}]"#, Some("/1/r"), "/1/r: "),
        (r#"[{"r": 1}, {"r": true}]"#, Some("/1/r"), "/1/r: found true or false, expected a whole number"),
        (
            r#"[{"r": 1}, "r"]"#,
            Some("/1"),
            "/1: expected an object with one property, the name of the payload: {\"r\": …}",
        ),
        (r#"{"r": 1, "s": 2}"#, Some(""), "expected an object with one property"),
        (r#"[{"r": 1}"#, Some("/0"), "line 1, column 10: not well-formed JSON: found the end, expected ',' or ']'"),
        (r#"{"r": 1, "r": 1}"#, Some("/r"), "line 1, column 17: the key 'r' is repeated"),
    ] {
        let refusal = read(json).unwrap_err();
        assert_eq!(refusal.pointer(), pointer, "{json}: {refusal:?}");
        assert!(refusal.to_string().starts_with(mistake), "{json}: {refusal}");
        assert_eq!(refusal.mistakes(), [refusal.to_string()], "{json}");
    }
    let refusal = read(r#"{"r": 200}"#).unwrap_err();
    let JsonRefusal::Rules { example: Some(example), .. } = refusal else { panic!("{refusal:?}") };
    assert_eq!(written(&example, &mut read).len(), 1, "{example}");
    let refusal = validator.payload_of_json(b"{\"r\": \"\xff\"}", |_| true, &limits).unwrap_err();
    assert!(refusal.pointer().is_none() && refusal.to_string().starts_with("not UTF-8"), "{refusal}");
    let small = XmlLimits::default().message_bytes(10);
    assert!(validator.payload_of_json(br#"{"r":      1}"#, |_| true, &small).unwrap_err().is_limit());
}

#[test]
fn numbers_and_truth_values_are_written_as_json_has_them_where_that_is_wanted() {
    let xsd = "<xs:schema xmlns:xs='http://www.w3.org/2001/XMLSchema'><xs:element name='p'><xs:complexType><xs:sequence>\
               <xs:element name='b' type='xs:boolean' maxOccurs='9'/><xs:element name='i' type='xs:int'/>\
               <xs:element name='d' type='xs:decimal' maxOccurs='9'/><xs:element name='f' type='xs:double' maxOccurs='9'/>\
               <xs:element name='l'><xs:simpleType><xs:list itemType='xs:boolean'/></xs:simpleType></xs:element>\
               <xs:element name='s' type='xs:string'/></xs:sequence></xs:complexType></xs:element></xs:schema>";
    let schema = PayloadSchema::from_xsd("p.xsd", xsd).unwrap().remove(0);
    let xml = "<p><b>1</b><b> 0 </b><b>true</b><i>+007</i><d>.50</d><d>1.50</d><d>-0.</d><f>+1.5E3</f><f>INF</f><l>1 0</l>\
               <s>007</s></p>";
    let payload = canonicalize(&xml.into(), &XmlLimits::default()).unwrap();
    assert_eq!(
        schema.to_canonical_json(&payload),
        r#"{"b":[true,false,true],"i":7,"d":[0.5,1.50,-0],"f":[1.5E3,"INF"],"l":[true,false],"s":"007"}"#
    );
    assert_eq!(
        schema.to_json(&payload),
        r#"{"b":["1"," 0 ",true],"i":"+007","d":[".50",1.50,"-0."],"f":["+1.5E3","INF"],"l":["1","0"],"s":"007"}"#
    );
    assert_eq!(
        schema.to_named_canonical_json(&payload, "p"),
        format!("{{\"p\":{}}}", schema.to_canonical_json(&payload))
    );
}

#[test]
fn mistakes_are_told_in_words_of_json() {
    let xsd = "<xs:schema xmlns:xs='http://www.w3.org/2001/XMLSchema'><xs:element name='ask'><xs:complexType><xs:sequence>\
               <xs:element name='a' type='xs:int'/><xs:element name='b' minOccurs='0'><xs:simpleType>\
               <xs:union memberTypes='xs:int xs:date'/></xs:simpleType></xs:element>\
               <xs:choice><xs:element name='c' type='xs:string'/><xs:element name='d' type='xs:boolean'/></xs:choice>\
               </xs:sequence><xs:attribute name='k' use='required' type='xs:token'/></xs:complexType></xs:element></xs:schema>";
    let mut validator = Validator::new(Catalog::only(PayloadSchema::from_xsd("a.xsd", xsd).unwrap()).into());
    let mut refused = |json: &str| {
        let refusal = validator.payload_of_json(json.as_bytes(), |_| true, &XmlLimits::default()).unwrap_err();
        refusal.mistakes().join("; ")
    };
    for (json, mistakes) in [
        (r#"{"ask":{"a":1,"@k":"k"}}"#, "/ask: something is missing: expected one of 'b', 'c', 'd'"),
        (r#"{"ask":{"c":"x","@k":"k"}}"#, "/ask/c: expected 'a' before it, or instead of it"),
        (r#"{"ask":{"a":1,"c":"x"}}"#, "/ask: the property '@k' is missing"),
        (r#"{"ask":{"a":1,"c":"x","d":true,"@k":"k"}}"#, "/ask/d: not allowed beside the other properties"),
        (
            r#"{"ask":{"a":"q","c":"x","@k":"k"}}"#,
            "/ask/a: found 'q', expected whole number from -2147483648 to 2147483647",
        ),
        (
            r#"{"ask":{"a":1,"b":true,"c":"x","@k":"k"}}"#,
            "/ask/b: found 'true', expected whole number from -2147483648 to 2147483647 or date",
        ),
        (
            r#"{"ask":{"a":1,"b":[],"c":"x","@k":"k"}}"#,
            "/ask/b: found an array, expected a string, a number, true, false or an array, such as \"text\"",
        ),
    ] {
        assert_eq!(refused(json), mistakes, "{json}");
    }
    let may_be_sent = |_: &_| false;
    let nothing = validator.payload_of_json(b"{\"ask\":1}", may_be_sent, &XmlLimits::default()).unwrap_err();
    assert!(nothing.to_string().ends_with("the name of the payload: and no payload may be sent here"), "{nothing}");
}
