//! From schema documents to a [`Grammar`]: first all components are read into drafts, which may refer to each other;
//! then their particles become automata, which need to know every substitution.
//!
//! What always holds: whatever is not understood is [`Unsupported`]. Nesting, positions, states and edges are
//! bounded, so a hostile schema ends in that too.

mod attributes;
mod automaton;
mod builtin;
mod complex;
mod finish;
mod particle;
mod positions;
mod simple;
mod substitution;
mod unfit;

use std::collections::HashMap;
use std::sync::Arc;

use super::grammar::{
    Attribute, Attributes, Derivation, Derivations, Element, ElementId, Grammar, Name, NameId, TypeId, ValueConstraint,
};
use super::namespace::{Namespace, Namespaces};
use super::simple::{SimpleType, Unsupported};
use crate::schema::xsd::read::{Kind, Name as Reference, Place, Reader};
use crate::schema::xsd::tree::{NodeId, Tree};
use crate::vocab::ns;
use particle::Particle;
use unfit::Unfit;

/// A compiled schema, with what it leaves to libxml.
#[derive(Debug)]
pub(in crate::schema) struct Compilation {
    pub(in crate::schema) grammar: Arc<Grammar>,
    /// The payloads that may hold what isn't understood, each with what that is.
    pub(in crate::schema) left: HashMap<ElementId, Arc<str>>,
    /// What is found first that isn't understood, whether a payload may hold it or not.
    pub(in crate::schema) first: Option<Unsupported>,
    /// Whether libxml2 must not see the schema: its parser may never end with it.
    pub(in crate::schema) by_union: bool,
}

/// Compiles the components of a document and of all that it leads to.
///
/// # Errors
/// [`Unsupported`] says why this engine leaves all of it to libxml.
pub(in crate::schema) fn compile(reader: &Reader) -> Result<Compilation, Unsupported> {
    if reader.has_redefinition() {
        return unsupported("xs:redefine is not compiled");
    }
    let mut compiler = Compiler::new(reader);
    compiler.builtins()?;
    for kind in [Kind::Type, Kind::Element, Kind::Attribute] {
        for (name, place) in reader.components(kind) {
            let name = Name { namespace: compiler.namespaces.intern(&name.0), local: name.1.as_str().into() };
            match kind {
                Kind::Type => drop(compiler.type_at(place)?),
                Kind::Element => drop(compiler.element_at(place, true)?),
                _ => match compiler.attribute(place) {
                    Ok(attribute) => compiler.global_attributes.push((name, attribute)),
                    Err(why) => compiler.unfit.attribute(why),
                },
            }
        }
    }
    compiler.drain()?;
    compiler.finish()
}

/// Types and groups may be so deep inside each other.
const DEEPEST: usize = 256;

/// Where a component stands, with the namespace that its document has there.
type Key = (usize, usize, Arc<str>);

struct Compiler<'r, 'a> {
    reader: &'r Reader<'a>,
    namespaces: Namespaces,
    names: Vec<Name>,
    name_ids: HashMap<Name, NameId>,
    elements: Vec<Element>,
    element_ids: HashMap<Key, ElementId>,
    global_elements: Vec<ElementId>,
    /// The elements that are given values, and where.
    given_values: Vec<(ElementId, Place)>,
    /// Members of substitution groups, each with its head.
    heads: Vec<(ElementId, ElementId)>,
    global_attributes: Vec<(Name, Attribute)>,
    types: Vec<Slot>,
    type_ids: HashMap<Key, TypeId>,
    global_types: Vec<(Name, TypeId)>,
    /// Complex types that were referred to and are not read yet, among others.
    pending: Vec<TypeId>,
    particles: u32,
    depth: usize,
    unfit: Unfit,
}

/// A type, before and after it is read.
enum Slot {
    Waiting(Place),
    Reading,
    Read(Draft),
}

/// A type whose particles are no automaton yet.
struct Draft {
    label: Box<str>,
    base: Option<TypeId>,
    derivation: Derivation,
    members: Vec<TypeId>,
    is_abstract: bool,
    block: Derivations,
    attributes: Attributes,
    content: DraftContent,
}

#[derive(Clone)]
enum DraftContent {
    Empty,
    Simple(SimpleType),
    Children { particle: Arc<Particle>, mixed: bool },
}

fn unsupported<T>(what: impl Into<String>) -> Result<T, Unsupported> {
    Err(Unsupported(what.into()))
}

impl<'r, 'a> Compiler<'r, 'a> {
    fn new(reader: &'r Reader<'a>) -> Self {
        Self {
            reader,
            namespaces: Namespaces::new(),
            names: Vec::new(),
            name_ids: HashMap::new(),
            elements: Vec::new(),
            element_ids: HashMap::new(),
            global_elements: Vec::new(),
            given_values: Vec::new(),
            heads: Vec::new(),
            global_attributes: Vec::new(),
            types: Vec::new(),
            type_ids: HashMap::new(),
            global_types: Vec::new(),
            pending: Vec::new(),
            particles: 0,
            depth: 0,
            unfit: Unfit::default(),
        }
    }

    /// An element declaration: a global one, or one with a name inside of a model group.
    fn element_at(&mut self, place: &Place, global: bool) -> Result<ElementId, Unsupported> {
        if let Some(id) = self.element_ids.get(&key(place)) {
            return Ok(*id);
        }
        let tree = self.tree(place);
        let Some(local) = tree.get(place.node, "name") else { return unsupported("an element has no name") };
        let form = tree.get(place.node, "form").or_else(|| tree.get(0, "elementFormDefault"));
        let qualified = global || form == Some("qualified");
        let namespace = if qualified { self.namespaces.intern(&place.target) } else { Namespace::NONE };
        let name = self.name_id(Name { namespace, local: local.into() });
        let id = ElementId::new(self.elements.len());
        self.element_ids.insert(key(place), id);
        self.elements.push(Element {
            name,
            ty: self.any_type(),
            nillable: is_true(tree, place, "nillable"),
            is_abstract: is_true(tree, place, "abstract"),
            block: derivations(tree, place, "block", "blockDefault"),
            value: value_constraint(tree, place),
        });
        if self.elements[id.index()].value.is_some() {
            self.given_values.push((id, place.clone()));
        }
        if global {
            self.global_elements.push(id);
        }
        let head = match self.head(place, global) {
            Ok(head) => head,
            // Nobody knows in whose place it may stand.
            Err(why) => {
                self.unfit.whole(why);
                None
            }
        };
        self.heads.extend(head.map(|head| (id, head)));
        match self.element_type(place, head) {
            Ok(ty) => self.elements[id.index()].ty = ty,
            Err(why) => self.unfit.element(id, why),
        }
        Ok(id)
    }

    /// The head of the substitution group that a global element is in.
    fn head(&mut self, place: &Place, global: bool) -> Result<Option<ElementId>, Unsupported> {
        let (true, Some(group)) = (global, self.tree(place).get(place.node, "substitutionGroup")) else {
            return Ok(None);
        };
        let group = self.reference(place, group)?;
        let found = self.find(Kind::Element, &group)?;
        self.nested(|compiler| compiler.element_at(found, true)).map(Some)
    }

    fn element_type(&mut self, place: &Place, head: Option<ElementId>) -> Result<TypeId, Unsupported> {
        let tree = self.tree(place);
        for part in tree.parts(place.node) {
            if let constraint @ ("key" | "keyref" | "unique") = tree.node(part).local.as_str() {
                let local = tree.get(place.node, "name").unwrap_or_default();
                return unsupported(format!("the element '{local}' has an identity constraint (xs:{constraint})"));
            }
        }
        let inner =
            tree.parts(place.node).find(|part| matches!(tree.node(*part).local.as_str(), "simpleType" | "complexType"));
        match (tree.get(place.node, "type"), inner, head) {
            (Some(name), _, _) => self.named_type(place, name),
            (None, Some(node), _) => self.type_at(&Place { node, ..place.clone() }),
            (None, None, Some(head)) => {
                self.unfit.check_element(head)?;
                Ok(self.elements[head.index()].ty)
            }
            (None, None, None) => Ok(self.any_type()),
        }
    }

    /// The type that a reference names.
    fn named_type(&mut self, place: &Place, name: &str) -> Result<TypeId, Unsupported> {
        let name = self.reference(place, name)?;
        if &*name.0 == ns::XSD {
            return self.builtin(&name.1);
        }
        let found = self.find(Kind::Type, &name)?;
        self.type_at(found)
    }

    /// The type that is defined at a place. A complex one may still wait to be read.
    fn type_at(&mut self, place: &Place) -> Result<TypeId, Unsupported> {
        if let Some(id) = self.type_ids.get(&key(place)) {
            return Ok(*id);
        }
        let tree = self.tree(place);
        let id = self.add(Slot::Waiting(place.clone()));
        self.type_ids.insert(key(place), id);
        if let Some(local) = tree.get(place.node, "name") {
            let name = Name { namespace: self.namespaces.intern(&place.target), local: local.into() };
            self.global_types.push((name, id));
        }
        match tree.node(place.node).local.as_str() {
            "simpleType" => drop(self.read(id)?),
            _ => self.pending.push(id),
        }
        Ok(id)
    }

    /// Reads all types that still wait, and those that they refer to.
    fn drain(&mut self) -> Result<(), Unsupported> {
        while let Some(id) = self.pending.pop() {
            self.read(id)?;
        }
        Ok(())
    }

    /// A type, read now if it was not.
    fn read(&mut self, id: TypeId) -> Result<&Draft, Unsupported> {
        if let Slot::Waiting(_) = self.types[id.index()] {
            let Slot::Waiting(place) = std::mem::replace(&mut self.types[id.index()], Slot::Reading) else {
                unreachable!("the slot was just looked at")
            };
            let draft = match self.tree(&place).node(place.node).local.as_str() {
                "simpleType" => self.nested(|compiler| compiler.simple_draft(&place)),
                _ => self.nested(|compiler| compiler.complex(&place)),
            };
            let draft = draft.unwrap_or_else(|why| self.unfit_draft(id, &place, why));
            self.types[id.index()] = Slot::Read(draft);
        }
        match &self.types[id.index()] {
            Slot::Read(draft) => Ok(draft),
            Slot::Reading | Slot::Waiting(_) => unsupported("a type is made from itself"),
        }
    }

    /// Stands for a type that isn't understood: only what it is made from is known of it.
    fn unfit_draft(&mut self, id: TypeId, place: &Place, why: Unsupported) -> Draft {
        let base = self.nested(|compiler| compiler.base(place)).unwrap_or_else(|_| {
            // Nobody knows in whose place it may stand.
            self.unfit.whole(why.clone());
            self.any_type()
        });
        self.unfit.ty(id, why);
        Draft::placeholder(base)
    }

    /// What a type is made from.
    fn base(&mut self, place: &Place) -> Result<TypeId, Unsupported> {
        let tree = self.tree(place);
        let is_content = |part: &NodeId| matches!(tree.node(*part).local.as_str(), "simpleContent" | "complexContent");
        let holder = match tree.node(place.node).local.as_str() {
            "simpleType" => place.node,
            _ => match tree.parts(place.node).find(is_content) {
                Some(content) => content,
                None => return Ok(self.any_type()),
            },
        };
        for node in tree.parts(holder) {
            let derivation = Place { node, ..place.clone() };
            match (tree.node(node).local.as_str(), tree.get(node, "base")) {
                ("list" | "union", _) => return self.builtin("anySimpleType"),
                ("restriction" | "extension", Some(base)) => return self.named_type(&derivation, base),
                ("restriction" | "extension", None) => return self.inner_type(&derivation),
                _ => {}
            }
        }
        unsupported("a type is made from nothing")
    }

    fn add(&mut self, slot: Slot) -> TypeId {
        self.types.push(slot);
        TypeId::new(self.types.len() - 1)
    }

    fn name_id(&mut self, name: Name) -> NameId {
        if let Some(id) = self.name_ids.get(&name) {
            return *id;
        }
        let id = NameId::new(self.names.len());
        self.names.push(name.clone());
        self.name_ids.insert(name, id);
        id
    }

    fn tree(&self, place: &Place) -> &'a Tree {
        &self.reader.document(place).tree
    }

    /// The namespace and local name that a reference means.
    fn reference(&self, place: &Place, qname: &str) -> Result<Reference, Unsupported> {
        match self.reader.name(place, qname) {
            Some(name) => Ok(name),
            None => unsupported(format!("the reference '{qname}' is no qualified name")),
        }
    }

    /// The one component of a name.
    fn find(&self, kind: Kind, name: &Reference) -> Result<&'r Place, Unsupported> {
        match self.reader.only(kind, name) {
            Some(place) => Ok(place),
            None => unsupported(format!("the schema refers to '{}', which is not once in it", name.1)),
        }
    }

    /// Bounds how deep components are inside each other.
    fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T, Unsupported>) -> Result<T, Unsupported> {
        if self.depth >= DEEPEST {
            return unsupported(format!("types and groups are more than {DEEPEST} deep inside each other"));
        }
        self.depth += 1;
        let read = read(self);
        self.depth -= 1;
        read
    }
}

fn key(place: &Place) -> Key {
    (place.document, place.node, place.target.clone())
}

fn is_true(tree: &Tree, place: &Place, attribute: &str) -> bool {
    matches!(tree.get(place.node, attribute), Some("true" | "1"))
}

fn value_constraint(tree: &Tree, place: &Place) -> Option<ValueConstraint> {
    let constraint =
        |name, fixed| tree.untrimmed(place.node, name).map(|text| ValueConstraint { fixed, text: text.into() });
    constraint("fixed", true).or_else(|| constraint("default", false))
}

/// `block`, or what the document says for those that have none.
fn derivations(tree: &Tree, place: &Place, attribute: &str, by_default: &str) -> Derivations {
    let words = tree.get(place.node, attribute).or_else(|| tree.get(0, by_default)).unwrap_or_default();
    let has = |word: &str| words.split_ascii_whitespace().any(|given| given == word || given == "#all");
    Derivations { extension: has("extension"), restriction: has("restriction"), substitution: has("substitution") }
}
