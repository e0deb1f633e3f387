//! Validation of payloads: one walk over their canonical bytes.
//!
//! Invariants: validation takes time linear in the payload, never recurses, and keeps its memory from one
//! payload to the next. After an error in the content of an element, its content model is no longer followed, and its
//! later children are validated as usual.

mod attributes;
mod budget;
mod content;
mod identity;
mod keys;
mod matching;
mod open;
mod path;
mod scope;
mod violation;

use super::grammar::{ElementId, Grammar, ProcessContents, StateId, TypeId};
use super::namespace::Namespace;
use crate::ladder::Canonical;
use crate::ladder::tape::{Cursor, Tag, Uri};
use crate::vocab::ns;
pub(in crate::schema) use content::is_blank;
use identity::Identities;
use matching::Keys;
pub(in crate::schema) use path::paths;
use scope::{InScope, Scope};
pub(super) use violation::shown_name;
use violation::{Clause, Subject};
pub(in crate::schema) use violation::{Part, Violation};

/// Validates payloads. A judge is reused for its memory.
#[derive(Debug, Default)]
pub(in crate::schema) struct Judge {
    open: Vec<Open>,
    scope: Scope,
    /// A text or value with its references resolved.
    text: String,
    /// The members of each open `xs:all` that have occurred, one bit each, in words of 64.
    seen: Vec<u64>,
    identities: Identities,
    keys: Keys,
    /// The greatest number of steps for the values of a payload, and for its keys; `None` for those of a message.
    bound: Option<usize>,
}

/// An element that may have child elements, between its tags.
#[derive(Debug)]
struct Open {
    ty: TypeId,
    state: StateId,
    /// The consecutive occurrences of the particle that the state counts.
    count: u32,
    /// The index in [`Judge::seen`] where the members of its `xs:all` begin.
    seen: usize,
    /// The number of the element in document order, from 0.
    number: usize,
    namespace: Namespace,
    /// Set by `xsi:nil`: the element must be empty.
    nil: bool,
    /// Set if the content broke a rule, so that the order of its children is no longer checked.
    lost: bool,
    /// Set if forbidden content of the element was reported.
    told: bool,
}

impl Judge {
    /// The rules that a payload breaks, at most `most`. The caller looks up the declaration of the root; a root without
    /// a declaration is validated by its `xsi:type`.
    pub(in crate::schema) fn judge(
        &mut self,
        grammar: &Grammar,
        root: Option<ElementId>,
        payload: &Canonical,
        most: usize,
    ) -> Vec<Violation> {
        self.walk(grammar, root, ProcessContents::Strict, true, payload, most)
    }

    /// The first rule that an element breaks by itself. References to IDs are not checked, because the IDs may be
    /// elsewhere in the payload. A root without a declaration is validated as `process` says.
    pub(super) fn judge_part(
        &mut self,
        grammar: &Grammar,
        root: Option<ElementId>,
        process: ProcessContents,
        part: &Canonical,
    ) -> Option<Violation> {
        self.walk(grammar, root, process, false, part, 1).pop()
    }

    /// Reports whether a payload is valid, as far as `room` steps tell. Takes from `room` a step for each byte, and those
    /// for the values and keys.
    pub(in crate::schema) fn allows(
        &mut self,
        grammar: &Grammar,
        root: ElementId,
        payload: &Canonical,
        room: &mut usize,
    ) -> bool {
        let Some(left) = room.checked_sub(payload.bytes().len()) else {
            *room = 0;
            return false;
        };
        self.bound = Some(left);
        let is_valid = self.judge(grammar, Some(root), payload, 1).is_empty();
        self.bound = None;
        *room = left.saturating_sub(self.scope.spent().saturating_add(self.keys.budget.spent()));
        is_valid
    }

    fn walk(
        &mut self,
        grammar: &Grammar,
        root: Option<ElementId>,
        process: ProcessContents,
        is_whole: bool,
        payload: &Canonical,
        most: usize,
    ) -> Vec<Violation> {
        self.clear();
        let own = root.map_or(Namespace::NONE, |root| grammar.name(grammar.elements[root.index()].name).namespace);
        let mut violations = payload.read(|cursor| {
            self.scope.begin(&cursor, self.bound.unwrap_or(usize::MAX));
            let (text, xsi) = (cursor.document(), cursor.find_uri(ns::XSI));
            let mut walk = Walk { grammar, judge: self, text, cursor, own, xsi, violations: Vec::new(), most };
            walk.run(root, process, is_whole);
            walk.violations
        });
        violations.sort_by_key(|violation| violation.element);
        violations
    }

    fn clear(&mut self) {
        // The memory of a large message must not stay allocated.
        const KEPT: usize = 1 << 16;
        if self.open.capacity() > KEPT || self.text.capacity() > KEPT || self.seen.capacity() > KEPT {
            *self = Self { bound: self.bound, ..Self::default() };
        }
        self.scope.shrink(KEPT);
        self.identities.shrink(KEPT);
        self.open.clear();
        self.text.clear();
        self.seen.clear();
        self.identities.clear();
        self.keys.clear();
    }
}

/// A walk over one payload.
struct Walk<'w, 'a> {
    grammar: &'w Grammar,
    judge: &'w mut Judge,
    text: &'a str,
    cursor: Cursor<'a>,
    /// The namespace of the root element.
    own: Namespace,
    /// The namespace of `xsi:type`, if a name may be in it.
    xsi: Option<Uri>,
    violations: Vec<Violation>,
    most: usize,
}

/// An element whose start tag was just read.
struct Started<'a> {
    tag: Tag<'a>,
    local: &'a str,
    namespace: Namespace,
    number: usize,
}

impl<'a> Walk<'_, 'a> {
    fn run(&mut self, root: Option<ElementId>, process: ProcessContents, is_whole: bool) {
        let Some(started) = self.enter() else {
            return self.report(0, Part::Tag, &Subject::Element(""), "it is not canonical");
        };
        match root {
            Some(root) => self.element(&started, root),
            None => self.undeclared(&started, process),
        }
        while !self.judge.open.is_empty() && self.violations.len() < self.most {
            if let Some(text) = self.cursor.text() {
                self.characters(text.written);
            } else if let Some(started) = self.enter() {
                self.child(&started);
            } else {
                self.end();
                self.cursor.leave();
            }
        }
        // A skipped element may hold the referenced IDs, so they are not checked after a violation.
        if !is_whole || !self.violations.is_empty() {
            return;
        }
        for (element, clause) in self.judge.identities.broken(self.most) {
            let name = self.cursor.tag(element).map_or("", |tag| tag.local());
            self.violations.push(Violation::new(element, Part::Tag, &Subject::Element(name), Clause(&clause, &clause)));
        }
    }

    #[inline(always)]
    fn enter(&mut self) -> Option<Started<'a>> {
        let number = self.cursor.elements();
        let tag = self.cursor.enter()?;
        Some(Started { tag, local: tag.local(), namespace: self.namespace(tag.uri()), number })
    }

    /// The namespace of the grammar that a name is in.
    #[inline]
    fn namespace(&self, uri: Uri) -> Namespace {
        self.judge.scope.namespace(uri, &self.cursor, &self.grammar.namespaces)
    }

    /// The declarations in scope at an element, for its values.
    fn prefixes(&self, started: &Started) -> InScope<'_> {
        self.judge.scope.prefixes(&self.cursor, started.number)
    }

    /// Skips the content of the element whose start tag was just read, and its end tag.
    fn skip(&mut self) {
        self.cursor.leave();
    }

    fn report(&mut self, element: usize, part: Part, subject: &Subject, clause: impl std::fmt::Display) {
        self.report_clause(element, part, subject, Clause(&clause, &clause));
    }

    fn report_clause(
        &mut self,
        element: usize,
        part: Part,
        subject: &Subject,
        clause: Clause<impl std::fmt::Display, impl std::fmt::Display>,
    ) {
        if self.violations.len() < self.most {
            self.violations.push(Violation::new(element, part, subject, clause));
        }
    }

    /// Reports a violation of the element whose start tag was just read.
    fn refuse(&mut self, started: &Started, part: Part, clause: impl std::fmt::Display) {
        self.refuse_clause(started, part, Clause(&clause, &clause));
    }

    fn refuse_clause(
        &mut self,
        started: &Started,
        part: Part,
        clause: Clause<impl std::fmt::Display, impl std::fmt::Display>,
    ) {
        let name = self.shown(&started.tag, started.namespace);
        self.report_clause(started.number, part, &Subject::Element(&name), clause);
    }

    /// Reports a violation of the innermost open element.
    fn refuse_open(&mut self, part: Part, clause: impl std::fmt::Display) {
        self.refuse_open_clause(part, Clause(&clause, &clause));
    }

    fn refuse_open_clause(&mut self, part: Part, clause: Clause<impl std::fmt::Display, impl std::fmt::Display>) {
        let Some(open) = self.judge.open.last() else { return };
        let (number, namespace) = (open.number, open.namespace);
        let Some(tag) = self.cursor.tag(number) else { return };
        let name = self.shown(&tag, namespace);
        self.report_clause(number, part, &Subject::Element(&name), clause);
    }

    /// The name of an element, for messages.
    fn shown(&self, tag: &Tag, namespace: Namespace) -> String {
        shown_name(self.own, namespace, self.cursor.uri_name(tag.uri()), tag.local())
    }
}
