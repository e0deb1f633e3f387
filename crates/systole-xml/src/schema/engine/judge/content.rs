//! Content: child elements against content models, text, and the values of elements.

use super::violation::{Clause, Expected, Part};
use super::{Open, Started, Walk};
use crate::ladder::scan::unescape;
use crate::schema::engine::grammar::{
    AllGroup, Content, Edges, Element, ElementId, Model, ProcessContents, StateId, TypeId, ValueConstraint,
    WildcardEdge,
};
use crate::schema::simple::{Mismatch, Prefixes, SimpleType};

/// The result of a content model for a child element.
enum Step {
    Element(ElementId),
    Wildcard(ProcessContents),
    /// The element is declared in the model, but not allowed here.
    Misplaced(ElementId),
    Unknown,
}

const EMPTY: &str = "must be empty";
const NIL: &str = "must be empty, because xsi:nil is true";
const ONLY_TEXT: &str =
    "elements are not allowed in it, only text: write &lt; for each <, or <![CDATA[ … ]]> around the text";

impl<'a> Walk<'_, 'a> {
    /// Validates a child of the innermost open element.
    pub(super) fn child(&mut self, started: &Started<'a>) {
        let Some(open) = self.judge.open.last_mut() else { return };
        let grammar = self.grammar;
        let content = &grammar.types[open.ty.index()].content;
        let step = match content {
            _ if open.nil => Step::Unknown,
            Content::Sequence { model, .. } => sequence(grammar, model, open, started),
            Content::All { members, .. } => {
                let seen = &mut self.judge.seen[open.seen..];
                all(grammar, members, seen, open.lost, started)
            }
            Content::Empty | Content::Simple(_) => Step::Unknown,
        };
        match step {
            Step::Element(element) => self.element(started, element),
            Step::Wildcard(ProcessContents::Skip) => self.skip(),
            Step::Wildcard(process) => match grammar.global_elements.get(started.namespace, started.local) {
                Some(element) => self.element(started, *element),
                None => self.undeclared(started, process),
            },
            Step::Misplaced(element) => {
                self.unexpected(started, content);
                self.element(started, element);
            }
            Step::Unknown => {
                self.unexpected(started, content);
                self.skip();
            }
        }
    }

    fn unexpected(&mut self, started: &Started<'a>, content: &Content) {
        let Some(open) = self.judge.open.last_mut() else { return };
        if std::mem::replace(&mut open.lost, true) {
            return;
        }
        if open.nil || matches!(content, Content::Empty) {
            let clause = if open.nil { NIL } else { EMPTY };
            if !std::mem::replace(&mut open.told, true) {
                self.refuse_open(Part::Content, clause);
            }
            return;
        }
        let expected = self.expected(started.local);
        let end = self.judge.open.last().and_then(|open| self.cursor.tag(open.number));
        let xml = format!("not expected here{}", expected.clause(end.map_or("", |tag| tag.local())));
        let json = match expected.in_json() {
            Some(others) => format!("expected {others} before it, or instead of it"),
            None => "not allowed beside the other properties".to_owned(),
        };
        self.refuse_clause(started, Part::Tag, Clause(xml, json));
    }

    /// The elements that the innermost open element would accept next.
    fn expected(&self, found: &str) -> Expected {
        let mut expected = Expected::default();
        let Some(open) = self.judge.open.last() else { return expected };
        let grammar = self.grammar;
        match &grammar.types[open.ty.index()].content {
            Content::Sequence { model, .. } => {
                let state = &model.states[open.state.index()];
                let counter = state.counter.as_deref();
                if let Some(counter) = counter.filter(|counter| open.count < counter.max) {
                    expected.edges(grammar, self.own, model.edges(&counter.edges), found);
                    expected.wildcards(grammar, &model.wildcards, model.wildcard_edges(&counter.edges));
                }
                if counter.is_none_or(|counter| open.count >= counter.min) {
                    expected.edges(grammar, self.own, model.edges(&state.edges), found);
                    expected.wildcards(grammar, &model.wildcards, model.wildcard_edges(&state.edges));
                }
            }
            Content::All { members, .. } => {
                let seen = &self.judge.seen[open.seen..];
                let free: Vec<_> = members.edges.iter().copied().filter(|edge| !is_seen(seen, edge.to)).collect();
                expected.edges(grammar, self.own, &free, found);
            }
            Content::Empty | Content::Simple(_) => {}
        }
        expected
    }

    /// Checks text in the innermost open element.
    pub(super) fn characters(&mut self, written: &str) {
        let Some(open) = self.judge.open.last_mut() else { return };
        let clause = match &self.grammar.types[open.ty.index()].content {
            _ if open.nil => NIL,
            Content::Sequence { mixed: true, .. } | Content::All { mixed: true, .. } | Content::Simple(_) => return,
            Content::Sequence { .. } | Content::All { .. } if is_blank(written) => return,
            Content::Sequence { .. } | Content::All { .. } => "text is not allowed between its elements",
            Content::Empty => EMPTY,
        };
        if !std::mem::replace(&mut open.told, true) {
            self.refuse_open(Part::Content, clause);
        }
    }

    /// Ends the innermost open element, and checks that its content is complete.
    pub(super) fn end(&mut self) {
        let Some(open) = self.judge.open.last() else { return };
        let complete = open.nil
            || open.lost
            || match &self.grammar.types[open.ty.index()].content {
                Content::Sequence { model, .. } => {
                    let state = &model.states[open.state.index()];
                    state.accepts && state.counter.as_ref().is_none_or(|counter| open.count >= counter.min)
                }
                Content::All { members, .. } => is_complete(members, &self.judge.seen[open.seen..]),
                Content::Empty | Content::Simple(_) => true,
            };
        if !complete {
            let (missing, xml) = match self.missing_members() {
                Some(missing) => {
                    let xml = missing.clause("").replace("; expected one of ", "; expected ");
                    (missing, xml)
                }
                None => {
                    let next = self.expected("");
                    let xml = next.clause(self.cursor.tag(open.number).map_or("", |tag| tag.local()));
                    (next, xml)
                }
            };
            let (xml, json) = (format!("ends too early{xml}"), missing.in_json().unwrap_or_default());
            self.refuse_open_clause(Part::Tag, Clause(xml, format!("something is missing: expected {json}")));
        }
        self.keys_leave();
        if let Some(open) = self.judge.open.pop() {
            self.judge.seen.truncate(open.seen);
        }
    }

    /// The missing members of an `xs:all`; `None` for other content.
    fn missing_members(&self) -> Option<Expected> {
        let open = self.judge.open.last()?;
        let Content::All { members, .. } = &self.grammar.types[open.ty.index()].content else { return None };
        let seen = &self.judge.seen[open.seen..];
        let lacks = |to: StateId| members.required[to.index()] && !is_seen(seen, to);
        let missing: Vec<_> = members.edges.iter().copied().filter(|edge| lacks(edge.to)).collect();
        let mut expected = Expected::default();
        expected.edges(self.grammar, self.own, &missing, "");
        Some(expected)
    }

    /// Validates an element with a simple type or simple content, up to its end tag.
    pub(super) fn simple_content(
        &mut self,
        started: &Started<'a>,
        simple: &SimpleType,
        ty: TypeId,
        element: Option<&Element>,
        nil: bool,
    ) {
        if !nil && let Some(written) = self.cursor.plain_value() {
            self.value(started, simple, ty, element, written);
            return self.keys_leave();
        }
        self.resolved_content(started, simple, ty, element, nil);
    }

    /// As [`Self::simple_content`], for content that is not a text without references.
    #[inline(never)]
    fn resolved_content(
        &mut self,
        started: &Started<'a>,
        simple: &SimpleType,
        ty: TypeId,
        element: Option<&Element>,
        nil: bool,
    ) {
        let mut buffer = std::mem::take(&mut self.judge.text);
        match self.cursor.content_in(&mut buffer) {
            None => {
                self.refuse(started, Part::Tag, ONLY_TEXT);
                self.cursor.leave();
            }
            Some(text) if nil => {
                if !text.unwrap_or(&buffer).is_empty() {
                    self.refuse(started, Part::Content, NIL);
                }
            }
            Some(text) => self.value(started, simple, ty, element, text.unwrap_or(&buffer)),
        }
        self.keys_leave();
        self.judge.text = buffer;
    }

    /// Validates mixed content with a fixed value: that text or none, and no elements (section 3.3.4, clause 5.2.2).
    pub(super) fn fixed_text(&mut self, started: &Started<'a>, fixed: &str) {
        let mut buffer = std::mem::take(&mut self.judge.text);
        match self.cursor.content_in(&mut buffer).map(|text| text.unwrap_or(&buffer)) {
            None => {
                let clause = format_args!("elements are not allowed in it, only the text '{fixed}'");
                self.refuse(started, Part::Tag, clause);
                self.cursor.leave();
            }
            Some(value) if !value.is_empty() && value != fixed => {
                self.refuse(started, Part::Content, format_args!("found '{value}', expected '{fixed}'"));
            }
            Some(_) => {}
        }
        self.keys_leave();
        self.judge.text = buffer;
    }

    /// Validates the value of an element (section 3.3.4, clause 5).
    fn value(
        &mut self,
        started: &Started<'a>,
        simple: &SimpleType,
        ty: TypeId,
        element: Option<&Element>,
        value: &str,
    ) {
        let prefixes = self.prefixes(started);
        let constraint = element.and_then(|element| element.value.as_ref());
        // An empty element has the default or fixed value, which is valid for the declared type.
        if let (true, Some(constraint)) = (value.is_empty(), constraint) {
            let declared = element.is_some_and(|element| element.ty == ty);
            if !declared && let Err(mismatch) = simple.check(&constraint.text, &prefixes) {
                self.refuse_value(started, &mismatch);
            }
            self.keys_value(started, simple, &constraint.text);
            return self.identify(started, simple, &constraint.text, None);
        }
        if let Err(mismatch) = simple.check(value, &prefixes) {
            return self.refuse_value(started, &mismatch);
        }
        if let Some(fixed) = constraint.filter(|constraint| constraint.fixed)
            && !self.has_fixed(started, simple, value, fixed)
        {
            return;
        }
        self.keys_value(started, simple, value);
        let parent = self.judge.open.last().map(|open| open.number);
        self.identify(started, simple, value, parent);
    }

    /// Reports whether a valid value equals the fixed value; otherwise refuses it.
    #[inline(never)]
    fn has_fixed(&mut self, started: &Started<'a>, simple: &SimpleType, value: &str, fixed: &ValueConstraint) -> bool {
        let found = is_fixed(simple, value, fixed, &self.prefixes(started));
        match &found {
            Ok(true) => {}
            Ok(false) => {
                self.refuse(started, Part::Content, format_args!("found '{value}', expected '{}'", fixed.text));
            }
            Err(mismatch) => self.refuse_value(started, mismatch),
        }
        found == Ok(true)
    }

    /// Refuses the value of an element.
    #[cold]
    pub(super) fn refuse_value(&mut self, started: &Started<'a>, mismatch: &Mismatch) {
        self.refuse(started, Part::Content, mismatch);
        self.end_without_steps(mismatch);
    }

    /// Ends the walk if no steps are left, because no later value can be compared.
    pub(super) fn end_without_steps(&mut self, mismatch: &Mismatch) {
        if mismatch.is_of_steps() {
            self.most = self.violations.len();
        }
    }
}

/// Reports whether a valid value equals the fixed value.
pub(super) fn is_fixed(
    simple: &SimpleType,
    value: &str,
    fixed: &ValueConstraint,
    prefixes: &dyn Prefixes,
) -> Result<bool, Mismatch> {
    let Some(key) = &fixed.key else { return simple.equal(value, &fixed.text, prefixes) };
    let mut own = String::new();
    simple.key(&mut own, value, prefixes)?;
    Ok(own == **key)
}

fn sequence(
    grammar: &super::Grammar,
    model: &Model,
    open: &mut Open,
    Started { namespace, local, .. }: &Started,
) -> Step {
    if open.lost {
        let known = model.known.binary_search_by(|(name, _)| grammar.name(*name).order(*namespace, local));
        return known.map_or(Step::Unknown, |at| Step::Misplaced(model.known[at].1));
    }
    let state = &model.states[open.state.index()];
    let allowed = |edges: &Edges| {
        let allows = |edge: &&WildcardEdge| model.wildcards[edge.wildcard as usize].namespaces.contains(*namespace);
        model
            .wildcard_edges(edges)
            .iter()
            .find(allows)
            .map(|edge| (edge.to, model.wildcards[edge.wildcard as usize].process))
    };
    let mut may_leave = true;
    if let Some(counter) = &state.counter {
        if open.count < counter.max {
            if let Some(edge) = grammar.edge(model.edges(&counter.edges), *namespace, local) {
                open.count += 1;
                return Step::Element(edge.element);
            }
            if let Some((_, process)) = allowed(&counter.edges) {
                open.count += 1;
                return Step::Wildcard(process);
            }
        }
        may_leave = open.count >= counter.min;
    }
    if may_leave {
        if let Some(edge) = grammar.edge(model.edges(&state.edges), *namespace, local) {
            (open.state, open.count) = (edge.to, 1);
            return Step::Element(edge.element);
        }
        if let Some((to, process)) = allowed(&state.edges) {
            (open.state, open.count) = (to, 1);
            return Step::Wildcard(process);
        }
    }
    let known = model.known.binary_search_by(|(name, _)| grammar.name(*name).order(*namespace, local));
    known.map_or(Step::Unknown, |at| Step::Misplaced(model.known[at].1))
}

fn all(
    grammar: &super::Grammar,
    members: &AllGroup,
    seen: &mut [u64],
    lost: bool,
    Started { namespace, local, .. }: &Started,
) -> Step {
    let Some(edge) = grammar.edge(&members.edges, *namespace, local) else { return Step::Unknown };
    if lost || is_seen(seen, edge.to) {
        return Step::Misplaced(edge.element);
    }
    seen[edge.to.index() / 64] |= 1 << (edge.to.index() % 64);
    Step::Element(edge.element)
}

fn is_seen(seen: &[u64], member: StateId) -> bool {
    seen[member.index() / 64] & (1 << (member.index() % 64)) != 0
}

fn is_complete(members: &AllGroup, seen: &[u64]) -> bool {
    let none = seen.iter().all(|word| *word == 0);
    let all =
        || (0..members.required.len()).all(|member| !members.required[member] || is_seen(seen, StateId::new(member)));
    members.optional && none || all()
}

/// Reports whether a text is only white space, which may be written as references.
pub(in crate::schema) fn is_blank(written: &str) -> bool {
    let blank = |text: &str| text.bytes().all(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r'));
    blank(written) || written.contains('&') && blank(&unescape(written))
}
