use std::sync::Arc;

use super::{Compiler, unsupported};
use crate::schema::engine::grammar::{ElementId, UNBOUNDED, Wildcard};
use crate::schema::engine::simple::Unsupported;
use crate::schema::xsd::read::{Kind, Place};

/// A term and how often it stands.
#[derive(Debug, Clone)]
pub(super) struct Particle {
    /// The same for all copies that unrolling makes of it.
    pub(super) id: u32,
    pub(super) min: u32,
    /// [`UNBOUNDED`] for any number.
    pub(super) max: u32,
    pub(super) term: Term,
}

#[derive(Debug, Clone)]
pub(super) enum Term {
    Element(ElementId),
    Wildcard(Wildcard),
    /// Shared, because extensions hold what they extend.
    Group(Order, Arc<[Particle]>),
}

/// How the particles of a group stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    Sequence,
    Choice,
    All,
}

impl Compiler<'_, '_> {
    /// A particle; `None` for one that never stands.
    pub(super) fn particle(&mut self, place: &Place) -> Result<Option<Particle>, Unsupported> {
        let tree = self.tree(place);
        let min = occurs(tree.get(place.node, "minOccurs"))?;
        let max = occurs(tree.get(place.node, "maxOccurs"))?;
        if max == 0 {
            return Ok(None);
        }
        if min > max {
            return unsupported("a particle must stand more often than it may");
        }
        let term = match tree.node(place.node).local.as_str() {
            "element" => Term::Element(self.element_term(place)?),
            "any" => Term::Wildcard(self.wildcard(place)),
            "group" => {
                let Some(reference) = tree.get(place.node, "ref") else { return unsupported("a group has no name") };
                let name = self.reference(place, reference)?;
                let found = self.find(Kind::Group, &name)?;
                let tree = self.tree(found);
                let Some(node) = tree.parts(found.node).find(|part| is_group(&tree.node(*part).local)) else {
                    return unsupported(format!("the group '{}' is empty", name.1));
                };
                let group = Place { node, ..found.clone() };
                match self.nested(|compiler| compiler.particle(&group))? {
                    Some(Particle { min: 1, max: 1, term, .. }) => term,
                    Some(inner) => Term::Group(Order::Sequence, [inner].into()),
                    None => return Ok(None),
                }
            }
            "sequence" => self.group(place, Order::Sequence)?,
            "choice" => self.group(place, Order::Choice)?,
            "all" => self.group(place, Order::All)?,
            other => return unsupported(format!("xs:{other} is no particle")),
        };
        Ok(Some(Particle { id: self.particle_id(), min, max, term }))
    }

    /// A term that stands exactly once.
    pub(super) fn once(&mut self, term: Term) -> Particle {
        Particle { id: self.particle_id(), min: 1, max: 1, term }
    }

    pub(super) fn particle_id(&mut self) -> u32 {
        self.particles += 1;
        self.particles
    }

    fn group(&mut self, place: &Place, order: Order) -> Result<Term, Unsupported> {
        /// Groups that hold each other grow as fast as bombs do.
        const MOST: u32 = 200_000;
        if self.particles > MOST {
            return unsupported(format!("its content models have more than {MOST} particles"));
        }
        let tree = self.tree(place);
        let mut particles = Vec::new();
        for node in tree.parts(place.node).filter(|part| tree.node(*part).local != "annotation") {
            let part = Place { node, ..place.clone() };
            particles.extend(self.nested(|compiler| compiler.particle(&part))?);
        }
        Ok(Term::Group(order, particles.into()))
    }

    fn element_term(&mut self, place: &Place) -> Result<ElementId, Unsupported> {
        let Some(reference) = self.tree(place).get(place.node, "ref") else { return self.element_at(place, false) };
        let name = self.reference(place, reference)?;
        let found = self.find(Kind::Element, &name)?;
        self.nested(|compiler| compiler.element_at(found, true))
    }
}

impl Particle {
    /// Whether it is a group that holds nothing.
    pub(super) fn is_empty(&self) -> bool {
        matches!(&self.term, Term::Group(Order::Sequence | Order::All, parts) if parts.is_empty())
    }
}

fn occurs(written: Option<&str>) -> Result<u32, Unsupported> {
    match written {
        None => Ok(1),
        Some("unbounded") => Ok(UNBOUNDED),
        // No payload has so many elements that a larger number would mean something else.
        Some(number) if !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()) => {
            Ok(number.parse().unwrap_or(UNBOUNDED))
        }
        Some(other) => unsupported(format!("'{other}' is no number of occurrences")),
    }
}

pub(super) fn is_group(local: &str) -> bool {
    matches!(local, "sequence" | "choice" | "all" | "group")
}
