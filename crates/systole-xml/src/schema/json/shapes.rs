//! The types that a payload uses, and how often.

use std::collections::HashMap;
use std::sync::Arc;

use crate::schema::model::{Beside, Complex, Content, Element, Model, Particle, Term, Type, TypeId, Variety};

/// A type as an element has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Shape<'m> {
    pub(super) ty: TypeId,
    /// The `xsi:type` that the element needs.
    pub(super) as_type: Option<&'m (Arc<str>, String)>,
}

impl<'m> Shape<'m> {
    pub(super) fn of(element: &'m Element) -> Self {
        Self { ty: element.ty, as_type: element.as_type.as_ref() }
    }

    pub(super) fn plain(ty: TypeId) -> Self {
        Self { ty, as_type: None }
    }

    /// The name of the type.
    pub(super) fn name(self, model: &'m Model) -> Option<&'m str> {
        match &model.types[self.ty] {
            Type::Simple(simple) => simple.name.as_deref(),
            Type::Complex(complex) => complex.name.as_deref(),
        }
    }

    /// Returns whether its schema is shorter than a definition.
    pub(super) fn is_small(self, model: &Model) -> bool {
        match &model.types[self.ty] {
            Type::Simple(simple) => matches!(simple.variety, Variety::Atomic(_)) && simple.facets.is_empty(),
            Type::Complex(Complex { beside: Beside::Anything | Beside::Unknown, .. }) => true,
            Type::Complex(complex) => complex.is_empty() && complex.doc.is_empty(),
        }
    }
}

/// The number of references to each shape that the payload leads to.
pub(super) fn uses(model: &Model) -> HashMap<Shape<'_>, usize> {
    let mut uses = HashMap::new();
    let mut pending = vec![Shape::of(&model.root)];
    while let Some(shape) = pending.pop() {
        let uses = uses.entry(shape).or_insert(0);
        *uses += 1;
        if *uses > 1 {
            continue;
        }
        match &model.types[shape.ty] {
            Type::Simple(simple) => match &simple.variety {
                Variety::Atomic(_) => {}
                Variety::List(item) => pending.push(Shape::plain(*item)),
                Variety::Union(members) => pending.extend(members.iter().copied().map(Shape::plain)),
            },
            Type::Complex(complex) => {
                pending.extend(complex.attributes.iter().map(|attribute| Shape::plain(attribute.ty)));
                match &complex.content {
                    Content::Empty => {}
                    Content::Text(ty) => pending.push(Shape::plain(*ty)),
                    Content::Children(particle) => pending.extend(elements(particle).into_iter().map(Shape::of)),
                }
            }
        }
    }
    uses
}

/// The elements in a particle, in their order.
pub(super) fn elements(particle: &Particle) -> Vec<&Element> {
    let mut pending = vec![particle];
    let mut elements = Vec::new();
    while let Some(particle) = pending.pop() {
        match &particle.term {
            Term::Element(element) => elements.push(&**element),
            Term::Group(_, parts) => pending.extend(parts.iter().rev()),
            Term::Any(_) => {}
        }
    }
    elements
}
