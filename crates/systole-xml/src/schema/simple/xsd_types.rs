//! The built-in types (part 2, section 3): their construction and their descriptions.

use std::sync::LazyLock;

use super::date_time::DateTimeKind;
use super::definition::{Definition, Variety};
use super::lexis::Lexis;
use super::primitive::Primitive;
use super::restrict::restrict;
use super::space::Space;
use super::{Facet, Identity, NoPrefixes, SimpleType};

/// A built-in simple type.
#[derive(Debug)]
pub(crate) struct XsdType {
    /// The local name in the namespace of XML Schema.
    pub(in crate::schema) name: &'static str,
    /// Two different values in canonical form.
    pub(in crate::schema) samples: [&'static str; 2],
    made: Made,
}

/// The kind of the values of a built-in type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Text whose length counts characters.
    Text,
    Boolean,
    /// Whole numbers, with the least and the greatest where the type has one.
    Integer(Option<i128>, Option<i128>),
    Decimal,
    Float,
    /// A fixed lexical form: dates, times, durations, binary.
    Form,
}

#[derive(Debug, Clone, Copy)]
enum Made {
    Any,
    Primitive(Primitive),
    Narrowed(&'static str, Narrowing),
    /// A list of at least one item.
    ListOf(&'static str),
}

#[derive(Debug, Clone, Copy)]
enum Narrowing {
    Space(Space),
    Lexis(Lexis),
    Identity(Identity),
    /// Whole numbers with a new least value; the greatest is that of the base.
    Least(i128),
    Most(i128),
    Between(i128, i128),
}

/// Constants for the types of Rust types.
impl XsdType {
    pub(in crate::schema) const BOOLEAN: &'static Self = in_table("boolean");
    pub(in crate::schema) const BYTE: &'static Self = in_table("byte");
    pub(in crate::schema) const SHORT: &'static Self = in_table("short");
    pub(in crate::schema) const INT: &'static Self = in_table("int");
    pub(in crate::schema) const LONG: &'static Self = in_table("long");
    pub(in crate::schema) const UNSIGNED_BYTE: &'static Self = in_table("unsignedByte");
    pub(in crate::schema) const UNSIGNED_SHORT: &'static Self = in_table("unsignedShort");
    pub(in crate::schema) const UNSIGNED_INT: &'static Self = in_table("unsignedInt");
    pub(in crate::schema) const UNSIGNED_LONG: &'static Self = in_table("unsignedLong");
    pub(in crate::schema) const FLOAT: &'static Self = in_table("float");
    pub(in crate::schema) const DOUBLE: &'static Self = in_table("double");
    pub(in crate::schema) const STRING: &'static Self = in_table("string");
    pub(in crate::schema) const DATE: &'static Self = in_table("date");
    pub(in crate::schema) const DATE_TIME: &'static Self = in_table("dateTime");
}

impl XsdType {
    /// All built-in types, each after its base.
    pub(in crate::schema) fn all() -> &'static [Self] {
        &XSD_TYPES
    }

    /// The local name of the base type.
    pub(in crate::schema) fn base(&self) -> &'static str {
        match self.made {
            Made::Any => "anyType",
            Made::Primitive(_) | Made::ListOf(_) => "anySimpleType",
            Made::Narrowed(base, _) => base,
        }
    }

    /// The type of the items of a list.
    pub(in crate::schema) fn item(&self) -> Option<&'static Self> {
        match self.made {
            Made::ListOf(item) => Some(in_table(item)),
            Made::Any | Made::Primitive(_) | Made::Narrowed(..) => None,
        }
    }

    pub(in crate::schema) fn kind(&self) -> Kind {
        match self.made {
            Made::Any | Made::ListOf(_) => Kind::Text,
            Made::Primitive(primitive) => match primitive {
                Primitive::String | Primitive::Uri | Primitive::QName | Primitive::Notation => Kind::Text,
                Primitive::Boolean => Kind::Boolean,
                Primitive::Decimal => Kind::Decimal,
                Primitive::Float | Primitive::Double => Kind::Float,
                Primitive::Duration | Primitive::DateTime(_) | Primitive::Hex | Primitive::Base64 => Kind::Form,
            },
            Made::Narrowed(base, how) => match (in_table(base).kind(), how) {
                (Kind::Decimal, _) => Kind::Integer(None, None),
                (Kind::Integer(_, max), Narrowing::Least(min)) => Kind::Integer(Some(min), max),
                (Kind::Integer(min, _), Narrowing::Most(max)) => Kind::Integer(min, Some(max)),
                (_, Narrowing::Between(min, max)) => Kind::Integer(Some(min), Some(max)),
                (kind, _) => kind,
            },
        }
    }

    /// The description of a value for people and models.
    pub(in crate::schema) fn words(&self) -> &'static str {
        match self.kind() {
            Kind::Text => match self.name {
                "anyURI" => "URI",
                "language" => "language tag",
                "Name" | "NCName" | "NMTOKEN" | "ID" | "IDREF" | "QName" => "name",
                _ => "text",
            },
            Kind::Boolean => "true or false",
            Kind::Integer(..) => "whole number",
            Kind::Decimal | Kind::Float => "number",
            Kind::Form => match self.name {
                "dateTime" => "date and time",
                "hexBinary" => "bytes in hexadecimal",
                "base64Binary" => "bytes in base64",
                name => name,
            },
        }
    }

    /// The definition of the type, from the types that `known` finds.
    fn define<'k>(&self, known: impl Fn(&str) -> Option<&'k SimpleType>) -> Option<Definition> {
        let noun = self.words().to_owned();
        match self.made {
            Made::Any => Some(Definition::new(Variety::Any, noun)),
            Made::Primitive(primitive) => {
                let space = if primitive == Primitive::String { Space::Preserve } else { Space::Collapse };
                Some(Definition { space, ..Definition::new(Variety::Atomic(primitive), noun) })
            }
            Made::Narrowed(base, how) => narrowed(known(base)?, how, noun),
            Made::ListOf(item) => {
                restrict(&SimpleType::list(known(item)?).ok()?, self.name, &[plain_facet("minLength", "1")]).ok()
            }
        }
    }
}

fn narrowed(base: &SimpleType, how: Narrowing, noun: String) -> Option<Definition> {
    let (min, max) = match how {
        Narrowing::Least(min) => (Some(min), None),
        Narrowing::Most(max) => (None, Some(max)),
        Narrowing::Between(min, max) => (Some(min), Some(max)),
        Narrowing::Space(_) | Narrowing::Lexis(_) | Narrowing::Identity(_) => (None, None),
    };
    let bounds = [("minInclusive", min), ("maxInclusive", max)];
    let bounds: Vec<_> = bounds.into_iter().filter_map(|(name, end)| Some((name, end?.to_string()))).collect();
    let facets: Vec<Facet> = bounds.iter().map(|(name, value)| plain_facet(name, value)).collect();
    let mut made = restrict(base, "the base type", &facets).ok()?;
    match how {
        Narrowing::Space(space) => made.space = space,
        Narrowing::Lexis(lexis) => made.lexis = lexis,
        Narrowing::Identity(identity) => made.identity = identity,
        Narrowing::Least(_) | Narrowing::Most(_) | Narrowing::Between(..) => return Some(made),
    }
    made.words.clone_from(&noun);
    made.noun = noun;
    Some(made)
}

/// The built-in type of a local name.
pub(super) fn named(local: &str) -> Option<SimpleType> {
    let known = TYPES.binary_search_by(|(name, _)| (*name).cmp(local)).ok()?;
    Some(TYPES[known].1.clone())
}

/// The compiled types, sorted by name.
static TYPES: LazyLock<Vec<(&'static str, SimpleType)>> = LazyLock::new(|| {
    let mut types: Vec<(&'static str, SimpleType)> = Vec::with_capacity(XSD_TYPES.len());
    for row in &XSD_TYPES {
        let known = |name: &str| types.iter().find(|(known, _)| *known == name).map(|(_, known)| known);
        let definition = row.define(known);
        types.extend(definition.map(|definition| (row.name, SimpleType::new(definition))));
    }
    types.sort_unstable_by_key(|(name, _)| *name);
    types
});

fn plain_facet<'a>(name: &'a str, value: &'a str) -> Facet<'a> {
    Facet { name, value, fixed: false, prefixes: &NoPrefixes }
}

/// The row of a name that the table is known to have; in a constant, a name without a row doesn't compile.
const fn in_table(name: &str) -> &'static XsdType {
    let mut at = 0;
    while at < XSD_TYPES.len() {
        if is_same(XSD_TYPES[at].name.as_bytes(), name.as_bytes()) {
            return &XSD_TYPES[at];
        }
        at += 1;
    }
    panic!("no built-in type has this name")
}

/// Compares texts; `==` is not const.
const fn is_same(one: &[u8], other: &[u8]) -> bool {
    let mut at = 0;
    while at < one.len() && at < other.len() && one[at] == other[at] {
        at += 1;
    }
    at == one.len() && at == other.len()
}

const fn row(name: &'static str, made: Made, samples: [&'static str; 2]) -> XsdType {
    XsdType { name, samples, made }
}

const fn space(name: &'static str, base: &'static str, space: Space) -> XsdType {
    row(name, Made::Narrowed(base, Narrowing::Space(space)), TEXTS)
}

const fn lexis(name: &'static str, base: &'static str, lexis: Lexis, samples: [&'static str; 2]) -> XsdType {
    row(name, Made::Narrowed(base, Narrowing::Lexis(lexis)), samples)
}

const fn identity(name: &'static str, identity: Identity) -> XsdType {
    row(name, Made::Narrowed("NCName", Narrowing::Identity(identity)), NAMES)
}

const fn integers(name: &'static str, base: &'static str, range: Narrowing) -> XsdType {
    let samples = match range {
        Narrowing::Most(max) if max < 1 => ["-1", "-2"],
        _ => WHOLE,
    };
    row(name, Made::Narrowed(base, range), samples)
}

const fn date_time(name: &'static str, kind: DateTimeKind, samples: [&'static str; 2]) -> XsdType {
    row(name, Made::Primitive(Primitive::DateTime(kind)), samples)
}

const TEXTS: [&str; 2] = ["text", "other text"];
const NAMES: [&str; 2] = ["name", "other"];
const PARTS: [&str; 2] = ["1.5", "2.5"];
const WHOLE: [&str; 2] = ["1", "2"];

/// The rows, each after its base.
static XSD_TYPES: [XsdType; 45] = [
    row("anySimpleType", Made::Any, TEXTS),
    row("string", Made::Primitive(Primitive::String), TEXTS),
    row("boolean", Made::Primitive(Primitive::Boolean), ["true", "false"]),
    row("decimal", Made::Primitive(Primitive::Decimal), PARTS),
    row("float", Made::Primitive(Primitive::Float), PARTS),
    row("double", Made::Primitive(Primitive::Double), PARTS),
    row("duration", Made::Primitive(Primitive::Duration), ["PT30S", "P1D"]),
    date_time("dateTime", DateTimeKind::DateTime, ["2026-01-31T12:00:00Z", "2026-02-28T18:30:00Z"]),
    date_time("time", DateTimeKind::Time, ["12:00:00", "18:30:00"]),
    date_time("date", DateTimeKind::Date, ["2026-01-31", "2026-02-28"]),
    date_time("gYearMonth", DateTimeKind::GYearMonth, ["2026-01", "2026-02"]),
    date_time("gYear", DateTimeKind::GYear, ["2026", "2027"]),
    date_time("gMonthDay", DateTimeKind::GMonthDay, ["--01-31", "--02-28"]),
    date_time("gDay", DateTimeKind::GDay, ["---31", "---28"]),
    date_time("gMonth", DateTimeKind::GMonth, ["--01", "--02"]),
    row("hexBinary", Made::Primitive(Primitive::Hex), ["CAFE", "BEEF"]),
    row("base64Binary", Made::Primitive(Primitive::Base64), ["c3lzdG9sZQ==", "cHVtcA=="]),
    row("anyURI", Made::Primitive(Primitive::Uri), ["https://example.org/", "https://example.org/other"]),
    row("QName", Made::Primitive(Primitive::QName), NAMES),
    row("NOTATION", Made::Primitive(Primitive::Notation), NAMES),
    space("normalizedString", "string", Space::Replace),
    space("token", "normalizedString", Space::Collapse),
    lexis("language", "token", Lexis::Language, ["en", "de"]),
    lexis("NMTOKEN", "token", Lexis::Nmtoken, NAMES),
    row("NMTOKENS", Made::ListOf("NMTOKEN"), NAMES),
    lexis("Name", "token", Lexis::Name, NAMES),
    lexis("NCName", "Name", Lexis::Ncname, NAMES),
    identity("ID", Identity::Id),
    identity("IDREF", Identity::Idref),
    row("IDREFS", Made::ListOf("IDREF"), NAMES),
    lexis("ENTITY", "NCName", Lexis::Entity, NAMES),
    row("ENTITIES", Made::ListOf("ENTITY"), NAMES),
    lexis("integer", "decimal", Lexis::Integer, WHOLE),
    integers("nonPositiveInteger", "integer", Narrowing::Most(0)),
    integers("negativeInteger", "nonPositiveInteger", Narrowing::Most(-1)),
    integers("long", "integer", Narrowing::Between(i64::MIN as i128, i64::MAX as i128)),
    integers("int", "long", Narrowing::Between(i32::MIN as i128, i32::MAX as i128)),
    integers("short", "int", Narrowing::Between(i16::MIN as i128, i16::MAX as i128)),
    integers("byte", "short", Narrowing::Between(i8::MIN as i128, i8::MAX as i128)),
    integers("nonNegativeInteger", "integer", Narrowing::Least(0)),
    integers("unsignedLong", "nonNegativeInteger", Narrowing::Most(u64::MAX as i128)),
    integers("unsignedInt", "unsignedLong", Narrowing::Most(u32::MAX as i128)),
    integers("unsignedShort", "unsignedInt", Narrowing::Most(u16::MAX as i128)),
    integers("unsignedByte", "unsignedShort", Narrowing::Most(u8::MAX as i128)),
    integers("positiveInteger", "nonNegativeInteger", Narrowing::Least(1)),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_follow_from_the_base() {
        assert_eq!(XsdType::UNSIGNED_BYTE.kind(), Kind::Integer(Some(0), Some(255)));
        assert_eq!(in_table("negativeInteger").kind(), Kind::Integer(None, Some(-1)));
        assert_eq!(in_table("ENTITY").kind(), Kind::Text);
    }

    #[test]
    fn each_is_made_of_those_before_it() {
        assert_eq!(TYPES.len(), XSD_TYPES.len());
        for (at, row) in XSD_TYPES.iter().enumerate() {
            let is_known = |name: &str| name == "anyType" || XSD_TYPES[..at].iter().any(|row| row.name == name);
            assert!(is_known(row.base()), "{}", row.name);
        }
    }
}
