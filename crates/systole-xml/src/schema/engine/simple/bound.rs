use std::cmp::Ordering;

use super::value::Value;

/// One of the four bounding facets (part 2, sections 4.3.7 to 4.3.10).
#[derive(Debug, Clone)]
pub(super) struct Bound {
    pub(super) value: Value<'static>,
    pub(super) inclusive: bool,
    /// As its schema has it.
    pub(super) written: Box<str>,
}

impl Bound {
    /// Whether a value lies on the given side of the bound; one that is incomparable does not.
    pub(super) fn allows(&self, value: &Value, side: Ordering) -> bool {
        let equal = || self.inclusive && *value == self.value;
        value.order(&self.value) == Some(side) || equal()
    }

    /// Whether all that this one allows is allowed by another one on the same side.
    pub(super) fn is_within(&self, other: &Self, side: Ordering) -> bool {
        other.allows(&self.value, side) || !self.inclusive && self.value == other.value
    }
}
