//! Payloads for JSON that a JSON Schema describes: the XML Schema of them, and the way there and back.
//!
//! An object with known properties is an element with child elements, an array is an element that repeats, a scalar is a simple
//! type; so the JSON of the payload by the mapping of `docs/json.md` is the JSON of the tool but for three things, which
//! [`Shape::to_tool`] and [`Shape::to_payload`] change: names that are no names of elements, numbers that a payload has as
//! texts, and arrays that are required and empty. A value that has no form in XML Schema travels in the vocabulary of JSON.
//! Draft-07 and 2020-12 are read alike. JSON is changed as text, so that numbers keep their digits.
//!
//! Elements are bounded in their number, their depth and their texts; a schema past that is a value in the vocabulary, as a whole
//! or where it is too deep.
//!
//! The XML Schema takes what the JSON Schema takes, and more where that has rules of its own (patterns, formats, conditions):
//! the server judges those.

use std::cell::Cell;
use std::collections::BTreeMap;

use serde_json::value::RawValue;
use serde_json::{Map, Value};
use systole_core::vocab::is_ncname;
use systole_xml::ladder::escape::{EscapeContext, escape_lossy};

/// Levels of objects that become elements; what is deeper is a value in the vocabulary.
const DEEPEST: usize = 12;
/// References that are followed for one value.
const REFERENCES: usize = 16;
/// Properties of one object; an object with more is a value in the vocabulary.
const PROPERTIES: usize = 512;
/// Elements and constants of one payload, and bytes of their descriptions and facets; a schema with more, as references make
/// of a short one, is a value in the vocabulary as a whole.
const ELEMENTS: usize = 4096;
const TEXT: usize = 512 << 10;
/// The property of a payload that carries all of the JSON, where that may be left out.
const WHOLE: &str = "json";

/// The form of a value in a payload.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Shape {
    /// Child elements.
    Object {
        fields: Vec<Field>,
        /// True if the JSON Schema allows properties that it doesn't name.
        is_open: bool,
    },
    /// A simple value.
    Scalar(Scalar),
    /// Any JSON value, in the vocabulary.
    Json,
}

/// A property of an object.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Field {
    /// The name in the JSON.
    name: String,
    /// The name of the element.
    element: String,
    about: String,
    is_required: bool,
    /// True if `null` stands for no value.
    is_nullable: bool,
    /// Bounds on the number of elements, of an array.
    many: Option<(u64, Option<u64>)>,
    shape: Shape,
}

/// A simple type.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Scalar {
    base: &'static str,
    /// Facets, as XML.
    facets: String,
}

/// A result that its payload can't carry.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Uncarried {
    /// A property that the schema allows and does not name.
    Unnamed,
    /// The reason why the value breaks the schema.
    Broken(String),
}

/// The payload of a JSON value: all of it, as the type of an element.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Form {
    shape: Shape,
    /// True if the value may be left out.
    is_optional: bool,
}

impl Form {
    /// The form of any JSON, whatever the schema.
    pub(super) const ANY: Self = Self { shape: Shape::Json, is_optional: false };

    /// The form of arguments or results that a JSON Schema describes.
    pub(super) fn of(schema: &Value) -> Self {
        let reader = Reader { root: schema, elements: Cell::new(ELEMENTS), text: Cell::new(TEXT) };
        let resolved = reader.resolve(schema);
        let shape = match resolved {
            Some(schema) if is_object(schema) => reader.object(schema, 0),
            _ => Shape::Json,
        };
        if reader.is_spent() {
            return Self::ANY;
        }
        match shape {
            // Without properties it takes any object, or none.
            Shape::Object { fields, is_open: true } if fields.is_empty() => {
                Self { shape: Shape::Json, is_optional: true }
            }
            Shape::Scalar(_) => Self { shape: Shape::Json, is_optional: false },
            shape => Self { shape, is_optional: false },
        }
    }

    /// Appends the declaration of the payload.
    pub(super) fn declare(&self, out: &mut String, element: &str, about: &str) {
        let type_ = if matches!(self.shape, Shape::Object { .. }) || self.is_optional { "" } else { " type=\"json\"" };
        out.push_str(&format!("  <xs:element name=\"{element}\"{type_}>\n"));
        annotate(out, 4, about);
        match &self.shape {
            Shape::Object { fields, .. } => complex(out, 4, fields),
            _ if self.is_optional => {
                let whole = Field {
                    name: String::new(),
                    element: WHOLE.to_owned(),
                    about: "An object with any properties.".to_owned(),
                    is_required: false,
                    is_nullable: false,
                    many: None,
                    shape: Shape::Json,
                };
                complex(out, 4, &[whole]);
            }
            _ => {}
        }
        out.push_str("  </xs:element>\n");
    }

    /// The JSON of the tool, from the JSON of the payload.
    ///
    /// # Errors
    /// The reason why it makes no arguments: they are an object.
    pub(super) fn to_tool(&self, payload: &str) -> Result<String, String> {
        let mut out = String::with_capacity(payload.len());
        match &self.shape {
            Shape::Object { .. } => self.shape.to_tool(payload, &mut out)?,
            _ if self.is_optional => match members(payload)?.get(WHOLE) {
                Some(value) => out.push_str(value.get()),
                None => out.push_str("{}"),
            },
            _ => out.push_str(payload),
        }
        match out.trim_start().starts_with('{') {
            true => Ok(out),
            false => Err(format!("the arguments of a tool are an object: write <map> in place of {}", excerpt(&out))),
        }
    }

    /// The JSON of the payload, from the JSON of the tool.
    ///
    /// # Errors
    /// [`Uncarried`] if the payload can't carry it.
    pub(super) fn to_payload(&self, value: &str) -> Result<String, Uncarried> {
        let mut out = String::with_capacity(value.len());
        match &self.shape {
            Shape::Object { .. } => self.shape.to_payload(value, "", &mut out)?,
            _ if self.is_optional => {
                push_member(&mut out, '{', WHOLE);
                out.push_str(value);
                out.push('}');
            }
            _ => out.push_str(value),
        }
        Ok(out)
    }
}

impl Shape {
    /// Appends the JSON of the tool. Recurses as deep as the contract.
    fn to_tool(&self, value: &str, out: &mut String) -> Result<(), String> {
        match self {
            Self::Object { fields, .. } => {
                let values = members(value)?;
                let mut before = '{';
                for field in fields {
                    match values.get(&field.element) {
                        Some(value) => {
                            push_member(out, std::mem::replace(&mut before, ','), &field.name);
                            field.to_tool(value.get(), out)?;
                        }
                        None if field.is_required && field.many.is_some() => {
                            push_member(out, std::mem::replace(&mut before, ','), &field.name);
                            out.push_str("[]");
                        }
                        None => {}
                    }
                }
                out.push_str(if before == '{' { "{}" } else { "}" });
            }
            // Whole numbers past 2^53 are texts in the JSON of a payload.
            Self::Scalar(Scalar { base: "xs:integer" | "xs:double", .. }) if value.starts_with('"') => {
                let text: String = serde_json::from_str(value).map_err(|error| error.to_string())?;
                let is_number = serde_json::from_str::<serde_json::Number>(&text).is_ok();
                out.push_str(if is_number { &text } else { value });
            }
            Self::Scalar(_) | Self::Json => out.push_str(value),
        }
        Ok(())
    }

    /// Appends the JSON of the payload. Recurses as deep as the contract.
    fn to_payload(&self, value: &str, place: &str, out: &mut String) -> Result<(), Uncarried> {
        match self {
            Self::Object { fields, is_open } => {
                let broken = |_| Uncarried::Broken(format!("{place}: found {}, expected an object", excerpt(value)));
                let values = members(value).map_err(broken)?;
                let mut before = '{';
                for (name, value) in values {
                    let Some(field) = fields.iter().find(|field| field.name == name) else {
                        let broken = || Uncarried::Broken(format!("{place}/{name}: there is no such property"));
                        return Err(if *is_open { Uncarried::Unnamed } else { broken() });
                    };
                    let is_left_out = value.get() == "null" && field.many.is_some() && field.is_nullable;
                    if !is_left_out {
                        push_member(out, std::mem::replace(&mut before, ','), &field.element);
                        field.to_payload(value.get(), &format!("{place}/{name}"), out)?;
                    }
                }
                out.push_str(if before == '{' { "{}" } else { "}" });
            }
            Self::Json => out.push_str(value),
            Self::Scalar(Scalar { base, .. }) => {
                let (fits, expected) = match (*base, value.as_bytes().first()) {
                    ("xs:integer", Some(b'-' | b'0'..=b'9')) => (true, "a whole number"),
                    ("xs:double", Some(b'-' | b'0'..=b'9')) => (true, "a number"),
                    ("xs:string", Some(b'"')) => (true, "a text"),
                    ("xs:boolean", Some(b't' | b'f')) => (true, "true or false"),
                    ("xs:integer", _) => (false, "a whole number"),
                    ("xs:double", _) => (false, "a number"),
                    ("xs:boolean", _) => (false, "true or false"),
                    _ => (false, "a text"),
                };
                if !fits {
                    return Err(Uncarried::Broken(format!("{place}: found {}, expected {expected}", excerpt(value))));
                }
                out.push_str(value);
            }
        }
        Ok(())
    }
}

impl Field {
    fn to_tool(&self, value: &str, out: &mut String) -> Result<(), String> {
        if self.many.is_none() || !value.starts_with('[') {
            return if value == "null" && self.shape != Shape::Json {
                out.push_str(value);
                Ok(())
            } else {
                self.shape.to_tool(value, out)
            };
        }
        let items: Vec<&RawValue> = serde_json::from_str(value).map_err(|error| error.to_string())?;
        out.push('[');
        for (at, item) in items.into_iter().enumerate() {
            out.push_str(if at > 0 { "," } else { "" });
            self.shape.to_tool(item.get(), out)?;
        }
        out.push(']');
        Ok(())
    }

    fn to_payload(&self, value: &str, place: &str, out: &mut String) -> Result<(), Uncarried> {
        if self.many.is_none() {
            if value == "null" && self.is_nullable {
                out.push_str(value);
                return Ok(());
            }
            return self.shape.to_payload(value, place, out);
        }
        let broken = |_| Uncarried::Broken(format!("{place}: found {}, expected an array", excerpt(value)));
        let items: Vec<&RawValue> = serde_json::from_str(value).map_err(broken)?;
        out.push('[');
        for (at, item) in items.into_iter().enumerate() {
            out.push_str(if at > 0 { "," } else { "" });
            self.shape.to_payload(item.get(), place, out)?;
        }
        out.push(']');
        Ok(())
    }
}

/// The members of an object, as they are written.
fn members(value: &str) -> Result<BTreeMap<String, &RawValue>, String> {
    serde_json::from_str(value).map_err(|error| error.to_string())
}

/// Appends the key of a member, and what stands before it.
fn push_member(out: &mut String, before: char, name: &str) {
    out.push(before);
    out.push_str(&Value::from(name).to_string());
    out.push(':');
}

/// The beginning of a value, for a person.
fn excerpt(value: &str) -> String {
    const SHOWN: usize = 100;
    match value.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &value[..end]),
        None => value.to_owned(),
    }
}

/// A reader of a JSON Schema.
struct Reader<'s> {
    root: &'s Value,
    /// Elements and bytes that are left; none once there are too many.
    elements: Cell<usize>,
    text: Cell<usize>,
}

impl<'s> Reader<'s> {
    /// Takes elements and texts of them; false if there are too many.
    fn takes(&self, elements: usize, text: usize) -> bool {
        let left = |all: &Cell<usize>, some: usize| all.set(all.get().saturating_sub(some));
        left(&self.elements, elements);
        left(&self.text, text);
        !self.is_spent()
    }

    fn is_spent(&self) -> bool {
        self.elements.get() == 0 || self.text.get() == 0
    }

    /// Follows references; `None` if they lead nowhere, or to anything but an object.
    fn resolve(&self, mut schema: &'s Value) -> Option<&'s Value> {
        for _ in 0..REFERENCES {
            let Some(reference) = schema.get("$ref") else { return schema.is_object().then_some(schema) };
            schema = self.root.pointer(reference.as_str()?.strip_prefix('#')?)?;
        }
        None
    }

    fn object(&self, schema: &'s Value, depth: usize) -> Shape {
        const BEYOND: [&str; 6] = ["allOf", "anyOf", "oneOf", "not", "if", "patternProperties"];
        let none = Map::new();
        let properties = schema.get("properties").and_then(Value::as_object).unwrap_or(&none);
        let others = schema.get("additionalProperties");
        let is_dictionary = others.is_some_and(|others| others.as_object().is_some_and(|others| !others.is_empty()));
        let has_rules = BEYOND.iter().any(|key| schema.get(key).is_some());
        if is_dictionary || depth > DEEPEST || properties.len() > PROPERTIES || (has_rules && properties.is_empty()) {
            return Shape::Json;
        }
        let required = schema.get("required").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        // A property that is required and not described can have any value.
        let is_described = |name: &Value| name.as_str().is_some_and(|name| properties.contains_key(name));
        let is_sound = required.len() <= properties.len() && required.iter().all(is_described);
        if !is_sound || !self.takes(properties.len(), 0) {
            return Shape::Json;
        }
        let fields = properties.iter().map(|(name, schema)| {
            let is_required = required.iter().any(|required| required.as_str() == Some(name));
            self.field(name, schema, is_required, depth + 1)
        });
        let fields = fields.collect();
        Shape::Object { fields, is_open: others != Some(&Value::Bool(false)) }
    }

    fn field(&self, name: &str, schema: &'s Value, is_required: bool, depth: usize) -> Field {
        let mut field = Field {
            name: name.to_owned(),
            element: element_of(name),
            about: about(schema),
            is_required,
            is_nullable: false,
            many: None,
            shape: Shape::Json,
        };
        if !self.takes(0, field.name.len() + field.element.len() + field.about.len()) {
            return field;
        }
        let Some(mut resolved) = self.resolve(schema) else { return field };
        if let Some(one) = nullable(resolved) {
            let Some(one) = self.resolve(one) else { return field };
            (resolved, field.is_nullable) = (one, true);
        }
        if field.about.is_empty() {
            field.about = about(resolved);
            self.takes(0, field.about.len());
        }
        let kinds = kinds(resolved);
        field.is_nullable |= kinds.contains(&"null");
        let kinds: Vec<_> = kinds.into_iter().filter(|kind| *kind != "null").collect();
        field.shape = match kinds[..] {
            ["array"] => {
                let items = resolved.get("items").and_then(|items| self.resolve(items));
                let item = items.map_or(Shape::Json, |items| self.value(items, depth));
                let count = |key| resolved.get(key).and_then(Value::as_u64);
                // An element that occurs once has a bare value as JSON; the server judges a second item.
                field.many = Some((count("minItems").unwrap_or(0), count("maxItems").map(|most| most.max(2))));
                item
            }
            _ => self.value(resolved, depth),
        };
        // The vocabulary has its own null.
        field.is_nullable &= field.shape != Shape::Json || field.many.is_some();
        field
    }

    /// The shape of a value that is no array.
    fn value(&self, schema: &'s Value, depth: usize) -> Shape {
        let kinds: Vec<_> = kinds(schema).into_iter().filter(|kind| *kind != "null").collect();
        match kinds[..] {
            ["object"] => match self.object(schema, depth) {
                Shape::Object { fields, .. } if fields.is_empty() => Shape::Json,
                shape => shape,
            },
            [kind @ ("string" | "integer" | "number" | "boolean")] => {
                let constants = schema.get("enum").and_then(Value::as_array).map_or(0, Vec::len);
                if !self.takes(constants, 0) {
                    return Shape::Json;
                }
                let Some(scalar) = scalar(kind, schema) else { return Shape::Json };
                self.takes(0, scalar.facets.len());
                Shape::Scalar(scalar)
            }
            _ => Shape::Json,
        }
    }
}

/// The schema besides `null` of a choice of the two.
fn nullable(schema: &Value) -> Option<&Value> {
    let choice = schema.get("anyOf").or_else(|| schema.get("oneOf"))?.as_array()?;
    let is_null = |schema: &&Value| schema.get("type").and_then(Value::as_str) == Some("null");
    let mut others = choice.iter().filter(|schema| !is_null(schema));
    let one = others.next()?;
    (choice.len() == 2 && others.next().is_none()).then_some(one)
}

/// The kinds that a schema allows; of a choice of constants, theirs.
fn kinds(schema: &Value) -> Vec<&str> {
    const BEYOND: [&str; 4] = ["anyOf", "oneOf", "allOf", "not"];
    if BEYOND.iter().any(|key| schema.get(key).is_some()) {
        return Vec::new();
    }
    match schema.get("type") {
        Some(Value::String(kind)) => vec![kind],
        Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).collect(),
        _ if is_object(schema) => vec!["object"],
        _ => {
            let constants = constants(schema).unwrap_or_default();
            let all_texts = !constants.is_empty() && constants.iter().all(|value| value.is_string());
            if all_texts { vec!["string"] } else { Vec::new() }
        }
    }
}

/// Checks for a schema of objects: servers leave `type` out.
fn is_object(schema: &Value) -> bool {
    match schema.get("type") {
        Some(kind) => kind.as_str() == Some("object"),
        None => schema.get("properties").is_some(),
    }
}

/// The values of `enum` or `const`.
fn constants(schema: &Value) -> Option<Vec<&Value>> {
    match (schema.get("const"), schema.get("enum")) {
        (Some(only), _) => Some(vec![only]),
        (None, Some(Value::Array(all))) => Some(all.iter().collect()),
        _ => None,
    }
}

fn scalar(kind: &str, schema: &Value) -> Option<Scalar> {
    let base = match kind {
        "string" => "xs:string",
        "integer" => "xs:integer",
        "number" => "xs:double",
        _ => "xs:boolean",
    };
    let mut facets = String::new();
    let mut facet = |name: &str, value: &str| {
        facets.push_str(&format!("<xs:{name} value=\""));
        escape_lossy(&mut facets, value, EscapeContext::Attribute);
        facets.push_str("\"/>");
    };
    if let Some(constants) = constants(schema) {
        for value in constants.into_iter().filter(|value| !value.is_null()) {
            match (value, base) {
                (Value::String(text), "xs:string") => facet("enumeration", text),
                (Value::Number(number), "xs:integer") if number.is_i64() => facet("enumeration", &number.to_string()),
                (Value::Number(number), "xs:double") => facet("enumeration", &number.to_string()),
                (Value::Bool(_), "xs:boolean") => {}
                _ => return None,
            }
        }
        return Some(Scalar { base, facets });
    }
    match base {
        "xs:string" => {
            for (key, name) in [("minLength", "minLength"), ("maxLength", "maxLength")] {
                if let Some(length) = schema.get(key).and_then(Value::as_u64) {
                    facet(name, &length.to_string());
                }
            }
        }
        "xs:integer" | "xs:double" => {
            for (key, exclusive, name) in
                [("minimum", "exclusiveMinimum", "minInclusive"), ("maximum", "exclusiveMaximum", "maxInclusive")]
            {
                // Draft-04 has truth values there, and zod the largest whole numbers.
                let bound = |key| schema.get(key).filter(|bound| bound.is_number());
                let fits = |bound: &&Value| base == "xs:double" || bound.is_i64();
                if let Some(bound) = bound(exclusive).filter(fits) {
                    facet(&name.replace("In", "Ex"), &bound.to_string());
                } else if let Some(bound) = bound(key).filter(fits) {
                    facet(name, &bound.to_string());
                }
            }
        }
        _ => {}
    }
    Some(Scalar { base, facets })
}

/// Words about a value: its description or title, its default, and rules that only the server judges.
fn about(schema: &Value) -> String {
    let text = |key| schema.get(key).and_then(Value::as_str).map(str::trim).filter(|text| !text.is_empty());
    let mut about = text("description").or_else(|| text("title")).unwrap_or_default().to_owned();
    let mut also = |words: String| {
        if !about.is_empty() {
            about.push_str(if about.ends_with(['.', '!', '?', ':']) { " " } else { ". " });
        }
        about.push_str(&words);
    };
    if let Some(default) = schema.get("default") {
        also(format!("Default: {default}."));
    }
    if let Some(pattern) = text("pattern") {
        also(format!("Pattern: {pattern}"));
    }
    if let Some(format) = text("format") {
        also(format!("Format: {format}."));
    }
    about
}

/// Characters of an element that stay; a longer name is cut, and a hash of the whole is behind it.
const LONGEST: usize = 200;

/// The element of a property: characters that a name can't have are `_xHHHH_`, as in SQL/XML (ISO/IEC 9075-14).
pub(super) fn element_of(name: &str) -> String {
    let mut element = String::with_capacity(name.len());
    for (at, c) in name.char_indices() {
        let is_escape = c == '_' && name[at + 1..].starts_with('x');
        let fits = if element.is_empty() { is_ncname(&c.to_string()) } else { is_ncname(&format!("a{c}")) };
        if fits && !is_escape {
            element.push(c);
        } else {
            element.push_str(&format!("_x{:04X}_", u32::from(c)));
        }
    }
    if element.len() > LONGEST {
        let hash = blake3::hash(name.as_bytes()).to_hex();
        let end = (0..=LONGEST).rev().find(|&end| element.is_char_boundary(end)).unwrap_or_default();
        element.truncate(end);
        element.push_str(&format!("-{}", &hash[..16]));
    }
    if element.is_empty() { "_x_".to_owned() } else { element }
}

fn complex(out: &mut String, indent: usize, fields: &[Field]) {
    let pad = " ".repeat(indent);
    if fields.is_empty() {
        out.push_str(&format!("{pad}<xs:complexType/>\n"));
        return;
    }
    // In any order, where the standard has it: each child at most once.
    let group = if fields.iter().any(|field| field.many.is_some()) { "sequence" } else { "all" };
    out.push_str(&format!("{pad}<xs:complexType>\n{pad}  <xs:{group}>\n"));
    fields.iter().for_each(|field| field.declare(out, indent + 4));
    out.push_str(&format!("{pad}  </xs:{group}>\n{pad}</xs:complexType>\n"));
}

impl Field {
    fn declare(&self, out: &mut String, indent: usize) {
        let pad = " ".repeat(indent);
        out.push_str(&format!("{pad}<xs:element name=\"{}\"", self.element));
        let occurs = match self.many {
            Some((least, most)) => (if self.is_required { least } else { 0 }, most),
            None => (u64::from(self.is_required), Some(1)),
        };
        if occurs.0 != 1 {
            out.push_str(&format!(" minOccurs=\"{}\"", occurs.0));
        }
        match occurs.1 {
            Some(1) => {}
            Some(most) => out.push_str(&format!(" maxOccurs=\"{most}\"")),
            None => out.push_str(" maxOccurs=\"unbounded\""),
        }
        if self.is_nullable && self.many.is_none() {
            out.push_str(" nillable=\"true\"");
        }
        let simple = match &self.shape {
            Shape::Scalar(Scalar { base, facets }) if facets.is_empty() => Some(*base),
            Shape::Json => Some("json"),
            _ => None,
        };
        if let Some(simple) = simple {
            out.push_str(&format!(" type=\"{simple}\""));
            if self.about.is_empty() {
                out.push_str("/>\n");
                return;
            }
        }
        out.push_str(">\n");
        annotate(out, indent + 2, &self.about);
        match &self.shape {
            Shape::Object { fields, .. } => complex(out, indent + 2, fields),
            Shape::Scalar(Scalar { base, facets }) if !facets.is_empty() => {
                out.push_str(&format!(
                    "{pad}  <xs:simpleType><xs:restriction base=\"{base}\">{facets}</xs:restriction></xs:simpleType>\n"
                ));
            }
            Shape::Scalar(_) | Shape::Json => {}
        }
        out.push_str(&format!("{pad}</xs:element>\n"));
    }
}

/// Appends the documentation of a declaration, if there is any.
pub(super) fn annotate(out: &mut String, indent: usize, about: &str) {
    let about = about.trim();
    if !about.is_empty() {
        let pad = " ".repeat(indent);
        out.push_str(&format!("{pad}<xs:annotation><xs:documentation>"));
        escape_lossy(out, about, EscapeContext::Text);
        out.push_str("</xs:documentation></xs:annotation>\n");
    }
}
