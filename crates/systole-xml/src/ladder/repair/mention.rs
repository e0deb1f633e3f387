//! Mentions: tags with the form of a start tag that have no end tag anywhere, and are text by the text around them.
//!
//! These rules never touch well-formed input: there every start tag has its end tag.

use super::elements::is_void;
use super::lexis::is_space;
use super::meant::is_amid_text;
use super::pairs::key;
use super::scan::Scanner;
use super::tag::{Form, StartTag};

/// Bytes before and behind a tag in which a code span is searched: a bound, so that one long line full of tags costs
/// little.
const NEAR: usize = 256;

impl<'t> Scanner<'t> {
    /// Returns whether a start tag reads as text: `Vec<T> is`, `i<n then j>m`, `#include <vector>`, `(?<year>`,
    /// `"<name>"`, `Dear <NAME>,` or `<T>` in a code span.
    pub(super) fn reads_as_text(&mut self, tag: &StartTag<'t>) -> bool {
        if tag.empty || is_void(tag) {
            return false;
        }
        let (before, behind) = self.text.split_at(tag.start);
        let behind = &behind[tag.end - tag.start..];
        let (Some(last), Some(next)) = (before.chars().next_back(), behind.chars().next()) else { return false };
        let stands_free = !next.is_alphanumeric() && (next != '<' || behind.starts_with("</"));
        let words = tag.count > 0 && self.tags.attributes.iter().all(|attribute| attribute.form == Form::Valueless);
        let is_text = is_pair(last, next)
            || (stands_free && (last.is_alphanumeric() || last == '<'))
            || (is_amid_text(before)
                && (is_foreign(tag.name) || !(self.tree.is_empty() || is_formatting(tag.name)))
                && (words || (tag.count == 0 && stands_free)))
            || is_comparison(before)
            || before.ends_with("(?")
            || (is_amid_text(before) && !self.tree.is_empty() && tag.count == 0 && goes_on(behind))
            || is_in_code_span(before, behind);
        is_text && !self.pairs.is_closed(tag.start)
    }

    /// Returns whether a start tag that doesn't read as text may still be text, and nothing tells: it has no attributes and
    /// no end tag, and stands between two words (`cmp a<b>c`), in front of a number, as a word of a line, or before text in an element of only text that has no
    /// end tag either (`<ann> hi <bob> hey`). `leaf` is the start of the innermost element, if it holds only text.
    pub(super) fn is_undecided(&mut self, tag: &StartTag<'t>, leaf: Option<usize>) -> bool {
        if tag.empty || tag.count > 0 || is_void(tag) || self.pairs.is_closed(tag.start) {
            return false;
        }
        let (before, behind) = (&self.text[..tag.start], &self.text[tag.end..]);
        let is_between_words = before.ends_with(is_operand) && behind.starts_with(char::is_alphanumeric);
        let is_word = self.stands_as_word(tag) || !(behind.starts_with('<') || begins_word(behind));
        let is_word = is_word && is_amid_text(before);
        is_between_words
            || is_word
            || leaf.is_some_and(|leaf| !self.pairs.is_closed(leaf)) && self.text_follows(tag.end)
    }
}

/// The readings of a start tag in an element that may hold it, and text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Amid {
    Element,
    Text,
    Either,
}

impl<'t> Scanner<'t> {
    /// Reads a start tag in an element that may hold it, and text. Without an end tag it is a comparison or a type behind
    /// a word (`i<b>0`, `set<b>::iterator`), and may be a mention in front of a space; in front of a word it begins an
    /// element.
    pub(super) fn read_amid_text(&mut self, tag: &StartTag<'t>, child: &str) -> Amid {
        if tag.empty || is_void(tag) {
            return Amid::Element;
        }
        if self.pairs.is_closed(tag.start) {
            return if self.may_share_end(tag, child) { Amid::Either } else { Amid::Element };
        }
        let (before, behind) = (&self.text[..tag.start], &self.text[tag.end..]);
        let is_glued = before.ends_with(is_operand);
        let is_amid = is_glued || is_amid_text(before);
        if tag.count > 0 {
            let has_words = self.tags.attributes.iter().all(|attribute| attribute.form == Form::Valueless);
            return if has_words && is_amid { Amid::Text } else { Amid::Element };
        }
        let is_doubtful = is_glued || self.stands_as_word(tag) || (is_amid && !begins_word(behind));
        match is_doubtful {
            true if is_glued && goes_on(behind) => Amid::Text,
            true => Amid::Either,
            false => Amid::Element,
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
    /// name: at the start of a line, behind markup, or behind the end of a sentence; or with attributes, or where
    /// HTML allows to omit end tags of its name.
    pub(super) fn begins_item(&self, tag: &StartTag<'_>) -> bool {
        let until = &self.text[..tag.start];
        let before = until.trim_end_matches([' ', '\t']);
        let is_behind_markup = before.len() == self.tail || before.ends_with("]]>") || before.ends_with("-->");
        let is_apart = before.len() < until.len() || self.text[tag.end..].starts_with(char::is_uppercase);
        !self.stands_as_word(tag)
            && (tag.count > 0
                || is_behind_markup
                || before.ends_with(['\n', '\r'])
                || (is_apart && before.ends_with(['.', '!', '?']))
                || matches!(&*key(tag.name), "li" | "dt" | "dd" | "td" | "th" | "tr" | "option"))
    }
}

impl Scanner<'_> {
    /// Returns whether a start tag stands as an end tag does: right behind a word or a sentence, and in front of white space
    /// or punctuation that begins nothing (`bold<b> text`).
    pub(super) fn is_between_word_and_space(&self, tag: &StartTag<'_>) -> bool {
        let (before, behind) = (&self.text[..tag.start], &self.text[tag.end..]);
        let is_behind = before.ends_with(|c: char| is_operand(c) || matches!(c, '.' | '!' | '?'));
        is_behind && behind.starts_with([' ', '\n', '\r', '\t', ',', ';', ':', '.', '?', '!', ')'])
    }

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

/// Returns whether the word before a tag holds a `<`: `a<b<c>0`.
fn is_comparison(before: &str) -> bool {
    let near = &before.as_bytes()[before.len().saturating_sub(NEAR)..];
    let word = near.iter().rev().take_while(|&&byte| !is_space(byte) && byte != b'>');
    let mut word = word.copied().peekable();
    word.peek().is_some_and(u8::is_ascii_alphanumeric) && word.any(|byte| byte == b'<')
}

/// Returns whether a character ends a word, or the operand of a comparison.
fn is_operand(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | ')' | ']')
}

/// Returns whether a text goes on behind a word, rather than begins: `, then`, `::new`.
fn goes_on(text: &str) -> bool {
    text.starts_with([',', ';', ':', '.', '?', '!', ')', ']', '}', '>'])
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

/// Returns whether two characters enclose the text between them.
fn is_pair(open: char, close: char) -> bool {
    matches!((open, close), ('"', '"') | ('\'', '\'') | ('(', ')') | ('[', ']') | ('“' | '„', '”' | '“') | ('‘', '’'))
}

fn is_in_code_span(before: &str, behind: &str) -> bool {
    let before = &before.as_bytes()[before.len().saturating_sub(NEAR)..];
    let behind = &behind.as_bytes()[..behind.len().min(NEAR)];
    let Some(line) = memchr::memrchr(b'\n', before).map(|end| &before[end + 1..]) else {
        return before.len() < NEAR && is_span(before, behind);
    };
    is_span(line, behind)
}

/// Returns whether a code span is open behind the start of a line, and closes on it.
fn is_span(before: &[u8], behind: &[u8]) -> bool {
    let closes = memchr::memchr2(b'`', b'\n', behind).is_some_and(|at| behind[at] == b'`');
    closes && memchr::memchr_iter(b'`', before).count() % 2 == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_spans_are_found_on_the_line() {
        for (before, behind, expected) in [
            ("a `", "` b", true),
            ("a `b` ", "` b", false),
            ("a `", "\n`", false),
            ("`\n", "`", false),
            ("`x\n`", "`", true),
            ("`", "", false),
        ] {
            assert_eq!(is_in_code_span(before, behind), expected, "{before:?} {behind:?}");
        }
        assert!(!is_in_code_span(&format!("`{}", "x".repeat(NEAR)), "`"));
    }
}
