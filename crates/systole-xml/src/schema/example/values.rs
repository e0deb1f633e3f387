//! The values of simple types for examples: for each type the first candidates that the engine finds valid.
//!
//! Invariants: the values of a schema are found all at once, so that they don't depend on the payloads that were asked
//! for; each type has its share of the steps.

use std::cell::Cell;
use std::ops::ControlFlow;

use super::candidates::{Offer, atomic, list_form, of_all_patterns, patterned};
use crate::schema::model::{Facets, Model, Simple, Type, TypeId, Variety};
use crate::schema::pattern::shortest_of_all;
use crate::schema::simple::Prefixes;

/// The number of values to find.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted {
    /// Values of an enumeration.
    pub(crate) enumerated: usize,
    /// Values of any other type, at most two.
    pub(crate) others: usize,
    /// The number of steps for all types together: one for each byte of a candidate and those of its patterns and unions.
    pub(crate) steps: usize,
}

/// The values of the simple types of a schema.
#[derive(Debug)]
pub(crate) struct Values {
    found: Vec<Vec<Box<str>>>,
}

/// The number of different values for a restriction of `xs:ID`.
const IDS: usize = 16;

impl Values {
    /// The values of the types of a model.
    pub(crate) fn of(model: &Model, wanted: Wanted) -> Self {
        let simple = |ty: &TypeId| matches!(model.types[*ty], Type::Simple(_));
        let types: Vec<TypeId> = (0..model.types.len()).filter(simple).collect();
        let mut search = Search {
            model,
            wanted,
            found: vec![None; model.types.len()],
            share: 0,
            left: wanted.steps,
            steps: StepsLeft(Cell::new(0)),
        };
        let share = |types: usize| wanted.steps / 2 / types.max(1);
        search.share = share(types.len()).max(LEAST);
        types.iter().for_each(|ty| search.find(*ty));
        // The types for which a share was too little have the rest.
        let without: Vec<TypeId> = types.into_iter().filter(|ty| !search.has(*ty)).collect();
        if share(without.len()) > search.share {
            search.share = share(without.len());
            without.iter().for_each(|ty| search.found[*ty] = None);
            without.iter().for_each(|ty| search.find(*ty));
        }
        Self { found: search.found.into_iter().map(Option::unwrap_or_default).collect() }
    }

    /// Returns whether a type has a value.
    pub(super) fn has(&self, ty: TypeId) -> bool {
        !self.found[ty].is_empty()
    }

    /// One of the values of a type.
    pub(super) fn get(&self, ty: TypeId, at: usize) -> Option<&str> {
        let found = &self.found[ty];
        found.get(at % found.len().max(1)).map(|value| &**value)
    }

    /// All values of a type that were found.
    pub(super) fn all(&self, ty: TypeId) -> impl Iterator<Item = &str> {
        self.found[ty].iter().map(|value| &**value)
    }
}

/// The least number of steps for a type.
const LEAST: usize = 256;

/// Number of steps that the patterns of a type take before its first candidate: they are parsed, and their automaton is built.
const PATTERNS: usize = 512;

/// Number of steps for each candidate, beside those for its bytes.
const CANDIDATE: usize = 16;

struct Search<'m> {
    model: &'m Model,
    wanted: Wanted,
    /// The values of each type; `None` before they are searched.
    found: Vec<Option<Vec<Box<str>>>>,
    /// Number of steps for each type.
    share: usize,
    /// Number of steps for the patterns of all types.
    left: usize,
    steps: StepsLeft,
}

impl Search<'_> {
    fn has(&self, ty: TypeId) -> bool {
        self.found[ty].as_ref().is_some_and(|found| !found.is_empty())
    }

    /// Finds the values of a type. Recurses over items and members, as deep as simple types nest.
    fn find(&mut self, ty: TypeId) {
        let Type::Simple(simple) = &self.model.types[ty] else { return };
        if self.found[ty].is_some() {
            return;
        }
        match &simple.variety {
            Variety::Atomic(_) => {}
            Variety::List(item) => self.find(*item),
            Variety::Union(members) => members.iter().for_each(|member| self.find(*member)),
        }
        if !simple.facets.patterns.is_empty() {
            match self.left.checked_sub(PATTERNS) {
                Some(left) => self.left = left,
                None => return self.found[ty] = Some(Vec::new()),
            }
        }
        self.steps.0.set(self.share);
        let is_id = matches!(simple.variety, Variety::Atomic(base) if base.name == "ID");
        let (turns, most) = match (simple.facets.values.is_empty(), is_id && !simple.facets.is_empty()) {
            (false, _) => (1, self.wanted.enumerated),
            (true, true) => (1, IDS),
            (true, false) => (self.wanted.others, 1),
        };
        let mut found: Vec<Box<str>> = Vec::new();
        for turn in 0..turns {
            let end = found.len() + most;
            let mut take = |text: &str| {
                if !self.steps.take(CANDIDATE + text.len()) {
                    return ControlFlow::Break(());
                }
                if !found.iter().any(|known| **known == *text) && self.allows(simple, text) {
                    found.push(text.into());
                }
                if found.len() < end { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            };
            // The search ends when enough are found, or no candidate is left.
            let _ = self.candidates(simple, turn, &mut take);
        }
        self.found[ty] = Some(found);
    }

    fn allows(&self, simple: &Simple, text: &str) -> bool {
        let Some(definition) = &simple.definition else { return true };
        // The namespaces of an enumeration of names are known only in a payload.
        let is_named = definition.has_prefixes() && !simple.facets.values.is_empty();
        is_named || definition.check(text, &self.steps).is_ok()
    }

    fn candidates(&self, simple: &Simple, turn: usize, offer: &mut Offer) -> ControlFlow<()> {
        let facets = &simple.facets;
        if !facets.values.is_empty() {
            return facets.values.iter().try_for_each(|value| offer(&value.value));
        }
        match &simple.variety {
            Variety::Atomic(base) => {
                atomic(base, facets, turn, self.steps.0.get(), offer)?;
                of_all_patterns(base, facets, &|steps| self.steps.take(steps), offer)
            }
            Variety::List(item) => {
                let known = self.found[*item].as_deref().unwrap_or_default();
                let count = usize::try_from(facets.min_length.unwrap_or(0).max(1)).unwrap_or(usize::MAX);
                for value in known.iter().cycle().skip(turn).take(known.len()) {
                    if !self.steps.take(count.saturating_mul(1 + value.len())) {
                        break;
                    }
                    offer(&vec![&**value; count].join(" "))?;
                }
                patterned(facets, turn, offer)?;
                self.list_by_patterns(*item, facets, count).iter().try_for_each(|text| offer(text))?;
                offer("")
            }
            Variety::Union(members) => {
                let found = |member: &TypeId| self.found[*member].as_deref().unwrap_or_default();
                for value in members.iter().flat_map(found) {
                    offer(value)?;
                }
                patterned(facets, turn, offer)
            }
        }
    }
}

impl Search<'_> {
    /// Lists of `count` items of a built-in type or more that all patterns match.
    fn list_by_patterns(&self, item: TypeId, facets: &Facets, count: usize) -> Vec<String> {
        let base = match self.model.simple(item).map(|item| &item.variety) {
            Some(Variety::Atomic(base)) if !facets.patterns.is_empty() => base,
            _ => return Vec::new(),
        };
        let is_exact = facets.max_length == facets.min_length && facets.max_length.is_some();
        let Some(form) = list_form(base, count, is_exact) else { return Vec::new() };
        shortest_of_all(&facets.patterns, Some(&form), None, &|steps| self.steps.take(steps))
    }
}

/// The steps that are left for the values of a type.
pub(super) struct StepsLeft(pub(super) Cell<usize>);

impl StepsLeft {
    /// Takes steps; `false` if there are not enough.
    pub(super) fn take(&self, steps: usize) -> bool {
        let left = self.0.get().checked_sub(steps);
        self.0.set(left.unwrap_or(0));
        left.is_some()
    }
}

impl Prefixes for StepsLeft {
    fn namespace(&self, _: &str) -> Option<&str> {
        None
    }

    fn spend(&self, steps: usize) -> bool {
        self.take(steps)
    }
}
