//! Examples of payloads from `.xsd` documents: a schema with easy instances has one, and the engine finds it valid.

use std::sync::Arc;

use systole_xml::schema::{Catalog, PayloadSchema, Validator};

fn schema(inside: &str) -> String {
    format!(
        "<xs:schema xmlns:xs=\"http://www.w3.org/2001/XMLSchema\" xmlns=\"urn:t\" targetNamespace=\"urn:t\" \
         elementFormDefault=\"qualified\">{inside}</xs:schema>"
    )
}

/// The root element `r` of a simple type with facets.
fn restricted(base: &str, facets: &[(&str, &str)]) -> String {
    format!("<xs:element name='r'>{}</xs:element>", simple("", base, facets))
}

fn simple(name: &str, base: &str, facets: &[(&str, &str)]) -> String {
    let name = if name.is_empty() { String::new() } else { format!(" name='{name}'") };
    let facets: String = facets.iter().map(|(name, value)| format!("<xs:{name} value='{value}'/>")).collect();
    format!("<xs:simpleType{name}><xs:restriction base='{base}'>{facets}</xs:restriction></xs:simpleType>")
}

fn content(particle: &str) -> String {
    format!("<xs:element name='r'><xs:complexType>{particle}</xs:complexType></xs:element>")
}

fn sequence(inside: &str) -> String {
    content(&format!("<xs:sequence>{inside}</xs:sequence>"))
}

/// The example of `r`, which must be valid.
fn example(inside: &str) -> Option<String> {
    let text = schema(inside);
    let schemas = PayloadSchema::from_xsd("t.xsd", &text).unwrap_or_else(|error| panic!("{error}: {inside}"));
    let root = schemas.into_iter().find(|schema| schema.qname().local() == "r").unwrap();
    let found = root.example().cloned()?;
    let mut catalog = Catalog::new();
    catalog.add(root).unwrap();
    let judged = Validator::new(Arc::new(catalog)).validate(found.clone());
    judged.unwrap_or_else(|error| panic!("{}: {error}", found.as_str()));
    Some(found.as_str().to_owned())
}

#[test]
fn simple_types_with_easy_values_have_an_example() {
    let rows: &[(&str, &[(&str, &str)])] = &[
        ("xs:decimal", &[("fractionDigits", "0")]),
        ("xs:decimal", &[("totalDigits", "1")]),
        ("xs:decimal", &[("totalDigits", "1"), ("fractionDigits", "0")]),
        ("xs:decimal", &[("fractionDigits", "2"), ("minExclusive", "1.5"), ("maxExclusive", "1.52")]),
        ("xs:decimal", &[("minExclusive", "0"), ("maxExclusive", "1"), ("totalDigits", "1")]),
        ("xs:decimal", &[("minInclusive", "99999999999999999999.5")]),
        ("xs:decimal", &[("maxExclusive", "-1000000")]),
        ("xs:decimal", &[("pattern", "[0-9]+\\.[0-9]{2}")]),
        ("xs:double", &[("minExclusive", "1e300")]),
        ("xs:float", &[("minInclusive", "INF")]),
        ("xs:integer", &[("minInclusive", "170141183460469231731687303715884105728")]),
        ("xs:integer", &[("totalDigits", "3"), ("minInclusive", "100")]),
        ("xs:int", &[("pattern", "[0-9]{3}"), ("minInclusive", "500")]),
        ("xs:int", &[("pattern", "[0-9]{3}"), ("maxInclusive", "100"), ("minInclusive", "100")]),
        ("xs:int", &[("pattern", "[0-9]*5"), ("minInclusive", "1000"), ("maxInclusive", "2000")]),
        ("xs:int", &[("pattern", "-\\d+"), ("maxExclusive", "-40")]),
        ("xs:hexBinary", &[("length", "1")]),
        ("xs:hexBinary", &[("length", "20")]),
        ("xs:hexBinary", &[("minLength", "5"), ("maxLength", "6")]),
        ("xs:hexBinary", &[("maxLength", "0")]),
        ("xs:base64Binary", &[("length", "1")]),
        ("xs:base64Binary", &[("length", "32")]),
        ("xs:base64Binary", &[("minLength", "100")]),
        ("xs:base64Binary", &[("maxLength", "2")]),
        ("xs:NMTOKENS", &[("minLength", "3")]),
        ("xs:NMTOKENS", &[("length", "2")]),
        ("xs:NMTOKENS", &[("minLength", "2"), ("pattern", "[a-c ]+")]),
        ("xs:NMTOKEN", &[("length", "40")]),
        ("xs:token", &[("minLength", "12")]),
        ("xs:string", &[("length", "1")]),
        ("xs:string", &[("maxLength", "0")]),
        ("xs:string", &[("length", "100"), ("pattern", "[a-z]+")]),
        ("xs:string", &[("minLength", "30"), ("maxLength", "31"), ("pattern", "([a-z]{1,5}-)*x")]),
        ("xs:string", &[("maxLength", "2"), ("pattern", "abc|[a-z]{2}")]),
        ("xs:string", &[("maxLength", "2"), ("pattern", "abc"), ("pattern", "xyz"), ("pattern", "q")]),
        ("xs:string", &[("minLength", "4"), ("pattern", "(a|b)(cc|ddd)|e")]),
        ("xs:string", &[("maxLength", "3"), ("pattern", "a?b?c?d?e")]),
        ("xs:string", &[("enumeration", "first"), ("enumeration", "second")]),
        ("xs:language", &[("length", "5"), ("pattern", "[a-z]{2}-[A-Z]{2}")]),
        ("xs:anyURI", &[("maxLength", "5")]),
        ("xs:anyURI", &[("pattern", "urn:.*")]),
        ("xs:date", &[("minExclusive", "2026-12-31")]),
        ("xs:date", &[("maxExclusive", "2000-01-01")]),
        ("xs:date", &[("minExclusive", "2026-02-28"), ("maxExclusive", "2026-03-02")]),
        ("xs:date", &[("minInclusive", "9999-12-31")]),
        ("xs:date", &[("minExclusive", "9999-12-31")]),
        ("xs:date", &[("minInclusive", "2030-01-01"), ("pattern", ".*Z")]),
        ("xs:dateTime", &[("minExclusive", "2026-12-31T23:59:59Z")]),
        ("xs:dateTime", &[("maxExclusive", "1970-01-01T00:00:00Z")]),
        ("xs:dateTime", &[("minExclusive", "2026-01-01T00:00:00"), ("maxExclusive", "2026-01-01T00:00:01")]),
        ("xs:time", &[("minExclusive", "23:59:58")]),
        ("xs:time", &[("maxExclusive", "00:00:01")]),
        ("xs:gYear", &[("minExclusive", "2100")]),
        ("xs:gYear", &[("maxExclusive", "1900")]),
        ("xs:gYear", &[("minExclusive", "9999")]),
        ("xs:gYearMonth", &[("minExclusive", "2026-12")]),
        ("xs:gDay", &[("minExclusive", "---09"), ("maxExclusive", "---11")]),
        ("xs:gMonth", &[("maxExclusive", "--02")]),
        ("xs:duration", &[("minExclusive", "P10Y")]),
        ("xs:duration", &[("maxExclusive", "PT1S")]),
        ("xs:duration", &[("minExclusive", "P1M"), ("maxExclusive", "P2M")]),
        ("xs:duration", &[("minExclusive", "P1Y2M"), ("maxInclusive", "P1Y2M20D")]),
        ("xs:decimal", &[("minInclusive", "1.001"), ("maxInclusive", "1.019"), ("fractionDigits", "2")]),
        ("xs:boolean", &[("pattern", "0|1")]),
        ("xs:boolean", &[("pattern", "false")]),
        ("xs:ID", &[("pattern", "[A-Z]{2}[0-9]+")]),
        ("xs:QName", &[("pattern", "[a-z]{2}")]),
    ];
    let without = rows.iter().filter(|(base, facets)| example(&restricted(base, facets)).is_none());
    let without: Vec<_> = without.collect();
    assert!(without.is_empty(), "{without:#?}");
}

#[test]
fn derived_types_with_easy_values_have_an_example() {
    let root = "<xs:element name='r' type='t'/>";
    let union =
        |members: &str| format!("<xs:simpleType name='t'><xs:union memberTypes='{members}'/></xs:simpleType>{root}");
    let none = simple("none", "xs:string", &[("minLength", "70000"), ("pattern", "x*")]);
    let rows = [
        simple("b", "xs:string", &[("pattern", "[a-z]{3,8}")]) + &simple("t", "b", &[("pattern", ".*x")]) + root,
        simple("b", "xs:string", &[("pattern", "[A-Z]{2}\\d{4}")]) + &simple("t", "b", &[("pattern", "EU.*")]) + root,
        simple("b", "xs:string", &[("pattern", ".*@.*")])
            + &simple("t", "b", &[("pattern", "[a-z.]+@[a-z.]+\\.de")])
            + root,
        simple("b", "xs:string", &[("enumeration", "a1"), ("enumeration", "b2"), ("enumeration", "b3")])
            + &simple("t", "b", &[("pattern", "b.")])
            + root,
        simple("b", "xs:int", &[("minInclusive", "10")]) + &simple("t", "b", &[("pattern", "[0-9]{3}")]) + root,
        simple("b", "xs:date", &[("minInclusive", "2020-01-01")])
            + &simple("t", "b", &[("maxExclusive", "2020-01-02")])
            + root,
        none.clone() + &union("none xs:int"),
        none.clone() + &union("none none xs:boolean"),
        simple("i", "xs:int", &[("minInclusive", "7")])
            + "<xs:simpleType name='t'><xs:list itemType='i'/></xs:simpleType>"
            + root,
        "<xs:simpleType name='l'><xs:list itemType='xs:int'/></xs:simpleType>".to_owned()
            + &simple("t", "l", &[("length", "3"), ("pattern", "\\d \\d \\d")])
            + root,
        "<xs:simpleType name='l'><xs:list itemType='xs:byte'/></xs:simpleType>".to_owned()
            + &simple("t", "l", &[("length", "3"), ("pattern", "1 .* 3")])
            + root,
        "<xs:simpleType name='l'><xs:list itemType='xs:date'/></xs:simpleType>".to_owned()
            + &simple("t", "l", &[("minLength", "2"), ("pattern", "2026-.*Z")])
            + root,
        "<xs:simpleType name='l'><xs:list itemType='xs:int'/></xs:simpleType>".to_owned()
            + &simple("t", "l", &[("enumeration", "4 5 6")])
            + root,
        "<xs:simpleType name='u'><xs:union memberTypes='xs:int xs:boolean'/></xs:simpleType>".to_owned()
            + &simple("t", "u", &[("pattern", "t.*")])
            + root,
    ];
    let without: Vec<_> = rows.iter().filter(|row| example(row).is_none()).collect();
    assert!(without.is_empty(), "{without:#?}");
}

/// Elements of a type without a value that the search finds.
#[test]
fn parts_without_a_value_are_left_out() {
    let none = simple("none", "xs:string", &[("minLength", "70000"), ("pattern", "x*")])
        + "<xs:complexType name='deep'><xs:sequence><xs:element name='x' type='none'/></xs:sequence></xs:complexType>\
           <xs:element name='abstract' abstract='true'/>";
    let rows = [
        ("<r xmlns=\"urn:t\"></r>", sequence("<xs:element name='a' type='none' minOccurs='0'/>")),
        ("<r xmlns=\"urn:t\"></r>", sequence("<xs:element name='a' type='deep' minOccurs='0'/>")),
        ("<r xmlns=\"urn:t\"></r>", sequence("<xs:element name='a' type='xs:ENTITY' minOccurs='0'/>")),
        ("<r xmlns=\"urn:t\"></r>", sequence("<xs:element ref='abstract' minOccurs='0'/>")),
        ("<r xmlns=\"urn:t\"></r>", sequence("<xs:any namespace='##other' minOccurs='0'/>")),
        (
            "<r xmlns=\"urn:t\"></r>",
            sequence("<xs:sequence minOccurs='0'><xs:element name='b'/><xs:any namespace='##other'/></xs:sequence>"),
        ),
        (
            "<r xmlns=\"urn:t\"><b>1</b></r>",
            sequence("<xs:element name='a' type='none' minOccurs='0'/><xs:element name='b' type='xs:int'/>"),
        ),
        (
            "<r xmlns=\"urn:t\"><b>1</b></r>",
            content("<xs:choice><xs:element name='a' type='none'/><xs:element name='b' type='xs:int'/></xs:choice>"),
        ),
        (
            "<r xmlns=\"urn:t\"><b>1</b></r>",
            content("<xs:choice><xs:element name='a' type='deep'/><xs:element name='b' type='xs:int'/></xs:choice>"),
        ),
        (
            "<r xmlns=\"urn:t\"><b>1</b></r>",
            content(
                "<xs:choice><xs:element name='a' type='xs:IDREF'/><xs:element name='b' type='xs:int'/></xs:choice>",
            ),
        ),
        (
            "<r xmlns=\"urn:t\"><b>1</b></r>",
            content(
                "<xs:choice><xs:element name='a' minOccurs='999999999' maxOccurs='unbounded'/><xs:element name='b' type='xs:int'/></xs:choice>",
            ),
        ),
        ("<r xmlns=\"urn:t\"></r>", content("<xs:attribute name='a' type='none'/>")),
        (
            "<r xmlns=\"urn:t\" b=\"1\"></r>",
            content("<xs:attribute name='a' type='none'/><xs:attribute name='b' type='xs:int'/>"),
        ),
        ("<r xmlns=\"urn:t\"></r>", content("<xs:attribute name='a' type='xs:ENTITIES'/>")),
    ];
    for (expected, row) in rows {
        assert_eq!(example(&(none.clone() + &row)).as_deref(), Some(expected), "{row}");
    }
}

#[test]
fn payloads_without_an_instance_have_no_example() {
    for row in [
        restricted("xs:ENTITIES", &[("minLength", "2")]),
        sequence("<xs:element name='a' type='xs:ENTITY'/>"),
        content("<xs:attribute name='a' type='xs:ENTITIES' use='required'/>"),
    ] {
        assert_eq!(example(&row), None, "{row}");
    }
}

#[test]
fn references_lead_to_an_id() {
    let row = sequence(
        "<xs:element name='a' type='xs:ID'/><xs:element name='b' type='xs:ID'/><xs:element name='c'><xs:complexType>\
         <xs:attribute name='k' use='required'><xs:simpleType><xs:restriction base='xs:IDREFS'><xs:minLength value='3'/>\
         </xs:restriction></xs:simpleType></xs:attribute></xs:complexType></xs:element>",
    );
    let row = row.replace("<xs:element name='a' type='xs:ID'/><xs:element name='b' type='xs:ID'/>", 
        "<xs:element name='a'><xs:complexType><xs:attribute name='i' type='xs:ID' use='required'/></xs:complexType></xs:element>");
    let found = example(&row).unwrap();
    assert!(found.contains("i=\"name\"") && found.contains("k=\"name name name\""), "{found}");
}

/// Groups, or elements, each optional in the one before.
#[test]
fn deep_optional_parts_are_left_out() {
    let mut compiled = 0;
    for depth in [10, 60, 90, 95, 98, 99, 100, 101, 200] {
        let (open, close) = ("<xs:sequence minOccurs='0'>".repeat(depth), "</xs:sequence>".repeat(depth));
        let groups = schema(&content(&format!("{open}<xs:element name='x'/>{close}")));
        let elements = (0..depth).rev().fold(String::new(), |inside, i| {
            let inside = format!("<xs:complexType><xs:sequence>{inside}</xs:sequence></xs:complexType>");
            format!("<xs:element name='x{i}' minOccurs='0'>{inside}</xs:element>")
        });
        let types = (0..depth).fold(String::new(), |all, i| {
            let inside = format!("<xs:sequence><xs:element name='x' type='t{}' minOccurs='0'/></xs:sequence>", i + 1);
            all + &format!("<xs:complexType name='t{i}'>{inside}</xs:complexType>")
        });
        let types = schema(&format!("{types}<xs:complexType name='t{depth}'/><xs:element name='r' type='t0'/>"));
        for text in [groups, schema(&sequence(&elements)), types] {
            // Some are nested deeper than a schema may be.
            let Ok(schemas) = PayloadSchema::from_xsd("t.xsd", &text) else { continue };
            assert!(schemas[0].example().is_some(), "{depth}: {text}");
            compiled += 1;
        }
    }
    assert!(compiled > 15, "{compiled}");
}

/// The bound of the search is a share for each payload: no question changes what another one finds.
#[test]
fn examples_do_not_depend_on_the_order_of_questions() {
    let large = |i: usize| {
        let items = format!("<xs:element name='a' minOccurs='{}' maxOccurs='unbounded'/>", 10 + 40 * (i % 50));
        format!(
            "<xs:element name='e{i}'><xs:complexType><xs:sequence>{items}</xs:sequence></xs:complexType></xs:element>"
        )
    };
    let text = schema(&(0..400).map(large).collect::<String>());
    let compiled = || PayloadSchema::from_xsd("t.xsd", &text).unwrap();
    let (forward, backward) = (compiled(), compiled());
    let first: Vec<bool> = forward.iter().map(|schema| schema.example().is_some()).collect();
    let mut last: Vec<bool> = backward.iter().rev().map(|schema| schema.example().is_some()).collect();
    last.reverse();
    assert_eq!(first, last);
    assert!(first.contains(&true) && first.contains(&false), "the bound was not reached");
}

#[test]
fn keys_have_distinct_values() {
    let item = |ty: &str| {
        format!(
            "<xs:element name='item' minOccurs='3' maxOccurs='9'><xs:complexType>\
             <xs:attribute name='id' type='{ty}' use='required'/></xs:complexType></xs:element>"
        )
    };
    let keyed = |ty: &str, rest: &str, keys: &str| {
        format!(
            "<xs:element name='r'><xs:complexType><xs:sequence>{}{rest}</xs:sequence></xs:complexType>\
             <xs:key name='k'><xs:selector xpath='t:item'/><xs:field xpath='@id'/></xs:key>{keys}</xs:element>",
            item(ty)
        )
        .replace("<xs:element name='r'>", "<xs:element name='r' xmlns:t='urn:t'>")
    };
    let code = simple("code", "xs:token", &[("pattern", "[A-Z]{2}-[0-9]{3}")]);
    let color =
        simple("color", "xs:token", &[("enumeration", "red"), ("enumeration", "green"), ("enumeration", "blue")]);
    let letters = simple("letters", "xs:token", &[("pattern", "[A-Z]{3}")]);
    for ty in [
        "xs:string",
        "xs:int",
        "xs:decimal",
        "xs:date",
        "xs:dateTime",
        "xs:gYear",
        "xs:time",
        "xs:double",
        "xs:NCName",
        "xs:anyURI",
        "xs:duration",
        "xs:hexBinary",
        "code",
        "color",
        "letters",
    ] {
        let found = example(&format!("{code}{color}{letters}{}", keyed(ty, "", "")));
        assert!(found.is_some(), "{ty}");
    }
    let switches =
        content("<xs:sequence><xs:element name='a' type='xs:boolean' minOccurs='2' maxOccurs='2'/></xs:sequence>")
            .replacen(
                "</xs:complexType>",
                "</xs:complexType><xs:unique name='u'><xs:selector xpath='t:a'/><xs:field xpath='.'/></xs:unique>",
                1,
            )
            .replace("<xs:element name='r'>", "<xs:element name='r' xmlns:t='urn:t'>");
    assert!(example(&switches).is_some(), "{switches}");
    let reference = "<xs:element name='use' minOccurs='2' maxOccurs='9'><xs:complexType>\
                     <xs:attribute name='of' type='xs:int' use='required'/></xs:complexType></xs:element>";
    let refer = "<xs:keyref name='f' refer='k'><xs:selector xpath='t:use'/><xs:field xpath='@of'/></xs:keyref>"
        .replace("refer='k'", "refer='t:k'");
    let found = example(&keyed("xs:int", reference, &refer)).expect("an example with references");
    assert!(found.contains("<use of=\"1\"></use><use of=\"2\"></use>"), "{found}");
}

#[test]
fn abstract_types_are_written_as_concrete_ones() {
    let shape = "<xs:complexType name='shape' abstract='true'><xs:attribute name='id'/></xs:complexType>\
                 <xs:complexType name='round' abstract='true'><xs:complexContent><xs:extension base='shape'/>\
                 </xs:complexContent></xs:complexType>\
                 <xs:complexType name='circle'><xs:complexContent><xs:extension base='round'><xs:sequence>\
                 <xs:element name='radius' type='xs:int'/></xs:sequence></xs:extension></xs:complexContent></xs:complexType>";
    let found = example(&format!("{shape}{}", sequence("<xs:element name='a' type='shape'/>"))).expect("an example");
    assert!(found.contains("xsi:type=\"n1:circle\"") && found.contains("<radius>1</radius>"), "{found}");
    assert!(example(&format!("{shape}<xs:element name='r' type='round'/>")).is_some());
    // Without a concrete type there is no instance.
    let none = "<xs:complexType name='none' abstract='true'/>";
    assert_eq!(example(&format!("{none}<xs:element name='r' type='none'/>")), None);
}

#[test]
fn enumerated_names_have_their_prefix() {
    let color = simple("color", "xs:QName", &[("enumeration", "c:red"), ("enumeration", "c:green")])
        .replace("<xs:simpleType", "<xs:simpleType xmlns:c='urn:colors'");
    let found = example(&format!("{color}<xs:element name='r' type='color'/>")).expect("an example");
    assert_eq!(found, "<r xmlns=\"urn:t\" xmlns:n1=\"urn:colors\">n1:red</r>");
    let inside = "<xs:complexType><xs:attribute name='a' type='color' use='required'/>\
                  <xs:attribute name='b' type='color' use='required'/></xs:complexType>";
    assert!(example(&format!("{color}<xs:element name='r'>{inside}</xs:element>")).is_some());
}
