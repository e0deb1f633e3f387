//! Start tags that are written twice with one end tag: `<name><name>Bob</name>`.
//!
//! These rules never touch well-formed input: there every start tag has its end tag.

use super::elements::is_void;
use super::lexis::{is_blank, name_end, skip_space};
use super::pairs::key;
use super::scan::Scanner;
use super::tag::StartTag;
use super::{RepairError, RepairKind};
use crate::ladder::scan::split_prefix;

/// Maximum number of tags of one name in a row that are looked at.
const MOST: usize = 4;

/// Elements that often hold one of their own name at once, or whose end tags HTML allows to omit.
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

/// A start tag behind another one of its name.
pub(super) struct Second<'t> {
    /// Offset of its `<`.
    pub(super) start: usize,
    name: &'t str,
    /// Offset behind its `>`.
    end: usize,
}

impl<'t> Scanner<'t> {
    /// Drops a start tag if it is written twice: another one of its name follows at once, and one end tag is there for
    /// both; white space between them goes with it. Refuses it if the element may as well hold one of its own name.
    pub(super) fn drop_repeated(&mut self, tag: &StartTag<'t>) -> Result<bool, RepairError> {
        let Some(second) = self.second(tag).filter(|_| !self.is_foreign_here(tag.name)) else { return Ok(false) };
        let Some(last) = self.closed_one(second, tag)? else { return Ok(false) };
        let local = split_prefix(last.name).1;
        let behind = &self.text[last.end..];
        let is_clear = match self.vocabulary.get(local) {
            Some(declared) if declared.open || declared.may_hold(local) => return Ok(false),
            Some(_) => !behind.starts_with([' ', '\t']),
            None if NESTING.contains(&&*key(local)) => return Ok(false),
            None => self.is_leaf_at_once(tag, &last),
        };
        if !is_clear || self.is_bare(&last) {
            return self.ambiguous(tag.start, tag.name);
        }
        let next = skip_space(self.text, tag.end);
        self.mark(tag.start, next, RepairKind::StartTagTwice);
        self.pos = next;
        Ok(true)
    }

    /// The tag behind a start tag, if it has the same name.
    fn second(&self, tag: &StartTag<'t>) -> Option<Second<'t>> {
        if tag.empty || is_void(tag) {
            return None;
        }
        self.start_tag_at(skip_space(self.text, tag.end), tag.name)
    }

    /// The start tag of the same name at an offset.
    pub(super) fn start_tag_at(&self, start: usize, name: &str) -> Option<Second<'t>> {
        self.text[start..].strip_prefix('<')?;
        let name_end = name_end(self.text, start + 1)?;
        let found = &self.text[start + 1..name_end];
        if key(found) != key(name) {
            return None;
        }
        let end = name_end + memchr::memchr2(b'<', b'>', &self.text.as_bytes()[name_end..])?;
        let is_start = self.text[end..].starts_with('>') && !self.text[..end].ends_with('/');
        is_start.then_some(Second { start, name: found, end: end + 1 })
    }

    /// The first of the tags in a row that has an end tag, if the tag in front of them has none and nothing of its own.
    fn closed_one(&mut self, second: Second<'t>, tag: &StartTag<'t>) -> Result<Option<Second<'t>>, RepairError> {
        if self.pairs.is_closed(tag.start) {
            return Ok(None);
        }
        let attributes = |start: usize, name: &str, end: usize| self.text[start + 1 + name.len()..end - 1].trim();
        let first = attributes(tag.start, tag.name, tag.end);
        let is_copy = tag.count == 0 || first == attributes(second.start, second.name, second.end);
        let mut last = second;
        for _ in 2..MOST {
            if self.pairs.is_closed(last.start) {
                return if is_copy { Ok(Some(last)) } else { self.other_attributes(tag) };
            }
            let Some(next) = self.start_tag_at(skip_space(self.text, last.end), tag.name) else { break };
            last = next;
        }
        Ok(None)
    }

    /// Refuses two tags with different attributes, unless the contract has a list of them.
    fn other_attributes(&self, tag: &StartTag<'t>) -> Result<Option<Second<'t>>, RepairError> {
        match self.vocabulary.knows(split_prefix(tag.name).1) {
            true => Ok(None),
            false => self.ambiguous(tag.start, tag.name),
        }
    }

    /// Returns whether the last tag stands right behind the first one and begins an element of only text.
    fn is_leaf_at_once(&mut self, tag: &StartTag<'t>, last: &Second<'t>) -> bool {
        let Some(end) = self.pairs.end_of(last.start) else { return false };
        let content = &self.text[last.end..end];
        let between = &self.text[tag.end..last.start];
        (between.is_empty() || (between.starts_with('<') && between.ends_with('>')))
            && content.starts_with(|c: char| !matches!(c, ' ' | '\t'))
            && !content.contains('<')
    }

    /// Returns whether nothing but white space stands between a tag and its end tag: then the first tag may be a mention of
    /// the element (`See <code><code></code> for code`).
    fn is_bare(&mut self, last: &Second<'t>) -> bool {
        self.pairs.end_of(last.start).is_some_and(|end| is_blank(&self.text[last.end..end]))
    }

    /// Returns whether the contract has no element of this name, and text stands here: then the tag is text.
    fn is_foreign_here(&self, name: &str) -> bool {
        !self.vocabulary.knows(split_prefix(name).1) && self.contract_here().is_some_and(|(place, _)| place.text)
    }
}
