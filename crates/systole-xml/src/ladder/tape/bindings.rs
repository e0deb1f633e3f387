//! The bindings of prefixes at an element of a tape.

use super::Uri;
use crate::ladder::names::Names;

/// The bindings of prefixes at the current element.
///
/// Prefixes are looked up by number, and declarations are undone from a log when their element ends, so an element
/// costs time for its own names and declarations only, however many others are in scope.
#[derive(Debug, Default)]
pub(crate) struct Bindings {
    /// The default namespace.
    default: Uri,
    prefixes: Names,
    /// The current binding of each prefix.
    bound: Vec<Uri>,
    hidden: Vec<Hidden>,
}

/// A binding that a declaration of `element` hides.
#[derive(Debug)]
struct Hidden {
    element: u32,
    /// The number of the prefix; `None` for the default namespace.
    prefix: Option<u32>,
    before: Uri,
}

impl Bindings {
    pub(crate) fn clear(&mut self) {
        self.default = Uri::NONE;
        self.prefixes.truncate(0);
        self.bound.clear();
        self.hidden.clear();
    }

    /// Binds a prefix in an element, until [`Self::leave`]; the empty one is that of the default namespace.
    pub(crate) fn declare(&mut self, element: u32, prefix: &str, uri: Uri) {
        let prefix = (!prefix.is_empty()).then(|| self.prefixes.intern(prefix));
        if prefix.is_some_and(|number| number as usize == self.bound.len()) {
            self.bound.push(Uri::NONE);
        }
        let before = std::mem::replace(self.slot(prefix), uri);
        self.hidden.push(Hidden { element, prefix, before });
    }

    /// Undoes the declarations of the innermost element that has some, if it is this one.
    #[inline]
    pub(crate) fn leave(&mut self, element: u32) {
        while let Some(Hidden { prefix, before, .. }) = self.hidden.pop_if(|last| last.element == element) {
            *self.slot(prefix) = before;
        }
    }

    /// The namespace of a prefix; [`Uri::NONE`] if it is unbound.
    #[inline]
    pub(crate) fn uri(&self, prefix: &str) -> Uri {
        match prefix {
            "" => self.default,
            "xml" => Uri::XML,
            prefix => self.prefixes.find(prefix).map_or(Uri::NONE, |number| self.bound[number as usize]),
        }
    }

    /// Drops the memory if a large document has left more than `kept` entries.
    pub(crate) fn shrink(&mut self, kept: usize) {
        if self.prefixes.is_large(kept) || self.bound.capacity() > kept || self.hidden.capacity() > kept {
            *self = Self::default();
        }
    }

    fn slot(&mut self, prefix: Option<u32>) -> &mut Uri {
        match prefix {
            Some(number) => &mut self.bound[number as usize],
            None => &mut self.default,
        }
    }
}
