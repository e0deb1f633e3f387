//! Rules that schemas break, with their places.

use super::Place;
use crate::schema::simple::Unsupported;

/// A rule that a schema breaks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::schema) struct BrokenSchemaRule {
    /// The component that breaks the rule; `None` until a caller knows it.
    pub(in crate::schema) at: Option<Place>,
    /// The attribute that breaks the rule, if it is one.
    pub(in crate::schema) attribute: Option<&'static str>,
    /// The text: the mistake, and what to write instead.
    pub(in crate::schema) rule: String,
}

impl BrokenSchemaRule {
    pub(in crate::schema) fn new(at: Option<Place>, rule: impl Into<String>) -> Self {
        Self { at, attribute: None, rule: rule.into() }
    }

    /// A rule that an attribute breaks.
    pub(in crate::schema) fn of_attribute(place: &Place, attribute: &'static str, rule: impl Into<String>) -> Self {
        Self { attribute: Some(attribute), ..Self::new(Some(place.clone()), rule) }
    }

    /// Sets the place, unless a closer one is known.
    pub(in crate::schema) fn at(mut self, place: &Place) -> Self {
        self.at.get_or_insert_with(|| place.clone());
        self
    }
}

impl From<Unsupported> for BrokenSchemaRule {
    fn from(Unsupported(rule, _): Unsupported) -> Self {
        Self::new(None, rule)
    }
}
