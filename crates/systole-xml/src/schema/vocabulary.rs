//! The vocabulary of contracts, for repair.

use foldhash::{HashSet, HashSetExt};

use super::Catalog;
use super::model::{Beside, Content, Model, Particle, Term, Type, TypeId};
use crate::ladder::repair::Vocabulary;
use crate::vocab::QName;

/// The elements of the payloads that an emitter may send, for repair. The vocabulary is empty if one of them has
/// no schema, or a schema whose instances may hold elements that it doesn't list.
pub fn vocabulary<'a>(candidates: impl Iterator<Item = &'a QName>, catalog: &Catalog) -> Vocabulary {
    let mut joined = Vocabulary::default();
    for candidate in candidates {
        let Some(known) = catalog.get(candidate).and_then(|schema| schema.vocabulary()) else {
            return Vocabulary::default();
        };
        joined.join(known);
    }
    joined
}

/// The elements of one payload; `None` if its model doesn't list them all.
pub(super) fn of_model(model: &Model) -> Option<Vocabulary> {
    let mut out = Builder { model, vocabulary: Vocabulary::default(), pending: Vec::new(), seen: HashSet::new() };
    out.pending.push((&model.root.local, model.root.ty));
    while let Some((local, ty)) = out.pending.pop() {
        if out.seen.insert((local, ty)) {
            out.element(local, ty);
        }
    }
    model.is_whole.then_some(out.vocabulary)
}

struct Builder<'m> {
    model: &'m Model,
    vocabulary: Vocabulary,
    /// Names of elements with their types.
    pending: Vec<(&'m str, TypeId)>,
    seen: HashSet<(&'m str, TypeId)>,
}

impl<'m> Builder<'m> {
    fn element(&mut self, local: &str, ty: TypeId) {
        let Type::Complex(complex) = &self.model.types[ty] else { return self.vocabulary.declare(local, true, false) };
        let (text, open) = match complex.beside {
            Beside::Nothing => (matches!(complex.content, Content::Text(_)), false),
            Beside::Text => (true, false),
            Beside::Anything | Beside::Unknown => (true, true),
        };
        self.vocabulary.declare(local, text, open);
        if let Content::Children(particle) = &complex.content {
            self.children(local, particle);
        }
    }

    /// Declares the children of an element. Particles nest no deeper than their schemas, which need a list instead of
    /// recursion nevertheless.
    fn children(&mut self, parent: &str, particle: &'m Particle) {
        let mut particles = vec![(particle, false)];
        while let Some((particle, repeats)) = particles.pop() {
            let repeats = repeats || particle.max != Some(1);
            match &particle.term {
                Term::Element(element) => {
                    self.vocabulary.place(parent, &element.local, repeats);
                    self.pending.push((&element.local, element.ty));
                }
                Term::Group(_, inner) => particles.extend(inner.iter().map(|particle| (particle, repeats))),
                Term::Any => self.vocabulary.declare(parent, true, true),
            }
        }
    }
}
