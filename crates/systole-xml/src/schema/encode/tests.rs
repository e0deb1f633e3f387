//! Tests of the encoder.

use proptest::prelude::*;
use serde::{Deserialize, Serialize};

use super::*;
use crate::ladder::encode::{MAX_DEPTH, float_text};
use crate::schema::Unencodable;
use crate::schema::decode::decode_canonical;
#[cfg(feature = "libxml")]
use crate::schema::libxml2::tests::exclusive_c14n;
use crate::vocab::QName;

fn encoded<T: Serialize>(value: &T) -> Result<String, EncodeError> {
    let canonical = encode_as(value, "urn:t", "r", QName::new("urn:t", "r").unwrap())?;
    Ok(canonical.as_str().to_owned())
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
struct Mixed {
    element: String,
    #[serde(rename = "@z")]
    z: Option<String>,
    #[serde(default)]
    list: Vec<i32>,
    #[serde(rename = "@a")]
    a: f64,
    flag: Option<bool>,
    #[serde(rename = "$value")]
    kind: Option<Kind>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
enum Kind {
    Unit,
    Word(String),
    Point { x: f32, y: f32 },
    Tree(Box<Tree>),
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
struct Tree {
    #[serde(default)]
    child: Vec<Tree>,
}

#[test]
fn attributes_are_sorted_into_the_start_tag_wherever_they_stand() {
    let value = Mixed { element: "x".into(), z: Some("2".into()), list: vec![1, -2], a: 0.5, ..Mixed::default() };
    let expected = "<r xmlns=\"urn:t\" a=\"0.5\" z=\"2\"><element>x</element><list>1</list><list>-2</list></r>";
    assert_eq!(encoded(&value).unwrap(), expected);
}

#[test]
fn data_enums_name_their_element() {
    let kind = |kind| encoded(&Mixed { kind: Some(kind), ..Mixed::default() }).unwrap();
    let around = |inner: &str| format!("<r xmlns=\"urn:t\" a=\"0\"><element></element>{inner}</r>");
    assert_eq!(kind(Kind::Unit), around("<Unit></Unit>"));
    assert_eq!(kind(Kind::Word("<".into())), around("<Word>&lt;</Word>"));
    assert_eq!(kind(Kind::Point { x: 1.0, y: -1e30 }), around("<Point><x>1</x><y>-1E30</y></Point>"));
}

#[test]
fn floats_are_spelled_as_xsd_spells_them() {
    let pairs = [
        (f64::NAN, "NaN"),
        (f64::INFINITY, "INF"),
        (f64::NEG_INFINITY, "-INF"),
        (1e300, "1E300"),
        (-0.0, "-0"),
        (1e-7, "1E-7"),
    ];
    for (value, expected) in pairs {
        assert_eq!(float_text(value), expected);
    }
    assert_eq!(encoded(&f32::MAX).unwrap(), "<r xmlns=\"urn:t\">3.4028235E38</r>");
}

#[test]
fn what_has_no_form_is_an_error_at_its_field() {
    let control = Mixed { element: "a\u{1}".into(), ..Mixed::default() };
    let error = encoded(&control).unwrap_err();
    assert_eq!(error, EncodeError::Character { field: "element".into(), character: '\u{1}' });
    let attribute = Mixed { z: Some("\u{FFFE}".into()), ..Mixed::default() };
    assert_eq!(encoded(&attribute).unwrap_err().to_string().split(' ').next(), Some("@z"));
    let inner = Mixed { kind: Some(Kind::Word("\0".into())), ..Mixed::default() };
    assert_eq!(encoded(&inner).unwrap_err(), EncodeError::Character { field: "$value/Word".into(), character: '\0' });
    for (error, shape) in [
        (encoded(&std::collections::HashMap::from([("a", 1)])), Unencodable::Map),
        (encoded(&vec![1]), Unencodable::List),
        (encoded(&None::<u8>), Unencodable::Absent),
        (encoded(&Kind::Word(String::new())), Unencodable::DataEnum),
    ] {
        assert_eq!(error, Err(EncodeError::Shape { field: String::new(), shape }));
    }
}

fn nested(depth: usize) -> Tree {
    (1..depth).fold(Tree::default(), |inner, _| Tree { child: vec![inner] })
}

#[test]
fn values_as_deep_as_a_message_may_be_go_through_and_no_deeper() {
    let canonical = encode_as(&nested(MAX_DEPTH), "urn:t", "r", QName::new("urn:t", "r").unwrap()).unwrap();
    assert_eq!(decode_canonical::<Tree>(&canonical).unwrap(), nested(MAX_DEPTH));
    assert!(matches!(encoded(&nested(MAX_DEPTH + 1)), Err(EncodeError::Depth { .. })));
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof!["[a-z <>&\"'\t\n\r\u{85}\u{2028}ß𝄞]{0,12}", "\\PC{0,8}"]
}

fn mixed() -> impl Strategy<Value = Mixed> {
    let kind = prop_oneof![
        Just(Kind::Unit),
        text().prop_map(Kind::Word),
        any::<(f32, f32)>().prop_map(|(x, y)| Kind::Point { x, y }),
        (1usize..20).prop_map(|depth| Kind::Tree(Box::new(nested(depth)))),
    ];
    let floats = prop_oneof![any::<f64>(), Just(f64::INFINITY), Just(0.1)];
    (text(), proptest::option::of(text()), any::<Vec<i32>>(), floats, any::<Option<bool>>(), proptest::option::of(kind))
        .prop_map(|(element, z, list, a, flag, kind)| Mixed { element, z, list, a, flag, kind })
}

proptest! {
    #[test]
    fn what_is_encoded_is_canonical_and_comes_back(value in mixed()) {
        let canonical = encode_as(&value, "urn:t", "r", QName::new("urn:t", "r").unwrap()).unwrap();
        #[cfg(feature = "libxml")]
        prop_assert_eq!(exclusive_c14n(canonical.as_str()), Some(canonical.bytes().to_vec()));
        prop_assert_eq!(decode_canonical::<Mixed>(&canonical).unwrap(), value);
    }
}
