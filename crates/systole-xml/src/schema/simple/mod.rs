//! Simple types of XSD 1.0 (part 2, second edition): validation of literals, and equality of values.
//!
//! A [`SimpleType`] is compiled once: its facets are values, its patterns one automaton per step of restriction. A
//! check takes time linear in the value (for a union, times those of its members that are not
//! enumerations of few texts), recurses as deep as types nest and never over the value, and allocates nothing for a
//! valid value unless white space inside of it must be collapsed or its enumeration is one of lists.
//!
//! It does not check the structure of a schema, such as references and derivations. A facet that the type
//! doesn't have, that is malformed or that widens the base is [`Unsupported`].

mod binary;
mod bound;
mod date_time;
mod decimal;
mod definition;
mod duration;
mod enumeration;
mod facets;
mod fast_path;
mod identities;
mod lexis;
mod members;
mod mismatch;
mod primitive;
mod restrict;
mod space;
mod uri;
mod value;
mod words;
mod work;
mod xsd_types;

use std::borrow::Cow;
use std::sync::Arc;

use definition::{Definition, Variety};
pub(in crate::schema) use facets::is_facet;
use fast_path::FastPath;
use mismatch::Broken;
pub(in crate::schema) use mismatch::Mismatch;
use primitive::Primitive;
use value::Value;
pub(in crate::schema) use words::{list_of, union_of};
pub(crate) use xsd_types::{Kind, XsdType};

/// A compiled simple type. Cheap to clone.
#[derive(Debug, Clone)]
pub(in crate::schema) struct SimpleType {
    definition: Arc<Definition>,
    fast_path: FastPath,
}

/// A facet of a restriction, as the schema declares it.
#[derive(Clone, Copy)]
pub(in crate::schema) struct Facet<'a> {
    /// The local name of its element, such as `maxLength`.
    pub(in crate::schema) name: &'a str,
    /// The value of its `value` attribute.
    pub(in crate::schema) value: &'a str,
    /// Set if no further restriction may change the facet.
    pub(in crate::schema) fixed: bool,
    /// The prefixes in scope at the facet, which enumerations of qualified names need.
    pub(in crate::schema) prefixes: &'a dyn Prefixes,
}

/// The context of a value: the namespace declarations in scope, and the time that is left for it.
pub(in crate::schema) trait Prefixes {
    /// The namespace name of a prefix; `""` is the default namespace. `None` if it is not bound.
    fn namespace(&self, prefix: &str) -> Option<&str>;

    /// Spends steps on comparisons with patterns, members of unions and items of lists; `false` if none are left.
    fn spend(&self, _steps: usize) -> bool {
        true
    }
}

/// A context in which no prefix is bound.
pub(in crate::schema) struct NoPrefixes;

impl Prefixes for NoPrefixes {
    fn namespace(&self, _: &str) -> Option<&str> {
        None
    }
}

/// The reason why a type can't be compiled: one sentence, and the index of the facet that it is about, if any.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(in crate::schema) struct Unsupported(pub(in crate::schema) String, pub(in crate::schema) Option<usize>);

/// The relation of a type to `xs:ID` and `xs:IDREF`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(in crate::schema) enum Identity {
    /// No relation.
    #[default]
    None,
    /// A value is an ID.
    Id,
    /// A value is a reference to an ID.
    Idref,
    /// A value is a list of references to IDs.
    Idrefs,
    /// IDs or references are among the members of a union, or IDs among the items of a list: see [`SimpleType::identities`].
    Mixed,
}

impl Identity {
    /// Reports whether a value refers to IDs.
    pub(in crate::schema) fn refers(self) -> bool {
        matches!(self, Self::Idref | Self::Idrefs)
    }
}

impl SimpleType {
    /// A built-in type by its local name in the namespace of XML Schema.
    pub(in crate::schema) fn xsd_type(local: &str) -> Option<Self> {
        xsd_types::named(local)
    }

    /// A restriction of this type, called `name` in texts, by the facets of one step in document order.
    ///
    /// # Errors
    /// [`Unsupported`] if the type doesn't have a facet, or its value is not valid.
    pub(in crate::schema) fn restrict(&self, name: &str, facets: &[Facet]) -> Result<Self, Unsupported> {
        restrict::restrict(self, name, facets).map(Self::new)
    }

    /// Reports whether a restriction of this type may have a facet.
    pub(in crate::schema) fn has_facet(&self, facet: &str) -> bool {
        restrict::has_facet(&self.definition.variety, facet)
    }

    /// The greatest number of types that a value may be checked against.
    pub(in crate::schema) fn width(&self) -> usize {
        self.definition.width
    }

    /// The greatest number of checks that the words of a text take against members of unions, if it may be a list.
    pub(in crate::schema) fn checks(&self, text: &str) -> usize {
        match self.width() {
            1 => 0,
            width => width.saturating_mul(text.split_ascii_whitespace().count().max(1)),
        }
    }

    /// The greatest number of steps that the patterns of the type take over a text.
    pub(in crate::schema) fn steps(&self, text: &str) -> usize {
        self.definition.steps(text)
    }

    /// The greatest number of steps that a check of a text takes, beside those of patterns.
    pub(in crate::schema) fn work(&self, text: &str) -> usize {
        self.definition.work(text)
    }

    /// A list type with items of a type.
    ///
    /// # Errors
    /// [`Unsupported`] if the items are lists themselves, or if types nest too deep.
    pub(in crate::schema) fn list(item: &Self) -> Result<Self, Unsupported> {
        Definition::list(item).map(Self::new)
    }

    /// A union type: a value belongs to the first member that it is valid for.
    ///
    /// # Errors
    /// [`Unsupported`] if types nest too deep, or the union has too many members.
    pub(in crate::schema) fn union(members: Vec<Self>) -> Result<Self, Unsupported> {
        Definition::union(members).map(Self::new)
    }

    /// Returns whether a literal is valid, and no ID or reference to one, by a test that takes little time. Others may
    /// be valid, too.
    #[inline]
    pub(in crate::schema) fn is_clearly_valid(&self, value: &str) -> bool {
        self.fast_path.allows(value)
    }

    /// Checks a literal: references resolved, white space as written.
    ///
    /// # Errors
    /// [`Mismatch`] names the broken rule.
    #[inline]
    pub(in crate::schema) fn check(&self, value: &str, prefixes: &dyn Prefixes) -> Result<(), Mismatch> {
        if self.fast_path.allows(value) {
            return Ok(());
        }
        match self.definition.value(value, prefixes, false) {
            Ok(_) => Ok(()),
            Err(broken) => Err(self.mismatch(broken, value)),
        }
    }

    fn mismatch(&self, broken: Broken, value: &str) -> Mismatch {
        let bounds = self.definition.uncounted_bounds(broken.rule);
        Mismatch::new(broken, value, bounds.as_deref().unwrap_or(self.words()))
    }

    /// Reports whether two valid literals are equal values.
    ///
    /// # Errors
    /// [`Mismatch`] if one of them is not valid, or no steps are left to find its value.
    pub(in crate::schema) fn equal(&self, a: &str, b: &str, prefixes: &dyn Prefixes) -> Result<bool, Mismatch> {
        Ok(self.value(a, prefixes)? == self.value(b, prefixes)?)
    }

    /// Reports whether the type is `xs:ID` or a restriction of it.
    pub(in crate::schema) fn is_id(&self) -> bool {
        self.identity() == Identity::Id
    }

    /// Reports whether the type is a notation without an enumeration (section 3.2.19).
    pub(in crate::schema) fn is_bare_notation(&self) -> bool {
        matches!(self.definition.variety, Variety::Atomic(Primitive::Notation))
            && self.definition.facets.values.is_none()
    }

    /// Reports whether the values are notations.
    pub(in crate::schema) fn is_notation(&self) -> bool {
        matches!(self.definition.variety, Variety::Atomic(Primitive::Notation))
    }

    /// Reports whether the type is `xs:anySimpleType`.
    pub(in crate::schema) fn is_any(&self) -> bool {
        matches!(self.definition.variety, Variety::Any)
    }

    /// Writes a key for a valid literal: equal values, and only they, have equal keys.
    ///
    /// # Errors
    /// [`Mismatch`] if the literal is not valid, or no steps are left to find its value.
    pub(in crate::schema) fn key(&self, out: &mut String, text: &str, prefixes: &dyn Prefixes) -> Result<(), Mismatch> {
        self.value(text, prefixes).map(|value| value.key(out))
    }

    fn value<'a>(&'a self, text: &'a str, prefixes: &'a dyn Prefixes) -> Result<Value<'a>, Mismatch> {
        self.definition.value(text, prefixes, true).map_err(|broken| self.mismatch(broken, text))
    }

    /// The relation of the type to `xs:ID` and `xs:IDREF`.
    pub(in crate::schema) fn identity(&self) -> Identity {
        self.definition.identity()
    }

    /// The description of a value for a person or a model, such as "whole number from 0 to 99".
    pub(in crate::schema) fn words(&self) -> &str {
        self.definition.words()
    }

    /// The start of [`Self::words`]: the description without facets other than the enumeration.
    pub(in crate::schema) fn noun(&self) -> &str {
        &self.definition.noun
    }

    /// The end of [`Self::words`], not shortened: the facets that a value must keep beside the noun or the enumeration.
    pub(in crate::schema) fn limits(&self) -> String {
        self.definition.limits()
    }

    /// The valid values of the enumeration, as written and in document order; empty without an enumeration.
    pub(in crate::schema) fn enumerated(&self, prefixes: &dyn Prefixes) -> Vec<&str> {
        let values = self.definition.enumerated.iter().flat_map(|values| values.iter());
        values.map(|value| &**value).filter(|value| self.check(value, prefixes).is_ok()).collect()
    }

    /// A literal with the white space that its value has.
    pub(in crate::schema) fn normalized<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.definition.space.normalize(text)
    }

    /// The least and the greatest length that facets allow.
    pub(in crate::schema) fn lengths(&self) -> [Option<usize>; 2] {
        let facets = &self.definition.facets;
        [facets.length.or(facets.min_length), facets.length.or(facets.max_length)]
    }

    /// The least and the greatest value that facets allow: each as written, and whether it is excluded itself.
    pub(in crate::schema) fn bounds(&self) -> [Option<(&str, bool)>; 2] {
        let facets = &self.definition.facets;
        [&facets.least, &facets.most].map(|bound| bound.as_ref().map(|bound| (&*bound.written, !bound.inclusive)))
    }

    /// Reports whether a facet limits the number of digits.
    pub(in crate::schema) fn has_digits(&self) -> bool {
        let facets = &self.definition.facets;
        facets.total_digits.is_some() || facets.fraction_digits.is_some()
    }

    /// Reports whether values are qualified names, which need the prefixes in scope.
    pub(in crate::schema) fn has_prefixes(&self) -> bool {
        self.definition.has_prefixes()
    }

    /// Reports whether values are `true` and `false`.
    pub(in crate::schema) fn is_boolean(&self) -> bool {
        matches!(self.definition.variety, Variety::Atomic(Primitive::Boolean))
    }

    fn new(definition: Definition) -> Self {
        Self { fast_path: FastPath::of(&definition), definition: Arc::new(definition) }
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

/// Reports whether XSD 1.0 has a type of this local name.
pub(super) fn is_xsd_type(local: &str) -> bool {
    local == "anyType" || SimpleType::xsd_type(local).is_some()
}
