use std::collections::BTreeMap;
use std::sync::Arc;

use super::read::{Kind, Name, Place, Reader};
use super::tree::NodeId;
use crate::schema::model::{Attribute, Beside, Complex, Content, Element, Order, Particle, Term, Type, TypeId};
use crate::vocab::ns;

/// A model in the making.
pub(in crate::schema) struct Builder<'r, 'a> {
    pub(in crate::schema) reader: &'r Reader<'a>,
    pub(in crate::schema) types: Vec<Type>,
    /// The types that were made, by where they stand: also those that are in the making.
    pub(in crate::schema) made: BTreeMap<(usize, NodeId, Arc<str>), TypeId>,
    /// Depth to which groups and types stand inside each other.
    pub(super) open: usize,
    /// The most types that it may make.
    pub(super) left: usize,
}

impl<'r, 'a> Builder<'r, 'a> {
    /// A global element, or a local declaration with a name.
    pub(in crate::schema) fn element(&mut self, place: &Place, global: bool) -> Option<Element> {
        let document = self.reader.document(place);
        let tree = &document.tree;
        let form = tree.get(place.node, "form").or_else(|| tree.get(0, "elementFormDefault"));
        let qualified = global || form == Some("qualified");
        let ty = match tree.get(place.node, "type") {
            Some(name) => self.named_type(&self.reader.name(place, name)?, place)?,
            None => {
                let inner = tree.parts(place.node).find(|part| tree.node(*part).local.ends_with("Type"));
                match (inner, tree.get(place.node, "substitutionGroup")) {
                    (Some(node), _) => self.type_at(&Place { node, ..place.clone() })?,
                    (None, Some(head)) => {
                        let head = self.reader.name(place, head)?;
                        let head = self.reader.refer(Kind::Element, &head, place)?.clone();
                        self.guarded(|builder| builder.element(&head, true))?.ty
                    }
                    (None, None) => self.add(any_type())?,
                }
            }
        };
        Some(Element {
            namespace: if qualified { place.target.clone() } else { "".into() },
            local: tree.get(place.node, "name")?.to_owned(),
            doc: tree.documentation(place.node),
            ty,
            fixed: tree.get(place.node, "fixed").map(str::to_owned),
            hints: Vec::new(),
        })
    }

    /// The type of a name: built in, or a component.
    pub(in crate::schema) fn named_type(&mut self, name: &Name, from: &Place) -> Option<TypeId> {
        if &*name.0 == ns::XSD {
            return if name.1 == "anyType" { self.add(any_type()) } else { self.builtin(&name.1) };
        }
        let place = self.reader.refer(Kind::Type, name, from)?.clone();
        self.type_at(&place)
    }

    pub(in crate::schema) fn type_at(&mut self, place: &Place) -> Option<TypeId> {
        let key = (place.document, place.node, place.target.clone());
        if let Some(id) = self.made.get(&key) {
            return Some(*id);
        }
        let id = self.add(any_type())?;
        self.made.insert(key, id);
        let local = &self.reader.document(place).tree.node(place.node).local;
        let ty = match local.as_str() {
            "simpleType" => self.guarded(|builder| builder.simple(place)).map(Type::Simple),
            _ => self.guarded(|builder| builder.complex(place)).map(Type::Complex),
        }?;
        self.types[id] = ty;
        Some(id)
    }

    fn complex(&mut self, place: &Place) -> Option<Complex> {
        let tree = &self.reader.document(place).tree;
        let name = tree.get(place.node, "name").map(str::to_owned);
        let doc = tree.documentation(place.node);
        let content = tree.parts(place.node).find(|part| tree.node(*part).local.ends_with("Content"));
        let is_mixed = |node| matches!(tree.get(node, "mixed"), Some("true" | "1"));
        let Some(content) = content else {
            let (attributes, content) = (self.attributes(place)?, self.content(place)?);
            let beside = if is_mixed(place.node) { Beside::Text } else { Beside::Nothing };
            return Some(Complex { name, doc, attributes, content, beside });
        };
        let derivation = tree.parts(content).find(|part| tree.get(*part, "base").is_some())?;
        let derived = Place { node: derivation, ..place.clone() };
        let base_name = self.reader.name(place, tree.get(derivation, "base")?)?;
        let base = self.named_type(&base_name, &derived)?;
        let restricts = tree.node(derivation).local == "restriction";
        let own = self.attributes(&derived)?;
        let (inherited, base_content, beside) = match self.types[base].clone() {
            Type::Complex(base) => (base.attributes, base.content, base.beside),
            Type::Simple(_) => (Vec::new(), Content::Text(base), Beside::Nothing),
        };
        let mixed = is_mixed(place.node) || is_mixed(content);
        let beside = if mixed && beside == Beside::Nothing { Beside::Text } else { beside };
        let mut attributes: Vec<Attribute> =
            inherited.into_iter().filter(|old| own.iter().all(|new| new.local != old.local)).collect();
        attributes.extend(own);
        let content = match base_content {
            Content::Text(ty) if restricts => Content::Text(self.restricted(ty, &derived)?),
            Content::Text(ty) => Content::Text(ty),
            _ if restricts => self.content(&derived)?,
            Content::Empty => self.content(&derived)?,
            Content::Children(before) => match self.content(&derived)? {
                Content::Children(own) => {
                    Content::Children(Particle::once(Term::Group(Order::Sequence, vec![before, own])))
                }
                Content::Empty | Content::Text(_) => Content::Children(before),
            },
        };
        Some(Complex { name, doc, attributes, content, beside })
    }

    fn content(&mut self, place: &Place) -> Option<Content> {
        let tree = &self.reader.document(place).tree;
        let group = tree.parts(place.node).find(|part| is_group(&tree.node(*part).local));
        match group {
            Some(node) => self.particle(&Place { node, ..place.clone() }).map(Content::Children),
            None => Some(Content::Empty),
        }
    }

    fn particle(&mut self, place: &Place) -> Option<Particle> {
        let tree = &self.reader.document(place).tree;
        let count = |name: &str| tree.get(place.node, name);
        let min = count("minOccurs").map_or(Some(1), |min| min.parse().ok())?;
        let max = match count("maxOccurs") {
            None => Some(1),
            Some("unbounded") => None,
            Some(max) => Some(max.parse().ok()?),
        };
        let term = match tree.node(place.node).local.as_str() {
            "element" => self.element_term(place)?,
            "any" => Term::Any,
            "group" => {
                let name = self.reader.name(place, count("ref")?)?;
                let found = self.reader.refer(Kind::Group, &name, place)?.clone();
                let Content::Children(inner) = self.guarded(|builder| builder.content(&found))? else { return None };
                Term::Group(Order::Sequence, vec![inner])
            }
            order => {
                let order = match order {
                    "choice" => Order::Choice,
                    "all" => Order::All,
                    _ => Order::Sequence,
                };
                let parts = tree.parts(place.node).filter(|part| is_particle(&tree.node(*part).local));
                let parts = parts.map(|node| Place { node, ..place.clone() });
                let particles =
                    parts.map(|part| self.guarded(|builder| builder.particle(&part))).collect::<Option<_>>()?;
                Term::Group(order, particles)
            }
        };
        Some(Particle { min, max, term })
    }

    fn element_term(&mut self, place: &Place) -> Option<Term> {
        let tree = &self.reader.document(place).tree;
        let Some(reference) = tree.get(place.node, "ref") else {
            return self
                .guarded(|builder| builder.element(place, false))
                .map(|element| Term::Element(Box::new(element)));
        };
        let name = self.reader.name(place, reference)?;
        let found = self.reader.refer(Kind::Element, &name, place)?.clone();
        if self.reader.document(&found).tree.get(found.node, "abstract") != Some("true") {
            let mut element = self.guarded(|builder| builder.element(&found, true))?;
            let doc = tree.documentation(place.node);
            if !doc.is_empty() {
                element.doc = doc;
            }
            return Some(Term::Element(Box::new(element)));
        }
        let mut alternatives = Vec::new();
        for substitute in self.reader.substitutes(&name) {
            let element = self.guarded(|builder| builder.element(substitute, true))?;
            alternatives.push(Particle::once(Term::Element(Box::new(element))));
        }
        Some(Term::Group(Order::Choice, alternatives))
    }

    fn attributes(&mut self, place: &Place) -> Option<Vec<Attribute>> {
        let tree = &self.reader.document(place).tree;
        let mut attributes = Vec::new();
        for node in tree.parts(place.node) {
            let part = Place { node, ..place.clone() };
            match tree.node(node).local.as_str() {
                "attribute" if tree.get(node, "use") != Some("prohibited") => attributes.push(self.attribute(&part)?),
                "attributeGroup" => {
                    let name = self.reader.name(&part, tree.get(node, "ref")?)?;
                    let found = self.reader.refer(Kind::AttributeGroup, &name, &part)?.clone();
                    attributes.extend(self.guarded(|builder| builder.attributes(&found))?);
                }
                _ => {}
            }
        }
        Some(attributes)
    }

    fn attribute(&mut self, place: &Place) -> Option<Attribute> {
        let tree = &self.reader.document(place).tree;
        let required = tree.get(place.node, "use") == Some("required");
        if let Some(reference) = tree.get(place.node, "ref") {
            let name = self.reader.name(place, reference)?;
            let found = self.reader.refer(Kind::Attribute, &name, place)?.clone();
            let declared = self.guarded(|builder| builder.attribute(&found))?;
            let fixed = tree.get(place.node, "fixed").map(str::to_owned).or(declared.fixed);
            return Some(Attribute { namespace: name.0, required, fixed, ..declared });
        }
        let form = tree.get(place.node, "form").or_else(|| tree.get(0, "attributeFormDefault"));
        let inner = tree.parts(place.node).find(|part| tree.node(*part).local == "simpleType");
        let ty = match (tree.get(place.node, "type"), inner) {
            (Some(name), _) => self.named_type(&self.reader.name(place, name)?, place)?,
            (None, Some(node)) => self.type_at(&Place { node, ..place.clone() })?,
            (None, None) => self.builtin("anySimpleType")?,
        };
        Some(Attribute {
            namespace: if form == Some("qualified") { place.target.clone() } else { "".into() },
            local: tree.get(place.node, "name")?.to_owned(),
            doc: tree.documentation(place.node),
            ty,
            required,
            fixed: tree.get(place.node, "fixed").map(str::to_owned),
            hints: Vec::new(),
        })
    }

    pub(in crate::schema) fn add(&mut self, ty: Type) -> Option<TypeId> {
        const MOST: usize = 10_000;
        if self.types.len() >= MOST.min(self.left) {
            return None;
        }
        self.types.push(ty);
        Some(self.types.len() - 1)
    }

    /// Bounds how deep components refer to each other; a group that holds itself is no schema.
    pub(in crate::schema) fn guarded<T>(&mut self, build: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        const DEEPEST: usize = 100;
        self.open += 1;
        let built = if self.open > DEEPEST { None } else { build(self) };
        self.open -= 1;
        built
    }
}

/// The type that allows anything; of that, nothing is the simplest.
fn any_type() -> Type {
    let (attributes, content) = (Vec::new(), Content::Empty);
    Type::Complex(Complex { name: None, doc: String::new(), attributes, content, beside: Beside::Anything })
}

fn is_group(local: &str) -> bool {
    matches!(local, "sequence" | "choice" | "all" | "group")
}

fn is_particle(local: &str) -> bool {
    is_group(local) || matches!(local, "element" | "any")
}
