//! Payloads for JSON that a JSON Schema describes: the XML Schema of them, and the way there and back.
//!
//! An object with known properties is an element with child elements, an array is an element that repeats, a scalar is a simple
//! type; so the JSON of the payload by the mapping of `docs/json.md` is the JSON of the tool: the declarations tell names that are
//! no names of elements, and arrays (`ns::JSON_FORM`). Numbers that a payload has as texts are changed by [`Shape::to_tool`]. A
//! value that has no form in XML Schema travels in the vocabulary of JSON: so does one whose JSON an element would not keep apart,
//! such as an array that may be null, and an object that may have properties of any name. Draft-07 and 2020-12 are read alike.
//! JSON is changed as text, so that numbers keep their digits.
//!
//! Elements are bounded in their number, their depth and their texts; a schema past that is a value in the vocabulary, as a whole
//! or where it is too deep.
//!
//! The XML Schema takes what the JSON Schema takes, and more where that has rules of its own (patterns, formats, conditions):
//! the server judges those.

use std::borrow::Cow;
use std::cell::Cell;
use std::collections::BTreeMap;

use serde_json::value::RawValue;
use serde_json::{Map, Value};
use systole_core::vocab::{is_ncname, ns};
use systole_xml::ladder::escape::{EscapeContext, carriable, escape_lossy};

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
/// Bytes of a JSON Schema that stands in the words about a value which it alone describes; a longer one is left out.
const SCHEMA: usize = 4096;
/// Keywords that narrow no value. Another one beside a reference or a choice makes the value any JSON: what stands side by side
/// holds together.
const WORDS: [&str; 15] = [
    "$anchor",
    "$comment",
    "$defs",
    "$id",
    "$schema",
    "default",
    "definitions",
    "deprecated",
    "description",
    "example",
    "examples",
    "format",
    "readOnly",
    "title",
    "writeOnly",
];
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

/// The JSON of a payload, from that of a tool.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Carried {
    pub(super) json: String,
    /// False if a property is left out that the schema allows and does not name.
    pub(super) is_whole: bool,
}

/// The payload of a JSON value: all of it, as the type of an element.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Form {
    shape: Shape,
    /// True if the value may be left out.
    is_optional: bool,
    /// Words about any JSON: its schema.
    about: String,
}

impl Form {
    /// The form of any JSON, whatever the schema.
    pub(super) const ANY: Self = Self { shape: Shape::Json, is_optional: false, about: String::new() };

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
            Shape::Object { fields, is_open: true } if fields.is_empty() => Self { is_optional: true, ..Self::ANY },
            shape @ Shape::Object { .. } => Self { shape, ..Self::ANY },
            Shape::Scalar(_) | Shape::Json => Self { about: resolved.map(written).unwrap_or_default(), ..Self::ANY },
        }
    }

    /// Appends the declaration of the payload.
    pub(super) fn declare(&self, out: &mut String, element: &str, about: &str) {
        let type_ = if matches!(self.shape, Shape::Object { .. }) || self.is_optional { "" } else { " type=\"json\"" };
        let names = match &self.shape {
            Shape::Object { fields, .. } if fields.iter().any(Field::tells_json) => {
                format!(" xmlns:json=\"{}\"", ns::JSON_FORM)
            }
            _ => String::new(),
        };
        out.push_str(&format!("  <xs:element name=\"{element}\"{type_}{names}>\n"));
        annotate(out, 4, format!("{about} {}", self.about).trim());
        match &self.shape {
            Shape::Object { fields, .. } => complex(out, 4, fields),
            _ if self.is_optional => {
                let whole = Field {
                    name: WHOLE.to_owned(),
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
    /// The reason why the value breaks the schema.
    pub(super) fn to_payload(&self, value: &str) -> Result<Carried, String> {
        let mut out = String::with_capacity(value.len());
        let mut is_whole = true;
        match &self.shape {
            Shape::Object { .. } => is_whole = self.shape.to_payload(value, "", &mut out)?,
            _ if self.is_optional => {
                push_member(&mut out, '{', WHOLE);
                out.push_str(value);
                out.push('}');
            }
            _ => out.push_str(value),
        }
        Ok(Carried { json: out, is_whole })
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
                    match values.get(field.key()) {
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

    /// Appends the JSON of the payload, without properties that the schema allows and does not name; returns whether there are
    /// none. Recurses as deep as the contract.
    fn to_payload(&self, value: &str, place: &str, out: &mut String) -> Result<bool, String> {
        let mut is_whole = true;
        match self {
            Self::Object { fields, is_open } => {
                let broken = |_| format!("{place}: found {}, expected an object", excerpt(value));
                let values = members(value).map_err(broken)?;
                let mut before = '{';
                for (name, value) in values {
                    match fields.iter().find(|field| field.name == name) {
                        Some(field) => {
                            push_member(out, std::mem::replace(&mut before, ','), field.key());
                            is_whole &= field.to_payload(value.get(), &format!("{place}/{name}"), out)?;
                        }
                        None if *is_open => is_whole = false,
                        None => return Err(format!("{place}/{name}: there is no such property")),
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
                    return Err(format!("{place}: found {}, expected {expected}", excerpt(value)));
                }
                out.push_str(value);
            }
        }
        Ok(is_whole)
    }
}

impl Field {
    /// The name in the JSON of the payload: that of the tool, unless XML can't carry it.
    fn key(&self) -> &str {
        match carriable(&self.name) {
            Cow::Borrowed(_) => &self.name,
            Cow::Owned(_) => &self.element,
        }
    }

    /// Returns whether its declaration, or one in it, tells the JSON.
    fn tells_json(&self) -> bool {
        let within = |shape: &Shape| match shape {
            Shape::Object { fields, .. } => fields.iter().any(Self::tells_json),
            Shape::Scalar(_) | Shape::Json => false,
        };
        self.many.is_some() || self.key() != self.element || within(&self.shape)
    }

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

    fn to_payload(&self, value: &str, place: &str, out: &mut String) -> Result<bool, String> {
        if self.many.is_none() {
            if value == "null" && self.is_nullable {
                out.push_str(value);
                return Ok(true);
            }
            return self.shape.to_payload(value, place, out);
        }
        let broken = |_| format!("{place}: found {}, expected an array", excerpt(value));
        let items: Vec<&RawValue> = serde_json::from_str(value).map_err(broken)?;
        let mut is_whole = true;
        out.push('[');
        for (at, item) in items.into_iter().enumerate() {
            out.push_str(if at > 0 { "," } else { "" });
            is_whole &= self.shape.to_payload(item.get(), &format!("{place}/{at}"), out)?;
        }
        out.push(']');
        Ok(is_whole)
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

    /// Follows references; `None` if they lead nowhere, to anything but an object, or are narrowed by what stands beside them.
    fn resolve(&self, mut schema: &'s Value) -> Option<&'s Value> {
        for _ in 0..REFERENCES {
            let Some(reference) = schema.get("$ref") else { return schema.is_object().then_some(schema) };
            if !is_alone(schema, "$ref") {
                return None;
            }
            schema = self.root.pointer(reference.as_str()?.strip_prefix('#')?)?;
        }
        None
    }

    fn object(&self, schema: &'s Value, depth: usize) -> Shape {
        const BEYOND: [&str; 6] = ["allOf", "anyOf", "oneOf", "not", "if", "patternProperties"];
        // The JSON of a payload has a meaning of its own for these, or no place.
        let is_taken = |name: &str| name.is_empty() || name == "$" || name == "$any" || name.starts_with('@');
        let none = Map::new();
        let properties = schema.get("properties").and_then(Value::as_object).unwrap_or(&none);
        let others = schema.get("additionalProperties");
        let is_any = |others: &Value| others == &Value::Bool(true) || others.as_object().is_some_and(Map::is_empty);
        // Without properties of its own it takes any object, or none.
        let is_dictionary =
            others.is_some_and(|others| *others != Value::Bool(false) && !(properties.is_empty() && is_any(others)));
        let has_rules = BEYOND.iter().any(|key| schema.get(key).is_some());
        let has_others = names_others(schema, properties, REFERENCES) || properties.keys().any(|name| is_taken(name));
        let is_large = depth > DEEPEST || properties.len() > PROPERTIES;
        if is_dictionary || is_large || has_others || (has_rules && properties.is_empty()) {
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
            // An element that repeats would not tell null, an empty array and none apart.
            ["array"] if !field.is_nullable => {
                let items = resolved.get("items").and_then(|items| self.resolve(items));
                let count = |key| resolved.get(key).and_then(Value::as_u64);
                // The server judges a second item where one is the most: the contract has repeated elements.
                field.many = Some((count("minItems").unwrap_or(0), count("maxItems").map(|most| most.max(2))));
                items.map_or(Shape::Json, |items| self.item(items, depth))
            }
            [only] => self.value(only, resolved, depth),
            _ => Shape::Json,
        };
        if field.shape == Shape::Json && field.many.is_none() {
            // The vocabulary has its own null.
            field.is_nullable = false;
            let words = written(resolved);
            if !words.is_empty() && self.takes(0, words.len()) {
                field.about = format!("{} {words}", field.about).trim().to_owned();
            }
        }
        field
    }

    /// The shape of an item of an array.
    fn item(&self, schema: &'s Value, depth: usize) -> Shape {
        match kinds(schema)[..] {
            [only] => self.value(only, schema, depth),
            _ => Shape::Json,
        }
    }

    /// The shape of a value of one kind, which is no array.
    fn value(&self, kind: &str, schema: &'s Value, depth: usize) -> Shape {
        match kind {
            "object" => match self.object(schema, depth) {
                Shape::Object { fields, .. } if fields.is_empty() => Shape::Json,
                shape => shape,
            },
            "string" | "integer" | "number" | "boolean" => {
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

/// Returns whether nothing beside a keyword narrows the value.
fn is_alone(schema: &Value, keyword: &str) -> bool {
    let is_word = |key: &str| key == keyword || WORDS.contains(&key) || key.starts_with("x-");
    schema.as_object().is_some_and(|schema| schema.keys().all(|key| is_word(key)))
}

/// Returns whether an object may have properties that only its rules name. Recurses as deep as rules nest, up to `depth`.
fn names_others(schema: &Value, known: &Map<String, Value>, depth: usize) -> bool {
    const LISTS: [&str; 3] = ["allOf", "anyOf", "oneOf"];
    const SINGLE: [&str; 3] = ["if", "then", "else"];
    let has_other = |schema: &Value| {
        let named = schema.get("properties").and_then(Value::as_object);
        schema.get("$ref").is_some()
            || named.is_some_and(|named| named.keys().any(|name| !known.contains_key(name)))
            || depth == 0
            || names_others(schema, known, depth - 1)
    };
    let lists = LISTS.into_iter().filter_map(|key| schema.get(key)?.as_array()).flatten();
    let dependent = schema.get("dependentSchemas").and_then(Value::as_object).into_iter().flat_map(Map::values);
    let single = SINGLE.into_iter().filter_map(|key| schema.get(key));
    let patterns = schema.get("patternProperties").and_then(Value::as_object);
    patterns.is_some_and(|patterns| !patterns.is_empty()) || lists.chain(dependent).chain(single).any(has_other)
}

/// The JSON Schema of an object that is any JSON in the contract, for a reader; nothing of other values, and of a long one.
fn written(schema: &Value) -> String {
    let text = schema.get("properties").map(|_| schema.to_string()).unwrap_or_default();
    match text.is_empty() || text.len() > SCHEMA {
        true => String::new(),
        false => format!("JSON Schema: {text}"),
    }
}

/// The schema besides `null` of a choice of the two.
fn nullable(schema: &Value) -> Option<&Value> {
    let keyword = ["anyOf", "oneOf"].into_iter().find(|key| schema.get(key).is_some())?;
    let choice = schema.get(keyword)?.as_array().filter(|_| is_alone(schema, keyword))?;
    let is_null =
        |schema: &&Value| schema.get("type").and_then(Value::as_str) == Some("null") && is_alone(schema, "type");
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
    // Null is a value only if it is among the constants, too.
    let has_null = || constants(schema).is_none_or(|constants| constants.iter().any(|value| value.is_null()));
    match schema.get("type") {
        Some(Value::String(kind)) => vec![kind],
        Some(Value::Array(kinds)) => {
            kinds.iter().filter_map(Value::as_str).filter(|kind| *kind != "null" || has_null()).collect()
        }
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

/// The values of `enum` or `const`; of both, those that are in both.
fn constants(schema: &Value) -> Option<Vec<&Value>> {
    match (schema.get("const"), schema.get("enum")) {
        (Some(only), Some(Value::Array(all))) => Some(all.iter().filter(|value| *value == only).collect()),
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
        let values: Vec<&Value> = constants.into_iter().filter(|value| !value.is_null()).collect();
        for value in &values {
            match (value, base) {
                (Value::String(text), "xs:string") => facet("enumeration", text),
                (Value::Number(number), "xs:integer") if number.is_i64() => facet("enumeration", &number.to_string()),
                (Value::Number(number), "xs:double") => facet("enumeration", &number.to_string()),
                (Value::Bool(_), "xs:boolean") => {}
                _ => return None,
            }
        }
        match values[..] {
            [] => return None,
            // A truth value has no enumeration in XML Schema 1.0.
            [Value::Bool(first), ..] if values.iter().all(|value| *value == values[0]) => {
                facet("pattern", if *first { "true|1" } else { "false|0" });
            }
            _ => {}
        }
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
        if self.is_nullable {
            out.push_str(" nillable=\"true\"");
        }
        if self.key() != self.element {
            out.push_str(" json:key=\"");
            escape_lossy(out, self.key(), EscapeContext::Attribute);
            out.push('"');
        }
        if let Some((least, _)) = self.many {
            let array = if self.is_required && least == 0 { "always" } else { "optional" };
            out.push_str(&format!(" json:array=\"{array}\""));
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
