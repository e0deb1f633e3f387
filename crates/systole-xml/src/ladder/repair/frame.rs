//! The frame of a top-level element: the signs and the words on its line, the line above it, and what follows it.
//!
//! A draft that is sent is executed; a refusal costs a turn. So the frame must be plain, by the [`Author`] of the text:
//! - between the start of its line and the element stand only words, a mark of a list, quotes, emphasis, and signs that
//!   introduce (`:`, `→`). What comments, quotes, strikes out or deletes (`//`, `>`, `~`, `-` right before it, ❌) is none of these, so
//!   no list of notations is needed;
//! - the words that lead to it announce it. Nothing announces but what is known to: all words of the clause only announce
//!   (`Here is the order:`, `Answer:`) or stand in the element, or the model says that it acts (`Now I order five:`, `Ordering
//!   five:`). Unknown words lead to nothing, in any language. A sentence that has ended tells of something, unless it asks or
//!   supposes. A label of unknown words is plain under a line that announces (`I place these orders:`, then `Pens: …`);
//! - no word denies it, and no condition stands in the sentence before it (`denying.rs`);
//! - what follows it neither asks, nor denies, nor waits for a consent.
//!
//! A model drafts and hesitates. What a program prints beside an element tells of anything (`12 + 30? Easy:`, `Shall I try another
//! one?`), so its words may announce nothing, ask, or set conditions; only those that deny the element hold it back.

use super::between::{NEAR, floor, is_word};
use super::denying::{
    SIGNS, asks_reader, chooses, closes_talk, conditions, denies, ends_as_act, explains, is_act_before, is_doing,
    is_loose, is_ordinal, is_past, is_possible, leads, names_actor, names_sending, negates, prefers, stops_at,
    supposes, turns, waits,
};
use super::lexis::excerpt;
use super::outside::Root;
use super::scan::Scanner;
use super::sentence::line_of;
use super::words::{Joint, is_thought, joint, words};
use super::{RepairError, between, fence};

/// The author of a text, by whom repair reads the words around elements.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Author {
    /// A program, a person or a file: words are output beside an element. Only those that deny the element hold it back.
    #[default]
    Program,
    /// A language model, which writes drafts: only words that are known to announce an element lead to it.
    Model,
}

/// The reading of the words and signs before an element.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Lead {
    #[default]
    Plain,
    /// Words that are not known to announce it.
    Label,
    /// A question, a supposition, a condition, or code that may hold it as a string.
    Open,
    Denies,
}

impl Author {
    /// The reading of words before an element, in texts of this author.
    pub(super) const fn reads(self, lead: Lead) -> Lead {
        match (self, lead) {
            (_, Lead::Plain) | (Self::Program, Lead::Label | Lead::Open) => Lead::Plain,
            (Self::Model, Lead::Label) => Lead::Label,
            (_, Lead::Denies) | (Self::Model, Lead::Open) => Lead::Denies,
        }
    }
}

/// Signs between the clauses of a sentence.
const PAUSES: [char; 9] = [',', '，', '、', ';', '；', ':', '：', '—', '–'];

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
        let until = floor(self.text, (end + NEAR).min(self.text.len()));
        let behind = self.heard_in(end, until);
        // Examples of a dialogue have several questions.
        let begins = |line: &str, letter: &str| line.trim_start().starts_with(letter);
        let is_example =
            begins(line_of(&self.text[..start]), "A:") && self.text[end..until].lines().any(|line| begins(line, "Q:"));
        let (at, name) = (self.position(start), excerpt(name));
        if is_example || takes_back(&behind, self.vocabulary.author()) {
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
    let own: Vec<String> = words(own).map(|(.., word)| word).collect();
    let mut lines: Vec<&str> = above.split('\n').map(str::trim).collect();
    let is_adjacent = lines.last().is_some_and(|last| !last.is_empty());
    lines.retain(|line| !line.is_empty() && !is_rule(line));
    if says_something(prefix) {
        return line_before(prefix, &own).or_under(&lines, &own);
    }
    if lines.last().is_some_and(|line| fence::is_line(line)) {
        let fence = lines.pop().unwrap_or_default();
        // A code block ends here, or begins.
        if fence::is_closing(fence) && lines.iter().filter(|line| fence::is_line(line)).count() % 2 == 1 {
            return Lead::Plain;
        }
        let says_nothing = |word: &String| between::is_language(word) || leads(word) || own.contains(word);
        if words(fence).any(|(.., word)| denies(&word) || !says_nothing(&word)) {
            return Lead::Denies;
        }
    }
    let Some(line) = lines.pop() else { return Lead::Plain };
    if fence::is_line(line) {
        return Lead::Plain;
    }
    if line.starts_with(SIGNS) || (is_adjacent && opens_comment(line)) {
        return Lead::Denies;
    }
    // An item of a list, or a quotation, that doesn't touch the element says nothing about it.
    if !is_adjacent && is_item(line) {
        return Lead::Plain;
    }
    // The fence of a code block may stand behind words.
    let line = line.rsplit_once("```").map_or(line, |(words, _)| words.trim_end());
    if is_code(line) {
        return Lead::Open;
    }
    line_before(line, &own).or_under(&lines, &own)
}

/// Reads a line of words before an element: a sentence that has ended, or one that leads to the element.
fn line_before(line: &str, own: &[String]) -> Lead {
    match line.trim_end().trim_end_matches(is_closing).strip_suffix(ENDS) {
        Some(sentence) if !line.starts_with('#') => told(sentence, line),
        _ => statement(line, own),
    }
}

impl Lead {
    /// A label of unknown words is plain under a line that announces what stands below it.
    fn or_under(self, lines: &[&str], own: &[String]) -> Self {
        let announces = |line: &&str| match line.ends_with([':', '：']) {
            true => statement(line, own) == Self::Plain,
            false => acts(&said_in(line), own) && !words(line).any(|(.., word)| denies(&word)),
        };
        let is_announced = || lines.iter().rev().find(|line| !line.starts_with('|')).is_some_and(announces);
        if self == Self::Label && is_announced() { Self::Plain } else { self }
    }
}

fn said_in(text: &str) -> Vec<String> {
    words(text).map(|(.., word)| word).collect()
}

fn says_something(prefix: &str) -> bool {
    words(prefix).next().is_some_and(|(.., word)| is_word(&word) || !is_mark(prefix))
}

/// Returns whether a line is an item of a list or a quotation.
fn is_item(line: &str) -> bool {
    let mark = line.trim_start_matches(|c: char| c.is_ascii_digit());
    line.starts_with(['>', '-', '*', '•']) && !line.starts_with("**")
        || mark.len() < line.len() && mark.starts_with(['.', ')'])
}

/// Reads the sentence that ends right before an element: it tells of something, unless it forbids, or asks, supposes, waits for
/// something, or says what the model does not do.
fn told(sentence: &str, line: &str) -> Lead {
    let sentence = sentence.trim_end_matches(ENDS).rsplit(ENDS).next().unwrap_or_default();
    let said = said_in(sentence);
    let forbids = matches!(
        said.iter().take(2).map(String::as_str).collect::<Vec<_>>()[..],
        ["never" | "don", ..] | ["do", "not"]
    );
    let asks = line.trim_end_matches(is_closing).ends_with(['?', '？']);
    // `I check the stock before I order.`
    let is_step = |at: usize| said[at] == "before" && said.get(at + 1).is_some_and(|next| names_actor(next));
    let waits = said.iter().enumerate().any(|(at, word)| conditions(word) && !is_step(at));
    match () {
        () if forbids => Lead::Denies,
        () if asks || waits || said.iter().any(|word| supposes(word) || is_possible(word)) => Lead::Open,
        () if is_withheld(&said_in(last_clause(sentence))) => Lead::Open,
        () => Lead::Plain,
    }
}

/// Returns whether a clause says what its author does not do.
fn is_withheld(said: &[String]) -> bool {
    let denies = |word: &String| negates(word) && !conditions(word) && !is_loose(word);
    // `No voy a seguirla.`
    let refuses = |pair: &[String]| matches!(pair[0].as_str(), "no" | "non") && names_actor(&pair[1]);
    said.iter().any(|word| names_actor(word)) && said.iter().any(denies) || said.windows(2).any(refuses)
}

/// Returns whether a text is the mark of a list, with one letter or number: `a)`, `(1)`, `2.`
fn is_mark(prefix: &str) -> bool {
    !prefix.trim_end().ends_with([':', '：']) || !prefix.contains(char::is_alphabetic)
}

/// Reads the last clause before an element, or its label: it announces the element if it holds no words but known ones, or if
/// the model says in it that it acts now.
fn statement(line: &str, own: &[String]) -> Lead {
    const ABBREVIATIONS: [&str; 10] = ["e.g", "e. g", "z.b", "z. b", "p.ex", "p. ex", "p.ej", "p. ej", "t.ex", "f.eks"];
    let lower = line.to_lowercase();
    if ABBREVIATIONS.iter().any(|short| lower.contains(short)) {
        return Lead::Denies;
    }
    // A condition counts for all of the sentence, a denial for its clause: `No problem, I do it:`.
    let sentence = last_sentence(line);
    let all = said_in(sentence);
    let is_word_of = |word: &str, at: Option<usize>| at.and_then(|at| all.get(at)).is_some_and(|next| next == word);
    // `once more`, `at once`
    let is_more = |at: usize| is_word_of("more", Some(at + 1)) || is_word_of("at", at.checked_sub(1));
    let waits = all.iter().enumerate().any(|(at, word)| conditions(word) && !is_more(at));
    let is_open = waits || words(line).any(|(.., word)| supposes(&word)) || leaves_to_others(&all);
    let mut said = said_in(last_clause(sentence));
    if !acts(&said, own) && all.len() <= 5 {
        said.clone_from(&all);
    }
    let acts = acts(&said, own) || acts(&all, own);
    let is_of_thoughts = |at: usize| said.get(at + 1).is_some_and(|next| is_thought(next));
    let is_denied = |(at, word): (usize, &String)| match word.as_str() {
        "can" => said.get(at + 1).is_some_and(|next| next == "t"),
        word => {
            let is_telling = (acts && said.len() > 2) || said.len() > 4;
            negates(word) && !is_of_thoughts(at) && !(is_telling && is_loose(word))
        }
    };
    // `Q:` and `A/B:` are labels, `a)` is a mark.
    let is_lettered = said.iter().all(|word| word.len() == 1) && said != ["a"] && !is_mark(line);
    let is_known = |(at, word): (usize, &String)| {
        is_of_thoughts(at) || (is_known(word, own) && !is_lettered) || own.contains(word)
    };
    match () {
        () if said.iter().enumerate().any(is_denied) => Lead::Denies,
        () if is_open => Lead::Open,
        () if acts || said.iter().enumerate().all(is_known) => Lead::Plain,
        () => Lead::Label,
    }
}

/// The last clause of a sentence that has words.
fn last_clause(sentence: &str) -> &str {
    sentence.rsplit(PAUSES).find(|part| words(part).next().is_some()).unwrap_or(sentence)
}

/// The last sentence of a line that has words. A full stop behind a number is the mark of a list.
fn last_sentence(line: &str) -> &str {
    let is_mark = |before: &str| {
        let bare = before.trim_end_matches(|c: char| c.is_ascii_digit());
        (1..3).contains(&(before.len() - bare.len())) && (bare.is_empty() || bare.ends_with(char::is_whitespace))
    };
    let ends = line.match_indices(ENDS).filter(|(at, _)| !is_mark(&line[..*at]));
    let mut starts = ends.map(|(at, end)| at + end.len()).filter(|&at| words(&line[at..]).next().is_some());
    starts.next_back().map_or(line, |at| &line[at..])
}

/// Returns whether a line assigns, opens a string, or sends its text to a program: `x = '''`, `cat <<EOF`.
fn is_code(line: &str) -> bool {
    let assigns =
        line.match_indices('=').any(|(at, _)| !line[at..].starts_with("=>") && !line[..at].ends_with(['=', '>']));
    let opens = |quote: char| line.ends_with(quote) && line.matches(quote).count() % 2 == 1;
    (assigns && says_something(line)) || line.contains("<<") || ['"', '\'', '`'].into_iter().any(opens)
}

/// Returns whether a word says nothing that the element doesn't say, or only announces it.
fn is_known(word: &str, own: &[String]) -> bool {
    const STEM: usize = 3;
    let shares = |known: &String| known.len() >= STEM && word.starts_with(known.as_str());
    leads(word)
        || names_actor(word)
        || is_thought(word)
        || between::is_article(word)
        || joint(word) == Joint::Names
        || own.iter().any(|known| known == word || shares(known))
}

/// Returns whether a sentence explains an act, or leaves it to the reader: `Here's how a payment works`, `You can run this`.
fn leaves_to_others(said: &[String]) -> bool {
    const MODALS: [&str; 6] = ["can", "could", "may", "must", "need", "should"];
    said.iter().any(|word| explains(word))
        || said.windows(2).any(|pair| pair[0] == "you" && MODALS.contains(&pair[1].as_str()))
}

/// Returns whether the model says that it acts: only known words stand before the one that names it (`Good, so I order …`), or
/// an act begins the clause (`Ordering five pens`) or ends it, as in languages whose verbs stand last.
fn acts(said: &[String], own: &[String]) -> bool {
    // `I could order`, `I was about to order`, `no voy a …`
    let is_unreal = |at: usize| {
        let is_denied = at.checked_sub(1).is_some_and(|before| matches!(said[before].as_str(), "no" | "non"));
        is_denied || said.get(at + 1).is_some_and(|next| is_past(next) || is_possible(next))
    };
    // `What I did` and `the order that I prepared` name no act.
    let is_before = |word: &&String| (is_known(word, own) || is_loose(word)) && *word != "what" && *word != "that";
    let mut known = said.iter().take_while(is_before).enumerate();
    let names = known.any(|(at, word)| names_actor(word) && !is_unreal(at));
    let behind = said.iter().skip_while(|word| joint(word) == Joint::Joins);
    let goes_on =
        || said.len() > behind.clone().count() && behind.clone().next().is_some_and(|word| between::is_article(word));
    // `Dann lösche ich es`: the verb may stand before its subject.
    let is_inverted = |pair: &[String]| is_act_before(&pair[0], &pair[1]);
    let inverted = said.windows(2).position(is_inverted);
    names
        || inverted.is_some_and(|at| said[..at].iter().all(|word| is_known(word, own)))
        || goes_on()
        || behind.clone().next().is_some_and(|word| is_doing(word))
        || said.last().is_some_and(|word| ends_as_act(word))
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

/// Returns whether what follows an element takes it back, or leaves it open.
fn takes_back(behind: &str, author: Author) -> bool {
    const MOST: usize = 6;
    let line = behind.lines().next().unwrap_or_default();
    let line = line.trim_start_matches(|c: char| c.is_whitespace() || is_closing(c));
    let is_aside = line.starts_with(['(', '<', '←', '—', '–', '-']);
    let aside =
        line.trim_start_matches(|c: char| !c.is_alphanumeric()).split(|c: char| ENDS.contains(&c) || c == ',').next();
    let is_judged = || words(aside.unwrap_or_default()).any(|(.., word)| joint(&word) == Joint::Denies);
    if line.starts_with(['?', '？']) || line.contains(SIGNS) || (is_aside && is_judged()) {
        return true;
    }
    let ends = |c: char| ENDS.contains(&c) || matches!(c, '\n' | ';');
    // The end of an instruction is no question.
    let behind = behind.replace("?>", ">");
    behind
        .split_inclusive(ends)
        .filter(|sentence| words(sentence).next().is_some())
        .take(MOST)
        .any(|sentence| withholds(sentence, author))
}

/// Returns whether a sentence behind an element withholds it: it asks, denies, waits for a consent, or recants. A phrase with
/// which models close (`Let me know if you need anything else`) withholds nothing; nor does a sentence of a program that names no
/// act of sending.
fn withholds(sentence: &str, author: Author) -> bool {
    const MOST: usize = 24;
    let bare = sentence.trim_start();
    if bare.starts_with('^') {
        return true;
    }
    let said: Vec<(usize, usize, String)> = words(sentence).take(MOST).collect();
    let has = |test: fn(&str) -> bool| said.iter().any(|(.., word)| test(word));
    if recants(sentence, &said) {
        return true;
    }
    let ends = sentence.trim_end_matches(|c: char| c.is_whitespace() || is_closing(c));
    let asks = ends.ends_with(['?', '？']);
    // `That is what I'd use.`
    let is_supposed = said.windows(2).any(|pair| matches!(pair[0].2.as_str(), "i" | "we") && pair[1].2 == "d");
    // `Tell me if that works.`
    let wants_consent = has(|word| matches!(word, "if" | "whether" | "ob")) && has(asks_reader);
    let is_about_it = match author {
        Author::Model => !has(closes_talk) || has(prefers),
        Author::Program => has(names_sending),
    };
    is_about_it
        && (asks
            || wants_consent
            || is_supposed
            || has(is_possible)
            || has(waits)
            || has(|word| negates(word) && !is_loose(word)))
}

/// Returns whether a sentence recants: `Wait, ignore that.`, `No.`, `On second thought, …`
fn recants(sentence: &str, said: &[(usize, usize, String)]) -> bool {
    let Some((_, end, first)) = said.first() else { return false };
    let second = said.get(1).map(|(.., word)| word.as_str());
    let third = said.get(2).map(|(.., word)| word.as_str());
    let stops =
        sentence[*end..].trim_start().starts_with([',', '.', '!', '…', '—', '–', '-', ':', '，', '。', '！', '、']);
    let is_turn = match (first.as_str(), second) {
        ("on", Some("reflection" | "second")) | ("never", Some("mind")) | ("hold", Some("on")) => true,
        ("thinking" | "come", _) => third == Some("again") || second == Some("again"),
        _ => false,
    };
    is_turn || turns(first) || (stops && stops_at(first))
}

/// Returns whether words behind several elements choose one of them.
fn picks(behind: &str) -> bool {
    words(behind).any(|(.., word)| chooses(&word) || is_ordinal(&word))
}

/// Returns whether a line only separates.
fn is_rule(line: &str) -> bool {
    line.chars().all(|c| matches!(c, '-' | '*' | '_' | '=' | '|' | ':' | ' '))
}

fn is_closing(c: char) -> bool {
    matches!(c, '"' | '\'' | '”' | '»' | '`' | '*' | '_' | ')' | ']' | '}' | '」' | '』')
}
