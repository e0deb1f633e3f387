//! The meaning of a start tag inside of an element: an element, text, an end tag, or an element behind others whose
//! end tags are missing.
//!
//! The lexical rules never touch well-formed input: there every start tag has its end tag. The contract decides
//! first, if it says anything about the innermost open element.

use super::lexis::{excerpt, is_blank, is_space_char, name_end, skip_space, written_end};
use super::pairs::key;
use super::scan::Scanner;
use super::tag::{Attribute, Form, StartTag};
use super::{RepairError, RepairKind, Shape};
use crate::ladder::scan::split_prefix;

/// The meaning of a start tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meaning {
    Element,
    Text,
    /// The end tag of the innermost element.
    End,
    /// An element behind the end of that many open ones.
    Behind(usize),
}

impl<'t> Scanner<'t> {
    /// Handles a start tag inside of an element by its meaning.
    pub(super) fn inner_tag(&mut self, tag: StartTag<'t>) -> Result<(), RepairError> {
        let tag = self.reopened(tag);
        if self.drop_repeated(&tag)? {
            return Ok(());
        }
        if let Some((name, start)) = self.tree.last().map(|open| (open.name, open.start))
            && !self.pairs.is_closed(start)
        {
            self.check_written_end(tag.start, name)?;
        }
        match self.meaning(&tag)? {
            Meaning::Element => self.start_tag(tag),
            Meaning::Text => {
                if !tag.empty {
                    *self.tree.textual(tag.name) += 1;
                }
                self.stray_less_than();
                Ok(())
            }
            Meaning::End => {
                self.close_last(tag.end, RepairKind::EndTagSlash);
                self.turned = tag.end;
                Ok(())
            }
            Meaning::Behind(levels) if levels >= self.tree.depth() && self.shape == Shape::Document => {
                self.refuse(tag.start, |at| RepairError::SecondElement { at })
            }
            Meaning::Behind(levels) => {
                (0..levels).try_for_each(|_| self.close_missing(tag.start))?;
                self.start_tag(tag)
            }
        }
    }

    /// Turns an empty-element tag into a start tag if an end tag of its own follows. A slash right behind a value
    /// without quotes then belongs to the value, as it does where nothing but a host stands before it.
    pub(super) fn reopened(&mut self, tag: StartTag<'t>) -> StartTag<'t> {
        let slash = tag.end - b"/>".len();
        let is_touched = |last: &Attribute<'_>| last.form == Form::Requote && last.value_end == slash;
        let touches = self.tags.attributes.last().is_some_and(is_touched);
        // An end tag that follows at once leaves nothing that the element could hold.
        let is_bare = self.text[skip_space(self.text, tag.end)..].starts_with("</");
        if !tag.empty || (is_bare && !touches) {
            return tag;
        }
        let reopened = match (self.pairs.reopened(tag.start), self.tree.last().map(|open| open.start)) {
            (Some(end), Some(parent)) => self.pairs.end_of(parent).is_none_or(|parent_end| end < parent_end),
            (found, _) => found.is_some(),
        };
        if let Some(last) = self.tags.attributes.last_mut().filter(|last| is_touched(last))
            && (reopened || is_host(&self.text[last.value_start..slash]))
        {
            last.value_end += 1;
            last.end += 1;
        } else if reopened {
            self.mark(slash, slash + 1, RepairKind::EmptyTag);
        }
        StartTag { empty: !reopened, rewritten: tag.rewritten || reopened, ..tag }
    }

    /// Refuses an element without an end tag whose text ends with a possible end tag (`[/name]`): it may end there or
    /// go on.
    pub(super) fn check_written_end(&self, at: usize, name: &str) -> Result<(), RepairError> {
        let text = self.text.get(self.tail..at).unwrap_or_default();
        written_end(text, name).map_or(Ok(()), |length| self.ambiguous(self.tail + length, name))
    }

    fn meaning(&mut self, tag: &StartTag<'t>) -> Result<Meaning, RepairError> {
        if self.is_open_thought(tag) {
            return self.ambiguous(tag.start, tag.name);
        }
        if let Some(meaning) = self.by_contract(tag)? {
            return Ok(meaning);
        }
        let Some((parent, outer)) = self.tree.innermost() else { return Ok(Meaning::Element) };
        let is_leaf = parent.has_text && !parent.has_child;
        let is_structured = outer.is_some_and(|outer| !outer.has_text);
        let (start, has_outer) = (parent.start, outer.is_some());
        let is_twin = is_leaf && key(parent.name) == key(tag.name);
        if tag.empty {
            let may_end = is_twin && has_outer && tag.count == 0 && !self.text_follows(tag.end);
            return match may_end && !self.pairs.is_closed(start) {
                true if self.is_before_twin(tag) => self.ambiguous(tag.start, tag.name),
                true => Ok(Meaning::End),
                false => Ok(Meaning::Element),
            };
        }
        let levels = self.implied_ends(tag);
        if levels > 0 {
            return Ok(Meaning::Behind(levels));
        }
        if is_twin && !self.pairs.is_closed(start) {
            match self.pairs.is_closed(tag.start) {
                true if has_outer && !self.begins_item(tag) => return self.ambiguous(tag.start, tag.name),
                true if self.stands_as_word(tag) => return self.ambiguous(tag.start, tag.name),
                true if is_structured => return Ok(Meaning::Behind(1)),
                true => {}
                false => return self.twin(tag, is_structured),
            }
        }
        if self.reads_as_text(tag) {
            return Ok(Meaning::Text);
        }
        if self.is_undecided(tag, is_leaf.then_some(start)) {
            return self.ambiguous(tag.start, tag.name);
        }
        self.check_brackets(tag)
    }

    /// The meaning of a start tag that repeats the open element, when neither has an end tag: `<name>Bob<name>`,
    /// `<item>one<item>two`.
    fn twin(&self, tag: &StartTag<'t>, is_structured: bool) -> Result<Meaning, RepairError> {
        let text_follows = self.text_follows(tag.end);
        let behind = &self.text[tag.end..];
        let is_root = self.tree.depth() == 1 && !is_blank(behind);
        match (text_follows, tag.count) {
            (false, 0) if !is_root => Ok(Meaning::End),
            (_, 0) if is_structured && !behind.starts_with([' ', '\t']) && !self.stands_behind_space(tag) => {
                Ok(Meaning::Behind(1))
            }
            (_, 0) => self.ambiguous(tag.start, tag.name),
            _ if is_structured => Ok(Meaning::Behind(1)),
            _ => Ok(Meaning::Element),
        }
    }

    /// Returns whether text, a comment or the like follows, rather than a tag or the end of the input.
    pub(super) fn text_follows(&self, at: usize) -> bool {
        let at = skip_space(self.text, at);
        match self.text.as_bytes()[at..] {
            [] => false,
            [b'<', next, ..] => !(next == b'/' || name_end(self.text, at + 1).is_some()),
            _ => true,
        }
    }

    /// Returns whether a start tag of this name follows, white space aside.
    pub(super) fn next_is(&self, name: &str, at: usize) -> bool {
        let behind = self.text[skip_space(self.text, at)..].strip_prefix('<');
        let rest = behind.and_then(|behind| behind.strip_prefix(name));
        rest.is_some_and(|rest| rest.starts_with(['>', ' ', '/', '\n', '\t', '\r']))
    }

    /// Refuses a tag in doubled brackets as ambiguous: `<<title>>Q3<</title>>`.
    fn check_brackets(&mut self, tag: &StartTag<'t>) -> Result<Meaning, RepairError> {
        let doubled = self.text[..tag.start].ends_with('<') && self.text[tag.end..].starts_with('>');
        if doubled && self.pairs.is_closed(tag.start) {
            return self.ambiguous(tag.start, tag.name);
        }
        Ok(Meaning::Element)
    }

    /// The number of elements that a start tag ends in HTML, which allows to omit their end tags.
    fn implied_ends(&mut self, tag: &StartTag<'t>) -> usize {
        let ended: &[&str] = match &*key(tag.name) {
            "li" => &["li"],
            "dt" | "dd" => &["dt", "dd"],
            "td" | "th" => &["td", "th"],
            "tr" => &["td", "th", "tr"],
            "option" => &["option"],
            "p" => &["p"],
            _ => return 0,
        };
        if self.pairs.is_closed(tag.start) {
            return 0;
        }
        let mut levels = 0;
        while let Some(open) = self.tree.nth(levels) {
            if !ended.contains(&&*key(open.name)) || self.pairs.is_closed(open.start) {
                break;
            }
            levels += 1;
        }
        levels
    }

    #[cold]
    pub(super) fn ambiguous<T>(&self, at: usize, name: &str) -> Result<T, RepairError> {
        self.refuse(at, |at| RepairError::Ambiguous { at, name: excerpt(name) })
    }

    /// Returns whether an end tag that names no open element was meant for the innermost one, which has none: it is
    /// misspelt, or the element holds only text and more markup follows.
    pub(super) fn is_meant_for_last(&mut self, name: &str, at: usize, end: usize) -> bool {
        let Some(open) = self.tree.last() else { return false };
        let (start, is_leaf) = (open.start, open.has_text && !open.has_child);
        let is_alike = is_alike(split_prefix(name).1, split_prefix(open.name).1);
        let follows = self.text.as_bytes().get(skip_space(self.text, end)) == Some(&b'<');
        if self.pairs.is_closed(start) {
            return is_leaf && follows && self.is_swapped(name, end);
        }
        let by_contract = self.contract_here().is_some_and(|(place, _)| place.text && self.vocabulary.knows(name));
        (self.pairs.is_left_over(at) && (is_alike || (is_leaf && follows))) || (by_contract && is_leaf && follows)
    }

    /// Returns whether an end tag stands where the innermost element, of text alone, ends by its contract: the tag that
    /// follows has the same name and may not stand there.
    fn is_swapped(&self, name: &str, end: usize) -> bool {
        let Some((place, _)) = self.contract_here() else { return false };
        self.next_is(name, end) && place.text && self.vocabulary.knows(name) && !place.may_hold(name)
    }
}

/// Returns whether a value without quotes is a URL of only a host, which a slash ends.
fn is_host(value: &str) -> bool {
    value.split_once("://").is_some_and(|(_, host)| !host.is_empty() && !host.contains('/'))
}

/// Returns whether two names differ by one slip: a letter too many or too few, another one, or two that are swapped.
fn is_alike(one: &str, other: &str) -> bool {
    const LONGEST: usize = 64;
    if one.len().min(other.len()) < 3 || one.len().max(other.len()) > LONGEST {
        return false;
    }
    let (one, other) = (one.as_bytes(), other.as_bytes());
    let head = one.iter().zip(other).take_while(|(a, b)| a == b).count();
    let tail = one[head..].iter().rev().zip(other[head..].iter().rev()).take_while(|(a, b)| a == b).count();
    let (one, other) = (&one[head..one.len() - tail], &other[head..other.len() - tail]);
    match (one, other) {
        ([a, b], [c, d]) => a == d && b == c,
        _ => one.len() <= 1 && other.len() <= 1,
    }
}

/// Returns whether the text before, on the same line, ends with text, rather than with markup or nothing.
pub(super) fn is_amid_text(before: &str) -> bool {
    let line = before.trim_end_matches([' ', '\t']);
    !line.is_empty() && !line.ends_with(|c: char| c == '>' || is_space_char(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_told_from_other_names() {
        for (one, other, expected) in [
            ("total", "totl", true),
            ("name", "nmae", true),
            ("name", "nane", true),
            ("name", "names", true),
            ("name", "game", true),
            ("name", "note", false),
            ("li", "lo", false),
            ("title", "body", false),
            ("é--", "è--", true),
        ] {
            assert_eq!(is_alike(one, other), expected, "{one} {other}");
        }
    }
}
