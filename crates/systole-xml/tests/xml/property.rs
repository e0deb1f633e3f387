//! Properties of a derived schema in both directions, with libxml2 as a second judge: it accepts every encoded value,
//! and every value that it accepts is decoded.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use proptest::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use systole_xml::ladder::strict::canonicalize;
use systole_xml::schema::{Catalog, Payload, PayloadSchema, Validator, encode};
use systole_xml::vocab::XmlLimits;

macro_rules! payload {
    ($($type:ty, $namespace:literal, $root:literal;)*) => {
        $(impl Payload for $type {
            const NAMESPACE: &'static str = $namespace;
            const ROOT: &'static str = $root;
        })*
    };
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
struct Scalars {
    a: i8,
    b: u16,
    c: i32,
    d: u64,
    e: f32,
    f: f64,
    g: bool,
    h: char,
    i: String,
    #[serde(rename = "@j")]
    j: i64,
    #[serde(rename = "@k")]
    k: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
struct Bounded {
    #[schemars(range(min = -5, max = 5))]
    small: i64,
    #[schemars(length(min = 2, max = 4))]
    short: String,
    #[schemars(regex(pattern = "^[a-c]+(-[0-9]{2})?$"))]
    code: String,
    #[schemars(length(max = 3))]
    #[serde(default)]
    few: Vec<Colour>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Colour {
    Red,
    Green,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
struct Node {
    #[serde(rename = "@name")]
    name: String,
    #[serde(default)]
    child: Vec<Node>,
    #[serde(rename = "$value", default)]
    leaves: Vec<Leaf>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
enum Leaf {
    Empty,
    Number(f64),
    Named { name: String, value: Option<u8> },
    Measured(Measured),
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
struct Measured {
    #[serde(rename = "@unit")]
    unit: Colour,
    #[serde(rename = "$text")]
    value: u32,
}

payload! {
    Scalars, "urn:example:scalars:v1", "scalars";
    Bounded, "", "bounded";
    Node, "http://example.org/a?b&c", "node";
}

fn catalog() -> Arc<Catalog> {
    static CATALOG: OnceLock<Arc<Catalog>> = OnceLock::new();
    let build = || {
        let mut catalog = Catalog::new();
        for schema in [PayloadSchema::of::<Scalars>(), PayloadSchema::of::<Bounded>(), PayloadSchema::of::<Node>()] {
            catalog.add(schema.unwrap()).unwrap();
        }
        Arc::new(catalog)
    };
    CATALOG.get_or_init(build).clone()
}

thread_local! {
    static VALIDATOR: std::cell::RefCell<Validator> = std::cell::RefCell::new(Validator::new(catalog()));
}

/// Encodes, validates and decodes a value.
fn round_trip<T: Payload + PartialEq + std::fmt::Debug>(value: &T) -> Result<T, TestCaseError> {
    let payload = encode(value).map_err(|error| TestCaseError::fail(error.to_string()))?;
    let text = payload.as_str().to_owned();
    let validated = VALIDATOR.with_borrow_mut(|validator| validator.validate(payload));
    let validated = validated.map_err(|error| TestCaseError::fail(format!("{error} in {text}")))?;
    let decoded = validated.decode::<T>().map_err(|error| TestCaseError::fail(format!("{error} in {text}")))?;
    Ok(decoded.into_value())
}

/// Checks that a text which the schema accepts is decoded, and that the decoded value is accepted again; `false` if the
/// schema refuses the text.
fn accepted_is_decoded<T: Payload + PartialEq + std::fmt::Debug>(text: &str) -> Result<bool, TestCaseError> {
    let Ok(canonical) = canonicalize(&Bytes::from(text.to_owned()), &XmlLimits::default()) else { return Ok(false) };
    let validated = match VALIDATOR.with_borrow_mut(|validator| validator.validate(canonical)) {
        Ok(validated) => validated,
        Err(_) => return Ok(false),
    };
    let decoded = validated.decode::<T>().map_err(|error| TestCaseError::fail(format!("{error} in {text}")))?;
    let again = round_trip(decoded.value())?;
    // NaN is not equal to itself.
    prop_assert!(again == *decoded.value() || text.contains("NaN"));
    Ok(true)
}

fn carriable() -> impl Strategy<Value = String> {
    prop_oneof!["[ -~\t\n\r\u{A0}-\u{FF}]{0,10}", "\\PC{0,6}"]
}

fn scalars() -> impl Strategy<Value = Scalars> {
    let floats = (any::<f32>(), prop_oneof![any::<f64>(), Just(f64::INFINITY), Just(f64::NEG_INFINITY)]);
    let character = prop_oneof![
        any::<char>().prop_filter("XML can carry it", |c| !c.is_control() && !matches!(c, '\u{FFFE}' | '\u{FFFF}')),
        Just('\n'),
        Just('<')
    ];
    (
        any::<(i8, u16, i32, u64)>(),
        floats,
        any::<bool>(),
        character,
        carriable(),
        any::<i64>(),
        proptest::option::of(carriable()),
    )
        .prop_map(|((a, b, c, d), (e, f), g, h, i, j, k)| Scalars { a, b, c, d, e, f, g, h, i, j, k })
}

fn bounded() -> impl Strategy<Value = Bounded> {
    let colours = prop::collection::vec(prop_oneof![Just(Colour::Red), Just(Colour::Green)], 0..4);
    (-5i64..=5, "[a-zß𝄞 ]{2,4}", "[a-c]{1,5}(-[0-9]{2})?", colours).prop_map(|(small, short, code, few)| Bounded {
        small,
        short,
        code,
        few,
    })
}

fn node() -> impl Strategy<Value = Node> {
    let unit = prop_oneof![Just(Colour::Red), Just(Colour::Green)];
    let leaf = prop_oneof![
        Just(Leaf::Empty),
        any::<f64>().prop_map(Leaf::Number),
        (carriable(), any::<Option<u8>>()).prop_map(|(name, value)| Leaf::Named { name, value }),
        (unit, any::<u32>()).prop_map(|(unit, value)| Leaf::Measured(Measured { unit, value })),
    ];
    let leaves = prop::collection::vec(leaf, 0..4);
    let tip = (carriable(), leaves.clone()).prop_map(|(name, leaves)| Node { name, child: Vec::new(), leaves });
    tip.prop_recursive(5, 24, 3, move |inner| {
        (carriable(), prop::collection::vec(inner, 0..3), leaves.clone()).prop_map(|(name, child, leaves)| Node {
            name,
            child,
            leaves,
        })
    })
}

/// Literals on and around the bounds of the simple types.
fn lexical() -> impl Strategy<Value = String> {
    let numbers = prop_oneof![
        any::<i128>().prop_map(|n| (n >> (n & 127)).to_string()),
        prop::sample::select(vec![
            "-129",
            "-128",
            "127",
            "128",
            "255",
            "256",
            "65535",
            "65536",
            "2147483647",
            "2147483648",
            "18446744073709551615",
            "18446744073709551616",
            "-9223372036854775808",
            "-9223372036854775809",
            "9223372036854775808",
            "-0",
            "+5",
            "007",
            " 5 ",
            "5 5",
            "1.0",
            "1.0E0",
            ".5",
            "5.",
            "INF",
            "-INF",
            "+INF",
            "NaN",
            "inf",
            "nan",
            "infinity",
            "1e5",
            "1E400",
            "1e-400",
            "0x1",
            "1_000",
            "",
            "true",
            "false",
            "1",
            "0",
            "TRUE",
            "red",
            "green",
            "Red",
            " red",
            "a",
            "ab",
            "aa-12",
            "d",
        ])
        .prop_map(str::to_owned),
    ];
    prop_oneof![3 => numbers, 1 => "[a-d0-9.+ -]{0,6}", 1 => any::<f64>().prop_map(|n| format!("{n:E}"))]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn scalars_go_through(value in scalars()) {
        prop_assert_eq!(round_trip(&value)?, value);
    }

    #[test]
    fn bounded_values_go_through(value in bounded()) {
        prop_assert_eq!(round_trip(&value)?, value);
    }

    #[test]
    fn trees_go_through(value in node()) {
        prop_assert_eq!(round_trip(&value)?, value);
    }

    #[test]
    fn accepted_scalars_are_decoded(a in lexical(), b in lexical(), field in 0usize..11) {
        // One field at a time has a random literal.
        let good = ["1", "2", "3", "4", "1.5", "2.5", "true", "c", "text", "5", "six"];
        let mut given = good.map(str::to_owned);
        given[field] = if field % 2 == 0 { a } else { b };
        let [a, b, c, d, e, f, g, h, i, j, k] = given;
        accepted_is_decoded::<Scalars>(&format!(
            "<scalars xmlns='urn:example:scalars:v1' j='{j}' k='{k}'><a>{a}</a><b>{b}</b><c>{c}</c><d>{d}</d><e>{e}</e><f>{f}</f><g>{g}</g><h>{h}</h><i>{i}</i></scalars>"
        ))?;
    }

    #[test]
    fn accepted_bounded_values_are_decoded(a in lexical(), b in lexical(), few in prop::collection::vec(lexical(), 0..5), field in 0usize..4) {
        let few: String = if field == 3 { few.iter().map(|c| format!("<few>{c}</few>")).collect() } else { String::new() };
        let pick = |index, given: &String, good: &str| if field == index { given.clone() } else { good.to_owned() };
        let (small, short, code) = (pick(0, &a, "1"), pick(1, &a, "abc"), pick(2, &b, "a"));
        accepted_is_decoded::<Bounded>(&format!("<bounded><small>{small}</small><short>{short}</short><code>{code}</code>{few}</bounded>"))?;
    }

    #[test]
    fn accepted_structures_are_decoded(parts in prop::collection::vec((0usize..9, lexical()), 0..6)) {
        let parts: String = parts
            .iter()
            .map(|(kind, text)| match kind {
                0 => "<child name='x'/>".to_owned(),
                1 => "<child/>".to_owned(),
                2 => "<Empty/>".to_owned(),
                3 => format!("<Number>{text}</Number>"),
                4 => format!("<Named><name>{text}</name></Named>"),
                5 => format!("<Named><name/><value>{text}</value></Named>"),
                6 => format!("<Measured unit='{text}'>1</Measured>"),
                7 => format!("<Measured unit='red'>{text}</Measured>"),
                _ => "\n <?pi?> ".to_owned(),
            })
            .collect();
        accepted_is_decoded::<Node>(&format!("<node xmlns='http://example.org/a?b&amp;c' name='r'>{parts}</node>"))?;
    }
}

#[test]
fn the_other_direction_does_find_valid_documents() {
    let text = "<scalars xmlns='urn:example:scalars:v1' j='5'><a>-128</a><b>7</b><c>3</c><d>4</d><e>INF</e><f>1E400</f><g>1</g><h>&#xA;</h><i/></scalars>";
    assert!(accepted_is_decoded::<Scalars>(text).unwrap());
    assert!(!accepted_is_decoded::<Scalars>(&text.replace("-128", "-129")).unwrap());
    let text = "<n:node xmlns:n='http://example.org/a?b&amp;c' name='r'><n:child name=''/><n:Empty/><n:Named><n:name/></n:Named><n:Measured unit='red'>5</n:Measured></n:node>";
    assert!(accepted_is_decoded::<Node>(text).unwrap());
}
