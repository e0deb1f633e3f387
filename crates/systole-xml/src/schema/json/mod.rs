//! Payloads as JSON: the mapping of XML to JSON and back, and its JSON Schema (draft 2020-12).
//!
//! An element is an object, its attributes are the properties `@name`, its text is `$`, its child elements are properties by
//! their names, and arrays where the schema allows several. An element with text and no attributes is its bare value. Content
//! that properties can't hold (mixed text, repeated groups, two elements of one name) is an array `$` in document order, in
//! which an element is an object of one property; so is the content of elements that the schema doesn't describe. `docs/json.md`
//! has the whole mapping. A JSON value that has no form of its own in XML Schema travels in a vocabulary for such (`values`).
//!
//! Invariants: [`Mapping`] alone decides the form; schema, reader and writer share it. Reading and writing take linear time and
//! never recurse over the input. What is read is XML of no more trust than the JSON: the validator judges it as always.
//!
//! A JSON Schema allows as much as its keywords can tell. Rules beyond them stand in a `description`, as in the prompt.

mod content;
pub(in crate::schema) mod decimal;
pub(in crate::schema) mod document;
pub(in crate::schema) mod ecma;
mod error;
mod judge;
mod literal;
mod mapping;
mod outline;
mod presence;
mod read;
mod refusal;
pub(in crate::schema) mod rules;
mod shapes;
mod simple;
mod sketch;
pub(in crate::schema) mod values;
mod write;

use std::collections::{HashMap, HashSet, VecDeque};

use serde_json::{Map, Value};

use super::model::{Model, Type, TypeId};
use content::Fields;
pub use error::{FromJsonError, JsonProblem};
pub(crate) use mapping::Mapping;
use mapping::{clark, is_bare};
pub use read::JsonPayload;
pub(in crate::schema) use read::{convert, named, objects, parse, read_schema};
pub use refusal::{JsonMistake, JsonRefusal};
use shapes::{Shape, uses};
use sketch::Sketch;
use values::ValueRules;
pub(crate) use write::{Literals, to_json};

type Object = Map<String, Value>;

/// The JSON Schema of a payload. It has the type `object`. `example` is asked for if the author of the payload gave one.
pub(crate) fn schema(model: &Model, values: Option<&ValueRules>, example: impl FnOnce() -> Option<Value>) -> Value {
    let uses = uses(model);
    let (names, pending) = Default::default();
    let definitions = values.map(|values| &values.definitions);
    let taken = definitions.into_iter().flat_map(|all| all.keys().cloned()).chain([ANY.to_owned()]).collect();
    let mut writer = Writer { model, values, uses, names, taken, pending, depth: 0, has_any: false };
    let mut root = writer.root();
    if !model.root.hints.is_empty() {
        root.extend(example().map(|example| ("examples".to_owned(), vec![example].into())));
    }
    let mut definitions = writer.definitions();
    definitions.extend(values.iter().flat_map(|values| values.definitions.clone()));
    if writer.has_any {
        definitions.insert(ANY.to_owned(), any());
    }
    let mut out = Object::new();
    out.insert("$schema".to_owned(), "https://json-schema.org/draft/2020-12/schema".into());
    let namespace = &model.root.namespace;
    let local = &model.root.local;
    let title = if namespace.is_empty() { local.clone() } else { format!("{{{namespace}}}{local}") };
    out.insert("title".to_owned(), title.into());
    out.extend(root);
    if !definitions.is_empty() {
        out.insert("$defs".to_owned(), definitions.into());
    }
    Value::Object(out)
}

/// The JSON Schema of a payload with its name: an object of one property.
pub(in crate::schema) fn named_schema(schema: &Value, mapping: &Mapping, name: &str) -> Value {
    let mut whole = schema.as_object().cloned().unwrap_or_default();
    let definitions = whole.remove("$defs");
    ["$schema", "title", "examples"].iter().for_each(|keyword| drop(whole.remove(*keyword)));
    // The text of a payload that has nothing else stands behind the name by itself.
    let text = match (mapping.is_value(), whole.get_mut("properties")) {
        (true, Some(Value::Object(properties))) => properties.remove("$"),
        _ => None,
    };
    let mut inner = text.unwrap_or(Value::Object(whole.clone()));
    if let (Value::Object(inner), Some(doc)) = (&mut inner, whole.remove("description")) {
        inner.entry("description").or_insert(doc);
    }
    let mut schema = serde_json::json!({
        "type": "object",
        "properties": { name: inner },
        "required": [name],
        "additionalProperties": false,
    });
    if let Some(definitions) = definitions {
        schema["$defs"] = definitions;
    }
    schema
}

/// The name of the definition of elements that the schema doesn't describe.
const ANY: &str = "any";

/// The schema of elements of any content: a text, or an object with attributes and an array of the content in document order.
fn any() -> Value {
    serde_json::json!({
        "type": ["string", "object"],
        "properties": {
            "$": {
                "type": ["string", "array"],
                "items": {
                    "type": ["string", "object"],
                    "minProperties": 1,
                    "maxProperties": 1,
                    "additionalProperties": { "$ref": "#/$defs/any" },
                },
            },
        },
        "additionalProperties": { "type": "string" },
        "propertyNames": { "anyOf": [{ "pattern": "^@" }, { "const": "$" }] },
    })
}

/// The greatest depth of types that are written where they are used.
const DEEPEST: usize = 8;

struct Writer<'m> {
    model: &'m Model,
    /// The rules of JSON values, if a JSON Schema is the source of the payload.
    values: Option<&'m ValueRules>,
    /// The number of references to each shape.
    uses: HashMap<Shape<'m>, usize>,
    /// The names of the shapes in `$defs`.
    names: HashMap<Shape<'m>, String>,
    taken: HashSet<String>,
    /// The shapes in `$defs` that are not written yet.
    pending: VecDeque<Shape<'m>>,
    depth: usize,
    /// Set once some content is of any form.
    has_any: bool,
}

impl<'m> Writer<'m> {
    fn root(&mut self) -> Object {
        let root = &self.model.root;
        let is_value = match &self.model.types[root.ty] {
            Type::Complex(complex) => is_bare(complex) && root.as_type.is_none(),
            Type::Simple(_) => true,
        };
        if let Type::Complex(complex) = &self.model.types[root.ty]
            && values::is_value(complex)
        {
            let mut whole = self.json(root.ty).documented(self.model.doc());
            whole.keywords.insert("type".to_owned(), "object".into());
            return whole.finish();
        }
        let mut sketch = match is_value {
            false => self.element(root),
            true => {
                let mut fields = Fields::default();
                let mut text = self.element(root);
                text.doc.clear();
                fields.add("$", text.finish(), true);
                fields.sketch()
            }
        };
        sketch.doc = self.model.doc().to_owned();
        // That of an element that may be nil allows null, that of a recursive one stands in `$defs`.
        sketch.keywords.insert("type".to_owned(), "object".into());
        sketch.finish()
    }

    /// The schema of an element of any content.
    fn any(&mut self, words: &str) -> Sketch {
        self.has_any = true;
        let mut sketch = Sketch::with("$ref", format!("#/$defs/{ANY}"));
        sketch.words.extend((!words.is_empty()).then(|| words.to_owned()));
        sketch
    }

    /// The schema of a JSON value: the one that its author wrote, or any.
    fn json(&self, ty: TypeId) -> Sketch {
        let written = self.values.and_then(|values| values.of.get(&ty));
        match written {
            Some((_, Value::Object(keywords))) => {
                let mut sketch = Sketch { keywords: keywords.clone(), ..Sketch::default() };
                if let Some(Value::String(doc)) = sketch.keywords.remove("description") {
                    sketch.doc = doc;
                }
                sketch
            }
            Some(_) | None => Sketch::open("any JSON value"),
        }
    }

    fn definitions(&mut self) -> Object {
        let mut definitions = Object::new();
        while let Some(shape) = self.pending.pop_front() {
            self.depth = 0;
            let schema = self.written(shape).finish();
            definitions.insert(self.names[&shape].clone(), schema.into());
        }
        definitions
    }

    /// The schema of a type, or a reference to its definition. `name` is for a type without a name.
    fn shape(&mut self, shape: Shape<'m>, name: &str) -> Sketch {
        let is_shared = self.uses.get(&shape).is_some_and(|uses| *uses > 1);
        if let Type::Complex(complex) = &self.model.types[shape.ty]
            && values::is_value(complex)
        {
            return self.json(shape.ty);
        }
        if shape.is_small(self.model) || !is_shared && self.depth < DEEPEST {
            return self.written(shape);
        }
        let name = match self.names.get(&shape) {
            Some(known) => known.clone(),
            None => {
                let name = self.name(shape.name(self.model).unwrap_or(name));
                self.names.insert(shape, name.clone());
                self.pending.push_back(shape);
                name
            }
        };
        Sketch::with("$ref", format!("#/$defs/{name}"))
    }

    fn written(&mut self, shape: Shape<'m>) -> Sketch {
        self.depth += 1;
        let sketch = match &self.model.types[shape.ty] {
            Type::Simple(simple) => self.simple(simple),
            Type::Complex(complex) => {
                self.complex(complex, shape.as_type.map(|(namespace, name)| clark(namespace, name)))
            }
        };
        self.depth -= 1;
        sketch
    }

    /// A free name for a definition that needs no escapes in a reference.
    fn name(&mut self, wanted: &str) -> String {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
        let wanted: String = wanted.chars().map(|c| if is_plain(c) { c } else { '_' }).collect();
        let mut name = wanted.clone();
        for number in 2.. {
            if self.taken.insert(name.clone()) {
                break;
            }
            name = format!("{wanted}.{number}");
        }
        name
    }
}
