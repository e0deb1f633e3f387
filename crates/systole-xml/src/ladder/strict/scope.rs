//! Prefixes and namespaces in scope, in the input and in the output.

use crate::ladder::chars::{excerpt, has_scheme};
use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::ops::Range;

use super::error::StrictErrorKind;
use crate::vocab::{XmlLimits, ns};

/// A namespace name, by its index in the table of the pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Uri(u32);

impl Uri {
    /// No namespace: that of an unprefixed name where no default namespace is declared.
    pub(super) const NONE: Self = Self(0);
    const XML: Self = Self(1);
}

/// A prefix, by its index in the table of the pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Prefix(u32);

impl Prefix {
    /// The empty prefix, which the default namespace is bound to.
    pub(super) const DEFAULT: Self = Self(0);
}

/// The bindings of prefixes at the current element, in the input and in the output.
///
/// Everything is looked up by number. Declarations and renderings are undone from logs when their
/// element ends. So an element costs time only for its own names and declarations, however many
/// others are in scope.
#[derive(Debug)]
pub(super) struct Scope {
    prefixes: Table,
    uris: Table,
    states: Vec<State>,
    declared: Vec<(Prefix, Binding)>,
    rendered: Vec<(Prefix, Uri)>,
    in_scope: usize,
    /// Prefixes that were bound since the last start tag was written.
    fresh: Vec<Prefix>,
    /// Prefixes with a declaration that its element doesn't render.
    left_out: Vec<Prefix>,
}

#[derive(Debug, Clone, Copy)]
struct State {
    bound: Binding,
    /// The namespace that the nearest output ancestor rendered for the prefix.
    rendered: Uri,
    /// True if it is on the InclusiveNamespaces PrefixList.
    listed: bool,
    left_out: bool,
}

/// The namespace that a prefix is bound to, and the bytes of its declaration.
#[derive(Debug, Clone, Copy)]
pub(super) struct Binding {
    pub(super) uri: Uri,
    /// Range of a declaration that can be copied unchanged, with the space before it.
    pub(super) verbatim: Option<(usize, usize)>,
    depth: usize,
    /// True if it counts as in scope. An undeclared default namespace still does: the output
    /// may declare it later than the input.
    counts: bool,
}

/// A point to rewind to.
#[derive(Debug, Clone, Copy)]
pub(super) struct Mark {
    declared: usize,
    rendered: usize,
}

const UNBOUND: State = State {
    bound: Binding { uri: Uri::NONE, verbatim: None, depth: 0, counts: false },
    rendered: Uri::NONE,
    listed: false,
    left_out: false,
};

/// The empty prefix in a prefix list (Exclusive XML Canonicalization 1.0, section 4).
const DEFAULT: &str = "#default";

/// Number of names in the tables of every document: the empty prefix and `xml`, no namespace and that of `xml`.
const KNOWN: usize = 2;

impl Default for Scope {
    fn default() -> Self {
        let (mut prefixes, mut uris) = (Table::default(), Table::default());
        uris.intern("");
        let xml = Uri(uris.intern(ns::XML));
        prefixes.intern("");
        prefixes.intern("xml");
        debug_assert_eq!(xml, Uri::XML);
        // `xml` is never rendered, because every document has it.
        let state = State { bound: Binding { uri: xml, ..UNBOUND.bound }, rendered: xml, ..UNBOUND };
        Self {
            prefixes,
            uris,
            states: vec![UNBOUND, state],
            declared: Vec::new(),
            rendered: Vec::new(),
            in_scope: 0,
            fresh: Vec::new(),
            left_out: Vec::new(),
        }
    }
}

impl Scope {
    /// Discards the state of a document.
    pub(super) fn clear(&mut self) {
        self.rewind(Mark { declared: 0, rendered: 0 });
        self.prefixes.truncate(KNOWN);
        self.uris.truncate(KNOWN);
        self.states.truncate(KNOWN);
        self.states[0] = UNBOUND;
        self.in_scope = 0;
        self.fresh.clear();
        self.left_out.clear();
    }

    /// Tells whether its capacity is over `kept`.
    pub(super) fn is_large(&self, kept: usize) -> bool {
        let Self { prefixes, uris, states, declared, rendered, fresh, left_out, in_scope: _ } = self;
        prefixes.is_large(kept)
            || uris.is_large(kept)
            || states.capacity() > kept
            || declared.capacity() > kept
            || rendered.capacity() > kept
            || fresh.capacity() > kept
            || left_out.capacity() > kept
    }

    /// Binds a prefix outside of the bytes that the pass reads.
    pub(super) fn inherit(&mut self, prefix: &str, uri: &str) {
        let prefix = self.prefix(prefix);
        let uri = self.uri(uri);
        self.rebind(prefix, Binding { uri, verbatim: None, depth: 0, counts: true });
        self.fresh.push(prefix);
    }

    /// Records that an ancestor outside of the bytes has rendered a prefix already.
    pub(super) fn inherit_rendered(&mut self, prefix: &str, uri: &str) {
        let prefix = self.prefix(prefix);
        self.state(prefix).rendered = self.uri(uri);
    }

    pub(super) fn mark(&self) -> Mark {
        Mark { declared: self.declared.len(), rendered: self.rendered.len() }
    }

    /// Discards the declarations and renderings since `mark`.
    pub(super) fn rewind(&mut self, mark: Mark) {
        while self.declared.len() > mark.declared
            && let Some((prefix, before)) = self.declared.pop()
        {
            self.rebind(prefix, before);
        }
        while self.rendered.len() > mark.rendered
            && let Some((prefix, before)) = self.rendered.pop()
        {
            self.state(prefix).rendered = before;
        }
    }

    /// The number of a prefix.
    pub(super) fn prefix(&mut self, name: &str) -> Prefix {
        if name.is_empty() {
            return Prefix::DEFAULT;
        }
        let number = self.prefixes.intern(name);
        if number as usize == self.states.len() {
            self.states.push(UNBOUND);
        }
        Prefix(number)
    }

    pub(super) fn prefix_name(&self, prefix: Prefix) -> &str {
        self.prefixes.name(prefix.0)
    }

    pub(super) fn uri_name(&self, uri: Uri) -> &str {
        self.uris.name(uri.0)
    }

    #[inline]
    pub(super) fn binding(&self, prefix: Prefix) -> Binding {
        self.states[prefix.0 as usize].bound
    }

    /// Marks a prefix as rendered with its binding; false if the output has that already.
    #[inline]
    pub(super) fn render(&mut self, prefix: Prefix) -> bool {
        let state = &mut self.states[prefix.0 as usize];
        if state.rendered == state.bound.uri {
            return false;
        }
        self.rendered.push((prefix, state.rendered));
        state.rendered = state.bound.uri;
        true
    }

    /// Puts a prefix on the InclusiveNamespaces PrefixList, or takes it off; `#default` is the empty one.
    pub(super) fn list(&mut self, prefix: &str, listed: bool) {
        let prefix = self.prefix(if prefix == DEFAULT { "" } else { prefix });
        self.state(prefix).listed = listed;
    }

    /// Tells whether prefixes were bound since the last start tag was written.
    #[inline]
    pub(super) fn is_fresh(&self) -> bool {
        !self.fresh.is_empty()
    }

    /// Renders the prefixes that were bound at the current element and that are on the list. Records the others
    /// as left out, unless they were rendered before.
    #[inline]
    pub(super) fn render_listed(&mut self, mut rendered: impl FnMut(Prefix)) {
        if self.fresh.is_empty() {
            return;
        }
        let fresh = std::mem::take(&mut self.fresh);
        for &prefix in &fresh {
            let state = self.states[prefix.0 as usize];
            if state.listed && self.render(prefix) {
                rendered(prefix);
            } else if !state.left_out && state.rendered != state.bound.uri && prefix != Prefix::DEFAULT {
                self.state(prefix).left_out = true;
                self.left_out.push(prefix);
            }
        }
        self.fresh = fresh;
        self.fresh.clear();
    }

    /// Tells whether a declaration of any prefix was left out.
    pub(super) fn leaves_out(&self) -> bool {
        !self.left_out.is_empty()
    }

    /// Tells whether a declaration of this prefix was left out; it counts as kept from now on.
    pub(super) fn keep(&mut self, prefix: &str) -> bool {
        let Some(number) = self.prefixes.find(prefix) else { return false };
        std::mem::take(&mut self.states[number as usize].left_out)
    }

    /// Tells whether a prefix whose declaration was left out may stand before a colon; searched only for a few of them.
    pub(super) fn left_out_may_stand_in(&self, text: &str) -> bool {
        const FEW: usize = 8;
        let stands = |prefix: &Prefix| {
            let name = [self.prefix_name(*prefix), ":"].concat();
            memchr::memmem::find(text.as_bytes(), name.as_bytes()).is_some()
        };
        self.left_out.len() > FEW || self.left_out.iter().any(stands)
    }

    /// Undoes all calls of [`Self::keep`].
    pub(super) fn leave_out_again(&mut self) {
        for prefix in &self.left_out {
            self.states[prefix.0 as usize].left_out = true;
        }
    }

    /// Declares `prefix` on an element at `depth`.
    pub(super) fn declare(
        &mut self,
        prefix: &str,
        uri: &str,
        verbatim: Option<(usize, usize)>,
        depth: usize,
        limits: &XmlLimits,
    ) -> Result<(), StrictErrorKind> {
        check_declaration(prefix, uri, limits)?;
        let uri = self.uri(uri);
        let prefix = self.prefix(prefix);
        let before = self.binding(prefix);
        if before.depth == depth {
            return Err(StrictErrorKind::DuplicateAttribute { name: declaration_name(self.prefix_name(prefix)) });
        }
        self.declared.push((prefix, before));
        if prefix != Prefix::DEFAULT || self.states[0].listed {
            self.fresh.push(prefix);
        }
        let counts = before.counts || !matches!(uri, Uri::NONE | Uri::XML);
        self.rebind(prefix, Binding { uri, verbatim, depth, counts });
        if self.in_scope > limits.namespaces {
            return Err(StrictErrorKind::TooManyNamespaces { limit: limits.namespaces });
        }
        Ok(())
    }

    fn rebind(&mut self, prefix: Prefix, binding: Binding) {
        let before = std::mem::replace(&mut self.state(prefix).bound, binding);
        self.in_scope -= usize::from(before.counts);
        self.in_scope += usize::from(binding.counts);
    }

    fn uri(&mut self, name: &str) -> Uri {
        Uri(self.uris.intern(name))
    }

    fn state(&mut self, prefix: Prefix) -> &mut State {
        &mut self.states[prefix.0 as usize]
    }
}

/// Checks a binding by the rules of Namespaces in XML 1.0, section 3.
fn check_declaration(prefix: &str, uri: &str, limits: &XmlLimits) -> Result<(), StrictErrorKind> {
    if uri.len() > limits.name_bytes {
        return Err(StrictErrorKind::NamespaceTooLong { bytes: uri.len(), limit: limits.name_bytes });
    }
    if prefix == "xmlns" || uri == ns::XMLNS || (prefix == "xml") != (uri == ns::XML) {
        return Err(StrictErrorKind::ReservedName);
    }
    if uri.is_empty() && !prefix.is_empty() {
        return Err(StrictErrorKind::PrefixUndeclared { prefix: excerpt(prefix) });
    }
    if !uri.is_empty() && !limits.relative_namespaces && !has_scheme(uri.as_bytes()) {
        return Err(StrictErrorKind::RelativeNamespace { name: excerpt(uri) });
    }
    Ok(())
}

fn declaration_name(prefix: &str) -> Box<str> {
    if prefix.is_empty() { "xmlns".into() } else { excerpt(&format!("xmlns:{prefix}")) }
}

/// Distinct texts by number. Up to eight are searched linearly, more by a hash that the sender
/// can't predict.
#[derive(Debug, Default)]
struct Table {
    text: String,
    names: Vec<Range<usize>>,
    /// Numbers of names, by the hash of the name or the next free one.
    numbers: HashMap<u64, u32>,
    hasher: RandomState,
}

impl Table {
    const FEW: usize = 8;

    fn intern(&mut self, name: &str) -> u32 {
        if self.names.len() <= Self::FEW {
            let known = self.names.iter().position(|range| self.text.as_bytes()[range.clone()] == *name.as_bytes());
            return known.map_or_else(|| self.add(name), number);
        }
        let hash = self.slot(name);
        match self.numbers.get(&hash) {
            Some(&known) => known,
            None => self.add(name),
        }
    }

    fn find(&self, name: &str) -> Option<u32> {
        if self.names.len() <= Self::FEW {
            return self
                .names
                .iter()
                .position(|range| self.text.as_bytes()[range.clone()] == *name.as_bytes())
                .map(number);
        }
        self.numbers.get(&self.slot(name)).copied()
    }

    fn name(&self, number: u32) -> &str {
        &self.text[self.names[number as usize].clone()]
    }

    fn truncate(&mut self, names: usize) {
        self.names.truncate(names);
        self.text.truncate(self.names.last().map_or(0, |last| last.end));
        self.numbers.clear();
    }

    fn is_large(&self, kept: usize) -> bool {
        self.text.capacity() > 16 * kept || self.names.capacity() > kept || self.numbers.capacity() > kept
    }

    fn add(&mut self, name: &str) -> u32 {
        let new = self.names.len();
        let start = self.text.len();
        self.text.push_str(name);
        self.names.push(start..self.text.len());
        if new == Self::FEW {
            (0..new).for_each(|known| self.index(known));
        }
        if new >= Self::FEW {
            self.index(new);
        }
        number(new)
    }

    fn index(&mut self, known: usize) {
        let slot = self.slot(&self.text[self.names[known].clone()]);
        self.numbers.insert(slot, number(known));
    }

    /// The hash of a name, or the first one behind it that isn't the slot of another name.
    fn slot(&self, name: &str) -> u64 {
        let mut hash = self.hasher.hash_one(name);
        while self.numbers.get(&hash).is_some_and(|&known| self.name(known) != name) {
            hash = hash.wrapping_add(1);
        }
        hash
    }
}

fn number(index: usize) -> u32 {
    u32::try_from(index).expect("a document has fewer than 2^32 names: each takes a byte, and 4 GiB are refused")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stay_the_same_past_the_linear_search() {
        let names: Vec<String> = (0..100).map(|i| format!("n{i}")).collect();
        let mut table = Table::default();
        for round in 0..4 {
            for (i, name) in names.iter().enumerate() {
                assert_eq!(table.intern(name) as usize, i, "{name} in round {round}");
                assert_eq!(table.name(number(i)), name);
            }
            if round == 1 {
                table.truncate(2);
            }
        }
    }

    #[test]
    fn shadowed_declarations_come_back_and_count_once() {
        let mut scope = Scope::default();
        let limits = XmlLimits { namespaces: 2, ..XmlLimits::default() };
        scope.declare("a", "urn:1", None, 1, &limits).unwrap();
        let mark = scope.mark();
        scope.declare("a", "urn:2", None, 2, &limits).unwrap();
        scope.declare("", "urn:3", None, 2, &limits).unwrap();
        let full = scope.declare("b", "urn:3", None, 2, &limits);
        assert_eq!(full, Err(StrictErrorKind::TooManyNamespaces { limit: 2 }));
        scope.rewind(mark);
        let prefix = scope.prefix("a");
        assert_eq!(scope.uri_name(scope.binding(prefix).uri), "urn:1");
        assert_eq!(scope.binding(Prefix::DEFAULT).uri, Uri::NONE);
        assert_eq!(scope.in_scope, 1);
        scope.clear();
        let prefix = scope.prefix("a");
        assert_eq!((scope.in_scope, scope.binding(prefix).uri), (0, Uri::NONE));
    }

    #[test]
    fn only_uris_with_a_scheme_are_absolute() {
        for uri in ["urn:x", "http://x", "a+b-c.1:", "x:"] {
            assert!(has_scheme(uri.as_bytes()), "{uri}");
        }
        for uri in ["", "x", "//x", "/a:b", "1a:b", ":a", " urn:x", "é:x", "a b:c"] {
            assert!(!has_scheme(uri.as_bytes()), "{uri}");
        }
    }
}
