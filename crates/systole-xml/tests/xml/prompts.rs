//! Prompts of payloads beside the refusals of the judge: what a refusal asks for, the prompt says before.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use systole_xml::ladder::strict::canonicalize;
use systole_xml::schema::{Catalog, PayloadSchema, Validator};
use systole_xml::vocab::XmlLimits;

const HEAD: &str = "<xs:schema xmlns:xs='http://www.w3.org/2001/XMLSchema'>";

/// The built-in types that have values in messages, and a value of each.
const XSD_TYPES: [(&str, &str); 42] = [
    ("string", "text"),
    ("boolean", "true"),
    ("decimal", "1.5"),
    ("float", "1.5"),
    ("double", "1.5"),
    ("duration", "PT30S"),
    ("dateTime", "2026-01-31T12:00:00Z"),
    ("time", "12:00:00"),
    ("date", "2026-01-31"),
    ("gYearMonth", "2026-01"),
    ("gYear", "2026"),
    ("gMonthDay", "--01-31"),
    ("gDay", "---31"),
    ("gMonth", "--01"),
    ("hexBinary", "CAFE"),
    ("base64Binary", "c3lzdG9sZQ=="),
    ("anyURI", "https://example.org/"),
    ("QName", "name"),
    ("normalizedString", "text"),
    ("token", "text"),
    ("language", "en"),
    ("NMTOKEN", "name"),
    ("NMTOKENS", "name"),
    ("Name", "name"),
    ("NCName", "name"),
    ("ID", "name"),
    ("IDREF", "name"),
    ("IDREFS", "name"),
    ("integer", "1"),
    ("nonPositiveInteger", "-1"),
    ("negativeInteger", "-2"),
    ("long", "1"),
    ("int", "1"),
    ("short", "1"),
    ("byte", "1"),
    ("nonNegativeInteger", "1"),
    ("unsignedLong", "1"),
    ("unsignedInt", "1"),
    ("unsignedShort", "1"),
    ("unsignedByte", "1"),
    ("positiveInteger", "2"),
    ("anySimpleType", "text"),
];

/// Values that most types refuse.
const WRONG: [&str; 19] = [
    "",
    "x",
    "x y",
    "Z9",
    "true",
    "0.123456789",
    "0",
    "9",
    "-9",
    "9 9 9 9",
    "99999999999999999999999",
    "PT9S",
    "P9Y",
    "1999-01-01",
    "2999-01-01T00:00:00Z",
    "23:59:59",
    "ABCDEF99",
    "c3lz",
    "--05",
];

/// The bounds of integers of 64 bits, which prompts leave out.
const UNCOUNTABLE: [&str; 3] = ["-9223372036854775808", "9223372036854775807", "18446744073709551615"];

/// A payload whose content is a type, and the judge of it.
struct Case {
    schema: PayloadSchema,
    judge: Validator,
}

impl Case {
    /// `None` if the schema is not valid, because the type doesn't have one of the facets.
    fn of(content: &str) -> Option<Self> {
        let text = format!("{HEAD}<xs:element name='r'>{content}</xs:element></xs:schema>");
        let schema = PayloadSchema::from_xsd("a.xsd", &text).ok()?.remove(0);
        let mut catalog = Catalog::new();
        catalog.add(schema.clone()).unwrap();
        Some(Self { schema, judge: Validator::new(Arc::new(catalog)) })
    }

    fn fields(&self) -> &str {
        self.schema.words().split("\nExample:").next().unwrap_or_default()
    }

    /// The description of a valid value by the refusal of a value.
    fn expected(&mut self, value: &str) -> Option<String> {
        let text = format!("<r>{value}</r>");
        let payload = canonicalize(&Bytes::from(text), &XmlLimits::default()).unwrap();
        let rule = self.judge.validate(payload).err()?.rule;
        rule.split_once("expected ").map(|(_, expected)| expected.to_owned())
    }
}

fn restricted(base: &str, steps: &[&[(&str, &str)]]) -> String {
    steps.iter().fold(base.to_owned(), |base, facets| {
        let facets: String = facets.iter().map(|(name, value)| format!("<xs:{name} value='{value}'/>")).collect();
        format!("<xs:simpleType><xs:restriction>{base}{facets}</xs:restriction></xs:simpleType>")
    })
}

/// The facets of each step of a restriction.
type Steps<'a> = Vec<Vec<(&'static str, &'a str)>>;

/// Steps of restriction with each facet alone, and with two of them.
fn restrictions(sample: &str) -> Vec<(&'static str, Steps<'_>)> {
    let alone = |name, value| (name, vec![vec![(name, value)]]);
    vec![
        alone("length", "3"),
        alone("minLength", "2"),
        alone("maxLength", "2"),
        alone("pattern", "[1-4a-p].*"),
        alone("enumeration", sample),
        alone("minInclusive", sample),
        alone("minExclusive", sample),
        alone("maxInclusive", sample),
        alone("maxExclusive", sample),
        alone("totalDigits", "4"),
        alone("fractionDigits", "2"),
        ("minLength and maxLength", vec![vec![("minLength", "1")], vec![("maxLength", "2")]]),
        ("two patterns", vec![vec![("pattern", "[1-4a-p].*")], vec![("pattern", ".*[0-9]")]]),
        ("pattern and enumeration", vec![vec![("pattern", "[0-9]*"), ("enumeration", sample)]]),
        ("pattern of an enumeration", vec![vec![("enumeration", sample)], vec![("pattern", "[0-9]*")]]),
        ("bound of an enumeration", vec![vec![("enumeration", sample)], vec![("maxInclusive", sample)]]),
    ]
}

/// A prompt quotes the values of an enumeration by other signs, because it names what each of them means.
fn unquoted(words: &str) -> String {
    words.replace(['\'', '"'], "")
}

#[test]
fn a_prompt_says_of_each_facet_of_each_type_what_a_refusal_says() {
    let mut seen: BTreeMap<(String, &str), usize> = BTreeMap::new();
    let mut wrong = String::new();
    for (xsd_type, sample) in XSD_TYPES {
        let restriction = |inside: &str| {
            format!("<xs:simpleType><xs:restriction base='xs:{xsd_type}'>{inside}</xs:restriction></xs:simpleType>")
        };
        let kinds = [
            ("atomic", restriction("")),
            ("list", format!("<xs:simpleType><xs:list itemType='xs:{xsd_type}'/></xs:simpleType>")),
            (
                "list of a restriction",
                format!(
                    "<xs:simpleType><xs:list>{}</xs:list></xs:simpleType>",
                    restriction("<xs:pattern value='[0-9]+'/>")
                ),
            ),
            ("union", format!("<xs:simpleType><xs:union memberTypes='xs:{xsd_type} xs:gMonth'/></xs:simpleType>")),
        ];
        for (kind, base) in kinds {
            let unrestricted = Case::of(&base).map(|case| case.fields().to_owned()).unwrap_or_default();
            let none = ("none", Vec::new());
            for (facet, steps) in std::iter::once(none).chain(restrictions(sample)) {
                let steps: Vec<&[(&str, &str)]> = steps.iter().map(Vec::as_slice).collect();
                let Some(mut case) = Case::of(&restricted(&base, &steps)) else { continue };
                let fields = unquoted(case.fields());
                if facet != "none" && case.fields() == unrestricted {
                    wrong.push_str(&format!("{xsd_type}, {kind}: {facet} is not said: {fields}\n"));
                }
                for value in WRONG {
                    let Some(expected) = case.expected(value) else { continue };
                    *seen.entry((kind.to_owned(), facet)).or_default() += 1;
                    let is_said = fields.contains(&unquoted(&expected));
                    if !is_said && !UNCOUNTABLE.iter().any(|bound| expected.contains(bound)) {
                        wrong.push_str(&format!("{xsd_type}, {kind}, {facet}: '{value}': {expected}\n  {fields}\n"));
                    }
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    for (facet, _) in restrictions("") {
        for (kind, lacks) in [
            ("atomic", &[][..]),
            ("list", &["clusive", "igits", "bound"][..]),
            ("list of a restriction", &["clusive", "igits", "bound"][..]),
            ("union", &["clusive", "igits", "bound", "ength"][..]),
        ] {
            let has = !lacks.iter().any(|part| facet.contains(part));
            assert_eq!(seen.contains_key(&(kind.to_owned(), facet)), has, "{kind}, {facet}");
        }
    }
}

#[test]
fn the_bounds_of_lists_unions_numbers_and_bytes_are_in_words() {
    let ints = "<xs:simpleType><xs:list itemType='xs:int'/></xs:simpleType>";
    let either = "<xs:simpleType><xs:union memberTypes='xs:int xs:date'/></xs:simpleType>";
    let of = |base: &str| format!("<xs:simpleType><xs:restriction base='xs:{base}'/></xs:simpleType>");
    let int = "whole number from -2147483648 to 2147483647";
    for (base, facets, words) in [
        (ints, &[("length", "3")][..], format!("any number of values between spaces, each: {int}, exactly 3 items")),
        (
            ints,
            &[("pattern", "1.*")],
            format!("any number of values between spaces, each: {int}; the whole text matching 1.*"),
        ),
        (either, &[("pattern", "2.*")], format!("{int}; or date; the whole text matching 2.*")),
        (
            &of("decimal"),
            &[("totalDigits", "4"), ("fractionDigits", "2")],
            "number, at most 4 digits, at most 2 digits behind the point".to_owned(),
        ),
        (&of("NMTOKENS"), &[], "any number of values between spaces, each: name, at least 1 item".to_owned()),
        (&of("hexBinary"), &[("length", "2")], "bytes in hexadecimal, exactly 2 bytes".to_owned()),
        (&of("base64Binary"), &[("maxLength", "1")], "bytes in base64, at most 1 byte".to_owned()),
    ] {
        let case = Case::of(&restricted(base, &[facets])).unwrap();
        assert_eq!(case.fields().trim_end(), format!("<r>\n\nIts content: {words}."));
    }
}

#[test]
fn a_prompt_says_what_may_be_nil_and_what_is_fixed() {
    let text = format!(
        "{HEAD}<xs:complexType name='m' mixed='true'><xs:sequence><xs:element name='i' minOccurs='0'/></xs:sequence>\
         </xs:complexType><xs:element name='r'><xs:complexType><xs:sequence>\
         <xs:element name='n' type='xs:date' nillable='true'/><xs:element name='f' type='m' fixed='x'/>\
         <xs:element name='m' type='m' nillable='true' minOccurs='0'/><xs:element name='g' type='m' fixed='y'/>\
         <xs:element name='any' fixed='z'/></xs:sequence></xs:complexType></xs:element>\
         <xs:element name='s' type='xs:date' nillable='true'/>\
         <xs:element name='t' type='m' nillable='true'/></xs:schema>"
    );
    let schemas = PayloadSchema::from_xsd("a.xsd", &text).unwrap();
    let told: String =
        schemas.iter().map(|schema| schema.words().split("\nExample:").next().unwrap().to_owned()).collect();
    let expected = "<r>\n\nIt has, in this order:\n\
        - <n>: date; or empty with xsi:nil=\"true\".\n\
        - <f>: has the following.\n  - its text: any; always \"x\"; no elements.\n\
        - <m>: has the following; or empty with xsi:nil=\"true\"; may be left out.\n  \
          - text before, between and after the following; may be left out.\n  \
          - <i>: any content: text, elements and attributes; may be left out.\n\
        - <g>: has the following.\n  - its text: any; always \"y\"; no elements.\n\
        - <any>: any content: text, elements and attributes; always \"z\".\n\
        <s>\n\nIts content: date; or empty with xsi:nil=\"true\".\n\
        <t>\n\nIt has, in this order; or empty with xsi:nil=\"true\":\n\
        - text before, between and after the following; may be left out.\n\
        - <i>: any content: text, elements and attributes; may be left out.\n";
    assert_eq!(told, expected);
}

#[test]
fn a_prompt_says_the_identity_constraints_of_an_element() {
    let text = format!(
        "{HEAD}<xs:element name='r'><xs:complexType><xs:sequence>\
         <xs:element name='item' maxOccurs='9'><xs:complexType><xs:attribute name='id'/><xs:attribute name='no'/>\
         </xs:complexType></xs:element>\
         <xs:element name='x' maxOccurs='9'><xs:complexType><xs:attribute name='ref'/></xs:complexType></xs:element>\
         </xs:sequence></xs:complexType>\
         <xs:key name='k'><xs:selector xpath='item'/><xs:field xpath='@id'/></xs:key>\
         <xs:unique name='u'><xs:selector xpath='item'/><xs:field xpath='@no'/></xs:unique>\
         <xs:unique name='v'><xs:selector xpath='.//item|r/x'/><xs:field xpath='.'/><xs:field xpath='y/@a|z'/></xs:unique>\
         <xs:keyref name='f' refer='k'><xs:selector xpath='x'/><xs:field xpath='@ref'/></xs:keyref>\
         </xs:element></xs:schema>"
    );
    let schema = PayloadSchema::from_xsd("a.xsd", &text).unwrap().remove(0);
    let fields = schema.words().split("\nExample:").next().unwrap().trim_end();
    let (_, told) = fields.split_once("- attribute ref: text; may be left out.\n").unwrap();
    assert_eq!(
        told,
        "- each <item> has @id, and no two have the same.\n\
         - no two <item> have the same @no.\n\
         - no two <item> at any depth or <x> in <r> have the same text and @a of <y> or <z>.\n\
         - each @ref of <x> is the @id of an <item>."
    );
}

/// The words on the parts of a payload: those of its prompt between the first lines and the example.
fn told(schema: &str, local: &str) -> String {
    let schemas = PayloadSchema::from_xsd("a.xsd", schema).unwrap_or_else(|error| panic!("{error}"));
    let schema = schemas.iter().find(|schema| schema.qname().local() == local).expect("a payload");
    schema.words().split("\nExample:").next().unwrap_or_default().trim_end().to_owned()
}

#[test]
fn a_prompt_says_which_elements_of_a_choice_belong_together() {
    let element = |name: &str| format!("<xs:element name='{name}' type='xs:token'/>");
    let [a, b, c, d] = ["a", "b", "c", "d"].map(element);
    let sequence = |inside: &[&str]| format!("<xs:sequence>{}</xs:sequence>", inside.concat());
    for (group, expected) in [
        (
            format!("<xs:choice>{}{}</xs:choice>", sequence(&[&a, &b]), sequence(&[&c, &d])),
            "- one of these:\n  - these together, in this order:\n    - <a>: text.\n    - <b>: text.\n  \
             - these together, in this order:\n    - <c>: text.\n    - <d>: text.",
        ),
        (
            format!("<xs:choice maxOccurs='unbounded'>{}{c}</xs:choice>", sequence(&[&a, &b])),
            "- these, mixed as you like; 1 times or more:\n  - these together, in this order:\n    \
             - <a>: text.\n    - <b>: text.\n  - <c>: text.",
        ),
        (
            format!("<xs:choice minOccurs='3' maxOccurs='3'>{a}{}</xs:choice>", sequence(&[&b, &c])),
            "- one of these each time; 3 times:\n  - <a>: text.\n  - these together, in this order:\n    \
             - <b>: text.\n    - <c>: text.",
        ),
        (
            format!("<xs:choice>{}{b}<xs:sequence/></xs:choice>", sequence(&[&a])),
            "- one of these:\n  - <a>: text.\n  - <b>: text.\n  - nothing.",
        ),
        (format!("<xs:sequence>{a}{}</xs:sequence>", sequence(&[&b, &c])), "- <a>: text.\n- <b>: text.\n- <c>: text."),
    ] {
        let text =
            format!("{HEAD}<xs:element name='r'><xs:complexType>{group}</xs:complexType></xs:element></xs:schema>");
        assert_eq!(told(&text, "r"), format!("<r>\n\nIt has, in this order:\n{expected}"), "{group}");
    }
}

#[test]
fn a_prompt_says_which_values_are_ids_and_references() {
    let attribute = |name: &str, ty: &str| format!("<xs:attribute name='{name}' type='{ty}'/>");
    let text = format!(
        "{HEAD}<xs:simpleType name='either'><xs:union memberTypes='xs:ID xs:int'/></xs:simpleType>\
         <xs:element name='r'><xs:complexType>{}{}{}{}</xs:complexType></xs:element></xs:schema>",
        attribute("a", "xs:IDREF"),
        attribute("b", "xs:IDREFS"),
        attribute("c", "either"),
        attribute("d", "xs:ID"),
    );
    let told = told(&text, "r");
    for expected in [
        "attribute a: name, the ID of an element of the payload; may",
        "attribute b: any number of values between spaces, each: name, at least 1 item, each the ID of an element",
        "where no two elements have the same ID, and a reference is the ID of an element; may",
        "attribute d: name, an ID that no other element of the payload has; may",
    ] {
        assert!(told.contains(expected), "{expected}\n{told}");
    }
}

#[test]
fn a_prompt_says_the_namespaces_of_names_and_wildcards() {
    let text = "<xs:schema xmlns:xs='http://www.w3.org/2001/XMLSchema' xmlns:k='urn:k' targetNamespace='urn:k' \
         elementFormDefault='qualified'><xs:import namespace='http://www.w3.org/XML/1998/namespace'/>\
         <xs:element name='r'><xs:complexType><xs:sequence><xs:element name='q' type='xs:int'/>\
         <xs:element name='u' type='xs:int' form='unqualified'/>\
         <xs:element name='w'><xs:complexType><xs:sequence><xs:any namespace='##other' processContents='lax'/>\
         </xs:sequence></xs:complexType></xs:element>\
         <xs:element name='x'><xs:complexType><xs:sequence><xs:any namespace='##local urn:o' processContents='skip'/>\
         </xs:sequence></xs:complexType></xs:element>\
         </xs:sequence><xs:attribute name='a' form='qualified'/><xs:attribute ref='xml:lang'/>\
         <xs:anyAttribute namespace='urn:q'/></xs:complexType></xs:element>\
         <xs:complexType name='base' abstract='true'/><xs:complexType name='made'><xs:complexContent>\
         <xs:extension base='k:base'><xs:sequence><xs:element name='q' type='xs:int'/></xs:sequence></xs:extension>\
         </xs:complexContent></xs:complexType><xs:element name='s' type='k:base'/></xs:schema>";
    let fields = told(text, "r");
    for expected in [
        "- attribute a in namespace urn:k: ",
        "- attribute xml:lang: ",
        "- any other attribute in namespace urn:q, of those that the schema declares; any number of them.",
        "- <q>: whole",
        "- <u> in no namespace: whole",
        "  - any element in a namespace other than urn:k, valid where the schema declares it.",
        "  - any element in no namespace or in namespace urn:o.",
    ] {
        assert!(fields.contains(expected), "{expected}\n{fields}");
    }
    let fields = told(text, "s");
    assert!(fields.contains("Its type is abstract: write an xsi:type, such as made,"), "{fields}");
}

#[test]
fn a_refusal_of_an_attribute_says_which_ones_are_allowed() {
    let refusal = |wildcard: &str| {
        let mut case = Case::of(&format!("<xs:complexType>{wildcard}</xs:complexType>")).expect("a schema");
        let payload = canonicalize(&Bytes::from("<r a='1'/>"), &XmlLimits::default()).expect("well-formed");
        case.judge.validate(payload).expect_err("not allowed").rule
    };
    assert!(refusal("").contains("not allowed; expected no attributes"));
    let rule = refusal("<xs:anyAttribute namespace='urn:q'/>");
    assert!(rule.contains("not allowed; expected any attribute in namespace urn:q"), "{rule}");
    let rule = refusal("<xs:attribute name='b'/><xs:anyAttribute namespace='urn:q'/>");
    assert!(rule.contains("not allowed; expected one of 'b', any attribute in namespace urn:q"), "{rule}");
}
