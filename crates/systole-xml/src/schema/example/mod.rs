//! Instances of a [`Model`]: the example for people and language models, and those that test a type.
//!
//! The values are the author's examples if there are any, else the first valid ones of a list of candidates: `text`,
//! `1`, `1.5`, `true`, the values of an enumeration, the bounds and what is next to them, short matches of the patterns.
//! Optional parts and alternatives for which no value was found are left out. The validator judges the result; an
//! invalid one is not used.

mod candidates;
mod distinct;
mod finite;
mod value;
mod values;

use std::collections::HashMap;

use bytes::Bytes;
use serde_json::Value;

use super::model::{Attribute, Complex, Content, Element, Model, Order, Particle, Term, Type};
use super::write::Writer;
use crate::ladder::Canonical;
use crate::ladder::strict::canonicalize;
use crate::vocab::{XmlLimits, ns};
pub(crate) use finite::{Measure, Sizes};
pub(crate) use values::{Values, Wanted};

/// Maximum size of an example in bytes: a schema may ask for any number of elements.
const LARGEST: usize = 1 << 20;

/// Maximum size of an example with optional parts: readers want no more.
const LARGEST_FULL: usize = 64 << 10;

/// Maximum number of elements that a schema may require in each payload: an example within [`LARGEST`] can hold as
/// many.
const MOST_REQUIRED: u64 = 100_000;

/// The choice of an instance.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wish {
    /// Includes optional parts.
    pub(crate) full: bool,
    /// Index of the alternative in each choice.
    pub(crate) choice: usize,
    /// Index of one of two simple values.
    pub(crate) values: usize,
    /// Uses the author's examples.
    pub(crate) hints: bool,
    /// Writes another value for each occurrence of a field.
    pub(crate) distinct: bool,
}

impl Wish {
    /// The example that is shown.
    pub(crate) const SHOWN: Self = Self { full: true, choice: 0, values: 0, hints: true, distinct: false };
}

/// The parts of the payloads of a schema that examples can be made of.
#[derive(Debug)]
pub(crate) struct Parts {
    values: Values,
    /// The depths of the types, as far as values were found for them.
    depths: Sizes,
    /// Number of particles that were visited for the depths.
    pub(crate) work: usize,
}

impl Parts {
    /// The parts of the models of a schema, which share their types.
    pub(crate) fn of(model: &Model, wanted: Wanted) -> Self {
        let values = Values::of(model, wanted);
        let depths = Sizes::of_found(model, Measure::DEPTH, &values);
        let work = depths.work();
        Self { values, depths, work }
    }
}

/// The instances of one model.
pub(crate) struct Examples<'m> {
    model: &'m Model,
    parts: &'m Parts,
}

impl<'m> Examples<'m> {
    /// The instances of a model that are made of these parts.
    pub(crate) fn of(model: &'m Model, parts: &'m Parts) -> Self {
        Self { model, parts }
    }

    /// An instance; `None` if none was found that ends within its size. The caller has to validate it. It takes from `room`
    /// a step for each byte that is written, also for an instance that can't be ended.
    pub(crate) fn example(&self, wish: Wish, room: &mut usize) -> Option<Canonical> {
        // That of a try that ends at once.
        const LEAST: usize = 128;
        let most = (*room).min(if wish.full { LARGEST_FULL } else { LARGEST });
        let mut sampler = Sampler {
            model: self.model,
            wish,
            values: &self.parts.values,
            depths: &self.parts.depths,
            writer: Writer::new(!self.model.is_qualified()),
            open: Vec::new(),
            budget: 200,
            room: most,
            ids: Vec::new(),
            names: Vec::new(),
            in_attribute: None,
            turns: HashMap::new(),
        };
        let whole = (most > 0).then(|| sampler.element(&self.model.root, None)).flatten();
        *room = room.saturating_sub((most - sampler.room).max(LEAST));
        whole?;
        // An example may be larger than a message: then it can't be sent, but still be shown.
        canonicalize(&Bytes::from(sampler.writer.finish()), &XmlLimits::UNLIMITED).ok()
    }
}

/// The least number of elements of a payload, if it is too large. The sizes are by [`Measure::ELEMENTS`].
pub(crate) fn too_many(model: &Model, sizes: &Sizes) -> Option<u64> {
    sizes.element(&model.root).filter(|elements| *elements > MOST_REQUIRED)
}

/// Number of alternatives of the widest choice or enumeration.
pub(crate) fn alternatives(model: &Model) -> usize {
    fn of_particle(particle: &Particle) -> usize {
        match &particle.term {
            Term::Group(order, particles) => {
                let own = if *order == Order::Choice { particles.len() } else { 1 };
                particles.iter().map(of_particle).max().unwrap_or(1).max(own)
            }
            Term::Element(_) | Term::Any(_) => 1,
        }
    }
    let of_type = |ty: &Type| match ty {
        Type::Simple(simple) => simple.facets.values.len(),
        Type::Complex(Complex { content: Content::Children(particle), .. }) => of_particle(particle),
        Type::Complex(_) => 1,
    };
    model.types.iter().map(of_type).max().unwrap_or(1)
}

struct Sampler<'a> {
    model: &'a Model,
    wish: Wish,
    values: &'a Values,
    depths: &'a Sizes,
    writer: Writer,
    /// The complex types that are being written.
    open: Vec<usize>,
    /// Number of optional elements that may still be written.
    budget: usize,
    /// Number of bytes that may still be written. A repetition of nothing costs one, too.
    room: usize,
    /// The values of type `xs:ID` that were written.
    ids: Vec<String>,
    /// The names of the open elements.
    names: Vec<&'a str>,
    /// The name of the attribute that is being written.
    in_attribute: Option<&'a str>,
    /// Number of times that each field was written: by its element, the one around that, and its attribute.
    turns: HashMap<[Option<&'a str>; 3], usize>,
}

impl<'a> Sampler<'a> {
    fn element(&mut self, element: &'a Element, hint: Option<&'a Value>) -> Option<()> {
        const DEEPEST: usize = 100;
        if self.open.len() > DEEPEST {
            return None;
        }
        let hint = hint.or_else(|| if self.wish.hints { element.hints.first() } else { None });
        // The cost of two tags.
        self.spend(2 * element.local.len() + "<></>".len())?;
        self.writer.start(&element.namespace, &element.local);
        self.names.push(&element.local);
        if let Some((namespace, local)) = &element.as_type {
            self.spend(namespace.len() + local.len())?;
            let prefix = self.writer.bind(namespace);
            self.writer.attribute(ns::XSI, "type", &format!("{prefix}{local}"));
        }
        match (&self.model.types[element.ty], &element.fixed) {
            (Type::Simple(_), Some(fixed)) => self.writer.text(fixed),
            (Type::Simple(_), None) => {
                let value = self.value(element.ty, hint)?;
                self.writer.text(&value);
            }
            (Type::Complex(complex), fixed) => {
                self.open.push(element.ty);
                self.complex(complex, fixed.as_deref(), hint)?;
                self.open.pop();
            }
        }
        self.writer.end();
        self.names.pop();
        Some(())
    }

    fn complex(&mut self, complex: &'a Complex, fixed: Option<&str>, hint: Option<&'a Value>) -> Option<()> {
        for attribute in &complex.attributes {
            self.attribute(attribute, hint)?;
        }
        match &complex.content {
            Content::Empty => Some(()),
            Content::Text(ty) => {
                let value = match fixed {
                    Some(fixed) => fixed.to_owned(),
                    None => self.value(*ty, hint.and_then(|hint| hint.get("$text")))?,
                };
                self.writer.text(&value);
                Some(())
            }
            Content::Children(particle) => self.particle(particle, hint),
        }
    }

    fn attribute(&mut self, attribute: &'a Attribute, hint: Option<&'a Value>) -> Option<()> {
        let given = hint.map(|hint| hint.get(format!("@{}", attribute.local)).filter(|value| !value.is_null()));
        let is_wanted = given.map_or(self.wish.full && self.depths.has_value(attribute), |given| given.is_some());
        if !attribute.required && !is_wanted {
            return Some(());
        }
        let own = if self.wish.hints { attribute.hints.first() } else { None };
        let value = match &attribute.fixed {
            Some(fixed) => fixed.clone(),
            None => {
                self.in_attribute = Some(&attribute.local);
                let value = self.value(attribute.ty, given.flatten().or(own))?;
                self.in_attribute = None;
                value
            }
        };
        self.writer.attribute(&attribute.namespace, &attribute.local, &value);
        Some(())
    }

    fn particle(&mut self, particle: &'a Particle, hint: Option<&'a Value>) -> Option<()> {
        match &particle.term {
            Term::Element(element) => {
                match hint.map(|hint| hint.get(&element.local).filter(|value| !value.is_null())) {
                    Some(given) => {
                        let items = match given {
                            Some(Value::Array(items)) => items.as_slice(),
                            Some(item) => std::slice::from_ref(item),
                            None => &[],
                        };
                        items.iter().try_for_each(|item| self.element(element, Some(item)))?;
                        // Required elements are added, even if the author's example lacks them.
                        (items.len() as u64..particle.min).try_for_each(|_| self.element(element, None))
                    }
                    None => (0..self.count(particle)).try_for_each(|_| self.element(element, None)),
                }
            }
            Term::Group(Order::Choice, alternatives) => match hint.and_then(|hint| hint.get("$value")) {
                Some(Value::Array(items)) => items.iter().try_for_each(|item| self.chosen(alternatives, item)),
                Some(item) if !item.is_null() => self.chosen(alternatives, item),
                _ => self.choice(particle, alternatives),
            },
            Term::Group(_, particles) => (0..self.count(particle).min(1.max(particle.min))).try_for_each(|_| {
                self.spend(1)?;
                particles.iter().try_for_each(|particle| self.particle(particle, hint))
            }),
            // Nothing is known about a wildcard; an optional one is left out.
            Term::Any(_) => {
                if particle.min == 0 {
                    Some(())
                } else {
                    None
                }
            }
        }
    }

    fn choice(&mut self, particle: &'a Particle, alternatives: &'a [Particle]) -> Option<()> {
        let count = self.count(particle);
        // A list shows each alternative once.
        let several = self.wish.full && particle.max != Some(1) && count > 0 && !self.is_recursive();
        let count =
            if several { count.max(particle.max.unwrap_or(u64::MAX).min(alternatives.len() as u64)) } else { count };
        let mut least = None;
        for turn in 0..count {
            self.spend(1)?;
            let wanted = usize::try_from(turn).unwrap_or(0) + self.wish.choice;
            let wanted = alternatives.get(wanted % alternatives.len().max(1));
            let chosen = match (wanted.filter(|wanted| !self.leads_back(wanted)), least) {
                (Some(chosen), _) | (None, Some(chosen)) => chosen,
                (None, None) => {
                    let depth = |one: &&Particle| self.depths.particle(one);
                    let possible = alternatives.iter().filter(|one| depth(one).is_some());
                    *least.insert(possible.min_by_key(depth)?)
                }
            };
            self.particle(chosen, None)?;
        }
        Some(())
    }

    /// The alternative that the author's example names: `"Name"` or `{"Name": …}`.
    fn chosen(&mut self, alternatives: &'a [Particle], hint: &'a Value) -> Option<()> {
        let (name, data) = match hint {
            Value::String(name) => (name, None),
            Value::Object(object) => object.iter().next().map(|(name, data)| (name, Some(data)))?,
            _ => return None,
        };
        let named = alternatives.iter().find_map(|alternative| match &alternative.term {
            Term::Element(element) if element.local == *name => Some(element),
            _ => None,
        });
        self.element(named?, data)
    }

    /// Takes bytes from the remaining size; `None` if it is used up.
    fn spend(&mut self, bytes: usize) -> Option<()> {
        let left = self.room.checked_sub(bytes);
        self.room = left.unwrap_or(0);
        left.map(drop)
    }

    /// Number of times that a particle is written.
    fn count(&mut self, particle: &Particle) -> u64 {
        if !self.wish.full || self.leads_back(particle) || self.budget == 0 {
            return particle.min;
        }
        self.budget -= 1;
        // Two occurrences show that there may be many.
        particle.max.map_or(2, |max| max.min(2)).max(particle.min)
    }

    /// Returns whether a particle has no instance, or would repeat a type that is open twice: then only required parts are
    /// written.
    fn leads_back(&self, particle: &Particle) -> bool {
        match &particle.term {
            Term::Element(element) => {
                self.depths.element(element).is_none()
                    || self.open.iter().filter(|open| **open == element.ty).count() > 1
                    || (self.is_recursive() && self.open.contains(&element.ty))
            }
            Term::Group(Order::Choice, alternatives) => {
                alternatives.iter().all(|alternative| self.leads_back(alternative))
            }
            Term::Group(_, particles) => particles.iter().any(|particle| particle.min > 0 && self.leads_back(particle)),
            Term::Any(_) => true,
        }
    }

    fn is_recursive(&self) -> bool {
        let innermost = self.open.last();
        self.open.len() > 20 || self.open.iter().filter(|open| Some(*open) == innermost).count() > 1
    }
}
