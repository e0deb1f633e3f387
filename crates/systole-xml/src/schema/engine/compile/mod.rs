//! Compilation of schema documents to a [`Grammar`]: first all components are read into drafts, which may refer to each
//! other; then their particles become automata, which need to know every substitution.
//!
//! Invariants: each broken rule of the Recommendation is a [`BrokenSchemaRule`] with its place. Nesting, positions, states
//! and edges are bounded, so a hostile schema ends in a [`BrokenSchemaRule`] too.

mod attributes;
mod automaton;
mod complex;
mod concrete;
mod conflict;
mod constraint_words;
mod constraints;
mod derive;
mod finish;
mod model;
mod particle;
mod positions;
mod refer;
mod restriction;
mod simple;
mod substitution;
mod xsd_types;

use std::sync::Arc;

use foldhash::{HashMap, HashMapExt, HashSet, HashSetExt};

use super::grammar::{
    Attribute, Attributes, Derivation, Derivations, Element, ElementId, Name, NameId, TypeId, ValueConstraint,
};
use super::namespace::{Namespace, Namespaces};
use crate::schema::shorten::quoted;
use crate::schema::simple::SimpleType;
use crate::schema::source::BrokenSchemaRule;
use crate::schema::source::Place;
use crate::schema::source::read::{Kind, Name as Reference, Reader};
use crate::schema::source::tree::Tree;
use attributes::Written;
use constraints::DraftConstraint;
pub(in crate::schema) use model::Components;
use model::{Made, Narrowed};
use particle::{ModelGroup, Particle};
use simple::check_notation;

/// Compiles the components of a document and of all documents that it includes, imports or redefines.
///
/// # Errors
/// [`BrokenSchemaRule`] is the first broken rule that is found.
pub(in crate::schema) fn compile<'r, 'a>(reader: &'r Reader<'a>) -> Result<Components<'r, 'a>, BrokenSchemaRule> {
    if let Some(place) = reader.crowd() {
        let most = Reader::COPIES;
        let rule = format!(
            "documents without a targetNamespace are included into so many namespaces that they make more than {most} \
             further components: give this one a targetNamespace, and import it"
        );
        return wrong(rule).map_err(|wrong: BrokenSchemaRule| wrong.at(place));
    }
    let mut compiler = Compiler::new(reader);
    compiler.xsd_types()?;
    compiler.twice()?;
    for kind in [Kind::Type, Kind::Element, Kind::Attribute, Kind::AttributeGroup, Kind::Group, Kind::Notation] {
        for (name, place) in reader.components(kind) {
            let name = Name { namespace: compiler.namespaces.intern(&name.0), local: name.1.as_str().into() };
            let at = |wrong: BrokenSchemaRule| wrong.at(place);
            match kind {
                Kind::Type => drop(compiler.type_at(place).map_err(at)?),
                Kind::Element => drop(compiler.element_at(place, true).map_err(at)?),
                Kind::Attribute => {
                    let attribute = compiler.attribute(place).map_err(at)?;
                    compiler.global_attributes.push((name, attribute));
                }
                Kind::AttributeGroup => compiler.attribute_group(place).map_err(at)?,
                Kind::Group => compiler.lone_group(place).map_err(at)?,
                Kind::Notation => {
                    let tree = compiler.tree(place);
                    if tree.get(place.node, "public").or(tree.get(place.node, "system")).is_none() {
                        return wrong("a notation has a public or a system identifier").map_err(at);
                    }
                }
            }
        }
    }
    if let Some((place, rule)) = reader.misplaced_redefinition() {
        return wrong(*rule).map_err(|wrong: BrokenSchemaRule| wrong.at(place));
    }
    compiler.drain()?;
    compiler.finish()
}

/// The greatest nesting depth of types and groups.
const DEEPEST: usize = 100;

/// The place of a component, with the target namespace that its document has there.
type Key = (usize, usize, Arc<str>);

struct Compiler<'r, 'a> {
    reader: &'r Reader<'a>,
    namespaces: Namespaces,
    names: Vec<Name>,
    name_ids: HashMap<Name, NameId>,
    elements: Vec<Element>,
    /// Global elements.
    element_ids: HashMap<Key, ElementId>,
    global_elements: Vec<ElementId>,
    /// The elements with a default or fixed value, each with its place.
    given_values: Vec<(ElementId, Place)>,
    /// The place of each element declaration, and the derivations that its `final` excludes from substitution.
    declared: Vec<(Place, Derivations)>,
    constraints: Vec<DraftConstraint>,
    /// Names and signs that the paths of constraints may still have.
    path_tokens: usize,
    /// The members of substitution groups, each with its head.
    heads: Vec<(ElementId, ElementId)>,
    global_attributes: Vec<(Name, Attribute)>,
    types: Vec<Slot>,
    type_ids: HashMap<Key, TypeId>,
    global_types: Vec<(Name, TypeId)>,
    /// Types to read: complex types that a component referred to. Some may have been read since.
    pending: Vec<TypeId>,
    particles: u32,
    depth: usize,
    /// The greatest depth since the outermost group that is being read.
    deepest: usize,
    /// The attribute groups that are being read, to detect a group that contains itself.
    reading_groups: Vec<Key>,
    attribute_groups: HashMap<Key, Arc<Written>>,
    /// Global attribute declarations that were read.
    attributes: HashMap<Key, Attribute>,
    /// The model groups that are being read, to detect a group that contains itself.
    reading_models: Vec<Key>,
    model_groups: HashMap<Key, ModelGroup>,
    /// The distinct sets of patterns so far, and the approximate number of states of their automata together.
    patterns: HashSet<String>,
    pattern_states: usize,
    /// The attribute uses in all types and groups together.
    attribute_uses: usize,
    /// The uses that are components of their own.
    attribute_components: u32,
    /// The members of all unions together.
    union_members: usize,
    /// The checks of enumerated, default and fixed values against members of unions.
    union_checks: usize,
    /// The steps of these checks.
    union_steps: usize,
    /// The steps of patterns over such values, at worst.
    pattern_steps: usize,
    /// The particles of redefining groups, each with the particle of the group that it redefines.
    redefined_groups: Vec<(Particle, Particle, Place)>,
    /// The particles of the global groups.
    named_groups: Vec<Particle>,
    /// The documentation of particles that refer to an element, by their ids.
    references: HashMap<u32, String>,
    reference_bytes: usize,
    /// The ids of particles that are elements and wildcards in content models, in their order, with the places.
    leaves: Vec<(u32, Place)>,
}

/// A type before and after it is read.
enum Slot {
    Waiting(Place),
    Reading,
    Read(Box<Draft>),
}

/// A type whose particles are not compiled to an automaton yet.
struct Draft {
    label: Box<str>,
    base: Option<TypeId>,
    derivation: Derivation,
    members: Vec<TypeId>,
    is_abstract: bool,
    block: Derivations,
    /// The derivations that the `final` of the type excludes.
    last: Derivations,
    attributes: Attributes,
    content: DraftContent,
    place: Option<Place>,
    /// The simple type of the text content.
    text: Option<TypeId>,
    is_simple: bool,
    made: Made,
    /// The facets by which a complex type narrows that simple type.
    narrowed: Option<Arc<Narrowed>>,
}

#[derive(Clone)]
enum DraftContent {
    Empty,
    Simple(SimpleType),
    Children { particle: Arc<Particle>, mixed: bool },
}

/// A name in Clark notation, `{namespace}local`, for messages.
fn shown(name: &Reference) -> String {
    if name.0.is_empty() { quoted(&name.1) } else { format!("{{{}}}{}", quoted(&name.0), quoted(&name.1)) }
}

fn wrong<T>(what: impl Into<String>) -> Result<T, BrokenSchemaRule> {
    Err(BrokenSchemaRule::new(None, what))
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
            declared: Vec::new(),
            constraints: Vec::new(),
            path_tokens: constraints::MOST_TOKENS,
            heads: Vec::new(),
            global_attributes: Vec::new(),
            types: Vec::new(),
            type_ids: HashMap::new(),
            global_types: Vec::new(),
            pending: Vec::new(),
            particles: 0,
            depth: 0,
            deepest: 0,
            reading_groups: Vec::new(),
            attribute_groups: HashMap::new(),
            attributes: HashMap::new(),
            reading_models: Vec::new(),
            model_groups: HashMap::new(),
            patterns: HashSet::new(),
            pattern_states: 0,
            attribute_uses: 0,
            attribute_components: 0,
            union_members: 0,
            union_checks: 0,
            union_steps: 0,
            pattern_steps: 0,
            redefined_groups: Vec::new(),
            named_groups: Vec::new(),
            references: HashMap::new(),
            reference_bytes: 0,
            leaves: Vec::new(),
        }
    }

    /// The declaration of an element: a global one, or a local one with a name inside of a model group.
    fn element_at(&mut self, place: &Place, global: bool) -> Result<ElementId, BrokenSchemaRule> {
        // A local element is read once, with the type or group around it.
        if global && let Some(id) = self.element_ids.get(&key(place)) {
            return Ok(*id);
        }
        let tree = self.tree(place);
        let Some(local) = tree.get(place.node, "name") else { return wrong("an element has no name") };
        let form = tree.get(place.node, "form").or_else(|| tree.get(0, "elementFormDefault"));
        let qualified = global || form == Some("qualified");
        let namespace = if qualified { self.namespaces.intern(&place.target) } else { Namespace::NONE };
        let name = self.name_id(Name { namespace, local: local.into() });
        let id = ElementId::new(self.elements.len());
        if global {
            self.element_ids.insert(key(place), id);
        }
        self.elements.push(Element {
            name,
            ty: self.any_type(),
            nillable: is_true(tree, place, "nillable"),
            is_abstract: is_true(tree, place, "abstract"),
            block: derivations(tree, place, "block", "blockDefault"),
            value: value_constraint(tree, place),
            constraints: 0..0,
        });
        if self.elements[id.index()].value.is_some() {
            self.given_values.push((id, place.clone()));
        }
        if global {
            self.global_elements.push(id);
        }
        self.declared.push((place.clone(), derivations(tree, place, "final", "finalDefault")));
        let head = self.head(place, global).map_err(|wrong| wrong.at(place))?;
        self.heads.extend(head.map(|head| (id, head)));
        let ty = self.element_type(place, head).map_err(|wrong| wrong.at(place))?;
        if let Slot::Read(draft) = &self.types[ty.index()]
            && let DraftContent::Simple(simple) = &draft.content
        {
            check_notation(simple, "the type of an element").map_err(|wrong| wrong.at(place))?;
        }
        self.elements[id.index()].ty = ty;
        self.identity_constraints(place, id)?;
        Ok(id)
    }

    /// The head of the substitution group that a global element is in.
    fn head(&mut self, place: &Place, global: bool) -> Result<Option<ElementId>, BrokenSchemaRule> {
        let (true, Some(group)) = (global, self.tree(place).get(place.node, "substitutionGroup")) else {
            return Ok(None);
        };
        let group = self.reference(Kind::Element, place, group)?;
        let found = self.find(Kind::Element, &group, place)?;
        self.nested(|compiler| compiler.element_at(found, true)).map(Some)
    }

    fn element_type(&mut self, place: &Place, head: Option<ElementId>) -> Result<TypeId, BrokenSchemaRule> {
        let tree = self.tree(place);
        let inner = tree.parts(place.node).find(|part| matches!(tree.node(*part).local, "simpleType" | "complexType"));
        match (tree.get(place.node, "type"), inner, head) {
            (Some(_), Some(_), _) => wrong("an element has either a type or one inside of it, not both"),
            (Some(name), _, _) => self.named_type(place, name),
            (None, Some(node), _) => self.type_at(&Place { node, ..place.clone() }),
            (None, None, Some(head)) => Ok(self.elements[head.index()].ty),
            (None, None, None) => Ok(self.any_type()),
        }
    }

    /// The id of the type that is defined at a place. A complex type may still wait to be read.
    fn type_at(&mut self, place: &Place) -> Result<TypeId, BrokenSchemaRule> {
        if let Some(id) = self.type_ids.get(&key(place)) {
            return Ok(*id);
        }
        let tree = self.tree(place);
        let id = self.add(Slot::Waiting(place.clone()));
        self.type_ids.insert(key(place), id);
        if let Some(local) = tree.get(place.node, "name").filter(|_| !self.reader.is_hidden(place)) {
            let name = Name { namespace: self.namespaces.intern(&place.target), local: local.into() };
            self.global_types.push((name, id));
        }
        match tree.node(place.node).local {
            "simpleType" => drop(self.read(id)?),
            _ => self.pending.push(id),
        }
        Ok(id)
    }

    /// Reads all waiting types, and those that they refer to.
    fn drain(&mut self) -> Result<(), BrokenSchemaRule> {
        while let Some(id) = self.pending.pop() {
            self.read(id)?;
        }
        Ok(())
    }

    /// The draft of a type. Reads it now if it was not read yet.
    fn read(&mut self, id: TypeId) -> Result<&Draft, BrokenSchemaRule> {
        if let Slot::Waiting(_) = self.types[id.index()] {
            let Slot::Waiting(place) = std::mem::replace(&mut self.types[id.index()], Slot::Reading) else {
                unreachable!("the slot was just looked at")
            };
            // A small frame, in which no draft is moved: types are read by recursion.
            self.types[id.index()] = Slot::Read(self.draft_at(id, &place)?);
        }
        match &self.types[id.index()] {
            Slot::Read(draft) => Ok(draft),
            Slot::Reading | Slot::Waiting(_) => wrong("a type is derived from itself"),
        }
    }

    /// Reads the type at a place.
    fn draft_at(&mut self, id: TypeId, place: &Place) -> Result<Box<Draft>, BrokenSchemaRule> {
        let draft = match self.tree(place).node(place.node).local {
            "simpleType" => self.nested(|compiler| compiler.simple_draft(place).map(Box::new)),
            _ => self.nested(|compiler| compiler.complex(place).map(Box::new)),
        };
        let mut draft = draft.map_err(|wrong| wrong.at(place))?;
        draft.text = draft.text.or(draft.is_simple.then_some(id));
        draft.place = Some(place.clone());
        Ok(draft)
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

    /// Refuses two components of one kind and name (section 3.15.6, sch-props-correct).
    fn twice(&self) -> Result<(), BrokenSchemaRule> {
        let kinds = [Kind::Type, Kind::Element, Kind::Attribute, Kind::AttributeGroup, Kind::Group, Kind::Notation];
        for kind in kinds.into_iter().filter(|kind| self.reader.has_twins(*kind)) {
            let components = self.reader.components(kind);
            let mut known: HashMap<&Reference, &Place> = HashMap::new();
            for (name, place) in components {
                if known.insert(name, place).is_some() {
                    let rule = format!("the {} '{}' is declared twice: keep one of them", kind.words(), shown(name));
                    return Err(BrokenSchemaRule::new(Some(place.clone()), rule));
                }
            }
        }
        Ok(())
    }

    /// Bounds the nesting depth of components.
    fn deepen(&mut self, depth: usize) -> Result<(), BrokenSchemaRule> {
        if depth > DEEPEST {
            return wrong(format!("types and groups are nested more than {DEEPEST} deep"));
        }
        self.deepest = self.deepest.max(depth);
        Ok(())
    }

    fn nested<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, BrokenSchemaRule>,
    ) -> Result<T, BrokenSchemaRule> {
        self.deepen(self.depth + 1)?;
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
    let constraint = |name, fixed| {
        tree.untrimmed(place.node, name).map(|text| ValueConstraint { fixed, text: text.into(), key: None })
    };
    constraint("fixed", true).or_else(|| constraint("default", false))
}

/// The derivations that an attribute such as `block` lists, or the default of the document if the component has none.
fn derivations(tree: &Tree, place: &Place, attribute: &str, by_default: &str) -> Derivations {
    let words = tree.get(place.node, attribute).or_else(|| tree.get(0, by_default));
    let Some(words) = words else { return Derivations::default() };
    let has = |word: &str| words.split_ascii_whitespace().any(|given| given == word || given == "#all");
    Derivations {
        extension: has("extension"),
        restriction: has("restriction"),
        substitution: has("substitution"),
        list: has("list"),
        union: has("union"),
    }
}
