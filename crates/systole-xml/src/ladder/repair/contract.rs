//! The meaning of a start tag inside of an element by the contract.
//!
//! These rules never touch well-formed input: there every start tag has its end tag.

use super::RepairError;
use super::meant::Meaning;
use super::scan::Scanner;
use super::tag::StartTag;
use super::vocabulary::Declared;
use crate::ladder::scan::split_prefix;

impl<'t> Scanner<'t> {
    /// The meaning of a start tag by the contract; `None` if the contract has none for it.
    pub(super) fn by_contract(&mut self, tag: &StartTag<'t>) -> Result<Option<Meaning>, RepairError> {
        let Some((place, start)) = self.contract_here() else { return Ok(None) };
        let child = split_prefix(tag.name).1;
        if place.may_hold(child) {
            let may_be_text = place.text && self.may_be_text(tag, child);
            return if may_be_text { self.ambiguous(tag.start, tag.name) } else { Ok(Some(Meaning::Element)) };
        }
        if !self.vocabulary.knows(child) {
            return Ok(place.text.then_some(Meaning::Text));
        }
        let is_same = self.tree.last().is_some_and(|open| split_prefix(open.name).1 == child);
        if self.pairs.is_closed(start) {
            let is_text = place.text && !tag.empty && !self.pairs.is_closed(tag.start);
            return Ok(Some(if is_text { Meaning::Text } else { Meaning::Element }));
        }
        if is_same && self.is_repeated(tag, place.text) {
            return self.ambiguous(tag.start, tag.name);
        }
        self.in_outer(tag, child, is_same, place.text).map(Some)
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
            Some(_) if is_doubtful => self.ambiguous(tag.start, tag.name),
            Some(levels) => Ok(Meaning::Behind(levels)),
            None if is_same && !is_closed => self.ambiguous(tag.start, tag.name),
            None if is_text && !is_closed => Ok(Meaning::Text),
            None => Ok(Meaning::Element),
        }
    }

    /// Returns whether a tag of the name of the innermost element, which has no end tag and can't hold one of its own name, may
    /// be meant as its end tag: `<name>Bob<name><age>`, `<name>Bob<name/>`, `<b>bold<b> text`.
    fn is_repeated(&mut self, tag: &StartTag<'t>, is_text: bool) -> bool {
        if tag.count > 0 || (!tag.empty && self.pairs.is_closed(tag.start)) {
            return false;
        }
        let is_mixed = self.tree.nth(1).and_then(|outer| self.declared_of(outer.name)).is_some_and(|outer| outer.text);
        if tag.empty { is_text } else { is_mixed || !self.text_follows(tag.end) }
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
