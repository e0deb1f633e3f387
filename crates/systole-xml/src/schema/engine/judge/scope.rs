//! The namespaces of names, and the declarations in scope for values.

use std::cell::{Cell, RefCell};

use crate::ladder::tape::{Bindings, Cursor, Uri};
use crate::schema::engine::namespace::{Namespace, Namespaces};
use crate::schema::simple::Prefixes;

/// The namespaces of a payload, and the steps for its values.
///
/// The tape has the namespace of each name, by number; the grammar's one is looked up when a name is first in it. Only
/// values that are qualified names need prefixes.
#[derive(Debug, Default)]
pub(super) struct Scope {
    /// The namespace of the grammar by the number of the namespace in the payload, once it was looked up.
    namespaces: Vec<Cell<Option<Namespace>>>,
    declared: RefCell<Declared>,
    /// The steps that are left for pattern matching.
    steps: Cell<usize>,
    /// The steps that the payload had at its start.
    granted: usize,
}

/// The declarations of an element and those around it.
#[derive(Debug, Default)]
struct Declared {
    bindings: Bindings,
    /// The element and those around it, from the root on.
    elements: Vec<u32>,
}

impl Scope {
    /// The steps for values for a payload of any size, and for each of its bytes; a step takes 6 ns or less.
    const STEPS: (usize, usize) = (100_000_000, 64);

    /// Starts a payload, with a budget by its length, of at most `most` steps.
    pub(super) fn begin(&mut self, payload: &Cursor, most: usize) {
        let (any, each) = Self::STEPS;
        let bytes = payload.document().len();
        self.granted = any.saturating_add(bytes.saturating_mul(each)).min(most);
        self.steps.set(self.granted);
        self.namespaces.clear();
        self.namespaces.resize(payload.uris(), Cell::new(None));
        let Declared { bindings, elements } = self.declared.get_mut();
        if !elements.is_empty() {
            bindings.clear();
            elements.clear();
        }
    }

    /// The steps that the payload took so far.
    pub(super) fn spent(&self) -> usize {
        self.granted - self.steps.get()
    }

    /// The namespace of the grammar that a name of the payload is in.
    #[inline]
    pub(super) fn namespace(&self, uri: Uri, payload: &Cursor, namespaces: &Namespaces) -> Namespace {
        match self.namespaces[uri.index()].get() {
            Some(known) => known,
            None => self.look_up(uri, payload, namespaces),
        }
    }

    #[cold]
    fn look_up(&self, uri: Uri, payload: &Cursor, namespaces: &Namespaces) -> Namespace {
        let found = namespaces.find(payload.uri_name(uri));
        self.namespaces[uri.index()].set(Some(found));
        found
    }

    /// The declarations in scope at an element.
    pub(super) fn prefixes<'s>(&'s self, payload: &'s Cursor<'s>, element: usize) -> InScope<'s> {
        InScope { scope: self, payload, element }
    }

    /// Drops the memory if a large message has left more than `kept` entries.
    pub(super) fn shrink(&mut self, kept: usize) {
        let Declared { bindings, elements } = self.declared.get_mut();
        bindings.shrink(kept);
        if self.namespaces.capacity() > kept || elements.capacity() > kept {
            *self = Self::default();
        }
    }
}

impl Declared {
    /// Moves to an element. As elements are asked for in document order, the tag of each is read once at most, so all
    /// moves together take time linear in the payload.
    fn reach(&mut self, payload: &Cursor, element: usize) {
        while let Some(left) = self.elements.pop_if(|last| !payload.encloses(*last as usize, element)) {
            self.bindings.leave(left);
        }
        let around = self.elements.len();
        let nearest = self.elements.last().map(|last| *last as usize);
        let mut next = Some(element);
        while let Some(inner) = next.filter(|_| next != nearest) {
            self.elements.push(inner as u32);
            next = payload.parent(inner);
        }
        self.elements[around..].reverse();
        for &element in &self.elements[around..] {
            let tag = payload.tag(element as usize);
            // Declarations come before all other attributes.
            let declarations = tag.iter().flat_map(|tag| tag.attributes().map_while(|attribute| attribute.declared()));
            declarations.for_each(|(prefix, uri)| self.bindings.declare(element, prefix, uri));
        }
    }
}

/// The declarations in scope at an element, for values that are qualified names.
pub(super) struct InScope<'s> {
    scope: &'s Scope,
    payload: &'s Cursor<'s>,
    element: usize,
}

impl InScope<'_> {
    /// The namespace that a prefix is bound to; `None` if it is unbound.
    pub(super) fn uri(&self, prefix: &str) -> Option<Uri> {
        let mut declared = self.scope.declared.borrow_mut();
        declared.reach(self.payload, self.element);
        Some(declared.bindings.uri(prefix)).filter(|uri| *uri != Uri::NONE)
    }
}

impl Prefixes for InScope<'_> {
    #[inline]
    fn spend(&self, steps: usize) -> bool {
        let left = self.scope.steps.get().saturating_sub(steps);
        self.scope.steps.set(left);
        left > 0
    }

    fn namespace(&self, prefix: &str) -> Option<&str> {
        self.uri(prefix).map(|uri| self.payload.uri_name(uri))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ladder::strict::canonicalize;
    use crate::vocab::XmlLimits;

    #[test]
    fn prefixes_are_found_however_many_there_are_and_come_back() {
        let mut namespaces = Namespaces::new();
        let known = namespaces.intern("urn:5");
        let declared: String = (0..40).map(|i| format!(" xmlns:p{i}=\"urn:{i}\" p{i}:k=\"\"")).collect();
        let text =
            format!("<a{declared}><b></b><b xmlns=\"urn:5\" xmlns:p5=\"urn:&amp;\" p5:k=\"\"><c></c></b><d></d></a>");
        let canonical = canonicalize(&text.into(), &XmlLimits::default()).unwrap();
        canonical.read(|payload| {
            let mut scope = Scope::default();
            scope.begin(&payload, usize::MAX);
            let at = |element, prefix: &str| {
                let found = scope.prefixes(&payload, element);
                found.namespace(prefix).map(str::to_owned)
            };
            for i in 0..40 {
                let (prefix, uri) = (format!("p{i}"), Some(format!("urn:{i}")));
                assert_eq!(at(1, &prefix), uri);
                assert_eq!(at(3, &prefix), if i == 5 { Some("urn:&".to_owned()) } else { uri });
            }
            let urn = |uri: &str| Some(uri.to_owned());
            assert_eq!([at(2, "p5"), at(3, ""), at(3, "q")], [urn("urn:&"), urn("urn:5"), None]);
            assert_eq!([at(4, "p5"), at(4, ""), at(0, "p5")], [urn("urn:5"), None, urn("urn:5")]);
            let namespace = |uri| scope.namespace(uri, &payload, &namespaces);
            let of = |element| namespace(payload.tag(element).unwrap().uri());
            assert_eq!([0, 2, 3, 4].map(of), [Namespace::NONE, known, known, Namespace::NONE]);
            let attributes = payload.tag(2).unwrap().attributes();
            assert_eq!(attributes.filter_map(|k| k.uri()).map(namespace).collect::<Vec<_>>(), [Namespace::FOREIGN]);
        });
    }
}
