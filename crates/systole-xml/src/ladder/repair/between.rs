//! Text between two top-level elements: does it lead from one to the next, or may it take one of them back?
//!
//! A model drafts an element, and then writes the one that it means. No list can hold all the words with which it says so. So
//! the rule is what may stand between two elements that are sent:
//! - nothing but white space, fences (with the name of a language at most), rules, commas and the tokens of a template that
//!   say where something begins or ends;
//! - the same list mark before each (`1.` and `2.`, but not `-` and `+`);
//! - words that lead on (`and then:`) or stand in the next element (`Then the paper:`);
//! - the same label before each (`Action:`);
//! - before an element of another name a part of a sentence that leads on (`I also tell the user:`), if none of its words
//!   denies.
//!
//! All else is refused: the first element may be a draft. So is a thought between the two, which may take the first one back.

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

/// Words in tokens of templates that say where something begins or ends, and no more.
const TOKENS: [&str; 34] = [
    "action",
    "args",
    "argument",
    "arguments",
    "assistant",
    "begin",
    "bom",
    "call",
    "calls",
    "channel",
    "commentary",
    "constrain",
    "end",
    "eom",
    "eos",
    "eot",
    "fim",
    "final",
    "function",
    "functions",
    "id",
    "im",
    "invoke",
    "message",
    "of",
    "return",
    "section",
    "sep",
    "start",
    "text",
    "tool",
    "tools",
    "turn",
    "xml",
];

/// Languages in the line of a fence that say nothing about its content.
const LANGUAGES: [&str; 16] = [
    "action",
    "call",
    "calls",
    "code",
    "html",
    "json",
    "markdown",
    "md",
    "plaintext",
    "text",
    "tool",
    "tools",
    "txt",
    "xhtml",
    "xml",
    "yaml",
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
        let end_of_first = end;
        let end = self.pairs.end_of(tag.start).unwrap_or(tag.end);
        let own = &self.text[tag.start..floor(self.text, end.min(tag.end + NEAR))];
        let is_same = split_prefix(name).1 == split_prefix(tag.name).1;
        let between = Between { gap: &gap, lead: &lead, own, is_same };
        if self.thinks_between(end_of_first, tag.start) || !between.leads_on() {
            let at = self.position(tag.start);
            self.outside.doubt = Some(RepairError::Between { at, name: excerpt(tag.name) });
        }
    }

    /// Records a stretch that says nothing: thoughts that are dropped, or tokens.
    pub(super) fn silence(&mut self, start: usize, end: usize) {
        self.outside.silent.push((start, end));
    }

    /// Returns whether a thought with words stands in a stretch: a model that thinks once more may think otherwise.
    fn thinks_between(&self, start: usize, end: usize) -> bool {
        let within = self.outside.thoughts.iter().filter(|(from, behind)| *from >= start && *behind <= end);
        within
            .into_iter()
            .any(|&(from, behind)| words(&self.text[from..behind]).filter(|(.., word)| is_word(word)).count() > 2)
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
        let is_of_template = || words(&rest[2..close]).all(|(.., word)| TOKENS.contains(&word.as_str()));
        (rest[..close].ends_with(['|', '｜']) && is_of_template()).then_some(at..at + close + 1)
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
    is_rule || (fence::is_line(line) && words(line).all(|(.., word)| LANGUAGES.contains(&word.as_str())))
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
        // A fence or a token that is none of a template may say what the first element is.
        let head = self.lead.trim_end().rsplit('\n').next().unwrap_or_default();
        if self.is_same && (fence::is_line(head.trim_start()) || head.contains("<|")) {
            return false;
        }
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
        let joins = !self.is_same && said.iter().any(|(.., word)| joint(word) == Joint::Joins);
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
