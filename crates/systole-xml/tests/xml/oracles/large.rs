//! A schema of the size of an industry standard: 250 simple types and 250 complex ones, `tests/corpus/xsd/large.xsd`.

use std::fmt::Write;
use std::fs;

use bytes::Bytes;
use systole_xml::ladder::strict::canonicalize;
use systole_xml::schema::XsdDocument;
use systole_xml::schema::oracle::Judges;
use systole_xml::vocab::XmlLimits;

use super::corpus::folder;

const EACH: usize = 250;

#[test]
fn the_large_schema_is_what_the_generator_writes() {
    let path = folder().join("large.xsd");
    let text = generate();
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&path, &text).expect("the corpus can be written");
    }
    let written = fs::read_to_string(&path).unwrap_or_default();
    assert!(written == text, "{} differs: UPDATE_GOLDEN=1 writes it", path.display());
}

#[test]
fn the_large_schema_compiles_and_judges() {
    let documents = [XsdDocument { name: "large.xsd".to_owned(), text: generate() }];
    let mut judges = Judges::new(&documents).expect("it is a document");
    assert_eq!(judges.unsupported(), None);
    for (code, valid) in [("C0-0", true), ("C0-99", false)] {
        // The required fields of the first record, which have even numbers.
        let text = format!(
            "<l:document0 xmlns:l=\"urn:example:large\" version=\"1\"><l:field0>{code}</l:field0>\
             <l:field2>10.00</l:field2></l:document0>"
        );
        let payload = canonicalize(&Bytes::from(text), &XmlLimits::default()).expect("it is well-formed");
        let (engine, libxml) = (judges.engine(&payload), judges.libxml(&payload));
        assert_eq!((engine.is_ok(), libxml.is_ok()), (valid, valid), "{engine:?} {libxml:?}");
    }
}

fn generate() -> String {
    let mut out = String::from(
        "<xs:schema xmlns:xs=\"http://www.w3.org/2001/XMLSchema\" xmlns:l=\"urn:example:large\"\n    \
         targetNamespace=\"urn:example:large\" elementFormDefault=\"qualified\">\n  \
         <xs:attributeGroup name=\"Tracing\">\n    <xs:attribute name=\"version\" type=\"xs:unsignedShort\" use=\"required\"/>\n    \
         <xs:attribute name=\"changed\" type=\"xs:dateTime\"/>\n  </xs:attributeGroup>\n",
    );
    (0..EACH).for_each(|number| simple(&mut out, number));
    (0..EACH).for_each(|number| complex(&mut out, number));
    for number in (0..EACH).step_by(5) {
        let _ = writeln!(out, "  <xs:element name=\"document{number}\" type=\"l:Record{number}\"/>");
    }
    out.push_str("</xs:schema>\n");
    out
}

/// Code lists, identifiers, amounts, texts and measures, in turn.
fn simple(out: &mut String, number: usize) {
    let (base, facets) = match number % 5 {
        0 => {
            let codes =
                (0..5 + number % 20).map(|code| format!("      <xs:enumeration value=\"C{number}-{code}\"/>\n"));
            ("xs:token", codes.collect())
        }
        1 => ("xs:token", format!("      <xs:pattern value=\"[A-Z]{{2}}\\d{{{}}}(-[a-z0-9]+)*\"/>\n", 2 + number % 9)),
        2 => (
            "xs:decimal",
            format!("      <xs:totalDigits value=\"{}\"/>\n      <xs:fractionDigits value=\"2\"/>\n", 8 + number % 10),
        ),
        3 => (
            "xs:string",
            format!("      <xs:minLength value=\"1\"/>\n      <xs:maxLength value=\"{}\"/>\n", 20 + number),
        ),
        _ => (
            "xs:int",
            format!("      <xs:minInclusive value=\"0\"/>\n      <xs:maxInclusive value=\"{}\"/>\n", 100 * number),
        ),
    };
    let _ = write!(
        out,
        "  <xs:simpleType name=\"Value{number}\">\n    <xs:restriction base=\"{base}\">\n{facets}    </xs:restriction>\n  \
         </xs:simpleType>\n"
    );
}

/// Writes a record of fields. Every third record extends the previous one, and some contain others.
fn complex(out: &mut String, number: usize) {
    let extends = number % 3 == 2;
    // An extension needs names that differ from those of its base.
    let prefix = if extends { "more" } else { "field" };
    let _ = writeln!(out, "  <xs:complexType name=\"Record{number}\">");
    if extends {
        let _ = writeln!(out, "    <xs:complexContent>\n    <xs:extension base=\"l:Record{}\">", number - 1);
    }
    out.push_str("    <xs:sequence>\n");
    for field in 0..3 + number % 12 {
        let (min, max) = [("1", "1"), ("0", "1"), ("1", "1"), ("0", "unbounded")][field % 4];
        let _ = writeln!(
            out,
            "      <xs:element name=\"{prefix}{field}\" type=\"l:Value{}\" minOccurs=\"{min}\" maxOccurs=\"{max}\"/>",
            (number * 7 + field) % EACH
        );
    }
    if number % 2 == 1 {
        let _ = writeln!(
            out,
            "      <xs:choice minOccurs=\"0\" maxOccurs=\"unbounded\">\n        \
             <xs:element name=\"{prefix}Part\" type=\"l:Record{}\"/>\n        \
             <xs:element name=\"{prefix}Reference\" type=\"xs:anyURI\"/>\n      </xs:choice>",
            number * 13 % EACH
        );
    }
    out.push_str("    </xs:sequence>\n");
    if extends {
        out.push_str("    </xs:extension>\n    </xs:complexContent>\n");
    } else {
        out.push_str("    <xs:attributeGroup ref=\"l:Tracing\"/>\n");
    }
    out.push_str("  </xs:complexType>\n");
}
