//! The mapping of a payload's XML to JSON: the form that the elements of each type have.
//!
//! Invariants: schema, reader and writer share it, so that they agree. The form of an element follows from its type, not
//! from its content, with two exceptions for content that a JSON writer can't make: an element with an `xsi:type`, and
//! children in an order that the properties of an object don't tell.

use std::sync::Arc;

use foldhash::{HashMap, HashMapExt};

use super::values;
use crate::schema::model::{
    self, Attribute, Beside, Bound, Complex, Content, Element, Facets, Model, Order, Particle, Simple, Term, Variety,
};
use crate::schema::simple::{Kind, SimpleType, XsdType};
use crate::vocab::ns;

/// The forms of all types that a payload leads to.
#[derive(Debug)]
pub(crate) struct Mapping {
    /// The namespace of the payload.
    pub(super) namespace: Arc<str>,
    pub(super) root: Child,
    types: HashMap<model::TypeId, Form>,
    /// Set if names get a prefix when they are in a namespace: see [`Model::is_qualified`].
    pub(super) prefixed: bool,
    /// Set if some content has no schema: its values may be qualified names.
    pub(super) has_open: bool,
    /// Set if some content is a JSON value in the vocabulary.
    pub(super) has_values: bool,
    /// True if JSON has no form that a JSON Schema, its source, refuses.
    pub(super) is_json: bool,
}

/// The form of the elements of a type.
#[derive(Debug)]
pub(super) enum Form {
    /// A value without attributes.
    Value(Value),
    /// An object.
    Object(Object),
    /// A JSON value in the vocabulary: the value itself.
    Json(model::TypeId),
    /// Any content, which the schema does not describe.
    Open,
}

#[derive(Debug)]
pub(super) struct Object {
    pub(super) attributes: Vec<Property>,
    /// Set if there may be other attributes.
    pub(super) any_attributes: bool,
    /// Set if text may stand beside the elements.
    pub(super) is_mixed: bool,
    pub(super) content: Body,
}

/// The content of an object.
#[derive(Debug)]
pub(super) enum Body {
    Empty,
    /// The property `$` has the text.
    Text(Value),
    /// Each child element is a property of its name.
    Members {
        children: Children,
        order: Order,
    },
    /// The property `$` has an array of the content in document order.
    Items {
        children: Children,
    },
}

/// An attribute as a property.
#[derive(Debug)]
pub(super) struct Property {
    pub(super) key: String,
    pub(super) namespace: Arc<str>,
    pub(super) local: String,
    pub(super) value: Value,
}

/// The children of a type, in the order of the schema.
#[derive(Debug)]
pub(super) struct Children {
    pub(super) list: Vec<Child>,
    /// The places of the children in the list by their keys, if there are more than [`FEW`].
    by_key: HashMap<String, usize>,
    /// The place of the elements that a wildcard allows.
    pub(super) any: Option<usize>,
    /// The places of the arrays that are there without items, too.
    pub(super) always: Vec<usize>,
}

/// The greatest number of children that are searched in sequence.
const FEW: usize = 8;

/// A child element.
#[derive(Debug)]
pub(super) struct Child {
    /// The name of its property.
    pub(super) key: String,
    pub(super) namespace: Arc<str>,
    pub(super) local: String,
    pub(super) ty: model::TypeId,
    pub(super) nillable: bool,
    /// The `xsi:type` that the element needs.
    pub(super) as_type: Option<String>,
    /// Set if the property is an array.
    pub(super) many: bool,
    /// Set if the element is there at least once wherever its group is.
    pub(super) is_required: bool,
    /// Set if the property is an array that is there without items, too.
    pub(super) always: bool,
    /// Set if the property is an array that may be null, which is one without items.
    pub(super) takes_null: bool,
}

/// A simple type as JSON.
#[derive(Debug, Clone)]
pub(super) enum Value {
    Boolean,
    /// A whole number; a large one may be one that not each reader of JSON keeps.
    Integer {
        is_large: bool,
    },
    Decimal,
    Float,
    Text,
    /// A qualified name, in Clark notation.
    Name,
    List(Arc<Value>),
    /// The members in their order.
    Union(Arc<Vec<(SimpleType, Value)>>),
}

/// The greatest whole number that each reader of JSON keeps, and the least with a minus (RFC 8259, section 6).
pub(super) const MOST_WHOLE: i64 = (1 << 53) - 1;

/// The key of the elements that a wildcard allows.
pub(super) const ANY: &str = "$any";

impl Mapping {
    pub(crate) fn of(model: &Model) -> Self {
        let namespace = model.root.namespace.clone();
        let mut mapping = Self {
            root: Child::of(&model.root, &namespace, (1, Some(1))),
            types: HashMap::new(),
            prefixed: !model.is_qualified(),
            has_open: false,
            has_values: false,
            is_json: model.is_json,
            namespace,
        };
        let mut pending = vec![model.root.ty];
        while let Some(ty) = pending.pop() {
            if !mapping.types.contains_key(&ty) {
                let form = mapping.make(model, ty, &mut pending);
                mapping.types.insert(ty, form);
            }
        }
        mapping
    }

    /// Returns whether the payload is a text with nothing beside it.
    pub(super) fn is_value(&self) -> bool {
        matches!(self.form(self.root.ty), Form::Value(_)) && self.root.as_type.is_none()
    }

    #[inline]
    pub(super) fn form(&self, ty: model::TypeId) -> &Form {
        self.types.get(&ty).unwrap_or(&Form::Open)
    }

    fn make(&mut self, model: &Model, ty: model::TypeId, pending: &mut Vec<model::TypeId>) -> Form {
        let complex = match &model.types[ty] {
            model::Type::Simple(simple) => return Form::Value(Value::of(model, simple)),
            model::Type::Complex(complex) => complex,
        };
        if values::is_value(complex) {
            self.has_values = true;
            return Form::Json(ty);
        }
        if matches!(complex.beside, Beside::Anything | Beside::Unknown) {
            self.has_open = true;
            return Form::Open;
        }
        self.has_open |= complex.any_attributes.is_some();
        if let (Content::Text(ty), true) = (&complex.content, is_bare(complex)) {
            return Form::Value(Value::of_id(model, *ty));
        }
        let attribute = |attribute: &Attribute| Property {
            key: format!("@{}", attribute_key(&attribute.namespace, &attribute.local)),
            namespace: attribute.namespace.clone(),
            local: attribute.local.clone(),
            value: Value::of_id(model, attribute.ty),
        };
        let mixed = complex.beside == Beside::Text;
        let content = match &complex.content {
            Content::Empty if mixed => Body::Text(Value::Text),
            Content::Empty => Body::Empty,
            Content::Text(ty) => Body::Text(Value::of_id(model, *ty)),
            Content::Children(particle) => {
                let body = self.body(particle, mixed);
                let (Body::Members { children, .. } | Body::Items { children }) = &body else { return Form::Open };
                let declared = children.list.iter().filter(|child| child.key != ANY);
                pending.extend(declared.map(|child| child.ty));
                self.has_open |= children.any.is_some();
                body
            }
        };
        let attributes = complex.attributes.iter().map(attribute).collect();
        Form::Object(Object { attributes, any_attributes: complex.any_attributes.is_some(), is_mixed: mixed, content })
    }

    fn body(&self, particle: &Particle, mixed: bool) -> Body {
        body(particle, mixed, &self.namespace)
    }
}

/// Returns whether an element of a type with text is a value by itself: it has no attributes.
pub(super) fn is_bare(complex: &Complex) -> bool {
    complex.attributes.is_empty() && complex.any_attributes.is_none() && matches!(complex.content, Content::Text(_))
}

/// The content of a type as JSON; `namespace` is the payload's.
pub(super) fn body(particle: &Particle, mixed: bool, namespace: &Arc<str>) -> Body {
    let mut members = Children { list: Vec::new(), by_key: HashMap::new(), any: None, always: Vec::new() };
    if !mixed && members.collect(particle, namespace) {
        let order = match particle.term {
            Term::Group(Order::All, _) => Order::All,
            _ => Order::Sequence,
        };
        return Body::Members { children: members.indexed(), order };
    }
    let mut items = Children { list: Vec::new(), by_key: HashMap::new(), any: None, always: Vec::new() };
    items.collect_all(particle, namespace);
    Body::Items { children: items.indexed() }
}

impl Children {
    /// Collects the children of a particle in which each has a name and a place of its own. Recurses as deep as groups nest, of
    /// which a model bounds the depth.
    fn collect(&mut self, particle: &Particle, namespace: &Arc<str>) -> bool {
        if particle.max == Some(0) {
            return true;
        }
        match &particle.term {
            Term::Element(element) => {
                let child = Child::of(element, namespace, (particle.min, particle.max));
                let is_new = self.by_key.insert(child.key.clone(), self.list.len()).is_none();
                self.always.extend(child.always.then_some(self.list.len()));
                self.list.push(child);
                is_new
            }
            Term::Any(_) => {
                let any = Child {
                    key: ANY.to_owned(),
                    namespace: "".into(),
                    local: String::new(),
                    ty: model::TypeId::MAX,
                    nillable: false,
                    as_type: None,
                    many: true,
                    is_required: particle.min > 0,
                    always: false,
                    takes_null: false,
                };
                let is_first = self.any.replace(self.list.len()).is_none();
                self.by_key.insert(any.key.clone(), self.list.len());
                self.list.push(any);
                is_first
            }
            Term::Group(_, parts) => particle.max == Some(1) && parts.iter().all(|part| self.collect(part, namespace)),
        }
    }

    /// Collects the children of a particle, each name once. A name that two of them share is written in Clark notation for the
    /// second.
    fn collect_all(&mut self, particle: &Particle, namespace: &Arc<str>) {
        match &particle.term {
            Term::Element(element) => {
                let mut child = Child::of(element, namespace, (1, Some(1)));
                if let Some(known) = self.by_key.get(&child.key).map(|known| &self.list[*known]) {
                    if known.namespace == child.namespace {
                        return;
                    }
                    child.key = clark(&child.namespace, &child.local);
                }
                if self.by_key.insert(child.key.clone(), self.list.len()).is_none() {
                    self.list.push(child);
                }
            }
            Term::Any(_) => self.any = Some(usize::MAX),
            Term::Group(_, parts) => parts.iter().for_each(|part| self.collect_all(part, namespace)),
        }
    }

    fn indexed(mut self) -> Self {
        if self.list.len() <= FEW {
            self.by_key = HashMap::new();
        }
        self
    }

    /// The place of the child with a key; `hint` is where it is looked for first.
    #[inline]
    pub(super) fn by_key(&self, key: &str, hint: usize) -> Option<usize> {
        if self.list.get(hint).is_some_and(|child| child.key == key) {
            return Some(hint);
        }
        match self.by_key.is_empty() {
            true => self.list.iter().position(|child| child.key == key),
            false => self.by_key.get(key).copied(),
        }
    }

    /// The place of the child with a name; `hint` is where it is looked for first.
    #[inline]
    pub(super) fn by_name(&self, namespace: &str, local: &str, payload: &str, hint: usize) -> Option<usize> {
        let is = |child: &Child| child.local == local && *child.namespace == *namespace;
        for place in [hint, hint + 1] {
            if self.list.get(place).is_some_and(is) {
                return Some(place);
            }
        }
        if self.by_key.is_empty() {
            return self.list.iter().position(is);
        }
        let known = |key: &str| self.by_key.get(key).copied().filter(|place| is(&self.list[*place]));
        let plain = if namespace.is_empty() || namespace == payload { known(local) } else { None };
        // The key of an element that comes from a JSON Schema may have another spelling.
        let spelled = || self.list.iter().position(|child| child.local == local && child.key != local && is(child));
        plain.or_else(|| known(&clark(namespace, local))).or_else(spelled)
    }

    /// The keys, for a person.
    pub(super) fn keys(&self) -> impl Iterator<Item = &str> {
        self.list.iter().map(|child| child.key.as_str())
    }
}

impl Child {
    fn of(element: &Element, namespace: &Arc<str>, (min, max): (u64, Option<u64>)) -> Self {
        Self {
            key: element_key(element, namespace),
            namespace: element.namespace.clone(),
            local: element.local.clone(),
            ty: element.ty,
            nillable: element.nillable,
            as_type: element.as_type.as_ref().map(|(namespace, local)| clark(namespace, local)),
            many: max != Some(1) || element.json.as_ref().is_some_and(|json| json.many),
            is_required: min > 0,
            always: element.json.as_ref().is_some_and(|json| json.always),
            takes_null: element.json.as_ref().is_some_and(|json| json.null),
        }
    }
}

impl Value {
    pub(super) fn of(model: &Model, simple: &Simple) -> Self {
        match &simple.variety {
            Variety::Atomic(xsd_type) => match xsd_type.item() {
                Some(item) => Self::List(Arc::new(Self::atomic(item, &Facets::default()))),
                None => Self::atomic(xsd_type, &simple.facets),
            },
            Variety::List(item) => Self::List(Arc::new(Self::of_id(model, *item))),
            Variety::Union(members) => {
                let member = |id: &model::TypeId| {
                    let member = model.simple(*id)?;
                    Some((member.definition.clone()?, Self::of(model, member)))
                };
                Self::Union(Arc::new(members.iter().filter_map(member).collect()))
            }
        }
    }

    /// The form of a simple type, or of the text of a complex one. Recurses as deep as types nest, of which the engine bounds the
    /// depth.
    fn of_id(model: &Model, id: model::TypeId) -> Self {
        model.simple(id).map_or(Self::Text, |simple| Self::of(model, simple))
    }

    pub(super) fn atomic(xsd_type: &XsdType, facets: &Facets) -> Self {
        match xsd_type.kind() {
            Kind::Boolean => Self::Boolean,
            Kind::Integer(least, most) => {
                let bound = |bound: &Option<Bound>, known: Option<i128>| {
                    bound.as_ref().and_then(|bound| bound.value.trim().parse().ok()).or(known)
                };
                let ends = [bound(&facets.min, least), bound(&facets.max, most)];
                Self::Integer { is_large: ends.iter().any(|end| end.is_none_or(|end| end.abs() > MOST_WHOLE.into())) }
            }
            Kind::Decimal => Self::Decimal,
            Kind::Float => Self::Float,
            Kind::Text | Kind::Form if matches!(xsd_type.name, "QName" | "NOTATION") => Self::Name,
            Kind::Text | Kind::Form => Self::Text,
        }
    }

    /// The kind for a person, and a value of it.
    pub(super) fn expected(&self) -> (&'static str, &'static str) {
        match self {
            Self::Boolean => ("true or false", "true"),
            Self::Integer { .. } => ("a whole number", "12"),
            Self::Decimal | Self::Float => ("a number", "1.5"),
            Self::Text => ("a string", "\"text\""),
            Self::Name => ("a name in Clark notation", "\"{urn:example}name\""),
            Self::List(_) => ("an array", "[\"a\", \"b\"]"),
            Self::Union(_) => ("a string, a number, true, false or an array", "\"text\""),
        }
    }
}

/// The name of the property of an element: its local name, unless it is in a namespace that is not the payload's.
pub(super) fn element_key(element: &Element, namespace: &Arc<str>) -> String {
    if let Some(json) = &element.json {
        return json.key.clone();
    }
    match element.namespace.is_empty() || element.namespace == *namespace {
        true => element.local.clone(),
        false => clark(&element.namespace, &element.local),
    }
}

/// The name of the property of an attribute, without its `@`.
pub(super) fn attribute_key(namespace: &str, local: &str) -> String {
    match namespace {
        "" => local.to_owned(),
        ns::XML => format!("xml:{local}"),
        ns::XSI => format!("xsi:{local}"),
        namespace => clark(namespace, local),
    }
}

/// A name in Clark notation.
pub(super) fn clark(namespace: &str, local: &str) -> String {
    format!("{{{namespace}}}{local}")
}
