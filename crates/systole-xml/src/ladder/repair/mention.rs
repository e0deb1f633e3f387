//! Mentions: tags with the form of a start tag that have no end tag anywhere, and are text by the text around them.
//!
//! These rules never touch well-formed input: there every start tag has its end tag.

use super::elements::is_void;
use super::lexis::is_space_char;
use super::meant::is_amid_text;
use super::scan::Scanner;
use super::tag::{Form, StartTag};

impl<'t> Scanner<'t> {
    /// Returns whether a start tag without an end tag, amid text, reads as text: `Vec<T> is`, `i<n then j>m`,
    /// `#include <vector>`, `"<name>"`, `Dear <NAME>,`.
    pub(super) fn reads_as_text(&mut self, tag: &StartTag<'t>) -> bool {
        if tag.empty || is_void(tag) {
            return false;
        }
        let (before, behind) = self.text.split_at(tag.start);
        let behind = &behind[tag.end - tag.start..];
        let Some(next) = behind.chars().next() else { return false };
        let stands_free = !next.is_alphanumeric() && (next != '<' || behind.starts_with("</"));
        let has_words = tag.count > 0 && self.tags.attributes.iter().all(|attribute| attribute.form == Form::Valueless);
        let is_text = is_amid_text(before)
            && (is_foreign(tag.name) || !(self.tree.is_empty() || is_formatting(tag.name)))
            && (has_words || (tag.count == 0 && stands_free));
        is_text && !self.pairs.is_closed(tag.start)
    }

    /// Returns whether a start tag that doesn't read as text may still be text, and nothing tells: it has no attributes and
    /// no end tag, and stands right behind a word or a sign (`cmp a<b>c`, `(?<b>c)`), in front of a number, as a word of a line, or before text in an element of only text that has no
    /// end tag either (`<ann> hi <bob> hey`). `leaf` is the start of the innermost element, if it holds only text.
    pub(super) fn is_undecided(&mut self, tag: &StartTag<'t>, leaf: Option<usize>) -> bool {
        if tag.empty || tag.count > 0 || is_void(tag) || self.pairs.is_closed(tag.start) {
            return false;
        }
        let (before, behind) = (&self.text[..tag.start], &self.text[tag.end..]);
        let is_glued = before.ends_with(|c: char| !is_space_char(c) && c != '>');
        let is_word = self.stands_as_word(tag) || !(behind.starts_with('<') || begins_word(behind));
        let is_word = is_word && is_amid_text(before);
        is_glued || is_word || leaf.is_some_and(|leaf| !self.pairs.is_closed(leaf)) && self.text_follows(tag.end)
    }
}

impl<'t> Scanner<'t> {
    /// Returns whether a start tag in an element that may hold it, and text, may be text. Without an end tag it may be a
    /// comparison or a type behind a word (`i<b>0`, `set<b>::iterator`), or a mention in front of a space; in front of a word it
    /// begins an element.
    pub(super) fn may_be_text(&mut self, tag: &StartTag<'t>, child: &str) -> bool {
        if tag.empty || is_void(tag) {
            return false;
        }
        if self.pairs.is_closed(tag.start) {
            return self.may_share_end(tag, child);
        }
        let (before, behind) = (&self.text[..tag.start], &self.text[tag.end..]);
        let is_glued = before.ends_with(is_operand);
        let is_amid = is_glued || is_amid_text(before);
        match tag.count {
            0 => is_glued || self.stands_as_word(tag) || (is_amid && !begins_word(behind)),
            _ => is_amid && self.tags.attributes.iter().all(|attribute| attribute.form == Form::Valueless),
        }
    }

    /// Returns whether a start tag has an end tag that may be that of an open element of its name, which has no other: then
    /// the start tag may be a mention in it.
    pub(super) fn may_share_end(&mut self, tag: &StartTag<'t>, child: &str) -> bool {
        !self.begins_item(tag) && self.has_open_twin(child)
    }

    /// Returns whether a start tag of the name of the open element stands in a line of its text behind a space, as a word does
    /// (`drop all <comment>s`).
    pub(super) fn stands_behind_space(&self, tag: &StartTag<'_>) -> bool {
        self.text[..tag.start].ends_with([' ', '\t']) && tag.count == 0 && !self.begins_item(tag)
    }

    /// Returns whether a start tag stands where an author begins an element, rather than amid the text of one of the same
    /// name: at the start of a line, behind markup, or behind the end of a sentence; or with attributes.
    pub(super) fn begins_item(&self, tag: &StartTag<'_>) -> bool {
        let until = &self.text[..tag.start];
        let before = until.trim_end_matches([' ', '\t']);
        let is_behind_markup = before.len() == self.tail || before.ends_with("]]>") || before.ends_with("-->");
        let is_apart = before.len() < until.len() || self.text[tag.end..].starts_with(char::is_uppercase);
        !self.stands_as_word(tag)
            && (tag.count > 0
                || is_behind_markup
                || before.ends_with(['\n', '\r'])
                || (is_apart && before.ends_with(['.', '!', '?'])))
    }
}

impl Scanner<'_> {
    /// Returns whether a start tag without attributes stands in a line of text as a word of it does, with a space or
    /// punctuation behind it: `A <title> tag names the page`, `bold **<p>** done`. Without an end tag of its own it is
    /// either text or an element whose end is unknown.
    pub(super) fn stands_as_word(&self, tag: &StartTag<'_>) -> bool {
        if tag.empty || tag.count > 0 || is_void(tag) {
            return false;
        }
        let before = self.text[..tag.start].trim_end_matches([' ', '\t']);
        let behind = &self.text[tag.end..];
        let begins_line = before.is_empty() || before.ends_with(['\n', '\r']);
        let is_free = behind.starts_with(|c: char| !c.is_alphanumeric() && !matches!(c, '<' | '\n' | '\r'));
        !begins_line && is_free && self.text_follows(tag.end)
    }
}

/// Returns whether a character ends a word, or the operand of a comparison.
fn is_operand(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | ')' | ']')
}

/// Returns whether a text begins with a word, rather than with a number or the `s` of a plural (`all <b>s`).
fn begins_word(text: &str) -> bool {
    let is_plural = text.strip_prefix('s').is_some_and(|rest| !rest.starts_with(char::is_alphanumeric));
    !is_plural && !text.starts_with(char::is_numeric)
}

/// Returns whether a name is a file name, or a placeholder in capitals.
fn is_foreign(name: &str) -> bool {
    let is_capital = |byte: u8| byte.is_ascii_uppercase() || matches!(byte, b'_' | b'-');
    name.contains('.') || (name.len() > 1 && name.bytes().all(is_capital))
}

/// Returns whether an element often stands amid text.
fn is_formatting(name: &str) -> bool {
    matches!(name, "a" | "b" | "code" | "em" | "i" | "span" | "strong" | "u")
}
