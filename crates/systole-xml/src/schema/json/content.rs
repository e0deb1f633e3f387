//! The schemas of elements, and of what stands in them.

use serde_json::Value;

use super::mapping::{ANY, Body, attribute_key, body, clark, element_key, is_bare};
use super::outline::outline;
use super::presence::Presence;
use super::shapes::{Shape, elements};
use super::sketch::{Sketch, hint};
use super::{Object, Writer, literal};
use crate::schema::model::{Attribute, Beside, Complex, Content, Element, Order, Particle, Term};

/// The properties of an object.
#[derive(Default)]
pub(super) struct Fields<'m> {
    properties: Object,
    required: Vec<Value>,
    /// The attributes that a wildcard allows, in words.
    open: Option<&'m str>,
    /// The properties that may stand together.
    presence: Object,
}

impl Fields<'_> {
    pub(super) fn add(&mut self, name: &str, schema: impl Into<Value>, required: bool) {
        self.properties.insert(name.to_owned(), schema.into());
        if required {
            self.required.push(name.into());
        }
    }

    pub(super) fn sketch(self) -> Sketch {
        let mut keywords = Object::new();
        keywords.insert("type".to_owned(), "object".into());
        let names: Vec<Value> =
            self.properties.keys().filter(|name| !name.starts_with('@')).cloned().map(Value::String).collect();
        keywords.insert("properties".to_owned(), self.properties.into());
        if !self.required.is_empty() {
            keywords.insert("required".to_owned(), self.required.into());
        }
        keywords.extend(self.presence);
        let Some(words) = self.open else { return Sketch::closed(keywords) };
        let mut any = Sketch::open(words);
        any.keywords.insert("type".to_owned(), "string".into());
        keywords.insert("additionalProperties".to_owned(), any.finish().into());
        let attribute: Value = Sketch::with("pattern", "^@").finish().into();
        let name = match names.is_empty() {
            true => attribute,
            false => {
                Sketch::with("anyOf", vec![attribute, Sketch::with("enum", names).finish().into()]).finish().into()
            }
        };
        keywords.insert("propertyNames".to_owned(), name);
        Sketch { keywords, ..Sketch::default() }
    }
}

impl<'m> Writer<'m> {
    /// The schema of one element, without its author's examples.
    pub(super) fn element(&mut self, element: &'m Element) -> Sketch {
        let mut sketch = self.shape(Shape::of(element), &element.local).documented(&element.doc);
        if let Some(fixed) = &element.fixed {
            let simple = self.model.simple(element.ty);
            self.fix(&mut sketch, fixed, simple.and_then(|simple| literal::value(self.model, simple, fixed)));
        }
        if element.nillable {
            let mut alternatives = vec![Value::Object(std::mem::take(&mut sketch.keywords))];
            let complex = self.model.complex(element.ty);
            let attributes = complex.map_or(&[][..], |complex| &complex.attributes);
            // An element that is nil has its attributes, for which null has no place.
            if !attributes.iter().any(|attribute| attribute.required) && element.as_type.is_none() {
                alternatives.push(Sketch::with("type", "null").finish().into());
            }
            if let Some(complex) = complex.filter(|complex| !is_bare(complex)) {
                alternatives.push(self.nil(complex, element).into());
            }
            sketch.keywords.insert("anyOf".to_owned(), alternatives.into());
        }
        sketch.words.extend(element.constraints.iter().cloned());
        sketch
    }

    /// The schema of an element that is nil, with its attributes.
    fn nil(&mut self, complex: &'m Complex, element: &'m Element) -> Object {
        let mut fields = Fields::default();
        fields.add("@xsi:nil", Sketch::with("const", true).finish(), true);
        self.attributes(complex, element.as_type.as_ref().map(|(namespace, name)| clark(namespace, name)), &mut fields);
        fields.sketch().finish()
    }

    fn fix(&self, sketch: &mut Sketch, text: &str, value: Option<Value>) {
        match value {
            Some(value) => drop(sketch.keywords.insert("const".to_owned(), value)),
            None => sketch.words.push(format!("always \"{text}\"")),
        }
    }

    /// The schema of an element of a complex type, with the `xsi:type` that it needs.
    pub(super) fn complex(&mut self, complex: &'m Complex, as_type: Option<String>) -> Sketch {
        match complex.beside {
            Beside::Anything => return self.any("any content: text, elements and attributes"),
            Beside::Unknown => return self.any("the content that its schema tells"),
            Beside::Nothing | Beside::Text => {}
        }
        if let (Content::Text(ty), true, None) = (&complex.content, is_bare(complex), &as_type) {
            return self.shape(Shape::plain(*ty), "text").documented(&complex.doc);
        }
        let mut fields = Fields::default();
        self.attributes(complex, as_type, &mut fields);
        match (&complex.content, complex.beside) {
            (Content::Empty, Beside::Text) => fields.add("$", Sketch::with("type", "string").finish(), false),
            (Content::Empty, _) => {}
            (Content::Text(ty), _) => {
                let text = self.shape(Shape::plain(*ty), "text").finish();
                fields.add("$", text, true);
            }
            (Content::Children(particle), beside) => self.children(particle, beside == Beside::Text, &mut fields),
        }
        fields.sketch().documented(&complex.doc)
    }

    fn attributes(&mut self, complex: &'m Complex, as_type: Option<String>, fields: &mut Fields<'m>) {
        if let Some(name) = as_type {
            fields.add("@xsi:type", Sketch::with("const", name).finish(), true);
        }
        for attribute in &complex.attributes {
            let name = format!("@{}", attribute_key(&attribute.namespace, &attribute.local));
            fields.add(&name, self.attribute(attribute), attribute.required);
        }
        if let Some(any) = &complex.any_attributes {
            fields.open = Some(any);
        }
    }

    fn attribute(&mut self, attribute: &'m Attribute) -> Object {
        let mut sketch = self.shape(Shape::plain(attribute.ty), &attribute.local).documented(&attribute.doc);
        if let Some(fixed) = &attribute.fixed {
            let simple = self.model.simple(attribute.ty);
            self.fix(&mut sketch, fixed, simple.and_then(|simple| literal::value(self.model, simple, fixed)));
        }
        let mut schema = sketch.finish();
        hint(&mut schema, &attribute.hints);
        schema
    }

    fn children(&mut self, particle: &'m Particle, mixed: bool, fields: &mut Fields<'m>) {
        let Body::Members { .. } = body(particle, mixed, &self.model.root.namespace) else {
            return self.ordered(particle, mixed, fields);
        };
        for part in leaves(particle) {
            match &part.term {
                Term::Element(element) => {
                    let sketch = self.element(element);
                    let mut schema = match element.json.as_deref() {
                        Some(json) if json.many => listed(sketch, part.min, part.max, json.null).finish(),
                        _ => occurring(sketch, part.min, part.max).finish(),
                    };
                    hint(&mut schema, &element.hints);
                    fields.add(&element_key(element, &self.model.root.namespace), schema, false);
                }
                Term::Any(words) => {
                    let item = self.item_of_any(words);
                    fields.add(ANY, array(item, part.min, part.max).finish(), false);
                }
                Term::Group(..) => {}
            }
        }
        let (required, presence) = Presence::of(particle, &self.model.root.namespace).keywords();
        fields.required.extend(required);
        fields.presence = presence;
    }

    /// All children as one array in document order.
    fn ordered(&mut self, particle: &'m Particle, mixed: bool, fields: &mut Fields<'m>) {
        let mut options = self.choice(elements(particle));
        let mut keyword = "oneOf";
        if let Some(any) = wildcard(particle) {
            options.push(self.item_of_any(any).into());
            keyword = "anyOf";
        }
        let (min, max) = if mixed { (0, None) } else { count(particle) };
        if mixed {
            options.push(Sketch::with("type", "string").finish().into());
        }
        let items = one_of(options, keyword).finish();
        let mut list = array(items, min, max);
        let text = if mixed { "text, and " } else { "" };
        list.words.push(format!("{text}in this order: {}", outline(particle)));
        fields.add("$", list.finish(), min > 0);
    }

    /// The items of an array of elements: an object whose only property is the element.
    fn choice(&mut self, elements: Vec<&'m Element>) -> Vec<Value> {
        let namespace = &self.model.root.namespace;
        let mut known = std::collections::HashSet::new();
        let mut taken = std::collections::HashSet::new();
        let mut options = Vec::new();
        for element in elements {
            if !known.insert((&*element.namespace, &*element.local)) {
                continue;
            }
            let mut key = element_key(element, namespace);
            if !taken.insert(key.clone()) {
                key = clark(&element.namespace, &element.local);
                taken.insert(key.clone());
            }
            let sketch = self.element(element);
            let mut fields = Fields::default();
            let doc = sketch.doc.clone();
            let mut schema = Sketch { doc: String::new(), ..sketch }.finish();
            hint(&mut schema, &element.hints);
            fields.add(&key, schema, true);
            options.push(fields.sketch().documented(&doc).finish().into());
        }
        options
    }

    /// An element that a wildcard allows, in words.
    fn item_of_any(&mut self, words: &str) -> Object {
        let element = self.any("").finish();
        let mut item = Sketch::open(words);
        item.keywords.insert("type".to_owned(), "object".into());
        for count in ["minProperties", "maxProperties"] {
            item.keywords.insert(count.to_owned(), 1.into());
        }
        item.keywords.insert("additionalProperties".to_owned(), element.into());
        item.finish()
    }
}

/// The elements and wildcards in a particle whose groups occur once at most, in the order of the schema.
fn leaves(particle: &Particle) -> Vec<&Particle> {
    let mut leaves = Vec::new();
    let mut pending = vec![particle];
    while let Some(part) = pending.pop() {
        match &part.term {
            _ if part.max == Some(0) => {}
            Term::Group(_, inner) => pending.extend(inner.iter().rev()),
            Term::Element(_) | Term::Any(_) => leaves.push(part),
        }
    }
    leaves
}

/// The words of the first wildcard in a particle.
fn wildcard(particle: &Particle) -> Option<&str> {
    match &particle.term {
        Term::Any(words) => Some(words),
        Term::Element(_) => None,
        Term::Group(_, parts) => parts.iter().find_map(wildcard),
    }
}

/// The least and the greatest number of elements that a particle makes.
fn count(particle: &Particle) -> (u64, Option<u64>) {
    let (min, max) = match &particle.term {
        Term::Element(_) | Term::Any(_) => (1, Some(1)),
        Term::Group(order, parts) => {
            let counts = parts.iter().map(count);
            let most = |one: Option<u64>, other: Option<u64>| Some((one?, other?));
            match order {
                Order::Choice => {
                    let (mins, maxs): (Vec<_>, Vec<_>) = counts.unzip();
                    let max = maxs.into_iter().try_fold(0, |most, max| Some(max?.max(most)));
                    (mins.into_iter().min().unwrap_or(0), max)
                }
                Order::Sequence | Order::All => counts.fold((0u64, Some(0u64)), |(min, max), (least, greatest)| {
                    let max = most(max, greatest).map(|(max, greatest)| max.saturating_add(greatest));
                    (min.saturating_add(least), max)
                }),
            }
        }
    };
    let times = |max: u64| particle.max.map(|times| times.saturating_mul(max));
    (min.saturating_mul(particle.min), max.and_then(|max| if max == 0 { Some(0) } else { times(max) }))
}

/// The schema of a property that stands for elements of this number.
fn occurring(sketch: Sketch, min: u64, max: Option<u64>) -> Sketch {
    if max == Some(1) {
        return sketch;
    }
    let doc = sketch.doc.clone();
    array(Sketch { doc: String::new(), ..sketch }.finish(), min, max).documented(&doc)
}

/// The schema of an array of a JSON Schema, which may be null.
fn listed(sketch: Sketch, min: u64, max: Option<u64>, null: bool) -> Sketch {
    let doc = sketch.doc.clone();
    let list = array(Sketch { doc: String::new(), ..sketch }.finish(), min, max);
    if !null {
        return list.documented(&doc);
    }
    let options: Vec<Value> = vec![list.finish().into(), Sketch::with("type", "null").finish().into()];
    Sketch::with("anyOf", options).documented(&doc)
}

/// An array with a number of items.
pub(super) fn array(items: Object, min: u64, max: Option<u64>) -> Sketch {
    let mut sketch = Sketch::with("type", "array");
    sketch.keywords.insert("items".to_owned(), items.into());
    if min > 0 {
        sketch.keywords.insert("minItems".to_owned(), min.into());
    }
    if let Some(max) = max {
        sketch.keywords.insert("maxItems".to_owned(), max.into());
    }
    sketch
}

/// One of several schemas; nothing fits none of them.
pub(super) fn one_of(mut options: Vec<Value>, keyword: &str) -> Sketch {
    match (options.pop(), options.is_empty()) {
        (None, _) => Sketch::with("not", Object::new()),
        (Some(Value::Object(only)), true) => Sketch { keywords: only, ..Sketch::default() },
        (Some(last), _) => {
            options.push(last);
            Sketch::with(keyword, options)
        }
    }
}
