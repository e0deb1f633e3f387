//! Namespace declarations in scope during the walk.

use std::cell::Cell;
use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::ops::Range;

use crate::ladder::scan::unescape_into;
use crate::ladder::tape::Tag;
use crate::schema::engine::namespace::{Namespace, Namespaces};
use crate::schema::simple::Prefixes;
use crate::vocab::ns;

/// The bindings of prefixes at the current element.
///
/// Prefixes are looked up by number, and declarations are undone from a log when their element ends, so an element
/// costs time for its own names and declarations only, however many others are in scope. The memory is kept from one
/// payload to the next, so the scope holds positions in the text rather than the text.
#[derive(Debug, Default)]
pub(super) struct Scope {
    /// The position where each prefix first occurred; the first entry is the default namespace.
    prefixes: Vec<Range<usize>>,
    /// The current binding of each prefix.
    bound: Vec<Binding>,
    /// The numbers of prefixes by hash, once there are many. The hash is keyed, so that a sender can't cause
    /// collisions.
    numbers: HashMap<u64, usize>,
    hasher: RandomState,
    /// The log of hidden bindings: the number of a prefix, and its binding before a declaration.
    hidden: Vec<(usize, Binding)>,
    /// Namespace names with references resolved.
    resolved: String,
    /// The number of declarations of the namespace of `xsi:type` in scope.
    xsi: usize,
    /// The steps that are left for pattern matching.
    steps: Cell<usize>,
    /// The steps that the payload had at its start.
    granted: usize,
}

#[derive(Debug, Clone)]
struct Binding {
    namespace: Namespace,
    uri: Uri,
}

/// The location of a namespace name.
#[derive(Debug, Clone)]
enum Uri {
    Unbound,
    Text(Range<usize>),
    Resolved(Range<usize>),
}

const UNBOUND: Binding = Binding { namespace: Namespace::NONE, uri: Uri::Unbound };

/// The number of prefixes up to which they are compared in sequence.
const FEW: usize = 8;

impl Scope {
    /// The steps for values for a payload of any size, and for each of its bytes; a step takes 6 ns or less.
    const STEPS: (usize, usize) = (100_000_000, 64);

    /// Starts the budget for a payload of `bytes` bytes, with at most `most` steps.
    pub(super) fn begin(&mut self, bytes: usize, most: usize) {
        let (any, each) = Self::STEPS;
        self.granted = any.saturating_add(bytes.saturating_mul(each)).min(most);
        self.steps.set(self.granted);
    }

    /// The steps that the payload took so far.
    pub(super) fn spent(&self) -> usize {
        self.granted - self.steps.get()
    }

    pub(super) fn clear(&mut self) {
        self.prefixes.clear();
        self.bound.clear();
        self.numbers.clear();
        self.hidden.clear();
        self.resolved.clear();
        self.xsi = 0;
        self.prefixes.push(0..0);
        self.bound.push(UNBOUND);
    }

    /// The mark to rewind to.
    pub(super) fn mark(&self) -> usize {
        self.hidden.len()
    }

    /// Adds the declarations of a start tag, which is a part of `text`.
    pub(super) fn declare(&mut self, text: &str, tag: &Tag, namespaces: &Namespaces) {
        for attribute in tag.attributes() {
            // Declarations come before all other attributes.
            let Some(prefix) = attribute.declared() else { break };
            let written = attribute.written();
            let number = self.number(text, prefix);
            let (namespace, uri) = if memchr::memchr(b'&', written.as_bytes()).is_some() {
                let start = self.resolved.len();
                unescape_into(&mut self.resolved, written);
                (namespaces.find(&self.resolved[start..]), Uri::Resolved(start..self.resolved.len()))
            } else if written.is_empty() {
                (Namespace::NONE, Uri::Unbound)
            } else {
                (namespaces.find(written), Uri::Text(range(text, written)))
            };
            self.bind(number, Binding { namespace, uri }, true);
        }
    }

    /// Undoes the declarations since `mark`.
    pub(super) fn rewind(&mut self, mark: usize) {
        while self.hidden.len() > mark
            && let Some((number, before)) = self.hidden.pop()
        {
            self.bind(number, before, false);
        }
    }

    /// The namespace of an element, or of an attribute with a non-empty prefix.
    #[inline]
    pub(super) fn namespace(&self, text: &str, prefix: &str) -> Namespace {
        match prefix {
            "" => self.bound[0].namespace,
            "xml" => Namespace::XML,
            _ => self.find(text, prefix).map_or(Namespace::NONE, |number| self.bound[number].namespace),
        }
    }

    /// Reports whether an attribute of the namespace of `xsi:type` is possible here.
    #[inline]
    pub(super) fn may_have_xsi(&self) -> bool {
        self.xsi > 0
    }

    pub(super) fn prefixes<'s>(&'s self, text: &'s str) -> InScope<'s> {
        InScope { scope: self, text }
    }

    fn bind(&mut self, number: usize, binding: Binding, log: bool) {
        self.xsi += usize::from(binding.namespace == Namespace::XSI);
        let before = std::mem::replace(&mut self.bound[number], binding);
        self.xsi -= usize::from(before.namespace == Namespace::XSI);
        if log {
            self.hidden.push((number, before));
        }
    }

    fn number(&mut self, text: &str, prefix: &str) -> usize {
        if prefix.is_empty() {
            return 0;
        }
        if let Some(number) = self.find(text, prefix) {
            return number;
        }
        let new = self.prefixes.len();
        self.prefixes.push(range(text, prefix));
        self.bound.push(UNBOUND);
        if new + 1 == FEW {
            for number in 1..new {
                self.index(text, number);
            }
        }
        if new + 1 >= FEW {
            self.index(text, new);
        }
        new
    }

    fn find(&self, text: &str, prefix: &str) -> Option<usize> {
        if self.prefixes.len() < FEW {
            return (1..self.prefixes.len()).find(|number| text[self.prefixes[*number].clone()] == *prefix);
        }
        let mut hash = self.hasher.hash_one(prefix);
        loop {
            let number = *self.numbers.get(&hash)?;
            if text[self.prefixes[number].clone()] == *prefix {
                return Some(number);
            }
            hash = hash.wrapping_add(1);
        }
    }

    fn index(&mut self, text: &str, number: usize) {
        let mut hash = self.hasher.hash_one(&text[self.prefixes[number].clone()]);
        while self.numbers.contains_key(&hash) {
            hash = hash.wrapping_add(1);
        }
        self.numbers.insert(hash, number);
    }

    /// Drops the memory if a large message has left more than `kept` entries.
    pub(super) fn shrink(&mut self, kept: usize) {
        if self.prefixes.capacity() > kept || self.resolved.capacity() > kept {
            *self = Self::default();
        }
    }
}

/// The declarations in scope, for values that are qualified names.
pub(super) struct InScope<'s> {
    scope: &'s Scope,
    text: &'s str,
}

impl Prefixes for InScope<'_> {
    #[inline]
    fn spend(&self, steps: usize) -> bool {
        let left = self.scope.steps.get().saturating_sub(steps);
        self.scope.steps.set(left);
        left > 0
    }

    fn namespace(&self, prefix: &str) -> Option<&str> {
        let number = match prefix {
            "" => 0,
            "xml" => return Some(ns::XML),
            _ => self.scope.find(self.text, prefix)?,
        };
        match &self.scope.bound[number].uri {
            Uri::Unbound => None,
            Uri::Text(range) => Some(&self.text[range.clone()]),
            Uri::Resolved(range) => Some(&self.scope.resolved[range.clone()]),
        }
    }
}

/// The range of a part of a text.
fn range(text: &str, part: &str) -> Range<usize> {
    let start = part.as_ptr() as usize - text.as_ptr() as usize;
    start..start + part.len()
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
        let text = format!("<a{declared}><b xmlns=\"urn:5\" xmlns:p5=\"urn:&amp;\" p5:k=\"\"></b></a>");
        let canonical = canonicalize(&text.into(), &XmlLimits::default()).unwrap();
        let text = canonical.as_str();
        let mut scope = Scope::default();
        scope.clear();
        let mark = canonical.read(|mut cursor| {
            scope.declare(text, &cursor.enter().unwrap(), &namespaces);
            let mark = scope.mark();
            scope.declare(text, &cursor.enter().unwrap(), &namespaces);
            mark
        });
        for i in (0..40).filter(|i| *i != 5) {
            assert_eq!(scope.prefixes(text).namespace(&format!("p{i}")), Some(format!("urn:{i}").as_str()));
        }
        assert_eq!(scope.prefixes(text).namespace("p5"), Some("urn:&"));
        assert_eq!(scope.namespace(text, "p5"), Namespace::FOREIGN);
        assert_eq!(scope.namespace(text, ""), known);
        scope.rewind(mark);
        assert_eq!((scope.namespace(text, "p5"), scope.namespace(text, "")), (known, Namespace::NONE));
        assert_eq!(scope.prefixes(text).namespace("q"), None);
    }
}
