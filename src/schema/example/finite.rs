use crate::schema::model::{Content, Model, Order, Particle, Term, Type};

/// How deep the shallowest value of each type nests: the way out of a recursive one.
pub(super) struct Sizes(Vec<Option<u32>>);

impl Sizes {
    pub(super) fn of(model: &Model) -> Self {
        let mut sizes = Self(vec![None; model.types.len()]);
        loop {
            let next: Vec<_> = model.types.iter().map(|ty| sizes.of_type(ty)).collect();
            if next == sizes.0 {
                return sizes;
            }
            sizes.0 = next;
        }
    }

    fn of_type(&self, ty: &Type) -> Option<u32> {
        match ty {
            Type::Simple(_) => Some(0),
            Type::Complex(complex) => match &complex.content {
                Content::Empty | Content::Text(_) => Some(0),
                Content::Children(particle) => self.particle(particle),
            },
        }
    }

    /// `None` if no finite value is known (so far).
    pub(super) fn particle(&self, particle: &Particle) -> Option<u32> {
        if particle.min == 0 {
            return Some(0);
        }
        match &particle.term {
            Term::Element(element) => self.0[element.ty].map(|size| size.saturating_add(1)),
            Term::Group(Order::Choice, particles) => particles.iter().filter_map(|one| self.particle(one)).min(),
            Term::Group(_, particles) => {
                particles.iter().map(|one| self.particle(one)).try_fold(0, |most, size| Some(most.max(size?)))
            }
            Term::Any => Some(1),
        }
    }
}
