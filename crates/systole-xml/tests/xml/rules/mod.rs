//! Rules of XSD 1.0, one by one: schemas that break one rule each, beside their nearest valid neighbours.

mod instances;
mod schemas;
mod slips;

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::sync::mpsc;
use std::time::Duration;

use systole_xml::schema::oracle::{Refusal, Whole};
use systole_xml::schema::{PayloadSchema, XsdDocument};

/// A schema with target namespace `urn:t`. A global element is added in front, so that the schema has one.
pub(crate) fn document(inside: &str) -> String {
    format!(
        "<xs:schema xmlns:xs='http://www.w3.org/2001/XMLSchema' xmlns:t='urn:t' targetNamespace='urn:t'>\
         <xs:element name='z'/>{inside}</xs:schema>"
    )
}

fn said(inside: &str) -> Result<(), String> {
    let document = XsdDocument { name: "a.xsd".to_owned(), text: document(inside) };
    PayloadSchema::from_xsd_set(&[document]).map(drop).map_err(|error| error.to_string())
}

fn restriction(base: &str, derived: &str) -> String {
    format!(
        "<xs:complexType name='b'>{base}</xs:complexType><xs:complexType name='c'><xs:complexContent>\
         <xs:restriction base='t:b'>{derived}</xs:restriction></xs:complexContent></xs:complexType>"
    )
}

/// The rows of all tables: the rule, what breaks it, and what keeps it.
pub(crate) fn rows() -> Vec<(&'static str, String, String)> {
    let rows = schemas::STRUCTURES.iter().chain(schemas::SIMPLE);
    let rows = rows.map(|(rule, broken, kept)| (*rule, (*broken).to_owned(), (*kept).to_owned()));
    let particles = schemas::PARTICLES
        .iter()
        .map(|(rule, base, broken, kept)| (*rule, restriction(base, broken), restriction(base, kept)));
    rows.chain(particles).collect()
}

/// Checks the error text for each schema against a golden file, so that each is refused for the rule that it breaks.
#[test]
fn each_rule_is_kept_apart_from_its_nearest_neighbour() {
    let (mut told, mut wrong) = (String::new(), String::new());
    for (rule, broken, kept) in rows() {
        match said(&broken) {
            Ok(()) => wrong.push_str(&format!("{rule} is broken, but accepted: {broken}\n")),
            Err(error) => told.push_str(&format!("{rule}\n  {error}\n")),
        }
        if let Err(error) = said(&kept) {
            wrong.push_str(&format!("{rule} is kept, but: {error}\n  {kept}\n"));
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    golden("rules.txt", &told);
}

/// Checks that errors about a schema stay short however long its names and values are: each quoted value of the tables
/// is made long in turn.
#[test]
fn errors_quote_no_more_than_a_part_of_what_is_long() {
    const LONG: usize = 2_500;
    const MOST: usize = 1_100;
    let mut refused = 0;
    for (_, schema, _) in rows() {
        let mut values: Vec<&str> = schema.split('\'').skip(1).step_by(2).collect();
        values.sort_unstable();
        values.dedup();
        for value in values {
            for filler in ["x", "(", "é"] {
                let long = format!("{value}{}", filler.repeat(LONG));
                let schema = schema.replace(&format!("'{value}'"), &format!("'{long}'"));
                let schema = schema.replace(&format!("'t:{value}'"), &format!("'t:{long}'"));
                if let Err(error) = said(&schema) {
                    refused += 1;
                    let length = error.chars().count();
                    assert!(length <= MOST, "'{value}' and many {filler}: {length} characters: {error}");
                }
            }
        }
    }
    assert!(refused > 1_000, "{refused}");
}

fn golden(name: &str, told: &str) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden/schema").join(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, told).expect("the golden file can be written");
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(told, expected, "{} differs: UPDATE_GOLDEN=1 writes it", path.display());
}

const HEAD: &str = "<xs:schema xmlns:xs='http://www.w3.org/2001/XMLSchema' xmlns:t='urn:t' targetNamespace='urn:t' elementFormDefault='qualified'>";

fn whole(inside: &str) -> Whole {
    let document = XsdDocument { name: "a.xsd".to_owned(), text: format!("{HEAD}{inside}</xs:schema>") };
    Whole::new(&[document]).unwrap_or_else(|error| panic!("{error}\n{inside}"))
}

/// A document with the namespace declarations that the tables omit.
fn declared(text: &str) -> String {
    let namespaces = "<t:r xmlns:t='urn:t' xmlns:xs='http://www.w3.org/2001/XMLSchema' xmlns:xsi='http://www.w3.org/2001/XMLSchema-instance'";
    text.replacen("<t:r", namespaces, 1)
}

/// The verdicts on documents. The errors for invalid ones are compared with a golden file.
#[derive(Default)]
struct Verdicts {
    told: String,
    wrong: String,
}

impl Verdicts {
    fn judge(&mut self, schema: &mut Whole, text: &str, expected: Option<&str>) {
        match (schema.judge(&declared(text)), expected) {
            (Ok(()), None) => {}
            (Err(Refusal::Invalid(said)), Some(rule)) => self.told.push_str(&format!("{rule}: {text}\n  {said}\n")),
            (verdict, _) => self.wrong.push_str(&format!("{text}, expected {expected:?}: {verdict:?}\n")),
        }
    }
}

#[test]
fn documents_are_valid_or_break_one_rule() {
    let mut verdicts = Verdicts::default();
    for (inside, documents) in instances::cases() {
        let mut schema = whole(inside);
        for (text, expected) in *documents {
            verdicts.judge(&mut schema, text, *expected);
        }
    }
    for (name, text, expected) in instances::VALUES {
        let mut schema = whole(&format!("<xs:element name='r' type='xs:{name}'/>"));
        verdicts.judge(&mut schema, &format!("<t:r>{text}</t:r>"), *expected);
    }
    assert!(verdicts.wrong.is_empty(), "{}", verdicts.wrong);
    golden("documents.txt", &verdicts.told);
}

/// Writes the literal of a number.
type Write = fn(usize) -> String;

/// Checks that large enumerations are looked up by value, in a time that doesn't depend on their size.
#[test]
fn large_enumerations_are_looked_up_by_value() {
    let (ended, end) = mpsc::channel();
    std::thread::spawn(move || {
        let kinds: [(&str, Write, Write); 4] = [
            ("xs:duration", |i| format!("P{i}D"), |i| format!("PT{}H", i * 24)),
            ("xs:double", |i| format!("{i}.5"), |i| format!("{i}5e-1")),
            ("xs:hexBinary", |i| format!("{i:06x}"), |i| format!("{i:06X}")),
            ("t:numbers", |i| format!("1 2 {i}"), |i| format!("+1 02 {i}.0")),
        ];
        for (base, known, same) in kinds {
            let values: String = (1..=5_000).map(|i| format!("<xs:enumeration value='{}'/>", known(i))).collect();
            let mut schema = whole(&format!(
                "<xs:simpleType name='numbers'><xs:list itemType='xs:decimal'/></xs:simpleType>\
                 <xs:simpleType name='s'><xs:restriction base='{base}'>{values}</xs:restriction></xs:simpleType>\
                 <xs:element name='r'><xs:complexType><xs:sequence><xs:element name='a' type='t:s' maxOccurs='unbounded'/></xs:sequence></xs:complexType></xs:element>"
            ));
            let elements = |range: RangeInclusive<usize>| -> String {
                range.map(|i| format!("<t:a>{}</t:a>", same(i % 5_000 + 1))).collect()
            };
            schema.judge(&declared(&format!("<t:r>{}</t:r>", elements(1..=20_000)))).expect(base);
            let unknown = declared(&format!("<t:r><t:a>{}</t:a></t:r>", same(5_001)));
            assert!(matches!(schema.judge(&unknown), Err(Refusal::Invalid(_))), "{base}");
        }
        ended.send(())
    });
    // With a search in sequence, durations alone would take 15 s in a release build.
    end.recv_timeout(Duration::from_secs(60)).expect("80,000 values of enumerations are judged within 60 s");
}
