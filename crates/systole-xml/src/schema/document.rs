//! The writer of XSD 1.0 documents, from a [`Model`].

use std::collections::HashSet;

use super::model::{
    Attribute, Bound, Complex, Content, Element, Enumerator, Model, Order, Particle, Simple, Term, Type, TypeId,
    Variety,
};
use super::source::tree::NodeId;
use crate::ladder::escape::{EscapeContext, escape_lossy};
use crate::vocab::ns;

/// The elements of a document that define the simple types of a model, by their places in the order of the document.
pub(super) type Defined = Vec<(NodeId, TypeId)>;

/// Writes the schema document of a model that was made from a Rust type.
pub(super) fn write(model: &Model) -> (String, Defined) {
    let namespace = &*model.root.namespace;
    let imported = imported(model);
    let mut out = Writer { pen: Pen::new(), defined: Vec::new(), model };
    let mut attributes = vec![("xmlns:xs", ns::XSD)];
    if !namespace.is_empty() {
        attributes.extend([("xmlns:tns", namespace), ("targetNamespace", namespace)]);
    }
    if !imported.is_empty() {
        attributes.push(("xmlns:json", ns::JSON));
    }
    attributes.push(("elementFormDefault", "qualified"));
    out.pen.start("xs:schema", &attributes);
    if !imported.is_empty() {
        out.pen.empty("xs:import", &[("namespace", ns::JSON)]);
    }
    out.element(&model.root, &[]);
    for id in (0..model.types.len()).filter(|id| !imported.contains(id)) {
        out.named(id);
    }
    out.pen.end();
    (out.pen.text, out.defined)
}

/// The types of the vocabulary of JSON values, if the model has such values.
fn imported(model: &Model) -> HashSet<TypeId> {
    let mut imported = HashSet::new();
    let mut pending: Vec<TypeId> = Vec::new();
    let own = model.types.iter().filter_map(|ty| match ty {
        Type::Complex(Complex { content: Content::Children(particle), .. }) => Some(particle),
        _ => None,
    });
    own.for_each(|particle| vocabulary_in(particle, &mut pending));
    while let Some(id) = pending.pop() {
        if !imported.insert(id) {
            continue;
        }
        if let Type::Complex(complex) = &model.types[id] {
            pending.extend(complex.attributes.iter().map(|attribute| attribute.ty));
            match &complex.content {
                Content::Text(ty) => pending.push(*ty),
                Content::Children(particle) => vocabulary_in(particle, &mut pending),
                Content::Empty => {}
            }
        }
    }
    imported
}

/// The types of the elements of the vocabulary in a particle. Recurses as deep as groups nest, of which a model bounds the depth.
fn vocabulary_in(particle: &Particle, found: &mut Vec<TypeId>) {
    match &particle.term {
        Term::Element(element) => found.extend((*element.namespace == *ns::JSON).then_some(element.ty)),
        Term::Group(_, parts) => parts.iter().for_each(|part| vocabulary_in(part, found)),
        Term::Any(_) => {}
    }
}

struct Writer<'a> {
    pen: Pen,
    defined: Defined,
    model: &'a Model,
}

impl Writer<'_> {
    fn element(&mut self, element: &Element, occurs: &[(&str, &str)]) {
        if *element.namespace == *ns::JSON && self.model.root.namespace != element.namespace {
            let name = format!("json:{}", element.local);
            let attributes: Vec<_> = [("ref", name.as_str())].into_iter().chain(occurs.iter().copied()).collect();
            return self.pen.empty("xs:element", &attributes);
        }
        let named = self.type_name(element.ty);
        let mut attributes = vec![("name", element.local.as_str())];
        attributes.extend(named.as_deref().map(|name| ("type", name)));
        attributes.extend(occurs);
        attributes.extend(element.nillable.then_some(("nillable", "true")));
        attributes.extend(element.fixed.as_deref().map(|fixed| ("fixed", fixed)));
        if named.is_some() && element.doc.is_empty() {
            return self.pen.empty("xs:element", &attributes);
        }
        self.pen.start("xs:element", &attributes);
        self.documentation(&element.doc);
        if named.is_none() {
            self.definition(element.ty, &[]);
        }
        self.pen.end();
    }

    /// The reference to a type; `None` if the type is written where it is used.
    fn type_name(&self, id: TypeId) -> Option<String> {
        let name = match &self.model.types[id] {
            Type::Complex(complex) => complex.name.as_ref(),
            Type::Simple(simple) => match (&simple.name, &simple.variety) {
                (None, Variety::Atomic(base)) if simple.facets.is_empty() => return Some(format!("xs:{}", base.name)),
                (name, _) => name.as_ref(),
            },
        }?;
        let prefix = if self.model.root.namespace.is_empty() { "" } else { "tns:" };
        Some(format!("{prefix}{name}"))
    }

    fn named(&mut self, id: TypeId) {
        let name = match &self.model.types[id] {
            Type::Complex(complex) => &complex.name,
            Type::Simple(simple) => &simple.name,
        };
        if let Some(name) = name {
            self.definition(id, &[("name", name)]);
        }
    }

    fn definition(&mut self, id: TypeId, attributes: &[(&str, &str)]) {
        match &self.model.types[id] {
            Type::Complex(complex) => self.complex(complex, attributes),
            Type::Simple(simple) => {
                self.defined.push((self.pen.elements, id));
                self.simple(simple, attributes);
            }
        }
    }

    fn complex(&mut self, complex: &Complex, attributes: &[(&str, &str)]) {
        let empty = matches!(complex.content, Content::Empty) && complex.attributes.is_empty();
        if empty && complex.doc.is_empty() {
            return self.pen.empty("xs:complexType", attributes);
        }
        self.pen.start("xs:complexType", attributes);
        self.documentation(&complex.doc);
        match &complex.content {
            Content::Empty => self.attributes(&complex.attributes),
            Content::Children(particle) => {
                self.particle(particle);
                self.attributes(&complex.attributes);
            }
            Content::Text(ty) => self.text(*ty, &complex.attributes),
        }
        self.pen.end();
    }

    /// Writes text with attributes: it extends a simple type, which therefore has a name.
    fn text(&mut self, ty: TypeId, attributes: &[Attribute]) {
        let base = self.type_name(ty).unwrap_or_else(|| "xs:string".to_owned());
        self.pen.start("xs:simpleContent", &[]);
        self.pen.start("xs:extension", &[("base", &base)]);
        self.attributes(attributes);
        self.pen.end();
        self.pen.end();
    }

    fn attributes(&mut self, attributes: &[Attribute]) {
        for attribute in attributes {
            let named = self.type_name(attribute.ty);
            let mut given = vec![("name", attribute.local.as_str())];
            given.extend(named.as_deref().map(|name| ("type", name)));
            given.extend(attribute.required.then_some(("use", "required")));
            given.extend(attribute.fixed.as_deref().map(|fixed| ("fixed", fixed)));
            if named.is_some() && attribute.doc.is_empty() {
                self.pen.empty("xs:attribute", &given);
                continue;
            }
            self.pen.start("xs:attribute", &given);
            self.documentation(&attribute.doc);
            if named.is_none() {
                self.definition(attribute.ty, &[]);
            }
            self.pen.end();
        }
    }

    fn particle(&mut self, particle: &Particle) {
        let min = particle.min.to_string();
        let max = particle.max.map_or("unbounded".to_owned(), |max| max.to_string());
        let mut occurs = Vec::new();
        occurs.extend((particle.min != 1).then_some(("minOccurs", min.as_str())));
        occurs.extend((particle.max != Some(1)).then_some(("maxOccurs", max.as_str())));
        match &particle.term {
            Term::Element(element) => self.element(element, &occurs),
            Term::Any(_) => self.pen.empty("xs:any", &occurs),
            Term::Group(order, particles) => {
                let tag = match order {
                    Order::Sequence => "xs:sequence",
                    Order::Choice => "xs:choice",
                    Order::All => "xs:all",
                };
                self.pen.start(tag, &occurs);
                particles.iter().for_each(|particle| self.particle(particle));
                self.pen.end();
            }
        }
    }

    /// Writes a simple type. The patterns of one restriction are alternatives, so each further one restricts the type
    /// before it.
    fn simple(&mut self, simple: &Simple, attributes: &[(&str, &str)]) {
        self.pen.start("xs:simpleType", attributes);
        self.documentation(&simple.doc);
        let base = match &simple.variety {
            Variety::Atomic(base) => format!("xs:{}", base.name),
            Variety::List(_) | Variety::Union(_) => "xs:string".to_owned(),
        };
        let patterns = &simple.facets.patterns;
        match patterns.len() {
            0 | 1 => self.pen.start("xs:restriction", &[("base", &base)]),
            nested => {
                for _ in 1..nested {
                    self.pen.start("xs:restriction", &[]);
                    self.pen.start("xs:simpleType", &[]);
                }
                self.pen.start("xs:restriction", &[("base", &base)]);
                for pattern in &patterns[1..] {
                    self.pen.empty("xs:pattern", &[("value", &pattern.xsd)]);
                    self.pen.end();
                    self.pen.end();
                }
            }
        }
        if let Some(pattern) = patterns.first() {
            self.pen.empty("xs:pattern", &[("value", &pattern.xsd)]);
        }
        self.facets(simple);
        self.pen.end();
        self.pen.end();
    }

    fn facets(&mut self, simple: &Simple) {
        let facets = &simple.facets;
        for (name, length) in [("xs:minLength", facets.min_length), ("xs:maxLength", facets.max_length)] {
            if let Some(length) = length {
                self.pen.empty(name, &[("value", &length.to_string())]);
            }
        }
        let bound = |bound: &Bound, inclusive, exclusive| if bound.exclusive { exclusive } else { inclusive };
        if let Some(min) = &facets.min {
            self.pen.empty(bound(min, "xs:minInclusive", "xs:minExclusive"), &[("value", &min.value)]);
        }
        if let Some(max) = &facets.max {
            self.pen.empty(bound(max, "xs:maxInclusive", "xs:maxExclusive"), &[("value", &max.value)]);
        }
        for Enumerator { value, doc, .. } in &facets.values {
            if doc.is_empty() {
                self.pen.empty("xs:enumeration", &[("value", value)]);
            } else {
                self.pen.start("xs:enumeration", &[("value", value)]);
                self.documentation(doc);
                self.pen.end();
            }
        }
    }

    fn documentation(&mut self, doc: &str) {
        if doc.is_empty() {
            return;
        }
        self.pen.start("xs:annotation", &[]);
        self.pen.text("xs:documentation", doc);
        self.pen.end();
    }
}

/// A writer of a document, each element on a line of its own.
struct Pen {
    text: String,
    /// The names of the elements that have not ended.
    open: Vec<&'static str>,
    /// The number of elements that have started.
    elements: NodeId,
}

impl Pen {
    /// A writer that has written the XML declaration.
    fn new() -> Self {
        let text = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n".to_owned();
        Self { text, open: Vec::new(), elements: 0 }
    }

    /// Starts an element.
    fn start(&mut self, name: &'static str, attributes: &[(&str, &str)]) {
        self.tag(name, attributes, ">\n");
        self.open.push(name);
    }

    /// Writes an element without content.
    fn empty(&mut self, name: &'static str, attributes: &[(&str, &str)]) {
        self.tag(name, attributes, "/>\n");
    }

    /// Writes an element with text alone.
    fn text(&mut self, name: &'static str, text: &str) {
        self.tag(name, &[], ">");
        escape_lossy(&mut self.text, text, EscapeContext::Text);
        self.end_tag(name);
    }

    /// Ends the element that started last.
    fn end(&mut self) {
        if let Some(name) = self.open.pop() {
            self.indent();
            self.end_tag(name);
        }
    }

    fn tag(&mut self, name: &str, attributes: &[(&str, &str)], end: &str) {
        self.indent();
        self.text.push('<');
        self.text.push_str(name);
        for (attribute, value) in attributes {
            self.text.extend([" ", attribute, "=\""]);
            escape_lossy(&mut self.text, value, EscapeContext::Attribute);
            self.text.push('"');
        }
        self.text.push_str(end);
        self.elements += 1;
    }

    fn end_tag(&mut self, name: &str) {
        self.text.extend(["</", name, ">\n"]);
    }

    fn indent(&mut self) {
        self.text.extend(std::iter::repeat_n("  ", self.open.len()));
    }
}
