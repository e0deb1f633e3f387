//! Glushkov's construction: the leaves of a particle, and the leaves that may follow each.
//!
//! Source: A. Brüggemann-Klein, "Regular expressions into finite automata" (1993).

use std::ops::Range;
use std::rc::Rc;

use super::particle::{MANY, Order, Particle, Term};
use super::{BrokenSchemaRule, wrong};
use crate::schema::engine::grammar::{ElementId, UNBOUNDED, Wildcard};

/// The greatest bound up to which a leaf is unrolled; a leaf with a larger bound is counted.
pub(super) const FEW_COPIES: u32 = 16;

/// The steps that are left for the construction of content models.
pub(super) struct Budget {
    /// Those for all models of a schema.
    all: u64,
    /// Those for the current one.
    model: u64,
}

impl Budget {
    const ALL: u64 = 11_000_000;
    const MODEL: u64 = 3_000_000;

    fn begin_model(&mut self) {
        self.model = Self::MODEL;
    }

    pub(super) fn spend(&mut self, steps: usize) -> Result<(), BrokenSchemaRule> {
        let left = |of: u64| of.checked_sub(steps as u64);
        let Some((all, model)) = left(self.all).zip(left(self.model)) else {
            return wrong(
                "its content models are too large: have fewer optional elements in a row, and fewer groups inside of groups",
            );
        };
        (self.all, self.model) = (all, model);
        Ok(())
    }
}

impl Default for Budget {
    fn default() -> Self {
        Self { all: Self::ALL, model: Self::MODEL }
    }
}

/// The leaves of a particle, in their order.
#[derive(Debug, Default)]
pub(super) struct Positions<'p> {
    pub(super) leaves: Vec<Leaf<'p>>,
    /// The lists of positions that may follow each leaf: its last link, if it has any.
    follow: Vec<Option<u32>>,
    links: Vec<Link>,
    /// The lists, which leaves share: ranges of `listed`.
    lists: Vec<Range<usize>>,
    listed: Vec<u32>,
    /// The positions that may come first.
    pub(super) first: Vec<u32>,
    /// The flag of each position: `true` if it may come last.
    pub(super) last: Vec<bool>,
    /// Set if the content may be empty.
    pub(super) nullable: bool,
    few: u32,
    /// The number of the next particle.
    particle: u32,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Leaf<'p> {
    /// The number of the particle in the content model. Copies that unrolling makes of it share the number, and never
    /// compete; uses of one group differ.
    pub(super) particle: u32,
    /// The id of the particle, for its place.
    pub(super) id: u32,
    pub(super) term: LeafTerm<'p>,
    /// The bounds on consecutive occurrences, if the leaf is counted rather than unrolled.
    pub(super) counter: Option<(u32, u32)>,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum LeafTerm<'p> {
    Element(ElementId),
    Wildcard(&'p Wildcard),
}

/// One of the lists that follow a leaf, and the link to the one before.
#[derive(Debug)]
struct Link {
    list: u32,
    before: Option<u32>,
}

/// A set of positions or of lists. Most hold one, which takes no allocation.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Set {
    One(u32),
    /// None or several, sorted.
    Many(Rc<[u32]>),
}

impl Set {
    /// The set of numbers that may occur more than once.
    pub(super) fn of(mut numbers: Vec<u32>) -> Self {
        numbers.sort_unstable();
        numbers.dedup();
        match *numbers {
            [only] => Self::One(only),
            _ => Self::Many(numbers.into()),
        }
    }

    pub(super) fn numbers(&self) -> &[u32] {
        match self {
            Self::One(only) => std::slice::from_ref(only),
            Self::Many(numbers) => numbers,
        }
    }
}

/// A part of the particle, by its first and last positions.
#[derive(Debug, Default)]
struct Fragment {
    first: Vec<u32>,
    last: Vec<u32>,
    nullable: bool,
}

impl<'p> Positions<'p> {
    /// Collects the positions of a particle. Leaves with bounds of more than `few` copies are counted.
    pub(super) fn of(particle: &'p Particle, few: u32, budget: &mut Budget) -> Result<Self, BrokenSchemaRule> {
        budget.begin_model();
        /// Number of positions that most models don't exceed, so that no list grows.
        const SOME: usize = 16;
        let mut positions = Self { few, ..Self::default() };
        positions.leaves.reserve(SOME);
        positions.follow.reserve(SOME);
        positions.links.reserve(SOME);
        positions.lists.reserve(SOME);
        positions.listed.reserve(SOME);
        let whole = positions.particle(particle, budget)?;
        positions.last = vec![false; positions.leaves.len()];
        whole.last.iter().for_each(|last| positions.last[*last as usize] = true);
        (positions.first, positions.nullable) = (whole.first, whole.nullable);
        positions.first.sort_unstable();
        positions.first.dedup();
        positions.settle_counters()?;
        Ok(positions)
    }

    /// The lists of positions that may follow any of `positions`.
    pub(super) fn lists_behind(&self, positions: &[u32]) -> Set {
        let mut lists = positions.iter().flat_map(|position| self.lists_of(*position));
        match (lists.next(), lists.next()) {
            (Some(only), None) => Set::One(only),
            (one, other) => Set::of(one.into_iter().chain(other).chain(lists).collect()),
        }
    }

    fn lists_of(&self, position: u32) -> impl Iterator<Item = u32> {
        let link = |at: u32| &self.links[at as usize];
        let last = self.follow[position as usize].map(link);
        std::iter::successors(last, move |later| later.before.map(link)).map(|link| link.list)
    }

    fn list(&self, list: u32) -> &[u32] {
        &self.listed[self.lists[list as usize].clone()]
    }

    /// The union of lists of positions.
    pub(super) fn union(&self, lists: &Set, budget: &mut Budget) -> Result<Set, BrokenSchemaRule> {
        if let Set::One(list) = lists
            && let list = self.list(*list)
            && let [only] = list
        {
            budget.spend(list.len())?;
            return Ok(Set::One(*only));
        }
        let mut union: Vec<u32> = Vec::new();
        for list in lists.numbers() {
            let list = self.list(*list);
            budget.spend(list.len())?;
            union.extend_from_slice(list);
        }
        Ok(Set::of(union))
    }

    /// Removes or refuses counters inside of a loop: `(a{1,n})*` equals `a*`, and in `(a{m,n})*` a counter can't tell
    /// where a round ends.
    fn settle_counters(&mut self) -> Result<(), BrokenSchemaRule> {
        for (position, at) in (0..).zip(0..self.leaves.len()) {
            let Some((min, max)) = self.leaves[at].counter else { continue };
            let repeats = self.lists_of(position).any(|list| self.list(list).contains(&position));
            match (repeats, min <= 1) {
                (true, true) => self.leaves[at].counter = None,
                (true, false) if min < max => {
                    return wrong("a particle with large bounds stands in a group that repeats");
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn particle(&mut self, particle: &'p Particle, budget: &mut Budget) -> Result<Fragment, BrokenSchemaRule> {
        let (mut id, mut min, mut max, mut term) = (particle.id, particle.min, particle.max, &particle.term);
        while let Term::Group(Order::Sequence | Order::Choice, parts) = term
            && let [one] = &**parts
            && let Some(range) = product((one.min, one.max), (min, max))
        {
            ((min, max), id, term) = (range, one.id, &one.term);
        }
        let term = match term {
            Term::Element(element) => LeafTerm::Element(*element),
            Term::Wildcard(wildcard) => LeafTerm::Wildcard(wildcard),
            Term::Group(order, parts) => {
                return self.repeat(min, max, budget, |positions, budget| positions.group(*order, parts, budget));
            }
        };
        let leaf = Leaf { particle: 0, id, term, counter: None };
        if (if max == UNBOUNDED { min } else { max }) <= self.few {
            return self.repeat(min, max, budget, |positions, budget| positions.leaf(leaf, budget));
        }
        let fragment = self.leaf(Leaf { counter: Some((min.max(1), max)), ..leaf }, budget)?;
        Ok(Fragment { nullable: min == 0, ..fragment })
    }

    fn leaf(&mut self, leaf: Leaf<'p>, budget: &mut Budget) -> Result<Fragment, BrokenSchemaRule> {
        /// The greatest number of positions of a content model.
        const MOST: usize = 60_000;
        budget.spend(1)?;
        if self.leaves.len() >= MOST {
            return wrong(format!("a content model has more than {MOST} particles"));
        }
        let position = u32::try_from(self.leaves.len()).unwrap_or(u32::MAX);
        self.leaves.push(Leaf { particle: self.particle, ..leaf });
        self.particle += 1;
        self.follow.push(None);
        Ok(Fragment { first: vec![position], last: vec![position], nullable: false })
    }

    fn group(
        &mut self,
        order: Order,
        parts: &'p [Particle],
        budget: &mut Budget,
    ) -> Result<Fragment, BrokenSchemaRule> {
        budget.spend(1)?;
        match order {
            Order::Sequence => {
                let mut whole = Fragment { nullable: true, ..Fragment::default() };
                for part in parts {
                    let part = self.particle(part, budget)?;
                    whole = self.concatenation(whole, part, budget)?;
                }
                Ok(whole)
            }
            Order::Choice => {
                let mut whole = Fragment::default();
                for part in parts {
                    let part = self.particle(part, budget)?;
                    whole.first.extend(part.first);
                    whole.last.extend(part.last);
                    whole.nullable |= part.nullable;
                }
                Ok(whole)
            }
            Order::All => wrong("xs:all is inside of another group"),
        }
    }

    /// Repeats a fragment: `x{2,4}` becomes `x(x(x(x)?)?)`, built from its end, and `x{2,}` becomes `xx+`.
    fn repeat(
        &mut self,
        min: u32,
        max: u32,
        budget: &mut Budget,
        mut copy: impl FnMut(&mut Self, &mut Budget) -> Result<Fragment, BrokenSchemaRule>,
    ) -> Result<Fragment, BrokenSchemaRule> {
        if (min, max) == (1, 1) {
            budget.spend(1)?;
            return copy(self, budget);
        }
        if min >= MANY {
            // No document has so many elements, so this loop never ends: nothing follows it, and it isn't last.
            let one = copy(self, budget)?;
            self.link(&one.last, &one.first, budget)?;
            return Ok(Fragment { last: Vec::new(), nullable: false, ..one });
        }
        let copies = if max == UNBOUNDED { min.max(1) } else { max };
        let mut whole: Option<Fragment> = None;
        let first = self.particle;
        for number in (0..copies).rev() {
            budget.spend(1)?;
            self.particle = first;
            let one = copy(self, budget)?;
            let mut joined = match whole {
                Some(behind) => self.concatenation(one, behind, budget)?,
                None => {
                    if max == UNBOUNDED {
                        self.link(&one.last, &one.first, budget)?;
                    }
                    one
                }
            };
            joined.nullable |= number >= min;
            whole = Some(joined);
        }
        Ok(whole.unwrap_or(Fragment { nullable: true, ..Fragment::default() }))
    }

    fn concatenation(
        &mut self,
        mut one: Fragment,
        mut other: Fragment,
        budget: &mut Budget,
    ) -> Result<Fragment, BrokenSchemaRule> {
        self.link(&one.last, &other.first, budget)?;
        budget.spend(one.first.len() + one.last.len())?;
        if one.nullable {
            one.first.append(&mut other.first);
        }
        if other.nullable {
            other.last.append(&mut one.last);
        }
        Ok(Fragment { first: one.first, last: other.last, nullable: one.nullable && other.nullable })
    }

    fn link(&mut self, from: &[u32], to: &[u32], budget: &mut Budget) -> Result<(), BrokenSchemaRule> {
        budget.spend(from.len().saturating_add(to.len()))?;
        if from.is_empty() || to.is_empty() {
            return Ok(());
        }
        let list = u32::try_from(self.lists.len()).unwrap_or(u32::MAX);
        let start = self.listed.len();
        self.listed.extend_from_slice(to);
        self.lists.push(start..self.listed.len());
        for position in from {
            let last = u32::try_from(self.links.len()).unwrap_or(u32::MAX);
            let before = self.follow[*position as usize].replace(last);
            self.links.push(Link { list, before });
        }
        Ok(())
    }
}

/// The bounds of `x` in `(x{inner}){outer}`, if they are one range without gaps between a number of rounds and the
/// next.
fn product(inner: (u32, u32), outer: (u32, u32)) -> Option<(u32, u32)> {
    let times = |one: u32, other: u32| match (one, other) {
        (UNBOUNDED, _) | (_, UNBOUNDED) => UNBOUNDED,
        (one, other) => Some(one.saturating_mul(other)).filter(|product| *product < MANY).unwrap_or(UNBOUNDED),
    };
    let reach = |rounds: u32| times(inner.1, rounds).saturating_add(1);
    let is_one_range = outer.0 == outer.1
        || inner.0.saturating_mul(outer.0.saturating_add(1)) <= if outer.0 == 0 { 1 } else { reach(outer.0) };
    is_one_range.then(|| (inner.0.saturating_mul(outer.0).min(MANY), times(inner.1, outer.1)))
}
