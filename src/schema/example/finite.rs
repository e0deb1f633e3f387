use crate::schema::model::{Content, Model, Order, Particle, Term, Type};

/// Rule by which the size of a whole follows from its parts; an element is one larger than its content.
#[derive(Debug, Clone, Copy)]
pub(super) struct Measure {
    beside: fn(u64, u64) -> u64,
    repeated: fn(u64, u64) -> u64,
}

impl Measure {
    /// Elements inside each other.
    pub(super) const DEPTH: Self = Self { beside: u64::max, repeated: |size, _| size };
    /// Elements in all.
    pub(super) const ELEMENTS: Self = Self { beside: u64::saturating_add, repeated: u64::saturating_mul };
}

/// The size of the smallest value of each type.
pub(super) struct Sizes {
    sizes: Vec<Option<u64>>,
    measure: Measure,
}

impl Sizes {
    pub(super) fn of(model: &Model, measure: Measure) -> Self {
        let mut sizes = Self { sizes: vec![None; model.types.len()], measure };
        loop {
            let next: Vec<_> = model.types.iter().map(|ty| sizes.of_type(ty)).collect();
            if next == sizes.sizes {
                return sizes;
            }
            sizes.sizes = next;
        }
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

    /// `None` if no finite value is known (so far).
    pub(super) fn particle(&self, particle: &Particle) -> Option<u64> {
        if particle.min == 0 {
            return Some(0);
        }
        let once = match &particle.term {
            Term::Element(element) => self.sizes[element.ty].map(|size| size.saturating_add(1)),
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
