//! Particle restriction: checks that a particle restricts another one (XSD 1.0 part 1, section 3.9.6,
//! cos-particle-restrict).
//!
//! Each pair of particles is compared once for each pair of groups around them, and each comparison is paid from a
//! budget. The recursion is as deep as groups nest, which is bounded where they are read.

use std::borrow::Cow;

use foldhash::{HashMap, HashMapExt};

use super::derive::is_derived;
use super::particle::{Order, Particle, Term};
use super::positions::Budget;
use super::substitution::Substitutions;
use super::{BrokenSchemaRule, Draft, Name, wrong};
use crate::schema::engine::grammar::{Constraint, Derivations, Element, ElementId, NameId, UNBOUNDED, Wildcard};
use crate::schema::shorten::quoted;
use crate::schema::simple::NoPrefixes;

/// The context for comparisons of particles.
pub(super) struct Restriction<'c> {
    pub(super) names: &'c [Name],
    pub(super) elements: &'c [Element],
    pub(super) constraints: &'c [Constraint],
    pub(super) drafts: &'c [Draft],
    pub(super) substitutions: &'c Substitutions,
    pub(super) budget: Budget,
}

/// The least and the greatest number of occurrences.
type Range = (u32, u32);

/// A particle without pointless groups (as the Recommendation calls them).
#[derive(Clone)]
struct Part<'p> {
    range: Range,
    term: PartTerm<'p>,
}

#[derive(Clone)]
enum PartTerm<'p> {
    Element(ElementId),
    Wildcard(&'p Wildcard),
    Group(Order, Cow<'p, [Particle]>),
}

impl Restriction<'_> {
    /// Refuses a particle that allows content which its base doesn't.
    pub(super) fn check(&mut self, own: &Particle, base: &Particle) -> Result<(), BrokenSchemaRule> {
        let (own, base) = (simplified(own), simplified(base));
        match self.restricts(own.as_ref(), base.as_ref())? {
            None => Ok(()),
            Some(why) => wrong(format!("the content of a restriction is not a part of that of its base: {why}")),
        }
    }

    /// Compares two particles: `None` if the first restricts the second, else the reason why not.
    fn restricts(&mut self, own: Option<&Part>, base: Option<&Part>) -> Result<Option<String>, BrokenSchemaRule> {
        self.budget.spend(1)?;
        let (own, base) = match (own, base) {
            (None, None) => return Ok(None),
            (None, Some(base)) if base.is_emptiable() => return Ok(None),
            (None, Some(_)) => return refuse("it is empty, and the base isn't"),
            (Some(_), None) => return refuse("the base is empty"),
            (Some(own), Some(base)) => (own, base),
        };
        use PartTerm::{Element, Group, Wildcard};
        match (&own.term, &base.term) {
            (Element(one), Element(other)) => self.elements(own, *one, base, *other),
            (Element(element), Wildcard(wildcard)) => {
                let name = &self.names[self.elements[element.index()].name.index()];
                if !wildcard.namespaces.contains(name.namespace) {
                    return refuse(format!("the base doesn't allow the namespace of <{}>", name.local));
                }
                self.ranges(own, own.range, base.range)
            }
            (Wildcard(one), Wildcard(other)) => {
                if !one.namespaces.is_within(&other.namespaces) {
                    return refuse("its xs:any allows namespaces that the one of the base doesn't");
                }
                if one.process.is_looser(other.process) {
                    return refuse("its xs:any checks less than that of the base: see processContents");
                }
                self.ranges(own, own.range, base.range)
            }
            (Group(_, parts), Wildcard(wildcard)) => {
                let anything = Part { range: (0, UNBOUNDED), term: Wildcard(wildcard) };
                for part in parts.iter() {
                    let part = simplified(part);
                    if part.is_some()
                        && let Some(why) = self.restricts(part.as_ref(), Some(&anything))?
                    {
                        return Ok(Some(why));
                    }
                }
                self.ranges(own, own.total(), base.range)
            }
            (Element(_), Group(order, _)) => {
                // Section 3.9.6, RecurseAsIfGroup: the element as a group with the compositor of the base.
                let single = [particle_of(own)];
                let group = Part { range: (1, 1), term: Group(*order, Cow::Borrowed(&single)) };
                self.groups(&group, base)
            }
            (Group(Order::Choice, parts), Element(head)) => {
                // The choice may list members of the substitution group of the head.
                for part in parts.iter() {
                    let part = simplified(part);
                    let once = Part { range: (0, UNBOUNDED), ..base.clone() };
                    if part.is_some() && !matches!(part, Some(Part { term: Element(_), .. }))
                        || self.substitutions.members(*head).is_empty()
                    {
                        return refuse("a group is in the place of one element of the base");
                    }
                    if let Some(why) = self.restricts(part.as_ref(), Some(&once))? {
                        return Ok(Some(why));
                    }
                }
                self.ranges(own, own.total(), base.range)
            }
            (Group(..), Group(..)) => self.groups(own, base),
            (Wildcard(_), _) => refuse("it has an xs:any where the base has none"),
            (Group(..), Element(_)) => refuse("a group is in the place of one element of the base"),
        }
    }

    /// Checks the rule NameAndTypeOK (rcase-NameAndTypeOK).
    fn elements(
        &mut self,
        own: &Part,
        one: ElementId,
        base: &Part,
        other: ElementId,
    ) -> Result<Option<String>, BrokenSchemaRule> {
        if one == other {
            return self.ranges(own, own.range, base.range);
        }
        let (mine, mut theirs) = (&self.elements[one.index()], &self.elements[other.index()]);
        let local = &self.names[mine.name.index()].local;
        if mine.name != theirs.name {
            let members = self.substitutions.members(other);
            self.budget.spend(members.len())?;
            match members.iter().find(|member| self.elements[member.index()].name == mine.name) {
                Some(member) => theirs = &self.elements[member.index()],
                None => {
                    let expected = &self.names[theirs.name.index()].local;
                    return refuse(format!("<{local}> is in the place of <{expected}> of the base"));
                }
            }
        }
        if mine.nillable && !theirs.nillable {
            return refuse(format!("<{local}> is nillable, and in the base it isn't"));
        }
        if let Some(fixed) = theirs.value.as_ref().filter(|value| value.fixed) {
            let is_same = mine.value.as_ref().is_some_and(|own| {
                own.fixed && (own.text == fixed.text || self.same_value(theirs, &own.text, &fixed.text))
            });
            if !is_same {
                return refuse(format!("<{local}> has the fixed value '{}' in the base", quoted(&fixed.text)));
            }
        }
        let labels = |element: &Element| -> Vec<&str> {
            let range = element.constraints.start as usize..element.constraints.end as usize;
            self.constraints.get(range).unwrap_or_default().iter().map(|constraint| &*constraint.label).collect()
        };
        let known = labels(theirs);
        if labels(mine).iter().any(|label| !known.contains(label)) {
            return refuse(format!("<{local}> has an identity constraint that it doesn't have in the base"));
        }
        let (block, before) = (mine.block, theirs.block);
        if before.extension && !block.extension
            || before.restriction && !block.restriction
            || before.substitution && !block.substitution
        {
            return refuse(format!("<{local}> blocks less than in the base"));
        }
        let by_extension = Derivations { extension: true, ..Derivations::default() };
        if !is_derived(self.drafts, mine.ty, theirs.ty, by_extension) {
            return refuse(format!("the type of <{local}> doesn't restrict the one that it has in the base"));
        }
        self.ranges(own, own.range, base.range)
    }

    fn same_value(&self, element: &Element, one: &str, other: &str) -> bool {
        match &self.drafts[element.ty.index()].content {
            super::DraftContent::Simple(simple) => simple.equal(one, other, &NoPrefixes) == Ok(true),
            _ => false,
        }
    }

    fn groups(&mut self, own: &Part, base: &Part) -> Result<Option<String>, BrokenSchemaRule> {
        let (PartTerm::Group(one, parts), PartTerm::Group(other, bases)) = (&own.term, &base.term) else {
            return Ok(None);
        };
        let parts: Vec<Part> = parts.iter().filter_map(simplified).collect();
        let bases: Vec<Part> = bases.iter().filter_map(simplified).collect();
        match (one, other) {
            (Order::Sequence, Order::Choice) => {
                // Rule MapAndSum (rcase-MapAndSum).
                let named = self.by_name(&bases);
                for part in &parts {
                    let mut fits = match self.place(part, &named) {
                        Some(at) => self.restricts(Some(part), Some(&bases[at]))?.is_none(),
                        None => false,
                    };
                    for base in &bases {
                        if fits {
                            break;
                        }
                        fits = self.restricts(Some(part), Some(base))?.is_none();
                    }
                    if !fits {
                        return refuse(format!("{} is not part of the choice of the base", self.words(part)));
                    }
                }
                let count = u32::try_from(parts.len()).unwrap_or(UNBOUNDED);
                self.ranges(own, (own.range.0.saturating_mul(count), times(own.range.1, count)), base.range)
            }
            (Order::All, Order::All) | (Order::Sequence, Order::Sequence) => {
                let mut rest = bases.iter();
                for part in &parts {
                    loop {
                        let Some(base) = rest.next() else {
                            return refuse(format!(
                                "{} has no counterpart in the base at this place",
                                self.words(part)
                            ));
                        };
                        match self.restricts(Some(part), Some(base))? {
                            None => break,
                            Some(_) if base.is_emptiable() => {}
                            Some(why) => return Ok(Some(why)),
                        }
                    }
                }
                if let Some(missing) = rest.find(|base| !base.is_emptiable()) {
                    return refuse(format!("{} of the base is missing", self.words(missing)));
                }
                self.ranges(own, own.range, base.range)
            }
            (Order::Choice, Order::Choice) => {
                let mut rest = bases.iter();
                for part in &parts {
                    loop {
                        let Some(base) = rest.next() else {
                            return refuse(format!(
                                "{} is not part of the choice of the base, or in another order",
                                self.words(part)
                            ));
                        };
                        if self.restricts(Some(part), Some(base))?.is_none() {
                            break;
                        }
                    }
                }
                self.ranges(own, own.range, base.range)
            }
            (Order::Sequence, Order::All) => {
                let mut free: Vec<bool> = vec![true; bases.len()];
                let named = self.by_name(&bases);
                for part in &parts {
                    // Each name occurs once in an xs:all.
                    if let Some(at) = self.place(part, &named) {
                        if !free[at] || part.range.1 > 1 {
                            let once = format!("{} is in the xs:all of the base, but once only", self.words(part));
                            return refuse(once);
                        }
                        if let Some(why) = self.restricts(Some(part), Some(&bases[at]))? {
                            return Ok(Some(why));
                        }
                        free[at] = false;
                        continue;
                    }
                    let mut found = None;
                    for (at, base) in bases.iter().enumerate().filter(|(at, _)| free[*at]) {
                        if self.restricts(Some(part), Some(base))?.is_none() {
                            found = Some(at);
                            break;
                        }
                    }
                    match found {
                        Some(at) => free[at] = false,
                        None => return refuse(format!("{} is not in the xs:all of the base", self.words(part))),
                    }
                }
                let missing = bases.iter().zip(&free).find(|(base, free)| **free && !base.is_emptiable());
                if let Some((missing, _)) = missing {
                    return refuse(format!("{} of the base is missing", self.words(missing)));
                }
                self.ranges(own, own.range, base.range)
            }
            (Order::All, _) => refuse("it is an xs:all, and the base isn't"),
            (Order::Choice, _) => refuse("it is a choice, and the base isn't"),
        }
    }

    /// The index of the first element of each name.
    fn by_name(&self, parts: &[Part]) -> HashMap<NameId, usize> {
        let mut named = HashMap::new();
        for (at, part) in parts.iter().enumerate() {
            if let PartTerm::Element(element) = part.term {
                named.entry(self.elements[element.index()].name).or_insert(at);
            }
        }
        named
    }

    fn place(&self, part: &Part, named: &HashMap<NameId, usize>) -> Option<usize> {
        match part.term {
            PartTerm::Element(element) => named.get(&self.elements[element.index()].name).copied(),
            _ => None,
        }
    }

    /// Checks the rule Occurrence Range OK (range-ok).
    fn ranges(&self, part: &Part, own: Range, base: Range) -> Result<Option<String>, BrokenSchemaRule> {
        if own.0 >= base.0 && own.1 <= base.1 {
            return Ok(None);
        }
        let most = |most: u32| if most == UNBOUNDED { "any number of".to_owned() } else { most.to_string() };
        refuse(format!(
            "{} may stand {} to {} times, and in the base {} to {}",
            self.words(part),
            own.0,
            most(own.1),
            base.0,
            most(base.1)
        ))
    }

    fn words(&self, part: &Part) -> String {
        match &part.term {
            PartTerm::Element(element) => {
                format!("<{}>", self.names[self.elements[element.index()].name.index()].local)
            }
            PartTerm::Wildcard(_) => "an xs:any".to_owned(),
            PartTerm::Group(..) => "a group".to_owned(),
        }
    }
}

fn refuse(why: impl Into<String>) -> Result<Option<String>, BrokenSchemaRule> {
    Ok(Some(why.into()))
}

fn times(one: u32, other: u32) -> u32 {
    match (one, other) {
        (0, _) | (_, 0) => 0,
        (UNBOUNDED, _) | (_, UNBOUNDED) => UNBOUNDED,
        (one, other) => one.saturating_mul(other),
    }
}

fn sum(one: u32, other: u32) -> u32 {
    if one == UNBOUNDED || other == UNBOUNDED { UNBOUNDED } else { one.saturating_add(other) }
}

/// Removes the pointless groups around a particle and in it; `None` if nothing remains.
fn simplified(particle: &Particle) -> Option<Part<'_>> {
    let mut at = particle;
    loop {
        let range = (at.min, at.max);
        match &at.term {
            Term::Element(element) => return Some(Part { range, term: PartTerm::Element(*element) }),
            Term::Wildcard(wildcard) => return Some(Part { range, term: PartTerm::Wildcard(wildcard) }),
            Term::Group(order, parts) => match &**parts {
                [] if *order != Order::Choice || at.min == 0 => return None,
                [one] if range == (1, 1) => at = one,
                parts => {
                    let term = PartTerm::Group(*order, flattened(*order, parts));
                    return Some(Part { range, term });
                }
            },
        }
    }
}

/// The particles of a group, with nested groups of the same compositor that occur once replaced by their parts.
fn flattened(order: Order, parts: &[Particle]) -> Cow<'_, [Particle]> {
    let is_same = |part: &Particle| {
        (part.min, part.max) == (1, 1)
            && matches!(&part.term, Term::Group(inner, _) if *inner == order && order != Order::All)
    };
    if !parts.iter().any(is_same) {
        return Cow::Borrowed(parts);
    }
    let mut out = Vec::new();
    let mut pending: Vec<&Particle> = parts.iter().rev().collect();
    while let Some(part) = pending.pop() {
        match &part.term {
            Term::Group(_, inner) if is_same(part) => pending.extend(inner.iter().rev()),
            _ => out.push(part.clone()),
        }
    }
    Cow::Owned(out)
}

fn particle_of(part: &Part) -> Particle {
    let term = match &part.term {
        PartTerm::Element(element) => Term::Element(*element),
        PartTerm::Wildcard(wildcard) => Term::Wildcard(Wildcard::clone(wildcard)),
        PartTerm::Group(order, parts) => Term::Group(*order, parts.to_vec().into()),
    };
    Particle { id: 0, min: part.range.0, max: part.range.1, term }
}

impl Part<'_> {
    /// The Effective Total Range (section 3.8.6).
    fn total(&self) -> Range {
        match &self.term {
            PartTerm::Element(_) | PartTerm::Wildcard(_) => self.range,
            PartTerm::Group(order, parts) => group_total(*order, parts, self.range),
        }
    }

    fn is_emptiable(&self) -> bool {
        self.total().0 == 0
    }
}

fn group_total(order: Order, parts: &[Particle], (min, max): Range) -> Range {
    let totals = parts.iter().map(Particle::total);
    let inner = match order {
        Order::Choice => totals.reduce(|one, other| (one.0.min(other.0), one.1.max(other.1))).unwrap_or((0, 0)),
        Order::Sequence | Order::All => totals.fold((0, 0), |one, other| (sum(one.0, other.0), sum(one.1, other.1))),
    };
    (min.saturating_mul(inner.0), times(max, inner.1))
}

impl Particle {
    fn total(&self) -> Range {
        match &self.term {
            Term::Element(_) | Term::Wildcard(_) => (self.min, self.max),
            Term::Group(order, parts) => group_total(*order, parts, (self.min, self.max)),
        }
    }

    /// Reports whether the particle is emptiable (section 3.9.6).
    pub(super) fn is_emptiable(&self) -> bool {
        self.total().0 == 0
    }
}
