//! The meaning of a start tag inside of an element: an element, text, or an element behind others whose end tags are missing.
//!
//! The lexical rules never touch well-formed input: there every start tag has its end tag. The contract decides
//! first, if it says anything about the innermost open element.

use super::elements::is_void;
use super::lexis::{excerpt, is_space_char, name_end, skip_space, written_end};
use super::pairs::key;
use super::scan::Scanner;
use super::tag::{Attribute, Form, StartTag};
use super::{RepairError, RepairKind, Shape};
use crate::ladder::scan::split_prefix;

/// Elements that often hold one of their own name at once.
const NESTING: &[&str] = &[
    "article",
    "blockquote",
    "dd",
    "div",
    "dt",
    "li",
    "ol",
    "option",
    "p",
    "section",
    "span",
    "table",
    "td",
    "th",
    "tr",
    "ul",
];

/// The meaning of a start tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meaning {
    Element,
    Text,
    /// An element behind the end of that many open ones.
    Behind(usize),
}

impl<'t> Scanner<'t> {
    /// Handles a start tag inside of an element by its meaning.
    pub(super) fn inner_tag(&mut self, tag: StartTag<'t>) -> Result<(), RepairError> {
        let tag = self.reopened(tag);
        self.check_twice(&tag)?;
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
        let (start, is_inner) = (parent.start, outer.is_some());
        let is_twin = is_leaf && key(parent.name) == key(tag.name) && !self.pairs.is_closed(start);
        if tag.empty {
            let is_doubtful = is_twin && is_inner && tag.count == 0 && !self.text_follows(tag.end);
            return if is_doubtful { self.ambiguous(tag.start, tag.name) } else { Ok(Meaning::Element) };
        }
        // The last tag may be the one that a mention was about: see `restart`.
        if is_twin && (is_inner || !self.pairs.is_closed(tag.start) || self.stands_as_word(tag)) {
            return self.ambiguous(tag.start, tag.name);
        }
        if self.reads_as_text(tag) {
            return Ok(Meaning::Text);
        }
        if self.is_undecided(tag, is_leaf.then_some(start)) {
            return self.ambiguous(tag.start, tag.name);
        }
        self.check_brackets(tag)
    }

    /// Refuses a start tag without an end tag if another one of its name follows at once, which has one
    /// (`<name><name>Bob</name>`): the first may be written twice, or an element of its own. It is one where the contract
    /// allows it, or, without a contract, if elements of its name often nest.
    pub(super) fn check_twice(&mut self, tag: &StartTag<'t>) -> Result<(), RepairError> {
        let next = skip_space(self.text, tag.end);
        let name = self.text[next..]
            .strip_prefix('<')
            .and_then(|_| Some(&self.text[next + 1..name_end(self.text, next + 1)?]));
        let is_twice = name.is_some_and(|name| key(name) == key(tag.name));
        if tag.empty || is_void(tag) || !is_twice || self.is_foreign_here(tag.name) {
            return Ok(());
        }
        let local = split_prefix(tag.name).1;
        let is_allowed = match self.vocabulary.get(local) {
            Some(declared) => declared.open || declared.may_hold(local) || tag.count > 0,
            None => NESTING.contains(&&*key(local)),
        };
        if is_allowed || self.pairs.is_closed(tag.start) || !self.pairs.is_closed(next) {
            return Ok(());
        }
        self.ambiguous(tag.start, tag.name)
    }

    /// Returns whether the contract has no element of this name, and text stands here: then the tag is text.
    fn is_foreign_here(&self, name: &str) -> bool {
        !self.vocabulary.knows(split_prefix(name).1) && self.contract_here().is_some_and(|(place, _)| place.text)
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
