//! The size of the smallest value of each type.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::Values;
use crate::schema::model::{Attribute, Complex, Content, Element, Model, Order, Particle, Term, Type, TypeId};

/// A rule for the size of a whole from its parts; an element is one larger than its content.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Measure {
    beside: fn(u64, u64) -> u64,
    repeated: fn(u64, u64) -> u64,
}

impl Measure {
    /// Depth of nested elements.
    pub(crate) const DEPTH: Self = Self { beside: u64::max, repeated: |size, _| size };
    /// Number of elements in total.
    pub(crate) const ELEMENTS: Self = Self { beside: u64::saturating_add, repeated: u64::saturating_mul };
}

/// The size of the smallest value of each type of the models of a schema.
#[derive(Debug)]
pub(crate) struct Sizes {
    sizes: Vec<Option<u64>>,
    measure: Measure,
    /// True if parts for which no value was found have no size.
    are_found: bool,
    /// Number of particles visited so far.
    work: AtomicUsize,
}

/// Maximum number of particles to visit. A type without a size by then counts as endless.
const WORK: usize = 4_000_000;

impl Sizes {
    pub(crate) fn of(model: &Model, measure: Measure) -> Self {
        Self::sized(model, measure, None)
    }

    /// The sizes of instances that can be written with some values. A wildcard has no instance.
    pub(super) fn of_found(model: &Model, measure: Measure, values: &Values) -> Self {
        Self::sized(model, measure, Some(values))
    }

    fn sized(model: &Model, measure: Measure, values: Option<&Values>) -> Self {
        let blank = |size| Self {
            sizes: vec![size; model.types.len()],
            measure,
            are_found: values.is_some(),
            work: AtomicUsize::new(0),
        };
        let has_children = |ty: &Type| matches!(ty, Type::Complex(Complex { content: Content::Children(_), .. }));
        if values.is_none() && !model.types.iter().any(has_children) {
            return blank(Some(0));
        }
        let order = leaves_first(model);
        let mut sizes = blank(None);
        for (id, ty) in model.types.iter().enumerate().filter(|(_, ty)| matches!(ty, Type::Simple(_))) {
            sizes.sizes[id] = sizes.of_type(id, ty, values);
        }
        // If no type leads back to itself, the second round finds no change.
        loop {
            let mut changed = false;
            for &ty in &order {
                let size = sizes.of_type(ty, &model.types[ty], values);
                changed |= std::mem::replace(&mut sizes.sizes[ty], size) != size;
            }
            if !changed {
                return sizes;
            }
            if sizes.work() > WORK {
                sizes.sizes.fill(None);
                return sizes;
            }
        }
    }

    /// Number of particles visited so far.
    pub(crate) fn work(&self) -> usize {
        self.work.load(Ordering::Relaxed)
    }

    fn of_type(&self, id: TypeId, ty: &Type, values: Option<&Values>) -> Option<u64> {
        let of_text = |ty| values.is_none_or(|values| values.has(ty)).then_some(0);
        match ty {
            Type::Simple(_) => of_text(id),
            Type::Complex(complex) => {
                let lacks = |attribute: &Attribute| attribute.required && !self.has_value(attribute);
                if self.are_found && complex.attributes.iter().any(lacks) {
                    return None;
                }
                match &complex.content {
                    Content::Empty => Some(0),
                    Content::Text(ty) => of_text(*ty),
                    Content::Children(particle) => self.particle(particle),
                }
            }
        }
    }

    /// Returns whether an attribute can be written.
    pub(super) fn has_value(&self, attribute: &Attribute) -> bool {
        attribute.fixed.is_some() || self.sizes[attribute.ty].is_some()
    }

    /// The size of the smallest value of an element; `None` if no finite value is known (so far).
    pub(crate) fn element(&self, element: &Element) -> Option<u64> {
        let size = if element.fixed.is_some() { self.sizes[element.ty].or(Some(0)) } else { self.sizes[element.ty] };
        size.map(|size| size.saturating_add(1))
    }

    /// The size of the smallest value of a particle; `None` if no finite value is known (so far).
    pub(super) fn particle(&self, particle: &Particle) -> Option<u64> {
        self.work.fetch_add(1, Ordering::Relaxed);
        if particle.min == 0 {
            return Some(0);
        }
        self.term(&particle.term).map(|size| (self.measure.repeated)(size, particle.min))
    }

    /// The size of the smallest value of a term; `None` if no finite value is known (so far).
    fn term(&self, term: &Term) -> Option<u64> {
        match term {
            Term::Element(element) => self.element(element),
            Term::Group(Order::Choice, particles) => particles.iter().filter_map(|one| self.particle(one)).min(),
            Term::Group(_, particles) => {
                let sizes = particles.iter().map(|one| self.particle(one));
                sizes.into_iter().try_fold(0, |sum, size| Some((self.measure.beside)(sum, size?)))
            }
            Term::Any(_) => (!self.are_found).then_some(1),
        }
    }
}

/// The types of a model, each behind those that its content leads to, except where one leads back to itself.
fn leaves_first(model: &Model) -> Vec<TypeId> {
    let mut order = Vec::with_capacity(model.types.len());
    let mut seen = vec![false; model.types.len()];
    // A type is visited when it is first met, and placed behind the types that it leads to.
    let mut pending: Vec<(TypeId, bool)> = (0..model.types.len()).map(|ty| (ty, false)).collect();
    while let Some((ty, left)) = pending.pop() {
        if left {
            order.push(ty);
        } else if !std::mem::replace(&mut seen[ty], true) {
            pending.push((ty, true));
            if let Type::Complex(Complex { content: Content::Children(particle), .. }) = &model.types[ty] {
                each_type(particle, &mut |child| pending.extend((!seen[child]).then_some((child, false))));
            }
        }
    }
    order
}

/// Visits the types of the elements of a particle.
fn each_type(particle: &Particle, visit: &mut impl FnMut(TypeId)) {
    match &particle.term {
        Term::Element(element) => visit(element.ty),
        Term::Group(_, parts) => parts.iter().for_each(|part| each_type(part, visit)),
        Term::Any(_) => {}
    }
}
