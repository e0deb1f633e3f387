//! The writer of XSD 1.0 documents, from a [`Model`].

use super::model::{
    Attribute, Bound, Complex, Content, Element, Enumerator, Model, Order, Particle, Simple, Term, Type, TypeId,
    Variety,
};
use crate::ladder::escape::{EscapeContext, escape_lossy};
use crate::vocab::ns;

/// Writes the schema document of a model that was made from a Rust type.
pub(crate) fn write(model: &Model) -> String {
    let namespace = &*model.root.namespace;
    let mut out = Writer { out: "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n".to_owned(), open: Vec::new(), model };
    let mut attributes = vec![("xmlns:xs", ns::XSD)];
    if !namespace.is_empty() {
        attributes.extend([("xmlns:tns", namespace), ("targetNamespace", namespace)]);
    }
    attributes.push(("elementFormDefault", "qualified"));
    out.start("xs:schema", &attributes);
    out.element(&model.root, &[]);
    for ty in &*model.types {
        match ty {
            Type::Complex(complex) => out.named_complex(complex),
            Type::Simple(simple) => out.named_simple(simple),
        }
    }
    out.end();
    out.out
}

/// Writes elements, each on a line of its own.
struct Writer<'a> {
    out: String,
    open: Vec<&'static str>,
    model: &'a Model,
}

impl Writer<'_> {
    fn element(&mut self, element: &Element, occurs: &[(&str, &str)]) {
        let named = self.type_name(element.ty);
        let mut attributes = vec![("name", element.local.as_str())];
        attributes.extend(named.as_deref().map(|name| ("type", name)));
        attributes.extend(occurs);
        if named.is_some() && element.doc.is_empty() {
            return self.empty("xs:element", &attributes);
        }
        self.start("xs:element", &attributes);
        self.documentation(&element.doc);
        if named.is_none() {
            self.anonymous(element.ty);
        }
        self.end();
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

    fn anonymous(&mut self, id: TypeId) {
        match &self.model.types[id] {
            Type::Complex(complex) => self.complex(complex, &[]),
            Type::Simple(simple) => self.simple(simple, &[]),
        }
    }

    fn named_complex(&mut self, complex: &Complex) {
        if let Some(name) = &complex.name {
            self.complex(complex, &[("name", name)]);
        }
    }

    fn named_simple(&mut self, simple: &Simple) {
        if let Some(name) = &simple.name {
            self.simple(simple, &[("name", name)]);
        }
    }

    fn complex(&mut self, complex: &Complex, attributes: &[(&str, &str)]) {
        let empty = matches!(complex.content, Content::Empty) && complex.attributes.is_empty();
        if empty && complex.doc.is_empty() {
            return self.empty("xs:complexType", attributes);
        }
        self.start("xs:complexType", attributes);
        self.documentation(&complex.doc);
        match &complex.content {
            Content::Empty => self.attributes(&complex.attributes),
            Content::Children(particle) => {
                self.particle(particle);
                self.attributes(&complex.attributes);
            }
            Content::Text(ty) => self.text(*ty, &complex.attributes),
        }
        self.end();
    }

    /// Writes text with attributes: it extends a simple type, which therefore has a name.
    fn text(&mut self, ty: TypeId, attributes: &[Attribute]) {
        let base = self.type_name(ty).unwrap_or_else(|| "xs:string".to_owned());
        self.start("xs:simpleContent", &[]);
        self.start("xs:extension", &[("base", &base)]);
        self.attributes(attributes);
        self.end();
        self.end();
    }

    fn attributes(&mut self, attributes: &[Attribute]) {
        for attribute in attributes {
            let named = self.type_name(attribute.ty);
            let mut given = vec![("name", attribute.local.as_str())];
            given.extend(named.as_deref().map(|name| ("type", name)));
            given.extend(attribute.required.then_some(("use", "required")));
            if named.is_some() && attribute.doc.is_empty() {
                self.empty("xs:attribute", &given);
                continue;
            }
            self.start("xs:attribute", &given);
            self.documentation(&attribute.doc);
            if named.is_none() {
                self.anonymous(attribute.ty);
            }
            self.end();
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
            Term::Any(_) => self.empty("xs:any", &occurs),
            Term::Group(order, particles) => {
                let tag = match order {
                    Order::Sequence => "xs:sequence",
                    Order::Choice => "xs:choice",
                    Order::All => "xs:all",
                };
                self.start(tag, &occurs);
                particles.iter().for_each(|particle| self.particle(particle));
                self.end();
            }
        }
    }

    /// Writes a simple type. The patterns of one restriction are alternatives, so each further one restricts the type
    /// before it.
    fn simple(&mut self, simple: &Simple, attributes: &[(&str, &str)]) {
        self.start("xs:simpleType", attributes);
        self.documentation(&simple.doc);
        let base = match &simple.variety {
            Variety::Atomic(base) => format!("xs:{}", base.name),
            Variety::List(_) | Variety::Union(_) => "xs:string".to_owned(),
        };
        let patterns = &simple.facets.patterns;
        match patterns.len() {
            0 | 1 => self.start("xs:restriction", &[("base", &base)]),
            nested => {
                for _ in 1..nested {
                    self.start("xs:restriction", &[]);
                    self.start("xs:simpleType", &[]);
                }
                self.start("xs:restriction", &[("base", &base)]);
                for pattern in &patterns[1..] {
                    self.empty("xs:pattern", &[("value", &pattern.xsd)]);
                    self.end();
                    self.end();
                }
            }
        }
        if let Some(pattern) = patterns.first() {
            self.empty("xs:pattern", &[("value", &pattern.xsd)]);
        }
        self.facets(simple);
        self.end();
        self.end();
    }

    fn facets(&mut self, simple: &Simple) {
        let facets = &simple.facets;
        for (name, length) in [("xs:minLength", facets.min_length), ("xs:maxLength", facets.max_length)] {
            if let Some(length) = length {
                self.empty(name, &[("value", &length.to_string())]);
            }
        }
        let bound = |bound: &Bound, inclusive, exclusive| if bound.exclusive { exclusive } else { inclusive };
        if let Some(min) = &facets.min {
            self.empty(bound(min, "xs:minInclusive", "xs:minExclusive"), &[("value", &min.value)]);
        }
        if let Some(max) = &facets.max {
            self.empty(bound(max, "xs:maxInclusive", "xs:maxExclusive"), &[("value", &max.value)]);
        }
        for Enumerator { value, doc, .. } in &facets.values {
            if doc.is_empty() {
                self.empty("xs:enumeration", &[("value", value)]);
            } else {
                self.start("xs:enumeration", &[("value", value)]);
                self.documentation(doc);
                self.end();
            }
        }
    }

    fn documentation(&mut self, doc: &str) {
        if doc.is_empty() {
            return;
        }
        self.start("xs:annotation", &[]);
        self.tag("xs:documentation", &[]);
        self.out.push('>');
        escape_lossy(&mut self.out, doc, EscapeContext::Text);
        self.out.push_str("</xs:documentation>\n");
        self.end();
    }

    fn start(&mut self, name: &'static str, attributes: &[(&str, &str)]) {
        self.tag(name, attributes);
        self.out.push_str(">\n");
        self.open.push(name);
    }

    fn empty(&mut self, name: &str, attributes: &[(&str, &str)]) {
        self.tag(name, attributes);
        self.out.push_str("/>\n");
    }

    fn tag(&mut self, name: &str, attributes: &[(&str, &str)]) {
        self.indent();
        self.out.push('<');
        self.out.push_str(name);
        for (name, value) in attributes {
            self.out.push(' ');
            self.out.push_str(name);
            self.out.push_str("=\"");
            escape_lossy(&mut self.out, value, EscapeContext::Attribute);
            self.out.push('"');
        }
    }

    fn end(&mut self) {
        let Some(name) = self.open.pop() else { return };
        self.indent();
        self.out.push_str("</");
        self.out.push_str(name);
        self.out.push_str(">\n");
    }

    fn indent(&mut self) {
        self.out.extend(std::iter::repeat_n(' ', 2 * self.open.len()));
    }
}
