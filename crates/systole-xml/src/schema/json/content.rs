//! The schemas of elements, and of what stands in them.

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::Value;

use super::outline::outline;
use super::shapes::{Shape, elements};
use super::sketch::{Sketch, hint};
use super::{Object, Writer, literal};
use crate::schema::model::{Attribute, Beside, Complex, Content, Element, Order, Particle, Term, Type};
use crate::vocab::ns;

/// The properties of an object.
#[derive(Default)]
pub(super) struct Fields {
    properties: Object,
    required: Vec<Value>,
    /// The properties that wildcards allow, by patterns of their names.
    open: Object,
}

impl Fields {
    pub(super) fn add(&mut self, name: &str, schema: impl Into<Value>, required: bool) {
        self.properties.insert(name.to_owned(), schema.into());
        if required {
            self.required.push(name.into());
        }
    }

    fn open(&mut self, names: &str, words: &str) {
        self.open.insert(names.to_owned(), Sketch::open(words).finish().into());
    }

    pub(super) fn sketch(self) -> Sketch {
        let mut keywords = Object::new();
        keywords.insert("type".to_owned(), "object".into());
        keywords.insert("properties".to_owned(), self.properties.into());
        if !self.required.is_empty() {
            keywords.insert("required".to_owned(), self.required.into());
        }
        if !self.open.is_empty() {
            keywords.insert("patternProperties".to_owned(), self.open.into());
        }
        Sketch::closed(keywords)
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
        // An element that is nil has its attributes, for which null has no place.
        let needs_attributes = |complex: &Complex| complex.attributes.iter().any(|attribute| attribute.required);
        if element.nillable && !self.model.complex(element.ty).is_some_and(needs_attributes) {
            let null = Sketch::with("type", "null").finish();
            let alternatives = vec![Value::Object(std::mem::take(&mut sketch.keywords)), null.into()];
            sketch.keywords.insert("anyOf".to_owned(), alternatives.into());
        }
        sketch.words.extend(element.constraints.iter().cloned());
        sketch
    }

    fn fix(&self, sketch: &mut Sketch, text: &str, value: Option<Value>) {
        match value {
            Some(value) => drop(sketch.keywords.insert("const".to_owned(), value)),
            None => sketch.words.push(format!("always \"{text}\"")),
        }
    }

    /// The schema of an element of a complex type, with the `xsi:type` that it needs.
    pub(super) fn complex(&mut self, complex: &'m Complex, as_type: Option<&(Arc<str>, String)>) -> Sketch {
        match complex.beside {
            Beside::Anything => return Sketch::open("any content: text, elements and attributes"),
            Beside::Unknown => return Sketch::open("the content that its schema tells"),
            Beside::Nothing | Beside::Text => {}
        }
        if complex.is_empty() && as_type.is_none() {
            let mut keywords = Object::new();
            keywords.insert("type".to_owned(), vec!["object", "null"].into());
            return Sketch::closed(keywords).documented(&complex.doc);
        }
        let mut fields = Fields::default();
        if let Some((namespace, name)) = as_type {
            fields.add("@xsi:type", Sketch::with("const", clark(namespace, name)).finish(), true);
        }
        for attribute in &complex.attributes {
            let name = match &*attribute.namespace {
                "" => format!("@{}", attribute.local),
                ns::XML => format!("@xml:{}", attribute.local),
                namespace => format!("@{}", clark(namespace, &attribute.local)),
            };
            fields.add(&name, self.attribute(attribute), attribute.required);
        }
        if let Some(any) = &complex.any_attributes {
            fields.open("^@", any);
        }
        match (&complex.content, complex.beside) {
            (Content::Empty, Beside::Text) => fields.add("$text", Sketch::with("type", "string").finish(), false),
            (Content::Empty, _) => {}
            (Content::Text(ty), _) => {
                let text = self.shape(Shape::plain(*ty), "text").finish();
                fields.add("$text", text, true);
            }
            (Content::Children(particle), beside) => self.children(particle, beside == Beside::Text, &mut fields),
        }
        fields.sketch().documented(&complex.doc)
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

    fn children(&mut self, particle: &'m Particle, mixed: bool, fields: &mut Fields) {
        let parts = parts(particle);
        if mixed || !self.have_names(&parts) {
            return self.ordered(particle, mixed, fields);
        }
        for part in parts.into_iter().filter(|part| part.max != Some(0)) {
            match &part.term {
                Term::Element(element) => {
                    let sketch = self.element(element);
                    let mut schema = occurring(sketch, part.min, part.max).finish();
                    hint(&mut schema, &element.hints);
                    fields.add(&self.key(element), schema, part.min > 0);
                }
                Term::Any(words) => fields.open("^[^@$]", words),
                Term::Group(..) => {
                    let choice = self.choice(elements(part), false);
                    let options = one_of(choice, "oneOf");
                    fields.add("$value", occurring(options, part.min, part.max).finish(), part.min > 0);
                }
            }
        }
    }

    /// Returns whether each part can be a property of its own: an element by its name, one choice as `$value`.
    fn have_names(&self, parts: &[&Particle]) -> bool {
        let (mut names, mut choices, mut wildcards) = (HashSet::new(), 0, 0);
        parts.iter().all(|part| match &part.term {
            Term::Element(element) => names.insert(self.key(element)),
            Term::Any(_) => {
                wildcards += 1;
                wildcards == 1
            }
            Term::Group(Order::Choice, alternatives) => {
                choices += 1;
                choices == 1 && alternatives.iter().all(is_alternative)
            }
            Term::Group(..) => false,
        })
    }

    /// All children as one array in document order.
    fn ordered(&mut self, particle: &'m Particle, mixed: bool, fields: &mut Fields) {
        let mut options = self.choice(elements(particle), mixed);
        let mut keyword = "oneOf";
        if let Some(any) = wildcard(particle) {
            let mut open = Sketch::open(any);
            for count in ["minProperties", "maxProperties"] {
                open.keywords.insert(count.to_owned(), 1.into());
            }
            open.keywords.insert("type".to_owned(), "object".into());
            options.push(open.finish().into());
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
        fields.add("$value", list.finish(), min > 0);
    }

    /// The alternatives of a choice: an object whose only property is the element. One that is always empty is its name,
    /// as long as no text can be taken for it.
    fn choice(&mut self, elements: Vec<&'m Element>, mixed: bool) -> Vec<Value> {
        let (mut seen, mut taken) = (HashSet::new(), HashSet::new());
        let mut options = Vec::new();
        for element in elements {
            if !seen.insert((&element.namespace, &element.local)) {
                continue;
            }
            let mut key = self.key(element);
            if !taken.insert(key.clone()) {
                key = clark(&element.namespace, &element.local);
            }
            let sketch = self.element(element);
            let is_empty = !element.nillable
                && element.as_type.is_none()
                && matches!(&self.model.types[element.ty], Type::Complex(complex) if complex.is_empty());
            let option = match is_empty && !mixed {
                true => Sketch { keywords: Sketch::with("const", key).keywords, ..sketch }.finish(),
                false => {
                    let mut fields = Fields::default();
                    let doc = sketch.doc.clone();
                    let mut schema = Sketch { doc: String::new(), ..sketch }.finish();
                    hint(&mut schema, &element.hints);
                    fields.add(&key, schema, true);
                    fields.sketch().documented(&doc).finish()
                }
            };
            options.push(option.into());
        }
        options
    }

    /// The name of the property of an element: its local name, unless it is in a namespace that is not the payload's.
    fn key(&self, element: &Element) -> String {
        match element.namespace.is_empty() || element.namespace == self.model.root.namespace {
            true => element.local.clone(),
            false => clark(&element.namespace, &element.local),
        }
    }
}

/// A name in Clark notation.
fn clark(namespace: &str, local: &str) -> String {
    format!("{{{namespace}}}{local}")
}

/// The parts of a sequence or of an `xs:all` that occurs once, with those of sequences in it.
fn parts(particle: &Particle) -> Vec<&Particle> {
    let mut parts = Vec::new();
    let mut pending = vec![particle];
    while let Some(part) = pending.pop() {
        match &part.term {
            Term::Group(Order::Sequence | Order::All, inner) if is_once(part) => pending.extend(inner.iter().rev()),
            _ => parts.push(part),
        }
    }
    parts
}

fn is_once(particle: &Particle) -> bool {
    (particle.min, particle.max) == (1, Some(1))
}

/// Returns whether a part of a choice is one element, or a choice of such. Recurses as deep as groups nest.
fn is_alternative(particle: &Particle) -> bool {
    is_once(particle)
        && match &particle.term {
            Term::Element(_) => true,
            Term::Group(Order::Choice, inner) => inner.iter().all(is_alternative),
            Term::Group(..) | Term::Any(_) => false,
        }
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
