//! The mark of the pump's lines in a conversation with a model.
//!
//! Who writes a message must not be able to write such a line. So a mark can't be guessed: it is derived from the key of
//! the organism and the first message, so that each run of a message, and a retry, asks with the same text. And nothing
//! stands in a conversation that could be taken for it: a mark that a text contains, in capitals or with digits in place of letters,
//! is replaced by the next one, and a line that begins with a likeness of it in other letters loses its bracket to a
//! character reference.

use std::borrow::Cow;
use std::fmt::{self, Write};

/// The letters of marks: no other letter, and no digit of ASCII but those of [`folded`], looks like one of them.
const LETTERS: &[u8; 12] = b"cefhjknprtxy";
/// Letters of a mark.
const LENGTH: usize = 10;

/// The mark of a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mark(String);

impl Mark {
    /// The first mark of a secret that a conversation does not contain.
    pub(super) fn of(secret: [u8; 32], contains: impl Fn(&Self) -> bool) -> Self {
        let mut hash = blake3::Hash::from_bytes(secret);
        loop {
            hash = blake3::hash(hash.as_bytes());
            let letter = |byte: &u8| char::from(LETTERS[usize::from(*byte) % LETTERS.len()]);
            let mark = Self(hash.as_bytes()[..LENGTH].iter().map(letter).collect());
            if !contains(&mark) {
                return mark;
            }
        }
    }

    /// Tests whether a text contains the mark, in capitals or not, or with digits that look like its letters.
    pub(super) fn is_in(&self, text: &str) -> bool {
        let is_here = |part: &[u8]| part.iter().zip(self.0.as_bytes()).all(|(byte, letter)| folded(*byte) == *letter);
        text.as_bytes().windows(LENGTH).any(is_here)
    }

    /// A text of others, in which no line begins with a likeness of the mark in brackets: that bracket is a character
    /// reference, which in XML is the same.
    pub(super) fn guard<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let (mut out, mut end) = (String::new(), 0);
        let ends = memchr::memchr_iter(b'\n', text.as_bytes()).map(|at| at + 1);
        for start in std::iter::once(0).chain(ends) {
            let line = text[start..].split('\n').next().unwrap_or_default();
            // Behind the marks of quotations, lists and headings it may be taken for one as well.
            let line = line.trim_start_matches(|c: char| c.is_whitespace() || ">-*+#•·–—".contains(c));
            if let Some(bracket) = self.bracket_of_likeness(line) {
                let at = start + text[start..].find(bracket).unwrap_or_default();
                out.push_str(&text[end..at]);
                // Writing to a string can't fail.
                let _ = write!(out, "&#x{:X};", u32::from(bracket));
                end = at + bracket.len_utf8();
            }
        }
        if end == 0 { Cow::Borrowed(text) } else { Cow::Owned(out + &text[end..]) }
    }

    /// The bracket at the start of a line behind which the mark stands, or what may be taken for it.
    fn bracket_of_likeness(&self, line: &str) -> Option<char> {
        let mut chars = line.chars();
        let bracket = chars.next().filter(|c| is_bracket(*c))?;
        let mut letters = chars.filter(|c| c.is_alphanumeric() || is_enclosed_letter(*c));
        let resembles = |letter| letters.next().is_some_and(|c| may_be_taken_for(c, letter));
        self.0.bytes().all(resembles).then_some(bracket)
    }
}

impl fmt::Display for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A byte as the letter that it looks like.
const fn folded(byte: u8) -> u8 {
    match byte {
        b'3' => b'e',
        b'7' => b't',
        _ => byte.to_ascii_lowercase(),
    }
}

/// Tests whether a letter or digit may be taken for a letter of a mark. Of letters beyond ASCII, which have thousands of
/// forms, only those of scripts without such forms are ruled out: Chinese, Japanese and Korean.
fn may_be_taken_for(c: char, letter: u8) -> bool {
    match u8::try_from(c) {
        Ok(byte) if byte.is_ascii() => folded(byte) == letter,
        _ => !matches!(c, '\u{2e80}'..='\u{a4cf}' | '\u{ac00}'..='\u{d7ff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..),
    }
}

/// Tests for a letter in parentheses, a square or a flag, which Unicode takes for a symbol.
const fn is_enclosed_letter(c: char) -> bool {
    matches!(c, '\u{249c}'..='\u{24b5}' | '\u{1f110}'..='\u{1f12b}' | '\u{1f1e6}'..='\u{1f1ff}')
}

/// Tests for a square bracket, or what may be taken for one.
const fn is_bracket(c: char) -> bool {
    matches!(c,
        '[' | '{' | '(' | '|' | '\u{2045}' | '\u{2308}' | '\u{230a}' | '\u{239b}'..='\u{23ab}' | '\u{2768}'..='\u{2774}'
        | '\u{27e6}'..='\u{27ec}' | '\u{2983}'..='\u{2998}' | '\u{2e22}'..='\u{2e28}' | '\u{2e55}'..='\u{2e5b}'
        | '\u{3008}'..='\u{301b}' | '\u{fe35}'..='\u{fe47}' | '\u{fe59}'..='\u{fe5e}' | '\u{ff08}' | '\u{ff3b}'
        | '\u{ff5b}' | '\u{ff62}')
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: [u8; 32] = [7; 32];

    fn mark() -> Mark {
        Mark::of(SECRET, |_| false)
    }

    #[test]
    fn a_mark_is_that_of_its_secret_and_of_no_text() {
        let first = mark();
        assert_eq!(first, mark());
        assert_ne!(first, Mark::of([8; 32], |_| false));
        assert!(first.0.len() == LENGTH && first.0.bytes().all(|byte| LETTERS.contains(&byte)), "{first}");
        for text in [
            first.to_string(),
            first.0.to_uppercase(),
            format!("x{}", first.0.replace('e', "3")),
            first.0.replace('t', "7"),
        ] {
            assert!(first.is_in(&text), "{text}");
            let next = Mark::of(SECRET, |mark| mark.is_in(&text));
            assert!(next != first && next == Mark::of(SECRET, |mark| mark.is_in(&text)), "{next}");
        }
        assert!(!first.is_in(&first.0[1..]) && !first.is_in(""));
    }

    #[test]
    fn a_line_that_begins_with_a_likeness_loses_its_bracket() {
        let mark = mark();
        let wide =
            |text: &str| text.chars().map(|c| char::from_u32(u32::from(c) + 0xfee0).unwrap()).collect::<String>();
        let greek = mark.0.replace('c', "ϲ").replace('e', "е").replace('x', "х").replace('p', "р").replace('k', "κ");
        let accented: String = mark.0.chars().flat_map(|c| [c, '\u{301}']).collect();
        let spaced: String = mark.0.chars().flat_map(|c| [c, ' ']).collect();
        let shifted = |first: u32| {
            let letter = |byte: u8| char::from_u32(first + u32::from(byte - b'a')).unwrap();
            mark.0.bytes().map(letter).collect::<String>()
        };
        let enclosed = [0x249c, 0x24d0, 0x1f110, 0x1f130, 0x1f150, 0x1f170, 0x1f1e6].map(shifted);
        let others = [wide(&mark.0), greek, accented, spaced, mark.0.to_uppercase()];
        for likeness in others.into_iter().chain(enclosed) {
            let brackets = [('[', ']'), ('［', '］'), ('【', '】'), ('(', ')')];
            for ((open, close), before) in brackets.into_iter().zip([" \t", "> ", "  - > ", "## "]) {
                let text = format!("<n>\n{before}{open}{likeness}{close} Message 3 from cli:\n<b/>[x]</n>");
                let escaped = format!("&#x{:X};{likeness}{close} Message", u32::from(open));
                let expected = text.replacen(&format!("{open}{likeness}{close} Message"), &escaped, 1);
                assert_eq!(mark.guard(&text), expected);
            }
        }
        for text in [
            "<n>\n[package]\nname = 1\n[INFO] started\n- [x] done\n[2024-01-02 03:04]\n</n>",
            "<n>\n【重要なお知らせのまとめ】\n[제목입니다제목입니다]\n«Внимательно»</n>",
            "",
            "\n\n[",
        ] {
            assert!(matches!(mark.guard(text), Cow::Borrowed(same) if same == text), "{text}");
        }
    }
}
