//! Subset construction: from positions to a deterministic automaton.
//!
//! Unique Particle Attribution (XSD 1.0 part 1, section 3.8.6) makes content models deterministic except for copies of
//! one particle. If different particles compete, the schema breaks that rule and is refused.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use foldhash::{HashMap, HashMapExt, HashSet};

use super::conflict::{Conflict, Spots};
use super::particle::{Order, Particle, Term};
use super::positions::{Budget, FEW_COPIES, Leaf, LeafTerm, Positions, Set};
use super::substitution::Substitutions;
use super::{BrokenSchemaRule, wrong};
use crate::schema::engine::grammar::{
    AllGroup, Counter, Edge, Edges, Element, ElementId, FEW, Model, Name, NameId, State, StateId, Wildcard,
    WildcardEdge,
};
use crate::schema::engine::namespace::Namespace;

/// The context for all content models of a schema.
pub(super) struct Automata<'c> {
    pub(super) names: &'c [Name],
    /// The place of each name in their order: edges are sorted without comparing texts.
    pub(super) ranks: Vec<u32>,
    pub(super) elements: &'c [Element],
    pub(super) substitutions: &'c Substitutions,
    pub(super) spots: Spots<'c>,
    pub(super) globals: HashSet<ElementId>,
    pub(super) budget: Budget,
    /// The contents of groups that several particles share.
    pub(super) shared: HashMap<SharedGroup, Children>,
}

/// A group that several particles share, with their bounds; compared by its place in memory, where it stays as long as
/// this value.
pub(super) struct SharedGroup {
    order: Order,
    parts: Arc<[Particle]>,
    bounds: (u32, u32),
}

impl SharedGroup {
    /// The group of a particle; `None` if no other particle has it.
    pub(super) fn of(particle: &Particle) -> Option<Self> {
        let Term::Group(order, parts) = &particle.term else { return None };
        let shared = Self { order: *order, parts: parts.clone(), bounds: (particle.min, particle.max) };
        // The second one is that of the particle itself.
        (Arc::strong_count(parts) > 2).then_some(shared)
    }

    fn identity(&self) -> (*const Particle, Order, (u32, u32)) {
        (self.parts.as_ptr(), self.order, self.bounds)
    }
}

impl PartialEq for SharedGroup {
    fn eq(&self, other: &Self) -> bool {
        self.identity() == other.identity()
    }
}

impl Eq for SharedGroup {}

impl Hash for SharedGroup {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.identity().hash(state);
    }
}

/// The compiled children of a content model.
#[derive(Clone)]
pub(super) enum Children {
    Sequence(Arc<Model>),
    All(Arc<AllGroup>),
}

/// The place of each name in the order of names.
pub(super) fn ranks(names: &[Name]) -> Vec<u32> {
    let mut sorted: Vec<usize> = (0..names.len()).collect();
    sorted.sort_unstable_by_key(|name| &names[*name]);
    let mut ranks = vec![0; names.len()];
    for (rank, name) in (0..).zip(sorted) {
        ranks[name] = rank;
    }
    ranks
}

/// A set of positions that becomes a state: the positions that may come next, `accepts` if the element may end, and the
/// position that is being counted.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Subset {
    next: Set,
    accepts: bool,
    counted: Option<u32>,
}

/// The edges of one particle.
struct Branch<'p> {
    /// The id of the particle.
    id: u32,
    term: LeafTerm<'p>,
    to: StateId,
}

impl Automata<'_> {
    pub(super) fn model(&mut self, particle: &Particle) -> Result<Model, BrokenSchemaRule> {
        let counted = Positions::of(particle, FEW_COPIES, &mut self.budget);
        let (has_counters, counted) = match counted {
            Ok(positions) => {
                let has_counters = positions.leaves.iter().any(|leaf| leaf.counter.is_some());
                (has_counters, self.automaton(&positions))
            }
            Err(wrong) => (true, Err(wrong)),
        };
        match counted {
            // If counting can't separate the rounds of a group, each copy becomes a state of its own.
            Err(_) if has_counters => {
                let positions = Positions::of(particle, u32::MAX, &mut self.budget)?;
                self.automaton(&positions)
            }
            model => model,
        }
    }

    fn automaton(&mut self, positions: &Positions) -> Result<Model, BrokenSchemaRule> {
        // Most models have about one state for each position.
        let expected = positions.leaves.len() + 1;
        let mut construction = Construction {
            positions,
            numbers: HashMap::with_capacity(expected),
            by_lists: HashMap::with_capacity(expected),
            behind: vec![None; positions.leaves.len()],
            subsets: Vec::with_capacity(expected),
        };
        construction.number(Subset {
            next: Set::of(positions.first.clone()),
            accepts: positions.nullable,
            counted: None,
        });
        let mut model = Model::with_capacity(expected);
        while let Some(subset) = construction.subsets.get(model.states.len()).cloned() {
            let own = StateId::new(model.states.len());
            let state = self.state(&mut construction, &mut model, (own, &subset))?;
            self.budget.spend(1 + state.edges.named() + state.counter.as_ref().map_or(0, |c| c.edges.named()))?;
            model.states.push(state);
        }
        model.shrink();
        model.known = self.known(&model);
        Ok(model)
    }

    fn state(
        &mut self,
        construction: &mut Construction,
        model: &mut Model,
        (own, subset): (StateId, &Subset),
    ) -> Result<State, BrokenSchemaRule> {
        let branches = construction.branches(subset, &mut self.budget)?;
        self.distinct(&branches)?;
        let edges = self.edges(&branches, model);
        let mut counter = None;
        if let Some((leaf, (min, max))) = subset.counted.and_then(|position| construction.counted(position)) {
            let mut again = vec![Branch { id: leaf.id, term: leaf.term, to: own }];
            let edges = self.edges(&again, model);
            counter = Some(Box::new(Counter { min, max, edges }));
            if min < max {
                again.extend(branches);
                self.distinct(&again)?;
            }
        }
        Ok(State { edges, accepts: subset.accepts, counter })
    }

    fn edges(&self, branches: &[Branch], model: &mut Model) -> Edges {
        model.add(|edges, wildcard_edges, wildcards| {
            let start = edges.len();
            for Branch { term, to, .. } in branches {
                match term {
                    LeafTerm::Element(element) => edges.extend(self.named(*element, *to)),
                    LeafTerm::Wildcard(wildcard) => {
                        let known = wildcards.iter().position(|known| known == *wildcard);
                        let number = known.unwrap_or_else(|| {
                            wildcards.push(Wildcard::clone(wildcard));
                            wildcards.len() - 1
                        });
                        let wildcard = u32::try_from(number).unwrap_or(u32::MAX);
                        wildcard_edges.push(WildcardEdge { wildcard, to: *to });
                    }
                }
            }
            self.sort(&mut edges[start..]);
        })
    }

    /// The edge for the element, and one for each member of its substitution group.
    fn named(&self, element: ElementId, to: StateId) -> impl Iterator<Item = Edge> {
        let edge = move |element: ElementId| Edge { name: self.elements[element.index()].name, element, to };
        std::iter::once(element).chain(self.substitutions.members(element).iter().copied()).map(edge)
    }

    /// Sorts more than [`FEW`] edges by name, for the search by bisection.
    fn sort(&self, edges: &mut [Edge]) {
        if edges.len() > FEW {
            edges.sort_by_key(|edge| self.ranks[edge.name.index()]);
        }
    }

    /// Refuses particles that compete for an element (Unique Particle Attribution).
    fn distinct(&mut self, branches: &[Branch]) -> Result<(), BrokenSchemaRule> {
        if let [only] = branches {
            let LeafTerm::Element(element) = only.term else { return Ok(()) };
            return self.budget.spend(1 + self.substitutions.members(element).len());
        }
        let mut names: Vec<(NameId, u32)> = Vec::new();
        let mut wildcards: Vec<(&Wildcard, u32)> = Vec::new();
        for Branch { id, term, to } in branches {
            match term {
                LeafTerm::Element(element) => {
                    names.extend(self.named(*element, *to).map(|edge| (edge.name, *id)));
                }
                LeafTerm::Wildcard(wildcard) => wildcards.push((wildcard, *id)),
            }
        }
        names.sort_unstable();
        let listed: usize = wildcards.iter().map(|(wildcard, _)| 1 + wildcard.namespaces.len()).sum();
        self.budget.spend(names.len() * (1 + wildcards.len()) + wildcards.len() * listed)?;
        let twice = names.windows(2).find(|pair| pair[0].0 == pair[1].0);
        let twice = twice.map(|pair| (pair[0].0, Conflict::Elements(pair[0].1, pair[1].1)));
        let caught = |(name, element): &(NameId, u32)| {
            let namespace = self.names[name.index()].namespace;
            let wildcard = wildcards.iter().find(|(wildcard, _)| wildcard.namespaces.contains(namespace));
            wildcard.map(|(_, wildcard)| (*name, Conflict::Wildcard { element: *element, wildcard: *wildcard }))
        };
        if let Some((name, conflict)) = twice.or_else(|| names.iter().find_map(caught)) {
            let Name { namespace, local } = &self.names[name.index()];
            return Err(self.spots.ambiguous(&conflict, local, *namespace));
        }
        for (number, (one, first)) in wildcards.iter().enumerate() {
            let overlaps = |other: &Wildcard| !one.namespaces.intersection(&other.namespaces).is_empty();
            if let Some((_, second)) = wildcards[number + 1..].iter().find(|(other, _)| overlaps(other)) {
                return Err(self.spots.ambiguous(&Conflict::Wildcards(*first, *second), "", Namespace::NONE));
            }
        }
        Ok(())
    }

    /// All names on the edges of a model, sorted.
    fn known(&self, model: &Model) -> Vec<(NameId, ElementId)> {
        let edges = model.all_edges().iter();
        let mut known: Vec<(NameId, ElementId)> = edges.map(|edge| (edge.name, edge.element)).collect();
        known.sort_by_key(|(name, _)| self.ranks[name.index()]);
        known.dedup_by_key(|(name, _)| *name);
        known
    }

    /// The members of an `xs:all`; `None` for any other particle.
    pub(super) fn all(&mut self, particle: &Particle) -> Result<Option<AllGroup>, BrokenSchemaRule> {
        let mut optional = false;
        let mut at = particle;
        let members = loop {
            optional |= at.min == 0;
            match &at.term {
                Term::Group(Order::All, members) if at.max == 1 => break members,
                Term::Group(Order::Sequence, parts) if at.max == 1 && parts.len() == 1 => at = &parts[0],
                _ => return Ok(None),
            }
        };
        let (mut edges, mut required, mut branches) = (Vec::new(), Vec::new(), Vec::new());
        for member in members.iter() {
            let (Term::Element(element), 1) = (&member.term, member.max) else {
                return wrong("xs:all may only contain elements that occur at most once");
            };
            let to = StateId::new(required.len());
            edges.extend(self.named(*element, to));
            branches.push(Branch { id: member.id, term: LeafTerm::Element(*element), to });
            required.push(member.min > 0);
        }
        self.distinct(&branches)?;
        self.sort(&mut edges);
        Ok(Some(AllGroup { edges, required, optional }))
    }
}

struct Construction<'c, 'p> {
    positions: &'c Positions<'p>,
    numbers: HashMap<Subset, StateId>,
    /// The states by the follow lists whose union their subset is, which are cheaper to look up than the subset.
    by_lists: HashMap<Subset, StateId>,
    /// The state after each position that is the only copy of its particle: in a row of optional elements, all states
    /// before it lead to it.
    behind: Vec<Option<StateId>>,
    /// The subsets by number.
    subsets: Vec<Subset>,
}

impl<'p> Construction<'_, 'p> {
    fn number(&mut self, subset: Subset) -> StateId {
        *self.numbers.entry(subset).or_insert_with_key(|subset| {
            self.subsets.push(subset.clone());
            StateId::new(self.subsets.len() - 1)
        })
    }

    /// The branches of a subset, one per particle, in the order of the schema.
    fn branches(&mut self, subset: &Subset, budget: &mut Budget) -> Result<Vec<Branch<'p>>, BrokenSchemaRule> {
        let leaves = &self.positions.leaves;
        if let Set::One(only) = subset.next {
            let Leaf { id, term, .. } = leaves[only as usize];
            return Ok(vec![Branch { id, term, to: self.target(&[only], budget)? }]);
        }
        let mut next = subset.next.numbers().to_vec();
        next.sort_by_key(|position| leaves[*position as usize].particle);
        let of_one = |one: &u32, other: &u32| leaves[*one as usize].particle == leaves[*other as usize].particle;
        let mut particles: Vec<&[u32]> = next.chunk_by(of_one).collect();
        particles.sort_unstable_by_key(|copies| copies[0]);
        let mut branches = Vec::with_capacity(particles.len());
        for copies in particles {
            let Leaf { id, term, .. } = leaves[copies[0] as usize];
            branches.push(Branch { id, term, to: self.target(copies, budget)? });
        }
        Ok(branches)
    }

    /// The state after any of the copies of a particle.
    fn target(&mut self, copies: &[u32], budget: &mut Budget) -> Result<StateId, BrokenSchemaRule> {
        let positions = self.positions;
        if let [only] = copies
            && let Some(known) = self.behind[*only as usize]
        {
            budget.spend(1)?;
            return Ok(known);
        }
        let counted = copies.iter().copied().find(|copy| positions.leaves[*copy as usize].counter.is_some());
        if counted.is_some() && copies.len() > 1 {
            return wrong("a particle with large bounds stands in a group that is optional and repeats");
        }
        let lists = positions.lists_behind(copies);
        budget.spend(1 + lists.numbers().len() + copies.len())?;
        let accepts = copies.iter().any(|copy| positions.last[*copy as usize]);
        let by_lists = Subset { next: lists, accepts, counted };
        let state = match self.by_lists.get(&by_lists) {
            Some(known) => *known,
            None => {
                let next = positions.union(&by_lists.next, budget)?;
                let state = self.number(Subset { next, accepts, counted });
                self.by_lists.insert(by_lists, state);
                state
            }
        };
        if let [only] = copies {
            self.behind[*only as usize] = Some(state);
        }
        Ok(state)
    }

    fn counted(&self, position: u32) -> Option<(Leaf<'p>, (u32, u32))> {
        let leaf = self.positions.leaves[position as usize];
        leaf.counter.map(|counter| (leaf, counter))
    }
}
