//! Payloads for JSON that a JSON Schema describes: the XML Schema of them, and the way there and back.
//!
//! An object with known properties is an element with child elements, an array is an element that repeats, a scalar is a simple
//! type; so the JSON of the payload by the mapping of `docs/json.md` is the JSON of the tool but for three things, which
//! [`Shape::to_tool`] and [`Shape::to_payload`] change: names that are no names of elements, values that no XML Schema
//! describes, which travel as a text of JSON, and arrays that are required and empty. Draft-07 and 2020-12 are read alike.
//!
//! Elements are bounded in their number, their depth and their texts; a schema past that is a text of JSON, as a whole or where
//! it is too deep.
//!
//! The XML Schema takes what the JSON Schema takes, and more where that has rules of its own (patterns, formats, conditions):
//! the server judges those.

use std::cell::Cell;

use serde_json::{Map, Value};
use systole_core::vocab::is_ncname;
use systole_xml::ladder::escape::{EscapeContext, escape_lossy};

/// Levels of objects that become elements; what is deeper is a text of JSON.
const DEEPEST: usize = 12;
/// References that are followed for one value.
const REFERENCES: usize = 16;
/// Properties of one object; an object with more is a text of JSON.
const PROPERTIES: usize = 512;
/// Elements and constants of one payload, and bytes of their descriptions and facets; a schema with more, as references make
/// of a short one, is a text of JSON as a whole.
const ELEMENTS: usize = 4096;
const TEXT: usize = 512 << 10;
/// The property of a payload that carries all of the JSON.
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
    /// A text of JSON.
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
    /// The form of a text of JSON, whatever the schema.
    pub(super) const TEXT: Self = Self { shape: Shape::Json, is_optional: false };

    /// The form of arguments or results that a JSON Schema describes.
    pub(super) fn of(schema: &Value) -> Self {
        let reader = Reader { root: schema, elements: Cell::new(ELEMENTS), text: Cell::new(TEXT) };
        let resolved = reader.resolve(schema);
        let shape = match resolved {
            Some(schema) if is_object(schema) => reader.object(schema, 0),
            _ => Shape::Json,
        };
        if reader.is_spent() {
            return Self::TEXT;
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
        out.push_str(&format!("  <xs:element name=\"{element}\">\n"));
        annotate(out, 4, about);
        match &self.shape {
            Shape::Object { fields, .. } => complex(out, 4, fields),
            _ => {
                let about = "JSON, as a text, such as {\"name\": [1, true, null]}.".to_owned();
                let whole = Field {
                    name: String::new(),
                    element: WHOLE.to_owned(),
                    about,
                    is_required: !self.is_optional,
                    is_nullable: false,
                    many: None,
                    shape: Shape::Json,
                };
                complex(out, 4, &[whole]);
            }
        }
        out.push_str("  </xs:element>\n");
    }

    /// The JSON of the tool, from the JSON of the payload.
    ///
    /// # Errors
    /// The place and the mistake of a text that is no JSON.
    pub(super) fn to_tool(&self, payload: Value) -> Result<Value, String> {
        match &self.shape {
            Shape::Object { .. } => self.shape.to_tool(payload, ""),
            _ => match payload.get(WHOLE) {
                Some(Value::String(text)) => parsed(text, WHOLE),
                _ => Ok(Value::Object(Map::new())),
            },
        }
    }

    /// The JSON of the payload, from the JSON of the tool.
    ///
    /// # Errors
    /// [`Uncarried`] if the payload can't carry it.
    pub(super) fn to_payload(&self, value: Value) -> Result<Value, Uncarried> {
        match &self.shape {
            Shape::Object { .. } => self.shape.to_payload(value, ""),
            _ => Ok(Value::Object([(WHOLE.to_owned(), Value::String(value.to_string()))].into_iter().collect())),
        }
    }
}

impl Shape {
    fn to_tool(&self, value: Value, place: &str) -> Result<Value, String> {
        match (self, value) {
            (Self::Object { fields, .. }, Value::Object(mut values)) => {
                let mut object = Map::new();
                for field in fields {
                    let place = format!("{place}/{}", field.element);
                    match values.remove(&field.element) {
                        Some(value) => {
                            object.insert(field.name.clone(), field.to_tool(value, &place)?);
                        }
                        None if field.is_required && field.many.is_some() => {
                            object.insert(field.name.clone(), Value::Array(Vec::new()));
                        }
                        None => {}
                    }
                }
                Ok(Value::Object(object))
            }
            (Self::Json, Value::String(text)) => parsed(&text, place),
            // Whole numbers past 2^53 are texts in the JSON of a payload.
            (Self::Scalar(Scalar { base: base @ ("xs:integer" | "xs:double"), .. }), Value::String(text)) => {
                match serde_json::from_str(&text) {
                    Ok(Value::Number(number)) if *base == "xs:integer" && number.is_f64() => {
                        let (least, most) = (i64::MIN, u64::MAX);
                        Err(format!("{place}: a call can't carry {text}: write a whole number from {least} to {most}"))
                    }
                    Ok(Value::Number(number)) => Ok(Value::Number(number)),
                    _ => Ok(Value::String(text)),
                }
            }
            (_, value) => Ok(value),
        }
    }

    fn to_payload(&self, value: Value, place: &str) -> Result<Value, Uncarried> {
        match (self, value) {
            (Self::Object { fields, is_open }, Value::Object(values)) => {
                let mut object = Map::new();
                for (name, value) in values {
                    let Some(field) = fields.iter().find(|field| field.name == name) else {
                        let broken = || Uncarried::Broken(format!("{place}/{name}: there is no such property"));
                        return Err(if *is_open { Uncarried::Unnamed } else { broken() });
                    };
                    let place = format!("{place}/{name}");
                    match value {
                        Value::Null if field.many.is_some() && field.is_nullable => {}
                        value => {
                            object.insert(field.element.clone(), field.to_payload(value, &place)?);
                        }
                    }
                }
                Ok(Value::Object(object))
            }
            (Self::Object { .. }, value) => {
                Err(Uncarried::Broken(format!("{place}: found {value}, expected an object")))
            }
            (Self::Json, value) => Ok(Value::String(value.to_string())),
            (Self::Scalar(Scalar { base: "xs:integer", .. }), Value::Number(number)) if number.is_f64() => {
                // 3.0 is a whole number to JSON Schema; of a larger one digits are lost already.
                match number.as_f64().filter(|number| number.fract() == 0.0) {
                    Some(whole) if whole.abs() < 1e15 => Ok(Value::from(whole as i64)),
                    Some(_) => Err(Uncarried::Broken(format!(
                        "{place}: {number} has more digits than a number of a result carries: the server should write it as a text"
                    ))),
                    None => Ok(Value::Number(number)),
                }
            }
            (Self::Scalar(Scalar { base, .. }), value) => match (*base, &value) {
                ("xs:string", Value::String(_))
                | ("xs:integer" | "xs:double", Value::Number(_))
                | ("xs:boolean", Value::Bool(_)) => Ok(value),
                (base, value) => {
                    let expected = match base {
                        "xs:integer" => "a whole number",
                        "xs:double" => "a number",
                        "xs:boolean" => "true or false",
                        _ => "a text",
                    };
                    Err(Uncarried::Broken(format!("{place}: found {value}, expected {expected}")))
                }
            },
        }
    }
}

impl Field {
    fn to_tool(&self, value: Value, place: &str) -> Result<Value, String> {
        match value {
            Value::Array(items) if self.many.is_some() => items
                .into_iter()
                .map(|item| self.shape.to_tool(item, place))
                .collect::<Result<_, _>>()
                .map(Value::Array),
            Value::Null => Ok(Value::Null),
            value => self.shape.to_tool(value, place),
        }
    }

    fn to_payload(&self, value: Value, place: &str) -> Result<Value, Uncarried> {
        match value {
            Value::Array(items) if self.many.is_some() => {
                let items = items.into_iter().map(|item| self.shape.to_payload(item, place));
                items.collect::<Result<_, _>>().map(Value::Array)
            }
            value if self.many.is_some() => {
                Err(Uncarried::Broken(format!("{place}: found {value}, expected an array")))
            }
            Value::Null if self.is_nullable => Ok(Value::Null),
            value => self.shape.to_payload(value, place),
        }
    }
}

/// The value of a text of JSON.
fn parsed(text: &str, place: &str) -> Result<Value, String> {
    serde_json::from_str(text).map_err(|error| {
        format!("{place}: the text is no JSON: {error}; write JSON, such as {{\"name\": 1}}, or \"…\" with quotes for a text")
    })
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
        // A text of JSON has its own null.
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

fn annotate(out: &mut String, indent: usize, about: &str) {
    let about = about.trim();
    if !about.is_empty() {
        let pad = " ".repeat(indent);
        out.push_str(&format!("{pad}<xs:annotation><xs:documentation>"));
        escape_lossy(out, about, EscapeContext::Text);
        out.push_str("</xs:documentation></xs:annotation>\n");
    }
}
