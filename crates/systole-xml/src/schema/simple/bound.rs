//! Bounding facets.

use std::cmp::Ordering;

use super::value::Value;

/// A bounding facet (part 2, sections 4.3.7 to 4.3.10).
#[derive(Debug, Clone)]
pub(super) struct Bound {
    pub(super) value: Value<'static>,
    pub(super) inclusive: bool,
    /// The literal in the schema.
    pub(super) written: Box<str>,
}

impl Bound {
    /// Reports whether a value is on the given side of the bound; an incomparable value is not.
    pub(super) fn allows(&self, value: &Value, side: Ordering) -> bool {
        let equal = || self.inclusive && *value == self.value;
        value.order(&self.value) == Some(side) || equal()
    }

    /// Reports whether another bound on the same side allows every value that this one allows.
    pub(super) fn is_within(&self, other: &Self, side: Ordering) -> bool {
        other.allows(&self.value, side) || !self.inclusive && self.value == other.value
    }
}
