//! The vocabulary of contracts, for repair.

use foldhash::{HashSet, HashSetExt};

use super::Catalog;
use super::model::{Beside, Content, Model, Order, Particle, Term, Type, TypeId, Variety};
use crate::ladder::Emitter;
use crate::ladder::repair::{Author, Vocabulary};
use crate::vocab::QName;

/// The payloads that an emitter may send, for repair.
#[derive(Debug, Clone, Copy)]
pub struct Sendable<'a, I> {
    author: Author,
    candidates: I,
    catalog: &'a Catalog,
}

impl<'a, I: Iterator<Item = &'a QName> + Clone> Sendable<'a, I> {
    /// The payloads with these names, in texts of this author.
    pub const fn new(author: Author, candidates: I, catalog: &'a Catalog) -> Self {
        Self { author, candidates, catalog }
    }
}

impl<'a, I: Iterator<Item = &'a QName> + Clone> Emitter for Sendable<'a, I> {
    /// The vocabulary is empty if one of the payloads has no schema, or a schema whose instances may hold elements that it
    /// doesn't list.
    fn vocabulary(&self) -> Vocabulary {
        vocabulary(self.candidates.clone(), self.catalog).by(self.author)
    }

    /// A root without a namespace stands for the only payload of its name ([`infer_namespace`](super::infer_namespace)).
    fn vocabulary_of(&self, root: &QName) -> Option<&Vocabulary> {
        let is_meant = |candidate: &QName| candidate.local() == root.local() && root.namespace().is_empty();
        let known = self.catalog.get(root).or_else(|| {
            let found = self.candidates.clone().find(|candidate| is_meant(candidate))?;
            self.catalog.get(found)
        });
        known?.vocabulary()
    }
}

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
        let Type::Complex(complex) = &self.model.types[ty] else {
            self.vocabulary.declare(local, true, false);
            return self.vocabulary.describe(local, self.is_string(ty), []);
        };
        let (text, open) = match complex.beside {
            Beside::Nothing => (matches!(complex.content, Content::Text(_)), false),
            Beside::Text => (true, false),
            Beside::Anything | Beside::Unknown => (true, true),
        };
        self.vocabulary.declare(local, text, open);
        match &complex.content {
            Content::Children(particle) => self.children(local, particle),
            Content::Text(ty) => {
                let is_string = complex.beside == Beside::Nothing && self.is_string(*ty);
                self.vocabulary.describe(local, is_string, []);
            }
            Content::Empty => self.vocabulary.describe(local, false, []),
        }
    }

    /// Returns whether a type has any text for a value, its length aside.
    fn is_string(&self, ty: TypeId) -> bool {
        let Some(simple) = self.model.simple(ty) else { return false };
        let is_string = matches!(&simple.variety, Variety::Atomic(xsd_type) if matches!(xsd_type.name, "string" | "normalizedString" | "token"));
        is_string && simple.facets.patterns.is_empty() && simple.facets.values.is_empty()
    }

    /// Declares the children of an element. Particles nest no deeper than their schemas, which need a list instead of
    /// recursion nevertheless.
    fn children(&mut self, parent: &str, particle: &'m Particle) {
        let mut particles = vec![(particle, false, true)];
        let mut needed = Vec::new();
        while let Some((particle, repeats, required)) = particles.pop() {
            let (repeats, required) = (repeats || particle.max != Some(1), required && particle.min > 0);
            match &particle.term {
                Term::Element(element) => {
                    if required {
                        needed.push(&*element.local);
                    }
                    self.vocabulary.place(parent, &element.local, repeats);
                    self.pending.push((&element.local, element.ty));
                }
                Term::Group(order, inner) => {
                    let required = required && (*order != Order::Choice || inner.len() == 1);
                    particles.extend(inner.iter().map(|particle| (particle, repeats, required)));
                }
                Term::Any(_) => self.vocabulary.declare(parent, true, true),
            }
        }
        self.vocabulary.describe(parent, false, needed);
    }
}
