//! Glushkov's construction: the leaves of a particle, and the leaves that may follow each.
//!
//! Source: A. Brüggemann-Klein, "Regular expressions into finite automata" (1993).

use super::particle::{MANY, Order, Particle, Term};
use super::{Wrong, wrong};
use crate::schema::engine::grammar::{ElementId, UNBOUNDED, Wildcard};

/// The greatest bound up to which a leaf is unrolled; a leaf with a larger bound is counted.
pub(super) const FEW_COPIES: u32 = 16;

/// The steps that are left for the construction of all content models of a schema.
pub(super) struct Budget(u64);

impl Default for Budget {
    fn default() -> Self {
        Self(3_000_000)
    }
}

impl Budget {
    pub(super) fn spend(&mut self, steps: usize) -> Result<(), Wrong> {
        match self.0.checked_sub(steps as u64) {
            Some(left) => self.0 = left,
            None => {
                return wrong(
                    "its content models are too large: have fewer optional elements in a row, and fewer groups inside of groups",
                );
            }
        }
        Ok(())
    }
}

/// The leaves of a particle, in their order.
#[derive(Debug, Default)]
pub(super) struct Positions<'p> {
    pub(super) leaves: Vec<Leaf<'p>>,
    /// The positions that may follow each leaf, as indexes of shared lists.
    follow: Vec<Vec<u32>>,
    lists: Vec<Vec<u32>>,
    /// The positions that may come first.
    pub(super) first: Vec<u32>,
    /// The flag of each position: `true` if it may come last.
    pub(super) last: Vec<bool>,
    /// Set if the content may be empty.
    pub(super) nullable: bool,
    few: u32,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Leaf<'p> {
    /// The id of the particle. Copies of one particle share it, and never compete.
    pub(super) particle: u32,
    pub(super) term: LeafTerm<'p>,
    /// The bounds on consecutive occurrences, if the leaf is counted rather than unrolled.
    pub(super) counter: Option<(u32, u32)>,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum LeafTerm<'p> {
    Element(ElementId),
    Wildcard(&'p Wildcard),
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
    pub(super) fn of(particle: &'p Particle, few: u32, budget: &mut Budget) -> Result<Self, Wrong> {
        let mut positions = Self { few, ..Self::default() };
        let whole = positions.particle(particle, budget)?;
        positions.last = vec![false; positions.leaves.len()];
        whole.last.iter().for_each(|last| positions.last[*last as usize] = true);
        (positions.first, positions.nullable) = (whole.first, whole.nullable);
        positions.first.sort_unstable();
        positions.first.dedup();
        positions.settle_counters()?;
        Ok(positions)
    }

    /// The lists of positions that may follow any of `positions`, without duplicates.
    pub(super) fn lists_behind(&self, positions: &[u32]) -> Vec<u32> {
        let mut lists: Vec<u32> =
            positions.iter().flat_map(|position| &self.follow[*position as usize]).copied().collect();
        lists.sort_unstable();
        lists.dedup();
        lists
    }

    /// The union of lists of positions.
    pub(super) fn union(&self, lists: &[u32], budget: &mut Budget) -> Result<Vec<u32>, Wrong> {
        let mut union: Vec<u32> = Vec::new();
        for list in lists {
            let list = &self.lists[*list as usize];
            budget.spend(list.len())?;
            union.extend_from_slice(list);
        }
        union.sort_unstable();
        union.dedup();
        Ok(union)
    }

    /// Removes or refuses counters inside of a loop: `(a{1,n})*` equals `a*`, and in `(a{m,n})*` a counter can't tell
    /// where a round ends.
    fn settle_counters(&mut self) -> Result<(), Wrong> {
        for (position, leaf) in self.leaves.iter_mut().enumerate() {
            let Some((min, max)) = leaf.counter else { continue };
            let mut behind = self.follow[position].iter().flat_map(|list| &self.lists[*list as usize]);
            let repeats = behind.any(|next| *next as usize == position);
            match (repeats, min <= 1) {
                (true, true) => leaf.counter = None,
                (true, false) if min < max => {
                    return wrong("a particle with large bounds stands in a group that repeats");
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn particle(&mut self, particle: &'p Particle, budget: &mut Budget) -> Result<Fragment, Wrong> {
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
        let leaf = Leaf { particle: id, term, counter: None };
        if (if max == UNBOUNDED { min } else { max }) <= self.few {
            return self.repeat(min, max, budget, |positions, budget| positions.leaf(leaf, budget));
        }
        let fragment = self.leaf(Leaf { counter: Some((min.max(1), max)), ..leaf }, budget)?;
        Ok(Fragment { nullable: min == 0, ..fragment })
    }

    fn leaf(&mut self, leaf: Leaf<'p>, budget: &mut Budget) -> Result<Fragment, Wrong> {
        /// The greatest number of positions of a content model.
        const MOST: usize = 60_000;
        budget.spend(1)?;
        if self.leaves.len() >= MOST {
            return wrong(format!("a content model has more than {MOST} particles"));
        }
        let position = u32::try_from(self.leaves.len()).unwrap_or(u32::MAX);
        self.leaves.push(leaf);
        self.follow.push(Vec::new());
        Ok(Fragment { first: vec![position], last: vec![position], nullable: false })
    }

    fn group(&mut self, order: Order, parts: &'p [Particle], budget: &mut Budget) -> Result<Fragment, Wrong> {
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
        mut copy: impl FnMut(&mut Self, &mut Budget) -> Result<Fragment, Wrong>,
    ) -> Result<Fragment, Wrong> {
        if min >= MANY {
            // No document has so many elements, so this loop never ends: nothing follows it, and it isn't last.
            let one = copy(self, budget)?;
            self.link(&one.last, &one.first, budget)?;
            return Ok(Fragment { last: Vec::new(), nullable: false, ..one });
        }
        let copies = if max == UNBOUNDED { min.max(1) } else { max };
        let mut whole: Option<Fragment> = None;
        for number in (0..copies).rev() {
            budget.spend(1)?;
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
    ) -> Result<Fragment, Wrong> {
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

    fn link(&mut self, from: &[u32], to: &[u32], budget: &mut Budget) -> Result<(), Wrong> {
        budget.spend(from.len().saturating_add(to.len()))?;
        if from.is_empty() || to.is_empty() {
            return Ok(());
        }
        let list = u32::try_from(self.lists.len()).unwrap_or(u32::MAX);
        self.lists.push(to.to_vec());
        from.iter().for_each(|position| self.follow[*position as usize].push(list));
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
