//! Simple types: built-in types and their facets.

use serde_json::{Number, Value};

use super::variants::Variant;
use super::view::View;
use super::{Derivation, at};
use crate::ladder::encode::float_text;
use crate::ladder::escape::uncarriable;
use crate::schema::contract::{ContractError, TypePlace, TypeShape};
use crate::schema::model::{Bound, Enumerator, Facets, Simple, Type, TypeId, Variety};
use crate::schema::pattern::Pattern;
use crate::schema::simple::{Kind, SimpleType, XsdType};

impl<'a> Derivation<'a> {
    /// The type of a number, a text or a boolean.
    pub(super) fn simple(&mut self, view: &View<'a>, ty: &str, place: &TypePlace) -> Result<TypeId, ContractError> {
        let (base, patterns) = base(view, ty).map_err(at(place))?;
        let facets = facets(view, base, patterns).map_err(at(place))?;
        Ok(self.named(view, base, facets))
    }

    /// The type of an enum without data.
    pub(super) fn enumeration(
        &mut self,
        view: &View<'a>,
        variants: &[Variant<'a>],
        place: &TypePlace,
    ) -> Result<TypeId, ContractError> {
        if variants.iter().any(|variant| uncarriable(variant.name).is_some()) {
            return Err(at(place)(TypeShape::EnumValue));
        }
        let enumerator = |v: &Variant| Enumerator { value: v.name.to_owned(), namespace: None, doc: v.doc.to_owned() };
        let facets = Facets { values: variants.iter().map(enumerator).collect(), ..Facets::default() };
        Ok(self.named(view, XsdType::STRING, facets))
    }

    /// A type that is named like the Rust type, unless its place adds rules to it.
    fn named(&mut self, view: &View<'a>, base: &'static XsdType, facets: Facets) -> TypeId {
        let defined = view.definition.filter(|_| !view.has_own_rules());
        if let Some(id) = defined.and_then(|name| self.made.get(name)) {
            return *id;
        }
        let name = defined.map(|name| self.type_name(name));
        let doc = if name.is_some() { view.type_doc().to_owned() } else { String::new() };
        // Types with facets are compiled with the document.
        let definition = if facets.is_empty() { SimpleType::xsd_type(base.name) } else { None };
        let id = self.add(Type::Simple(Simple { name, doc, variety: Variety::Atomic(base), facets, definition }));
        if let Some(name) = defined {
            self.made.insert(name.to_owned(), id);
        }
        id
    }
}

/// The built-in type with the values of `type` and `format`, and the patterns that narrow it to them.
fn base(view: &View, ty: &str) -> Result<(&'static XsdType, Vec<Pattern>), TypeShape> {
    const BYTE: &str = "(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])";
    let format = view.get("format").and_then(Value::as_str);
    let (xsd_type, pattern) = match (ty, format) {
        ("boolean", _) => (XsdType::BOOLEAN, None),
        ("integer", Some("int8")) => (XsdType::BYTE, None),
        ("integer", Some("int16")) => (XsdType::SHORT, None),
        ("integer", Some("int32")) => (XsdType::INT, None),
        ("integer", Some("uint8")) => (XsdType::UNSIGNED_BYTE, None),
        ("integer", Some("uint16")) => (XsdType::UNSIGNED_SHORT, None),
        ("integer", Some("uint32")) => (XsdType::UNSIGNED_INT, None),
        ("integer", Some("uint64")) => (XsdType::UNSIGNED_LONG, None),
        ("integer", Some("int")) => (if isize::BITS == 64 { XsdType::LONG } else { XsdType::INT }, None),
        ("integer", Some("uint")) => {
            (if usize::BITS == 64 { XsdType::UNSIGNED_LONG } else { XsdType::UNSIGNED_INT }, None)
        }
        ("integer", Some("int128" | "uint128")) => return Err(TypeShape::WideInteger),
        ("integer", _) => (XsdType::LONG, None),
        ("number", Some("float")) => (XsdType::FLOAT, None),
        ("number", _) => (XsdType::DOUBLE, None),
        ("string", None) => (XsdType::STRING, None),
        // A pattern of the author says more than the name of a format.
        ("string", Some(_)) if view.get("pattern").is_some() => (XsdType::STRING, None),
        ("string", Some("uuid")) => {
            (XsdType::STRING, Some("^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$".to_owned()))
        }
        ("string", Some("ipv4")) => (XsdType::STRING, Some(format!("^({BYTE}\\.){{3}}{BYTE}$"))),
        ("string", Some("date")) => (XsdType::DATE, Some("^[0-9]{4}-[0-9]{2}-[0-9]{2}$".to_owned())),
        ("string", Some("date-time")) => {
            let zone = "(Z|[+-][0-9]{2}:[0-9]{2})";
            (
                XsdType::DATE_TIME,
                Some(format!("^[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}T[0-9:]{{8}}(\\.[0-9]{{1,9}})?{zone}$")),
            )
        }
        ("string", Some(format)) => return Err(TypeShape::Format(format.to_owned())),
        _ => return Err(TypeShape::Anything),
    };
    let patterns = pattern.iter().filter_map(|pattern| Pattern::from_rust(pattern).ok()).collect();
    Ok((xsd_type, patterns))
}

fn facets(view: &View, base: &XsdType, mut patterns: Vec<Pattern>) -> Result<Facets, TypeShape> {
    for pattern in view.all("pattern").filter_map(Value::as_str) {
        let refused = |reason| TypeShape::Pattern { pattern: pattern.to_owned(), reason };
        patterns.push(Pattern::from_rust(pattern).map_err(refused)?);
    }
    let lengths = |key| view.all(key).filter_map(Value::as_u64);
    Ok(Facets {
        min_length: lengths("minLength").max(),
        max_length: lengths("maxLength").min(),
        min: bound(view, base, "minimum", "exclusiveMinimum", |one, other| one > other)?,
        max: bound(view, base, "maximum", "exclusiveMaximum", |one, other| one < other)?,
        patterns,
        values: Vec::new(),
    })
}

/// The tightest bound on one side, unless the base type has it already.
fn bound(
    view: &View,
    base: &XsdType,
    inclusive: &str,
    exclusive: &str,
    tighter: impl Fn(f64, f64) -> bool,
) -> Result<Option<Bound>, TypeShape> {
    let found = |key, exclusive| view.all(key).filter_map(Value::as_number).map(move |number| (number, exclusive));
    let mut tightest: Option<(&Number, bool)> = None;
    for (number, exclusive) in found(inclusive, false).chain(found(exclusive, true)) {
        let value = |number: &Number| number.as_f64().unwrap_or(f64::NAN);
        let replaces = tightest.is_none_or(|(other, _)| {
            tighter(value(number), value(other)) || (exclusive && value(number) == value(other))
        });
        if replaces {
            tightest = Some((number, exclusive));
        }
    }
    let Some((number, exclusive)) = tightest else { return Ok(None) };
    let Kind::Integer(min, max) = base.kind() else {
        let value = float_text(number.as_f64().unwrap_or(f64::NAN));
        return Ok(Some(Bound { value, exclusive }));
    };
    let whole = number.as_i128().or_else(|| number.as_f64().filter(|n| n.fract() == 0.0).map(|n| n as i128));
    let whole = whole.ok_or_else(|| TypeShape::Rule(format!("{inclusive} {number}")))?;
    // A bound that the base type implies is not repeated.
    let implied = !exclusive && (min == Some(whole) || max == Some(whole));
    Ok((!implied).then(|| Bound { value: whole.to_string(), exclusive }))
}
