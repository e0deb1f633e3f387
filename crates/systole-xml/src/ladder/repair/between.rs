//! Text between two top-level elements: does it lead from one to the next, or may it take one of them back?
//!
//! A model drafts an element, and then writes the one that it means. No list can hold all the words with which it says so. So
//! the rule is what may stand between two elements that are sent:
//! - nothing but white space, fences (with the name of a language at most), rules, commas and the tokens of a template that
//!   say where something begins or ends;
//! - the same list mark before each (`1.` and `2.`, but not `-` and `+`);
//! - words that lead on (`and then:`), stand in the next element (`Then the paper:`), or name one thing (`Now the paper:`);
//! - the same label of known words before each (`Action:`), or labels of one form (`Pens: …`, `Paper: …`; `Suche 1:`, `Suche 2:`);
//! - before an element of another name a part of a sentence that leads on (`I also tell the user:`), if it names the element or
//!   an answer.
//!
//! None of the words may deny, judge or choose (`denying.rs`). All else is refused: the first element may be a draft. So is a
//! thought between the two, or a control character, which may take the first one back.

use std::collections::BTreeSet;
use std::ops::Range;

use super::denying;
use super::frame::{self, Lead};
use super::lexis::excerpt;
use super::outside::Root;
use super::scan::Scanner;
use super::source::Mark;
use super::tag::StartTag;
use super::words::{Joint, is_answer, is_user, joint, words};
use super::{RepairError, RepairKind, Shape, fence};
use crate::ladder::scan::split_prefix;
use crate::vocab::is_name_char;

/// Signs that end a part of a sentence.
const STOPS: [char; 10] = [',', '，', '、', ';', '.', '。', ':', '：', '–', '—'];

/// Words in tokens of templates that say where something begins or ends, and no more.
const TOKENS: [&str; 36] = [
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
    "python",
    "return",
    "section",
    "sep",
    "start",
    "tag",
    "text",
    "tool",
    "tools",
    "turn",
    "xml",
];

/// Languages in the line of a fence that say nothing about its content.
const LANGUAGES: [&str; 19] = [
    "action",
    "call",
    "calls",
    "code",
    "html",
    "json",
    "markdown",
    "md",
    "plaintext",
    "python",
    "soap",
    "svg",
    "text",
    "tool",
    "tools",
    "txt",
    "xhtml",
    "xml",
    "yaml",
];

/// Longest text around an element that is looked at.
pub(super) const NEAR: usize = 1024;

impl<'t> Scanner<'t> {
    /// Reads the text before a start tag. Records the tag if the text between the last top-level element and it may take that
    /// element back.
    pub(super) fn note_between(&mut self, tag: &StartTag<'t>) -> Lead {
        let Root { start, end, lead, name, .. } = self.outside.root;
        let own_end = self.pairs.end_of(tag.start).unwrap_or(tag.end);
        let own = &self.text[tag.start..floor(self.text, own_end.min(tag.end + NEAR))];
        let gap = self.heard_in(floor(self.text, end.max(tag.start.saturating_sub(NEAR))), tag.start);
        let beside = self.heard_beside(floor(self.text, end.max(tag.start.saturating_sub(NEAR))), tag.start);
        let frame = self.vocabulary.author().reads(frame::lead(&beside, own));
        if self.roots < 2 || end <= start || self.outside.doubt.is_some() {
            return frame;
        }
        let lead = without_rules(&self.heard_in(floor(self.text, lead.max(start.saturating_sub(NEAR))), start));
        // A control character may delete what stands before it.
        let is_deleted = self.is_controlled(end, tag.start);
        let gap = without_rules(&without_remark(gap, &self.text[start..end]));
        let is_same = split_prefix(name).1 == split_prefix(tag.name).1;
        let other = &self.text[start..floor(self.text, end.min(start + NEAR))];
        let between = Between { gap: &gap, lead: &lead, own, other, is_same };
        let reads = match is_deleted || self.thinks_between(end, tag.start) || frame == Lead::Denies {
            true => Reads::Otherwise,
            false => between.read(),
        };
        match reads {
            Reads::LabelsAgree => {
                if self.outside.root.frame == Lead::Label && between.are_apart() {
                    self.outside.root.frame = Lead::Plain;
                }
                self.note_lead();
            }
            Reads::On => self.note_lead(),
            Reads::Otherwise => {
                let at = self.position(tag.start);
                self.outside.doubt = Some(RepairError::Between { at, name: excerpt(tag.name) });
            }
        }
        Lead::Plain
    }

    /// Returns whether control characters stand in a stretch, which decoding has removed, or a carriage return alone.
    fn is_controlled(&self, start: usize, end: usize) -> bool {
        let text = &self.text.as_bytes()[start..end];
        let returns = memchr::memchr_iter(b'\r', text).any(|at| text.get(at + 1) != Some(&b'\n'));
        let (start, end) = (self.source.raw_end(start), self.source.raw_start(end));
        let within = |mark: &Mark| mark.start as usize >= start && (mark.end as usize) <= end;
        let is_control = |mark: &Mark| mark.kind == RepairKind::ControlCharacter && within(mark);
        let first = self.source.marks.partition_point(|mark| (mark.start as usize) < start);
        returns || self.source.marks[first..].iter().take_while(|mark| (mark.start as usize) < end).any(is_control)
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

    /// The text of a stretch as [`heard_in`](Self::heard_in), without the comments that are no labels: those that hold markup,
    /// many words, or none that denies.
    fn heard_beside(&self, start: usize, end: usize) -> String {
        const MOST: usize = 5;
        let text = &self.text[start..end];
        let (mut heard, mut from) = (String::new(), 0);
        for at in memchr::memmem::find_iter(text.as_bytes(), "<!--") {
            let begin = at + "<!--".len();
            // The end is behind the beginning: `<!-->` opens a comment, as the parser reads it.
            let Some(length) = text[begin..].find("-->").filter(|_| at >= from) else { continue };
            let comment = &text[begin..begin + length];
            let is_short = words(comment).take(MOST + 1).count() <= MOST;
            let denies = words(comment).any(|(.., word)| denying::denies(&word));
            if self.shape == Shape::Document || comment.contains('<') || !(is_short && denies) {
                heard.push_str(&self.heard_in(start + from, start + at));
                from = begin + length + "-->".len();
            }
        }
        heard.push_str(&self.heard_in(start + from, end));
        heard
    }

    /// The text of a stretch without silent ones, and without the signs of comments and templates.
    pub(super) fn heard_in(&self, start: usize, end: usize) -> String {
        let mut from = start;
        let first = self.outside.silent.partition_point(|(_, behind)| *behind <= from);
        let mut heard = String::new();
        for &(silent, behind) in self.outside.silent[first..].iter().take_while(|(silent, _)| *silent < end) {
            heard.push_str(&self.text[from..silent.max(from)]);
            heard.push(' ');
            from = behind.clamp(from, end);
        }
        heard.push_str(&self.text[from..end]);
        while let Some(sign) = sign(&heard) {
            // The end of the comment is behind its start.
            let is_comment = sign.len() == 4;
            let start = sign.start;
            heard.replace_range(sign, "\n");
            if let Some(end) = heard[start..].find("-->").filter(|_| is_comment) {
                heard.replace_range(start + end..start + end + 3, "\n");
            }
        }
        heard.replace("\\n", " ")
    }
}

/// The text behind an element without a remark on its line that only repeats words of the element: `<order>tea</order> (tea)`.
fn without_remark(gap: String, element: &str) -> String {
    let end = gap.find('\n').unwrap_or(0);
    let own: Vec<String> = words(&element[..floor(element, element.len().min(NEAR))]).map(|(.., word)| word).collect();
    let said: Vec<String> = words(&gap[..end]).map(|(.., word)| word).collect();
    let repeats = !said.is_empty() && said.iter().all(|word| own.contains(word));
    if repeats { gap[end..].to_owned() } else { gap }
}

/// A text without fences, rules and the signs of end tags.
fn without_rules(text: &str) -> String {
    let lines = text.split('\n').map(|line| if is_silent(line.trim()) { "" } else { line });
    lines.collect::<Vec<_>>().join("\n").replace("</", " ")
}

/// A text without end tags.
pub(super) fn without_end_tags(text: &str) -> String {
    let mut pieces = text.split("</");
    let mut bare = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let tag = piece.find('>').map_or(0, |end| end + 1);
        bare.push(' ');
        bare.push_str(&piece[tag..]);
    }
    bare
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
        let is_of_template = || words(&rest[1..close]).all(|(.., word)| TOKENS.contains(&word.as_str()));
        (rest[..close].ends_with(['|', '｜']) && is_of_template()).then_some(at..at + close + 1)
    })
}

/// The last boundary of a character at or before an offset.
pub(super) fn floor(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// Returns whether a line is a fence or a rule of Markdown.
fn is_silent(line: &str) -> bool {
    let mut signs = line.chars().filter(|c| !c.is_whitespace());
    let first = signs.next();
    let is_rule = first.is_some_and(|first| "-*_#".contains(first) && signs.all(|c| c == first)) && line.len() >= 3;
    is_rule || (fence::is_line(line) && words(line).all(|(.., word)| is_language(&word)))
}

/// Returns whether a word in the line of a fence says nothing about its content.
pub(super) fn is_language(word: &str) -> bool {
    LANGUAGES.contains(&word)
}

/// The text between two elements, with what it is judged by.
struct Between<'b> {
    gap: &'b str,
    /// The text before the first element.
    lead: &'b str,
    /// The second element.
    own: &'b str,
    /// The first element.
    other: &'b str,
    /// True if both have one name.
    is_same: bool,
}

/// The reading of the text between two elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reads {
    /// It leads on to the second.
    On,
    /// Both have a label of the same form.
    LabelsAgree,
    /// It may take the first back.
    Otherwise,
}

impl Between<'_> {
    fn read(&self) -> Reads {
        match () {
            () if self.leads_on() => Reads::On,
            () if self.labels_agree() => Reads::LabelsAgree,
            () => Reads::Otherwise,
        }
    }

    fn leads_on(&self) -> bool {
        // A fence or a token that is none of a template may say what the first element is.
        let head = self.lead.trim_end().rsplit('\n').next().unwrap_or_default();
        if self.is_same && (fence::is_line(head.trim_start()) || head.contains("<|")) {
            return false;
        }
        let said: Vec<(usize, usize, String)> = words(self.gap).collect();
        if !said.iter().any(|(.., word)| is_word(word)) {
            // Letters number options as well: `A)` and `B)` before variants of one act.
            let is_lettered = said.iter().any(|(.., word)| word.contains(char::is_alphabetic));
            return self.marks_agree() && (!(self.is_same && is_lettered) || self.are_apart());
        }
        // What stands before the first element may say whose it is, or that it is none.
        let label = self.lead.trim_end().rsplit('\n').next().unwrap_or_default();
        let is_judged = |word: &str| match joint(word) {
            Joint::Denies => !denying::only_takes_back(word),
            joint => joint == Joint::Names,
        };
        let label = words(label).any(|(.., word)| is_judged(&word));
        if self.is_same && label {
            return false;
        }
        if !self.gap.chars().all(|c| c.is_alphanumeric() || c.is_whitespace() || is_plain(c) || "-*#_•/>".contains(c))
            || said.iter().any(|(.., word)| joint(word) == Joint::Denies)
        {
            return false;
        }
        let own: Vec<String> = words(self.own).map(|(.., word)| word).collect();
        let says_nothing = |word: &String| match joint(word) {
            Joint::Unknown => own.contains(word) || (!self.is_same && denying::leads(word)),
            // An answer behind a call of another name does not take the call back.
            Joint::Names => !self.is_same && (is_answer(word) || is_user(word)),
            _ => true,
        };
        if said.iter().all(|(.., word)| says_nothing(word)) || self.is_label_repeated(&said) || self.names_next(&said) {
            return true;
        }
        // A part of a sentence: one that ends is a statement, and what stands before a comma may deny.
        let parts = |at: usize, behind: usize| self.gap[at..behind].contains(STOPS);
        let broken = said.windows(2).rposition(|pair| parts(pair[0].1, pair[1].0)).map_or(0, |last| last + 1);
        let joins = !self.is_same && said.iter().any(|(.., word)| joint(word) == Joint::Joins);
        let names_own = |word: &String| own.contains(word) || (word.len() > 3 && own[0].contains(word.as_str()));
        let names_it = said.iter().any(|(.., word)| names_own(word) || joint(word) == Joint::Names);
        joins && names_it && said[..broken].iter().all(|(.., word)| says_nothing(word))
    }

    /// Returns whether all words of a label stand in the second element.
    fn is_own(&self, label: &str) -> bool {
        let own: Vec<String> = words(self.own).map(|(.., word)| word).collect();
        words(label).all(|(.., word)| own.contains(&word))
    }

    /// Returns whether words lead on to a thing that they name: `Now the paper:`, `And the ink:`.
    fn names_next(&self, said: &[(usize, usize, String)]) -> bool {
        let is_unknown = |(.., word): &(usize, usize, String)| joint(word) == Joint::Unknown;
        let unknown = said.iter().position(is_unknown).filter(|at| *at > 0);
        words(self.lead).any(|(.., word)| is_word(&word))
            && said.iter().any(|(.., word)| joint(word) == Joint::Joins)
            && said.iter().filter(|word| is_unknown(word)).count() == 1
            && unknown.is_some_and(|at| is_article(&said[at - 1].2))
            && !said.iter().any(|(.., word)| joint(word) == Joint::Names)
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
            && (mark.trim() == before.trim()
                || mark.chars().all(|c| is_separator(c) || c.is_alphanumeric() || "-*+#_•‣◦·–—→✅✔".contains(c)))
            && if is_introduced { shape(mark).is_empty() } else { shape(mark) == shape(before) }
            && !shape(mark).contains("a0")
            && (counts_on(before, mark) != Some(false) || self.is_own(mark))
    }

    /// Returns whether each element has a short label of its own, and both have one form: `Pens: …`, `Paper: …`. Words that judge
    /// or choose are no labels.
    fn labels_agree(&self) -> bool {
        const MOST: usize = 6;
        let (Some(one), Some(other)) = (label(self.lead), label(self.gap)) else { return false };
        let behind = &self.gap[..self.gap.len() - other.len()];
        let said = |label: &str| words(label).map(|(.., word)| word).collect::<Vec<String>>();
        let (first, second) = (said(one), said(other));
        let own: Vec<String> = words(self.own).map(|(.., word)| word).collect();
        // What the element says as well names it, but an answer is one of several.
        let is_judged = |word: &String| match joint(word) {
            Joint::Names => is_answer(word) || !own.contains(word),
            joint => joint == Joint::Denies,
        };
        let is_remark = words(behind).next().is_some() || !behind.chars().all(|c| is_separator(c) || c == '|');
        let names_something = |label: &[String]| label.iter().any(|word| is_word(word));
        let joins = |label: &[String]| label.iter().any(|word| joint(word) == Joint::Joins);
        let shares = first.first() == second.first();
        let is_named = |label: &[String]| {
            names_something(label) || counts_on(one, other) == Some(true) || label.iter().all(|word| own.contains(word))
        };
        let element = split_prefix(self.own[1..].split(|c: char| !is_name_char(c)).next().unwrap_or_default()).1;
        form(one) == form(other)
            && !is_remark
            && is_named(&first)
            && is_named(&second)
            && joins(&first) == joins(&second)
            && (shares || !first.iter().any(|word| word == "i"))
            && !(one.contains("<|") || other.contains("<|"))
            // Of two answers, at most one is meant.
            && !words(element).any(|(.., word)| is_answer(&word))
            && first.len().max(second.len()) <= MOST
            && !first.iter().chain(&second).any(is_judged)
            && match without_numbers(&first) == without_numbers(&second) {
                true => counts_on(one, other) == Some(true),
                false => counts_on(one, other) != Some(false) || self.is_own(other),
            }
    }

    /// Returns whether the two elements differ in a word. If they differ only in numbers, they may be variants of one act.
    fn are_apart(&self) -> bool {
        let said = |element: &str| -> BTreeSet<String> {
            let words = element.split(|c: char| !(is_name_char(c) || c == '.'));
            words.filter(|word| word.contains(char::is_alphabetic)).map(str::to_lowercase).collect()
        };
        said(self.own) != said(self.other)
    }

    /// Returns whether the same words stand before the first element, without a number.
    fn is_label_repeated(&self, said: &[(usize, usize, String)]) -> bool {
        let before: Vec<String> = words(self.lead).map(|(.., word)| word).collect();
        let is_number = |(.., word): &(usize, usize, String)| word.contains(char::is_numeric);
        before.len() >= said.len()
            && !said.iter().any(is_number)
            && said.iter().all(|(.., word)| denying::leads(word) || !is_word(word))
            && before[before.len() - said.len()..].iter().eq(said.iter().map(|(.., word)| word))
    }
}

/// The label before an element: the text before it on its line, or the line above if there is none, with what follows it.
fn label(text: &str) -> Option<&str> {
    let starts = text.rmatch_indices('\n').map(|(at, _)| at + 1).chain([0]);
    let says = |line: &str| line.chars().any(|c| c.is_alphanumeric() || !(c.is_ascii() || is_plain(c)));
    starts.into_iter().map(|start| &text[start..]).find(|label| says(label))
}

/// The form of a label: its signs, with `w` for words and `0` for numbers.
fn form(label: &str) -> String {
    let mut form = String::new();
    for c in label.trim_start().chars() {
        let class = match c {
            ' ' | '\t' | '\r' | '`' | '"' => continue,
            '\n' => '\n',
            _ if c.is_numeric() => '0',
            _ if c.is_alphanumeric() || matches!(c, '\'' | '’' | ',' | '(' | ')') && form.ends_with('w') => 'w',
            _ if c.is_ascii() || is_plain(c) => c,
            '\u{fe0f}' => continue,
            _ => 'e',
        };
        if !(form.ends_with(class) && matches!(class, '0' | 'w' | '\n')) {
            form.push(class);
        }
    }
    form.replace("0w", "w").replace("w0", "w")
}

/// The words of a label that are no numbers.
fn without_numbers(label: &[String]) -> Vec<&str> {
    let letters = label.iter().map(|word| word.trim_end_matches(char::is_numeric));
    letters.filter(|word| !word.is_empty()).collect()
}

/// Returns whether a number of the second label is the next one of that in its place in the first; `None` if neither has one.
fn counts_on(first: &str, second: &str) -> Option<bool> {
    let numbers = |label: &str| -> Vec<u32> {
        let runs = label.split(|c: char| !c.is_ascii_digit());
        runs.filter_map(|run| run.parse().ok()).collect()
    };
    let (first, second) = (numbers(first), numbers(second));
    if first.is_empty() && second.is_empty() {
        return None;
    }
    let mut pairs = first.iter().zip(&second);
    Some(first.len() == second.len() && pairs.any(|(one, other)| one.checked_add(1) == Some(*other)))
}

/// Tests for a word, rather than a number or the letter of a list.
pub(super) fn is_word(word: &str) -> bool {
    let is_long = word.chars().count() > 1 || word.contains(denying::is_unspaced);
    is_long && !word.chars().all(char::is_numeric)
}

/// Tests for an article, or a word in its place.
pub(super) fn is_article(word: &str) -> bool {
    const ARTICLES: [&str; 24] = [
        "the", "a", "an", "my", "der", "die", "das", "den", "ein", "eine", "le", "la", "les", "l", "un", "une", "el",
        "los", "las", "il", "lo", "o", "os", "het",
    ];
    ARTICLES.contains(&word)
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
    fn signs_that_say_nothing_may_hold_any_character() {
        for (text, expected) in [
            ("<|tool_call_end|>", Some(0..17)),
            ("é<｜tool▁call▁end｜>", Some(2..27)),
            ("<｜撤销｜>", None),
            ("<|é", None),
            ("é <!-- é -->", Some(3..7)),
        ] {
            assert_eq!(sign(text), expected, "{text}");
        }
    }

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
