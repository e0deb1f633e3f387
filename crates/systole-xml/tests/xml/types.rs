//! Golden files of Rust types: schema, JSON Schema and prompt of each type that XML can represent, and the error text of
//! each other. `UPDATE_GOLDEN=1` writes them.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use systole_xml::schema::{Catalog, ContractError, Payload, PayloadSchema, Validator, decode};

use crate::built::check_document;
use crate::json::{check_examples, check_payload};

macro_rules! payload {
    ($($type:ty, $root:literal;)*) => {
        $(impl Payload for $type {
            const NAMESPACE: &'static str = "urn:example:shapes:v1";
            const ROOT: &'static str = $root;
        })*
    };
}

pub(crate) fn pretty(value: &serde_json::Value) -> String {
    format!("{value:#}\n")
}

pub(crate) fn golden(path: &str, actual: &str) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(path);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, actual).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(actual, expected, "{} differs: UPDATE_GOLDEN=1 writes it", path.display());
}

mod accepted {
    use super::*;

    /// Adds two integers and returns their sum.
    #[derive(Serialize, Deserialize, JsonSchema)]
    pub(super) struct Add {
        /// Left operand.
        a: i64,
        /// Right operand.
        b: i64,
    }

    /// Every kind of number.
    #[derive(Serialize, Deserialize, JsonSchema)]
    pub(super) struct Numbers {
        i8: i8,
        i16: i16,
        i32: i32,
        i64: i64,
        isize: isize,
        u8: u8,
        u16: u16,
        u32: u32,
        u64: u64,
        usize: usize,
        f32: f32,
        f64: f64,
        bool: bool,
        char: char,
        /// Between two bounds.
        #[schemars(range(min = 10, max = 20))]
        bounded: i32,
        #[schemars(range(min = 0.5, max = 0.75))]
        fraction: f64,
        positive: std::num::NonZeroU8,
    }

    /// Texts with rules.
    #[derive(Serialize, Deserialize, JsonSchema)]
    pub(super) struct Texts {
        #[schemars(length(min = 3, max = 8))]
        short: String,
        /// A code of three letters.
        #[schemars(regex(pattern = "^[A-Z]{3}-[0-9]{4}$"))]
        code: String,
        #[schemars(length(min = 30))]
        long: String,
        #[schemars(example = "Ada Lovelace")]
        name: String,
        id: Uuid,
        address: std::net::Ipv4Addr,
    }

    #[derive(Serialize, Deserialize)]
    pub(super) struct Uuid(uuid::Uuid2);

    mod uuid {
        /// Stands for a type with a `Deserialize` of its own.
        #[derive(serde::Serialize, serde::Deserialize)]
        #[serde(try_from = "String", into = "String")]
        #[derive(Clone)]
        pub(crate) struct Uuid2(String);

        impl TryFrom<String> for Uuid2 {
            type Error = String;

            fn try_from(text: String) -> Result<Self, String> {
                if text.len() == 36 { Ok(Self(text)) } else { Err(format!("no UUID: {text}")) }
            }
        }

        impl From<Uuid2> for String {
            fn from(uuid: Uuid2) -> String {
                uuid.0
            }
        }
    }

    impl JsonSchema for Uuid {
        fn schema_name() -> std::borrow::Cow<'static, str> {
            "Uuid".into()
        }

        fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
            schemars::json_schema!({ "type": "string", "format": "uuid" })
        }
    }

    /// Fields that may be left out.
    #[derive(Serialize, Deserialize, JsonSchema)]
    pub(super) struct Optionals {
        number: Option<u32>,
        text: Option<String>,
        #[serde(default)]
        defaulted: i32,
        #[serde(default, skip_serializing_if = "String::is_empty")]
        skipped: String,
        nested: Option<Inner>,
        empty: Option<()>,
    }

    #[derive(Serialize, Deserialize, JsonSchema)]
    pub(super) struct Inner {
        x: u8,
    }

    /// Lists of all kinds.
    #[derive(Serialize, Deserialize, JsonSchema)]
    pub(super) struct Lists {
        #[serde(default)]
        numbers: Vec<i32>,
        /// Between one and three.
        #[schemars(length(min = 1, max = 3))]
        names: Vec<String>,
        #[serde(default)]
        colours: Vec<Colour>,
        #[serde(default)]
        inner: Vec<Inner>,
        point: [f64; 3],
        #[serde(default)]
        deque: std::collections::VecDeque<bool>,
    }

    /// A colour.
    #[derive(Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    pub(super) enum Colour {
        /// Like blood.
        DarkRed,
        Green,
    }

    /// Attributes beside elements.
    #[derive(Serialize, Deserialize, JsonSchema)]
    pub(super) struct Attributes {
        /// Stands in the middle, written first.
        body: String,
        #[serde(rename = "@id")]
        id: u64,
        /// May be absent.
        #[serde(rename = "@lang")]
        lang: Option<String>,
        #[serde(rename = "@colour")]
        colour: Colour,
    }

    /// A measure with its unit.
    #[derive(Serialize, Deserialize, JsonSchema)]
    pub(super) struct Measure {
        #[serde(rename = "@unit")]
        unit: Unit,
        #[serde(rename = "$text")]
        #[schemars(range(min = 0))]
        value: f64,
    }

    #[derive(Serialize, Deserialize, JsonSchema)]
    pub(super) enum Unit {
        #[serde(rename = "m")]
        Metre,
        #[serde(rename = "kg")]
        Kilogram,
    }

    /// A drawing of shapes.
    #[derive(Serialize, Deserialize, JsonSchema)]
    pub(super) struct Drawing {
        title: String,
        #[serde(rename = "$value", default)]
        shapes: Vec<Shape>,
    }

    /// A shape.
    #[derive(Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "lowercase")]
    pub(super) enum Shape {
        /// Round.
        Circle {
            radius: f64,
        },
        /// With four corners.
        Square(Square),
        /// Just a word.
        Label(String),
        Dot,
    }

    #[derive(Serialize, Deserialize, JsonSchema)]
    pub(super) struct Square {
        #[serde(rename = "@side")]
        side: f64,
    }

    /// A command with one of several actions.
    #[derive(Serialize, Deserialize, JsonSchema)]
    pub(super) struct Command {
        #[serde(rename = "$value")]
        action: Action,
    }

    #[derive(Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "lowercase")]
    pub(super) enum Action {
        Start,
        Stop(u32),
    }

    /// A tree of nodes.
    #[derive(Serialize, Deserialize, JsonSchema)]
    pub(super) struct Tree {
        label: String,
        #[serde(default)]
        child: Vec<Tree>,
        twin: Option<Box<Tree>>,
    }

    /// An expression.
    #[derive(Serialize, Deserialize, JsonSchema)]
    pub(super) struct Expression {
        #[serde(rename = "$value")]
        root: Node,
    }

    #[derive(Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "lowercase")]
    pub(super) enum Node {
        Literal(i64),
        Negate {
            #[serde(rename = "$value")]
            of: Box<Node>,
        },
        Sum(Sum),
    }

    #[derive(Serialize, Deserialize, JsonSchema)]
    pub(super) struct Sum {
        #[serde(rename = "$value")]
        #[schemars(length(min = 2))]
        terms: Vec<Node>,
    }

    /// A question in plain words.
    #[derive(Serialize, Deserialize, JsonSchema)]
    pub(super) struct Question(String);

    /// A payload with nothing but its name.
    #[derive(Serialize, Deserialize, JsonSchema)]
    pub(super) struct Ping;

    /// Newtypes with rules of their own.
    #[derive(Serialize, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    pub(super) struct Newtypes {
        share: Percent,
        #[schemars(extend("maximum" = 50))]
        half: Percent,
        #[serde(default)]
        all: Percents,
        wrapped: Wrapper,
    }

    #[derive(Serialize, Deserialize, JsonSchema, Default)]
    pub(super) struct Percent(#[schemars(range(max = 100))] u8);

    #[derive(Serialize, Deserialize, JsonSchema, Default)]
    pub(super) struct Percents(Vec<Percent>);

    #[derive(Serialize, Deserialize, JsonSchema)]
    pub(super) struct Wrapper(Inner);

    /// An order with an example of the author's.
    #[derive(Serialize, Deserialize, JsonSchema)]
    #[schemars(example = Order { id: 4711, item: vec!["tea".into(), "milk".into()], note: None, state: Colour::Green })]
    pub(super) struct Order {
        #[serde(rename = "@id")]
        id: u32,
        #[serde(default)]
        item: Vec<String>,
        note: Option<String>,
        state: Colour,
    }

    /// Results and ranges of the standard library.
    #[derive(Serialize, Deserialize, JsonSchema)]
    pub(super) struct Standard {
        range: std::ops::Range<i64>,
        duration: std::time::Duration,
        #[serde(rename = "$value")]
        result: Result<u8, String>,
    }

    payload! {
        Add, "add"; Numbers, "numbers"; Texts, "texts"; Optionals, "optionals"; Lists, "lists";
        Attributes, "attributes"; Measure, "measure"; Drawing, "drawing"; Command, "command"; Tree, "tree";
        Expression, "expression"; Question, "question"; Ping, "ping"; Newtypes, "newtypes"; Order, "order";
        Standard, "standard";
    }
}

fn accept<T: Payload>() {
    let schema = PayloadSchema::of::<T>().unwrap_or_else(|error| panic!("{}: {error}", T::ROOT));
    golden(&format!("schema/{}.xsd", T::ROOT), schema.document());
    golden(&format!("prompt/{}.txt", T::ROOT), schema.prompt());
    golden(&format!("json/{}.json", T::ROOT), &pretty(schema.json_schema()));
    let mut catalog = Catalog::new();
    catalog.add(schema.clone()).unwrap();
    let example = schema.example().expect("a Rust type has an example");
    let valid = Validator::new(Arc::new(catalog)).validate(example.clone()).unwrap();
    drop(decode::<T>(&valid).unwrap());
    check_payload(&schema, example);
    check_examples(schema.json_schema());
    check_document(&schema);
    assert!(schema.is_qualified());
}

macro_rules! accepts {
    ($($name:ident: $type:ident;)*) => { $(#[test] fn $name() { accept::<accepted::$type>(); })* };
}

accepts! {
    a_struct_of_numbers: Add;
    numbers_of_every_width: Numbers;
    texts_with_rules: Texts;
    optional_fields: Optionals;
    lists: Lists;
    attributes: Attributes;
    text_with_attributes: Measure;
    lists_of_data_enums: Drawing;
    one_data_enum: Command;
    recursive_structs: Tree;
    recursive_enums: Expression;
    a_newtype_as_root: Question;
    a_unit_as_root: Ping;
    newtypes: Newtypes;
    an_example_of_the_author: Order;
    types_of_the_standard_library: Standard;
}

#[allow(dead_code, reason = "the types are there to be described")]
mod refused {
    use super::*;

    macro_rules! shapes {
        ($($(#[$meta:meta])* $name:ident { $($(#[$field:meta])* $key:ident: $type:ty,)* })*) => {
            $(
                #[derive(Serialize, Deserialize, JsonSchema)]
                $(#[$meta])*
                pub(super) struct $name { $($(#[$field])* $key: $type,)* }
            )*
        };
    }

    #[derive(Serialize, Deserialize, JsonSchema)]
    pub(super) struct Inner {
        x: u8,
    }

    #[derive(Serialize, Deserialize, JsonSchema)]
    pub(super) enum Data {
        Number(i64),
        Word(String),
    }

    #[derive(Serialize, Deserialize, JsonSchema)]
    #[serde(untagged)]
    pub(super) enum Untagged {
        Number(i64),
        Word(String),
    }

    #[derive(Serialize, Deserialize, JsonSchema)]
    #[serde(tag = "kind")]
    pub(super) enum Tagged {
        Number { n: i64 },
        Word,
    }

    #[derive(Serialize, Deserialize, JsonSchema)]
    #[serde(tag = "kind", content = "data")]
    pub(super) enum Adjacent {
        Number(i64),
    }

    #[derive(Serialize, Deserialize, JsonSchema)]
    pub(super) enum Pairs {
        Pair(i64, i64),
    }

    #[derive(Serialize, Deserialize, JsonSchema)]
    pub(super) enum Holds {
        Maybe(Option<i64>),
    }

    #[derive(Serialize, Deserialize, JsonSchema)]
    pub(super) enum Spaced {
        #[serde(rename = "two words")]
        Two(i64),
    }

    #[derive(Serialize, Deserialize, JsonSchema)]
    pub(super) struct Items(Vec<i64>);

    #[derive(Serialize, Deserialize, JsonSchema)]
    pub(super) struct Maybe(Option<i64>);

    #[derive(Serialize, Deserialize, JsonSchema)]
    pub(super) struct Pair(i64, i64);

    fn yes() -> bool {
        true
    }

    /// A text that must be a number, which no rule says.
    #[derive(Serialize, JsonSchema)]
    pub(super) struct Secretive(String);

    impl<'de> Deserialize<'de> for Secretive {
        fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            let text = String::deserialize(deserializer)?;
            let number: u8 = text.parse().map_err(|_| serde::de::Error::custom("no number"))?;
            Ok(Self(number.to_string()))
        }
    }

    /// Read whole, written without its second half.
    #[derive(Deserialize, JsonSchema)]
    pub(super) struct Forgetful {
        kept: u8,
        lost: u8,
    }

    impl Serialize for Forgetful {
        fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            use serde::ser::SerializeStruct;
            let mut fields = serializer.serialize_struct("Forgetful", 1)?;
            let _ = self.lost;
            fields.serialize_field("kept", &self.kept)?;
            fields.end()
        }
    }

    #[derive(Serialize, Deserialize, JsonSchema)]
    pub(super) struct Newtype(Option<i64>);

    shapes! {
        AnyValue { x: serde_json::Value, }
        Map { x: HashMap<String, i64>, }
        OrderedMap { x: BTreeMap<String, Inner>, }
        Set { #[serde(default)] x: BTreeSet<i64>, }
        Tuple { x: (i64, String), }
        NestedList { #[serde(default)] x: Vec<Vec<i64>>, }
        OptionalList { x: Option<Vec<i64>>, }
        BareList { x: Vec<i64>, }
        ListOfOptions { #[serde(default)] x: Vec<Option<i64>>, }
        OptionOfOption { x: Option<Option<i64>>, }
        OptionInBox { x: Option<Box<Option<Inner>>>, }
        OptionInNewtype { x: Option<Newtype>, }
        OptionOfAttribute { #[serde(rename = "@x")] x: Option<Option<i64>>, }
        OptionOfValue { #[serde(rename = "$value")] x: Option<Option<Data>>, }
        Wide { x: u128, }
        HasUntagged { x: Untagged, }
        HasTagged { x: Tagged, }
        HasAdjacent { x: Adjacent, }
        DataField { x: Data, }
        DataList { #[serde(default)] x: Vec<Data>, }
        TupleVariant { #[serde(rename = "$value")] x: Pairs, }
        VariantOption { #[serde(rename = "$value")] x: Holds, }
        VariantName { #[serde(rename = "$value")] x: Spaced, }
        StructAttribute { #[serde(rename = "@x")] x: Inner, }
        ListAttribute { #[serde(rename = "@x", default)] x: Vec<i64>, }
        StructText { #[serde(rename = "$text")] x: Inner, }
        OptionalText { #[serde(rename = "$text")] x: Option<String>, }
        MixedText { #[serde(rename = "$text")] x: String, y: i64, }
        ValueStruct { #[serde(rename = "$value")] x: Inner, }
        VariantClash { #[serde(rename = "$value")] x: Data, #[serde(rename = "Word")] y: String, }
        FieldName { #[serde(rename = "my field")] x: i64, }
        Prefixed { #[serde(rename = "@xml:lang")] x: String, }
        Declaration { #[serde(rename = "@xmlns")] x: String, }
        Skipped { #[serde(skip_serializing_if = "String::is_empty")] x: String, }
        OneWay { #[serde(skip_serializing, default = "yes")] x: bool, }
        Flattened { #[serde(flatten)] x: Inner, y: i64, }
        FlattenedMap { #[serde(flatten)] x: HashMap<String, i64>, }
        FlattenedEnum { #[serde(flatten)] x: Data, y: i64, }
        Boundary { #[schemars(regex(pattern = r"\bword\b"))] x: String, }
        Ipv6 { x: std::net::Ipv6Addr, }
        Rule { #[schemars(extend("multipleOf" = 5))] x: i64, }
        Impossible { #[schemars(range(min = 5, max = 3))] x: i64, }
        WrongExample { #[schemars(length(max = 3), example = "too long")] x: String, }
        HasSecretive { x: Secretive, }
        Contradictory { #[schemars(length(min = 5), regex(pattern = "^a?$"))] x: String, }
        Endless { x: Box<Endless>, }
        TooMany { #[serde(default)] #[schemars(length(min = 999_999_999))] x: Vec<i64>, }
    }

    payload! {
        AnyValue, "x"; Map, "x"; OrderedMap, "x"; Set, "x"; Tuple, "x"; NestedList, "x"; OptionalList, "x";
        OptionOfOption, "x"; OptionInBox, "x"; OptionInNewtype, "x"; OptionOfAttribute, "x"; OptionOfValue, "x";
        BareList, "x"; ListOfOptions, "x"; Wide, "x"; HasUntagged, "x"; HasTagged, "x"; HasAdjacent, "x";
        DataField, "x"; DataList, "x"; TupleVariant, "x"; VariantOption, "x"; VariantName, "x";
        StructAttribute, "x"; ListAttribute, "x"; StructText, "x"; OptionalText, "x"; MixedText, "x";
        ValueStruct, "x"; VariantClash, "x"; FieldName, "x"; Prefixed, "x"; Declaration, "x"; Skipped, "x";
        OneWay, "x"; Flattened, "x"; FlattenedMap, "x"; FlattenedEnum, "x"; Boundary, "x"; Ipv6, "x"; Rule, "x";
        Impossible, "x"; WrongExample, "x"; HasSecretive, "x"; Contradictory, "x"; Endless, "x"; TooMany, "x"; Data, "x"; Items, "x"; Maybe, "x";
        Pair, "x"; Forgetful, "x"; Inner, "no name";
    }
}

fn sentence<T: Payload>(out: &mut String) {
    let name = std::any::type_name::<T>().rsplit("::").next().unwrap_or_default().to_owned();
    let error: ContractError = match PayloadSchema::of::<T>() {
        Ok(schema) => panic!("{name} is accepted: {}", schema.document()),
        Err(error) => error,
    };
    out.push_str(&format!("{name}: {error}\n"));
}

#[test]
fn what_xml_can_not_carry_is_refused_with_what_to_write_instead() {
    let mut out = String::new();
    macro_rules! each {
        ($($type:ident)*) => { $(sentence::<refused::$type>(&mut out);)* };
    }
    each! {
        AnyValue Map OrderedMap Set Tuple NestedList OptionalList BareList ListOfOptions
        OptionOfOption OptionInBox OptionInNewtype OptionOfAttribute OptionOfValue Wide HasUntagged HasTagged
        HasAdjacent DataField DataList TupleVariant VariantOption VariantName StructAttribute ListAttribute StructText
        OptionalText MixedText ValueStruct VariantClash FieldName Prefixed Declaration Skipped OneWay Flattened
        FlattenedMap FlattenedEnum Boundary Ipv6 Rule Impossible WrongExample HasSecretive Contradictory Endless TooMany Data Items Maybe
        Pair Forgetful Inner
    }
    golden("schema/refused.txt", &out);
}
