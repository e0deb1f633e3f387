//! Tests of the decoder.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::*;
use crate::ladder::strict::canonicalize;
use crate::vocab::XmlLimits;

fn decoded<T: DeserializeOwned>(text: &str) -> Result<T, DecodeError> {
    decode_canonical(&canonicalize(&Bytes::from(text.to_owned()), &XmlLimits::UNLIMITED).unwrap())
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Typed {
    #[serde(rename = "@type")]
    ty: Option<String>,
    n: u8,
    #[serde(default)]
    colour: Vec<Colour>,
    maybe: Option<String>,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Colour {
    Red,
    Green,
}

#[test]
fn foreign_attributes_are_no_fields() {
    let text = "<r xmlns='urn:t' xmlns:xsi='http://www.w3.org/2001/XMLSchema-instance' xsi:type='r' xml:lang='en'><n>1</n></r>";
    assert_eq!(decoded::<Typed>(text).unwrap().ty, None);
    assert_eq!(decoded::<Typed>("<r type='x'><n>1</n></r>").unwrap().ty.as_deref(), Some("x"));
}

#[test]
fn prefixes_instructions_and_white_space_change_nothing() {
    let plain: Typed =
        decoded("<r><n>12</n><colour>red</colour><colour>green</colour><maybe>a&amp;b</maybe></r>").unwrap();
    let other: Typed = decoded(
        "<p:r xmlns:p='urn:t'>\n <p:n> 1<?x?>2 </p:n><?y?>\n<p:colour>red</p:colour> <p:colour>gr<?z?>een</p:colour><p:maybe>a<?b?>&amp;b</p:maybe></p:r>",
    )
    .unwrap();
    assert_eq!(plain, other);
    assert_eq!(plain.colour, [Colour::Red, Colour::Green]);
}

#[test]
fn empty_and_absent_differ() {
    assert_eq!(decoded::<Typed>("<r><n>1</n></r>").unwrap().maybe, None);
    assert_eq!(decoded::<Typed>("<r><n>1</n><maybe/></r>").unwrap().maybe.as_deref(), Some(""));
}

#[test]
fn errors_say_what_and_where() {
    let error = decoded::<Typed>("<r>\n  <n>300</n></r>").unwrap_err();
    assert_eq!(error.to_string(), "found '300', expected a whole number from 0 to 255");
    assert_eq!(error.at, Some(Position { line: 2, column: 3 }));
    let error = decoded::<Typed>("<r><n>1</n><other><deep/></other></r>").unwrap_err();
    assert!(matches!(&error.problem, DecodeProblem::Refused(message) if message.contains("other")), "{error:?}");
    let error = decoded::<Typed>("<r/>").unwrap_err();
    assert!(error.to_string().contains("missing field `n`"), "{error}");
    assert!(decoded::<Typed>("<r><n><deep/></n></r>").is_err());
}

#[derive(Debug, PartialEq, Deserialize)]
struct Lenient {
    a: i32,
    #[serde(rename = "$value", default)]
    rest: Vec<Part>,
    b: bool,
}

#[derive(Debug, PartialEq, Deserialize)]
enum Part {
    X,
    Y { n: u8 },
}

#[test]
fn a_value_list_ends_where_a_named_field_begins() {
    let value: Lenient = decoded("<r><a>+05</a><X/><Y><n>-0</n></Y><X/><b>1</b></r>").unwrap();
    assert_eq!(value, Lenient { a: 5, rest: vec![Part::X, Part::Y { n: 0 }, Part::X], b: true });
    assert_eq!(decoded::<Lenient>("<r><a>1</a><b>false</b></r>").unwrap().rest, []);
}

#[derive(Debug, Deserialize)]
struct Ignores {
    a: u8,
}

#[test]
fn what_a_type_does_not_know_is_passed_over_without_recursion() {
    let deep = "<x>".repeat(100_000) + &"</x>".repeat(100_000);
    let value: Ignores = decoded(&format!("<r>{deep}<a>1</a>{deep}</r>")).unwrap();
    assert_eq!(value.a, 1);
}

#[derive(Debug, Deserialize)]
struct Tree {
    #[serde(default)]
    child: Vec<Tree>,
}

#[test]
fn values_nest_to_a_bound() {
    let deep = |depth: usize| "<child>".repeat(depth) + &"</child>".repeat(depth);
    assert!(decoded::<Tree>(&deep(MAX_DEPTH)).is_ok_and(|tree| tree.child.len() == 1));
    assert_eq!(decoded::<Tree>(&deep(MAX_DEPTH + 1)).unwrap_err().problem, DecodeProblem::Depth);
}
