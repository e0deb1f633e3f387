//! Constraining facets, and the checks of values against them.

use std::cmp::Ordering;
use std::sync::Arc;

use super::Prefixes;
use super::bound::Bound;
use super::enumeration::Enumeration;
use super::mismatch::Rule;
use super::value::Value;
use crate::schema::pattern::Automaton;

/// The constraining facets of a type, including those of its base types (part 2, section 4.3).
#[derive(Debug, Clone, Default)]
pub(super) struct Facets {
    pub(super) length: Option<usize>,
    pub(super) min_length: Option<usize>,
    pub(super) max_length: Option<usize>,
    /// The patterns, one per step of restriction; all must match.
    pub(super) patterns: Vec<Pattern>,
    /// The enumeration of the last step that has one, which is a subset of those before.
    pub(super) values: Option<Arc<Enumeration>>,
    pub(super) least: Option<Bound>,
    pub(super) most: Option<Bound>,
    pub(super) total_digits: Option<usize>,
    pub(super) fraction_digits: Option<usize>,
    pub(super) fixed: Fixed,
}

/// The fixed facets, one bit for each of [`FACETS`].
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Fixed(u16);

impl Fixed {
    pub(super) fn insert(&mut self, facet: &str) {
        self.0 |= Self::bit(facet);
    }

    pub(super) fn has(self, facet: &str) -> bool {
        self.0 & Self::bit(facet) != 0
    }

    fn bit(facet: &str) -> u16 {
        FACETS.iter().position(|name| *name == facet).map_or(0, |at| 1 << at)
    }
}

/// The constraining facets of XSD 1.0 (part 2, section 4.3).
pub(super) const FACETS: [&str; 12] = [
    "length",
    "minLength",
    "maxLength",
    "pattern",
    "enumeration",
    "whiteSpace",
    "minInclusive",
    "minExclusive",
    "maxInclusive",
    "maxExclusive",
    "totalDigits",
    "fractionDigits",
];

/// Reports whether XSD 1.0 has a constraining facet of this name.
pub(in crate::schema) fn is_facet(name: &str) -> bool {
    FACETS.contains(&name)
}

/// The alternative patterns of one step of restriction.
#[derive(Debug, Clone)]
pub(super) struct Pattern {
    pub(super) automaton: Arc<Automaton>,
    /// The patterns in the schema, joined by "or".
    pub(super) written: Arc<str>,
}

impl Facets {
    /// Checks the length of a value in the unit of its type. Types without a length have `None`.
    pub(super) fn check_length(&self, length: impl FnOnce() -> Option<usize>) -> Result<(), Rule> {
        if self.length.is_none() && self.min_length.is_none() && self.max_length.is_none() {
            return Ok(());
        }
        let Some(length) = length() else { return Ok(()) };
        if self.length.is_some_and(|exact| length != exact) {
            return Err(Rule::Length);
        }
        if self.min_length.is_some_and(|min| length < min) {
            return Err(Rule::MinLength);
        }
        if self.max_length.is_some_and(|max| length > max) { Err(Rule::MaxLength) } else { Ok(()) }
    }

    /// Checks a literal with normalized white space against the patterns.
    pub(super) fn check_literal(&self, text: &str, prefixes: &dyn Prefixes) -> Result<(), Rule> {
        for Pattern { automaton, .. } in &self.patterns {
            if !prefixes.spend(automaton.steps(text)) {
                return Err(Rule::Steps);
            }
            if !automaton.is_match(text) {
                return Err(Rule::Pattern);
            }
        }
        Ok(())
    }

    /// Reports whether no facet looks at the value, so that a check of the literal is enough.
    pub(super) fn ignore_values(&self) -> bool {
        self.values.is_none()
            && self.least.is_none()
            && self.most.is_none()
            && self.total_digits.is_none()
            && self.fraction_digits.is_none()
    }

    /// Checks a value against the enumeration, the bounds and the digits.
    pub(super) fn check_value(&self, value: &Value) -> Result<(), Rule> {
        if let Some(values) = &self.values
            && !values.contains(value)
        {
            return Err(Rule::Enumeration);
        }
        if let Some(least) = &self.least
            && !least.allows(value, Ordering::Greater)
        {
            return Err(Rule::Least);
        }
        if let Some(most) = &self.most
            && !most.allows(value, Ordering::Less)
        {
            return Err(Rule::Most);
        }
        if let Value::Decimal(decimal) = value {
            if self.total_digits.is_some_and(|most| decimal.total_digits() > most) {
                return Err(Rule::TotalDigits);
            }
            if self.fraction_digits.is_some_and(|most| decimal.fraction_digits() > most) {
                return Err(Rule::FractionDigits);
            }
        }
        Ok(())
    }
}
