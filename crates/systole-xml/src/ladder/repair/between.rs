//! Text between two top-level elements: does it lead from one to the next, or may it take one of them back?
//!
//! A model drafts an element, and then writes the one that it means. No list can hold all the words with which it says so. So
//! the rule is what may stand between two elements that are sent:
//! - nothing but white space, fences, rules, commas, tokens of a template and thoughts that are dropped;
//! - the same list mark before each (`1.` and `2.`, but not `-` and `+`);
//! - words that lead on (`and then:`) or stand in the next element (`Then the paper:`);
//! - the same label before each (`Action:`);
//! - a part of a sentence that begins with a conjunction (`and then the right one:`) or, before an element of another name,
//!   leads on (`I also tell the user:`), if none of its words denies.
//!
//! All else is refused: the first element may be a draft.

use std::ops::Range;

use super::lexis::excerpt;
use super::outside::Root;
use super::scan::Scanner;
use super::tag::StartTag;
use super::words::{Joint, joint, words};
use super::{RepairError, fence};
use crate::ladder::scan::split_prefix;

/// Signs that end a part of a sentence.
const STOPS: [char; 10] = [',', '，', '、', ';', '.', '。', ':', '：', '–', '—'];

/// Words with which a sentence goes on, in many languages.
const CONJUNCTIONS: [&str; 21] = [
    "and",
    "dann",
    "e",
    "en",
    "et",
    "i",
    "luego",
    "och",
    "og",
    "poi",
    "puis",
    "then",
    "und",
    "y",
    "затем",
    "и",
    "ثم",
    "और",
    "そして",
    "然后",
    "그리고",
];

/// Longest text around an element that is looked at.
const NEAR: usize = 1024;

impl<'t> Scanner<'t> {
    /// Records a start tag if the text between the last top-level element and it may take that element back.
    pub(super) fn note_between(&mut self, tag: &StartTag<'t>) {
        let Root { start, end, lead, name, .. } = self.outside.root;
        if self.roots < 2 || end <= start || self.outside.doubt.is_some() {
            return;
        }
        let gap = self.spoken_in(end, tag.start);
        let lead = self.spoken_in(floor(self.text, lead.max(start.saturating_sub(NEAR))), start);
        let end = self.pairs.end_of(tag.start).unwrap_or(tag.end);
        let own = &self.text[tag.start..floor(self.text, end.min(tag.end + NEAR))];
        let is_same = split_prefix(name).1 == split_prefix(tag.name).1;
        let between = Between { gap: &gap, lead: &lead, own, is_same };
        if !between.leads_on() {
            let at = self.position(tag.start);
            self.outside.doubt = Some(RepairError::Between { at, name: excerpt(tag.name) });
        }
    }

    /// Records a stretch that says nothing: thoughts that are dropped, or tokens.
    pub(super) fn silence(&mut self, start: usize, end: usize) {
        self.outside.silent.push((start, end));
    }

    /// The text of a stretch without silent ones, fences, rules and the signs of comments and end tags.
    fn spoken_in(&self, start: usize, end: usize) -> String {
        let mut from = start;
        let first = self.outside.silent.partition_point(|(_, behind)| *behind <= from);
        let mut spoken = String::new();
        for &(silent, behind) in self.outside.silent[first..].iter().take_while(|(silent, _)| *silent < end) {
            spoken.push_str(&self.text[from..silent.max(from)]);
            spoken.push(' ');
            from = behind.clamp(from, end);
        }
        spoken.push_str(&self.text[from..end]);
        while let Some(sign) = sign(&spoken) {
            // The end of the comment is behind its start.
            let is_comment = sign.len() == 4;
            let start = sign.start;
            spoken.replace_range(sign, "\n");
            if let Some(end) = spoken[start..].find("-->").filter(|_| is_comment) {
                spoken.replace_range(start + end..start + end + 3, "\n");
            }
        }
        let lines = spoken.split('\n').map(|line| if is_silent(line.trim()) { "" } else { line });
        lines.collect::<Vec<_>>().join("\n").replace("</", " ").replace("\\n", " ")
    }
}

/// The first sign that says nothing: of a comment, or a token of a template (`<|tool_call_end|>`).
fn sign(text: &str) -> Option<Range<usize>> {
    const LONGEST: usize = 64;
    memchr::memchr_iter(b'<', text.as_bytes()).find_map(|at| {
        let rest = &text[at..];
        if rest.starts_with("<!--") {
            return Some(at..at + 4);
        }
        let close = rest.find('>').filter(|&close| close <= LONGEST && rest[1..].starts_with(['|', '｜']))?;
        rest[..close].ends_with(['|', '｜']).then_some(at..at + close + 1)
    })
}

/// The last boundary of a character at or before an offset.
fn floor(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// Returns whether a line is a fence or a rule of Markdown.
fn is_silent(line: &str) -> bool {
    let mut signs = line.chars().filter(|c| !c.is_whitespace());
    let first = signs.next();
    let is_rule = first.is_some_and(|first| "-*_=#".contains(first) && signs.all(|c| c == first)) && line.len() >= 3;
    is_rule || fence::is_line(line)
}

/// The text between two elements, with what it is judged by.
struct Between<'b> {
    gap: &'b str,
    /// The text before the first element.
    lead: &'b str,
    /// The second element.
    own: &'b str,
    /// True if both have one name.
    is_same: bool,
}

impl Between<'_> {
    fn leads_on(&self) -> bool {
        let said: Vec<(usize, usize, String)> = words(self.gap).collect();
        if !said.iter().any(|(.., word)| is_word(word)) {
            return self.marks_agree();
        }
        // What stands before the first element may say whose it is, or that it is none.
        let label = self.lead.trim_end().rsplit('\n').next().unwrap_or_default();
        let mut label = words(label).map(|(.., word)| joint(&word));
        if self.is_same && label.any(|joint| matches!(joint, Joint::Denies | Joint::Names)) {
            return false;
        }
        if !self.gap.chars().all(|c| c.is_alphanumeric() || c.is_whitespace() || is_plain(c) || "-*#_•/>".contains(c))
            || said.iter().any(|(.., word)| joint(word) == Joint::Denies)
        {
            return false;
        }
        let own: Vec<String> = words(self.own).map(|(.., word)| word).collect();
        let says_nothing = |word: &String| match joint(word) {
            Joint::Unknown => own.contains(word),
            joint => joint != Joint::Names,
        };
        if said.iter().all(|(.., word)| says_nothing(word)) || self.is_label_repeated(&said) {
            return true;
        }
        // A part of a sentence: one that ends is a statement, and what stands before a comma may deny.
        let parts = |at: usize, behind: usize| self.gap[at..behind].contains(STOPS);
        let broken = said.windows(2).rposition(|pair| parts(pair[0].1, pair[1].0)).map_or(0, |last| last + 1);
        let joins = match self.is_same {
            true => CONJUNCTIONS.contains(&said[0].2.as_str()),
            false => said.iter().any(|(.., word)| joint(word) == Joint::Joins),
        };
        joins && said[..broken].iter().all(|(.., word)| says_nothing(word))
    }

    /// Returns whether the lines with the two elements begin with the same mark, and nothing else is there.
    fn marks_agree(&self) -> bool {
        let Some((behind, lines)) = self.gap.split_once('\n') else { return self.gap.chars().all(is_separator) };
        let (between, mark) = lines.rsplit_once('\n').unwrap_or(("", lines));
        let before = self.lead.rsplit('\n').next().unwrap_or_default();
        let is_introduced = words(before).any(|(.., word)| is_word(&word));
        let is_number = |line: &str| {
            let is_mark = |c| is_separator(c) || c.is_alphanumeric() || "-*#_".contains(c);
            line.chars().all(is_separator) || (line.contains(char::is_alphanumeric) && line.chars().all(is_mark))
        };
        behind.chars().all(is_separator)
            && between.split('\n').all(is_number)
            && mark.chars().all(|c| is_separator(c) || c.is_alphanumeric() || "-*+#_•‣◦·–—→✅✔".contains(c))
            && if is_introduced { shape(mark).is_empty() } else { shape(mark) == shape(before) }
    }

    /// Returns whether the same words stand before the first element, without a number.
    fn is_label_repeated(&self, said: &[(usize, usize, String)]) -> bool {
        let before: Vec<String> = words(self.lead).map(|(.., word)| word).collect();
        let is_number = |(.., word): &(usize, usize, String)| word.contains(char::is_numeric);
        before.len() >= said.len()
            && !said.iter().any(is_number)
            && before[before.len() - said.len()..].iter().eq(said.iter().map(|(.., word)| word))
    }
}

/// Tests for a word, rather than a number or the letter of a list.
fn is_word(word: &str) -> bool {
    word.chars().count() > 1 && !word.chars().all(char::is_numeric)
}

/// Tests for a sign of plain text around words.
fn is_plain(c: char) -> bool {
    is_separator(c) || matches!(c, '’' | '，' | '。' | '、' | '：' | '–' | '—')
}

/// Tests for a sign that only separates or encloses.
fn is_separator(c: char) -> bool {
    c.is_whitespace() || matches!(c, ',' | ';' | ':' | '.' | '"' | '\'' | '`' | '(' | ')' | '[' | ']' | '{' | '}')
}

/// The form of a list mark: runs of digits and of letters count as one, brackets that open and quotes as nothing.
fn shape(mark: &str) -> String {
    let mut shape = String::new();
    for c in mark.chars() {
        let class = match c {
            '"' | '\'' | '`' | '(' | '[' | '{' | ',' => continue,
            _ if c.is_whitespace() => continue,
            _ if c.is_numeric() => '0',
            _ if c.is_alphabetic() => 'a',
            _ => c,
        };
        if !(shape.ends_with(class) && matches!(class, '0' | 'a')) {
            shape.push(class);
        }
    }
    shape
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_of_a_list_agree() {
        for (one, other, expected) in [
            ("1. ", "2. ", true),
            ("9) ", "10) ", true),
            ("a) ", "b) ", true),
            ("- ", "- ", true),
            ("✅ ", "✅ ", true),
            ("[1] ", "[2] ", true),
            ("  \"", "  \"", true),
            ("10:01 ", "10:02 ", true),
            ("- ", "+ ", false),
            (";; ", "", false),
            ("", "- ", false),
            ("[ ] ", "[x] ", false),
            ("❌ ", "✅ ", false),
        ] {
            assert_eq!(shape(one) == shape(other), expected, "{one} {other}");
        }
    }
}
