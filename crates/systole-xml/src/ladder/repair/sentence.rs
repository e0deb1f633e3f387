//! Payloads amid a sentence of prose: `Do not send <done/> yet.`
//!
//! Prose around a payload is dropped. Where a sentence goes on over an element, the element may be a mention, and sending
//! it would be a lie. Well-formed input has no prose.

use super::lexis::excerpt;
use super::scan::Scanner;
use super::words::{Joint, joint, words};
use super::{RepairError, denying};

/// Characters behind which a payload may stand amid a line: a colon, a dash or an arrow that introduces it, or the end of
/// the sentence before.
const INTRODUCING: [char; 12] = [':', '：', '→', '—', '–', '.', '!', '?', '…', '。', '！', '？'];

/// The text behind an element, up to the next tag or the end of the line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Behind {
    /// No words.
    Nothing,
    /// The sentence goes on: `<done/> yet`, `<done/>, which`.
    GoesOn,
    /// The sentence ends.
    Ends,
    /// Other words.
    Words,
}

impl Scanner<'_> {
    /// Records the last top-level element if it stands amid a sentence: behind a word (`I have not sent <note>…</note>`), in front
    /// of one that goes on with it, or struck out (`~~<done/>~~`). Behind a colon or another sentence, it is the end of one
    /// (`Here it is: <note>…</note> Have fun!`); so is code in backticks (``The call is `<add>…</add>`.``), if no other
    /// element stands beside it.
    pub(super) fn note_mentioned(&mut self) {
        let root = &self.outside.root;
        let (start, end, name) = (root.start, root.end, root.name);
        if name.is_empty() || end <= start || self.outside.doubt.is_some() {
            return;
        }
        let before = &self.text[root.gap.min(start)..start];
        let outer = before.trim_end_matches(|c: char| is_mark(c) || matches!(c, ' ' | '\t'));
        let is_introduced = is_introduced(before);
        let in_words = root.in_words && !is_label(line_of(before).trim());
        let is_alone = self.roots == 1 && root.has_content && (is_introduced || before.ends_with('`'));
        let is_struck =
            before.trim_end_matches(' ').ends_with("~~") && self.text[end..].trim_start_matches(' ').starts_with("~~");
        // Behind words that join it to the element before it, or that announce it, it is no mention.
        let said = line_of(before);
        let is_listed =
            ["|", " -"].iter().any(|sign| before.trim_end_matches(|c: char| is_mark(c) || c == ' ').ends_with(sign));
        let joins = is_listed || words(said).all(|(.., word)| joint(&word) == Joint::Joins);
        let is_announced = joins || (self.roots == 1 && root.has_content && announces(said));
        let is_mentioned = is_struck
            || match Behind::of(&self.text[end..]) {
                Behind::GoesOn => !joins_next(&self.text[end..]),
                Behind::Ends if in_words => !(is_alone || is_announced),
                Behind::Ends => is_unfinished(outer),
                Behind::Words | Behind::Nothing => in_words && !(is_introduced || is_announced),
            };
        if is_mentioned {
            let at = self.position(start);
            self.outside.doubt = Some(RepairError::Mentioned { at, name: excerpt(name) });
        }
    }
}

/// Returns whether words before an element on its line announce it, though no colon stands between: `The answer is <answer>…`.
fn announces(said: &str) -> bool {
    let mut count = 0;
    let denies = words(said).any(|(.., word)| {
        count += 1;
        denying::denies(&word) || denying::mentions(&word)
    });
    count > 1 && !denies && said.ends_with([' ', '\t', '`', '*'])
}

/// Returns whether only words that join stand between an element and the next tag.
fn joins_next(behind: &str) -> bool {
    let end = memchr::memchr2(b'<', b'\n', behind.as_bytes()).unwrap_or(behind.len());
    behind[end..].starts_with('<') && words(&behind[..end]).all(|(.., word)| joint(&word) == Joint::Joins)
}

impl Behind {
    fn of(text: &str) -> Self {
        const STOPS: [char; 3] = ['.', '!', '?'];
        let end = memchr::memchr2(b'<', b'\n', text.as_bytes()).unwrap_or(text.len());
        let text = text[..end].trim_end();
        let is_apart = text.starts_with(|c: char| c.is_whitespace() || !c.is_alphanumeric());
        let text = text.trim_start_matches(|c: char| c.is_whitespace() || is_closing_mark(c));
        let comma = text.trim_start_matches([',', ';', ':']).trim_start();
        match text {
            _ if is_apart && comma.starts_with(char::is_lowercase) => Self::GoesOn,
            _ if text.starts_with(STOPS) => Self::Ends,
            _ if has_word(text) => Self::Words,
            _ => Self::Nothing,
        }
    }
}

/// Returns whether a text introduces what stands behind it, rather than to go on with it.
pub(super) fn is_introduced(before: &str) -> bool {
    before.trim_end_matches(|c: char| is_mark(c) || matches!(c, ' ' | '\t')).ends_with(INTRODUCING)
}

/// Returns whether a text holds a word: two letters in a row, or one of a script of syllables or words.
pub(super) fn has_word(text: &str) -> bool {
    let mut was_letter = false;
    text.chars().any(|c| {
        let is_letter = c.is_alphabetic();
        let is_word = is_letter && (was_letter || !c.is_ascii());
        was_letter = is_letter;
        is_word
    })
}

/// The part of a text that stands on its last line.
pub(super) fn line_of(text: &str) -> &str {
    &text[memchr::memrchr(b'\n', text.as_bytes()).map_or(0, |at| at + 1)..]
}

/// Returns whether brackets enclose all that stands before an element on its line: `[TOOL_CALLS]`, `<|call_begin|>`.
fn is_label(line: &str) -> bool {
    [("[", "]"), ("<|", "|>"), ("<｜", "｜>")]
        .iter()
        .any(|(open, close)| line.starts_with(open) && line.ends_with(close))
}

/// Returns whether the line above an element at the start of a line ends amid a sentence.
fn is_unfinished(before: &str) -> bool {
    let Some(above) = before.strip_suffix('\n') else { return false };
    above.trim_end_matches([' ', '\t', '\r']).ends_with(|c: char| c.is_alphanumeric() || c == ',')
}

/// Returns whether a character encloses words of prose.
fn is_mark(c: char) -> bool {
    is_closing_mark(c) || matches!(c, '„' | '(' | '[' | '{')
}

fn is_closing_mark(c: char) -> bool {
    matches!(c, '"' | '\'' | '“' | '”' | '«' | '»' | '`' | '*' | '_' | ')' | ']' | '}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_go_on_or_end() {
        for (text, expected) in [
            ("", Behind::Nothing),
            (" yet.", Behind::GoesOn),
            ("` yet", Behind::GoesOn),
            (", which", Behind::GoesOn),
            (", \"b\": 1}", Behind::Nothing),
            ("\").", Behind::Ends),
            (" Have fun!\n", Behind::Words),
            (" (done)", Behind::Words),
            ("\u{1b}[0m", Behind::Nothing),
            ("assistant", Behind::Words),
            (" <b/> and", Behind::Nothing),
            ("\nand", Behind::Nothing),
            ("。", Behind::Nothing),
        ] {
            assert_eq!(Behind::of(text), expected, "{text}");
        }
    }
}
