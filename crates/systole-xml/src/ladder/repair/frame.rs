//! The frame of a top-level element: the signs and the words on its line, the line above it, and what follows it.
//!
//! A draft that is sent is executed; a refusal costs a turn. So the frame must be plain:
//! - between the start of its line and the element stand only words, a mark of a list, quotes, emphasis, and signs that
//!   introduce (`:`, `→`). What comments, quotes, strikes out or deletes (`//`, `>`, `~`, `-` right before it, ❌) is none of these, so
//!   no list of notations is needed;
//! - the clause before it denies nothing (`denying.rs`);
//! - a label of one or two words before it is known to announce (`Order:`, `Answer:`), its words stand in the element, or it is
//!   written in Latin letters (`Tomorrow:`), for whose languages `denying.rs` has lists. Any other label may deny it in a language
//!   that no list has; but labels of several elements in a row that have one form tell them apart (`between.rs`);
//! - what follows it takes nothing back.

use super::between::{NEAR, floor, is_word};
use super::denying::{SIGNS, chooses, denies, is_unspaced, leads};
use super::lexis::excerpt;
use super::outside::Root;
use super::scan::Scanner;
use super::words::{Joint, is_thought, joint, words};
use super::{RepairError, between, fence};

/// The reading of the words and signs before an element.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Lead {
    #[default]
    Plain,
    /// A short label of unknown words.
    Label,
    Denies,
}

/// Signs that end a sentence.
const ENDS: [char; 8] = ['.', '!', '?', '…', '。', '！', '？', '।'];

impl<'t> Scanner<'t> {
    /// Records the last top-level element if its frame denies it, or is a label that nothing knows. The form of the labels of
    /// several elements tells that they are no more than that.
    pub(super) fn note_lead(&mut self) {
        let Root { start, end, name, frame, .. } = self.outside.root;
        if end > start && frame != Lead::Plain && self.outside.doubt.is_none() {
            let at = self.position(start);
            self.outside.doubt = Some(RepairError::Draft { at, name: excerpt(name) });
        }
    }

    /// Records the last element of all if what follows it takes it back, and of several if words before the first or behind the
    /// last choose one.
    pub(super) fn note_behind(&mut self) {
        let Root { start, end, name, .. } = self.outside.root;
        if end <= start || self.outside.doubt.is_some() {
            return;
        }
        let behind = self.heard_in(end, floor(self.text, (end + NEAR).min(self.text.len())));
        let (at, name) = (self.position(start), excerpt(name));
        if takes_back(&behind) {
            self.outside.doubt = Some(RepairError::Draft { at, name });
        } else if self.roots > 1 {
            let first = self.outside.first;
            let before = self.heard_in(floor(self.text, first.saturating_sub(NEAR)), first);
            let said: Vec<String> = words(&before).map(|(.., word)| word).collect();
            let offers = said.iter().any(|word| chooses(word)) || said.windows(2).any(|pair| pair == ["one", "of"]);
            if offers || picks(&behind) {
                self.outside.doubt = Some(RepairError::Between { at, name });
            }
        }
    }
}

/// Reads the text before an element. `own` is the element.
pub(super) fn lead(text: &str, own: &str) -> Lead {
    // A section holds the element, or stands before it as prose.
    let text = text.rsplit("]]>").next().unwrap_or(text);
    let text = &between::without_end_tags(text.strip_suffix("<![CDATA[").unwrap_or(text));
    let (above, prefix) = text.rsplit_once('\n').unwrap_or(("", text));
    if !is_plain(prefix) {
        return Lead::Denies;
    }
    if words(prefix).next().is_some_and(|(.., word)| is_word(&word) || !is_mark(prefix)) {
        return statement(prefix, own);
    }
    let mut lines: Vec<&str> = above.lines().map(str::trim).collect();
    let is_adjacent = lines.last().is_some_and(|last| !last.is_empty());
    lines.retain(|line| !line.is_empty() && !is_rule(line));
    if lines.last().is_some_and(|line| fence::is_line(line)) {
        let fence = lines.pop().unwrap_or_default();
        // A code block ends here, or begins.
        if fence::is_closing(fence) && lines.iter().filter(|line| fence::is_line(line)).count() % 2 == 1 {
            return Lead::Plain;
        }
        let own: Vec<String> = words(own).map(|(.., word)| word).collect();
        let says_nothing = |word: &String| between::is_language(word) || leads(word) || own.contains(word);
        if words(fence).any(|(.., word)| denies(&word) || !says_nothing(&word)) {
            return Lead::Denies;
        }
    }
    let Some(line) = lines.last() else { return Lead::Plain };
    if fence::is_line(line) {
        return Lead::Plain;
    }
    if line.starts_with(SIGNS) || (is_adjacent && opens_comment(line)) {
        return Lead::Denies;
    }
    // A key of YAML may have a block of text as its value: `plan: |`.
    let is_heading =
        line.starts_with('#') || line.ends_with(['*', '_', ':', '：']) || line.contains(": |") || line.ends_with(": >");
    if is_heading || line.ends_with(|c: char| c.is_alphanumeric() || c == ',') {
        return statement(line, own);
    }
    let sentence = line.trim_end_matches(is_closing).trim_end_matches(ENDS);
    let sentence = sentence.rsplit(ENDS).next().unwrap_or_default();
    let first: Vec<String> = words(sentence).take(2).map(|(.., word)| word).collect();
    match first.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["never" | "don", ..] | ["do", "not"] => Lead::Denies,
        _ => Lead::Plain,
    }
}

/// Returns whether a text is the mark of a list, with one letter or number: `a)`, `(1)`, `2.`
fn is_mark(prefix: &str) -> bool {
    !prefix.trim_end().ends_with([':', '：']) || !prefix.contains(char::is_alphabetic)
}

/// Reads the last clause before an element, or its label.
fn statement(line: &str, own: &str) -> Lead {
    const ABBREVIATIONS: [&str; 10] = ["e.g", "e. g", "z.b", "z. b", "p.ex", "p. ex", "p.ej", "p. ej", "t.ex", "f.eks"];
    let lower = line.to_lowercase();
    if ABBREVIATIONS.iter().any(|short| lower.contains(short)) {
        return Lead::Denies;
    }
    let is_long = words(line).count() > 5;
    let ends = |c: char| ENDS.contains(&c) || (is_long && matches!(c, ',' | '，' | '、' | ';' | '；'));
    let clause = line.rsplit(ends).find(|part| words(part).next().is_some()).unwrap_or(line);
    let said: Vec<String> = words(clause).map(|(.., word)| word).collect();
    // Of a longer sentence, such a word may tell of something else: `Instead of that I do it carefully:`.
    const LOOSE: [&str; 8] = ["before", "instead", "later", "old", "previous", "failed", "error", "statt"];
    let is_denied = said.iter().enumerate().any(|(at, word)| {
        let is_of_thoughts = said.get(at + 1).is_some_and(|next| is_thought(next));
        denies(word) && !is_of_thoughts && !(said.len() > 4 && LOOSE.contains(&word.as_str()))
    });
    if is_denied {
        return Lead::Denies;
    }
    // An act that waits for a consent: `pending your approval`, `as soon as you confirm`.
    const CONSENT: [&str; 10] =
        ["confirm", "confirms", "confirmation", "approve", "approval", "consent", "agree", "permission", "ok", "okay"];
    let waits =
        said.windows(2).any(|pair| matches!(pair[0].as_str(), "you" | "your") && CONSENT.contains(&pair[1].as_str()));
    if waits || said.iter().any(|word| matches!(word.as_str(), "pending" | "preview" | "dry")) {
        return Lead::Denies;
    }
    let own: Vec<String> = words(own).map(|(.., word)| word).collect();
    let is_letter =
        said.len() == 1 && said[0] != "a" && !own.contains(&said[0]) && !is_word(&said[0]) && !is_mark(line);
    let is_few = said.len() <= 3;
    let before = clause.as_ptr() as usize - line.as_ptr() as usize;
    let is_whole = clause.len() == line.len() || !line[..before].contains(char::is_alphanumeric);
    let said: Vec<&String> = said.iter().filter(|word| is_word(word)).collect();
    let is_short = is_whole && is_few && said.len() <= 2 && clause.chars().filter(|&c| is_unspaced(c)).count() <= 6;
    // The lists have the languages that are written in Latin letters; others are too many.
    let is_listed =
        || said.iter().all(|word| word.chars().all(|c| c < '\u{250}' || ('\u{1e00}'..'\u{1f00}').contains(&c)));
    let is_known = |word: &&String| leads(word) || own.contains(word);
    match !is_letter && (said.is_empty() || !is_short || said.iter().any(is_known) || is_listed()) {
        true => Lead::Plain,
        false => Lead::Label,
    }
}

/// Returns whether the signs before an element on its line only enclose, mark or introduce it.
fn is_plain(prefix: &str) -> bool {
    let chars: Vec<char> = prefix.chars().collect();
    let word_behind = chars.iter().rposition(|c| c.is_alphanumeric()).map_or(0, |last| last + 1);
    let word = chars.iter().position(|c| c.is_alphanumeric()).unwrap_or(0);
    let mark = chars.iter().position(|c| !c.is_whitespace()).unwrap_or(0);
    chars.iter().enumerate().all(|(at, &c)| {
        if (word..word_behind).contains(&at) {
            return !SIGNS.contains(&c);
        }
        let before = at.checked_sub(1).map(|at| chars[at]);
        let behind = chars.get(at + 1).copied();
        let is_first = at <= mark;
        let is_free = |c: Option<char>| c.is_none_or(char::is_whitespace);
        let is_of_word = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
        let next = || chars[at + 1..].iter().find(|c| !c.is_whitespace()).copied();
        let opens = || next().is_some_and(|c| c.is_alphanumeric() || matches!(c, '"' | '\'' | '[' | '{' | '`' | ','));
        match c {
            '-' => {
                behind == Some('>')
                    || (is_free(before) && behind.is_some_and(char::is_whitespace))
                    || is_of_word(before)
                    || is_of_word(behind)
            }
            '=' => behind == Some('>'),
            '>' => matches!(before, Some('-' | '=' | '|' | '｜')) || is_of_word(before) || before == Some('"'),
            '<' => is_of_word(behind) || matches!(behind, Some('|' | '｜')),
            '#' => is_of_word(behind) || ((is_first || before == Some('#')) && at < word_behind),
            '(' | '（' => behind.is_some_and(char::is_alphanumeric),
            '[' | '{' => opens(),
            '/' | '&' | '+' | '@' | '$' => {
                is_of_word(behind) || (c == '+' && is_first && is_free(behind) && behind.is_some())
            }
            '\\' => behind.is_none_or(char::is_whitespace) || chars[at + 1..].starts_with(&['b', 'o', 'x', 'e', 'd']),
            '%' => before.is_some_and(char::is_numeric),
            ';' | '.' | '?' => !is_first,
            ':' | '|' => behind != Some(c),
            '"' | '\'' => {
                let is_open = is_first && behind.is_some_and(char::is_whitespace);
                let is_triple = before == Some(c) && behind == Some(c);
                !(is_open || is_triple)
            }
            '~' | '^' | '\u{336}' => false,
            '“' | '”' | '„' | '«' | '»' | '‹' | '›' | '「' | '」' | '『' | '』' | '【' | '《' => {
                at < word_behind
            }
            _ => !SIGNS.contains(&c),
        }
    })
}

/// Returns whether a line right above an element begins a comment, a block that isn't run, or a string.
fn opens_comment(line: &str) -> bool {
    const OPENERS: [&str; 22] = [
        "/*", "//", "#if", "#!", "#|", "=", "\\", "\"\"\"", "'''", "%", "{%", "{#", "{-", "{!", "(*", "<%", "<#", "@*",
        "--", ":::", "..", ";",
    ];
    OPENERS.iter().any(|opener| line.starts_with(opener)) || (line.starts_with("if") && line.ends_with([':', '{']))
}

/// Returns whether what follows an element takes it back.
fn takes_back(behind: &str) -> bool {
    let (line, rest) = behind.split_once('\n').unwrap_or((behind, ""));
    let line = line.trim_start_matches(|c: char| c.is_whitespace() || is_closing(c));
    if line.starts_with(['?', '？']) || line.contains(SIGNS) {
        return true;
    }
    let clause = line.trim_start_matches(|c: char| !c.is_alphanumeric());
    let clause = clause
        .split(|c: char| ENDS.contains(&c) || matches!(c, ',' | ';' | ':' | '，' | '：'))
        .next()
        .unwrap_or_default();
    let said: Vec<String> = words(clause).map(|(.., word)| word).collect();
    let is_aside = line.starts_with(['(', '<', '←', '—', '–', '-']);
    let is_remark =
        said.len() <= 5 && said.iter().any(|word| denies(word) || (is_aside && joint(word) == Joint::Denies));
    let next = rest.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    is_remark || recants(line) || recants(next) || behind.split(ENDS_OR_LINES).take(4).any(holds_back)
}

/// Signs between the sentences behind an element.
const ENDS_OR_LINES: [char; 9] = ['.', '!', '?', '…', '。', '！', '？', '\n', ';'];

/// Returns whether a sentence holds an act back that stands before it: `Do not run this on production`, `Shall I go ahead`,
/// `This has not been submitted`, `Reply "yes" to confirm`.
fn holds_back(sentence: &str) -> bool {
    const ACTS: [&str; 14] = [
        "run",
        "send",
        "sent",
        "execute",
        "executed",
        "submit",
        "submitted",
        "call",
        "apply",
        "applied",
        "place",
        "placed",
        "order",
        "use",
    ];
    const ASKS: [&str; 8] = ["go", "proceed", "confirm", "approve", "send", "submit", "run", "execute"];
    let said: Vec<String> = words(sentence).map(|(.., word)| word).take(10).collect();
    let has = |list: &[&str]| said.iter().any(|word| list.contains(&word.as_str()));
    if said.is_empty() || said.len() > 9 {
        return false;
    }
    let is_denied = has(&["not", "don", "never", "nicht", "ne", "no", "не", "ikke", "niet"]) && has(&ACTS);
    let asks = (said[0] == "shall" || said[0] == "should" || said[0] == "may") && has(&["i", "we"]) && has(&ASKS);
    let waits = (said[0] == "reply" || said[0] == "please" || said[0] == "say") && has(&["confirm", "approve"]);
    let takes_back = said.len() <= 4 && has(&["scratch", "disregard", "ignore"]);
    let is_example = has(&["example", "template", "exemple", "beispiel", "ejemplo"])
        && has(&["above", "is", "only", "est", "nur", "ist", "es"]);
    is_denied || asks || waits || takes_back || is_example
}

/// Returns whether a sentence recants: `Wait, ignore that.`, `No.`, `On second thought, …`
fn recants(sentence: &str) -> bool {
    const ALWAYS: [&str; 22] = [
        "actually",
        "oops",
        "hmm",
        "scratch",
        "ignore",
        "disregard",
        "forget",
        "undo",
        "correction",
        "nevermind",
        "moment",
        "doch",
        "stopp",
        "vergiss",
        "ignoriere",
        "oubliez",
        "olvida",
        "стоп",
        "отмена",
        "ой",
        "待って",
        "等等",
    ];
    const WITH_STOP: [&str; 24] = [
        "no",
        "nope",
        "wait",
        "stop",
        "nein",
        "halt",
        "warte",
        "non",
        "attends",
        "espera",
        "espere",
        "nao",
        "não",
        "aspetta",
        "nee",
        "nej",
        "nei",
        "нет",
        "подожди",
        "nie",
        "不",
        "不对",
        "いいえ",
        "아니",
    ];
    const ACTS: [&str; 12] =
        ["send", "sent", "run", "call", "execute", "do", "order", "use", "this", "that", "senden", "ausführen"];
    if sentence.trim_start().starts_with('^') {
        return true;
    }
    let first_sentence = sentence.split(ENDS).next().unwrap_or_default();
    let said: Vec<(usize, usize, String)> = words(sentence).take(12).collect();
    let Some((_, end, first)) = said.first() else { return false };
    let second = said.get(1).map(|(.., word)| word.as_str());
    let third = said.get(2).map(|(.., word)| word.as_str());
    let stops =
        sentence[*end..].trim_start().starts_with([',', '.', '!', '…', '—', '–', '-', ':', '，', '。', '！', '、']);
    let is_turn = match (first.as_str(), second) {
        ("on", Some("reflection")) | ("never", Some("mind")) | ("on", Some("second")) => true,
        ("thinking" | "come", _) => third == Some("again") || second == Some("again"),
        _ => false,
    };
    let refuses = words(first_sentence)
        .any(|(.., word)| matches!(word.as_str(), "won" | "not" | "don" | "never" | "nicht"))
        && words(first_sentence).any(|(.., word)| ACTS.contains(&word.as_str()))
        && first.as_str() == "i";
    is_turn || refuses || ALWAYS.contains(&first.as_str()) || (stops && WITH_STOP.contains(&first.as_str()))
}

/// Returns whether words behind several elements choose one of them.
fn picks(behind: &str) -> bool {
    const ORDINALS: [&str; 24] = [
        "first",
        "second",
        "third",
        "latter",
        "former",
        "last",
        "one",
        "line",
        "erste",
        "ersten",
        "zweite",
        "zweiten",
        "première",
        "premier",
        "deuxième",
        "seconde",
        "primera",
        "primero",
        "segunda",
        "segundo",
        "первый",
        "второй",
        "第一",
        "第二",
    ];
    words(behind).any(|(.., word)| chooses(&word) || ORDINALS.contains(&word.as_str()))
}

/// Returns whether a line only separates.
fn is_rule(line: &str) -> bool {
    line.chars().all(|c| matches!(c, '-' | '*' | '_' | '=' | '|' | ':' | ' '))
}

fn is_closing(c: char) -> bool {
    matches!(c, '"' | '\'' | '”' | '»' | '`' | '*' | '_' | ')' | ']' | '}' | '」' | '』')
}
