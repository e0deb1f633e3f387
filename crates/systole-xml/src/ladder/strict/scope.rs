//! Prefixes and namespaces in scope, in the input and in the output.

use crate::ladder::chars::{excerpt, has_scheme};

use super::error::StrictErrorKind;
use crate::ladder::names::Names;
use crate::ladder::tape::{Uri, Uris};
use crate::vocab::{XmlLimits, ns};

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
    prefixes: Names,
    uris: Uris,
    states: Vec<State>,
    /// The changes that the open elements made.
    changes: Vec<Change>,
    in_scope: usize,
    /// Prefixes that were bound since the last start tag was written.
    fresh: Vec<Prefix>,
    /// Prefixes with a declaration that its element doesn't render.
    left_out: Vec<Prefix>,
}

/// The state of a prefix before a change.
#[derive(Debug, Clone, Copy)]
enum Change {
    Declared(Prefix, Binding),
    Rendered(Prefix, Uri),
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

/// A point to rewind to: a number of changes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Mark(usize);

const UNBOUND: State = State {
    bound: Binding { uri: Uri::NONE, verbatim: None, depth: 0, counts: false },
    rendered: Uri::NONE,
    listed: false,
    left_out: false,
};

/// The empty prefix in a prefix list (Exclusive XML Canonicalization 1.0, section 4).
const DEFAULT: &str = "#default";

/// Number of prefixes in the table of every document: the empty one and `xml`.
const KNOWN: usize = 2;

impl Default for Scope {
    fn default() -> Self {
        let mut prefixes = Names::default();
        prefixes.intern("");
        prefixes.intern("xml");
        // `xml` is never rendered, because every document has it.
        let state = State { bound: Binding { uri: Uri::XML, ..UNBOUND.bound }, rendered: Uri::XML, ..UNBOUND };
        Self {
            prefixes,
            uris: Uris::default(),
            states: vec![UNBOUND, state],
            changes: Vec::new(),
            in_scope: 0,
            fresh: Vec::new(),
            left_out: Vec::new(),
        }
    }
}

impl Scope {
    /// Discards the state of a document.
    pub(super) fn clear(&mut self) {
        self.rewind(Mark(0));
        self.prefixes.truncate(KNOWN);
        self.uris.clear();
        self.states.truncate(KNOWN);
        self.states[0] = UNBOUND;
        self.in_scope = 0;
        self.fresh.clear();
        self.left_out.clear();
    }

    /// Returns whether its capacity is over `kept`.
    pub(super) fn is_large(&self, kept: usize) -> bool {
        let Self { prefixes, uris, states, changes, fresh, left_out, in_scope: _ } = self;
        prefixes.is_large(kept)
            || uris.is_large(kept)
            || states.capacity() > kept
            || changes.capacity() > kept
            || fresh.capacity() > kept
            || left_out.capacity() > kept
    }

    /// Binds a prefix outside of the bytes that the pass reads.
    pub(super) fn inherit(&mut self, prefix: &str, uri: &str) {
        let prefix = self.prefix(prefix);
        let uri = self.uris.intern(uri);
        self.rebind(prefix, Binding { uri, verbatim: None, depth: 0, counts: true });
        self.fresh.push(prefix);
    }

    /// Records that an ancestor outside of the bytes has rendered a prefix already.
    pub(super) fn inherit_rendered(&mut self, prefix: &str, uri: &str) {
        let prefix = self.prefix(prefix);
        self.state(prefix).rendered = self.uris.intern(uri);
    }

    #[inline]
    pub(super) fn mark(&self) -> Mark {
        Mark(self.changes.len())
    }

    /// Undoes the declarations and renderings since `mark`.
    #[inline]
    pub(super) fn rewind(&mut self, mark: Mark) {
        while self.changes.len() > mark.0 {
            self.undo();
        }
    }

    /// Undoes the last change.
    #[inline(never)]
    fn undo(&mut self) {
        match self.changes.pop() {
            Some(Change::Declared(prefix, before)) => self.rebind(prefix, before),
            Some(Change::Rendered(prefix, before)) => self.state(prefix).rendered = before,
            None => {}
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
        self.uris.name(uri)
    }

    /// The table of the namespaces of the document.
    pub(super) fn uris_mut(&mut self) -> &mut Uris {
        &mut self.uris
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
        self.changes.push(Change::Rendered(prefix, state.rendered));
        state.rendered = state.bound.uri;
        true
    }

    /// Puts a prefix on the InclusiveNamespaces PrefixList, or takes it off; `#default` is the empty one.
    pub(super) fn list(&mut self, prefix: &str, listed: bool) {
        let prefix = self.prefix(if prefix == DEFAULT { "" } else { prefix });
        self.state(prefix).listed = listed;
    }

    /// Returns whether a start tag without prefix and attributes has no declaration to render.
    #[inline]
    pub(super) fn is_settled(&self) -> bool {
        let default = &self.states[0];
        self.fresh.is_empty() && default.rendered == default.bound.uri
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

    /// Returns whether a declaration of any prefix was left out.
    pub(super) fn leaves_out(&self) -> bool {
        !self.left_out.is_empty()
    }

    /// Returns whether a declaration of this prefix was left out; it counts as kept from now on.
    pub(super) fn keep(&mut self, prefix: &str) -> bool {
        let Some(number) = self.prefixes.find(prefix) else { return false };
        std::mem::take(&mut self.states[number as usize].left_out)
    }

    /// Returns whether a prefix whose declaration was left out may stand before a colon; searched only for a few of them.
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
        let uri = self.uris.intern(uri);
        let prefix = self.prefix(prefix);
        let before = self.binding(prefix);
        if before.depth == depth {
            return Err(StrictErrorKind::DuplicateAttribute { name: declaration_name(self.prefix_name(prefix)) });
        }
        self.changes.push(Change::Declared(prefix, before));
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

#[cfg(test)]
mod tests {
    use super::*;

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
