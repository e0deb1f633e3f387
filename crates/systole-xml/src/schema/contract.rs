//! Errors of contracts.

use std::fmt;

use super::shorten::{bounded_error, quoted};
use crate::vocab::{Position, QName, ns};

/// The reason why a type or a document can't be a contract, with a correction.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ContractError {
    /// A Rust type with a shape that XML can't carry faithfully.
    #[error("{place} {shape}")]
    Shape {
        /// The type and field.
        place: TypePlace,
        /// The shape, with its correction.
        shape: TypeShape,
    },
    /// A `NAMESPACE` or `ROOT` of a payload type that names no element.
    #[error("{type_name} can't be <{root}> in namespace '{namespace}': {reason}")]
    Name {
        /// The type.
        type_name: String,
        /// The `NAMESPACE` of the type.
        namespace: String,
        /// The `ROOT` of the type.
        root: String,
        /// The wrong one of the two, with its correction.
        reason: &'static str,
    },
    /// A type whose values come back from XML changed, or not at all.
    #[error("{type_name} doesn't round-trip through XML: {problem}")]
    RoundTrip {
        /// The type.
        type_name: String,
        /// The failure, with its correction.
        problem: RoundTrip,
    },
    /// Two different schemas for one payload.
    #[error("{payload} has two schemas that differ: register it from one type or document only")]
    Conflict {
        /// The payload.
        payload: QName,
    },
    /// A payload in a namespace of the pump.
    #[error("{payload} is in a namespace that the pump keeps for itself: choose a namespace of your own")]
    Reserved {
        /// The payload.
        payload: QName,
    },
    /// A set of documents that is empty.
    #[error("no schema document is given: pass one that declares an element")]
    NoDocument,
    /// A document that can't be compiled as an XML Schema.
    #[error("{document}:{at}: {problem}")]
    Document {
        /// The name of the document.
        document: String,
        /// The place in the document.
        at: Position,
        /// The problem, with its correction.
        problem: DocumentProblem,
    },
}

/// A type, or a field of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TypePlace {
    /// The name of the type in the schema.
    pub type_name: String,
    /// The name of the field in XML.
    pub field: Option<String>,
}

impl fmt::Display for TypePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.field {
            Some(field) => write!(f, "field '{field}' of {}", self.type_name),
            None => f.write_str(&self.type_name),
        }
    }
}

/// A shape of a Rust type that XML can't carry faithfully.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TypeShape {
    /// Any JSON value.
    #[error("may hold anything, so no schema can check it: write a struct, or a String")]
    Anything,
    /// A map.
    #[error("is a map, whose keys are no element names: write a Vec of a struct with a field for the key")]
    Map,
    /// A set.
    #[error("is a set, which XSD can't check: write a Vec, and make the set from it")]
    Set,
    /// A tuple or a tuple struct.
    #[error("is a tuple, whose parts have no names: write a struct with named fields")]
    Tuple,
    /// A flattened field.
    #[error(
        "has a flattened field, whose elements no schema names: remove #[serde(flatten)], so that it is an element"
    )]
    Flatten,
    /// A field of a struct whose `Deserialize` doesn't ask for its fields by name.
    #[error(
        "has no known place among the elements, since its struct doesn't ask for its fields by name: remove #[serde(flatten)], so that the flattened field is an element, or derive Deserialize where it is written by hand"
    )]
    UnknownOrder,
    /// A list of lists.
    #[error("is a list of lists, whose borders XML loses: wrap the inner list in a struct")]
    NestedList,
    /// An optional list.
    #[error(
        "is an optional list, which XML can't tell from an empty one: write a Vec with #[serde(default)], without Option"
    )]
    OptionalList,
    /// A list that is required, although an empty one writes nothing.
    #[error(
        "is a list that can't be read back when it is empty: add #[serde(default)], or #[schemars(length(min = 1))] if it never is"
    )]
    ListWithoutDefault,
    /// A list of optional values.
    #[error("is a list of Options, and an absent item writes nothing: write a list of the values that are there")]
    ListOfOptions,
    /// An optional value that is required.
    #[error("is optional but must be read: add #[serde(default)]")]
    RequiredOption,
    /// An integer wider than 64 bits.
    #[error("is an integer of 128 bits, wider than XSD processors go: write i64, u64 or a String")]
    WideInteger,
    /// An untagged enum, or another choice between kinds of value.
    #[error(
        "is one of several kinds, and XML doesn't say which: write an externally tagged enum (no #[serde(untagged)])"
    )]
    Untagged,
    /// An enum that is tagged inside or beside its content.
    #[error(
        "is an enum with its tag in a field: write an externally tagged enum (no #[serde(tag)]) whose field is renamed to $value"
    )]
    Tagged,
    /// An enum with data in an ordinary field.
    #[error("is an enum with data, whose variant names the element: add #[serde(rename = \"$value\")] to the field")]
    DataEnum,
    /// A variant with several unnamed values.
    #[error("has the variant '{0}' with several unnamed values: name its fields")]
    TupleVariant(String),
    /// A variant that holds a list or an optional value.
    #[error("has the variant '{0}' that holds a list or an Option: let it hold a struct with a field for it")]
    VariantContent(String),
    /// An enum at the root.
    #[error(
        "is an enum, and a payload has one fixed element: write a struct with the enum in a field renamed to $value"
    )]
    RootEnum,
    /// A list at the root.
    #[error("is a list, and a payload is one element: write a struct with the list in a field")]
    RootList,
    /// An optional value at the root.
    #[error("is optional, and a payload is always there: write a struct with an Option field")]
    RootOption,
    /// A struct or a unit in an attribute.
    #[error("is an attribute but no simple value: remove the @ from its name to make it an element")]
    ComplexAttribute,
    /// A list in an attribute or in the text.
    #[error(
        "is a list in an attribute or in text, whose items could hold spaces: make it an element, without @ or $text"
    )]
    ListInText,
    /// A struct in the text.
    #[error("is the text of its element but no simple value: rename it from $text to a name of its own")]
    ComplexText,
    /// Optional text.
    #[error("is optional text, and no text is the same as empty text: write a String, or give it a name of its own")]
    OptionalText,
    /// Text beside elements.
    #[error("has text beside elements: rename $text to a name of its own")]
    MixedText,
    /// A type other than an enum in a `$value` field.
    #[error("is $value, which is for enums only: give it a name of its own, or $text")]
    ValueWithoutEnum,
    /// A variant of a `$value` field with the name of another field.
    #[error("has the variant '{0}', which is also the name of a field beside it: rename one of them")]
    VariantClash(String),
    /// A name that no element or attribute can have.
    #[error(
        "has a name that XML doesn't allow for it: add #[serde(rename = \"…\")] with letters, digits, '-', '_' and '.', no colon, and not xmlns"
    )]
    FieldName,
    /// A variant whose name no element can have.
    #[error("has the variant '{0}', which is no name of an element: add #[serde(rename = \"…\")] to it")]
    VariantName(String),
    /// A value of an enumeration that XML can't carry.
    #[error("has a value other than text in its enumeration: write an enum of plain variants")]
    EnumValue,
    /// A field that may be left out when written, but is required when read.
    #[error("may be left out when it is written, but must stand when it is read: add #[serde(default)]")]
    SkippedButRequired,
    /// A field that is only written, or only read.
    #[error("is written but not read, or read but not written: let it go both ways, or mark it #[serde(skip)]")]
    OneWay,
    /// A pattern that XSD can't express.
    #[error("has the pattern '{}', which XSD can't express: {reason}", quoted(pattern))]
    Pattern {
        /// The pattern.
        pattern: String,
        /// The part that XSD can't express.
        reason: &'static str,
    },
    /// A format that XSD doesn't have.
    #[error(
        "has the format '{0}', which XSD doesn't know: add #[schemars(regex(pattern = \"…\"))] and #[schemars(example = …)]"
    )]
    Format(String),
    /// A rule of JSON Schema that has no counterpart.
    #[error("has the rule '{0}', which has no counterpart in XSD: remove it and check it in the listener")]
    Rule(String),
    /// Rules for which no valid value was found.
    #[error("has rules for which no example was found: add #[schemars(example = …)] with a value that keeps them")]
    NoExample,
    /// A type whose smallest value is larger than a message should be.
    #[error("has rules that require {elements} elements in each payload, more than 100,000: lower the least lengths")]
    TooMany {
        /// Number of elements of its smallest value.
        elements: u64,
    },
    /// A type that refers to itself without end.
    #[error("contains itself in every value, so it has none: put it into an Option or a list")]
    Endless,
}

/// The failure of an example in the round trip through XML.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RoundTrip {
    /// The schema made from the type can't be compiled: a bug in this crate.
    #[error("its schema can't be compiled ({0})")]
    Schema(String),
    /// The example breaks the schema.
    #[error("the example breaks its own schema ({0}): correct #[schemars(example = …)]")]
    Example(String),
    /// The type, or one in it, has names that its schema doesn't list.
    #[error(
        "it has a flattened field, whose elements no schema names: remove #[serde(flatten)], so that it is an element"
    )]
    Flattened,
    /// The type has an Option in an Option, or in a newtype in one.
    #[error(
        "it has an Option in an Option, and XML can't tell Some(None) from None: write one Option, or an enum that names the cases"
    )]
    NestedOption,
    /// The type has an Option of `()` in a newtype or a list.
    #[error(
        "it has an Option of () inside of a newtype or a list, where its absence can't be seen: write a bool, or the Option as a field"
    )]
    OptionalUnit,
    /// The type refuses an example that its schema allows.
    #[error(
        "it refuses a value that its schema allows ({0}): say which texts a type with a Deserialize of its own takes, with #[schemars(regex(pattern = \"…\"))] and #[schemars(example = …)]"
    )]
    Decode(String),
    /// The type can't be written.
    #[error("it can't be written ({0})")]
    Encode(String),
    /// The written value breaks the schema.
    #[error("what it writes breaks its schema ({0}): read and write it under the same names and rules")]
    Written(String),
    /// The written value differs from the one that was read.
    #[error("it read {read} and wrote {written}: every field must be written as it was read")]
    Changed {
        /// The decoded value.
        read: String,
        /// The encoded value.
        written: String,
    },
}

/// The problem of a schema document.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DocumentProblem {
    /// A document that is not well-formed.
    #[error("not well-formed XML: {0}")]
    Malformed(String),
    /// A well-formed document that is no schema.
    #[error(
        "not a schema: the root element must be <xs:schema> in the namespace http://www.w3.org/2001/XMLSchema, {0}"
    )]
    NotASchema(String),
    /// A reference to a document that was not given.
    #[error("refers to '{0}', which is not among the given documents: list that file too; nothing is ever fetched")]
    Missing(String),
    /// Two documents with one name.
    #[error("is given twice with different content")]
    Twice,
    /// A document without a global element.
    #[error("declares no global element, so it can't be a payload: declare one below xs:schema")]
    NoElement,
    /// A smallest payload that is larger than a message should be.
    #[error(
        "this element requires at least {elements} elements in each payload, more than 100,000: lower its minOccurs and those in its types and groups"
    )]
    TooMany {
        /// Number of elements of the smallest payload.
        elements: u64,
    },
    /// A broken rule of XML Schema.
    #[error("{0}")]
    Rule(String),
}

impl DocumentProblem {
    /// The same problem with a text of bounded length, however long the names and values are that it quotes.
    pub(super) fn bounded(self) -> Self {
        match self {
            Self::Malformed(text) => Self::Malformed(bounded_error(text)),
            Self::NotASchema(text) => Self::NotASchema(bounded_error(text)),
            Self::Missing(location) => Self::Missing(bounded_error(location)),
            Self::Rule(text) => Self::Rule(bounded_error(text)),
            Self::Twice | Self::NoElement | Self::TooMany { .. } => self,
        }
    }

    /// The problem of a document whose root, of that namespace, is no schema.
    pub(super) fn no_schema(namespace: &str, (prefix, local): (&str, &str)) -> Self {
        let colon = if prefix.is_empty() { "" } else { ":" };
        let name = format!("<{prefix}{colon}{local}>");
        Self::NotASchema(match (local, namespace) {
            ("schema", "") => format!("but {name} is in no namespace: write <xs:schema xmlns:xs=\"{}\">", ns::XSD),
            ("schema", other) => format!("but {name} is in {other}: write {}, letter for letter", ns::XSD),
            (_, ns::XSD) => format!("but it is {name}: write <xs:schema> around it"),
            _ => format!("but it is {name}: is this file a schema?"),
        })
    }

    /// The problem of a document without an element.
    pub(super) fn no_element() -> Self {
        Self::NotASchema("but there is no element".to_owned())
    }
}
