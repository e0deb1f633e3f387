//! JSON to payloads: one walk over a parsed document.

use std::borrow::Cow;

use foldhash::{HashMap, HashMapExt};

use super::document::{Document, Kind, Limits, NodeId};
use super::error::{FromJsonError, JsonProblem};
use super::mapping::{ANY, Body, Child, Children, Form, Mapping, Object, Value};
use super::values;
use super::write::{Literals, is_whole, is_word, push_value};
use crate::ladder::escape::{EscapeContext, escape_into};
use crate::schema::engine::SchemaError;
use crate::schema::model::Order;
use crate::schema::shorten::shortened;
use crate::schema::simple::NoPrefixes;
use crate::vocab::{XmlLimits, is_ncname, ns};

/// The XML of a payload that came as JSON: raw bytes, which the ladder and the validator judge as always.
#[derive(Debug)]
pub struct JsonPayload<'t> {
    xml: String,
    document: Document<'t>,
    /// The value of each element, in document order.
    elements: Vec<NodeId>,
}

impl<'t> JsonPayload<'t> {
    /// The payload as XML.
    pub fn xml(&self) -> &str {
        &self.xml
    }

    /// The payload as XML, by value.
    pub fn into_xml(self) -> String {
        self.xml
    }

    /// The places of the rules that the payload breaks, as JSON pointers (RFC 6901): that of the first, then those of
    /// [`SchemaError::more`]. The error has to be about [`Self::xml`].
    pub fn pointers(&self, error: &SchemaError) -> Vec<String> {
        error.parts().map(|(element, attribute)| self.pointer(element, attribute)).collect()
    }

    fn pointer(&self, element: usize, attribute: Option<&str>) -> String {
        let node = self.elements.get(element).copied().unwrap_or(0);
        let mut pointer = self.document.pointer(node);
        let key = attribute.map(|name| format!("@{name}"));
        let found = key.filter(|key| {
            self.document.kind(node) == Kind::Object && self.document.members(node).any(|(known, _)| known == *key)
        });
        if let Some(key) = found {
            super::document::push_step(&mut pointer, &key);
        }
        pointer
    }
}

/// Reads a document.
pub(in crate::schema) fn parse<'t>(json: &'t str, limits: &XmlLimits) -> Result<Document<'t>, FromJsonError> {
    Document::read(json, Limits::of(limits))
}

/// Reads a JSON Schema.
pub(in crate::schema) fn read_schema(text: &str) -> Result<Document<'_>, FromJsonError> {
    /// Bytes of a schema, at most.
    const BYTES: usize = 16 << 20;
    /// Values in each other, at most.
    const DEPTH: usize = 192;
    Document::read(text, Limits { bytes: BYTES, depth: DEPTH })
}

/// The objects of a document that is an array, each as it is written; `None` if it is no array.
pub(in crate::schema) fn objects<'t>(json: &'t str, limits: &XmlLimits) -> Result<Option<Vec<&'t str>>, FromJsonError> {
    Ok(parse(json, limits)?.objects().map(Iterator::collect))
}

/// The key and the value of a document that names its payload: `{"name": …}`.
pub(in crate::schema) fn named<'t>(document: &Document<'t>) -> Option<(Cow<'t, str>, NodeId)> {
    let mut members = (document.kind(0) == Kind::Object).then(|| document.members(0))?;
    members.next().filter(|_| members.next().is_none())
}

/// Converts a value of a document to the XML of a payload. With `is_value` it is the value of the element as it stands behind
/// the name of the payload; else always an object, in which a text is `$`.
pub(in crate::schema) fn convert<'t>(
    mapping: &Mapping,
    document: Document<'t>,
    node: NodeId,
    is_value: bool,
    limits: &XmlLimits,
) -> Result<JsonPayload<'t>, FromJsonError> {
    // A prefix that the document may declare itself is none that the walk chooses.
    let has_any = memchr::memmem::find(document.text.as_bytes(), b"\"@xmlns:").is_some();
    let declares = |prefix: &str| has_any && document.text.contains(&format!("\"@xmlns:{prefix}"));
    let mark = |prefix: &str| if declares(prefix) { "_" } else { "" };
    let own = [mark("p\""), mark("xsi\""), mark("a"), mark("n")];
    let mut walk = Walk {
        mapping,
        document: &document,
        most: limits.message_bytes,
        own,
        out: String::with_capacity(document.text.len() + document.text.len() / 2),
        uris: vec![Cow::Borrowed(""), Cow::Borrowed(&mapping.namespace)],
        numbers: HashMap::new(),
        tasks: Vec::new(),
        elements: Vec::with_capacity(document.text.len() / 16),
        default: NONE,
        prefix: NONE,
        content: Vec::new(),
        declared: Vec::new(),
        whole: (!is_value).then_some(node),
    };
    match walk.run(node) {
        Ok(()) => {
            let (xml, elements) = (walk.out, walk.elements);
            Ok(JsonPayload { xml, document, elements })
        }
        Err((node, problem)) => Err(FromJsonError { pointer: document.pointer(node), at: None, problem }),
    }
}

/// A problem of a value.
type Problem = (NodeId, JsonProblem);

/// The number of a namespace, in the order in which they were met.
type Namespace = u32;

/// The kinds of prefixes that the walk chooses: of elements, of the schema instance, of attributes and of values.
const P: usize = 0;
const XSI: usize = 1;
const ATTRIBUTE: usize = 2;
const VALUE: usize = 3;

const NONE: Namespace = 0;
const PAYLOAD: Namespace = 1;

struct Walk<'w, 't> {
    mapping: &'w Mapping,
    document: &'w Document<'t>,
    most: usize,
    /// The begin of the prefixes that the walk chooses, by their kind: they differ from those that the document declares.
    own: [&'static str; 4],
    out: String,
    uris: Vec<Cow<'w, str>>,
    numbers: HashMap<String, Namespace>,
    /// The work that is left, the next at the end.
    tasks: Vec<Task<'w>>,
    elements: Vec<NodeId>,
    /// The default namespace in scope.
    default: Namespace,
    /// The namespace of the prefix for names in scope.
    prefix: Namespace,
    /// The members of an object that are its content, with their places in the schema.
    content: Vec<(usize, NodeId)>,
    /// The prefixes that the object of the element declares, with their namespaces.
    declared: Vec<(String, String)>,
    /// The value of the root, if it has to be an object.
    whole: Option<NodeId>,
}

enum Task<'w> {
    /// An element that the schema declares.
    Element(&'w Child, NodeId),
    /// An element of any name: the object of one property that it is.
    Item(NodeId),
    Text(NodeId),
    /// The end tag, with the place of the name, and the namespaces that were in scope before.
    End {
        name: (u32, u32),
        default: Namespace,
        prefix: Namespace,
    },
}

impl<'w, 't> Walk<'w, 't> {
    fn run(&mut self, node: NodeId) -> Result<(), Problem> {
        self.element(&self.mapping.root, node)?;
        while let Some(task) = self.tasks.pop() {
            match task {
                Task::Element(child, node) => self.element(child, node)?,
                Task::Item(node) => self.any(node)?,
                Task::Text(node) => {
                    let text = self.document.scalar(node);
                    self.text(node, &text)?;
                }
                end @ Task::End { .. } => self.end(end),
            }
            self.check_size()?;
        }
        Ok(())
    }

    fn check_size(&self) -> Result<(), Problem> {
        if self.out.len() > self.most {
            return Err((0, JsonProblem::TooLarge { most: self.most }));
        }
        Ok(())
    }

    /// Writes an end tag.
    fn end(&mut self, end: Task<'w>) {
        let Task::End { name, default, prefix } = end else { return };
        self.out.push_str("</");
        self.out.extend_from_within(name.0 as usize..name.1 as usize);
        self.out.push('>');
        (self.default, self.prefix) = (default, prefix);
    }

    /// Writes a value, and all that is in it, in the vocabulary.
    fn json(&mut self, whole: NodeId) -> Result<(), Problem> {
        let document = self.document;
        let namespace = self.number_of(ns::JSON);
        // The open elements: the end of each, the value behind it, and whether it is a map.
        let mut open: Vec<(Task<'w>, NodeId, bool)> = Vec::new();
        let (mut at, mut key) = (whole, None);
        loop {
            while let Some((end, _, _)) = open.pop_if(|(_, behind, _)| *behind == at) {
                self.end(end);
            }
            if at == document.next(whole) {
                return Ok(());
            }
            if key.is_none() && open.last().is_some_and(|(_, _, is_map)| *is_map) {
                key = Some(at);
                at += 1;
                continue;
            }
            let kind = document.kind(at);
            let end = self.start(namespace, values::element_of(kind), at);
            if let Some(key) = key.take() {
                self.out.push(' ');
                self.out.push_str(values::KEY);
                self.quoted(&document.scalar(key), at)?;
            }
            self.out.push('>');
            match kind {
                Kind::Object | Kind::Array => open.push((end, document.next(at), kind == Kind::Object)),
                Kind::Null => self.end(end),
                Kind::True | Kind::False | Kind::Number | Kind::Plain | Kind::Escaped => {
                    let text = document.scalar(at);
                    self.text(at, &text)?;
                    self.end(end);
                }
            }
            self.check_size()?;
            at += 1;
        }
    }

    fn element(&mut self, child: &'w Child, node: NodeId) -> Result<(), Problem> {
        let namespace = self.number(&child.namespace);
        let end = self.start(namespace, &child.local, node);
        let mapping = self.mapping;
        self.value(Some(child), mapping.form(child.ty), end, node)
    }

    /// An element of any name.
    fn any(&mut self, item: NodeId) -> Result<(), Problem> {
        let single = if self.document.kind(item) == Kind::Object {
            let mut members = self.document.members(item);
            members.next().filter(|_| members.next().is_none())
        } else {
            None
        };
        let Some((name, node)) = single else {
            let expected = "an object with one property, the name of the element";
            return Err(self.mismatch(item, expected, "{\"name\": \"text\"}".to_owned()));
        };
        let (namespace, local) = match name.strip_prefix('{').and_then(|name| name.split_once('}')) {
            Some((namespace, local)) => (self.number_of(namespace), local),
            None => (PAYLOAD, &*name),
        };
        if !is_ncname(local) {
            return Err((item, JsonProblem::Name { name: name.into_owned() }));
        }
        let end = self.start(namespace, local, node);
        self.value(None, &Form::Open, end, node)
    }

    /// Writes a start tag up to its attributes, and returns its end.
    fn start(&mut self, namespace: Namespace, local: &str, node: NodeId) -> Task<'w> {
        self.elements.push(node);
        let (default, prefix) = (self.default, self.prefix);
        self.out.push('<');
        let at = self.out.len() as u32;
        let is_prefixed = self.mapping.prefixed && namespace != NONE;
        if is_prefixed {
            self.out.push_str(self.own[P]);
            self.out.push_str("p:");
        }
        self.out.push_str(local);
        let name = (at, self.out.len() as u32);
        if is_prefixed && self.prefix != namespace {
            self.prefix = namespace;
            self.declare(P, "p", namespace);
        } else if !is_prefixed && self.default != namespace {
            self.default = namespace;
            self.out.push_str(" xmlns=\"");
            let uri = &*self.uris[namespace as usize];
            crate::ladder::escape::escape_lossy(&mut self.out, uri, EscapeContext::Attribute);
            self.out.push('"');
        }
        Task::End { name, default, prefix }
    }

    fn declare(&mut self, kind: usize, prefix: &str, namespace: Namespace) {
        self.out.push_str(" xmlns:");
        self.out.push_str(self.own[kind]);
        self.out.push_str(prefix);
        self.out.push_str("=\"");
        let uri = &*self.uris[namespace as usize];
        crate::ladder::escape::escape_lossy(&mut self.out, uri, EscapeContext::Attribute);
        self.out.push('"');
    }

    /// Writes the rest of an element, whose start tag has no end yet.
    fn value(&mut self, child: Option<&'w Child>, form: &'w Form, end: Task<'w>, node: NodeId) -> Result<(), Problem> {
        let kind = self.document.kind(node);
        match (form, kind) {
            (_, Kind::Null) if child.is_some_and(|child| child.nillable) && self.whole != Some(node) => {
                let namespace = self.number_of(ns::XSI);
                self.declare(XSI, "xsi", namespace);
                self.out.push(' ');
                self.out.push_str(self.own[XSI]);
                self.out.push_str("xsi:nil=\"true\">");
                self.tasks.push(end);
                Ok(())
            }
            (Form::Value(value), kind) if kind != Kind::Object && self.whole != Some(node) => {
                let mut text = self.scalar(value, node)?;
                if matches!(value, Value::Name) {
                    text = self.qualified(&text, &mut 0, node)?.into();
                }
                self.out.push('>');
                self.text(node, &text)?;
                self.tasks.push(end);
                Ok(())
            }
            (Form::Open, Kind::Plain | Kind::Escaped) => {
                self.out.push('>');
                let text = self.document.scalar(node);
                self.text(node, &text)?;
                self.tasks.push(end);
                Ok(())
            }
            (Form::Json(_), kind) if kind == Kind::Object || self.whole != Some(node) => {
                self.out.push('>');
                self.json(node)?;
                self.end(end);
                Ok(())
            }
            (Form::Json(_), _) => Err(self.mismatch(node, "an object", "{\"name\": 1}".to_owned())),
            (form, Kind::Object) => self.object(child, form, end, node),
            (Form::Object(object), _) => Err(self.mismatch(node, "an object", example(object))),
            (Form::Value(_), _) => Err(self.mismatch(node, "an object", "{\"$\": \"text\"}".to_owned())),
            (Form::Open, _) => Err(self.mismatch(node, "a string or an object", "{\"$\": \"text\"}".to_owned())),
        }
    }

    fn object(&mut self, child: Option<&'w Child>, form: &'w Form, end: Task<'w>, node: NodeId) -> Result<(), Problem> {
        let document = self.document;
        let as_type =
            document.members(node).find(|(key, _)| key == "@xsi:type").map(|(_, value)| document.scalar(value));
        let expected = child.and_then(|child| child.as_type.as_deref());
        // A type that the schema of JSON doesn't have.
        let is_other = as_type.is_some() && as_type.as_deref() != expected && !self.mapping.is_json;
        let form = if is_other { &Form::Open } else { form };
        let (known, any_attributes, content) = match form {
            Form::Object(object) => (&object.attributes[..], object.any_attributes, Some(&object.content)),
            Form::Value(_) => (&[][..], false, None),
            Form::Open | Form::Json(_) => (&[][..], true, None),
        };
        let (children, order) = match content {
            Some(Body::Members { children, order }) => (Some(children), *order),
            _ => (None, Order::Sequence),
        };
        self.content.clear();
        self.declared.clear();
        let (mut text, mut prefixes, mut has_xsi, mut is_nil) = (None, 0, false, false);
        let (mut hint, mut is_sorted) = (0, true);
        for (key, value) in document.members(node) {
            let Some(name) = key.strip_prefix('@') else {
                match children.and_then(|children| children.by_key(&key, hint)) {
                    Some(place) => {
                        is_sorted &= self.content.last().is_none_or(|(last, _)| *last <= place);
                        self.content.push((place, value));
                        hint = place + 1;
                    }
                    None if key == "$" && !(self.mapping.is_json && children.is_some()) => text = Some(value),
                    None => return Err((value, self.unknown(key.into_owned(), form))),
                }
                continue;
            };
            if let Some(known) = known.iter().find(|known| known.key == *key) {
                let mut given = self.scalar(&known.value, value)?;
                if matches!(known.value, Value::Name) {
                    given = self.qualified(&given, &mut prefixes, value)?.into();
                }
                self.attribute(&known.namespace, &known.local, &given, &mut prefixes, &mut has_xsi, value)?;
                continue;
            }
            let (namespace, local) = match name.split_once(':').filter(|_| !name.starts_with('{')) {
                Some(("xsi", local)) => (ns::XSI, local),
                Some(("xml", local)) => (ns::XML, local),
                Some(("xmlns", prefix)) if is_ncname(prefix) && !self.mapping.is_json => {
                    let uri = document.scalar(value);
                    self.out.push_str(" xmlns:");
                    self.out.push_str(prefix);
                    self.quoted(&uri, value)?;
                    self.declared.push((prefix.to_owned(), uri.into_owned()));
                    continue;
                }
                _ => match name.strip_prefix('{').and_then(|name| name.split_once('}')) {
                    Some((namespace, local)) => (namespace, local),
                    None => ("", name),
                },
            };
            if !any_attributes && (namespace != ns::XSI || self.mapping.is_json) {
                return Err((value, self.unknown(key.clone().into_owned(), form)));
            }
            if !is_ncname(local) || matches!(namespace, ns::XMLNS) {
                return Err((value, JsonProblem::Name { name: key.into_owned() }));
            }
            let given = match (namespace, local) {
                (ns::XSI, "type") => Cow::Owned(self.qualified(&document.scalar(value), &mut prefixes, value)?),
                (ns::XSI, "nil") => self.scalar(&Value::Boolean, value)?,
                _ => self.scalar(&Value::Text, value)?,
            };
            is_nil |= namespace == ns::XSI && local == "nil" && given == "true";
            self.attribute(namespace, local, &given, &mut prefixes, &mut has_xsi, value)?;
        }
        let first = self.tasks.len();
        match form {
            Form::Value(value) | Form::Object(Object { content: Body::Text(value), .. }) => {
                if matches!(form, Form::Value(_)) && !has_xsi && self.whole != Some(node) {
                    let (expected, example) = value.expected();
                    return Err(self.mismatch(node, expected, example.to_owned()));
                }
                let given = match text {
                    Some(text) if matches!(value, Value::Name) => {
                        let name = self.scalar(value, text)?;
                        Some((text, self.qualified(&name, &mut prefixes, text)?.into()))
                    }
                    Some(text) => Some((text, self.scalar(value, text)?)),
                    None if is_nil || is_optional(form) => None,
                    None => return Err(self.mismatch(node, "an object with the property '$'", missing(value))),
                };
                self.out.push('>');
                if let Some((node, given)) = given {
                    self.text(node, &given)?;
                }
                self.tasks.push(end);
                return Ok(());
            }
            Form::Open if text.is_some_and(|text| matches!(document.kind(text), Kind::Plain | Kind::Escaped)) => {
                self.out.push('>');
                self.tasks.push(end);
                self.tasks.extend(text.map(Task::Text));
                return Ok(());
            }
            Form::Open | Form::Json(_) | Form::Object(_) => self.out.push('>'),
        }
        self.tasks.push(end);
        match text {
            Some(text) if document.kind(text) != Kind::Array => {
                return Err(self.mismatch(
                    text,
                    "an array of the content in document order",
                    "[\"text\", {\"name\": \"text\"}]".to_owned(),
                ));
            }
            Some(_) if !self.content.is_empty() => {
                let name = "$".to_owned();
                return Err((node, self.unknown(name, form)));
            }
            Some(text) => {
                let children = match content {
                    Some(Body::Members { children, .. } | Body::Items { children }) => Some(children),
                    _ => None,
                };
                let has_text = !matches!(form, Form::Object(Object { is_mixed: false, .. }));
                for item in document.items(text) {
                    self.item(children, has_text, item)?;
                }
            }
            None => {
                if !is_sorted && order == Order::Sequence {
                    self.content.sort_by_key(|(place, _)| *place);
                }
                let Some(children) = children else { return Ok(()) };
                if let Some(place) =
                    children.always.iter().find(|place| !self.content.iter().any(|(at, _)| at == *place))
                {
                    return Err((node, JsonProblem::Missing { name: children.list[*place].key.clone() }));
                }
                for &(place, value) in &self.content {
                    let child = &children.list[place];
                    if child.takes_null && document.kind(value) == Kind::Null {
                        continue;
                    }
                    if !child.many {
                        self.tasks.push(Task::Element(child, value));
                        continue;
                    }
                    if document.kind(value) != Kind::Array {
                        return Err(self.mismatch(value, "an array", "[…]".to_owned()));
                    }
                    if child.is_required && document.next(value) == value + 1 {
                        return Err((value, JsonProblem::Empty));
                    }
                    if child.key == ANY {
                        self.tasks.extend(document.items(value).map(Task::Item));
                    } else {
                        self.tasks.extend(document.items(value).map(|item| Task::Element(child, item)));
                    }
                }
            }
        }
        // The end tag comes last, and what stands before it in document order.
        self.tasks[first + 1..].reverse();
        Ok(())
    }

    /// Adds a part of content in document order, in which text may stand or not.
    fn item(&mut self, children: Option<&'w Children>, has_text: bool, item: NodeId) -> Result<(), Problem> {
        let task = match self.document.kind(item) {
            Kind::Plain | Kind::Escaped if has_text => Task::Text(item),
            Kind::Object => {
                let mut members = self.document.members(item);
                let single = members.next().filter(|_| members.next().is_none());
                let known = single.and_then(|(key, value)| {
                    let children = children?;
                    Some((&children.list[children.by_key(&key, 0)?], value))
                });
                match known {
                    Some((child, value)) if child.key != ANY => Task::Element(child, value),
                    _ => Task::Item(item),
                }
            }
            _ => {
                let expected = match has_text {
                    true => "a string or an object with one property, the name of the element",
                    false => "an object with one property, the name of the element",
                };
                return Err(self.mismatch(item, expected, "{\"name\": \"text\"}".to_owned()));
            }
        };
        self.tasks.push(task);
        Ok(())
    }

    /// The literal of a scalar, or of an array for a list.
    fn scalar(&self, value: &Value, node: NodeId) -> Result<Cow<'t, str>, Problem> {
        let kind = self.document.kind(node);
        let refused = || {
            let (expected, example) = value.expected();
            self.mismatch(node, expected, example.to_owned())
        };
        let text = || self.document.scalar(node);
        match (value, kind) {
            (Value::Text | Value::Name, Kind::Plain | Kind::Escaped) => Ok(text()),
            (Value::Boolean, Kind::True) => Ok(Cow::Borrowed("true")),
            (Value::Boolean, Kind::False) => Ok(Cow::Borrowed("false")),
            (Value::Integer { .. }, Kind::Number) => expanded(text(), true).map_err(|problem| (node, problem)),
            (Value::Decimal, Kind::Number) => expanded(text(), false).map_err(|problem| (node, problem)),
            (Value::Float, Kind::Number) => Ok(text()),
            (Value::Boolean | Value::Integer { .. } | Value::Decimal | Value::Float, Kind::Plain | Kind::Escaped)
                if self.mapping.is_json =>
            {
                Err(refused())
            }
            (Value::Integer { is_large: true } | Value::Decimal, Kind::Plain | Kind::Escaped) => Ok(text()),
            // A literal that JSON can't write as a number or a truth value.
            (Value::Boolean | Value::Integer { .. } | Value::Float, Kind::Plain | Kind::Escaped) => {
                let text = text();
                let mut written = String::new();
                push_value(&mut written, value, &text, Literals::Written);
                if written.starts_with('"') { Ok(text) } else { Err(refused()) }
            }
            (Value::List(item), Kind::Array) => {
                let mut out = String::new();
                for word in self.document.items(node) {
                    let literal = self.scalar(item, word)?;
                    if !is_word(&literal) || literal.contains(' ') {
                        return Err((word, JsonProblem::Word));
                    }
                    if !out.is_empty() {
                        out.push(' ');
                    }
                    out.push_str(&literal);
                }
                Ok(Cow::Owned(out))
            }
            (Value::List(_), Kind::Plain | Kind::Escaped) => {
                let text = text();
                let is_plain = text.is_empty() || text.split(' ').all(is_word);
                if is_plain { Err(refused()) } else { Ok(text) }
            }
            (Value::Union(members), _) => {
                let fits = |(member, value): &(_, Value)| {
                    let member: &crate::schema::simple::SimpleType = member;
                    let text = self.scalar(value, node).ok()?;
                    (member.has_prefixes() || member.check(&text, &NoPrefixes).is_ok()).then_some(text)
                };
                members.iter().find_map(fits).ok_or_else(|| match kind {
                    Kind::Null | Kind::Array | Kind::Object => refused(),
                    Kind::True | Kind::False | Kind::Number | Kind::Plain | Kind::Escaped => {
                        let found = text();
                        let mut expected = Vec::new();
                        for mismatch in members.iter().filter_map(|(member, _)| member.check(&found, &NoPrefixes).err())
                        {
                            if !expected.contains(&mismatch.expected) {
                                expected.push(mismatch.expected);
                            }
                        }
                        match expected.is_empty() {
                            true => refused(),
                            false => (node, JsonProblem::Alternatives { found: found.into_owned(), expected }),
                        }
                    }
                })
            }
            _ => Err(refused()),
        }
    }

    /// Writes an attribute of the start tag that has no end yet.
    fn attribute(
        &mut self,
        namespace: &str,
        local: &str,
        value: &str,
        prefixes: &mut usize,
        has_xsi: &mut bool,
        node: NodeId,
    ) -> Result<(), Problem> {
        let prefix = match namespace {
            "" => String::new(),
            ns::XML => "xml:".to_owned(),
            ns::XSI => {
                let number = self.number_of(ns::XSI);
                if !std::mem::replace(has_xsi, true) {
                    self.declare(XSI, "xsi", number);
                }
                format!("{}xsi:", self.own[XSI])
            }
            namespace => match self.declared.iter().find(|(_, known)| known == namespace) {
                Some((prefix, _)) => format!("{prefix}:"),
                None => {
                    *prefixes += 1;
                    let prefix = format!("a{prefixes}");
                    let number = self.number_of(namespace);
                    self.declare(ATTRIBUTE, &prefix, number);
                    format!("{}{prefix}:", self.own[ATTRIBUTE])
                }
            },
        };
        self.out.push(' ');
        self.out.push_str(&prefix);
        self.out.push_str(local);
        self.quoted(value, node)
    }

    fn quoted(&mut self, value: &str, node: NodeId) -> Result<(), Problem> {
        self.out.push_str("=\"");
        let escaped = escape_into(&mut self.out, value, EscapeContext::Attribute);
        escaped.map_err(|character| (node, JsonProblem::Character { character }))?;
        self.out.push('"');
        Ok(())
    }

    fn text(&mut self, node: NodeId, text: &str) -> Result<(), Problem> {
        let escaped = escape_into(&mut self.out, text, EscapeContext::Text);
        escaped.map_err(|character| (node, JsonProblem::Character { character }))
    }

    /// A qualified name with a prefix that is declared at the start tag that has no end yet.
    fn qualified(&mut self, name: &str, prefixes: &mut usize, node: NodeId) -> Result<String, Problem> {
        let Some((namespace, local)) = name.strip_prefix('{').and_then(|name| name.split_once('}')) else {
            return if name.contains(':') || self.default == NONE {
                Ok(name.to_owned())
            } else {
                Err((node, JsonProblem::Name { name: name.to_owned() }))
            };
        };
        *prefixes += 1;
        let prefix = format!("n{prefixes}");
        let number = self.number_of(namespace);
        self.declare(VALUE, &prefix, number);
        Ok(format!("{}{prefix}:{local}", self.own[VALUE]))
    }

    /// The number of the namespace of a declared element.
    #[inline]
    fn number(&mut self, namespace: &str) -> Namespace {
        match namespace {
            "" => NONE,
            namespace if *namespace == *self.mapping.namespace => PAYLOAD,
            namespace => self.number_of(namespace),
        }
    }

    fn number_of(&mut self, namespace: &str) -> Namespace {
        if namespace.is_empty() {
            return NONE;
        }
        if *namespace == *self.mapping.namespace {
            return PAYLOAD;
        }
        if let Some(known) = self.numbers.get(namespace) {
            return *known;
        }
        let number = self.uris.len() as Namespace;
        self.uris.push(Cow::Owned(namespace.to_owned()));
        self.numbers.insert(namespace.to_owned(), number);
        number
    }

    fn mismatch(&self, node: NodeId, expected: &'static str, example: String) -> Problem {
        let found = match self.document.kind(node) {
            Kind::Null => "null",
            Kind::True | Kind::False => "true or false",
            Kind::Number => "a number",
            Kind::Plain | Kind::Escaped => "a string",
            Kind::Array => "an array",
            Kind::Object => "an object",
        };
        (node, JsonProblem::Type { found, expected, example })
    }

    fn unknown(&self, name: String, form: &Form) -> JsonProblem {
        let expected = match form {
            Form::Object(object) => properties(object),
            Form::Value(_) => "'$'".to_owned(),
            Form::Open | Form::Json(_) => "attributes ('@name') and '$'".to_owned(),
        };
        JsonProblem::Unknown { name, expected }
    }
}

fn is_optional(form: &Form) -> bool {
    matches!(form, Form::Object(Object { is_mixed: true, .. }))
}

fn missing(value: &Value) -> String {
    format!("{{\"$\": {}}}", value.expected().1)
}

/// The properties of an object, for a person.
fn properties(object: &Object) -> String {
    let attributes = object.attributes.iter().map(|attribute| attribute.key.as_str());
    let (keys, text) = match &object.content {
        Body::Members { children, .. } => (Some(children.keys()), None),
        Body::Text(_) | Body::Items { .. } => (None, Some("$")),
        Body::Empty => (None, None),
    };
    let names: Vec<String> =
        attributes.chain(keys.into_iter().flatten()).chain(text).map(|name| format!("'{name}'")).collect();
    if names.is_empty() { "an empty object".to_owned() } else { shortened(&names.join(", "), 200) }
}

/// An object in outline.
fn example(object: &Object) -> String {
    let first = object.attributes.first().map(|attribute| attribute.key.as_str());
    let first = first.or_else(|| match &object.content {
        Body::Members { children, .. } => children.keys().next(),
        Body::Text(_) | Body::Items { .. } => Some("$"),
        Body::Empty => None,
    });
    first.map_or_else(|| "{}".to_owned(), |key| format!("{{\"{key}\": …}}"))
}

/// A number without an exponent, which decimals of XML don't have; `whole` drops a fraction of zeros.
fn expanded(number: Cow<'_, str>, whole: bool) -> Result<Cow<'_, str>, JsonProblem> {
    /// The greatest number of digits.
    const MOST: usize = 1_000;
    if is_whole(&number) {
        return Ok(number);
    }
    let (mantissa, exponent) = match number.split_once(['e', 'E']) {
        None if !whole => return Ok(number),
        None => (&*number, 0),
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i64>().unwrap_or(i64::MAX)),
    };
    let (sign, digits) = mantissa.strip_prefix('-').map_or(("", mantissa), |digits| ("-", digits));
    let (before, behind) = digits.split_once('.').unwrap_or((digits, ""));
    let behind = if exponent == 0 && whole { behind.trim_end_matches('0') } else { behind };
    let all = format!("{before}{behind}");
    let point = exponent.saturating_add(before.len() as i64);
    if all.len() > MOST || point.unsigned_abs() > MOST as u64 {
        return Err(JsonProblem::Digits { most: MOST });
    }
    let zeros = |count: i64| "0".repeat(usize::try_from(count).unwrap_or(0));
    let padded = format!("{}{all}{}", zeros(1 - point), zeros(point - all.len() as i64));
    let (before, behind) = padded.split_at(usize::try_from(point.max(1)).unwrap_or(1));
    let before = Some(before.trim_start_matches('0')).filter(|before| !before.is_empty()).unwrap_or("0");
    let behind = behind.trim_end_matches('0');
    let point = if behind.is_empty() { "" } else { "." };
    Ok(Cow::Owned(format!("{sign}{before}{point}{behind}")))
}
