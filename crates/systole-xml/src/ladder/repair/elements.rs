//! Tags: the stack of open elements, and the writer of start and end tags.

use std::borrow::Cow;
use std::collections::HashMap;

use super::escapes::Escapes;
use super::lexis::{excerpt, skip_space};
use super::namespaces::Problem;
use super::pairs::key;
use super::reference::{self, Reference};
use super::scan::Scanner;
use super::tag::{Attribute, Form, StartTag};
use super::{RepairError, RepairKind};
use crate::ladder::scan::{declared_prefix, split_prefix};
use crate::vocab::ns;

/// The open elements.
#[derive(Debug, Default)]
pub(super) struct Tree<'t> {
    open: Vec<Open<'t>>,
    numbers: HashMap<&'t str, usize>,
    /// The name that was looked up last, and its number: names often repeat.
    recent: Option<(&'t str, Option<usize>)>,
    /// Counts, indexed by the number of a name.
    counts: Vec<Counts>,
    /// The elements that ended without their end tags: their keys, and where the last one ended.
    torn: HashMap<Cow<'t, str>, usize>,
    /// Counts, by name, of start tags that were taken for text, and of `<` with the name that open no tag.
    texts: HashMap<&'t str, Texts>,
}

#[derive(Debug, Default, Clone, Copy)]
struct Texts {
    /// Start tags whose end tags are text, too.
    tags: usize,
    /// Places with a `<`, the name, and something behind it that no tag can have.
    failed: usize,
}

/// An element whose end tag is still to come.
#[derive(Debug)]
pub(super) struct Open<'t> {
    pub(super) name: &'t str,
    number: usize,
    declarations: usize,
    /// Offset of its start tag.
    pub(super) start: usize,
    /// The number of the string that its text is.
    pub(super) string: usize,
    pub(super) has_text: bool,
    pub(super) has_child: bool,
    /// True if `xsi:type` may give it another type than its schema does.
    pub(super) is_typed: bool,
}

#[derive(Debug, Default, Clone, Copy)]
struct Counts {
    /// Open elements of this name.
    open: usize,
    /// Elements of this name that an outer end tag closed, and whose own end tag may still come.
    torn: usize,
}

impl<'t> Tree<'t> {
    pub(super) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    pub(super) fn depth(&self) -> usize {
        self.open.len()
    }

    pub(super) fn last(&self) -> Option<&Open<'t>> {
        self.open.last()
    }

    /// The innermost element, and the one around it.
    pub(super) fn innermost(&self) -> Option<(&Open<'t>, Option<&Open<'t>>)> {
        Some((self.nth(0)?, self.nth(1)))
    }

    /// The open element `level` levels above the innermost one.
    pub(super) fn nth(&self, level: usize) -> Option<&Open<'t>> {
        self.open.get(self.open.len().checked_sub(level + 1)?)
    }

    pub(super) fn note_text(&mut self) {
        if let Some(open) = self.open.last_mut() {
            open.has_text = true;
        }
    }

    fn note_child(&mut self) {
        if let Some(open) = self.open.last_mut() {
            open.has_child = true;
        }
    }

    /// The number of start tags of this name that became text and whose end tags have not come yet.
    pub(super) fn textual(&mut self, name: &'t str) -> &mut usize {
        &mut self.texts.entry(name).or_default().tags
    }

    /// Records that a `<` with this name behind it was no tag.
    pub(super) fn failed(&mut self, name: &'t str) {
        self.texts.entry(name).or_default().failed += 1;
    }

    /// The place at which the last element of this name without an end tag ended.
    pub(super) fn torn_at(&self, name: &str) -> Option<usize> {
        if self.torn.is_empty() { None } else { self.torn.get(&key(name)).copied() }
    }

    /// The innermost of the nearest open elements whose name differs in prefix or case at most.
    fn similar(&self, name: &str) -> Option<&'t str> {
        const NEAR: usize = 64;
        let sought = key(name);
        self.open.iter().rev().take(NEAR).find(|open| key(open.name) == sought).map(|open| open.name)
    }

    fn push(&mut self, tag: &StartTag<'t>, string: usize, declarations: usize, is_typed: bool) {
        let (name, start) = (tag.name, tag.start);
        let number = self.number(name).unwrap_or_else(|| {
            let new = self.counts.len();
            self.counts.push(Counts::default());
            self.numbers.insert(name, new);
            self.recent = Some((name, Some(new)));
            new
        });
        self.counts[number].open += 1;
        self.open.push(Open { name, number, declarations, start, string, has_text: false, has_child: false, is_typed });
    }

    fn pop(&mut self) -> Option<Open<'t>> {
        let open = self.open.pop()?;
        self.counts[open.number].open -= 1;
        Some(open)
    }

    fn number(&mut self, name: &'t str) -> Option<usize> {
        match self.recent {
            Some((recent, number)) if recent == name => number,
            _ => {
                let number = self.numbers.get(name).copied();
                self.recent = Some((name, number));
                number
            }
        }
    }

    fn counts(&mut self, name: &'t str) -> Option<&mut Counts> {
        self.number(name).map(|number| &mut self.counts[number])
    }

    fn is_open(&mut self, name: &'t str) -> bool {
        self.counts(name).is_some_and(|counts| counts.open > 0)
    }
}

impl<'t> Scanner<'t> {
    /// Opens the element of a start tag, whose attributes the reader holds.
    pub(super) fn start_tag(&mut self, tag: StartTag<'t>) -> Result<(), RepairError> {
        self.check_tag(&tag)?;
        self.note_twin(&tag);
        let mut attributes = std::mem::take(&mut self.tags.attributes);
        let name_start = skip_space(self.text, tag.start + 1);
        let entered = self.namespaces.enter(self.text, tag.name, name_start, &mut attributes, self.limits);
        let declarations = entered.or_else(|(problem, at)| self.refuse_namespace(problem, at))?;
        self.write_start_tag(&tag, &attributes)?;
        let is_typed = attributes.iter().any(|attribute| attribute.name.ends_with(":type"));
        self.tags.attributes = attributes;
        self.pos = tag.end;
        self.tail = tag.end;
        self.guessed = tag.guessed;
        self.tree.note_child();
        self.outside.root.has_content |= !self.tree.is_empty();
        if self.tree.depth() == 1 && !self.vocabulary.is_empty() {
            self.outside.root.children.insert(split_prefix(tag.name).1);
        }
        if tag.empty {
            // Its end tag stands behind the end of its parent.
            if self.pairs.reopened(tag.start).is_some() {
                self.tree.torn.insert(key(tag.name), tag.end);
            }
            self.namespaces.leave(declarations);
            self.left_element();
            return Ok(());
        }
        self.tree.push(&tag, self.strings.len(), declarations, is_typed);
        self.strings.push(Escapes::default());
        if (is_void(&tag) || self.holds_nothing()) && !self.pairs.is_closed(tag.start) {
            self.close_missing(tag.end)?;
            self.left_element();
        }
        Ok(())
    }

    /// Returns whether the element that was opened just now can only be empty, and only white space follows: then this is
    /// no text of the element.
    fn holds_nothing(&self) -> bool {
        let next = skip_space(self.text, self.pos);
        (next == self.text.len() || self.text.as_bytes()[next] == b'<')
            && self.contract_here().is_some_and(|(place, _)| place.is_empty())
    }

    fn check_tag(&self, tag: &StartTag<'t>) -> Result<(), RepairError> {
        let limits = self.limits;
        if self.tree.depth() >= limits.depth {
            return self.refuse(tag.start, |at| RepairError::TooDeep { at, limit: limits.depth });
        }
        let (count, limit) = (tag.count, limits.attributes);
        if count > limit {
            return self.refuse(tag.start, |at| RepairError::TooManyAttributes { at, count, limit });
        }
        self.check_name(skip_space(self.text, tag.start + 1), tag.name)?;
        self.tags.attributes.iter().try_for_each(|attribute| self.check_name(attribute.start, attribute.name))
    }

    #[cold]
    fn refuse_namespace(&self, problem: Problem<'t>, at: usize) -> Result<usize, RepairError> {
        self.refuse(at, |at| match problem {
            Problem::Unbound { prefix } => RepairError::UnboundPrefix { at, prefix: excerpt(prefix) },
            Problem::Empty { prefix } => RepairError::EmptyNamespace { at, prefix: excerpt(prefix) },
            Problem::Reserved => RepairError::ReservedNamespace { at },
            Problem::Relative { name } => RepairError::RelativeNamespace { at, name: excerpt(&name) },
            Problem::TooLong { bytes } => RepairError::NameTooLong { at, bytes, limit: self.limits.name_bytes },
            Problem::TooMany => RepairError::TooManyNamespaces { at, limit: self.limits.namespaces },
            Problem::Twice { name } => RepairError::AttributeTwice { at, name: excerpt(name) },
        })
    }

    /// Writes a start tag: unchanged if nothing is wrong with it.
    fn write_start_tag(&mut self, tag: &StartTag<'t>, attributes: &[Attribute<'t>]) -> Result<(), RepairError> {
        let lacks_xsi = self.namespaces.lacks_xsi();
        if !tag.rewritten && !lacks_xsi && attributes.iter().all(|attribute| self.is_clean(attribute)) {
            self.out.push_str(&self.text[tag.start..tag.end]);
            return attributes.iter().try_for_each(|attribute| self.check_value(attribute, attribute.value_len()));
        }
        if tag.rewritten && !self.is_reopened(tag) {
            self.mark(tag.start, tag.end, RepairKind::StartTagSyntax);
        }
        self.out.push('<');
        self.out.push_str(tag.name);
        attributes.iter().try_for_each(|attribute| self.write_attribute(attribute))?;
        if lacks_xsi {
            self.mark(tag.start, tag.end, RepairKind::Namespace);
            self.out.push_str(" xmlns:xsi=\"");
            self.out.push_str(ns::XSI);
            self.out.push('"');
        }
        self.out.push_str(if tag.empty { "/>" } else { ">" });
        Ok(())
    }

    fn check_value(&self, attribute: &Attribute<'t>, bytes: usize) -> Result<(), RepairError> {
        let limit = self.limits.value_bytes;
        if bytes > limit && declared_prefix(attribute.name).is_none() {
            let name = excerpt(attribute.name);
            return self.refuse(attribute.start, |at| RepairError::ValueTooLong { at, name, bytes, limit });
        }
        Ok(())
    }

    fn is_clean(&self, attribute: &Attribute<'t>) -> bool {
        let value = &self.text[attribute.value_start..attribute.value_end];
        let is_reference = |at| matches!(reference::read(value, at, value.len()), Reference::Keep(_));
        let keeps = |(at, found)| found == "&" && is_reference(at);
        attribute.form == Form::Quoted
            && attribute.spaced
            && !attribute.duplicate
            && value.match_indices(['&', '<']).all(keeps)
    }

    fn write_attribute(&mut self, attribute: &Attribute<'t>) -> Result<(), RepairError> {
        if attribute.duplicate {
            self.mark(attribute.start, attribute.end, RepairKind::DuplicateAttribute);
            return Ok(());
        }
        if !attribute.spaced {
            self.mark(attribute.start, attribute.start, RepairKind::AttributeSpace);
        }
        match attribute.form {
            Form::Quoted => {}
            Form::Requote => self.mark(attribute.value_start, attribute.value_end, RepairKind::AttributeQuotes),
            Form::Valueless => self.mark(attribute.start, attribute.end, RepairKind::ValuelessAttribute),
        }
        self.out.push(' ');
        self.out.push_str(attribute.name);
        self.out.push_str("=\"");
        let before = self.out.len();
        self.write_value(attribute.value_start, attribute.value_end)?;
        self.check_value(attribute, self.out.len() - before)?;
        self.out.push('"');
        Ok(())
    }

    /// Returns whether a tag was an empty-element tag.
    fn is_reopened(&self, tag: &StartTag<'t>) -> bool {
        !tag.empty && self.text[..tag.end].ends_with("/>")
    }

    /// Closes the element that an end tag names, and the open ones inside of it. If there is none, the tag stands for
    /// the end tag of the innermost one, or is text, or is dropped.
    pub(super) fn end_tag(&mut self, name: &'t str, end: usize, well_formed: bool) -> Result<(), RepairError> {
        let at = self.pos;
        let is_innermost = self.tree.last().is_some_and(|open| open.name == name);
        if is_innermost || self.tree.is_open(name) {
            let kind = if well_formed { None } else { Some(RepairKind::EndTagSyntax) };
            return self.close(name, end, kind);
        }
        match self.meant(name, at, end) {
            Some(meant) => self.close(meant, end, Some(RepairKind::EndTagName)),
            None => self.no_end_tag(name, end, well_formed),
        }
    }

    /// The open element that an end tag with the name of no open element was meant for.
    fn meant(&mut self, name: &'t str, at: usize, end: usize) -> Option<&'t str> {
        if name.is_empty() {
            let (open, start) = self.tree.last().map(|open| (open.name, open.start))?;
            return (!self.pairs.is_closed(start)).then_some(open);
        }
        if let Some(similar) = self.tree.similar(name) {
            return Some(similar);
        }
        let last = self.tree.last()?.name;
        self.is_meant_for_last(name, at, end).then_some(last)
    }

    /// Takes an end tag of no open element for text if its start tag is text, or drops it.
    fn no_end_tag(&mut self, name: &'t str, end: usize, well_formed: bool) -> Result<(), RepairError> {
        let Texts { tags, failed } = self.tree.texts.get(name).copied().unwrap_or_default();
        let is_declared = self.vocabulary.knows(split_prefix(name).1);
        let is_foreign = !is_declared && self.contract_here().is_some_and(|(place, _)| place.text);
        let is_outside_of_text = tags > 0 && self.tree.is_empty() && self.outside.root.prose_behind;
        if is_outside_of_text || self.is_behind_lost_text(name) {
            return self.ambiguous(self.pos, name);
        }
        if tags > 0 && !self.tree.is_empty() {
            *self.tree.textual(name) -= 1;
            self.stray_less_than();
        } else if !well_formed {
            self.stray_less_than();
        } else if failed > 0 && !self.tree.is_empty() && !is_foreign {
            return self.ambiguous(self.pos, name);
        } else {
            let is_torn = self.tree.counts(name).is_some_and(|counts| counts.torn > 0);
            match self.contract_here() {
                Some((place, _)) if place.text && is_declared && !self.is_certain_text() => {
                    return self.ambiguous(self.pos, name);
                }
                Some((place, _)) if place.text && !is_torn => self.stray_less_than(),
                _ => self.drop_end_tag(name, end),
            }
        }
        Ok(())
    }

    /// Returns whether an end tag can only be text: the innermost element holds nothing but text, and has an end tag of its
    /// own.
    fn is_certain_text(&mut self) -> bool {
        let string = self.contract_here().filter(|(place, _)| place.is_string());
        string.is_some_and(|(_, start)| self.pairs.is_closed(start))
    }

    fn close(&mut self, name: &str, end: usize, kind: Option<RepairKind>) -> Result<(), RepairError> {
        let at = self.pos;
        while self.tree.last().is_some_and(|open| open.name != name) {
            self.close_missing(at)?;
        }
        match kind {
            Some(kind) => self.close_last(end, kind),
            None => {
                if let Some(open) = self.tree.pop() {
                    self.namespaces.leave(open.declarations);
                }
                self.out.push_str(&self.text[at..end]);
                self.pass_tag(end);
            }
        }
        Ok(())
    }

    /// Closes the innermost element by the bytes between here and `end`.
    pub(super) fn close_last(&mut self, end: usize, kind: RepairKind) {
        if let Some(open) = self.tree.pop() {
            self.namespaces.leave(open.declarations);
            self.write_end_tag(open.name);
            self.mark(self.pos, end, kind);
        }
        self.pass_tag(end);
    }

    fn drop_end_tag(&mut self, name: &'t str, end: usize) {
        let torn = self.tree.counts(name).filter(|counts| counts.torn > 0);
        let kind = match torn {
            Some(counts) => {
                counts.torn -= 1;
                RepairKind::MisnestedEndTag
            }
            None => RepairKind::StrayEndTag,
        };
        self.mark(self.pos, end, kind);
        if kind == RepairKind::MisnestedEndTag || self.outside.root.name == name {
            self.silence(self.pos, end);
        }
        let (was_outside, root_end) = (self.tree.is_empty(), self.outside.root.end);
        self.pass_tag(end);
        if was_outside {
            self.outside.root.end = root_end;
        }
    }

    fn pass_tag(&mut self, end: usize) {
        self.pos = end;
        self.tail = end;
        self.guessed = false;
        self.left_element();
    }

    /// Closes the innermost element, whose end tag is missing at `at`. Refuses if its text ends with a possible end
    /// tag.
    pub(super) fn close_missing(&mut self, at: usize) -> Result<(), RepairError> {
        let Some(open) = self.tree.pop() else { return Ok(()) };
        self.check_written_end(at, open.name)?;
        self.tree.counts[open.number].torn += 1;
        self.tree.torn.insert(key(open.name), at);
        self.namespaces.leave(open.declarations);
        self.write_end_tag(open.name);
        self.mark(at, at, RepairKind::MissingEndTag);
        Ok(())
    }

    /// Discards the open elements.
    pub(super) fn abandon_open(&mut self) {
        while let Some(open) = self.tree.pop() {
            self.namespaces.leave(open.declarations);
        }
    }

    fn write_end_tag(&mut self, name: &str) {
        self.out.push_str("</");
        self.out.push_str(name);
        self.out.push('>');
    }

    /// Starts the outside here if that was the last open element.
    fn left_element(&mut self) {
        if self.tree.is_empty() {
            self.outside.gap = self.pos;
            self.outside.root.end = self.pos;
        }
    }
}

/// Returns whether a tag without an end tag is an empty element: those of HTML that never have content, if few other
/// vocabularies use the name, or if the tag has attributes.
pub(super) fn is_void(tag: &StartTag<'_>) -> bool {
    match tag.name {
        "br" | "hr" | "wbr" | "img" => true,
        "input" | "meta" | "link" | "area" | "embed" | "source" | "track" => tag.count > 0,
        _ => false,
    }
}
