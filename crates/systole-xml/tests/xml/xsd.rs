//! Contracts from `.xsd` documents: payloads, examples, prompts, documents that refer to each other, errors.

use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use systole_xml::ladder::Canonical;
use systole_xml::ladder::strict::canonicalize;
use systole_xml::schema::{Catalog, ContractError, DocumentProblem, PayloadSchema, Validator, XsdDocument};
use systole_xml::vocab::{Position, XmlLimits};

fn golden(path: &str, actual: &str) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(path);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, actual).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(actual, expected, "{} differs: UPDATE_GOLDEN=1 writes it", path.display());
}

fn document(name: &str, text: &str) -> XsdDocument {
    XsdDocument { name: name.to_owned(), text: text.to_owned() }
}

fn canonical(text: &str) -> Canonical {
    canonicalize(&Bytes::from(text.to_owned()), &XmlLimits::default()).unwrap()
}

fn validator(schemas: Vec<PayloadSchema>) -> Validator {
    let mut catalog = Catalog::new();
    schemas.into_iter().for_each(|schema| catalog.add(schema).unwrap());
    Validator::new(Arc::new(catalog))
}

fn names(schemas: &[PayloadSchema]) -> Vec<String> {
    schemas.iter().map(|schema| schema.qname().to_string()).collect()
}

const HEAD: &str = "<xs:schema xmlns:xs=\"http://www.w3.org/2001/XMLSchema\"";

/// A schema with every construct that an example must handle.
const LIBRARY: &str = include_str!("../golden/schema/library.xsd");

/// The fields of a prompt are the lines before its example.
fn fields(schema: &PayloadSchema) -> &str {
    let words = schema.words();
    words.split("\nExample:").next().unwrap_or(words).trim_end()
}

#[test]
fn a_prompt_names_what_an_element_may_have_beside_its_parts() {
    let complex =
        |name: &str, ty: &str| format!("<xs:element name='{name}'><xs:complexType {ty}</xs:complexType></xs:element>");
    let any = "<xs:anyAttribute processContents='lax'/>";
    let a = "<xs:attribute name='a' type='xs:int'/>";
    let parts = "<xs:sequence><xs:element name='b' type='xs:int'/><xs:element name='c'/></xs:sequence>";
    let simple = |inner: &str| {
        format!("><xs:simpleContent><xs:extension base='xs:int'>{inner}</xs:extension></xs:simpleContent>")
    };
    let elements = [
        "<xs:element name='anything'/>".to_owned(),
        "<xs:element name='typed' type='xs:anyType'/>".to_owned(),
        complex("empty", ">"),
        complex("text", "mixed='true'>"),
        complex("text-and-attribute", &format!("mixed='true'>{a}")),
        complex("attributes", &format!(">{any}")),
        complex("attributes-and-one", &format!(">{a}{any}")),
        complex("mixed", &format!("mixed='true'>{parts}{any}")),
        complex("parts", &format!(">{parts}")),
        complex("number", &simple(any)),
        "<xs:element name='fixed' type='xs:int' fixed='7'/>".to_owned(),
        "<xs:element name='fixed-text' fixed='7'><xs:complexType mixed='true'/></xs:element>".to_owned(),
        format!(
            "<xs:element name='fixed-number' fixed='7'><xs:complexType {}</xs:complexType></xs:element>",
            simple(a)
        ),
        complex(
            "nested",
            "><xs:sequence><xs:element ref='anything'/><xs:element ref='empty'/><xs:element ref='text'/>\
                           <xs:element ref='mixed'/></xs:sequence>",
        ),
    ];
    let text = format!("{HEAD}>{}</xs:schema>", elements.concat());
    let out: String = PayloadSchema::from_xsd("t.xsd", &text)
        .unwrap()
        .iter()
        .map(|schema| format!("{}\n\n", fields(schema)))
        .collect();
    golden("prompt/beside.txt", &out);
}

#[test]
fn the_prompt_of_a_payload_without_model_names_its_schema() {
    let attributes: String = (0..300).map(|n| format!("<xs:attribute name='a{n}'/>")).collect();
    let inner: String = (0..340)
        .map(|n| {
            format!(
                "<xs:element name='e{n}'><xs:complexType><xs:attributeGroup ref='g'/></xs:complexType></xs:element>"
            )
        })
        .collect();
    let text = format!(
        "{HEAD}><xs:attributeGroup name='g'>{attributes}</xs:attributeGroup>\
         <xs:element name='r'><xs:complexType><xs:sequence><xs:element ref='s'/>{inner}</xs:sequence></xs:complexType>\
         </xs:element><xs:element name='s'><xs:complexType><xs:sequence><xs:element name='n' type='xs:int'/></xs:sequence>\
         </xs:complexType></xs:element></xs:schema>"
    );
    let schemas = PayloadSchema::from_xsd("t.xsd", &text).unwrap();
    assert_eq!(fields(&schemas[0]), "<r>\n\nIt has the content that its schema tells: ask for the schema.");
    // The parts that it would have taken are left for others, which may share its types.
    assert!(fields(&schemas[1]).contains("- <n>: whole number"), "{}", schemas[1].prompt());
    assert_eq!(schemas[1].example().unwrap().as_str(), "<s><n>1</n></s>");
}

/// Each payload had a copy of all types that it leads to, and 60 that lead to each other left no parts for others.
#[test]
fn payloads_share_the_parts_of_their_types() {
    let attributes: String = (0..10).map(|n| format!("<xs:attribute name='a{n}'/>")).collect();
    let element = |n: usize| {
        let inner: String = (0..10).map(|i| format!("<xs:element ref='e{}'/>", (n + i * 7) % 60)).collect();
        format!(
            "<xs:element name='e{n}'><xs:complexType mixed='true'><xs:choice minOccurs='0' maxOccurs='unbounded'>{inner}\
             </xs:choice>{attributes}</xs:complexType></xs:element>"
        )
    };
    let elements: String = (0..60).map(element).collect();
    let doc = "<xs:element name='doc'><xs:complexType><xs:sequence><xs:element name='title' type='xs:string'/>\
               <xs:element name='n' type='xs:int'/></xs:sequence></xs:complexType></xs:element>";
    let schemas = PayloadSchema::from_xsd("t.xsd", &format!("{HEAD}>{elements}{doc}</xs:schema>")).unwrap();
    for schema in &schemas[..60] {
        assert!(fields(schema).contains("attribute a9"), "{}", schema.prompt());
    }
    assert_eq!(schemas[60].example().unwrap().as_str(), "<doc><title>text</title><n>1</n></doc>");
    assert!(fields(&schemas[60]).contains("- <title>: text"), "{}", schemas[60].prompt());
}

#[test]
fn each_global_element_is_a_payload_with_example_and_prompt() {
    let schemas = PayloadSchema::from_xsd("library.xsd", LIBRARY).unwrap();
    let mut out = String::new();
    for schema in &schemas {
        assert_eq!(schema.document(), LIBRARY);
        assert!(schema.is_qualified() && schema.example().is_some(), "{}", schema.qname());
        out.push_str(&format!("{}: {}\n\n{}\n", schema.qname(), schema.description(), schema.prompt()));
    }
    golden("prompt/library.txt", &out);
    let mut validator = validator(schemas.clone());
    for schema in &schemas {
        validator.validate(schema.example().unwrap().clone()).unwrap();
    }
}

#[test]
fn unqualified_children_stay_without_namespace() {
    let text = format!(
        "{HEAD} xmlns:t=\"urn:t\" targetNamespace=\"urn:t\"><xs:element name=\"r\"><xs:complexType><xs:sequence>\
         <xs:element name=\"a\" type=\"xs:int\"/><xs:element ref=\"t:s\"/></xs:sequence></xs:complexType></xs:element>\
         <xs:element name=\"s\" type=\"xs:string\"/></xs:schema>"
    );
    let schemas = PayloadSchema::from_xsd("t.xsd", &text).unwrap();
    assert!(!schemas[0].is_qualified() && schemas[1].is_qualified());
    let example = schemas[0].example().unwrap().as_str();
    assert_eq!(example, "<p:r xmlns:p=\"urn:t\"><a>1</a><p:s>text</p:s></p:r>");
}

/// Checks that the namespace of XLink is known like that of `xml`, and that a given document takes precedence.
#[test]
fn xlink_is_known_without_its_document() {
    let main = format!(
        "{HEAD} xmlns:l='http://www.w3.org/1999/xlink'><xs:import namespace='http://www.w3.org/1999/xlink' schemaLocation='http://example.org/a/link.xsd'/>\
         <xs:element name='r'><xs:complexType><xs:sequence><xs:element name='part' type='l:simple'/></xs:sequence>\
         <xs:attribute ref='l:href' use='required'/><xs:attribute ref='l:type' default='locator'/></xs:complexType></xs:element></xs:schema>"
    );
    let mut known = validator(PayloadSchema::from_xsd("a.xsd", &main).unwrap());
    let mut judge = |text: &str| known.validate(canonical(text)).is_ok();
    let r = |attributes: &str, part: &str| {
        format!("<r xmlns:l='http://www.w3.org/1999/xlink' {attributes}><part {part}>text<any/></part></r>")
    };
    assert!(judge(&r("l:href='#a'", "l:href='b' l:type='simple' l:show='new'")));
    assert!(
        !judge(&r("", "")) && !judge(&r("l:href='#a' l:type='chain'", "")) && !judge(&r("l:href='#a'", "l:type='arc'"))
    );
    let own = format!(
        "{HEAD} targetNamespace='http://www.w3.org/1999/xlink'><xs:attribute name='href' type='xs:int'/>\
         <xs:attribute name='type' type='xs:token'/><xs:complexType name='simple' mixed='true'><xs:sequence><xs:any minOccurs='0' processContents='skip'/></xs:sequence></xs:complexType></xs:schema>"
    );
    let given = PayloadSchema::from_xsd_set(&[document("a.xsd", &main), document("own.xsd", &own)]).unwrap();
    let mut given = validator(given);
    let mut judge = |text: &str| given.validate(canonical(text)).is_ok();
    assert!(judge(&r("l:href='1'", "")) && !judge(&r("l:href='#a'", "")));
}

#[test]
fn documents_include_and_import_each_other() {
    let set = [
        document(
            "orders/main.xsd",
            &format!(
                "<?xml version=\"1.0\"?>\n<!DOCTYPE xs:schema>\n{HEAD} xmlns:m=\"urn:m\" xmlns:p=\"urn:p\" targetNamespace=\"urn:m\" elementFormDefault=\"qualified\">\
                 <xs:include schemaLocation='./parts.xsd'/><xs:import namespace=\"urn:p\" schemaLocation=\"../people/person.xsd\"/>\
                 <xs:import namespace=\"http://www.w3.org/XML/1998/namespace\" schemaLocation=\"http://www.w3.org/2001/xml.xsd\"/>\
                 <xs:element name=\"order\"><xs:complexType><xs:sequence><xs:element name=\"part\" type=\"m:Part\"/><xs:element ref=\"p:person\"/></xs:sequence>\
                 <xs:attribute ref=\"xml:lang\"/></xs:complexType></xs:element></xs:schema>"
            ),
        ),
        // A chameleon document, without a namespace of its own.
        document(
            "orders/parts.xsd",
            &format!(
                "{HEAD} elementFormDefault=\"qualified\"><xs:complexType name=\"Part\"><xs:sequence><xs:element name=\"n\" type=\"Number\"/></xs:sequence></xs:complexType>\
                 <xs:simpleType name=\"Number\"><xs:restriction base=\"xs:int\"><xs:maxInclusive value=\"9\"/></xs:restriction></xs:simpleType>\
                 <xs:element name=\"part\" type=\"Part\"/></xs:schema>"
            ),
        ),
        document(
            "people/person.xsd",
            &format!(
                "{HEAD} xmlns:p=\"urn:p\" targetNamespace=\"urn:p\"><xs:include schemaLocation=\"names.xsd\"/><xs:element name=\"person\" type=\"p:Name\"/></xs:schema>"
            ),
        ),
        document(
            "people/names.xsd",
            &format!(
                "{HEAD} xmlns:m=\"urn:m\" targetNamespace=\"urn:p\"><xs:import namespace=\"urn:m\"/>\
                 <xs:simpleType name=\"Name\"><xs:restriction base=\"xs:string\"><xs:minLength value=\"2\"/></xs:restriction></xs:simpleType>\
                 <xs:element name=\"ordered\"><xs:complexType><xs:sequence><xs:element ref=\"m:order\" minOccurs=\"0\"/></xs:sequence></xs:complexType></xs:element></xs:schema>"
            ),
        ),
    ];
    let schemas = PayloadSchema::from_xsd_set(&set).unwrap();
    assert_eq!(names(&schemas), ["{urn:m}order", "{urn:m}part", "{urn:p}person", "{urn:p}ordered"]);
    let order = schemas[0].example().unwrap().as_str();
    assert_eq!(
        order,
        "<order xmlns=\"urn:m\" xml:lang=\"en\"><part><n>1</n></part><person xmlns=\"urn:p\">text</person></order>"
    );
    let mut validator = validator(schemas.clone());
    for schema in &schemas {
        validator.validate(schema.example().unwrap().clone()).unwrap();
    }
    assert!(validator.validate(canonical(&order.replace(">1<", ">10<"))).is_err());
    // File names, and white space around the documents, have no effect.
    let moved: Vec<_> = set.iter().map(|d| document(&format!("/other/{}", d.name), &d.text)).collect();
    let mut catalog = Catalog::new();
    for schema in schemas.into_iter().chain(PayloadSchema::from_xsd_set(&moved).unwrap()) {
        catalog.add(schema).unwrap();
    }
}

#[test]
fn one_payload_may_come_from_two_sets_if_its_schema_is_the_same() {
    let add = document(
        "add.xsd",
        &format!("{HEAD} targetNamespace=\"urn:a\"><xs:element name=\"add\" type=\"xs:int\"/></xs:schema>"),
    );
    let ask = document(
        "ask.xsd",
        &format!("{HEAD} targetNamespace=\"urn:b\"><xs:element name=\"ask\" type=\"xs:int\"/></xs:schema>"),
    );
    let mut catalog = Catalog::new();
    for set in [vec![add.clone()], vec![ask, add.clone()]] {
        for schema in PayloadSchema::from_xsd_set(&set).unwrap() {
            catalog.add(schema).unwrap();
        }
    }
    let other = add.text.replace("xs:int", "xs:long");
    let other = PayloadSchema::from_xsd("other.xsd", &other).unwrap().remove(0);
    assert!(matches!(catalog.add(other), Err(ContractError::Conflict { .. })));
}

#[test]
fn redefinitions_and_substitutions_are_understood() {
    let set = [
        document(
            "base.xsd",
            &format!(
                "{HEAD} xmlns=\"urn:z\" targetNamespace=\"urn:z\" elementFormDefault=\"qualified\">\
                 <xs:complexType name=\"T\"><xs:sequence><xs:element name=\"a\" type=\"xs:int\"/></xs:sequence></xs:complexType>\
                 <xs:element name=\"shape\" abstract=\"true\"/><xs:element name=\"circle\" type=\"xs:double\" substitutionGroup=\"shape\"/></xs:schema>"
            ),
        ),
        document(
            "main.xsd",
            &format!(
                "{HEAD} xmlns=\"urn:z\" targetNamespace=\"urn:z\" elementFormDefault=\"qualified\"><xs:redefine schemaLocation=\"base.xsd\">\
                 <xs:complexType name=\"T\"><xs:complexContent><xs:extension base=\"T\"><xs:sequence><xs:element name=\"b\" type=\"xs:int\"/></xs:sequence></xs:extension></xs:complexContent></xs:complexType>\
                 </xs:redefine><xs:element name=\"r\" type=\"T\"/><xs:element name=\"drawing\"><xs:complexType><xs:sequence><xs:element ref=\"shape\"/></xs:sequence></xs:complexType></xs:element></xs:schema>"
            ),
        ),
    ];
    let schemas = PayloadSchema::from_xsd_set(&set).unwrap();
    let example = |local: &str| {
        let schema = schemas.iter().find(|schema| schema.qname().local() == local).unwrap();
        schema.example().map(|example| example.as_str().to_owned())
    };
    assert_eq!(example("r").as_deref(), Some("<r xmlns=\"urn:z\"><a>1</a><b>1</b></r>"));
    assert_eq!(example("drawing").as_deref(), Some("<drawing xmlns=\"urn:z\"><circle>1.5</circle></drawing>"));
    assert_eq!(example("shape"), None);
}

#[test]
fn a_doctype_is_skipped_if_nothing_uses_it() {
    let schema = |namespace: &str| {
        let text = format!(
            "<?xml version=\"1.0\" encoding=\"ISO-8859-1\"?>\n<!DOCTYPE xs:schema PUBLIC \"x\" \"http://localhost:1/x.dtd\" [\n\
             <!ATTLIST xs:schema id CDATA #IMPLIED>\n<!ENTITY t 'urn:t'>\n]>\n\
             <xs:schema xmlns:xs=\"http://www.w3.org/2001/XMLSchema\" targetNamespace=\"{namespace}\"><xs:element name=\"r\"/></xs:schema>"
        );
        PayloadSchema::from_xsd("d.xsd", &text)
    };
    assert_eq!(names(&schema("urn:ü").unwrap()), ["{urn:ü}r"]);
    let error = schema("&t;").unwrap_err().to_string();
    assert!(error.contains("the entity 't' is not replaced"), "{error}");
}

#[test]
fn a_doctype_that_is_only_said_is_none() {
    for said in [
        "<!-- <!DOCTYPE a [ -->",
        "<xs:annotation><xs:documentation><![CDATA[<!DOCTYPE a [ ]]></xs:documentation></xs:annotation>",
    ] {
        let text = format!("{HEAD}>{said}<xs:element name=\"r\"/></xs:schema>");
        assert_eq!(names(&PayloadSchema::from_xsd("d.xsd", &text).unwrap()), ["r"]);
    }
}

/// A regression test: libxml2 2.9.14 doesn't terminate on this schema.
#[test]
fn a_member_of_a_union_stands_for_an_element_of_the_union() {
    let text = format!(
        "{HEAD}><xs:simpleType name=\"u\"><xs:union memberTypes=\"xs:int xs:date\"/></xs:simpleType>\
         <xs:element name=\"head\" type=\"u\"/><xs:element name=\"member\" type=\"xs:int\" substitutionGroup=\"head\"/>\
         <xs:element name=\"r\"><xs:complexType><xs:sequence><xs:element ref=\"head\"/></xs:sequence></xs:complexType></xs:element></xs:schema>"
    );
    let mut judge = validator(PayloadSchema::from_xsd("d.xsd", &text).unwrap());
    assert!(judge.validate(canonical("<r><head>2026-01-01</head></r>")).is_ok());
    assert!(judge.validate(canonical("<r><member>1</member></r>")).is_ok());
    assert!(judge.validate(canonical("<r><member>2026-01-01</member></r>")).is_err());
}

#[test]
fn no_payload_has_a_relative_namespace() {
    let text = format!("{HEAD} targetNamespace=\"relative\"><xs:element name=\"r\"/></xs:schema>");
    let error = PayloadSchema::from_xsd("d.xsd", &text).unwrap_err().to_string();
    let expected = "no message can carry <r>, because its namespace 'relative' is relative: \
                    write an absolute URI for the targetNamespace, such as urn:example:relative";
    assert!(error.starts_with("d.xsd:1:") && error.ends_with(expected), "{error}");
    // Types of such a namespace may serve payloads of another one.
    let types = format!(
        "{HEAD} targetNamespace=\"relative\"><xs:simpleType name=\"t\">\
                         <xs:restriction base=\"xs:int\"/></xs:simpleType></xs:schema>"
    );
    let user = format!(
        "{HEAD} xmlns:r=\"relative\" targetNamespace=\"urn:u\"><xs:import namespace=\"relative\"/>\
                        <xs:element name=\"u\" type=\"r:t\"/></xs:schema>"
    );
    let set = [document("t.xsd", &types), document("u.xsd", &user)];
    assert_eq!(names(&PayloadSchema::from_xsd_set(&set).unwrap()), ["{urn:u}u"]);
}

fn refused(documents: &[(&str, String)]) -> String {
    let documents: Vec<_> = documents.iter().map(|(name, text)| document(name, text)).collect();
    PayloadSchema::from_xsd_set(&documents).unwrap_err().to_string()
}

#[test]
fn bad_documents_are_refused_at_their_place() {
    let optional: String = (0..2_000).map(|n| format!("<xs:element name=\"e{n}\" minOccurs=\"0\"/>")).collect();
    let many = format!("<xs:complexType name=\"t\"><xs:sequence>{optional}</xs:sequence></xs:complexType>");
    let counted = "<xs:simpleType name=\"t\"><xs:restriction base=\"xs:string\">\n  <xs:pattern value=\"(((a{0,999}){0,999}){0,999})*\"/></xs:restriction></xs:simpleType>";
    let sentences = [
        refused(&[("a.xsd", "<xs:schema".to_owned())]),
        refused(&[("a.xsd", String::new())]),
        refused(&[("a.xsd", "<schema/>".to_owned())]),
        refused(&[("a.xsd", format!("<!-- none -->\n {HEAD}/>"))]),
        refused(&[("a.xsd", format!("{HEAD}>\n  <xs:include schemaLocation=\"/etc/b.xsd\"/></xs:schema>"))]),
        refused(&[("a.xsd", format!("{HEAD}>\n<xs:element name=\"r\" type=\"nothing\"/></xs:schema>"))]),
        refused(&[
            ("a.xsd", format!("{HEAD}><xs:include schemaLocation=\"b.xsd\"/></xs:schema>")),
            ("b.xsd", format!("{HEAD}>\n\n<xs:element name=\"r\"><xs:complexTyp/></xs:element></xs:schema>")),
        ]),
        refused(&[("a.xsd", format!("{HEAD}/>")), ("a.xsd", format!("\n  {HEAD}> </xs:schema>"))]),
        refused(&[("a.xsd", format!("{HEAD}/>")), ("a.xsd", "\n<xs:schema".to_owned())]),
        refused(&[("a.xsd", format!("{HEAD}>\n{}</xs:schema>", "<xs:element/>\n".repeat(400_000)))]),
        refused(&[("a.xsd", format!("{HEAD}>\n{}</xs:schema>", "<xs:element/>\n".repeat(70_000)))]),
        refused(&[("a.xsd", format!("{HEAD}>\n<!--{}--></xs:schema>", "\n".repeat(9 << 20)))]),
        PayloadSchema::from_xsd_set(&vec![document("a.xsd", ""); 513]).unwrap_err().to_string(),
        PayloadSchema::from_xsd_set(&[]).unwrap_err().to_string(),
        refused(&[("a.xsd", format!("{HEAD}>\n{counted}<xs:element name=\"r\" type=\"t\"/></xs:schema>"))]),
        refused(&[("a.xsd", format!("{HEAD}>\n {many}<xs:element name=\"r\" type=\"t\"/></xs:schema>"))]),
    ];
    golden("schema/documents-refused.txt", &sentences.join("\n"));
    let missing =
        format!("{HEAD}>\n  <xs:import namespace=\"urn:x\" schemaLocation=\"http://localhost:1/b.xsd\"/></xs:schema>");
    let error = PayloadSchema::from_xsd("a.xsd", &missing).unwrap_err();
    let at = Position { line: 2, column: 3 };
    let problem = DocumentProblem::Missing("http://localhost:1/b.xsd".into());
    assert_eq!(error, ContractError::Document { document: "a.xsd".into(), at, problem });
}

/// A document with an element `r` of this content, and other components.
fn of_content(content: &str, others: &str) -> String {
    format!("{HEAD}><xs:element name=\"r\"><xs:complexType>{content}</xs:complexType></xs:element>{others}</xs:schema>")
}

fn many(name: &str, least: u64, attributes: &str) -> String {
    format!("<xs:element name=\"{name}\" minOccurs=\"{least}\" maxOccurs=\"unbounded\" {attributes}/>")
}

#[test]
fn a_payload_may_not_require_more_elements_than_a_message_should_hold() {
    let nested = |level: u32, below: &str| {
        let below = many("e", 200, &format!("type=\"{below}\""));
        format!("<xs:complexType name=\"t{level}\"><xs:sequence>{below}</xs:sequence></xs:complexType>")
    };
    let group = "<xs:group name=\"g\"><xs:sequence><xs:element name=\"e\" minOccurs=\"200\" maxOccurs=\"200\"/></xs:sequence></xs:group>";
    let documents = [
        of_content(&format!("<xs:sequence>{}</xs:sequence>", many("e", 999_999_999, "")), ""),
        of_content(
            &format!("<xs:sequence>{}</xs:sequence>", many("e", 200, "type=\"t2\"")),
            &[nested(2, "t1"), nested(1, "xs:string")].concat(),
        ),
        of_content(
            "<xs:sequence minOccurs=\"200\" maxOccurs=\"200\"><xs:group ref=\"g\" minOccurs=\"200\" maxOccurs=\"200\"/></xs:sequence>",
            group,
        ),
    ];
    let sentences = documents.map(|text| refused(&[("a.xsd", text)]));
    for (sentence, elements) in sentences.iter().zip([16_777_217_u64, 8_040_201, 8_000_001]) {
        assert!(sentence.contains(&format!("requires at least {elements} elements in each payload")), "{sentence}");
    }
    let enough = of_content(&format!("<xs:sequence>{}</xs:sequence>", many("e", 1_000, "")), "");
    assert!(PayloadSchema::from_xsd("a.xsd", &enough).unwrap()[0].example().is_some());
}

#[test]
fn a_recursive_choice_has_an_example_in_any_order_of_its_alternatives() {
    let element = |name: &str, ty: &str| format!("<xs:element name=\"{name}\" type=\"{ty}\"/>");
    let call = format!(
        "<xs:sequence>{}{}{}</xs:sequence>",
        element("op", "xs:string"),
        element("l", "t:N"),
        element("k", "t:N")
    );
    let value = element("v", "xs:int");
    let optional = call.replacen("<xs:sequence>", "<xs:sequence minOccurs=\"0\">", 1);
    let choice = |first: &str, second: &str| format!("<xs:choice>{first}{second}</xs:choice>");
    for model in [
        choice(&call, &value),
        choice(&value, &call),
        choice(&choice(&call, &call.replace("op", "not")), &value),
        format!("<xs:sequence>{value}{optional}</xs:sequence>"),
    ] {
        let schema = format!(
            "<xs:schema xmlns:xs=\"http://www.w3.org/2001/XMLSchema\" xmlns:t=\"urn:t\" targetNamespace=\"urn:t\" elementFormDefault=\"qualified\">\
             <xs:complexType name=\"N\">{model}</xs:complexType><xs:element name=\"r\" type=\"t:N\"/></xs:schema>"
        );
        let schemas = PayloadSchema::from_xsd("t.xsd", &schema).unwrap();
        assert!(schemas[0].example().is_some(), "{model}");
    }
}

#[test]
fn an_example_that_would_be_too_large_is_none() {
    let list = "<xs:simpleType name=\"l\"><xs:restriction><xs:simpleType><xs:list itemType=\"xs:int\"/></xs:simpleType><xs:minLength value=\"999999999\"/></xs:restriction></xs:simpleType>";
    let long = "<xs:simpleType name=\"l\"><xs:restriction base=\"xs:string\"><xs:minLength value=\"60000\"/></xs:restriction></xs:simpleType>";
    let documents = [
        of_content(
            &format!("<xs:choice>{}{}</xs:choice>", many("element", 90_000, ""), many("another", 90_000, "")),
            "",
        ),
        of_content("<xs:sequence><xs:element name=\"a\" type=\"l\"/></xs:sequence>", list),
        of_content(&format!("<xs:sequence>{}</xs:sequence>", many("a", 10_000, "type=\"l\"")), long),
    ];
    for text in documents {
        let schemas = PayloadSchema::from_xsd("a.xsd", &text).unwrap();
        assert!(schemas[0].example().is_none(), "{text}");
    }
}

#[test]
fn namespaces_of_the_pump_are_kept() {
    let text = format!(
        "{HEAD} targetNamespace=\"https://xml-pipeline.org/ns/core/v1\"><xs:element name=\"mine\"/></xs:schema>"
    );
    let schema = PayloadSchema::from_xsd("c.xsd", &text).unwrap().remove(0);
    assert!(matches!(Catalog::new().add(schema), Err(ContractError::Reserved { .. })));
    // A signed message of it would be the head of a transcript.
    let head = text.replace("https://xml-pipeline.org/ns/core/v1", "urn:systole:transcript:v1").replace("mine", "head");
    let schema = PayloadSchema::from_xsd("c.xsd", &head).unwrap().remove(0);
    assert!(matches!(Catalog::new().add(schema), Err(ContractError::Reserved { .. })));
    let text = text.replace("mine", "boot");
    let schema = PayloadSchema::from_xsd("c.xsd", &text).unwrap().remove(0);
    assert!(matches!(Catalog::new().add(schema), Err(ContractError::Conflict { .. })));
}

#[test]
fn threads_compile_and_judge_at_once() {
    std::thread::scope(|scope| {
        for number in 0..8 {
            scope.spawn(move || {
                for _ in 0..20 {
                    let text = format!("{HEAD}><xs:element name=\"e{number}\" type=\"xs:int\"/></xs:schema>");
                    let mut validator = validator(PayloadSchema::from_xsd("e.xsd", &text).unwrap());
                    for _ in 0..20 {
                        let element = |value: &str| canonical(&format!("<e{number}>{value}</e{number}>"));
                        assert!(validator.validate(element("1")).is_ok());
                        let error = validator.validate(element("x")).unwrap_err();
                        assert!(error.rule.contains(&format!("<e{number}>")), "{error}");
                    }
                }
            });
        }
    });
}

#[test]
fn every_built_in_type_has_an_example() {
    let types = [
        "dateTime",
        "date",
        "time",
        "duration",
        "gYear",
        "gYearMonth",
        "gMonth",
        "gMonthDay",
        "gDay",
        "hexBinary",
        "base64Binary",
        "anyURI",
        "language",
        "Name",
        "NCName",
        "NMTOKEN",
        "NMTOKENS",
        "ID",
        "IDREF",
        "QName",
        "token",
        "normalizedString",
        "decimal",
        "integer",
        "nonPositiveInteger",
        "negativeInteger",
        "nonNegativeInteger",
        "positiveInteger",
        "anySimpleType",
        "anyType",
        "IDREFS",
    ];
    let elements: String = types.iter().map(|ty| format!("<xs:element name=\"{ty}\" type=\"xs:{ty}\"/>")).collect();
    let schemas = PayloadSchema::from_xsd("types.xsd", &format!("{HEAD}>{elements}</xs:schema>")).unwrap();
    let without: Vec<_> = schemas.iter().filter(|s| s.example().is_none()).map(|s| s.qname().to_string()).collect();
    // An IDREF alone has no ID to refer to.
    assert_eq!(without, ["IDREF", "IDREFS"]);
}

/// Checks schemas that break one rule each, with a part of their error text.
#[test]
fn rules_of_schemas_are_told_with_what_to_write() {
    let ct = |inside: &str| format!("<xs:complexType name='t'>{inside}</xs:complexType>");
    let st = |inside: &str| format!("<xs:simpleType name='t'>{inside}</xs:simpleType>");
    let restricted = |facets: &str| st(&format!("<xs:restriction base='xs:string'>{facets}</xs:restriction>"));
    for (inside, expected) in [
        ("<xs:element name='r' type='xs:strng'/>".to_owned(), "did you mean xs:string?"),
        ("<xs:element name='r' type='xs:dayTimeDuration'/>".to_owned(), "is a type of XSD 1.1"),
        ("<xs:element name='r' type='nothin'/><xs:complexType name='nothing'/>".to_owned(), "did you mean 'nothing'?"),
        ("<xs:element name='r' type='q:t'/>".to_owned(), "declare xmlns:q"),
        ("<xs:elment name='r'/>".to_owned(), "did you mean xs:element?"),
        ("<xs:element name='r' minoccurs='0'/>".to_owned(), "(did you mean minOccurs?)"),
        ("<xs:element name='r'><xs:sequence/></xs:element>".to_owned(), "(write xs:complexType around it)"),
        ("<xs:element name='r'><xs:attribute name='a'/></xs:element>".to_owned(), "(write xs:complexType around it)"),
        (ct("<xs:attribute name='a'/><xs:sequence/>"), "attributes stand behind the content"),
        (ct("<xs:complexContent><xs:extension base='t'><xs:attribute name='a'/><xs:choice/></xs:extension></xs:complexContent>"), "attributes stand behind the content"),
        (ct("<xs:all><xs:element name='a' maxOccurs='unbounded'/></xs:all>"), "in xs:all an element stands once at most"),
        (ct("<xs:all maxOccurs='2'><xs:element name='a'/></xs:all>"), "an xs:all stands once at most"),
        (ct("<xs:all><xs:element name='a'/><xs:element name='b' minOccurs='0'/></xs:all>") + "<xs:complexType name='u'><xs:complexContent><xs:restriction base='t'><xs:sequence><xs:element name='a' maxOccurs='2'/><xs:element name='b'/></xs:sequence></xs:restriction></xs:complexContent></xs:complexType>", "<a> is in the xs:all of the base, but once only"),
        (ct("<xs:sequence/><xs:assert test='1'/>"), "is of XSD 1.1"),
        (ct("<xs:sequence><xs:element name='a' minOccurs='2'/></xs:sequence>"), "minOccurs is more than maxOccurs"),
        (ct("<xs:sequence><xs:element name='a' minOccurs='0'/><xs:element name='a'/></xs:sequence>"), "an element <a> fits both this declaration and the one at 2:"),
        (ct("<xs:choice><xs:element name='a' type='xs:int'/><xs:sequence><xs:element name='b'/><xs:element name='a' type='xs:date'/></xs:sequence></xs:choice>"), "<a> has the type xs:date here and xs:int at 2:"),
        (ct("<xs:attribute name='a'/><xs:attribute name='a'/>"), "is declared twice"),
        (ct("<xs:attribute name='a' default='1' use='required'/>"), "an attribute with a default is optional"),
        (restricted("<xs:pattern value='{1}a'/>"), "a quantifier stands behind nothing"),
        (restricted("<xs:minLength value='3'/><xs:maxLength value='2'/>"), "minLength is more than maxLength"),
        (restricted("<xs:length value='3' fixed='true'/></xs:restriction></xs:simpleType><xs:simpleType name='u'><xs:restriction base='t'><xs:length value='4'/>"), "fixes another value"),
        (st("<xs:restriction base='t'/>"), "derived from itself"),
        ("<xs:element name='r'><xs:key name='k'><xs:selector xpath='a[1]'/><xs:field xpath='.'/></xs:key></xs:element>".to_owned(), "is not a path for an identity constraint"),
        ("<xs:element name='r'><xs:keyref name='k' refer='l'><xs:selector xpath='a'/><xs:field xpath='.'/></xs:keyref></xs:element>".to_owned(), "there is no xs:key or xs:unique 'l'"),
        ("<xs:element name='r'/><xs:element name='r'/>".to_owned(), "declared twice"),
        ("<xs:notation name='n'/>".to_owned(), "a notation has a public or a system identifier"),
        (
            "<xs:simpleType name='t'><xs:restriction base='xs:int'><xs:maxExclusive value='7'/></xs:restriction></xs:simpleType>\
             <xs:simpleType name='u'><xs:restriction base='t'><xs:minExclusive value='7'/></xs:restriction></xs:simpleType>".to_owned(),
            "the facet minExclusive with the value '7': it is no value of t",
        ),
        (
            "<xs:simpleType name='t'><xs:restriction base='xs:int'><xs:minExclusive value='7'/></xs:restriction></xs:simpleType>\
             <xs:simpleType name='u'><xs:restriction base='t'><xs:maxExclusive value='7'/></xs:restriction></xs:simpleType>".to_owned(),
            "the facet maxExclusive with the value '7': it is no value of t",
        ),
        (
            ct("<xs:simpleContent><xs:extension base='xs:date'/></xs:simpleContent>")
                + "<xs:complexType name='u'><xs:simpleContent><xs:restriction base='t'><xs:simpleType><xs:list itemType='xs:date'/></xs:simpleType></xs:restriction></xs:simpleContent></xs:complexType>",
            "the xs:simpleType inside is not derived from the simple type of the base",
        ),
        (
            ct("<xs:simpleContent><xs:extension base='xs:date'/></xs:simpleContent>")
                + "<xs:complexType name='u'><xs:complexContent><xs:extension base='t'><xs:sequence><xs:element name='a'/></xs:sequence></xs:extension></xs:complexContent></xs:complexType>",
            "complex content extends a type with simple content",
        ),
        (
            ct("<xs:sequence><xs:element name='a' minOccurs='0'/></xs:sequence>")
                + "<xs:complexType name='u'><xs:complexContent><xs:restriction base='t'><xs:sequence><xs:element name='b'/></xs:sequence></xs:restriction></xs:complexContent></xs:complexType>",
            "the content of a restriction is not a part of that of its base",
        ),
    ] {
        let error = refused(&[("a.xsd", format!("{HEAD}>\n{inside}</xs:schema>"))]);
        assert!(error.contains(expected), "{error}\n{inside}");
        assert!(error.starts_with("a.xsd:2:"), "{error}\n{inside}");
    }
    let error = refused(&[(
        "a.xsd",
        format!("{HEAD} xmlns:t='urn:t'>\n<xs:element name='r' type='t:T'/><xs:complexType name='T'/></xs:schema>"),
    )]);
    assert!(error.contains("did you mean targetNamespace=\"urn:t\"?"), "{error}");
}

/// Checks that one step may exclude the same value from both sides, which leaves no values (part 2, section 4.3.9.4).
#[test]
fn what_the_recommendation_allows_is_not_refused() {
    for inside in [
        "<xs:simpleType name='t'><xs:restriction base='xs:int'><xs:minExclusive value='7'/><xs:maxExclusive value='7'/></xs:restriction></xs:simpleType>",
        "<xs:notation name='n' system='viewer'/>",
    ] {
        let text = format!("{HEAD}>{inside}<xs:element name='r'/></xs:schema>");
        assert!(PayloadSchema::from_xsd("a.xsd", &text).is_ok(), "{inside}");
    }
}

/// Checks that complex content which adds only attributes to a type with simple content keeps its text (part 1, section
/// 3.4.6, cos-ct-extends, clause 1.4.1).
#[test]
fn complex_content_may_add_attributes_to_simple_content() {
    let text = format!(
        "{HEAD}><xs:complexType name='t'><xs:simpleContent><xs:extension base='xs:int'><xs:attribute name='a'/>\
         </xs:extension></xs:simpleContent></xs:complexType><xs:element name='r'><xs:complexType><xs:complexContent>\
         <xs:extension base='t'><xs:attribute name='b'/></xs:extension></xs:complexContent></xs:complexType></xs:element></xs:schema>"
    );
    let mut validator = validator(PayloadSchema::from_xsd("a.xsd", &text).unwrap());
    let mut judge = |text: &str| validator.validate(canonical(text)).is_ok();
    assert!(judge("<r a='1' b='2'>7</r>"));
    assert!(!judge("<r>x</r>") && !judge("<r c='1'>7</r>") && !judge("<r><e/></r>"));
}

/// Checks that a repeated group of one repeated particle has exactly the products of their counts.
#[test]
fn counts_inside_of_counts_are_exact_however_large_they_are() {
    // The bounds of the element and of the group around it, with numbers of elements that fit and numbers that don't.
    type Bounds = (u32, &'static str);
    let cases: [(Bounds, Bounds, &[usize], &[usize]); 8] = [
        ((0, "100"), (1, "40"), &[0, 1, 100, 101, 4_000], &[4_001]),
        ((0, "unbounded"), (0, "99999"), &[0, 1, 5_000], &[]),
        ((1, "unbounded"), (1, "99999"), &[1, 5_000], &[0]),
        ((2, "3"), (1, "2000"), &[2, 3, 4, 5, 6, 7, 5_999, 6_000], &[0, 1, 6_001]),
        ((30, "59"), (1, "70"), &[30, 59, 60, 4_130], &[29, 4_131]),
        ((20, "30"), (1, "2"), &[20, 30, 40, 60], &[19, 31, 39, 61]),
        ((2, "3"), (0, "3"), &[0, 2, 3, 4, 9], &[1, 10]),
        ((5, "7"), (20, "20"), &[100, 120, 140], &[99, 141]),
    ];
    for (inner, outer, right, wrong) in cases {
        for (group, inside) in [("sequence", ""), ("choice", ""), ("sequence", "<xs:element name='z' minOccurs='0'/>")]
        {
            let text = format!(
                "{HEAD}><xs:element name='r'><xs:complexType><xs:sequence><xs:{group} minOccurs='{}' maxOccurs='{}'>\
                 <xs:element name='a' minOccurs='{}' maxOccurs='{}'/></xs:{group}>{inside}</xs:sequence></xs:complexType></xs:element></xs:schema>",
                outer.0, outer.1, inner.0, inner.1
            );
            let mut validator = validator(PayloadSchema::from_xsd("a.xsd", &text).unwrap());
            let mut judge =
                |count: usize| validator.validate(canonical(&format!("<r>{}</r>", "<a/>".repeat(count)))).is_ok();
            for count in right {
                assert!(judge(*count), "{count} of {inner:?} in {outer:?}");
            }
            for count in wrong {
                assert!(!judge(*count), "{count} of {inner:?} in {outer:?}");
            }
        }
    }
}

/// Checks that elements for other versions of XML Schema are skipped (XSD 1.1 part 1, section 4.2.2).
#[test]
fn documents_for_several_versions_are_read_as_xsd_1_0() {
    let vc = "xmlns:vc='http://www.w3.org/2007/XMLSchema-versioning'";
    let text = format!(
        "{HEAD} {vc} vc:minVersion='1.0'><xs:element name='r'><xs:complexType>\n<xs:sequence>\
         <xs:element name='late' vc:minVersion='1.1'><xs:alternative test='é'/></xs:element><xs:element name='a' vc:maxVersion='1.1'/>\
         <xs:element name='b' type='xs:error' vc:typeAvailable='xs:int xs:error'/><xs:element name='c' vc:typeUnavailable='xs:int xs:error'/>\
         <xs:element name='d' vc:typeAvailable='xs:int xs:IDREFS xs:anyType'/><xs:element name='e' vc:typeUnavailable='xs:int'/>\
         <xs:element name='f' vc:facetAvailable='xs:pattern'/><xs:element name='g' vc:facetUnavailable='xs:pattern'/>\
         <xs:element name='h' vc:maxVersion='1.0'/><xs:element name='i' vc:typeAvailable='int'/>\
         </xs:sequence><xs:assert test='1' vc:facetAvailable='xs:assertion'/></xs:complexType></xs:element></xs:schema>"
    );
    let schemas = PayloadSchema::from_xsd("a.xsd", &text).unwrap();
    assert_eq!(schemas[0].example().unwrap().as_str(), "<r><a></a><c></c><d></d><f></f></r>");
    let mut validator = validator(schemas);
    let mut judge = |text: &str| validator.validate(canonical(text)).is_ok();
    assert!(judge("<r><a/><c/><d/><f/></r>"));
    assert!(!judge("<r><late/><a/><c/><d/><f/></r>") && !judge("<r><a/><b/><c/><d/><f/></r>"));
    // Places are those in the original document.
    let error =
        refused(&[("a.xsd", text.replace("<xs:sequence>", "<xs:sequenc>").replace("</xs:sequence>", "</xs:sequenc>"))]);
    assert!(error.starts_with("a.xsd:2:1: "), "{error}");
    // At the root, the least version tells what the author used: the document counts as far as it is of this version.
    let late = |inside: &str| {
        format!("{HEAD} {vc} vc:minVersion='1.1'><xs:element name='r'>{inside}</xs:element></xs:schema>")
    };
    assert!(PayloadSchema::from_xsd("a.xsd", &late("")).is_ok());
    assert!(refused(&[("a.xsd", late("<xs:alternative/>"))]).contains("xs:alternative is of XSD 1.1"));
    // A version is a decimal number.
    for (wrong, at) in
        [("vc:minVersion='abc'", "a.xsd:1:"), ("vc:maxVersion=''", "a.xsd:1:"), ("vc:minVersion='1e1'", "a.xsd:1:")]
    {
        let text = format!("{HEAD} {vc}><xs:element name='r' {wrong}/></xs:schema>");
        let error = refused(&[("a.xsd", text)]);
        assert!(error.starts_with(at) && error.contains("is no version of XML Schema: write vc:m"), "{wrong}: {error}");
    }
    for right in ["vc:minVersion=' 1.0 '", "vc:minVersion='+.5'", "vc:maxVersion='1.1'"] {
        let text = format!("{HEAD} {vc}><xs:element name='r' {right}/></xs:schema>");
        PayloadSchema::from_xsd("a.xsd", &text).unwrap_or_else(|error| panic!("{right}: {error}"));
    }
}

/// Checks that a group of attributes that is reached in two ways has each attribute once (section 3.4.2), and that two
/// attributes of one name are refused.
#[test]
fn attributes_are_compared_as_components() {
    let groups = "<xs:attributeGroup name='g'><xs:attribute name='k' type='xs:language' use='required'/><xs:attribute name='i' type='xs:ID'/></xs:attributeGroup>\
                  <xs:attributeGroup name='a'><xs:attributeGroup ref='g'/></xs:attributeGroup>\
                  <xs:attributeGroup name='b'><xs:attribute name='x'/><xs:attributeGroup ref='g'/></xs:attributeGroup>\
                  <xs:complexType name='t'><xs:attributeGroup ref='g'/></xs:complexType>";
    let schema = |inside: &str| {
        format!(
            "{HEAD}>{groups}<xs:element name='r'><xs:complexType>{inside}</xs:complexType></xs:element></xs:schema>"
        )
    };
    let extension = |inside: &str| {
        schema(&format!("<xs:complexContent><xs:extension base='t'>{inside}</xs:extension></xs:complexContent>"))
    };
    let both = "<xs:attributeGroup ref='a'/><xs:attributeGroup ref='b'/>";
    for text in [
        schema(both),
        schema("<xs:attributeGroup ref='b'/><xs:attributeGroup ref='g'/>"),
        schema("<xs:attributeGroup ref='g'/><xs:attributeGroup ref='g'/>"),
        extension(both),
    ] {
        let mut validator =
            validator(PayloadSchema::from_xsd("a.xsd", &text).unwrap_or_else(|error| panic!("{text}: {error}")));
        assert!(validator.validate(canonical("<r k='en' i='a'/>")).is_ok(), "{text}");
        assert!(validator.validate(canonical("<r i='a'/>")).is_err(), "{text}");
    }
    for text in
        [schema(&format!("<xs:attribute name='k'/>{both}")), extension("<xs:attribute name='k' type='xs:language'/>")]
    {
        assert!(refused(&[("a.xsd", text)]).contains("'k' is declared twice"));
    }
}

/// Checks that components which every schema has may be declared again, as the schema for schemas does, and be used.
#[test]
fn built_in_components_may_be_declared_again() {
    let s4s = "<xs:schema xmlns:xs='http://www.w3.org/2001/XMLSchema' targetNamespace='http://www.w3.org/2001/XMLSchema' elementFormDefault='qualified'>\
               <xs:element name='schema'><xs:complexType><xs:attribute name='use' type='xs:useType'/></xs:complexType></xs:element>\
               <xs:simpleType name='useType'><xs:restriction base='xs:string'><xs:enumeration value='a'/></xs:restriction></xs:simpleType>\
               <xs:simpleType name='string'><xs:restriction base='xs:anySimpleType'><xs:whiteSpace value='preserve'/></xs:restriction></xs:simpleType></xs:schema>";
    let own = format!(
        "{HEAD} xmlns:xsi='http://www.w3.org/2001/XMLSchema-instance'><xs:import namespace='http://www.w3.org/2001/XMLSchema'/>\
         <xs:import namespace='http://www.w3.org/2001/XMLSchema-instance'/><xs:element name='r'><xs:complexType><xs:sequence>\
         <xs:element ref='xs:schema'/><xs:element name='s' type='xs:string'/></xs:sequence>\
         <xs:attribute ref='xsi:schemaLocation' use='required'/></xs:complexType></xs:element></xs:schema>"
    );
    let documents = [("own.xsd", own.as_str()), ("s4s.xsd", s4s)]
        .map(|(name, text)| XsdDocument { name: name.to_owned(), text: text.to_owned() });
    let mut validator = validator(PayloadSchema::from_xsd_set(&documents).unwrap());
    let mut judge = |attribute: &str, used: &str| {
        let text = format!(
            "<r xmlns:xsi='http://www.w3.org/2001/XMLSchema-instance' {attribute}>\
             <x:schema xmlns:x='http://www.w3.org/2001/XMLSchema' use='{used}'/><s>x</s></r>"
        );
        validator.validate(canonical(&text)).is_ok()
    };
    assert!(judge("xsi:schemaLocation='a b'", "a"));
    assert!(!judge("", "a") && !judge("xsi:schemaLocation='a b'", "b"));
}

/// Checks that schemas of the size of published ones are read: many elements, many patterns, many payloads.
#[test]
fn schemas_of_the_size_of_published_ones_are_read() {
    let many = |piece: &dyn Fn(usize) -> String, count: usize| (0..count).map(piece).collect::<String>();
    let types = many(
        &|i| {
            let children = many(&|j| format!("<xs:element name='e{j}' type='xs:string' minOccurs='0'/>"), 40);
            format!("<xs:complexType name='T{i}'><xs:sequence>{children}</xs:sequence></xs:complexType>")
        },
        1_050,
    );
    let patterns = many(
        &|i| {
            let pattern = format!("(urn:lsid:([\\w\\-\\.]+\\.[\\w\\-\\.]+)+:K{i}:\\S+)|(K{i}:\\S+)");
            format!(
                "<xs:simpleType name='P{i}'><xs:restriction base='xs:string'><xs:pattern value='{pattern}'/></xs:restriction></xs:simpleType>"
            )
        },
        40,
    );
    for inside in [types, patterns] {
        let text = format!("{HEAD}><xs:element name='r' type='xs:string'/>{inside}</xs:schema>");
        PayloadSchema::from_xsd("a.xsd", &text).unwrap_or_else(|error| panic!("{error}"));
    }
    let fields = many(&|i| format!("<xs:element name='field{i}' type='xs:string'/>"), 40);
    let others = many(&|i| format!("<xs:element name='term{i}' type='xs:string'/>"), 1_600);
    let text = format!(
        "{HEAD}><xs:element name='order'><xs:complexType><xs:sequence>{fields}</xs:sequence></xs:complexType></xs:element>{others}</xs:schema>"
    );
    let schemas = PayloadSchema::from_xsd("a.xsd", &text).unwrap();
    let order = schemas.iter().find(|schema| schema.qname().local() == "order").unwrap();
    assert!(order.example().is_some(), "an example beside 1,600 other declarations");
}

/// Checks redefinitions that break one rule each (section 4.2.2).
#[test]
fn redefinitions_are_judged_wherever_they_stand() {
    let base = "<xs:group name='g'><xs:choice><xs:element name='a' maxOccurs='3'/><xs:element name='b'/></xs:choice></xs:group>\
                <xs:attributeGroup name='h'><xs:attribute name='c' type='xs:int'/></xs:attributeGroup>\
                <xs:complexType name='t'><xs:sequence><xs:element name='d'/></xs:sequence></xs:complexType>";
    let group = |most: u32| {
        format!("<xs:group name='g'><xs:choice><xs:element name='a' maxOccurs='{most}'/></xs:choice></xs:group>")
    };
    let attributes = |names: &[&str]| {
        let uses: String = names.iter().map(|name| format!("<xs:attribute name='{name}' type='xs:int'/>")).collect();
        format!("<xs:attributeGroup name='h'>{uses}</xs:attributeGroup>")
    };
    let own = |occurs: &str, times: usize| {
        let reference = format!("<xs:group ref='g'{occurs}/>").repeat(times);
        format!("<xs:group name='g'><xs:sequence>{reference}</xs:sequence></xs:group>")
    };
    let longer = "<xs:complexType name='t'><xs:complexContent><xs:extension base='t'><xs:sequence><xs:element name='e'/></xs:sequence></xs:extension></xs:complexContent></xs:complexType>";
    let redefine = |of: &str, inside: &str| format!("<xs:redefine schemaLocation='{of}'>{inside}</xs:redefine>");
    let judge = |documents: &[(&str, String)]| {
        let documents: Vec<XsdDocument> =
            documents.iter().map(|(name, inside)| document(name, &format!("{HEAD}>{inside}</xs:schema>"))).collect();
        PayloadSchema::from_xsd_set(&documents).map(drop).map_err(|error| error.to_string())
    };
    let element = "<xs:element name='r'/>";
    let chain = |first: &str, second: &str| {
        judge(&[
            ("top.xsd", redefine("middle.xsd", second) + element),
            ("middle.xsd", redefine("base.xsd", first)),
            ("base.xsd", base.to_owned()),
        ])
    };
    // Each redefinition of a chain is checked, not only the last one.
    assert_eq!(chain(&group(3), &group(2)), Ok(()));
    assert!(chain(&group(4), &group(2)).unwrap_err().contains("not a part of that of its base"));
    assert_eq!(chain(&attributes(&["c"]), &attributes(&[])), Ok(()));
    assert!(chain(&attributes(&["c", "d"]), &attributes(&["c"])).unwrap_err().contains("which its base doesn't allow"));
    // A group refers to itself once, with exactly one occurrence.
    assert_eq!(chain(&own("", 1), longer), Ok(()));
    assert!(chain(&own(" minOccurs='0'", 1), longer).unwrap_err().contains("it occurs exactly once"));
    assert!(chain(&own(" maxOccurs='2'", 1), longer).unwrap_err().contains("it occurs exactly once"));
    assert!(chain(&own("", 2), longer).unwrap_err().contains("refers to itself once at most"));
    // Two redefinitions of one component, neither of which redefines the other.
    assert!(chain(&(group(3) + &group(2)), longer).unwrap_err().contains("redefined twice"));
    let beside = judge(&[
        (
            "top.xsd",
            "<xs:include schemaLocation='one.xsd'/><xs:include schemaLocation='two.xsd'/>".to_owned() + element,
        ),
        ("one.xsd", redefine("base.xsd", &group(2))),
        ("two.xsd", redefine("base.xsd", &group(2))),
        ("base.xsd", base.to_owned()),
    ]);
    assert!(beside.unwrap_err().contains("redefined twice"));
    // A simple type must restrict itself; a list or union of itself is refused (clause 5).
    let simple = |inside: &str| {
        let redefinition = redefine("base.xsd", &format!("<xs:simpleType name='s'>{inside}</xs:simpleType>"));
        let base = "<xs:simpleType name='s'><xs:restriction base='xs:int'/></xs:simpleType>";
        judge(&[("top.xsd", redefinition + element), ("base.xsd", base.to_owned())])
    };
    assert_eq!(simple("<xs:restriction base='s'/>"), Ok(()));
    for inside in [
        "<xs:list itemType='s'/>",
        "<xs:union memberTypes='s xs:string'/>",
        "<xs:union><xs:simpleType><xs:restriction base='s'/></xs:simpleType></xs:union>",
    ] {
        assert!(simple(inside).unwrap_err().contains("its base is its own name"), "{inside}");
    }
    // Documents that redefine each other.
    let circle =
        judge(&[("top.xsd", redefine("base.xsd", longer) + element), ("base.xsd", redefine("top.xsd", longer) + base)]);
    assert!(circle.unwrap_err().contains("redefine each other"));
}

/// Part 1, section 4.2.2: only a redefinition of components needs its document (`annotB025` of the public suite).
#[test]
fn a_redefinition_of_annotations_needs_no_document() {
    let redefine = |inside: &str, beside: &str| {
        let redefinition = format!("<xs:redefine schemaLocation='foo.xsd'>{inside}</xs:redefine>");
        PayloadSchema::from_xsd("a.xsd", &format!("{HEAD}>{redefinition}{beside}</xs:schema>"))
    };
    let annotation =
        "<xs:annotation><xs:appinfo><a/></xs:appinfo><xs:documentation>d</xs:documentation></xs:annotation>";
    let ty = "<xs:simpleType name='t'><xs:restriction base='t'/></xs:simpleType>";
    let root = "<xs:element name='r' type='xs:int'/>";
    for inside in ["", annotation, &annotation.repeat(2)] {
        assert_eq!(names(&redefine(inside, root).unwrap()), ["r"], "{inside}");
    }
    for (inside, beside) in [(ty, root), (annotation, "")] {
        let error = redefine(inside, beside).unwrap_err().to_string();
        assert!(error.contains("refers to 'foo.xsd', which is not among the given documents"), "{error}");
    }
}

#[test]
fn a_redefinition_takes_the_place_of_what_it_redefines() {
    let base = format!(
        "{HEAD}><xs:complexType name='t'><xs:sequence><xs:element name='a'/></xs:sequence></xs:complexType>\
         <xs:simpleType name='s'><xs:restriction base='xs:string'/></xs:simpleType>\
         <xs:group name='g'><xs:sequence><xs:element name='x'/></xs:sequence></xs:group>\
         <xs:element name='r' type='t'/><xs:element name='v' type='s'/>\
         <xs:element name='w'><xs:complexType><xs:group ref='g'/></xs:complexType></xs:element></xs:schema>"
    );
    let over = format!(
        "{HEAD}><xs:redefine schemaLocation='base.xsd'><xs:complexType name='t'><xs:complexContent><xs:extension base='t'>\
         <xs:sequence><xs:element name='b'/></xs:sequence></xs:extension></xs:complexContent></xs:complexType>\
         <xs:simpleType name='s'><xs:restriction base='s'><xs:maxLength value='2'/></xs:restriction></xs:simpleType>\
         <xs:group name='g'><xs:sequence><xs:group ref='g'/><xs:element name='y'/></xs:sequence></xs:group></xs:redefine></xs:schema>"
    );
    let set = [document("over.xsd", &over), document("base.xsd", &base)];
    let mut validator = validator(PayloadSchema::from_xsd_set(&set).unwrap());
    let mut judge = |text: &str| validator.validate(canonical(text)).is_ok();
    assert!(judge("<r><a/><b/></r>") && !judge("<r><a/></r>"));
    assert!(judge("<v>ab</v>") && !judge("<v>abc</v>"));
    assert!(judge("<w><x/><y/></w>") && !judge("<w><x/></w>"));
}

/// Checks that an example uses the final components of its schema, including those from other documents.
#[test]
fn an_example_has_what_the_components_of_its_schema_are_in_the_end() {
    let r = |content: &str| format!("<xs:element name=\"r\">{content}</xs:element>");
    let schema = |inside: &str| format!("{HEAD}>{inside}</xs:schema>");
    let derived = |by: &str, base: &str, inside: &str| {
        r(&format!(
            "<xs:complexType><xs:complexContent><xs:{by} base=\"{base}\">{inside}</xs:{by}></xs:complexContent></xs:complexType>"
        ))
    };
    let base = "<xs:complexType name=\"b\"><xs:sequence><xs:element name=\"a\" type=\"xs:int\"/>\
         <xs:element name=\"c\" type=\"xs:int\" minOccurs=\"0\"/></xs:sequence><xs:attribute name=\"k\" type=\"xs:int\"/></xs:complexType>";
    let deep = |level: u32| {
        let ty = if level == 0 { "xs:int".to_owned() } else { format!("t{}", level - 1) };
        format!(
            "<xs:complexType name=\"t{level}\"><xs:sequence><xs:element name=\"e\" type=\"{ty}\"/></xs:sequence></xs:complexType>"
        )
    };
    let documents: [(&str, Vec<String>); 10] = [
        // A redefinition gives the type more than its own document declares.
        (
            "<r k=\"1\"><a>1</a><c>1</c><d>1</d></r>",
            vec![
                schema(
                    "<xs:redefine schemaLocation=\"1.xsd\"><xs:complexType name=\"b\"><xs:complexContent><xs:extension base=\"b\">\
                 <xs:sequence><xs:element name=\"d\" type=\"xs:int\"/></xs:sequence></xs:extension></xs:complexContent>\
                 </xs:complexType></xs:redefine><xs:element name=\"r\" type=\"b\"/>",
                ),
                schema(base),
            ],
        ),
        // A redefined group that contains the original group.
        (
            "<r><x>1</x><y>1</y></r>",
            vec![
                schema(&format!(
                    "<xs:redefine schemaLocation=\"1.xsd\"><xs:group name=\"g\"><xs:sequence><xs:group ref=\"g\"/>\
                 <xs:element name=\"y\" type=\"xs:int\"/></xs:sequence></xs:group></xs:redefine>{}",
                    r("<xs:complexType><xs:group ref=\"g\"/></xs:complexType>")
                )),
                schema(
                    "<xs:group name=\"g\"><xs:sequence><xs:element name=\"x\" type=\"xs:int\"/></xs:sequence></xs:group>",
                ),
            ],
        ),
        // A member of a member's substitution group, for two abstract heads.
        (
            "<r><leaf>1</leaf></r>",
            vec![schema(&format!(
                "{}<xs:element name=\"head\" abstract=\"true\"/><xs:element name=\"mid\" abstract=\"true\" substitutionGroup=\"head\"/>\
             <xs:element name=\"leaf\" type=\"xs:int\" substitutionGroup=\"mid\"/>",
                r("<xs:complexType><xs:sequence><xs:element ref=\"head\"/></xs:sequence></xs:complexType>")
            ))],
        ),
        // A prohibited attribute, and an element that the restriction leaves out.
        (
            "<r><a>1</a></r>",
            vec![schema(&format!(
                "{base}{}",
                derived(
                    "restriction",
                    "b",
                    "<xs:sequence><xs:element name=\"a\" type=\"xs:int\"/></xs:sequence><xs:attribute name=\"k\" use=\"prohibited\"/>"
                )
            ))],
        ),
        // An element with maxOccurs 0.
        (
            "<r><a>1</a></r>",
            vec![schema(&r(
                "<xs:complexType><xs:sequence><xs:element name=\"z\" minOccurs=\"0\" maxOccurs=\"0\"/><xs:element name=\"a\" type=\"xs:int\"/></xs:sequence></xs:complexType>",
            ))],
        ),
        // The text of a type that restricts another one by an anonymous type.
        (
            "<r>7</r>",
            vec![schema(&format!(
                "<xs:complexType name=\"t\"><xs:simpleContent><xs:extension base=\"xs:int\"/></xs:simpleContent></xs:complexType>{}",
                r(
                    "<xs:complexType><xs:simpleContent><xs:restriction base=\"t\"><xs:simpleType><xs:restriction base=\"xs:int\">\
               <xs:minInclusive value=\"7\"/></xs:restriction></xs:simpleType><xs:maxInclusive value=\"9\"/></xs:restriction></xs:simpleContent></xs:complexType>"
                )
            ))],
        ),
        // Facets of a restriction of a restriction; the last enumeration counts.
        (
            "<r>c</r>",
            vec![schema(&format!(
                "<xs:simpleType name=\"s\"><xs:restriction base=\"xs:string\"><xs:enumeration value=\"a\"/><xs:enumeration value=\"c\"/></xs:restriction></xs:simpleType>{}",
                r(
                    "<xs:simpleType><xs:restriction base=\"s\"><xs:enumeration value=\"c\"/></xs:restriction></xs:simpleType>"
                )
            ))],
        ),
        // A list with a length facet and items of a union type.
        (
            "<r>1 1 1</r>",
            vec![schema(&r(
                "<xs:simpleType><xs:restriction><xs:simpleType><xs:list><xs:simpleType><xs:union memberTypes=\"xs:int xs:boolean\"/></xs:simpleType></xs:list></xs:simpleType>\
             <xs:length value=\"3\"/></xs:restriction></xs:simpleType>",
            ))],
        ),
        // An attribute group of a chameleon document, in the document that includes it.
        (
            "<r xmlns=\"urn:t\" k=\"1\"></r>",
            vec![
                format!(
                    "{HEAD} xmlns=\"urn:t\" targetNamespace=\"urn:t\"><xs:include schemaLocation=\"1.xsd\"/>{}</xs:schema>",
                    r("<xs:complexType><xs:attributeGroup ref=\"g\"/></xs:complexType>")
                ),
                schema(
                    "<xs:attributeGroup name=\"g\"><xs:attribute name=\"k\" type=\"i\"/></xs:attributeGroup><xs:simpleType name=\"i\"><xs:restriction base=\"xs:int\"/></xs:simpleType>",
                ),
            ],
        ),
        // Deeply nested types.
        (
            "<e>1</e></e>",
            vec![schema(&format!("{}<xs:element name=\"r\" type=\"t60\"/>", (0..=60).map(deep).collect::<String>()))],
        ),
    ];
    for (expected, texts) in documents {
        let names: Vec<String> = (0..texts.len()).map(|n| format!("{n}.xsd")).collect();
        let given: Vec<_> = names.iter().zip(&texts).map(|(name, text)| document(name, text)).collect();
        let schemas = PayloadSchema::from_xsd_set(&given).unwrap_or_else(|error| panic!("{error}: {texts:?}"));
        let schema = schemas.iter().find(|schema| schema.qname().local() == "r").unwrap();
        let example = schema.example().unwrap_or_else(|| panic!("no example: {texts:?}"));
        assert!(example.as_str().contains(expected), "{} for {texts:?}", example.as_str());
    }
}
