//! The components of a schema in the form that examples, prompts, JSON Schemas and repair need. They are the components
//! that the automata are made of, so they agree with validation; only documentation, and patterns and enumerated values
//! as their author wrote them, come from the schema documents.

mod facets;

use std::collections::BTreeMap;
use std::sync::Arc;

use foldhash::HashMap;

use super::concrete::Concrete;
use super::constraint_words::constraint_words;
use super::particle::{Order, Particle, Term};
use super::substitution::Substitutions;
use super::{Draft, DraftContent};
use crate::schema::engine::grammar::{
    AttributeUse, Attributes, Content as Compiled, ElementId, Grammar, Name, TypeId, UNBOUNDED, Wildcard,
};
use crate::schema::engine::namespace::Namespace;
use crate::schema::model::{self, Beside, Complex, Content, JsonElement, Model, Type};
use crate::schema::simple::{SimpleType, XsdType};
use crate::schema::source::Place;
use crate::schema::source::read::Reader;
use crate::schema::source::tree::NodeId;
use crate::vocab::{QName, ns};

/// The components of a schema that remain once its grammar is compiled.
pub(in crate::schema) struct Components<'r, 'a> {
    reader: &'r Reader<'a>,
    grammar: Arc<Grammar>,
    types: Vec<Kept>,
    /// The declaration of each element.
    declared: Vec<Place>,
    substitutions: Substitutions,
    /// The documentation of particles that refer to an element, by their ids.
    references: HashMap<u32, String>,
}

/// The properties of a type that remain once the grammar is compiled.
pub(super) struct Kept {
    place: Option<Place>,
    made: Made,
    content: DraftContent,
    is_simple: bool,
    text: Option<TypeId>,
    narrowed: Option<Arc<Narrowed>>,
}

/// The construction of a type.
pub(super) enum Made {
    /// A complex type.
    Parts,
    XsdType(&'static XsdType),
    /// A simple type, restricted by the facets at a place.
    Restriction(Place),
    List(TypeId),
    Union(Vec<TypeId>),
}

/// Facets that a complex type adds to the simple type of its text.
pub(super) struct Narrowed {
    pub(super) at: Place,
    pub(super) before: Option<Arc<Self>>,
}

impl Kept {
    pub(super) fn of(draft: &mut Draft) -> Self {
        Self {
            place: draft.place.take(),
            made: std::mem::replace(&mut draft.made, Made::Parts),
            content: std::mem::replace(&mut draft.content, DraftContent::Empty),
            is_simple: draft.is_simple,
            text: draft.text,
            narrowed: draft.narrowed.take(),
        }
    }
}

impl<'r, 'a> Components<'r, 'a> {
    pub(super) fn new(
        reader: &'r Reader<'a>,
        grammar: Arc<Grammar>,
        types: Vec<Kept>,
        declared: Vec<Place>,
        (substitutions, references): (Substitutions, HashMap<u32, String>),
    ) -> Self {
        Self { reader, grammar, types, declared, substitutions, references }
    }

    /// The grammar that was compiled from the components.
    pub(in crate::schema) fn grammar(&self) -> &Arc<Grammar> {
        &self.grammar
    }

    /// The simple types that elements of the first document define.
    pub(in crate::schema) fn simple_types(&self) -> HashMap<NodeId, SimpleType> {
        let own =
            self.types.iter().zip(&self.grammar.types).filter_map(|(kept, ty)| match (&kept.place, &ty.content) {
                (Some(place), Compiled::Simple(simple)) if kept.is_simple && place.document == 0 => {
                    Some((place.node, simple.clone()))
                }
                _ => None,
            });
        own.collect()
    }

    /// Drops the components and keeps the grammar.
    pub(in crate::schema) fn into_grammar(self) -> Arc<Grammar> {
        self.grammar
    }

    /// The models of global elements, each with its name. They have at most `parts` parts together, those of shared types
    /// counted once; the models that would take more have no parts.
    pub(in crate::schema) fn models<'q>(
        &self,
        elements: impl Iterator<Item = (&'q QName, ElementId)>,
        parts: usize,
    ) -> Vec<Model> {
        let mut projection = Projection {
            components: self,
            types: vec![Type::any(Beside::Unknown)],
            made: BTreeMap::new(),
            added: Vec::new(),
            pending: Vec::new(),
            concrete: Concrete::of(&self.grammar),
            namespace: None,
            left: parts,
            tries: 2 * parts,
        };
        let roots: Vec<_> = elements.map(|(name, element)| (name, projection.whole(element))).collect();
        let types = Arc::new(projection.types);
        let is_whole = self.substitutions.is_empty();
        let model = |(name, root): (&QName, Option<model::Element>)| match root {
            Some(root) => Model { root, types: types.clone(), is_whole, is_json: false },
            None => Model { root: opaque(name), types: types.clone(), is_whole: false, is_json: false },
        };
        roots.into_iter().map(model).collect()
    }

    fn docs(&self, place: &Place) -> String {
        self.reader.document(place).tree.documentation(place.node)
    }
}

/// The models of a schema under construction.
struct Projection<'c, 'r, 'a> {
    components: &'c Components<'r, 'a>,
    /// The types to write for abstract ones.
    concrete: Concrete<'c>,
    types: Vec<Type>,
    /// Types of the grammar with their ids in the model.
    made: BTreeMap<TypeId, model::TypeId>,
    /// The types of the grammar that the present payload added to them.
    added: Vec<TypeId>,
    /// Types that are referred to but not projected yet, with their ids in the model.
    pending: Vec<(TypeId, model::TypeId)>,
    /// The namespace of the last name, reused because neighbouring names mostly share it.
    namespace: Option<(Namespace, Arc<str>)>,
    /// The number of parts that the models may still have.
    left: usize,
    /// The number of parts that may still be made, those of models that took too many included.
    tries: usize,
}

/// The type in each model whose parts are not known.
const UNKNOWN: model::TypeId = 0;

/// The bytes of a text that count as one part: names stand ten times in a payload's schema, example and prompt, values
/// six times, documentation three times.
const NAME: usize = 24;
const VALUE: usize = 40;
/// A text that matches is searched for in each pattern.
const PATTERN: usize = 4;
const DOC: usize = 100;

impl Projection<'_, '_, '_> {
    /// The declaration of a global element. Projects all types that it leads to, or adds none if they have too many parts.
    fn whole(&mut self, element: ElementId) -> Option<model::Element> {
        let (known, left) = (self.types.len(), self.left);
        self.added.clear();
        let root = self.with_types(element);
        if root.is_none() {
            self.types.truncate(known);
            self.left = left;
            self.pending.clear();
            for id in &self.added {
                self.made.remove(id);
            }
        }
        root
    }

    fn with_types(&mut self, element: ElementId) -> Option<model::Element> {
        let root = self.element(element, None)?;
        while let Some((id, at)) = self.pending.pop() {
            self.types[at] = match self.components.types[id.index()].is_simple {
                true => Type::Simple(self.simple(id)?),
                false => Type::Complex(self.complex(id)?),
            };
        }
        Some(root)
    }

    fn element(&mut self, id: ElementId, docs: Option<&String>) -> Option<model::Element> {
        self.spend(1)?;
        let grammar = &self.components.grammar;
        let element = &grammar.elements[id.index()];
        let (namespace, local) = self.name(&grammar.names[element.name.index()])?;
        let fixed = element.value.as_ref().filter(|value| value.fixed).map(|value| value.text.to_string());
        let doc = docs.cloned().unwrap_or_else(|| self.components.docs(&self.components.declared[id.index()]));
        self.spend_on_text(&doc, DOC)?;
        self.spend_on_text(fixed.as_deref().unwrap_or_default(), VALUE)?;
        let concrete = self.concrete.get(element.ty);
        let ty = self.refer(concrete.map_or(element.ty, |(concrete, _)| concrete))?;
        let as_type = match concrete {
            Some((_, name)) => Some(self.name(name)?),
            None => None,
        };
        let nillable = element.nillable && fixed.is_none();
        let mut constraints = Vec::new();
        for words in constraint_words(grammar, element.constraints.clone()) {
            self.spend(1 + words.len() / VALUE)?;
            constraints.push(words);
        }
        Some(model::Element {
            namespace,
            local,
            doc,
            ty,
            as_type,
            fixed,
            nillable,
            constraints,
            hints: Vec::new(),
            json: self.json(id)?,
        })
    }

    /// The property of JSON that the declaration of an element tells. A name with a meaning of its own in JSON tells none.
    fn json(&mut self, id: ElementId) -> Option<Option<Box<JsonElement>>> {
        let components = self.components;
        let place = &components.declared[id.index()];
        let tree = &components.reader.document(place).tree;
        let told = |name: &str| {
            let is_told = |(written, _): &(&str, &str)| {
                let (prefix, local) = written.split_once(':').unwrap_or_default();
                local == name && tree.resolve(place.node, prefix) == ns::JSON_FORM
            };
            tree.attributes(place.node).find(is_told).map(|(_, value)| value)
        };
        let is_free = |key: &&str| !key.is_empty() && *key != "$" && *key != "$any" && !key.starts_with('@');
        let (key, array) = (told("key").filter(is_free), told("array"));
        if key.is_none() && array.is_none() {
            return Some(None);
        }
        let key = key.or(tree.get(place.node, "name")).unwrap_or_default().to_owned();
        self.spend_on_text(&key, NAME)?;
        let json = JsonElement { key, many: array.is_some(), always: array == Some("always"), null: false };
        Some(Some(Box::new(json)))
    }

    fn name(&mut self, name: &Name) -> Option<(Arc<str>, String)> {
        self.spend_on_text(&name.local, NAME)?;
        let namespaces = &self.components.grammar.namespaces;
        let (_, namespace) = match self.namespace.take().filter(|(last, _)| *last == name.namespace) {
            Some(last) => self.namespace.insert(last),
            None => self.namespace.insert((name.namespace, namespaces.name(name.namespace).into())),
        };
        Some((namespace.clone(), name.local.to_string()))
    }

    /// The id of a type in the model.
    fn refer(&mut self, id: TypeId) -> Option<model::TypeId> {
        if let Some(known) = self.made.get(&id) {
            return Some(*known);
        }
        let at = self.add(Type::any(Beside::Anything))?;
        self.made.insert(id, at);
        self.added.push(id);
        if id != self.components.grammar.any {
            self.pending.push((id, at));
        }
        Some(at)
    }

    fn add(&mut self, ty: Type) -> Option<model::TypeId> {
        self.spend(1)?;
        self.types.push(ty);
        Some(self.types.len() - 1)
    }

    /// The name of a type, if it has one, and its documentation.
    fn title(&mut self, id: TypeId) -> Option<(Option<String>, String)> {
        let Some(place) = &self.components.types[id.index()].place else { return Some((None, String::new())) };
        let name = self.components.reader.document(place).tree.get(place.node, "name");
        let doc = self.components.docs(place);
        self.spend_on_text(name.unwrap_or_default(), NAME)?;
        self.spend_on_text(&doc, DOC)?;
        Some((name.map(str::to_owned), doc))
    }

    fn complex(&mut self, id: TypeId) -> Option<Complex> {
        let components = self.components;
        let kept = &components.types[id.index()];
        let Attributes { uses, wildcard, .. } = &components.grammar.types[id.index()].attributes;
        let any_attributes = match wildcard {
            Some(wildcard) => Some(self.wildcard(wildcard, "attribute")?),
            None => None,
        };
        let attributes = uses.iter().map(|used| self.attribute(used)).collect::<Option<_>>()?;
        let (content, beside) = match &kept.content {
            DraftContent::Empty => (Content::Empty, Beside::Nothing),
            DraftContent::Simple(_) => (Content::Text(self.text(kept)?), Beside::Nothing),
            DraftContent::Children { particle, mixed } => {
                let beside = if *mixed { Beside::Text } else { Beside::Nothing };
                match particle.is_empty() {
                    true => (Content::Empty, beside),
                    false => (Content::Children(self.particle(particle, 0)?), beside),
                }
            }
        };
        let (name, doc) = self.title(id)?;
        Some(Complex { name, doc, attributes, any_attributes, content, beside })
    }

    fn attribute(&mut self, used: &AttributeUse) -> Option<model::Attribute> {
        self.spend(1)?;
        let (namespace, local) = self.name(&used.name)?;
        let doc = used.doc.as_deref().unwrap_or_default();
        let fixed = used.attribute.fixed();
        self.spend_on_text(doc, DOC)?;
        self.spend_on_text(fixed.unwrap_or_default(), VALUE)?;
        Some(model::Attribute {
            namespace,
            local,
            doc: doc.to_owned(),
            ty: self.refer(used.attribute.id)?,
            required: used.required,
            fixed: fixed.map(str::to_owned),
            hints: Vec::new(),
        })
    }

    fn particle(&mut self, particle: &Particle, depth: usize) -> Option<model::Particle> {
        /// The greatest nesting depth of groups; the readers of a model recurse.
        const DEEPEST: usize = 100;
        if depth > DEEPEST {
            return None;
        }
        self.spend(1)?;
        let term = match &particle.term {
            Term::Wildcard(wildcard) => model::Term::Any(self.wildcard(wildcard, "element")?),
            Term::Element(id) => self.element_term(*id, particle.id)?,
            Term::Group(order, parts) => {
                let (order, parts) = match order {
                    Order::Sequence => (model::Order::Sequence, parts_of(parts)),
                    Order::Choice => (model::Order::Choice, parts.iter().collect()),
                    Order::All => (model::Order::All, parts.iter().collect()),
                };
                let parts: Option<_> = parts.into_iter().map(|part| self.particle(part, depth + 1)).collect();
                model::Term::Group(order, parts?)
            }
        };
        let max = (particle.max != UNBOUNDED).then_some(particle.max.into());
        Some(model::Particle { min: particle.min.into(), max, term })
    }

    /// The term for an element: the element itself or, if it is abstract, a choice of the elements that may substitute
    /// it.
    fn element_term(&mut self, id: ElementId, particle: u32) -> Option<model::Term> {
        let components = self.components;
        let element = |id: &ElementId| &components.grammar.elements[id.index()];
        let docs = components.references.get(&particle);
        if !element(&id).is_abstract {
            return Some(model::Term::Element(Box::new(self.element(id, docs)?)));
        }
        let members = components.substitutions.members(id).iter().filter(|member| !element(member).is_abstract);
        let mut alternatives = Vec::new();
        for member in members {
            let member = self.element(*member, None)?;
            alternatives.push(model::Particle::once(model::Term::Element(Box::new(member))));
        }
        Some(model::Term::Group(model::Order::Choice, alternatives))
    }

    /// The elements or attributes that a wildcard allows, in words.
    fn wildcard(&mut self, wildcard: &Wildcard, noun: &str) -> Option<Box<str>> {
        let words = wildcard.words(&self.components.grammar.namespaces, noun);
        self.spend_on_text(&words, NAME)?;
        Some(words.into())
    }

    /// Counts a text as one part for each `bytes` of it.
    fn spend_on_text(&mut self, text: &str, bytes: usize) -> Option<()> {
        self.spend(text.len() / bytes)
    }

    fn spend(&mut self, parts: usize) -> Option<()> {
        self.left = self.left.checked_sub(parts)?;
        self.tries = self.tries.checked_sub(parts)?;
        Some(())
    }
}

/// The parts of a sequence. A sequence inside of it that occurs once is replaced by its parts, because extensions nest
/// in this way.
fn parts_of(sequence: &[Particle]) -> Vec<&Particle> {
    let mut parts = Vec::new();
    let mut pending: Vec<&Particle> = sequence.iter().rev().collect();
    while let Some(part) = pending.pop() {
        match &part.term {
            Term::Group(Order::Sequence, inner) if (part.min, part.max) == (1, 1) => pending.extend(inner.iter().rev()),
            _ => parts.push(part),
        }
    }
    parts
}

/// The declaration of a payload of which only the name is known.
fn opaque(name: &QName) -> model::Element {
    model::Element::plain(name.namespace().into(), name.local().to_owned(), UNKNOWN)
}
