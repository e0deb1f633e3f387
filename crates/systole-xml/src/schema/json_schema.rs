//! Contracts that are written as JSON Schema (draft 2020-12): the payloads of a document, as if a Rust type had described them.
//!
//! An object is an element, its properties are child elements in the order of the document, those that begin with `@` are
//! attributes, and arrays are repeated elements. The JSON of the payloads is that of the document: each element knows the name
//! of its property, and whether it is an array. `docs/json.md` has the rules.
//!
//! A value that has no form in XML Schema, such as a choice of shapes, travels in a vocabulary for JSON (`json::values`), and is
//! judged by its JSON Schema (`rules`, `judge`). Elsewhere objects have no other properties than those that are declared.
//! Annotations and `format`, which is one unless a validator is told otherwise, narrow nothing.

mod compile;
mod portable;
mod sample;
mod shaped;
mod sound;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::contract::{ContractError, DocumentProblem};
use super::derive::compile;
use super::example::{Measure, Sizes, too_many};
use super::json::document::{Document, Kind, NodeId};
use super::json::ecma::of_ecma;
use super::json::values::ValueRules;
use super::json::{FromJsonError, read_schema};
use super::model::{
    Attribute, Beside, Bound, Complex, Content, Element, Enumerator, Facets, JsonElement, Model, Order, Particle,
    Simple, Term, Type, TypeId, Variety,
};
use super::pattern::Pattern;
use super::payload_schema::ExampleSearch;
use super::simple::{SimpleType, XsdType};
use super::source::{SourceDocument, digest};
use super::{Catalog, PayloadSchema, Validator};
use crate::ladder::chars::has_scheme;
use crate::ladder::escape::uncarriable;
use crate::vocab::{Position, QName, XmlLimits, is_ncname};
use compile::Compiled;
use shaped::Shaped;
use sound::narrows;

/// The greatest and the least whole number that each reader of JSON keeps (RFC 8259, section 6).
const WHOLE: i64 = (1 << 53) - 1;

/// The bounds of numbers: they exclude the values of `xs:double` that JSON can't write.
const FINITE: [&str; 2] = ["-1.7976931348623157E308", "1.7976931348623157E308"];

/// Types of a payload, at most: references to arrays make those of their items anew.
const TYPES: usize = 100_000;

/// References that are followed in a row.
const REFERENCES: usize = 64;

/// Keywords that a type of XML Schema honours, all together; a schema with another one that narrows has no form in it.
const FORMED: [&str; 16] = [
    "type",
    "const",
    "enum",
    "properties",
    "required",
    "additionalProperties",
    "items",
    "minItems",
    "maxItems",
    "minLength",
    "maxLength",
    "pattern",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
];

impl PayloadSchema {
    /// The payloads of a JSON Schema document (draft 2020-12): the value that it describes, under the name of the file, or, where it
    /// describes none, each of its `$defs`. Their namespace is the `$id` of the document; without it they have none.
    ///
    /// # Errors
    /// [`ContractError::Document`] with the place, the JSON pointer and the reason.
    pub fn from_json_schema(name: &str, text: &str) -> Result<Vec<Self>, ContractError> {
        let document = read_schema(text).map_err(|error| no_document(name, &error))?;
        let maker = |namespace: &Arc<str>| Maker {
            document: &document,
            name,
            namespace: namespace.clone(),
            types: Vec::new(),
            made: HashMap::new(),
            names: HashSet::new(),
            compiled: Compiled::default(),
            shaped: Shaped::default(),
        };
        let reader = maker(&"".into());
        if document.kind(0) != Kind::Object {
            return Err(
                reader.wrong(0, "a JSON Schema is an object: write {\"type\": \"object\", \"properties\": {…}}")
            );
        }
        reader.sound()?;
        let namespace: Arc<str> = reader.namespace()?.into();
        let sources: Arc<[SourceDocument]> = Arc::new([SourceDocument::new(name, text.into())]);
        let mut payloads = Vec::new();
        for (local, node) in reader.roots()? {
            let mut maker = maker(&namespace);
            let made = maker.payload(&local, node)?;
            let qname = QName::new(&namespace, &local).map_err(|_| {
                reader.wrong(node, "the name of a payload is a letter or '_', then letters, digits, '-', '_' and '.'")
            })?;
            payloads.push(assembled(&reader, &sources, (qname, made), node)?);
        }
        Ok(payloads)
    }
}

/// Compiles a payload, and gives it the author's first example.
fn assembled(
    reader: &Maker<'_, '_>,
    sources: &Arc<[SourceDocument]>,
    (qname, Made { mut model, values, sample }): (QName, Made),
    node: NodeId,
) -> Result<PayloadSchema, ContractError> {
    let depths = Sizes::of(&model, Measure::DEPTH);
    if depths.element(&model.root).is_none() {
        return Err(reader.wrong(node, "each value would need another one in it without end: make a property optional"));
    }
    if let Some(elements) = too_many(&model, &Sizes::of(&model, Measure::ELEMENTS)) {
        return Err(reader.problem(node, DocumentProblem::TooMany { elements }));
    }
    let (document, grammar) =
        compile(&mut model).map_err(|error| reader.wrong(node, &format!("it makes no XML Schema: {error}")))?;
    let root = grammar.element(qname.namespace(), qname.local());
    let root = root.ok_or_else(|| reader.wrong(node, "its element is not declared"))?;
    let digest = match &values {
        None => digest([blake3::hash(document.as_bytes()).into()]),
        // The values are judged by all that the author wrote.
        Some(_) => digest([document.as_bytes(), reader.document.text.as_bytes()].map(|text| blake3::hash(text).into())),
    };
    let search = ExampleSearch::new(EXAMPLES, 1);
    let schema = PayloadSchema::assemble(
        qname,
        (digest, (grammar, root)),
        (document, sources.clone()),
        (model, values),
        (Default::default(), search),
    );
    let example = reader.member(node, "examples").filter(|all| reader.document.kind(*all) == Kind::Array);
    let example = example.and_then(|all| reader.document.items(all).next());
    let validated = |json: &str| {
        let mut validator = Validator::new(Arc::new(Catalog::only([schema.clone()])));
        let name = serde_json::Value::from(schema.qname().local());
        let valid = validator.payload_of_json(format!("{{{name}:{json}}}").as_bytes(), |_| true, &XmlLimits::default());
        valid.map(|valid| valid.payload().clone())
    };
    match (example, sample) {
        (Some(example), _) => match validated(reader.document.value(example)) {
            Ok(valid) => Ok(schema.with_example(Some(valid))),
            Err(refusal) => Err(reader.wrong(example, &format!("the example is not valid: {refusal}"))),
        },
        (None, Some(sample)) => {
            let example = validated(&sample).ok();
            Ok(schema.with_example(example))
        }
        // An example without a look at the rules of its values might break them.
        (None, None) if schema.has_values() => Ok(schema.with_example(None)),
        (None, None) => Ok(schema),
    }
}

/// The reason against a constant that no value of the schema is.
const OTHER_TYPE: &str = "the value is not of the type of the schema: leave it out, or write its type in \"type\"";

/// Steps that are taken to make an example of a payload.
const EXAMPLES: usize = 1 << 20;

fn no_document(name: &str, error: &FromJsonError) -> ContractError {
    let (line, column) = error.at.unwrap_or((1, 1));
    let at = Position { line: line as u32, column: column as u32 };
    let problem = DocumentProblem::Rule(error.problem.to_string()).bounded();
    ContractError::Document { document: name.to_owned(), at, problem }
}

/// The models of a document in the making.
struct Maker<'d, 't> {
    document: &'d Document<'t>,
    name: &'d str,
    namespace: Arc<str>,
    types: Vec<Type>,
    /// The types of definitions.
    made: HashMap<NodeId, TypeId>,
    names: HashSet<String>,
    compiled: Compiled,
    shaped: Shaped,
}

/// A payload that is made.
struct Made {
    model: Model,
    /// The rules of its values in the vocabulary, if it has such.
    values: Option<ValueRules>,
    /// A sample of its JSON, if it has such values.
    sample: Option<String>,
}

/// The reason why a schema makes no type.
enum Stop {
    /// It is wrong, or none that a contract can have.
    Wrong(Box<ContractError>),
    /// It has no form in XML Schema: its values travel in the vocabulary of JSON.
    Formless,
}

/// A schema behind its references.
struct Resolved {
    node: NodeId,
    /// True if the value may be null.
    nullable: bool,
    doc: String,
    /// The name of the definition that it is.
    definition: Option<String>,
    /// The values that it has, without null, if it lists them: those of an enumeration, or of alternatives.
    values: Option<Vec<NodeId>>,
    ty: &'static str,
}

/// A value of a property.
struct Value {
    ty: TypeId,
    doc: String,
    nullable: bool,
    fixed: Option<String>,
}

impl Maker<'_, '_> {
    fn problem(&self, node: NodeId, problem: DocumentProblem) -> ContractError {
        let (line, column) = self.document.place(node);
        let at = Position { line: line as u32, column: column as u32 };
        ContractError::Document { document: self.name.to_owned(), at, problem: problem.bounded() }
    }

    /// The error of a part of the document.
    fn wrong(&self, node: NodeId, why: &str) -> ContractError {
        let pointer = self.document.pointer(node);
        let at = if pointer.is_empty() { String::new() } else { format!("{pointer}: ") };
        self.problem(node, DocumentProblem::Rule(format!("{at}{why}")))
    }

    fn member(&self, object: NodeId, key: &str) -> Option<NodeId> {
        if self.document.kind(object) != Kind::Object {
            return None;
        }
        self.document.members(object).find(|(known, _)| known == key).map(|(_, value)| value)
    }

    fn text(&self, object: NodeId, key: &str) -> Result<Option<String>, ContractError> {
        let Some(value) = self.member(object, key) else { return Ok(None) };
        match self.document.kind(value) {
            Kind::Plain | Kind::Escaped => Ok(Some(self.document.scalar(value).into_owned())),
            _ => Err(self.wrong(value, "expected a string")),
        }
    }

    /// The namespace of all payloads: the `$id`.
    fn namespace(&self) -> Result<String, ContractError> {
        let Some(id) = self.text(0, "$id")? else { return Ok(String::new()) };
        let id = id.trim_end_matches('#').to_owned();
        let is_uri = |c: char| !c.is_whitespace() && !c.is_control() && !matches!(c, '<' | '>' | '"' | '{' | '}');
        if !has_scheme(id.as_bytes()) || !id.chars().all(is_uri) {
            let node = self.member(0, "$id").unwrap_or(0);
            let why = "it becomes the namespace of the payloads: write an absolute URI, such as urn:example:orders:v1, or leave it out";
            return Err(self.wrong(node, why));
        }
        Ok(id)
    }

    /// The names of the payloads, and their schemas.
    fn roots(&self) -> Result<Vec<(String, NodeId)>, ContractError> {
        let describes = ["type", "properties", "$ref", "enum", "const", "anyOf", "oneOf", "allOf"];
        if describes.iter().any(|keyword| self.member(0, keyword).is_some()) {
            let file = self.name.rsplit(['/', '\\']).next().unwrap_or_default();
            let stem = file.strip_suffix(".json").unwrap_or(file);
            let stem = stem.strip_suffix(".schema").unwrap_or(stem);
            let local = kebab(stem);
            if !is_ncname(&local) {
                let why = format!(
                    "the payload would be named '{local}' after its file, which is no name in XML: rename the file, or write the schema in $defs"
                );
                return Err(self.wrong(0, &why));
            }
            return Ok(vec![(local, 0)]);
        }
        // A rule for no value would be one for none of the payloads.
        if let Some((key, value)) = self.document.members(0).find(|(key, _)| narrows(key)) {
            let why = format!(
                "'{key}' narrows a value, and the document describes none: write \"type\" beside it, or leave it out for the payloads of \"$defs\""
            );
            return Err(self.wrong(value, &why));
        }
        let definitions = ["$defs", "definitions"].iter().find_map(|key| self.member(0, key));
        let definitions = definitions.filter(|node| self.document.kind(*node) == Kind::Object);
        let roots: Vec<_> = definitions.into_iter().flat_map(|node| self.document.members(node)).collect();
        if roots.is_empty() {
            return Err(self.wrong(0, "it describes no value: write \"type\": \"object\" with \"properties\", or several payloads in \"$defs\""));
        }
        roots
            .into_iter()
            .map(|(key, node)| {
                let local = kebab(&key);
                match is_ncname(&local) {
                    true => Ok((local, node)),
                    false => Err(self.wrong(node, &format!("'{local}' is no name of a payload: begin with a letter, and write letters, digits, '-', '_' and '.'"))),
                }
            })
            .collect()
    }

    /// Makes a payload.
    fn payload(&mut self, local: &str, node: NodeId) -> Result<Made, ContractError> {
        let Value { ty, doc, fixed, .. } = match self.payload_type(node) {
            Ok(value) => value,
            Err(Stop::Wrong(error)) => return Err(*error),
            Err(Stop::Formless) => self.shaped(node)?,
        };
        let mut root = Element::plain(self.namespace.clone(), local.to_owned(), ty);
        (root.doc, root.fixed) = (doc, fixed);
        let (values, sample) = self.value_rules(node, ty)?.unzip();
        let types = Arc::new(std::mem::take(&mut self.types));
        let model = Model { root, types, is_whole: true, is_json: true };
        Ok(Made { model, values, sample: sample.flatten() })
    }

    fn payload_type(&mut self, node: NodeId) -> Result<Value, Stop> {
        let resolved = self.resolve(node)?;
        if resolved.nullable {
            return Err(self.wrong(node, "a payload can't be null: write one type").into());
        }
        if resolved.ty == "array" {
            let why = "a payload can't be an array: write an object with a property that is one";
            return Err(self.wrong(node, why).into());
        }
        // A payload whose type is referred to, also by itself, has a named one.
        self.value(resolved, true)
    }

    /// Follows references, and takes `null` out of the types.
    fn resolve(&self, node: NodeId) -> Result<Resolved, Stop> {
        let (mut at, mut nullable, mut doc, mut definition) = (node, false, String::new(), None);
        for _ in 0..REFERENCES {
            match self.document.kind(at) {
                Kind::Object => {}
                Kind::True | Kind::False => return Err(Stop::Formless),
                _ => return Err(self.wrong(at, "expected a schema: an object, true or false").into()),
            }
            if doc.is_empty() {
                doc = self.doc(at)?;
            }
            let items = |key| self.member(at, key).map(|list| self.document.items(list).collect::<Vec<_>>());
            if let Some(reference) = self.member(at, "$ref") {
                let target = self.target(reference)?;
                self.only(at, &["$ref"])?;
                let key = self.document.parent(target).and_then(|(_, key)| key);
                definition = Some(key.map_or_else(|| "payload".to_owned(), Into::into));
                at = target;
                continue;
            }
            if let Some(all) = items("allOf") {
                let [item] = all[..] else { return Err(Stop::Formless) };
                self.only(at, &["allOf"])?;
                at = item;
                continue;
            }
            let choice = ["anyOf", "oneOf"].into_iter().find_map(|key| Some((key, items(key)?)));
            let (values, values_have_null) = match choice {
                Some((key, alternatives)) => {
                    let is_null = |item: &NodeId| {
                        let ty = self.member(*item, "type").filter(|_| self.only(*item, &["type"]).is_ok());
                        ty.is_some_and(|ty| self.document.kind(ty) == Kind::Plain && self.document.scalar(ty) == "null")
                    };
                    let (nulls, others): (Vec<NodeId>, Vec<NodeId>) = alternatives.into_iter().partition(is_null);
                    // Of alternatives that are null twice, null meets none or both.
                    if nulls.len() > 1 || nullable && !nulls.is_empty() {
                        return Err(Stop::Formless);
                    }
                    if let [item] = others[..] {
                        self.only(at, &[key])?;
                        nullable |= !nulls.is_empty();
                        at = item;
                        continue;
                    }
                    self.only(at, &[key, "type"])?;
                    (Some(self.constants(&others).ok_or(Stop::Formless)?), !nulls.is_empty())
                }
                None => {
                    self.only(at, &FORMED)?;
                    match (self.member(at, "const"), items("enum")) {
                        // Values that are in both are told by the schema alone.
                        (Some(_), Some(_)) => return Err(Stop::Formless),
                        (constant, listed) => (constant.map(|constant| vec![constant]).or(listed), false),
                    }
                }
            };
            let (ty, type_has_null) = self.type_name(at, values.as_deref())?;
            let mut has_null = type_has_null.unwrap_or(false);
            let is_null = |value: &NodeId| self.document.kind(*value) == Kind::Null;
            let values = match values {
                Some(mut values) => {
                    let values_have_null = values_have_null || values.iter().any(is_null);
                    values.retain(|value| !is_null(value));
                    // Arrays are no constants in XML, and an element that may be nil is so whatever its constants are.
                    if ty == "array" || values.is_empty() || has_null && !values_have_null {
                        return Err(Stop::Formless);
                    }
                    has_null = values_have_null && type_has_null.unwrap_or(true);
                    Some(values)
                }
                None => None,
            };
            if nullable && has_null {
                return Err(Stop::Formless);
            }
            return Ok(Resolved { node: at, nullable: nullable || has_null, doc, definition, values, ty });
        }
        Err(self.wrong(node, "its references lead in a circle").into())
    }

    /// Stops at a keyword that narrows values, and is none of those that are honoured: what stands side by side holds together.
    fn only(&self, node: NodeId, honoured: &[&str]) -> Result<(), Stop> {
        match self.document.members(node).all(|(key, _)| honoured.contains(&&*key) || !narrows(&key)) {
            true => Ok(()),
            false => Err(Stop::Formless),
        }
    }

    /// The constants of alternatives that are constants alone, each of them once.
    fn constants(&self, alternatives: &[NodeId]) -> Option<Vec<NodeId>> {
        let mut known = HashSet::new();
        let constant = |item: &NodeId| {
            let constant = self.member(*item, "const")?;
            let kind = self.document.kind(constant);
            let is_type = |ty: NodeId| match (&*self.document.scalar(ty), kind) {
                ("string", Kind::Plain | Kind::Escaped) | ("number", Kind::Number) => true,
                ("boolean", Kind::True | Kind::False) => true,
                ("integer", Kind::Number) => self.whole(constant).is_some(),
                _ => false,
            };
            let is_plain = self.document.members(*item).all(|(key, value)| match &*key {
                "const" => true,
                "type" => self.document.kind(value) == Kind::Plain && is_type(value),
                key => !narrows(key),
            });
            // Numbers in two spellings are one.
            let spelt = match kind {
                Kind::Number => self.document.scalar(constant).parse::<f64>().ok()?.to_string(),
                _ => self.document.scalar(constant).into_owned(),
            };
            (is_plain && known.insert((kind == Kind::Number, spelt))).then_some(constant)
        };
        let constants: Vec<NodeId> = alternatives.iter().map(constant).collect::<Option<_>>()?;
        (!constants.is_empty()).then_some(constants)
    }

    fn doc(&self, node: NodeId) -> Result<String, ContractError> {
        let mut doc = self.text(node, "description")?.unwrap_or_default();
        if let Some(default) = self.member(node, "default").filter(|node| self.document.kind(*node) != Kind::Null) {
            let space = if doc.is_empty() { "" } else { " " };
            doc += &format!("{space}Default: {}.", self.document.value(default));
        }
        Ok(doc.chars().filter(|c| uncarriable(c.encode_utf8(&mut [0; 4])).is_none()).collect())
    }

    /// The schema that a reference names.
    fn target(&self, reference: NodeId) -> Result<NodeId, ContractError> {
        let text = self.document.scalar(reference);
        let Some(fragment) = text.strip_prefix('#') else {
            let why = "only references within the document are followed, such as \"#/$defs/Line\": nothing is fetched";
            return Err(self.wrong(reference, why));
        };
        if !fragment.is_empty() && !fragment.starts_with('/') {
            let why = "anchors are not followed: name the place of the schema, such as \"#/$defs/Line\"";
            return Err(self.wrong(reference, why));
        }
        let pointer = percent_decoded(fragment).ok_or_else(|| {
            self.wrong(
                reference,
                "a '%' stands before two hexadecimal digits, and the bytes are UTF-8: write '%25' for '%'",
            )
        })?;
        let mut at = 0;
        for step in pointer.split('/').skip(1) {
            let step = step.replace("~1", "/").replace("~0", "~");
            let next = match self.document.kind(at) {
                Kind::Object => self.member(at, &step),
                Kind::Array => step.parse().ok().and_then(|index| self.document.items(at).nth(index)),
                _ => None,
            };
            at = next.ok_or_else(|| self.wrong(reference, &format!("there is no '{text}' in the document")))?;
        }
        Ok(at)
    }

    /// The type of a value, without null, and whether its keyword has null; `None` for that where values or other keywords tell
    /// the type.
    fn type_name(&self, node: NodeId, values: Option<&[NodeId]>) -> Result<(&'static str, Option<bool>), Stop> {
        const TYPES: [&str; 6] = ["object", "array", "string", "integer", "number", "boolean"];
        let known = |node: NodeId| {
            let text = self.document.scalar(node);
            let found = TYPES.into_iter().find(|ty| *ty == text);
            found.ok_or_else(|| {
                self.wrong(
                    node,
                    "expected a type: object, array, string, integer, number or boolean, or with null beside it",
                )
            })
        };
        if let Some(ty) = self.member(node, "type") {
            if self.document.kind(ty) != Kind::Array {
                // Of the one value null, XML has no form without a type.
                let is_null = self.document.kind(ty) == Kind::Plain && self.document.scalar(ty) == "null";
                return if is_null { Err(Stop::Formless) } else { Ok((known(ty)?, Some(false))) };
            }
            let (nulls, others): (Vec<NodeId>, Vec<NodeId>) =
                self.document.items(ty).partition(|item| self.document.scalar(*item) == "null");
            let has_null = Some(!nulls.is_empty());
            let names = others.iter().map(|item| known(*item)).collect::<Result<Vec<_>, _>>()?;
            return match names[..] {
                [only] => Ok((only, has_null)),
                ["integer", "number"] | ["number", "integer"] => Ok(("number", has_null)),
                _ => Err(Stop::Formless),
            };
        }
        if self.member(node, "properties").is_some() {
            return Ok(("object", None));
        }
        if self.member(node, "items").is_some() {
            return Ok(("array", None));
        }
        let kinds = values.unwrap_or_default().iter().map(|value| match self.document.kind(*value) {
            Kind::Plain | Kind::Escaped => "string",
            Kind::True | Kind::False => "boolean",
            Kind::Number if self.whole(*value).is_some() => "integer",
            Kind::Number => "number",
            Kind::Null => "null",
            Kind::Array | Kind::Object => "several",
        });
        let kinds: HashSet<&str> = kinds.filter(|kind| *kind != "null").collect();
        match kinds.iter().collect::<Vec<_>>()[..] {
            [only] if *only != "several" => Ok((TYPES.into_iter().find(|ty| ty == only).unwrap_or("string"), None)),
            [_, _] if kinds.contains("integer") && kinds.contains("number") => Ok(("number", None)),
            _ => Err(Stop::Formless),
        }
    }

    /// The value of a number that is whole and that each reader of JSON keeps.
    fn whole(&self, node: NodeId) -> Option<i64> {
        let number: f64 = self.document.scalar(node).parse().ok()?;
        (number.fract() == 0.0 && number.abs() <= WHOLE as f64).then_some(number as i64)
    }

    fn value(&mut self, resolved: Resolved, is_root: bool) -> Result<Value, Stop> {
        let Resolved { node, nullable, doc, definition, values, ty } = resolved;
        let mut fixed = None;
        let id = match ty {
            "object" if values.is_some() => return Err(Stop::Formless),
            "object" => self.object(node, definition, is_root)?,
            "boolean" => {
                if let Some(values) = &values {
                    let is_other = |value: &&NodeId| !matches!(self.document.kind(**value), Kind::True | Kind::False);
                    if let Some(other) = values.iter().find(is_other) {
                        return Err(self.wrong(*other, OTHER_TYPE).into());
                    }
                    let texts: HashSet<_> = values.iter().map(|value| self.document.scalar(*value)).collect();
                    fixed = Some(texts)
                        .filter(|texts| texts.len() == 1)
                        .and_then(|texts| texts.into_iter().next())
                        .map(Into::into);
                    // An element whose value is fixed can't be nil (XSD 1.0 part 1, section 3.3.4, cvc-elt 3.2.2).
                    if nullable && fixed.is_some() {
                        return Err(Stop::Formless);
                    }
                }
                self.simple(XsdType::BOOLEAN, Facets::default())
            }
            "string" => {
                let facets = self.string(node, values.as_deref())?;
                self.simple(XsdType::STRING, facets)
            }
            "integer" => {
                let facets = self.integer(node, values.as_deref())?;
                self.simple(XsdType::LONG, facets)
            }
            "number" => {
                let facets = self.number(node, values.as_deref())?;
                self.simple(XsdType::DOUBLE, facets)
            }
            _ => return Err(Stop::Formless),
        };
        Ok(Value { ty: id, doc, nullable, fixed })
    }

    fn simple(&mut self, base: &'static XsdType, facets: Facets) -> TypeId {
        let definition = if facets.is_empty() { SimpleType::xsd_type(base.name) } else { None };
        let (name, doc) = (None, String::new());
        self.types.push(Type::Simple(Simple { name, doc, variety: Variety::Atomic(base), facets, definition }));
        self.types.len() - 1
    }

    fn count(&self, node: NodeId, keyword: &str) -> Result<Option<u64>, ContractError> {
        self.member(node, keyword).map(|value| self.number_of(value)).transpose()
    }

    fn number_of(&self, value: NodeId) -> Result<u64, ContractError> {
        let count = self
            .whole(value)
            .filter(|_| self.document.kind(value) == Kind::Number)
            .and_then(|count| u64::try_from(count).ok());
        count.ok_or_else(|| self.wrong(value, "expected a whole number from 0 to 2^53 - 1 (9007199254740991)"))
    }

    fn enumerators(
        &self,
        values: &[NodeId],
        text: impl Fn(NodeId) -> Option<String>,
    ) -> Result<Vec<Enumerator>, ContractError> {
        // Values of one list stand side by side; the docs of an alternative stand beside its value.
        let are_alternatives = matches!(values, [first, second, ..] if self.document.next(*first) != *second);
        let enumerator = |value: &NodeId| match text(*value) {
            Some(text) => {
                let parent = are_alternatives.then(|| self.document.parent(*value)).flatten();
                let alternative = parent.filter(|(_, key)| key.as_deref() == Some("const"));
                let doc = alternative.map(|(parent, _)| self.text(parent, "description")).transpose()?.flatten();
                Ok(Enumerator { value: text, namespace: None, doc: doc.unwrap_or_default() })
            }
            None => Err(self.wrong(*value, OTHER_TYPE)),
        };
        values.iter().map(enumerator).collect()
    }

    fn string(&self, node: NodeId, values: Option<&[NodeId]>) -> Result<Facets, Stop> {
        let mut facets = Facets::default();
        (facets.min_length, facets.max_length) =
            (self.count(node, "minLength")?.filter(|min| *min > 0), self.count(node, "maxLength")?);
        if let Some(pattern) = self.text(node, "pattern")? {
            let pattern = of_ecma(&pattern).and_then(|pattern| Pattern::from_rust(&pattern));
            facets.patterns = vec![pattern.map_err(|_| Stop::Formless)?];
        }
        if facets.max_length.is_some_and(|most| most < facets.min_length.unwrap_or(0)) {
            return Err(self.wrong(node, "no string is so long: its \"maxLength\" is below its \"minLength\"").into());
        }
        if let Some(values) = values {
            let text = |value: NodeId| {
                let is_text = matches!(self.document.kind(value), Kind::Plain | Kind::Escaped);
                is_text.then(|| self.document.scalar(value).into_owned())
            };
            facets.values = self.enumerators(values, text)?;
            if let Some(at) = facets.values.iter().position(|known| uncarriable(&known.value).is_some()) {
                return Err(self.wrong(values[at], "XML can't carry a character of this value: leave it out").into());
            }
        }
        Ok(facets)
    }

    fn bound(&self, node: NodeId, keyword: &str) -> Result<Option<(f64, NodeId)>, ContractError> {
        let Some(value) = self.member(node, keyword) else { return Ok(None) };
        let number = self.document.scalar(value).parse::<f64>().ok().filter(|number| number.is_finite());
        number.map(|number| Some((number, value))).ok_or_else(|| {
            self.wrong(
                value,
                "the bound lies past the numbers of 64 bits, whose greatest is 1.7976931348623157E308: leave it out",
            )
        })
    }

    fn integer(&self, node: NodeId, values: Option<&[NodeId]>) -> Result<Facets, ContractError> {
        let (mut least, mut most) = (-WHOLE as f64, WHOLE as f64);
        for (keyword, is_exclusive) in [("minimum", false), ("exclusiveMinimum", true)] {
            if let Some((bound, _)) = self.bound(node, keyword)? {
                least = least.max(if is_exclusive { bound.floor() + 1.0 } else { bound.ceil() });
            }
        }
        for (keyword, is_exclusive) in [("maximum", false), ("exclusiveMaximum", true)] {
            if let Some((bound, _)) = self.bound(node, keyword)? {
                most = most.min(if is_exclusive { bound.ceil() - 1.0 } else { bound.floor() });
            }
        }
        if least > most {
            return Err(self.wrong(
                node,
                "no whole number lies between its bounds, of which the widest are -(2^53 - 1) and 2^53 - 1",
            ));
        }
        let bound = |number: f64| Some(Bound { value: (number as i64).to_string(), exclusive: false });
        let mut facets = Facets { min: bound(least), max: bound(most), ..Facets::default() };
        if let Some(values) = values {
            facets.values = self.enumerators(values, |value| {
                Some(self.whole(value).filter(|_| self.document.kind(value) == Kind::Number)?.to_string())
            })?;
        }
        Ok(facets)
    }

    fn number(&self, node: NodeId, values: Option<&[NodeId]>) -> Result<Facets, ContractError> {
        let end = |inclusive: &str, exclusive: &str, is_stricter: fn(f64, f64) -> bool, widest: &str| {
            let inclusive = self.bound(node, inclusive)?.map(|(bound, _)| bound);
            let exclusive = self.bound(node, exclusive)?.map(|(bound, _)| bound);
            let is_narrower = |exclusive: &f64| inclusive.is_none_or(|inclusive| !is_stricter(inclusive, *exclusive));
            let exclusive = exclusive.filter(is_narrower);
            let value = exclusive.or(inclusive).map_or_else(|| widest.to_owned(), |number| format!("{number:E}"));
            Ok::<_, ContractError>(Some(Bound { value, exclusive: exclusive.is_some() }))
        };
        let bound = |keyword| Ok::<_, ContractError>(self.bound(node, keyword)?.map(|(bound, _)| bound));
        let (least, above) = (bound("minimum")?, bound("exclusiveMinimum")?);
        let (most, below) = (bound("maximum")?, bound("exclusiveMaximum")?);
        let is_empty = |low: Option<f64>, high: Option<f64>, can_meet: bool| {
            low.zip(high).is_some_and(|(low, high)| low > high || !can_meet && low >= high)
        };
        if is_empty(least, most, true) || is_empty(least, below, false) || is_empty(above, most.or(below), false) {
            return Err(self.wrong(node, "no number lies between its bounds"));
        }
        let mut facets = Facets {
            min: end("minimum", "exclusiveMinimum", |inclusive, exclusive| inclusive > exclusive, FINITE[0])?,
            max: end("maximum", "exclusiveMaximum", |inclusive, exclusive| inclusive < exclusive, FINITE[1])?,
            ..Facets::default()
        };
        if let Some(values) = values {
            let text = |value: NodeId| {
                (self.document.kind(value) == Kind::Number).then(|| self.document.scalar(value).into_owned())
            };
            facets.values = self.enumerators(values, text)?;
        }
        Ok(facets)
    }

    fn object(&mut self, node: NodeId, definition: Option<String>, is_root: bool) -> Result<TypeId, Stop> {
        if let Some(known) = self.made.get(&node) {
            return Ok(*known);
        }
        if self.member(node, "additionalProperties").is_some_and(|open| self.document.kind(open) != Kind::False) {
            return Err(Stop::Formless);
        }
        let id = self.types.len();
        if id > TYPES {
            return Err(self.wrong(node, "the schema makes more than 100,000 types, since arrays of unnamed objects refer to others again and again: give these objects names in $defs").into());
        }
        let wanted = definition.or_else(|| is_root.then(|| "payload".to_owned()));
        let name = wanted.map(|wanted| self.free_name(&wanted));
        self.types.push(Type::any(Beside::Nothing));
        if name.is_some() {
            self.made.insert(node, id);
        }
        let properties = self.member(node, "properties");
        if let Some(properties) = properties.filter(|properties| self.document.kind(*properties) != Kind::Object) {
            return Err(self.wrong(properties, "expected an object of schemas").into());
        }
        let properties: Vec<(String, NodeId)> = properties
            .map(|properties| self.document.members(properties).map(|(key, value)| (key.into_owned(), value)).collect())
            .unwrap_or_default();
        let mut required = HashSet::new();
        if let Some(list) = self.member(node, "required") {
            for item in self.document.items(list) {
                let key = self.document.scalar(item).into_owned();
                if !properties.iter().any(|(known, _)| *known == key) {
                    return Err(self
                        .wrong(item, "it is required, and not among the \"properties\": describe it there")
                        .into());
                }
                required.insert(key);
            }
        }
        let (mut attributes, mut parts) = (Vec::new(), Vec::new());
        for (key, schema) in properties {
            let is_required = required.contains(&key);
            if key.starts_with('@') {
                attributes.push(self.attribute(&key, schema, is_required)?);
            } else {
                parts.push(self.property(key, schema, is_required)?);
            }
        }
        let content = match parts.is_empty() {
            true => Content::Empty,
            false => Content::Children(Particle::once(Term::Group(Order::Sequence, parts))),
        };
        let (doc, any_attributes, beside) = (String::new(), None, Beside::Nothing);
        self.types[id] = Type::Complex(Complex { name, doc, attributes, any_attributes, content, beside });
        Ok(id)
    }

    fn attribute(&mut self, key: &str, schema: NodeId, required: bool) -> Result<Attribute, ContractError> {
        let local = &key[1..];
        if !is_ncname(local) || local == "xmlns" {
            return Err(self.wrong(
                schema,
                "'@' marks an attribute, whose name is a letter or '_', then letters, digits, '-', '_' and '.'",
            ));
        }
        let why = "an attribute ('@') is a string, a number or a truth value: write the name without '@'";
        let is_simple = |resolved: &Resolved| !matches!(resolved.ty, "object" | "array") && !resolved.nullable;
        let resolved = match self.resolve(schema) {
            Ok(resolved) if is_simple(&resolved) => resolved,
            Ok(_) | Err(Stop::Formless) => return Err(self.wrong(schema, why)),
            Err(Stop::Wrong(error)) => return Err(*error),
        };
        let Value { ty, doc, fixed, .. } = match self.value(resolved, false) {
            Ok(value) => value,
            Err(Stop::Formless) => return Err(self.wrong(schema, why)),
            Err(Stop::Wrong(error)) => return Err(*error),
        };
        let (namespace, local, hints) = ("".into(), local.to_owned(), Vec::new());
        Ok(Attribute { namespace, local, doc, ty, required, fixed, hints })
    }

    fn property(&mut self, key: String, schema: NodeId, is_required: bool) -> Result<Particle, ContractError> {
        if key.is_empty() || key == "$" || key == "$any" {
            return Err(self.wrong(schema, "a property can't have this name: write another one"));
        }
        match self.typed_property(&key, schema, is_required) {
            Ok(particle) => Ok(particle),
            Err(Stop::Wrong(error)) => Err(*error),
            Err(Stop::Formless) => {
                let Value { ty, doc, .. } = self.shaped(schema)?;
                let mut element = Element::plain(self.namespace.clone(), escaped(&key), ty);
                element.doc = doc;
                element.json = Some(Box::new(JsonElement { key, many: false, always: false, null: false }));
                let (min, max) = (u64::from(is_required), Some(1));
                Ok(Particle { min, max, term: Term::Element(Box::new(element)) })
            }
        }
    }

    /// The type of a schema, or that of a value in the vocabulary if it has no form.
    fn formed(&mut self, schema: NodeId) -> Result<Value, Stop> {
        match self.resolve(schema).and_then(|resolved| self.value(resolved, false)) {
            Err(Stop::Formless) => Ok(self.shaped(schema)?),
            other => other,
        }
    }

    /// A property with a form in XML Schema.
    fn typed_property(&mut self, key: &str, schema: NodeId, is_required: bool) -> Result<Particle, Stop> {
        let resolved = self.resolve(schema)?;
        let mut json = JsonElement { key: key.to_owned(), many: false, always: false, null: false };
        let mut occurs = (u64::from(is_required), Some(1));
        let mut doc = None;
        let Value { ty, doc: own, nullable, fixed } = if resolved.ty == "array" {
            let (min, max) =
                (self.count(resolved.node, "minItems")?.unwrap_or(0), self.count(resolved.node, "maxItems")?);
            if max.is_some_and(|max| max < min.max(1)) {
                return Err(self
                    .wrong(
                        resolved.node,
                        "no array has so few items: write a \"maxItems\" of 1 or more that is not below \"minItems\"",
                    )
                    .into());
            }
            // Of an array that may be null, an element that is left out is null.
            if resolved.nullable && is_required {
                return Err(Stop::Formless);
            }
            let items = self.member(resolved.node, "items").filter(|items| self.document.kind(*items) != Kind::Array);
            let items = items.ok_or(Stop::Formless)?;
            (json.many, json.always, json.null) = (true, is_required && min == 0, resolved.nullable);
            occurs = (min, max);
            doc = Some(resolved.doc).filter(|doc| !doc.is_empty());
            self.formed(items)?
        } else {
            self.value(resolved, false)?
        };
        let is_optional_list = json.many && !is_required && occurs.0 > 0;
        if nullable && self.has_required_attribute(ty) {
            return Err(self.wrong(schema, "a value that may be null has a required attribute ('@'), which null has no place for: leave it out of \"required\" there, or write its name without '@'").into());
        }
        let mut element = Element::plain(self.namespace.clone(), escaped(key), ty);
        (element.doc, element.nillable, element.fixed) = (doc.unwrap_or(own), nullable, fixed);
        element.json = Some(Box::new(json));
        let particle = Particle { min: occurs.0, max: occurs.1, term: Term::Element(Box::new(element)) };
        // The array may be left out; if it is there, it has its items.
        Ok(match is_optional_list {
            true => Particle { min: 0, max: Some(1), term: Term::Group(Order::Sequence, vec![particle]) },
            false => particle,
        })
    }

    fn has_required_attribute(&self, ty: TypeId) -> bool {
        match &self.types[ty] {
            Type::Complex(complex) => complex.attributes.iter().any(|attribute| attribute.required),
            Type::Simple(_) => false,
        }
    }

    fn free_name(&mut self, wanted: &str) -> String {
        let wanted = escaped(wanted);
        let mut name = wanted.clone();
        for number in 2.. {
            if self.names.insert(name.clone()) {
                break;
            }
            name = format!("{wanted}.{number}");
        }
        name
    }
}

/// A name of XML for any text: each character that it can't have is its code point, `_x0020_`, and so is a `_` that would be
/// read as one.
fn escaped(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for (at, c) in name.char_indices() {
        let fits = if at == 0 { is_ncname(c.encode_utf8(&mut [0; 4])) } else { is_ncname(&format!("a{c}")) };
        if fits && !(c == '_' && name[at..].starts_with("_x")) {
            out.push(c);
        } else {
            out.push_str(&format!("_x{:04X}_", u32::from(c)));
        }
    }
    out
}

/// The text of a fragment of a URI (RFC 3986, section 2.1); `None` if it is none.
fn percent_decoded(fragment: &str) -> Option<String> {
    let mut parts = fragment.split('%');
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        let digits = part.get(..2).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        bytes.extend_from_slice(&part.as_bytes()[2..]);
    }
    String::from_utf8(bytes).ok()
}

/// A name in kebab case, if it has capitals: `TaskDone` is `task-done`.
fn kebab(name: &str) -> String {
    if !name.contains(char::is_uppercase) {
        return name.to_owned();
    }
    let letters: Vec<char> = name.chars().collect();
    let mut out = String::new();
    for (at, letter) in letters.iter().enumerate() {
        let before = at.checked_sub(1).map(|at| letters[at]);
        let after = letters.get(at + 1);
        let starts = before.is_some_and(|before| {
            before.is_lowercase()
                || before.is_ascii_digit()
                || before.is_uppercase() && after.is_some_and(|after| after.is_lowercase())
        });
        if (*letter == '_' || letter.is_uppercase() && starts) && !out.is_empty() && !out.ends_with('-') {
            out.push('-');
        }
        if *letter != '_' {
            out.extend(letter.to_lowercase());
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_text_has_a_name_in_xml_of_its_own() {
        for (text, name) in [
            ("article", "article"),
            ("unit price", "unit_x0020_price"),
            ("1st", "_x0031_st"),
            ("a:b", "a_x003A_b"),
            ("_x0041_", "_x005F_x0041_"),
            ("_", "_"),
            ("größe", "größe"),
            ("$ref", "_x0024_ref"),
        ] {
            assert_eq!(escaped(text), name);
            assert!(is_ncname(name), "{name}");
        }
    }

    #[test]
    fn capitals_make_kebab_case() {
        for (name, kebabed) in [
            ("order", "order"),
            ("order_line", "order_line"),
            ("TaskDone", "task-done"),
            ("HTTPRequest", "http-request"),
            ("Order_Line", "order-line"),
            ("Sum2", "sum2"),
        ] {
            assert_eq!(kebab(name), kebabed);
        }
    }
}
