//! The content of a schema, from a Rust type or from `.xsd` documents: enough to write an
//! example, a prompt and a JSON Schema, and, for Rust types, the XSD itself. Validation of messages never uses it.

use std::sync::Arc;

use serde_json::Value;

use super::pattern::Pattern;
use super::simple::{SimpleType, XsdType};

/// Index of a type in [`Model::types`]; types refer to each other, and to themselves, by it.
pub(crate) type TypeId = usize;

/// The element of one payload with the types it needs.
#[derive(Debug, Clone)]
pub(crate) struct Model {
    pub(crate) root: Element,
    /// The types of all payloads of the schema, which often share them.
    pub(crate) types: Arc<Vec<Type>>,
    /// True if its particles name all elements of an instance, but for wildcards and `xsi:type`.
    pub(crate) is_whole: bool,
    /// True if a JSON Schema is its source: its JSON has no form that that one refuses.
    pub(crate) is_json: bool,
}

/// An element declaration.
#[derive(Debug, Clone)]
pub(crate) struct Element {
    /// Empty for none.
    pub(crate) namespace: Arc<str>,
    pub(crate) local: String,
    pub(crate) doc: String,
    pub(crate) ty: TypeId,
    /// The name of `ty`, for `xsi:type`, if the declared type is abstract: namespace and local name.
    pub(crate) as_type: Option<(Arc<str>, String)>,
    pub(crate) fixed: Option<String>,
    /// Set if the element may be empty with `xsi:nil="true"`.
    pub(crate) nillable: bool,
    /// Identity constraints of the element, in words.
    pub(crate) constraints: Vec<String>,
    /// Examples that the author gave, as serde_json writes them.
    pub(crate) hints: Vec<Value>,
    /// The property of JSON that it comes from, if a JSON Schema or the declaration tells it.
    pub(crate) json: Option<Box<JsonElement>>,
}

/// The property that is an element in JSON.
#[derive(Debug, Clone)]
pub(crate) struct JsonElement {
    /// The name, which XML may not allow.
    pub(crate) key: String,
    /// True for an array, of any number of items.
    pub(crate) many: bool,
    /// True for an array that is there without items, too.
    pub(crate) always: bool,
    /// True for an array that may be null, which is one without items.
    pub(crate) null: bool,
}

/// An attribute declaration and its use.
#[derive(Debug, Clone)]
pub(crate) struct Attribute {
    pub(crate) namespace: Arc<str>,
    pub(crate) local: String,
    pub(crate) doc: String,
    pub(crate) ty: TypeId,
    pub(crate) required: bool,
    pub(crate) fixed: Option<String>,
    pub(crate) hints: Vec<Value>,
}

#[derive(Debug, Clone)]
pub(crate) enum Type {
    Simple(Simple),
    Complex(Complex),
}

/// A type of text.
#[derive(Debug, Clone)]
pub(crate) struct Simple {
    /// `None` for a type that is written where it is used.
    pub(crate) name: Option<String>,
    pub(crate) doc: String,
    pub(crate) variety: Variety,
    pub(crate) facets: Facets,
    /// The type by which the engine judges values; `None` until the grammar is compiled.
    pub(in crate::schema) definition: Option<SimpleType>,
}

#[derive(Debug, Clone)]
pub(crate) enum Variety {
    Atomic(&'static XsdType),
    /// Items separated by spaces.
    List(TypeId),
    Union(Vec<TypeId>),
}

/// Constraining facets (XSD 1.0 part 2, section 4.3).
#[derive(Debug, Clone, Default)]
pub(crate) struct Facets {
    pub(crate) min_length: Option<u64>,
    pub(crate) max_length: Option<u64>,
    pub(crate) min: Option<Bound>,
    pub(crate) max: Option<Bound>,
    /// Patterns, all of which must match.
    pub(crate) patterns: Vec<Pattern>,
    /// Empty for any value.
    pub(crate) values: Vec<Enumerator>,
}

/// An end of a range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Bound {
    /// The value as written in the schema.
    pub(crate) value: String,
    pub(crate) exclusive: bool,
}

/// A value of an enumeration.
#[derive(Debug, Clone)]
pub(crate) struct Enumerator {
    pub(crate) value: String,
    /// The namespace that the schema binds to the prefix of the value, or to none; `None` if there is none.
    pub(crate) namespace: Option<Arc<str>>,
    pub(crate) doc: String,
}

/// A type of elements and attributes.
#[derive(Debug, Clone)]
pub(crate) struct Complex {
    /// `None` for a type that is written where it is used.
    pub(crate) name: Option<String>,
    pub(crate) doc: String,
    pub(crate) attributes: Vec<Attribute>,
    /// The attributes that a wildcard allows beside these, in words.
    pub(crate) any_attributes: Option<Box<str>>,
    pub(crate) content: Content,
    pub(crate) beside: Beside,
}

/// The parts that an element may have beside its content, and that examples leave out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Beside {
    Nothing,
    /// Text: the content is mixed.
    Text,
    /// Text and any elements.
    Anything,
    /// Parts that only the schema tells, because the model is left out.
    Unknown,
}

#[derive(Debug, Clone)]
pub(crate) enum Content {
    Empty,
    /// A simple type.
    Text(TypeId),
    Children(Particle),
}

/// A term and its number of occurrences.
#[derive(Debug, Clone)]
pub(crate) struct Particle {
    pub(crate) min: u64,
    /// `None` for any number.
    pub(crate) max: Option<u64>,
    pub(crate) term: Term,
}

#[derive(Debug, Clone)]
pub(crate) enum Term {
    Element(Box<Element>),
    Group(Order, Vec<Particle>),
    /// Any element of those that the words describe.
    Any(Box<str>),
}

/// The order of the particles of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// All particles, in this order.
    Sequence,
    /// Exactly one of the particles.
    Choice,
    /// All particles, in any order.
    All,
}

impl Model {
    pub(crate) fn complex(&self, id: TypeId) -> Option<&Complex> {
        match &self.types[id] {
            Type::Complex(complex) => Some(complex),
            Type::Simple(_) => None,
        }
    }

    /// Sets the compiled form of simple types.
    pub(in crate::schema) fn define(&mut self, definitions: impl Iterator<Item = (TypeId, SimpleType)>) {
        let types = Arc::make_mut(&mut self.types);
        for (id, definition) in definitions {
            if let Some(Type::Simple(simple)) = types.get_mut(id) {
                simple.definition = Some(definition);
            }
        }
    }

    pub(crate) fn simple(&self, id: TypeId) -> Option<&Simple> {
        match &self.types[id] {
            Type::Simple(simple) => Some(simple),
            Type::Complex(_) => None,
        }
    }

    /// The docs of the root element; those of its type if it has none.
    pub(crate) fn doc(&self) -> &str {
        let of_type = match &self.types[self.root.ty] {
            Type::Complex(complex) => &complex.doc,
            Type::Simple(simple) => &simple.doc,
        };
        if self.root.doc.is_empty() { of_type } else { &self.root.doc }
    }

    /// Returns whether the elements inside of the root are in its namespace, so that a default namespace fits.
    pub(crate) fn is_qualified(&self) -> bool {
        let mut pending: Vec<&Particle> = match self.complex(self.root.ty).map(|complex| &complex.content) {
            Some(Content::Children(particle)) => vec![particle],
            _ => Vec::new(),
        };
        while let Some(particle) = pending.pop() {
            match &particle.term {
                Term::Element(element) if element.namespace.is_empty() => return self.root.namespace.is_empty(),
                Term::Element(_) | Term::Any(_) => {}
                Term::Group(_, particles) => pending.extend(particles),
            }
        }
        true
    }
}

impl Type {
    /// The model of `xs:anyType`, or of a type that is not known, with empty content as the simplest that is valid.
    pub(crate) fn any(beside: Beside) -> Self {
        let any_attributes = Some("any attribute".into());
        let (name, doc, attributes, content) = (None, String::new(), Vec::new(), Content::Empty);
        Self::Complex(Complex { name, doc, attributes, any_attributes, content, beside })
    }
}

impl Element {
    /// A declaration of which only the name and the type are known.
    pub(crate) fn plain(namespace: Arc<str>, local: String, ty: TypeId) -> Self {
        Self {
            namespace,
            local,
            doc: String::new(),
            ty,
            as_type: None,
            fixed: None,
            nillable: false,
            constraints: Vec::new(),
            hints: Vec::new(),
            json: None,
        }
    }
}

impl Complex {
    /// Returns whether nothing is allowed between the tags, and no attribute.
    pub(crate) fn is_empty(&self) -> bool {
        let Self { attributes, any_attributes, content, beside, .. } = self;
        attributes.is_empty()
            && any_attributes.is_none()
            && matches!(content, Content::Empty)
            && *beside == Beside::Nothing
    }
}

impl Facets {
    /// Returns whether they allow every value of the base type.
    pub(crate) fn is_empty(&self) -> bool {
        let Self { min_length, max_length, min, max, patterns, values } = self;
        (min_length, max_length) == (&None, &None)
            && (min, max) == (&None, &None)
            && patterns.is_empty()
            && values.is_empty()
    }
}

impl Particle {
    /// A term that occurs exactly once.
    pub(crate) fn once(term: Term) -> Self {
        Self { min: 1, max: Some(1), term }
    }
}
