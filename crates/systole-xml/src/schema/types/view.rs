//! JSON Schemas, seen through their references.

use serde_json::{Map, Value};

use super::variants::{self, Variant};
use crate::schema::contract::TypeShape;

/// A JSON Schema with its references resolved: the schema of a field, then that of its type, and so on.
pub(super) struct View<'a> {
    /// The schemas, outermost first.
    layers: Vec<&'a Map<String, Value>>,
    /// True if `null` is a value, which is `None` in Rust.
    pub(super) nullable: bool,
    /// The name of the type, if it has one.
    pub(super) definition: Option<&'a str>,
    /// Number of layers before the definition.
    outer: usize,
}

/// The kind of value that a schema describes.
pub(super) enum Kind<'a> {
    /// `string`, `boolean`, `integer` or `number`.
    Simple(&'a str),
    Enum(Vec<Variant<'a>>),
    Unit,
    Struct,
    List,
}

/// Keywords that are either handled or no rules. Any other keyword would be a rule that is never checked.
const KEYWORDS: [&str; 32] = [
    "$ref",
    "$schema",
    "$defs",
    "$comment",
    "title",
    "description",
    "default",
    "deprecated",
    "readOnly",
    "writeOnly",
    "examples",
    "type",
    "format",
    "enum",
    "const",
    "oneOf",
    "anyOf",
    "allOf",
    "properties",
    "required",
    "additionalProperties",
    "items",
    "prefixItems",
    "minItems",
    "maxItems",
    "uniqueItems",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "pattern",
    "contentEncoding",
];
const LENGTHS: [&str; 2] = ["minLength", "maxLength"];

impl<'a> View<'a> {
    pub(super) fn of(schema: &'a Value, definitions: &'a Map<String, Value>) -> Result<Self, TypeShape> {
        // A type that is only a reference to itself never ends.
        const LONGEST: usize = 64;
        let mut view = Self { layers: Vec::new(), nullable: false, definition: None, outer: 0 };
        let mut next = Some(schema);
        while let Some(schema) = next {
            let layer = schema.as_object().ok_or(TypeShape::Anything)?;
            let known = |key: &&String| KEYWORDS.contains(&key.as_str()) || LENGTHS.contains(&key.as_str());
            // Keywords that begin with x- are notes by convention.
            if let Some(rule) = layer.keys().find(|key| !known(key) && !key.starts_with("x-")) {
                return Err(if rule == "unevaluatedProperties" {
                    TypeShape::Flatten
                } else {
                    TypeShape::Rule(rule.clone())
                });
            }
            view.layers.push(layer);
            view.nullable |= allows_null(layer);
            next = view.inner(layer, definitions)?;
            if view.layers.len() > LONGEST {
                return Err(TypeShape::Endless);
            }
        }
        Ok(view)
    }

    /// The schema that a layer refers to.
    fn inner(
        &mut self,
        layer: &'a Map<String, Value>,
        definitions: &'a Map<String, Value>,
    ) -> Result<Option<&'a Value>, TypeShape> {
        if let Some(Value::String(reference)) = layer.get("$ref") {
            let (name, schema) = definition(reference, definitions).ok_or(TypeShape::Anything)?;
            self.definition = Some(name);
            self.outer = self.layers.len();
            return Ok(Some(schema));
        }
        if let Some([first, second]) = layer.get("anyOf").and_then(Value::as_array).map(Vec::as_slice) {
            let null = |schema: &Value| schema.get("type").is_some_and(|ty| ty == "null");
            if null(first) || null(second) {
                self.nullable = true;
                return Ok(Some(if null(first) { second } else { first }));
            }
        }
        match layer.get("allOf").and_then(Value::as_array).map(Vec::as_slice) {
            Some([one]) => Ok(Some(one)),
            Some(_) => Err(TypeShape::Flatten),
            None => Ok(None),
        }
    }

    /// The value of a keyword in the outermost layer that has it.
    pub(super) fn get(&self, key: &str) -> Option<&'a Value> {
        self.layers.iter().find_map(|layer| layer.get(key))
    }

    /// The values of a keyword in all layers.
    pub(super) fn all(&self, key: &str) -> impl Iterator<Item = &'a Value> {
        self.layers.iter().filter_map(move |layer| layer.get(key))
    }

    /// The docs of the place, without those of its type.
    pub(super) fn own_doc(&self) -> &'a str {
        let own = if self.definition.is_some() { &self.layers[..self.outer] } else { &self.layers[..] };
        doc(own)
    }

    /// The docs of the type; those of the place if it has none.
    pub(super) fn type_doc(&self) -> &'a str {
        doc(&self.layers[self.outer..])
    }

    /// The author's examples.
    pub(super) fn hints(&self) -> Vec<Value> {
        self.get("examples").and_then(Value::as_array).cloned().unwrap_or_default()
    }

    /// Returns whether the place has a rule beyond those of its type.
    pub(super) fn has_own_rules(&self) -> bool {
        const RULES: [&str; 7] =
            ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "pattern", "minLength", "maxLength"];
        self.layers[..self.outer].iter().any(|layer| RULES.iter().any(|rule| layer.contains_key(*rule)))
    }

    pub(super) fn kind(&self) -> Result<Kind<'a>, TypeShape> {
        let innermost = self.layers.last().ok_or(TypeShape::Anything)?;
        let choice = ["oneOf", "anyOf"].iter().any(|key| innermost.contains_key(*key));
        if choice && innermost.contains_key("properties") {
            return Err(TypeShape::Flatten);
        }
        if choice || innermost.contains_key("enum") || innermost.contains_key("const") {
            return variants::of(innermost).map(Kind::Enum);
        }
        match one_type(innermost.get("type"))? {
            "null" => Ok(Kind::Unit),
            "array" if innermost.contains_key("prefixItems") => Err(TypeShape::Tuple),
            "array" if innermost.get("uniqueItems") == Some(&Value::Bool(true)) => Err(TypeShape::Set),
            "array" => Ok(Kind::List),
            "object" => {
                let open = innermost.get("additionalProperties").is_some_and(|more| more != &Value::Bool(false));
                match (open, innermost.contains_key("properties")) {
                    (true, true) => Err(TypeShape::Flatten),
                    (true, false) => Err(TypeShape::Map),
                    (false, _) => Ok(Kind::Struct),
                }
            }
            simple => Ok(Kind::Simple(simple)),
        }
    }
}

fn doc<'a>(layers: &[&'a Map<String, Value>]) -> &'a str {
    layers.iter().find_map(|layer| layer.get("description")?.as_str()).unwrap_or_default()
}

fn allows_null(layer: &Map<String, Value>) -> bool {
    layer.get("type").and_then(Value::as_array).is_some_and(|types| types.iter().any(|ty| ty == "null"))
}

/// The only type other than `null`.
fn one_type(ty: Option<&Value>) -> Result<&str, TypeShape> {
    match ty {
        Some(Value::String(ty)) => Ok(ty),
        Some(Value::Array(types)) => {
            let mut types = types.iter().filter_map(Value::as_str).filter(|ty| *ty != "null");
            match (types.next(), types.next()) {
                (Some(one), None) => Ok(one),
                (None, _) => Ok("null"),
                _ => Err(TypeShape::Untagged),
            }
        }
        _ => Err(TypeShape::Anything),
    }
}

/// The definition that a reference names (RFC 6901, section 6: percent-encoding, then `~1` and `~0`).
fn definition<'a>(reference: &str, definitions: &'a Map<String, Value>) -> Option<(&'a str, &'a Value)> {
    let mut bytes = Vec::new();
    let mut rest = reference.strip_prefix("#/$defs/")?.as_bytes();
    while let [first, behind @ ..] = rest {
        let hex = behind.get(..2).and_then(|hex| u8::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok());
        match (first, hex) {
            (b'%', Some(byte)) => {
                bytes.push(byte);
                rest = &behind[2..];
            }
            _ => {
                bytes.push(*first);
                rest = behind;
            }
        }
    }
    let name = String::from_utf8(bytes).ok()?.replace("~1", "/").replace("~0", "~");
    definitions.get_key_value(&name).map(|(name, schema)| (name.as_str(), schema))
}
