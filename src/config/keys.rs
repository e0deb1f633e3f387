//! Keys of the file as types. A mapping is a struct that [`mapping!`] makes: each field is a key with the type of its value.
//!
//! The reader takes keys by these types, and the JSON Schema for editors is made of them: so what is read and what editors
//! know can't differ. The comment of a key is its description there.

use std::borrow::Cow;
use std::marker::PhantomData;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value, json};
use systole_core::vocab::{Millionths, Name, QName, Span, near};

use super::document::Node;
use super::mistake::Mistake;
use super::reader::{At, Fields, Reader};
use super::short_form::Called;

/// Defines a mapping. Behind the type of a value stand its default, as the schema has it, and, for a key that must be there,
/// the owner that lacks it otherwise. `with` adds rules to the schema.
macro_rules! mapping {
    (
        $(#[doc = $about:literal])+
        $name:ident: $shape:ident $(with $rules:tt)? {
            $(
                $(#[doc = $doc:literal])+
                $key:ident: $value:ty $(= $default:tt)? $(, of $owner:literal)?;
            )+
        }
    ) => {
        $(#[doc = $about])+
        pub(super) struct $name<'n> {
            $(
                $(#[doc = $doc])+
                pub(super) $key: $crate::config::keys::Key<'n, $value>,
            )+
            /// The mapping as it is written.
            #[allow(dead_code, reason = "few readers need it")]
            pub(super) own: $crate::config::keys::Written<'n>,
        }

        impl<'n> $name<'n> {
            /// Takes the keys of a mapping. Reports unknown keys, and those that are missing.
            pub(super) fn open(
                reader: &mut $crate::config::reader::Reader,
                node: &'n $crate::config::document::Node,
            ) -> Option<Self> {
                let mut fields = reader.fields(node, $crate::config::correction::Shape::$shape)?;
                $( let $key = $crate::config::keys::Key::take(&mut fields, $crate::config::keys::plain(stringify!($key))); )+
                let own = $crate::config::keys::Written::new(&fields);
                $( $( own.require(reader, $key.node, $crate::config::keys::plain(stringify!($key)), $owner); )? )+
                reader.finish(fields);
                Some(Self { $( $key, )+ own })
            }
        }

        impl schemars::JsonSchema for $name<'_> {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn inline_schema() -> bool {
                true
            }

            fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
                let mut mapping = $crate::config::keys::MappingSchema::new(&[$($about),+]);
                $(
                    let default: Option<serde_json::Value> = [$( serde_json::json!($default) )?].into_iter().next();
                    let owner: Option<&str> = [$( $owner )?].into_iter().next();
                    mapping.key::<$value>(generator, $crate::config::keys::plain(stringify!($key)), &[$($doc),+], default, owner);
                )+
                $( mapping.rules(serde_json::json!($rules)); )?
                mapping.finish()
            }
        }
    };
}
pub(super) use mapping;

/// The name of a key that is a word of Rust, too.
pub(super) fn plain(name: &'static str) -> &'static str {
    name.strip_prefix("r#").unwrap_or(name)
}

/// The value of a key, where the key is there; `T` is the type of the value.
pub(super) struct Key<'n, T> {
    pub(super) name: &'static str,
    pub(super) node: Option<&'n Node>,
    of: PhantomData<fn() -> T>,
}

/// A mapping as it is written.
pub(super) struct Written<'n> {
    /// The place to point at when a key is missing.
    pub(super) span: Span,
    /// Keys of the mapping that are unknown.
    unknown: Vec<&'n str>,
}

/// A type of values that is read alike at all keys.
pub(super) trait Read {
    type Value<'n>;

    fn read<'n>(reader: &mut Reader, key: &'static str, node: &'n Node) -> Option<Self::Value<'n>>;
}

/// A value that is one of some words.
pub(super) trait Word: Copy + 'static {
    const WORDS: &'static [(&'static str, Self)];
}

impl<'n, T> Key<'n, T> {
    pub(super) fn take(fields: &mut Fields<'n>, name: &'static str) -> Self {
        Self { name, node: fields.take(name), of: PhantomData }
    }

    pub(super) fn span(&self) -> Option<Span> {
        self.node.map(|node| node.span)
    }

    /// The name of the key and its place, if the key is there.
    pub(super) fn place(&self) -> Option<(&'static str, Span)> {
        Some((self.name, self.span()?))
    }

    /// Leaves the key out, as if it weren't there. Returns its name and its place, if it was.
    pub(super) fn leave_out(&mut self) -> Option<(&'static str, Span)> {
        let place = self.place();
        self.node = None;
        place
    }
}

impl<T> Clone for Key<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Key<'_, T> {}

impl<'n, T: Read> Key<'n, T> {
    /// Reads the value; none where the key is missing or its value is a mistake, which is reported.
    pub(super) fn read(&self, reader: &mut Reader) -> Option<T::Value<'n>> {
        T::read(reader, self.name, self.node?)
    }

    /// Reads the value into a place, which keeps its default without one.
    pub(super) fn set<P: TryFrom<T::Value<'n>>>(&self, reader: &mut Reader, place: &mut P) {
        if let Some(value) = self.read(reader).and_then(|value| value.try_into().ok()) {
            *place = value;
        }
    }
}

impl<'n> Written<'n> {
    pub(super) fn new(fields: &Fields<'n>) -> Self {
        Self { span: fields.span, unknown: fields.left().collect() }
    }

    /// Reports a key that has to be there and is missing, unless it is misspelt: that is reported as an unknown key.
    pub(super) fn require(
        &self,
        reader: &mut Reader,
        node: Option<&'n Node>,
        key: &'static str,
        owner: &'static str,
    ) -> Option<&'n Node> {
        if node.is_none() && !self.unknown.iter().any(|unknown| near::nearest(unknown, [key]).is_some()) {
            reader.report(Mistake::MissingKey { owner, key }, self.span);
        }
        node
    }
}

/// The JSON Schema of a mapping.
pub(super) struct MappingSchema {
    schema: Map<String, Value>,
    properties: Map<String, Value>,
    required: Vec<&'static str>,
}

impl MappingSchema {
    pub(super) fn new(about: &[&str]) -> Self {
        let Value::Object(schema) =
            json!({ "type": "object", "additionalProperties": false, "description": text(about) })
        else {
            unreachable!("it is an object")
        };
        Self { schema, properties: Map::new(), required: Vec::new() }
    }

    /// Adds a key. A key with an owner is required.
    pub(super) fn key<T: JsonSchema>(
        &mut self,
        generator: &mut SchemaGenerator,
        name: &'static str,
        doc: &[&str],
        default: Option<Value>,
        owner: Option<&str>,
    ) {
        let mut schema = generator.subschema_for::<T>();
        schema.insert("description".to_owned(), text(doc).into());
        if let Some(default) = default {
            schema.insert("default".to_owned(), default);
        }
        self.properties.insert(name.to_owned(), schema.into());
        self.required.extend(owner.map(|_| name));
    }

    pub(super) fn rules(&mut self, rules: Value) {
        if let Value::Object(rules) = rules {
            self.schema.extend(rules);
        }
    }

    pub(super) fn finish(mut self) -> Schema {
        self.schema.insert("properties".to_owned(), self.properties.into());
        if !self.required.is_empty() {
            self.schema.insert("required".to_owned(), self.required.into());
        }
        self.schema.into()
    }
}

/// The text of a comment.
fn text(doc: &[&str]) -> String {
    doc.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" ")
}

/// Defines a type of values by its JSON Schema; `named`: by which name others refer to it.
macro_rules! value {
    ($(#[doc = $doc:literal])+ $name:ident $(<$(const $constant:ident),+>)? $(named $named:literal)?, $schema:tt) => {
        $(#[doc = $doc])+
        pub(super) struct $name $(<$(const $constant: u64),+>)?;

        impl $(<$(const $constant: u64),+>)? JsonSchema for $name $(<$($constant),+>)? {
            fn schema_name() -> Cow<'static, str> {
                [$($named,)? stringify!($name)][0].into()
            }

            fn inline_schema() -> bool {
                <[&str]>::is_empty(&[$($named)?])
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!($schema)
            }
        }
    };
}

/// Defines how a type of values is read.
macro_rules! read {
    ($name:ty $(where $($constant:ident),+)? => $value:ty: |$reader:ident, $key:ident, $node:ident| $read:expr) => {
        impl $(<$(const $constant: u64),+>)? Read for $name {
            type Value<'n> = $value;

            fn read<'n>($reader: &mut Reader, $key: &'static str, $node: &'n Node) -> Option<Self::Value<'n>> {
                $read
            }
        }
    };
}

value! {
    /// A text.
    Text, { "type": "string" }
}
value! {
    /// A list of texts.
    Texts, { "type": "array", "items": { "type": ["string", "number", "boolean"] } }
}
value! {
    /// `true` or `false`.
    Flag, { "type": "boolean" }
}
value! {
    /// `true`, and nothing else.
    Always, { "const": true }
}
value! {
    /// A whole number in bounds.
    Count<const MIN, const MAX>,
    { "type": ["integer", "string"], "pattern": "^[0-9][0-9_]*$", "minimum": MIN, "maximum": MAX }
}
value! {
    /// A decimal number, from 0.
    Decimal<const MAX>, { "type": ["number", "string"], "minimum": 0, "maximum": MAX }
}
value! {
    /// A number of bytes in bounds, with or without a unit.
    Size<const MIN, const MAX> named "size",
    {
        "oneOf": [
            { "type": "integer", "minimum": 0 },
            { "type": "string", "pattern": "^[0-9][0-9_]* ?(B|kB|KB|MB|GB|KiB|MiB|GiB)?$" },
        ]
    }
}
value! {
    /// A time of at least `MIN` milliseconds.
    Time<const MIN> named "duration", { "type": "string", "pattern": "^[0-9][0-9_]* ?(ms|s|m|min|h|d)$" }
}
value! {
    /// A name of a listener, a client or a backend.
    Named named "name", { "type": "string", "pattern": "^[A-Za-z0-9_.\\-]{1,128}$" }
}
value! {
    /// A payload.
    Payload named "payload",
    { "type": "string", "minLength": 1, "description": "`{namespace}local`, `prefix:local`, or `local` in no namespace." }
}
value! {
    /// An entry of `calls`.
    Call named "called",
    {
        "type": "string",
        "minLength": 1,
        "description": "`{namespace}local`, `prefix:local`, or a listener for every payload that it accepts."
    }
}
value! {
    /// Namespaces by their prefixes.
    Namespaces,
    {
        "type": "object",
        "propertyNames": { "pattern": "^[^\\s:{}]+$" },
        "additionalProperties": { "type": "string", "minLength": 1 }
    }
}
value! {
    /// Single values by names of the operator's.
    Singles, { "type": "object", "additionalProperties": { "type": ["string", "number", "boolean"] } }
}
value! {
    /// Texts by names of the operator's.
    Renames, { "type": "object", "additionalProperties": { "type": "string" } }
}
value! {
    /// Any values by names of the operator's.
    Anything, { "type": "object" }
}

read!(Text => &'n str: |reader, _key, node| reader.text(node));
read!(Texts => &'n [Node]: |reader, _key, node| reader.list(node));
read!(Flag => bool: |reader, _key, node| reader.flag(node));
read!(Named => At<Name>: |reader, _key, node| reader.name(node));
read!(List<Payload> => Vec<At<QName>>: |reader, _key, node| reader.qnames(node));
read!(List<Call> => Vec<At<Called>>: |reader, _key, node| reader.called(node));
read!(Count<MIN, MAX> where MIN, MAX => u64: |reader, key, node| reader.number(key, node, MIN, MAX));
read!(Size<MIN, MAX> where MIN, MAX => u64: |reader, key, node| reader.size(key, node, MIN, MAX));
read!(Decimal<MAX> where MAX => Millionths: |reader, key, node| reader.decimal(key, node, MAX));
read!(Time<MIN> where MIN => Duration: |reader, _key, node| reader.duration(Duration::from_millis(MIN), node));

/// A list.
pub(super) struct List<T>(PhantomData<T>);

impl<T: JsonSchema> JsonSchema for List<T> {
    fn schema_name() -> Cow<'static, str> {
        format!("list of {}", T::schema_name()).into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "array", "items": generator.subschema_for::<T>() })
    }
}

/// A list that is not empty.
pub(super) struct NonEmpty<T>(PhantomData<T>);

impl<T: JsonSchema> JsonSchema for NonEmpty<T> {
    fn schema_name() -> Cow<'static, str> {
        List::<T>::schema_name()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut schema = List::<T>::json_schema(generator);
        schema.insert("minItems".to_owned(), 1.into());
        schema
    }
}

/// `true`, or a value that says more.
pub(super) struct OrTrue<T>(PhantomData<T>);

impl<T: JsonSchema> JsonSchema for OrTrue<T> {
    fn schema_name() -> Cow<'static, str> {
        format!("true or {}", T::schema_name()).into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({ "anyOf": [generator.subschema_for::<Always>(), generator.subschema_for::<T>()] })
    }
}

/// One word of some.
pub(super) struct OneOf<T>(PhantomData<T>);

impl<T: Word> JsonSchema for OneOf<T> {
    fn schema_name() -> Cow<'static, str> {
        std::any::type_name::<T>().into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let word = |word: &str| word.parse::<bool>().map_or_else(|_| word.into(), Value::Bool);
        let words: Vec<Value> = T::WORDS.iter().map(|(text, _)| word(text)).collect();
        json_schema!({ "enum": words })
    }
}

impl<T: Word> Read for OneOf<T> {
    type Value<'n> = T;

    fn read(reader: &mut Reader, _: &'static str, node: &Node) -> Option<T> {
        reader.choice(node, T::WORDS)
    }
}
