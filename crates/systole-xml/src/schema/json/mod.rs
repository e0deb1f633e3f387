//! JSON Schemas (draft 2020-12) of payloads, from the [`Model`]: the contract of a program or a language model that
//! writes a payload as a JSON object, such as the arguments of a tool call.
//!
//! Attributes are the properties `@name`, text is `$text`, elements are properties by their names, several of one name
//! are an array, a choice is `$value`: the mapping of `docs/types.md`, which serde_json has for Rust types, too. Content
//! that properties can't hold (mixed text, repeated groups, two elements of one name) is an array `$value` in document
//! order.
//!
//! A JSON Schema allows as much as its keywords can tell. Rules beyond them stand in a `description`, as in the prompt.

mod content;
mod literal;
mod outline;
mod shapes;
mod simple;
mod sketch;

use std::collections::{HashMap, HashSet, VecDeque};

use serde_json::{Map, Value};

use super::model::{Model, Type};
use content::Fields;
use shapes::{Shape, uses};
use sketch::{Sketch, hint};

type Object = Map<String, Value>;

/// The JSON Schema of a payload. It has the type `object`.
pub(crate) fn schema(model: &Model) -> Value {
    let uses = uses(model);
    let (names, taken, pending) = Default::default();
    let mut writer = Writer { model, uses, names, taken, pending, depth: 0 };
    let root = writer.root();
    let definitions = writer.definitions();
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

/// The greatest depth of types that are written where they are used.
const DEEPEST: usize = 8;

struct Writer<'m> {
    model: &'m Model,
    /// The number of references to each shape.
    uses: HashMap<Shape<'m>, usize>,
    /// The names of the shapes in `$defs`.
    names: HashMap<Shape<'m>, String>,
    taken: HashSet<String>,
    /// The shapes in `$defs` that are not written yet.
    pending: VecDeque<Shape<'m>>,
    depth: usize,
}

impl<'m> Writer<'m> {
    fn root(&mut self) -> Object {
        let root = &self.model.root;
        let mut sketch = match &self.model.types[root.ty] {
            Type::Complex(_) => self.element(root),
            Type::Simple(_) => {
                let mut fields = Fields::default();
                let mut text = self.element(root);
                text.doc.clear();
                let mut text = text.finish();
                hint(&mut text, &root.hints);
                fields.add("$text", text, true);
                fields.sketch()
            }
        };
        sketch.doc = self.model.doc().to_owned();
        // The type of an empty element allows null, that of a recursive one stands in `$defs`.
        sketch.keywords.insert("type".to_owned(), "object".into());
        let mut object = sketch.finish();
        if matches!(self.model.types[root.ty], Type::Complex(_)) {
            hint(&mut object, &root.hints);
        }
        object
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
            Type::Complex(complex) => self.complex(complex, shape.as_type),
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
