//! The size of the smallest value of each type.

use std::cell::Cell;

use crate::schema::model::{Complex, Content, Element, Model, Order, Particle, Term, Type, TypeId};

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
    /// Number of particles visited so far.
    work: Cell<usize>,
}

/// Maximum number of particles to visit. A type without a size by then counts as endless.
const WORK: usize = 4_000_000;

impl Sizes {
    pub(crate) fn of(model: &Model, measure: Measure) -> Self {
        if !model.types.iter().any(|ty| matches!(ty, Type::Complex(Complex { content: Content::Children(_), .. }))) {
            return Self { sizes: vec![Some(0); model.types.len()], measure, work: Cell::new(0) };
        }
        let order = leaves_first(model);
        let mut sizes = Self { sizes: vec![None; model.types.len()], measure, work: Cell::new(0) };
        // If no type leads back to itself, the second round finds no change.
        loop {
            let mut changed = false;
            for &ty in &order {
                let size = sizes.of_type(&model.types[ty]);
                changed |= std::mem::replace(&mut sizes.sizes[ty], size) != size;
            }
            if !changed {
                return sizes;
            }
            if sizes.work.get() > WORK {
                sizes.sizes.fill(None);
                return sizes;
            }
        }
    }

    /// Number of particles visited so far.
    pub(crate) fn work(&self) -> usize {
        self.work.get()
    }

    fn of_type(&self, ty: &Type) -> Option<u64> {
        match ty {
            Type::Simple(_) => Some(0),
            Type::Complex(complex) => match &complex.content {
                Content::Empty | Content::Text(_) => Some(0),
                Content::Children(particle) => self.particle(particle),
            },
        }
    }

    /// The size of the smallest value of an element; `None` if no finite value is known (so far).
    pub(crate) fn element(&self, element: &Element) -> Option<u64> {
        self.sizes[element.ty].map(|size| size.saturating_add(1))
    }

    /// The size of the smallest value of a particle; `None` if no finite value is known (so far).
    pub(super) fn particle(&self, particle: &Particle) -> Option<u64> {
        self.work.set(self.work.get() + 1);
        if particle.min == 0 {
            return Some(0);
        }
        let once = match &particle.term {
            Term::Element(element) => self.element(element),
            Term::Group(Order::Choice, particles) => particles.iter().filter_map(|one| self.particle(one)).min(),
            Term::Group(_, particles) => {
                let sizes = particles.iter().map(|one| self.particle(one));
                sizes.into_iter().try_fold(0, |sum, size| Some((self.measure.beside)(sum, size?)))
            }
            Term::Any => Some(1),
        };
        once.map(|size| (self.measure.repeated)(size, particle.min))
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
        Term::Any => {}
    }
}
