//! The meaning of a start tag inside of an element by the contract.
//!
//! These rules never touch well-formed input: there every start tag has its end tag.

use super::lexis::{is_space_char, skip_space};
use super::meant::Meaning;
use super::mention::Amid;
use super::scan::Scanner;
use super::tag::StartTag;
use super::vocabulary::Declared;
use super::{RepairError, fence};
use crate::ladder::scan::split_prefix;

impl<'t> Scanner<'t> {
    /// The meaning of a start tag by the contract; `None` if the contract has none for it.
    pub(super) fn by_contract(&mut self, tag: &StartTag<'t>) -> Result<Option<Meaning>, RepairError> {
        let Some((place, start)) = self.contract_here() else { return Ok(None) };
        let child = split_prefix(tag.name).1;
        if place.may_hold(child) {
            let reading = if place.text { self.read_amid_text(tag, child) } else { Amid::Element };
            return self.read_as(reading, tag).map(Some);
        }
        if !self.vocabulary.knows(child) {
            return Ok(place.text.then_some(Meaning::Text));
        }
        let is_same = self.tree.last().is_some_and(|open| split_prefix(open.name).1 == child);
        if self.pairs.is_closed(start) {
            let is_text = place.text && !tag.empty && !self.pairs.is_closed(tag.start);
            return Ok(Some(if is_text { Meaning::Text } else { Meaning::Element }));
        }
        if is_same && let Some(meaning) = self.repeated(tag, place.text)? {
            return Ok(Some(meaning));
        }
        self.in_outer(tag, child, is_same, place.text).map(Some)
    }

    fn read_as(&self, reading: Amid, tag: &StartTag<'t>) -> Result<Meaning, RepairError> {
        match reading {
            Amid::Element => Ok(Meaning::Element),
            Amid::Text => Ok(Meaning::Text),
            Amid::Either => self.ambiguous(tag.start, tag.name),
        }
    }

    /// The meaning of a start tag that is allowed only behind the innermost element, which has no end tag, or nowhere.
    fn in_outer(
        &mut self,
        tag: &StartTag<'t>,
        child: &str,
        is_same: bool,
        is_text: bool,
    ) -> Result<Meaning, RepairError> {
        let is_closed = tag.empty || self.pairs.is_closed(tag.start);
        let is_doubtful = is_text
            && match is_closed {
                true => self.may_share_end(tag, child),
                false => self.stands_as_word(tag) || (is_same && self.stands_behind_space(tag)),
            };
        match self.place_behind(child, is_same) {
            Some(levels) if is_doubtful && !is_closed && self.is_there(levels, child) => Ok(Meaning::Text),
            Some(_) if is_doubtful => self.ambiguous(tag.start, tag.name),
            Some(levels) => Ok(Meaning::Behind(levels)),
            None if is_same && !is_closed => self.ambiguous(tag.start, tag.name),
            None if is_text && !is_closed => Ok(Meaning::Text),
            None => Ok(Meaning::Element),
        }
    }

    /// The meaning of a tag that repeats the innermost element, which has no end tag and can't hold one of its own name.
    /// It was meant as the end tag where nothing else fits: `<name>Bob<name><age>`, `<name>Bob<name/>`,
    /// `<b>bold<b> text`.
    fn repeated(&mut self, tag: &StartTag<'t>, is_text: bool) -> Result<Option<Meaning>, RepairError> {
        if tag.count > 0 || (!tag.empty && self.pairs.is_closed(tag.start)) {
            return Ok(None);
        }
        let is_mixed = self.tree.nth(1).and_then(|outer| self.declared_of(outer.name)).is_some_and(|outer| outer.text);
        let is_last = self.tree.depth() == 1 && !self.is_last_tag(tag.end);
        match tag.empty {
            true if self.is_end_with_slash(tag, is_mixed) && !is_last => Ok(Some(Meaning::End)),
            true if is_text => self.ambiguous(tag.start, tag.name),
            true => Ok(None),
            false if !self.text_follows(tag.end) => Ok(Some(Meaning::End)),
            false if is_mixed && self.is_between_word_and_space(tag) => Ok(Some(Meaning::End)),
            false if is_mixed => self.ambiguous(tag.start, tag.name),
            false => Ok(None),
        }
    }

    /// Returns whether an empty-element tag of the name of the innermost element may be its end tag: the element holds
    /// something, no text follows that has no place behind the element, and the next tag isn't one of the same name with
    /// an end tag of its own, which tells that the author knows how to write one.
    fn is_end_with_slash(&mut self, tag: &StartTag<'t>, is_mixed: bool) -> bool {
        let holds = self.tree.last().is_some_and(|open| open.has_text || open.has_child);
        holds && (is_mixed || !self.text_follows(tag.end)) && !self.is_before_twin(tag)
    }

    /// Returns whether a tag of the same name follows that is no start tag without an end tag: then the author knows how to
    /// end such elements.
    pub(super) fn is_before_twin(&mut self, tag: &StartTag<'t>) -> bool {
        let next = self.start_tag_at(skip_space(self.text, tag.end), tag.name);
        self.next_is(tag.name, tag.end) && next.is_none_or(|next| self.pairs.is_closed(next.start))
    }

    /// Returns whether nothing but white space and a closing fence follows.
    fn is_last_tag(&self, end: usize) -> bool {
        let rest = &self.text[skip_space(self.text, end)..];
        // The end of the text is looked at only once the start of the rest tells that it is a fence.
        rest.is_empty() || (rest.starts_with(['`', '~']) && fence::is_closing(rest.trim_end_matches(is_space_char)))
    }

    /// Returns whether the payload is `levels` levels above the innermost element, and has the only child of this name that
    /// it may have.
    fn is_there(&self, levels: usize, child: &str) -> bool {
        let root = self.tree.nth(levels).filter(|_| self.tree.depth() == levels + 1);
        let is_only = root.and_then(|root| self.declared_of(root.name)).is_some_and(|place| !place.repeats(child));
        is_only && self.outside.root.children.contains(child)
    }

    /// Returns whether an open element nearby has this name and no end tag of its own: the one that follows may be its.
    pub(super) fn has_open_twin(&mut self, name: &str) -> bool {
        (0..MOST_LEVELS).any(|level| {
            let twin = self.tree.nth(level).filter(|open| split_prefix(open.name).1 == name).map(|open| open.start);
            twin.is_some_and(|start| !self.pairs.is_closed(start))
        })
    }

    /// The declaration of the innermost open element, if it names all children that may stand there; and the offset of
    /// that element.
    pub(super) fn contract_here(&self) -> Option<(&'t Declared, usize)> {
        let open = self.tree.last().filter(|_| !self.vocabulary.is_empty())?;
        let place = self.declared_of(open.name).filter(|place| !place.open && !open.is_typed)?;
        Some((place, open.start))
    }

    fn declared_of(&self, name: &str) -> Option<&'t Declared> {
        self.vocabulary.get(split_prefix(name).1)
    }

    /// The number of open elements without end tags that must end so that a child may stand in the innermost one, and
    /// more than once if it `repeats`.
    fn place_behind(&mut self, child: &str, repeats: bool) -> Option<usize> {
        for level in 0..MOST_LEVELS {
            let inner = self.tree.nth(level)?.start;
            let outer = self.tree.nth(level + 1)?;
            let (name, is_typed) = (outer.name, outer.is_typed);
            if self.pairs.is_closed(inner) {
                return None;
            }
            let place = self.declared_of(name).filter(|place| !place.open && !is_typed)?;
            if place.may_hold(child) && (!repeats || place.repeats(child)) {
                return Some(level + 1);
            }
        }
        None
    }
}

/// Maximum number of open elements that one start tag can end.
const MOST_LEVELS: usize = 8;
