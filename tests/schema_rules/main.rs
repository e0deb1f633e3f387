//! Rules of XSD 1.0, one by one: schemas that break one each, beside their nearest valid neighbours.

mod instances;
mod schemas;

use std::path::PathBuf;

use systole::schema::oracle::{Refusal, Whole};
use systole::schema::{PayloadSchema, XsdDocument};

/// What is said of a schema for `urn:t`; an element stands in front of what is given, so that it has one.
fn said(inside: &str) -> Result<(), String> {
    let text = format!(
        "<xs:schema xmlns:xs='http://www.w3.org/2001/XMLSchema' xmlns:t='urn:t' targetNamespace='urn:t'>\
         <xs:element name='z'/>{inside}</xs:schema>"
    );
    let document = XsdDocument { name: "a.xsd".to_owned(), text };
    PayloadSchema::from_xsd_set(&[document]).map(drop).map_err(|error| error.to_string())
}

fn restriction(base: &str, derived: &str) -> String {
    format!(
        "<xs:complexType name='b'>{base}</xs:complexType><xs:complexType name='c'><xs:complexContent>\
         <xs:restriction base='t:b'>{derived}</xs:restriction></xs:complexContent></xs:complexType>"
    )
}

/// What is said of each schema stands in a golden file, so that each is refused for the rule that it breaks.
#[test]
fn each_rule_is_kept_apart_from_its_nearest_neighbour() {
    let rows = schemas::STRUCTURES.iter().chain(schemas::SIMPLE);
    let mut rows: Vec<(&str, String, String)> =
        rows.map(|(rule, broken, kept)| (*rule, (*broken).to_owned(), (*kept).to_owned())).collect();
    rows.extend(
        schemas::PARTICLES
            .iter()
            .map(|(rule, base, broken, kept)| (*rule, restriction(base, broken), restriction(base, kept))),
    );
    let (mut told, mut wrong) = (String::new(), String::new());
    for (rule, broken, kept) in rows {
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

/// A document with the declarations that the tables take for granted.
fn declared(text: &str) -> String {
    let namespaces = "<t:r xmlns:t='urn:t' xmlns:xs='http://www.w3.org/2001/XMLSchema' xmlns:xsi='http://www.w3.org/2001/XMLSchema-instance'";
    text.replacen("<t:r", namespaces, 1)
}

/// Each document with its verdict; what is said of the invalid ones stands in a golden file.
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
