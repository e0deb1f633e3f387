//! Tags: the stack of open elements, and how start and end tags are written.

use std::collections::HashMap;

use super::lexis::excerpt;
use super::namespaces::Problem;
use super::reference::{self, Reference};
use super::scan::Scanner;
use super::tag::{Attribute, Form, StartTag};
use super::{RepairError, RepairKind};
use crate::ladder::scan::declared_prefix;

/// The open elements.
#[derive(Debug, Default)]
pub(super) struct Tree<'t> {
    open: Vec<Open<'t>>,
    numbers: HashMap<&'t str, usize>,
    /// The name that was looked up last, and its number: names come in runs.
    recent: Option<(&'t str, Option<usize>)>,
    /// By the number of a name.
    counts: Vec<Counts>,
}

/// An element whose end tag is still to come.
#[derive(Debug)]
pub(super) struct Open<'t> {
    pub(super) name: &'t str,
    number: usize,
    declarations: usize,
}

#[derive(Debug, Default, Clone, Copy)]
struct Counts {
    /// Open elements of this name.
    open: usize,
    /// Elements of this name that an outer end tag closed, and whose own may still come.
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

    fn push(&mut self, name: &'t str, declarations: usize) {
        let number = self.number(name).unwrap_or_else(|| {
            let new = self.counts.len();
            self.counts.push(Counts::default());
            self.numbers.insert(name, new);
            self.recent = Some((name, Some(new)));
            new
        });
        self.counts[number].open += 1;
        self.open.push(Open { name, number, declarations });
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
        let name_start = tag.start + 1;
        let entered = self.namespaces.enter(self.text, tag.name, name_start, &mut attributes, self.limits);
        let declarations = entered.or_else(|(problem, at)| self.refuse_namespace(problem, at))?;
        self.write_start_tag(&tag, &attributes)?;
        self.tags.attributes = attributes;
        self.pos = tag.end;
        self.tail = tag.end;
        self.guessed = tag.guessed;
        if tag.empty {
            self.namespaces.leave(declarations);
            self.left_element();
            return Ok(());
        }
        self.tree.push(tag.name, declarations);
        if is_void(tag.name) && !self.outside.ends.stands_behind(tag.name, tag.end) {
            self.close_missing(tag.end);
            self.left_element();
        }
        Ok(())
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
        self.check_name(tag.start + 1, tag.name)?;
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
        })
    }

    /// Writes a start tag: as it stands if nothing is wrong with it.
    fn write_start_tag(&mut self, tag: &StartTag<'t>, attributes: &[Attribute<'t>]) -> Result<(), RepairError> {
        if attributes.iter().all(|attribute| self.is_clean(attribute)) {
            self.out.push_str(&self.text[tag.start..tag.end]);
            return attributes.iter().try_for_each(|attribute| self.check_value(attribute, attribute.value_len()));
        }
        self.out.push('<');
        self.out.push_str(tag.name);
        attributes.iter().try_for_each(|attribute| self.write_attribute(attribute))?;
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
        let keeps = |(at, found)| found == "&" && matches!(reference::read(&value[at..]), Reference::Keep(_));
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
        self.write_value(attribute.value_start, attribute.value_end);
        self.check_value(attribute, self.out.len() - before)?;
        self.out.push('"');
        Ok(())
    }

    fn write_value(&mut self, start: usize, end: usize) {
        let mut at = start;
        while let Some(length) = memchr::memchr3(b'&', b'<', b'"', &self.text.as_bytes()[at..end]) {
            self.out.push_str(&self.text[at..at + length]);
            at += length;
            match self.text.as_bytes()[at] {
                b'&' => at = self.write_reference(at, end),
                b'<' => {
                    self.out.push_str("&lt;");
                    self.mark(at, at + 1, RepairKind::StrayLessThan);
                    at += 1;
                }
                _ => {
                    self.out.push_str("&quot;");
                    at += 1;
                }
            }
        }
        self.out.push_str(&self.text[at..end]);
    }

    /// Closes the element that an end tag names, and the open ones inside of it; drops the tag if
    /// there is none.
    pub(super) fn end_tag(&mut self, name: &'t str, end: usize, well_formed: bool) {
        let at = self.pos;
        let is_innermost = self.tree.last().is_some_and(|open| open.name == name);
        if !is_innermost && !self.tree.is_open(name) {
            if well_formed {
                self.drop_end_tag(name, end);
            } else {
                self.stray_less_than();
            }
            return;
        }
        while self.tree.last().is_some_and(|open| open.name != name) {
            self.close_missing(at);
        }
        if let Some(open) = self.tree.pop() {
            self.namespaces.leave(open.declarations);
        }
        if well_formed {
            self.out.push_str(&self.text[at..end]);
        } else {
            self.write_end_tag(name);
            self.mark(at, end, RepairKind::EndTagSyntax);
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
        self.pass_tag(end);
    }

    fn pass_tag(&mut self, end: usize) {
        self.pos = end;
        self.tail = end;
        self.guessed = false;
        self.left_element();
    }

    /// Closes the innermost element, whose end tag is missing at `at`.
    pub(super) fn close_missing(&mut self, at: usize) {
        let Some(open) = self.tree.pop() else { return };
        self.tree.counts[open.number].torn += 1;
        self.namespaces.leave(open.declarations);
        self.write_end_tag(open.name);
        self.mark(at, at, RepairKind::MissingEndTag);
    }

    /// Forgets the open elements.
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

    /// If that was the last open element, the outside starts here.
    fn left_element(&mut self) {
        if self.tree.is_empty() {
            self.outside.gap = self.pos;
        }
    }
}

/// Elements of HTML that never have content, and whose names few other vocabularies use. Without
/// an end tag anywhere behind it, such a tag is an empty element.
pub(super) fn is_void(name: &str) -> bool {
    matches!(name, "br" | "hr" | "wbr" | "img")
}
