//! The built-in types (part 2, section 3), each once.

use std::sync::LazyLock;

use super::definition::{Definition, Variety};
use super::lexis::Lexis;
use super::moment::MomentKind;
use super::primitive::Primitive;
use super::restrict::restrict;
use super::space::Space;
use super::{Facet, Identity, Prefixes, SimpleType};
use crate::schema::builtin::Builtin;

/// The built-in type of a local name.
pub(super) fn named(local: &str) -> Option<SimpleType> {
    let known = TYPES.binary_search_by(|(name, _)| (*name).cmp(local)).ok()?;
    Some(TYPES[known].1.clone())
}

/// Sorted by name.
static TYPES: LazyLock<Vec<(&'static str, SimpleType)>> = LazyLock::new(|| {
    let mut types: Vec<(&'static str, SimpleType)> = Vec::with_capacity(ROWS.len());
    for &(name, made) in &ROWS {
        let known = |name: &str| types.iter().find(|(known, _)| *known == name).map(|(_, known)| known);
        let definition = match made {
            Made::Any => Some(Definition::new(Variety::Any, Builtin::named(name).words().to_owned())),
            Made::Primitive(primitive) => primitive_type(name, primitive),
            Made::Narrowed(base, how) => known(base).and_then(|base| narrowed(name, base, how)),
            Made::ListOf(item) => known(item).and_then(list_of),
        };
        types.extend(definition.map(|definition| (name, SimpleType::new(definition))));
    }
    types.sort_unstable_by_key(|(name, _)| *name);
    types
});

#[derive(Clone, Copy)]
enum Made {
    Any,
    Primitive(Primitive),
    Narrowed(&'static str, Narrowing),
    /// A list of at least one item.
    ListOf(&'static str),
}

#[derive(Clone, Copy)]
enum Narrowing {
    Space(Space),
    Lexis(Lexis),
    Identity(Identity),
    Bounds(&'static [(&'static str, &'static str)]),
}

fn primitive_type(name: &str, primitive: Primitive) -> Option<Definition> {
    let space = if primitive == Primitive::String { Space::Preserve } else { Space::Collapse };
    let noun = Builtin::named(name).words().to_owned();
    Some(Definition { space, ..Definition::new(Variety::Atomic(primitive), noun) })
}

fn narrowed(name: &str, base: &SimpleType, how: Narrowing) -> Option<Definition> {
    let facets: Vec<Facet> = match how {
        Narrowing::Bounds(bounds) => {
            bounds.iter().map(|&(name, value)| Facet { name, value, fixed: false, prefixes: &NoPrefixes }).collect()
        }
        _ => Vec::new(),
    };
    let mut made = restrict(base, &facets).ok()?;
    match how {
        Narrowing::Space(space) => made.space = space,
        Narrowing::Lexis(lexis) => made.lexis = lexis,
        Narrowing::Identity(identity) => made.identity = identity,
        Narrowing::Bounds(_) => return Some(made),
    }
    made.noun = Builtin::named(name).words().to_owned();
    made.words.clone_from(&made.noun);
    Some(made)
}

fn list_of(item: &SimpleType) -> Option<Definition> {
    let least = Facet { name: "minLength", value: "1", fixed: false, prefixes: &NoPrefixes };
    restrict(&SimpleType::list(item).ok()?, &[least]).ok()
}

/// For facets that need none.
struct NoPrefixes;

impl Prefixes for NoPrefixes {
    fn namespace(&self, _: &str) -> Option<&str> {
        None
    }
}

/// Each stands behind what it is made of.
#[rustfmt::skip]
static ROWS: [(&str, Made); 45] = [
    ("anySimpleType", Made::Any),
    ("string", Made::Primitive(Primitive::String)),
    ("boolean", Made::Primitive(Primitive::Boolean)),
    ("decimal", Made::Primitive(Primitive::Decimal)),
    ("float", Made::Primitive(Primitive::Float)),
    ("double", Made::Primitive(Primitive::Double)),
    ("duration", Made::Primitive(Primitive::Duration)),
    ("dateTime", Made::Primitive(Primitive::Moment(MomentKind::DateTime))),
    ("time", Made::Primitive(Primitive::Moment(MomentKind::Time))),
    ("date", Made::Primitive(Primitive::Moment(MomentKind::Date))),
    ("gYearMonth", Made::Primitive(Primitive::Moment(MomentKind::GYearMonth))),
    ("gYear", Made::Primitive(Primitive::Moment(MomentKind::GYear))),
    ("gMonthDay", Made::Primitive(Primitive::Moment(MomentKind::GMonthDay))),
    ("gDay", Made::Primitive(Primitive::Moment(MomentKind::GDay))),
    ("gMonth", Made::Primitive(Primitive::Moment(MomentKind::GMonth))),
    ("hexBinary", Made::Primitive(Primitive::Hex)),
    ("base64Binary", Made::Primitive(Primitive::Base64)),
    ("anyURI", Made::Primitive(Primitive::Uri)),
    ("QName", Made::Primitive(Primitive::QName)),
    ("NOTATION", Made::Primitive(Primitive::Notation)),
    ("normalizedString", Made::Narrowed("string", Narrowing::Space(Space::Replace))),
    ("token", Made::Narrowed("normalizedString", Narrowing::Space(Space::Collapse))),
    ("language", Made::Narrowed("token", Narrowing::Lexis(Lexis::Language))),
    ("NMTOKEN", Made::Narrowed("token", Narrowing::Lexis(Lexis::Nmtoken))),
    ("NMTOKENS", Made::ListOf("NMTOKEN")),
    ("Name", Made::Narrowed("token", Narrowing::Lexis(Lexis::Name))),
    ("NCName", Made::Narrowed("Name", Narrowing::Lexis(Lexis::Ncname))),
    ("ID", Made::Narrowed("NCName", Narrowing::Identity(Identity::Id))),
    ("IDREF", Made::Narrowed("NCName", Narrowing::Identity(Identity::Idref))),
    ("IDREFS", Made::ListOf("IDREF")),
    ("ENTITY", Made::Narrowed("NCName", Narrowing::Lexis(Lexis::Entity))),
    ("ENTITIES", Made::ListOf("ENTITY")),
    ("integer", Made::Narrowed("decimal", Narrowing::Lexis(Lexis::Integer))),
    ("nonPositiveInteger", Made::Narrowed("integer", Narrowing::Bounds(&[("maxInclusive", "0")]))),
    ("negativeInteger", Made::Narrowed("nonPositiveInteger", Narrowing::Bounds(&[("maxInclusive", "-1")]))),
    ("long", Made::Narrowed("integer", Narrowing::Bounds(&[
        ("minInclusive", "-9223372036854775808"), ("maxInclusive", "9223372036854775807"),
    ]))),
    ("int", Made::Narrowed("long", Narrowing::Bounds(&[
        ("minInclusive", "-2147483648"), ("maxInclusive", "2147483647"),
    ]))),
    ("short", Made::Narrowed("int", Narrowing::Bounds(&[("minInclusive", "-32768"), ("maxInclusive", "32767")]))),
    ("byte", Made::Narrowed("short", Narrowing::Bounds(&[("minInclusive", "-128"), ("maxInclusive", "127")]))),
    ("nonNegativeInteger", Made::Narrowed("integer", Narrowing::Bounds(&[("minInclusive", "0")]))),
    ("unsignedLong", Made::Narrowed("nonNegativeInteger", Narrowing::Bounds(&[
        ("maxInclusive", "18446744073709551615"),
    ]))),
    ("unsignedInt", Made::Narrowed("unsignedLong", Narrowing::Bounds(&[("maxInclusive", "4294967295")]))),
    ("unsignedShort", Made::Narrowed("unsignedInt", Narrowing::Bounds(&[("maxInclusive", "65535")]))),
    ("unsignedByte", Made::Narrowed("unsignedShort", Narrowing::Bounds(&[("maxInclusive", "255")]))),
    ("positiveInteger", Made::Narrowed("nonNegativeInteger", Narrowing::Bounds(&[("minInclusive", "1")]))),
];
