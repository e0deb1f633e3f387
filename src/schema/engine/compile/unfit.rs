//! What the engine doesn't understand of a schema, and which payloads may meet it.
//!
//! A component that isn't understood stays in the grammar as a placeholder, and everything that may lead a payload
//! there is followed back from it: what holds it, what is made from it, what `xsi:type` or a substitution group may put
//! in its place, what a wildcard lets in. A payload that none of these ways leads to one from is judged by the engine.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use crate::schema::engine::grammar::{Content, Derivations, ElementId, Grammar, ProcessContents, TypeId, Wildcard};
use crate::schema::engine::simple::Unsupported;

/// The components that aren't understood.
#[derive(Debug, Default)]
pub(super) struct Unfit {
    elements: HashMap<ElementId, Unsupported>,
    types: HashMap<TypeId, Unsupported>,
    /// One of the global attributes.
    attribute: Option<Unsupported>,
    /// Something that may concern all of the schema.
    whole: Option<Unsupported>,
    /// The one that was found first.
    first: Option<Unsupported>,
}

/// Where a payload may get to.
#[derive(Debug, Clone, Copy)]
enum Place {
    Element(ElementId),
    Type(TypeId),
    /// Wherever a wildcard for elements leads that isn't skipped: to whatever is global.
    Anything,
    /// Wherever one for attributes leads.
    AnyAttribute,
}

impl Unfit {
    pub(super) fn element(&mut self, id: ElementId, why: Unsupported) {
        self.first.get_or_insert_with(|| why.clone());
        self.elements.entry(id).or_insert(why);
    }

    pub(super) fn ty(&mut self, id: TypeId, why: Unsupported) {
        self.first.get_or_insert_with(|| why.clone());
        self.types.entry(id).or_insert(why);
    }

    pub(super) fn attribute(&mut self, why: Unsupported) {
        self.first.get_or_insert_with(|| why.clone());
        self.attribute.get_or_insert(why);
    }

    pub(super) fn whole(&mut self, why: Unsupported) {
        self.first.get_or_insert_with(|| why.clone());
        self.whole.get_or_insert(why);
    }

    pub(super) fn has_element(&self, id: ElementId) -> bool {
        self.elements.contains_key(&id)
    }

    /// Fails for an element that isn't understood.
    pub(super) fn check_element(&self, id: ElementId) -> Result<(), Unsupported> {
        self.elements.get(&id).map_or(Ok(()), |why| Err(why.clone()))
    }

    /// Fails for a type that isn't understood.
    pub(super) fn check_type(&self, id: TypeId) -> Result<(), Unsupported> {
        self.types.get(&id).map_or(Ok(()), |why| Err(why.clone()))
    }

    /// Fails if nothing can be said of any payload.
    pub(super) fn check_whole(&self) -> Result<(), Unsupported> {
        self.whole.as_ref().map_or(Ok(()), |why| Err(why.clone()))
    }

    pub(super) fn into_first(self) -> Option<Unsupported> {
        self.first
    }

    /// The global elements from which a payload may get to what isn't understood, each with what that is.
    pub(super) fn left(&self, grammar: &Grammar) -> HashMap<ElementId, Arc<str>> {
        if self.first.is_none() {
            return HashMap::new();
        }
        let map = Map::new(grammar);
        let mut reasons: Vec<Option<Arc<str>>> = vec![None; map.ways_back.len()];
        let mut sources: Vec<(Place, &Unsupported)> = Vec::new();
        sources.extend(self.elements.iter().map(|(id, why)| (Place::Element(*id), why)));
        sources.extend(self.types.iter().map(|(id, why)| (Place::Type(*id), why)));
        sources.extend(self.attribute.iter().map(|why| (Place::AnyAttribute, why)));
        // The maps have no order, and reasons must.
        sources.sort_by_key(|(place, _)| map.number(*place));
        let mut pending: VecDeque<(usize, Arc<str>)> =
            sources.into_iter().map(|(place, why)| (map.number(place), why.0.as_str().into())).collect();
        while let Some((at, why)) = pending.pop_front() {
            if reasons[at].is_none() {
                pending.extend(map.ways_back[at].iter().map(|from| (*from, why.clone())));
                reasons[at] = Some(why);
            }
        }
        let left = grammar.global_elements.values().filter_map(|id| {
            let why = reasons[map.number(Place::Element(*id))].clone()?;
            Some((*id, why))
        });
        left.collect()
    }
}

/// From where a payload may get to each place.
struct Map {
    elements: usize,
    ways_back: Vec<Vec<usize>>,
}

impl Map {
    fn new(grammar: &Grammar) -> Self {
        let (elements, types) = (grammar.elements.len(), grammar.types.len());
        let mut map = Self { elements, ways_back: vec![Vec::new(); elements + types + 2] };
        let global_types: Vec<TypeId> = grammar.global_types.values().copied().collect();
        let mut instances: HashMap<TypeId, Vec<TypeId>> = HashMap::new();
        for index in 0..elements {
            let (element, ty) = (Place::Element(ElementId::new(index)), grammar.elements[index].ty);
            map.way(element, Place::Type(ty));
            // `xsi:type` may name any of these. All are made from `xs:anyType`, which holds wildcards.
            let derived = instances.entry(ty).or_insert_with(|| {
                let is_derived = |from: &TypeId| grammar.is_derived(*from, ty, Derivations::default());
                global_types.iter().copied().filter(|from| ty != grammar.any && is_derived(from)).collect()
            });
            derived.iter().for_each(|derived| map.way(element, Place::Type(*derived)));
        }
        for index in 0..types {
            map.ways_of(grammar, TypeId::new(index));
        }
        global_types.iter().for_each(|ty| map.way(Place::Anything, Place::Type(*ty)));
        grammar.global_elements.values().for_each(|element| map.way(Place::Anything, Place::Element(*element)));
        map.way(Place::Anything, Place::AnyAttribute);
        map
    }

    fn ways_of(&mut self, grammar: &Grammar, id: TypeId) {
        let (ty, place) = (&grammar.types[id.index()], Place::Type(id));
        // What is made from `xs:anyType` without its wildcards leads no further than it says itself.
        let base = ty.base.filter(|base| *base != grammar.any);
        base.iter().chain(&ty.members).for_each(|other| self.way(place, Place::Type(*other)));
        let is_open = |wildcard: &Wildcard| wildcard.process != ProcessContents::Skip;
        if ty.attributes.wildcard.as_ref().is_some_and(is_open) {
            self.way(place, Place::AnyAttribute);
        }
        match &ty.content {
            Content::Empty | Content::Simple(_) => {}
            Content::Sequence { model, .. } => {
                let counted = model.states.iter().filter_map(|state| state.counter.as_ref()).flat_map(|c| &c.edges);
                let edges = model.states.iter().flat_map(|state| &state.edges).chain(counted);
                edges.for_each(|edge| self.way(place, Place::Element(edge.element)));
                // Below it, what has no declaration may name any type, or is of `xs:anyType`.
                if model.wildcards.iter().any(is_open) {
                    self.way(place, Place::Anything);
                }
            }
            Content::All { members, .. } => {
                members.edges.iter().for_each(|edge| self.way(place, Place::Element(edge.element)));
            }
        }
    }

    fn way(&mut self, from: Place, to: Place) {
        let (from, to) = (self.number(from), self.number(to));
        self.ways_back[to].push(from);
    }

    fn number(&self, place: Place) -> usize {
        match place {
            Place::Element(id) => id.index(),
            Place::Type(id) => self.elements + id.index(),
            Place::Anything => self.ways_back.len() - 2,
            Place::AnyAttribute => self.ways_back.len() - 1,
        }
    }
}
