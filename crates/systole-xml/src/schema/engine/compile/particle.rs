//! Particles: elements, wildcards and model groups with their bounds (XSD 1.0 part 1, sections 3.8 and 3.9).

use std::sync::Arc;

use super::{BrokenSchemaRule, Compiler, key, wrong};
use crate::schema::engine::grammar::{ElementId, UNBOUNDED, Wildcard};
use crate::schema::shorten::quoted;
use crate::schema::source::Place;
use crate::schema::source::read::Kind;

/// A term with its bounds.
#[derive(Debug, Clone)]
pub(super) struct Particle {
    /// The id, by which its place is known. All references to a group share its particles.
    pub(super) id: u32,
    pub(super) min: u32,
    /// The upper bound; [`UNBOUNDED`] for none.
    pub(super) max: u32,
    pub(super) term: Term,
}

#[derive(Debug, Clone)]
pub(super) enum Term {
    Element(ElementId),
    Wildcard(Wildcard),
    /// A group, shared because an extension contains the content of its base.
    Group(Order, Arc<[Particle]>),
}

/// The compositor of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Order {
    Sequence,
    Choice,
    All,
}

/// A global group that was read.
#[derive(Clone)]
pub(super) struct ModelGroup {
    particle: Option<Particle>,
    /// Number of its particles, those of groups in it included each time.
    particles: u32,
    /// Levels of groups inside of it.
    depth: usize,
}

/// The greatest number of particles of all content models. Groups that refer to groups can grow exponentially.
const MOST_PARTICLES: u32 = 200_000;

/// The greatest number of bytes of documentation of references, copied for each use of their group.
const MOST_REFERENCED: usize = 8 << 20;

impl Compiler<'_, '_> {
    /// The particle at a place; `None` if its `maxOccurs` is 0 or it is an empty group.
    pub(super) fn particle(&mut self, place: &Place) -> Result<Option<Particle>, BrokenSchemaRule> {
        let tree = self.tree(place);
        let min = occurs(tree.get(place.node, "minOccurs"))?;
        let max = occurs(tree.get(place.node, "maxOccurs"))?;
        if min > max {
            return wrong(format!("minOccurs is more than maxOccurs: {min} and {max}"))
                .map_err(|wrong: BrokenSchemaRule| wrong.at(place));
        }
        if max == 0 {
            return Ok(None);
        }
        let max = if max >= MANY { UNBOUNDED } else { max };
        let term = match tree.node(place.node).local {
            "element" => Term::Element(self.element_term(place)?),
            "any" => Term::Wildcard(self.wildcard(place)?),
            "group" => {
                let Some(reference) = tree.get(place.node, "ref") else { return wrong("a group has no name") };
                let name = self.reference(Kind::Group, place, reference)?;
                let found = self.find(Kind::Group, &name, place)?;
                match self.model_group(found)? {
                    Some(Particle { min: 1, max: 1, term, .. }) => term,
                    Some(inner) => Term::Group(Order::Sequence, [inner].into()),
                    None => return Ok(None),
                }
            }
            "sequence" => self.group(place, Order::Sequence)?,
            "choice" => self.group(place, Order::Choice)?,
            "all" => self.group(place, Order::All)?,
            other => return wrong(format!("xs:{other} is not a particle")),
        };
        let id = self.particle_id();
        if !matches!(term, Term::Group(..)) {
            self.leaves.push((id, place.clone()));
        }
        if matches!(term, Term::Element(_)) && tree.get(place.node, "ref").is_some() {
            let docs = tree.documentation(place.node);
            self.reference_bytes += docs.len();
            if self.reference_bytes > MOST_REFERENCED {
                return wrong(format!(
                    "groups take over more than {MOST_REFERENCED} bytes of documentation: shorten that of references"
                ))
                .map_err(|wrong: BrokenSchemaRule| wrong.at(place));
            }
            if !docs.is_empty() {
                self.references.insert(id, docs);
            }
        }
        Ok(Some(Particle { id, min, max, term }))
    }

    /// Checks a global group, which may have no reference to it.
    pub(super) fn lone_group(&mut self, place: &Place) -> Result<(), BrokenSchemaRule> {
        let mut particle = self.model_group(place)?;
        self.named_groups.extend(particle.clone());
        let mut redefined = place;
        // The redefined group may be a redefinition itself.
        while let Some(original) = self.reader.original(redefined) {
            let base = self.model_group(original)?;
            if !self.refers_to_itself(redefined, "group")?
                && let (Some(particle), Some(base)) = (particle, base.clone())
            {
                self.redefined_groups.push((particle, base, redefined.clone()));
            }
            (particle, redefined) = (base, original);
        }
        Ok(())
    }

    fn model_group(&mut self, place: &Place) -> Result<Option<Particle>, BrokenSchemaRule> {
        let tree = self.tree(place);
        let Some(node) = tree.parts(place.node).find(|part| is_group(tree.node(*part).local)) else {
            return Ok(None);
        };
        if let Some(known) = self.model_groups.get(&key(place)).cloned() {
            self.deepen(self.depth + known.depth)?;
            self.particles = self.particles.saturating_add(known.particles);
            self.check_particles()?;
            return Ok(known.particle);
        }
        if self.reading_models.contains(&key(place)) {
            return wrong("a group contains itself: remove the reference to it")
                .map_err(|wrong: BrokenSchemaRule| wrong.at(place));
        }
        self.reading_models.push(key(place));
        let group = Place { node, ..place.clone() };
        let (before, deepest) = (self.particles, std::mem::replace(&mut self.deepest, self.depth));
        let particle = self.nested(|compiler| compiler.particle(&group))?;
        self.reading_models.pop();
        let read = ModelGroup {
            particle: particle.clone(),
            particles: self.particles - before,
            depth: self.deepest - self.depth,
        };
        self.deepest = self.deepest.max(deepest);
        self.model_groups.insert(key(place), read);
        Ok(particle)
    }

    fn check_particles(&self) -> Result<(), BrokenSchemaRule> {
        if self.particles > MOST_PARTICLES {
            return wrong(format!("its content models have more than {MOST_PARTICLES} particles"));
        }
        Ok(())
    }

    /// A particle that occurs exactly once.
    pub(super) fn once(&mut self, term: Term) -> Particle {
        Particle { id: self.particle_id(), min: 1, max: 1, term }
    }

    pub(super) fn particle_id(&mut self) -> u32 {
        self.particles += 1;
        self.particles
    }

    fn group(&mut self, place: &Place, order: Order) -> Result<Term, BrokenSchemaRule> {
        self.check_particles()?;
        let tree = self.tree(place);
        let mut particles = Vec::new();
        for node in tree.parts(place.node).filter(|part| tree.node(*part).local != "annotation") {
            let part = Place { node, ..place.clone() };
            let particle = self.nested(|compiler| compiler.particle(&part))?;
            if particle.as_ref().is_some_and(|particle| order != Order::All && particle.holds_all()) {
                return wrong("xs:all must be the whole content of its type: it can't be inside of another group")
                    .map_err(|wrong: BrokenSchemaRule| wrong.at(&part));
            }
            if let (Order::All, Some(Particle { max: 2.., .. })) = (order, &particle) {
                return wrong("an element in xs:all occurs at most once: remove maxOccurs")
                    .map_err(|wrong: BrokenSchemaRule| wrong.at(&part));
            }
            particles.extend(particle);
        }
        Ok(Term::Group(order, particles.into()))
    }

    fn element_term(&mut self, place: &Place) -> Result<ElementId, BrokenSchemaRule> {
        let tree = self.tree(place);
        let Some(reference) = tree.get(place.node, "ref") else { return self.element_at(place, false) };
        let other = ["name", "nillable", "default", "fixed", "form", "block", "type"];
        let other = other.into_iter().find(|name| tree.get(place.node, name).is_some());
        let inner = tree.parts(place.node).map(|part| tree.node(part).local).find(|local| *local != "annotation");
        if let Some(other) = other.or(inner) {
            let rule =
                format!("an element with a ref has no {other} of its own: the declaration that it refers to has it");
            return Err(BrokenSchemaRule::new(Some(place.clone()), rule));
        }
        let name = self.reference(Kind::Element, place, reference)?;
        let found = self.find(Kind::Element, &name, place)?;
        self.nested(|compiler| compiler.element_at(found, true))
    }
}

impl Particle {
    /// Reports whether the particle is an `xs:all`, directly or by a reference to a group.
    pub(super) fn holds_all(&self) -> bool {
        match &self.term {
            Term::Group(Order::All, _) => true,
            Term::Group(Order::Sequence, parts) => matches!(&**parts, [one] if one.max == 1 && one.holds_all()),
            _ => false,
        }
    }

    /// Reports whether the particle is a group without parts.
    pub(super) fn is_empty(&self) -> bool {
        matches!(&self.term, Term::Group(Order::Sequence | Order::All, parts) if parts.is_empty())
    }
}

fn occurs(written: Option<&str>) -> Result<u32, BrokenSchemaRule> {
    match written {
        None => Ok(1),
        Some("unbounded") => Ok(UNBOUNDED),
        // A larger number means the same: no payload has so many elements.
        Some(number) if !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()) => {
            Ok(number.parse().map_or(MANY, |number: u32| number.min(MANY)))
        }
        Some(other) => {
            wrong(format!("'{}' is not a number of occurrences: write a whole number or 'unbounded'", quoted(other)))
        }
    }
}

/// More elements than a document that is read can have (64 MiB of 4 bytes each), so that a larger bound means the same.
pub(super) const MANY: u32 = 1 << 24;

pub(super) fn is_group(local: &str) -> bool {
    matches!(local, "sequence" | "choice" | "all" | "group")
}
