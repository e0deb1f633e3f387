//! Simple types of XSD 1.0 (part 2, second edition): whether characters are a value of a type, and which values are
//! equal.
//!
//! A [`SimpleType`] is compiled once: its facets are values, its patterns one automaton for each step of restriction.
//! What always holds: a check takes time linear in the value (for a union, times its members that are
//! no enumerations of few texts), recurses as deep as types nest and never over the value, and allocates nothing
//! for a valid value unless white space inside of it must be collapsed or its enumeration is one of lists.
//!
//! What it does not do: check that a schema is right. A facet that can't be understood is [`Unsupported`]; that a
//! restriction restricts is otherwise taken for granted.

mod binary;
mod bound;
mod builtin;
mod decimal;
mod definition;
mod duration;
mod enumeration;
mod facets;
mod lexis;
mod members;
mod mismatch;
mod moment;
mod plain;
mod primitive;
mod restrict;
mod space;
mod uri;
mod value;
mod words;

use std::sync::Arc;

pub(crate) use builtin::{Builtin, Kind};
use definition::{Definition, Variety};
pub(in crate::schema) use facets::is_facet;
pub(in crate::schema) use mismatch::Mismatch;
use plain::Plain;
use primitive::Primitive;

/// A compiled simple type. Cheap to clone.
#[derive(Debug, Clone)]
pub(in crate::schema) struct SimpleType {
    definition: Arc<Definition>,
    plain: Plain,
}

/// One facet of a restriction as its schema has it.
#[derive(Clone, Copy)]
pub(in crate::schema) struct Facet<'a> {
    /// The local name of its element, such as `maxLength`.
    pub(in crate::schema) name: &'a str,
    /// Its `value`.
    pub(in crate::schema) value: &'a str,
    /// Whether no restriction may change it.
    pub(in crate::schema) fixed: bool,
    /// The prefixes in scope, which an enumeration of names needs.
    pub(in crate::schema) prefixes: &'a dyn Prefixes,
}

/// The surroundings of a value: the namespace declarations in scope where it stands, and the time that is left for it.
pub(in crate::schema) trait Prefixes {
    /// The namespace name of a prefix; `""` is the default namespace. `None` if it is not bound.
    fn namespace(&self, prefix: &str) -> Option<&str>;

    /// Spends steps on a comparison with a pattern. Returns whether so many were left.
    fn spend(&self, _steps: usize) -> bool {
        true
    }
}

/// Why a type can't be made: one sentence, and the facet, by its place among those given, where it is about one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(in crate::schema) struct Unsupported(pub(in crate::schema) String, pub(in crate::schema) Option<usize>);

/// What a type has to do with `xs:ID` and `xs:IDREF`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(in crate::schema) enum Identity {
    /// Nothing.
    #[default]
    None,
    /// A value is an ID.
    Id,
    /// A value is a reference to an ID.
    Idref,
    /// A value is references to IDs between spaces.
    Idrefs,
    /// IDs or references are among the members of a union, or IDs among the items of a list.
    Mixed,
}

impl Identity {
    /// Whether a value refers to IDs.
    pub(in crate::schema) fn refers(self) -> bool {
        matches!(self, Self::Idref | Self::Idrefs)
    }
}

impl SimpleType {
    /// A built-in type by its local name in the namespace of XML Schema.
    pub(in crate::schema) fn builtin(local: &str) -> Option<Self> {
        builtin::named(local)
    }

    /// A restriction of this type, which texts call `name`: the facets of one step, in the order of the document.
    ///
    /// # Errors
    /// [`Unsupported`] if a facet is none of this type, or its value is not understood.
    pub(in crate::schema) fn restrict(&self, name: &str, facets: &[Facet]) -> Result<Self, Unsupported> {
        restrict::restrict(self, name, facets).map(Self::new)
    }

    /// Whether a restriction of this type may have a facet.
    pub(in crate::schema) fn has_facet(&self, facet: &str) -> bool {
        restrict::has_facet(&self.definition.variety, facet)
    }

    /// Values of a type between spaces.
    ///
    /// # Errors
    /// [`Unsupported`] if the items are lists themselves, or if types nest too deep.
    pub(in crate::schema) fn list(item: &Self) -> Result<Self, Unsupported> {
        Definition::list(item).map(Self::new)
    }

    /// A value of the first of several types that has it.
    ///
    /// # Errors
    /// [`Unsupported`] if types nest too deep.
    pub(in crate::schema) fn union(members: Vec<Self>) -> Result<Self, Unsupported> {
        Definition::union(members).map(Self::new)
    }

    /// Checks characters: references resolved, white space as it was written.
    ///
    /// # Errors
    /// [`Mismatch`] tells which rule they break.
    #[inline]
    pub(in crate::schema) fn check(&self, value: &str, prefixes: &dyn Prefixes) -> Result<(), Mismatch> {
        if self.plain.allows(value) {
            return Ok(());
        }
        match self.definition.value(value, prefixes, false) {
            Ok(_) => Ok(()),
            Err(broken) => {
                let bounds = self.definition.uncounted_bounds(broken.rule);
                Err(Mismatch::new(broken, value, bounds.as_deref().unwrap_or(self.words())))
            }
        }
    }

    /// Whether two valid texts are the same value.
    pub(in crate::schema) fn equal(&self, a: &str, b: &str, prefixes: &dyn Prefixes) -> bool {
        match (self.definition.value(a, prefixes, true), self.definition.value(b, prefixes, true)) {
            (Ok(a), Ok(b)) => a == b,
            _ => false,
        }
    }

    /// Whether it is `xs:ID` or made from it by restriction.
    pub(in crate::schema) fn is_id(&self) -> bool {
        self.identity() == Identity::Id
    }

    /// Whether it is a notation without an enumeration of those that it may be (section 3.2.19).
    pub(in crate::schema) fn is_bare_notation(&self) -> bool {
        matches!(self.definition.variety, Variety::Atomic(Primitive::Notation))
            && self.definition.facets.values.is_none()
    }

    /// Whether its values are notations.
    pub(in crate::schema) fn is_notation(&self) -> bool {
        matches!(self.definition.variety, Variety::Atomic(Primitive::Notation))
    }

    /// Whether it is `xs:anySimpleType`.
    pub(in crate::schema) fn is_any(&self) -> bool {
        matches!(self.definition.variety, Variety::Any)
    }

    /// Writes what two texts have in common if and only if they are the same value.
    pub(in crate::schema) fn key(&self, out: &mut String, text: &str, prefixes: &dyn Prefixes) {
        if let Ok(value) = self.definition.value(text, prefixes, true) {
            value.key(out);
        }
    }

    /// What the type has to do with `xs:ID` and `xs:IDREF`.
    pub(in crate::schema) fn identity(&self) -> Identity {
        self.definition.identity()
    }

    /// What a value is, for a person or a model: "whole number from 0 to 99".
    pub(in crate::schema) fn words(&self) -> &str {
        self.definition.words()
    }

    /// The values of its enumeration as its schema has them, in that order; empty without one.
    pub(in crate::schema) fn enumerated(&self, prefixes: &dyn Prefixes) -> Vec<&str> {
        let values = self.definition.enumerated.iter().flat_map(|values| values.iter());
        values.map(|value| &**value).filter(|value| self.check(value, prefixes).is_ok()).collect()
    }

    /// Whether its values are names, which need the prefixes in scope.
    pub(in crate::schema) fn has_prefixes(&self) -> bool {
        self.definition.has_prefixes()
    }

    fn new(definition: Definition) -> Self {
        Self { plain: Plain::of(&definition), definition: Arc::new(definition) }
    }
}

impl Unsupported {
    fn because(reason: impl Into<String>) -> Self {
        Self(reason.into(), None)
    }

    fn of(facet: usize, reason: String) -> Self {
        Self(reason, Some(facet))
    }
}

#[cfg(test)]
mod tests;
