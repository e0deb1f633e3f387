//! Validation of payloads, and repair by schemas.

use std::sync::Arc;

use bytes::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use systole_xml::ladder::Canonical;
use systole_xml::ladder::strict::canonicalize;
use systole_xml::schema::{
    Catalog, Payload, PayloadSchema, Schema, SchemaError, Validator, XsdDocument, decoder, element_decoder, encode,
    infer_namespace,
};
use systole_xml::vocab::{Position, QName, XmlLimits};

/// A list of numbers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
struct Numbers {
    #[serde(rename = "@unit")]
    unit: String,
    #[schemars(inner(range(min = 0, max = 99)))]
    #[serde(default)]
    number: Vec<u8>,
    last: Option<Last>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
struct Last {
    word: String,
}

impl Payload for Numbers {
    const NAMESPACE: &'static str = "urn:example:numbers:v1";
    const ROOT: &'static str = "numbers";
}

fn catalog() -> Arc<Catalog> {
    let mut catalog = Catalog::new();
    catalog.add(PayloadSchema::of::<Numbers>().unwrap()).unwrap();
    let xsd = "<xs:schema xmlns:xs=\"http://www.w3.org/2001/XMLSchema\" targetNamespace=\"urn:u\"><xs:element name=\"plain\"><xs:complexType>\
               <xs:sequence><xs:element name=\"x\" type=\"xs:int\"/></xs:sequence></xs:complexType></xs:element></xs:schema>";
    for schema in PayloadSchema::from_xsd("u.xsd", xsd).unwrap() {
        catalog.add(schema).unwrap();
    }
    Arc::new(catalog)
}

fn canonical(text: &str) -> Canonical {
    canonicalize(&Bytes::from(text.to_owned()), &XmlLimits::default().message_bytes(16 << 20).depth(1 << 20)).unwrap()
}

fn refused(text: &str) -> SchemaError {
    Validator::new(catalog()).validate(canonical(text)).unwrap_err()
}

#[test]
fn a_broken_rule_is_told_with_its_place_in_the_input() {
    let error = refused(
        "<numbers xmlns='urn:example:numbers:v1' unit='m'>\n  <number>1</number>\n  <number>100</number><number>x</number>\n <last/></numbers>",
    );
    assert_eq!(error.rule, "<number>: found '100', expected whole number from 0 to 99");
    assert_eq!(error.at, Some(Position { line: 3, column: 11 }));
    assert_eq!(error.path, "numbers/number[2]");
    let more: Vec<_> = error.more.iter().map(|f| (f.rule.as_str(), f.path.as_str(), f.at.unwrap())).collect();
    assert_eq!(
        more,
        [
            (
                "<number>: found 'x', expected whole number from 0 to 99",
                "numbers/number[3]",
                Position { line: 3, column: 31 }
            ),
            ("<last>: ends too early; expected <word>", "numbers/last", Position { line: 4, column: 2 }),
        ]
    );
    assert_eq!(error.to_string(), "<number>: found '100', expected whole number from 0 to 99 (numbers/number[2])");
}

#[test]
fn an_attribute_is_told_with_its_own_place() {
    let error = refused("<numbers xmlns='urn:example:numbers:v1'\n  more = '1'\n  unit='m'/>");
    assert_eq!(error.rule, "attribute 'more' of <numbers>: not allowed; expected 'unit'");
    assert_eq!(error.at, Some(Position { line: 2, column: 3 }));
}

/// Checks keys of 100,000 elements with a reference to each, and a dangling reference.
#[test]
fn identity_constraints_are_judged_however_large_the_payload_is() {
    let xsd = "<xs:schema xmlns:xs=\"http://www.w3.org/2001/XMLSchema\"><xs:element name=\"r\"><xs:complexType><xs:sequence>\
               <xs:element name=\"a\" type=\"xs:decimal\" maxOccurs=\"unbounded\"/>\
               <xs:element name=\"b\" minOccurs=\"0\" maxOccurs=\"unbounded\"><xs:complexType><xs:attribute name=\"to\" type=\"xs:decimal\"/></xs:complexType></xs:element>\
               </xs:sequence></xs:complexType><xs:key name=\"k\"><xs:selector xpath=\"a\"/><xs:field xpath=\".\"/></xs:key>\
               <xs:keyref name=\"f\" refer=\"k\"><xs:selector xpath=\".//b\"/><xs:field xpath=\"@to\"/></xs:keyref></xs:element></xs:schema>";
    let schemas = PayloadSchema::from_xsd("k.xsd", xsd).unwrap();
    let mut validator = Validator::new(Arc::new(Catalog::only(schemas)));
    let mut judge = |text: &str| {
        let limits = XmlLimits::default().message_bytes(64 << 20);
        let payload = canonicalize(&Bytes::from(text.to_owned()), &limits).unwrap();
        validator.validate(payload).map(drop).map_err(|error| error.rule)
    };
    assert_eq!(judge("<r><a>1</a><a>2</a><b to='1.0'/><b/></r>"), Ok(()));
    assert_eq!(
        judge("<r><a>1</a><a>01.0</a></r>"),
        Err("<a>: it repeats a value of 'k', which must be unique".to_owned())
    );
    assert_eq!(
        judge("<r><a>1</a><b to='2'/></r>"),
        Err("<b>: by 'f' it refers to a value of 'k' that is not there".to_owned())
    );
    let keys: String = (0..20_000).map(|n| format!("<a>{n}</a>")).collect();
    let references: String = (0..20_000).map(|n| format!("<b to='{n}'/>")).collect();
    assert_eq!(judge(&format!("<r>{keys}{references}</r>")), Ok(()));
    assert!(judge(&format!("<r>{keys}{references}<b to='-1'/></r>")).is_err());
    let mut shelves = accepts(
        "<xs:element name='r'><xs:complexType><xs:sequence><xs:element name='s' maxOccurs='unbounded'>
         <xs:complexType><xs:attribute name='a' type='xs:int'/></xs:complexType>
         <xs:key name='k'><xs:selector xpath='.'/><xs:field xpath='@a'/></xs:key></xs:element>
         <xs:element name='b' type='xs:int' maxOccurs='unbounded'/></xs:sequence></xs:complexType>
         <xs:keyref name='f' refer='k'><xs:selector xpath='b'/><xs:field xpath='.'/></xs:keyref></xs:element>",
    );
    let same = |one: &str| format!("<r>{one}{}{}</r>", "<s a='1'/>".repeat(10_000), "<b>1</b>".repeat(10_000));
    assert!(!shelves(&same("")) && !shelves(&same("<s a='2'/>")) && shelves("<r><s a='1'/><s a='2'/><b>1</b></r>"));
}

/// A function that reports whether a document is valid for a schema without namespace.
fn accepts(components: &str) -> impl FnMut(&str) -> bool + use<> {
    let xsd = format!("<xs:schema xmlns:xs='http://www.w3.org/2001/XMLSchema'>{components}</xs:schema>");
    let schemas = PayloadSchema::from_xsd("a.xsd", &xsd).unwrap();
    let mut validator = Validator::new(Arc::new(Catalog::only(schemas)));
    move |text| {
        let payload = canonicalize(&Bytes::from(text.to_owned()), &XmlLimits::default()).unwrap();
        validator.validate(payload).is_ok()
    }
}

/// Checks that a keyref finds keys in its own element or below it, never beside it (XSD 1.0 part 1, section 3.11.5).
#[test]
fn a_keyref_leads_to_keys_in_its_own_element_or_below() {
    let key = "<xs:key name='k'><xs:selector xpath='a'/><xs:field xpath='.'/></xs:key>";
    let keyref = "<xs:keyref name='f' refer='k'><xs:selector xpath='.//b'/><xs:field xpath='.'/></xs:keyref>";
    let types = "<xs:complexType name='shelf'><xs:choice minOccurs='0' maxOccurs='unbounded'>
        <xs:element name='a' type='xs:int'/><xs:element name='b' type='xs:int'/></xs:choice></xs:complexType>";
    let hall = |inside: &str, outside: &str| {
        format!(
            "{types}<xs:element name='hall'><xs:complexType><xs:sequence>
             <xs:element name='shelf' type='shelf' maxOccurs='unbounded'>{inside}</xs:element>
             <xs:element name='b' type='xs:int' minOccurs='0'/></xs:sequence></xs:complexType>{outside}</xs:element>"
        )
    };
    let mut within = accepts(&hall(&format!("{key}{keyref}"), ""));
    assert!(within("<hall><shelf><a>1</a><b>1</b></shelf><shelf><a>1</a></shelf></hall>"));
    assert!(!within("<hall><shelf><a>1</a></shelf><shelf><b>1</b></shelf></hall>"));
    assert!(!within("<hall><shelf><a>1</a><a>2</a></shelf><shelf><a>2</a><b>1</b></shelf></hall>"));
    assert!(!within("<hall><shelf><b>1</b></shelf><shelf><a>1</a></shelf></hall>"));
    let mut above = accepts(&hall(key, keyref));
    assert!(above("<hall><shelf><a>1</a></shelf><shelf><a>2</a></shelf><b>1</b></hall>"));
    assert!(above("<hall><shelf><a>1</a></shelf><shelf><a>2</a><b>1</b></shelf></hall>"));
    // The key of an element takes precedence over those below it.
    let mut nested = accepts(&format!(
        "<xs:complexType name='box'><xs:sequence><xs:element name='a' type='xs:int' minOccurs='0'/>
         <xs:element name='box' type='box' minOccurs='0' maxOccurs='9'>{key}</xs:element>
         <xs:element name='b' type='xs:int' minOccurs='0'/></xs:sequence></xs:complexType>
         <xs:element name='r' type='box'>{}</xs:element>",
        keyref.replace(".//b", "b")
    ));
    assert!(nested("<r><box><a>1</a><box><a>1</a></box></box><b>1</b></r>"));
    assert!(nested("<r><box><a>1</a><box><a>1</a></box><box><a>1</a></box></box><b>1</b></r>"));
    assert!(nested("<r><box><box><a>1</a></box></box><b>1</b></r>"));
    assert!(!nested("<r><box><box><a>1</a></box><box><a>1</a></box></box><b>1</b></r>"));
    assert!(!nested("<r><box><a>1</a></box><box><box><a>1</a></box></box><b>1</b></r>"));
    // A key that two elements below share is a key of neither.
    assert!(!above("<hall><shelf><a>1</a></shelf><shelf><a>1</a></shelf><b>1</b></hall>"));
}

/// Checks that a field matches at most one attribute, counting those of the namespace of `xsi:type`.
#[test]
fn a_field_of_any_attribute_counts_all_of_them() {
    let mut judge = accepts(
        "<xs:element name='r'><xs:complexType><xs:sequence><xs:element name='e' nillable='true' maxOccurs='9'>
         <xs:complexType><xs:attribute name='id' type='xs:int'/></xs:complexType></xs:element></xs:sequence></xs:complexType>
         <xs:unique name='u'><xs:selector xpath='e'/><xs:field xpath='@*'/></xs:unique></xs:element>",
    );
    let xsi = "xmlns:xsi='http://www.w3.org/2001/XMLSchema-instance'";
    assert!(judge("<r><e id='1'/><e id='2'/><e/></r>"));
    assert!(judge(&format!("<r><e id='1'/><e {xsi} xsi:nil='true'/></r>")));
    assert!(!judge(&format!("<r><e {xsi} id='1' xsi:nil='true'/></r>")));
    assert!(!judge(&format!("<r><e {xsi} xsi:nil='true'/><e {xsi} xsi:nil='1'/></r>")));
}

/// Checks that default and fixed values refer to IDs like written values.
#[test]
fn values_that_the_schema_gives_refer_to_ids() {
    let mut judge = accepts(
        "<xs:element name='r'><xs:complexType><xs:sequence><xs:element name='e' type='xs:IDREF' default='b' minOccurs='0'/>
         </xs:sequence><xs:attribute name='to' type='xs:IDREFS' default='a'/><xs:attribute name='id' type='xs:ID'/>
         </xs:complexType></xs:element>",
    );
    assert!(judge("<r id='a'/>") && judge("<r id='b' to='b'><e/></r>"));
    assert!(!judge("<r/>") && !judge("<r id='b'/>") && !judge("<r id='a'><e/></r>"));
}

#[test]
fn each_kind_of_mistake_has_words_of_its_own() {
    let head = "<numbers xmlns='urn:example:numbers:v1'";
    for (text, rule) in [
        (format!("{head}/>"), "<numbers>: the attribute 'unit' is required but missing"),
        (format!("{head} unit='' more=''/>"), "attribute 'more' of <numbers>: not allowed; expected 'unit'"),
        (
            format!("{head} unit='' nil='true'/>"),
            "attribute 'nil' of <numbers>: not allowed; expected 'unit'; for an element without a value write xsi:nil",
        ),
        (format!("{head} unit=''>text</numbers>"), "<numbers>: text is not allowed between its elements"),
        (format!("{head} unit=''><other/></numbers>"), "<other>: not expected here; expected one of <number>, <last>"),
        (
            format!("{head} unit=''><number><x/></number></numbers>"),
            "<number>: elements are not allowed in it, only text: write &lt; for each <, or <![CDATA[ … ]]> around the text",
        ),
        (
            format!("{head} unit=''><last><word/><word/></last></numbers>"),
            "<word>: not expected here; expected the end of <last>",
        ),
        ("<unknown xmlns='urn:x'/>".to_owned(), "no schema is known for {urn:x}unknown"),
    ] {
        let error = refused(&text);
        assert_eq!(error.rule, rule);
        assert!(error.at.is_some());
    }
}

#[test]
fn many_mistakes_are_not_all_told() {
    let text =
        format!("<numbers xmlns='urn:example:numbers:v1' unit=''>{}</numbers>", "<number>x</number>".repeat(20_000));
    assert!(refused(&text).more.len() < 10);
}

#[test]
fn proofs_are_decoded_by_type_or_taken_whole() {
    let value = Numbers { unit: "m".into(), number: vec![1, 2], last: Some(Last { word: "end".into() }) };
    let mut validator = Validator::new(catalog());
    let proof = validator.validate(encode(&value).unwrap()).unwrap();
    assert_eq!(*decoder::<Numbers>()(&proof).unwrap().downcast::<Numbers>().unwrap(), value);
    let element = element_decoder()(&proof).unwrap().downcast::<systole_xml::schema::Element>().unwrap();
    assert_eq!(element.as_str(), proof.payload().as_str());
    assert_eq!(proof.decode::<Numbers>().unwrap().into_value(), value);
}

#[test]
fn a_catalog_of_given_schemas_knows_no_others() {
    let catalog = Catalog::only([PayloadSchema::of::<Numbers>().unwrap()]);
    assert_eq!(catalog.payloads().count(), 1);
    let own = "<xs:schema xmlns:xs=\"http://www.w3.org/2001/XMLSchema\" targetNamespace=\"https://xml-pipeline.org/ns/core/v1\"><xs:element name=\"boot\" type=\"xs:int\"/></xs:schema>";
    let catalog = Catalog::only(PayloadSchema::from_xsd("own.xsd", own).unwrap());
    let boot = canonical("<boot xmlns='https://xml-pipeline.org/ns/core/v1'>1</boot>");
    assert!(Validator::new(Arc::new(catalog)).validate(boot.clone()).is_ok());
    assert!(Validator::new(Arc::new(Catalog::new())).validate(boot).is_err());
}

#[test]
fn threads_judge_at_once() {
    let catalog = catalog();
    std::thread::scope(|scope| {
        for number in 0..8u8 {
            let catalog = catalog.clone();
            scope.spawn(move || {
                let mut validator = Validator::new(catalog);
                for _ in 0..200 {
                    let value = Numbers { unit: "m".into(), number: vec![number; 20], last: None };
                    let proof = validator.validate(encode(&value).unwrap()).unwrap();
                    assert_eq!(proof.decode::<Numbers>().unwrap().into_value(), value);
                    let bad = canonical("<numbers xmlns='urn:example:numbers:v1' unit=''><number>x</number></numbers>");
                    assert!(validator.validate(bad).is_err());
                }
            });
        }
    });
}

#[test]
fn large_payloads_are_judged() {
    let mut validator = Validator::new(catalog());
    let wide = Numbers { unit: "m".into(), number: vec![7; 20_000], last: None };
    assert!(validator.validate(encode(&wide).unwrap()).is_ok());
    let long = "a&b<".repeat(40_000);
    let text = Numbers { unit: long.clone(), number: Vec::new(), last: Some(Last { word: long }) };
    let proof = validator.validate(encode(&text).unwrap()).unwrap();
    assert_eq!(proof.decode::<Numbers>().unwrap().into_value(), text);
    let deep = format!(
        "<numbers xmlns='urn:example:numbers:v1' unit=''>{}{}</numbers>",
        "<last>".repeat(100_000),
        "</last>".repeat(100_000)
    );
    assert_eq!(validator.validate(canonical(&deep)).unwrap_err().rule, "<last>: not expected here; expected <word>");
}

fn guided(text: &str, candidates: &[&str]) -> String {
    let candidates: Vec<QName> = candidates.iter().map(|name| name.parse().unwrap()).collect();
    infer_namespace(canonical(text), candidates.iter(), &catalog()).as_str().to_owned()
}

#[test]
fn a_root_without_namespace_gets_that_of_the_one_candidate() {
    let numbers = "{urn:example:numbers:v1}numbers";
    let text = "<numbers unit=\"m\"><number>1</number></numbers>";
    let repaired = "<numbers xmlns=\"urn:example:numbers:v1\" unit=\"m\"><number>1</number></numbers>";
    assert_eq!(guided(text, &[numbers, numbers, "{urn:u}plain"]), repaired);
    assert_eq!(guided("<plain><x>1</x></plain>", &["{urn:u}plain"]), "<n:plain xmlns:n=\"urn:u\"><x>1</x></n:plain>");
    // Several candidates, none, one without a schema, one without a namespace, and a root that has a namespace.
    assert_eq!(guided(text, &[numbers, "{urn:other}numbers"]), text);
    assert_eq!(guided(text, &["{urn:u}plain"]), text);
    assert_eq!(guided(text, &["{urn:other}numbers"]), text);
    assert_eq!(guided(text, &["numbers"]), text);
    assert_eq!(guided(repaired, &[numbers]), repaired);
    let foreign = "<numbers xmlns=\"urn:foreign\"></numbers>";
    assert_eq!(guided(foreign, &[numbers]), foreign);
}

#[test]
fn a_guided_payload_is_valid_and_says_that_it_was_repaired() {
    let text = canonical("<numbers unit='m'><number>1</number></numbers>");
    let repaired = infer_namespace(text, [Numbers::qname()].iter(), &catalog());
    assert_eq!(repaired.repairs().len(), 1);
    assert!(Validator::new(catalog()).validate(repaired).is_ok());
}

/// Members of a union that are not compared, because no steps are left, don't refuse a value: a later member would take
/// it with another meaning.
#[test]
fn a_verdict_is_the_same_until_the_steps_of_a_payload_are_used_up() {
    let restricted = |name: &str, base: &str, pattern: &str| {
        format!(
            "<xs:simpleType name='{name}'><xs:restriction base='{base}'><xs:pattern value='{pattern}'/>\
             </xs:restriction></xs:simpleType>"
        )
    };
    let members: String =
        (1..=40).map(|n| restricted(&format!("m{n}"), "xs:token", &format!("[0-9.]*x{{{n}}}"))).collect();
    let names: String = (1..=40).map(|n| format!("m{n} ")).collect();
    // It takes many steps for each byte, and little time.
    let costly = restricted("costly", "xs:token", "x((((a{0,9}){0,9}){0,9}){0,9}){0,9}");
    let number = restricted("number", "xs:decimal", "[0-9.]+");
    let xsd = format!(
        "<xs:schema xmlns:xs='http://www.w3.org/2001/XMLSchema'>{members}{costly}{number}\
         <xs:simpleType name='u'><xs:union memberTypes='{names} number xs:token'/></xs:simpleType>\
         <xs:simpleType name='h'><xs:union memberTypes='costly xs:token'/></xs:simpleType>\
         <xs:element name='r'><xs:complexType><xs:sequence>\
         <xs:element name='h' type='h'/><xs:element name='v' type='u' minOccurs='0' maxOccurs='unbounded'/>\
         <xs:element name='i' minOccurs='0' maxOccurs='unbounded'><xs:complexType><xs:simpleContent>\
         <xs:extension base='u'><xs:attribute name='k' type='u'/><xs:attribute name='f' type='u' fixed='1.0'/>\
         </xs:extension></xs:simpleContent></xs:complexType></xs:element>\
         <xs:element name='f' type='u' fixed='1.0' minOccurs='0' maxOccurs='unbounded'/></xs:sequence></xs:complexType>\
         <xs:unique name='text'><xs:selector xpath='i'/><xs:field xpath='.'/></xs:unique>\
         <xs:unique name='attribute'><xs:selector xpath='i'/><xs:field xpath='@k'/></xs:unique></xs:element></xs:schema>"
    );
    let catalog = Arc::new(Catalog::only(PayloadSchema::from_xsd("t.xsd", &xsd).unwrap()));
    let mut validator = Validator::new(catalog);
    let mut verdict = |long: usize, before: usize, rest: &str| {
        let (long, before) = ("a".repeat(long), "<v>1.0</v>".repeat(before));
        let checked = validator.validate(canonical(&format!("<r><h>{long}</h>{before}{rest}</r>")));
        checked.map(drop).map_err(|error| error.to_string())
    };
    let is_of_steps = |verdict: &Result<(), String>| matches!(verdict, Err(rule) if rule.contains("more steps than"));
    let (mut fits, mut exceeds) = (0, 1 << 16);
    while exceeds - fits > 1 {
        let middle = (fits + exceeds) / 2;
        if verdict(middle, 0, "").is_ok() { fits = middle } else { exceeds = middle }
    }
    for (rest, broken) in [
        ("<f>1.00</f><f>1.00</f><f>1.00</f>", None),
        ("<i f='1.00'>1.0</i><i f='1.00'>2.0</i><i f='1.00'>3.0</i>", None),
        ("<i>1.0</i><i>2.0</i><i>3.0</i>", None),
        ("<i>1.0</i><i>1.00</i>", Some("repeats a value")),
        ("<i k='1.0'>1</i><i k='1.00'>2</i>", Some("repeats a value")),
        ("<i k='1.0'>1</i><i k='2.0'>2</i>", None),
    ] {
        let (mut decided, mut refused) = (0, 0);
        for before in 0.. {
            match (verdict(fits - 1, before, rest), broken) {
                (found, _) if is_of_steps(&found) => refused += 1,
                (Err(rule), Some(broken)) if rule.contains(broken) => decided += 1,
                (Ok(()), None) => decided += 1,
                (found, _) => panic!("{rest} behind {before}: {found:?}"),
            }
            if refused > 12 {
                break;
            }
        }
        assert!(decided > 0, "{rest}");
    }
}

#[test]
fn a_schema_by_itself_judges_roots_by_their_type() {
    let schema = |inside: &str| {
        let text = format!("<xs:schema xmlns:xs='http://www.w3.org/2001/XMLSchema'>{inside}</xs:schema>");
        Schema::new(&[XsdDocument { name: "t.xsd".to_owned(), text }]).unwrap()
    };
    let t = "<xs:complexType name='T'><xs:attribute name='q' type='xs:int'/></xs:complexType>";
    let xsi = "xmlns:xsi='http://www.w3.org/2001/XMLSchema-instance'";
    for elements in ["", "<xs:element name='r'/>"] {
        let mut schema = schema(&format!("{t}{elements}"));
        assert_eq!(schema.elements().len(), usize::from(!elements.is_empty()));
        let mut rule = |document: &str| {
            let document = canonicalize(&document.to_owned().into(), &XmlLimits::default()).unwrap();
            schema.validate(&document).map_err(|error| error.to_string())
        };
        assert_eq!(rule(&format!("<zz {xsi} xsi:type='T' q='1'/>")), Ok(()));
        assert!(rule(&format!("<zz {xsi} xsi:type='T' q='x'/>")).unwrap_err().contains("expected whole number"));
        assert_eq!(rule("<zz q='1'/>"), Err("<zz>: not declared in the schema, and it has no xsi:type".to_owned()));
        assert!(rule(&format!("<zz {xsi} xsi:type='U'/>")).is_err());
        assert_eq!(rule("<r/>").is_ok(), !elements.is_empty());
    }
}
