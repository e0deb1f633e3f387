//! The frame of a top-level element: the signs and the words on its line, the line above it, and what follows it.
//!
//! A draft that is sent is executed; a refusal costs a turn. So the frame must be plain, by the [`Author`] of the text:
//! - between the start of its line and the element stand only words, a mark of a list, quotes, emphasis, and signs that
//!   introduce (`:`, `→`). What comments, quotes, strikes out or deletes (`//`, `>`, `~`, `-` right before it, ❌) is none of these, so
//!   no list of notations is needed;
//! - the words that lead to it announce it. Nothing announces but what is known to: all words of the clause only announce
//!   (`Here is the order:`, `Answer:`) or stand in the element, or the model says that it acts (`Now I order five:`, `Ordering
//!   five:`). Unknown words lead to nothing, in any language. A sentence that has ended tells of something, unless it asks,
//!   supposes or needs a consent, or points at the element (`The page says this.`). A label of unknown words is plain under a line that announces (`I place these orders:`, then `Pens: …`);
//! - no word denies it, and no condition stands in the sentence before it (`denying.rs`);
//! - what follows it neither asks, nor denies, nor waits for a consent.
//!
//! A model drafts and hesitates. What a program prints beside an element tells of anything (`12 + 30? Easy:`, `Shall I try another
//! one?`), so its words may announce nothing, ask, or set conditions; only those that deny the element hold it back.

use super::between::{NEAR, floor, is_word};
use super::denying::{
    SIGNS, asks_reader, begins_as_act, chooses, closes_talk, conditions, defers, denies, ends_as_act, explains,
    inquires, is_act_before, is_auxiliary, is_doing, is_habit, is_knowing, is_loose, is_ordinal, is_past, is_possible,
    is_reflection, is_source, is_spoken, is_unspaced, is_variety, judges, leads, names_actor, names_consent,
    names_sending, needs, negates, points, prefers, prohibits, stops_at, supposes, turns, waits,
};
use super::lexis::excerpt;
use super::outside::Root;
use super::scan::Scanner;
use super::sentence::line_of;
use super::words::{Joint, is_call, is_role, is_thought, joint, words};
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

/// Reads a line of words before an element: a sentence that has ended, or one that leads to the element. The full stop of
/// an abbreviation (`i.e.`) ends no sentence.
fn line_before(line: &str, own: &[String]) -> Lead {
    let bare = line.trim_end_matches(|c: char| c.is_whitespace() || is_closing(c) || is_ornament(c));
    match bare.strip_suffix(ENDS) {
        Some(sentence) if !line.starts_with('#') && !ends_abbreviated(bare) => told(sentence, bare, own),
        _ => statement(line, own),
    }
}

/// Tests for a sign without a meaning of its own, such as most emoji.
fn is_ornament(c: char) -> bool {
    !(c.is_ascii() || c.is_alphanumeric() || ENDS.contains(&c) || PAUSES.contains(&c) || SIGNS.contains(&c))
}

/// Returns whether a text ends with an abbreviation of single letters: `i.e.`, `z. B.`
fn ends_abbreviated(text: &str) -> bool {
    let Some(text) = text.strip_suffix('.') else { return false };
    let last = text.rsplit(char::is_whitespace).next().unwrap_or_default();
    let before = text[..text.len() - last.len()].trim_end();
    let is_letter = |part: &str| part.chars().count() == 1 && part.contains(char::is_alphabetic);
    last.rsplit('.').next().is_some_and(is_letter) && (last.contains('.') || before.ends_with('.'))
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

/// The words of a text beside an element. Of a run of letters without spaces, what the element holds as well is left out: it is
/// what the element is about (`未付款发票`), and denies nothing.
fn said_beside(text: &str, own: &[String]) -> Vec<String> {
    const SHARED: usize = 3;
    let is_shared = |part: &str| own.iter().any(|word| word.contains(part));
    let mut said = Vec::new();
    for word in said_in(text) {
        if !word.contains(is_unspaced) {
            said.push(word);
            continue;
        }
        let (mut rest, mut bare) = (word.as_str(), String::new());
        while let Some(first) = rest.chars().next() {
            let ends = rest.char_indices().map(|(at, c)| at + c.len_utf8()).skip(SHARED - 1);
            let shared = ends.take_while(|&end| is_shared(&rest[..end])).last().unwrap_or(0);
            if shared == 0 {
                bare.push(first);
            }
            rest = &rest[shared.max(first.len_utf8())..];
        }
        if !bare.is_empty() {
            said.push(bare);
        }
    }
    said
}

fn says_something(prefix: &str) -> bool {
    words(prefix).next().is_some_and(|(.., word)| is_word(&word) || !is_mark(prefix))
}

/// Returns whether a line is an item of a list or a quotation.
fn is_item(line: &str) -> bool {
    let mark = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let is_marked = |mark: char| line.strip_prefix(mark).is_some_and(|rest| rest.starts_with(char::is_whitespace));
    line.starts_with(['>', '•'])
        || is_marked('-')
        || is_marked('*')
        || mark.len() < line.len() && mark.starts_with(['.', ')'])
}

/// Reads the sentence that ends right before an element: it tells of something, unless it forbids, or asks, supposes, waits for
/// something, or says what the model does not do. One that points at the element (`The page says this.`) leads to it.
fn told(sentence: &str, line: &str, own: &[String]) -> Lead {
    let sentence = sentence.trim_end_matches(ENDS).rsplit(ENDS).next().unwrap_or_default();
    let said = said_beside(sentence, own);
    let clause = said_beside(last_clause(sentence), own);
    let asks = line.ends_with(['?', '？']);
    let acts = acts(&clause, own);
    let is_only_possible = if acts { &clause } else { &said }.iter().any(|word| is_possible(word));
    // `I can't do that.`, and an element that says so.
    let repeats = said.iter().all(|word| own.contains(word));
    match () {
        () if forbids(&said) => Lead::Denies,
        () if asks || waits_for(&said, &clause, own, true) || said.iter().any(|word| supposes(word)) => Lead::Open,
        () if is_only_possible || asks_consent(&said) || is_judged(&said) => Lead::Open,
        () if is_withheld(&clause) && !repeats => Lead::Open,
        () if points_at(&said_in(sentence.split(PAUSES).next().unwrap_or_default()), own) => statement(sentence, own),
        () => Lead::Plain,
    }
}

/// Returns whether a sentence forbids an act: `Don't run this.`, `Noch nicht senden.`, `まだ送信しないでください。`
fn forbids(said: &[String]) -> bool {
    let first: Vec<&str> = said.iter().take(2).map(String::as_str).collect();
    let is_infinitive = |verb: &str| ["ar", "er", "ir", "are", "ere", "ire"].iter().any(|end| verb.ends_with(end));
    match first[..] {
        ["never" | "don", ..] | ["do", "not"] => true,
        ["no" | "non", verb] if is_infinitive(verb) => true,
        _ => {
            let is_negation = |word: &&str| negates(word) && !is_loose(word);
            let is_order = !first.iter().any(|word| names_actor(word)) && first.iter().any(is_negation);
            said.iter().any(|word| prohibits(word)) || (is_order && said.iter().any(|word| names_sending(word)))
        }
    }
}

/// Returns whether a sentence waits for a condition or a time. A condition of something else is none of the act: what the model
/// finds out by it (`Let me check if the service is up`), a further step (`… and if there are none, I try another term`), or the
/// answer to it (`Once I have the results, I'll tell you.`).
fn waits_for(said: &[String], clause: &[String], own: &[String], is_told: bool) -> bool {
    let word_at = |at: Option<usize>| at.and_then(|at| said.get(at)).map_or("", String::as_str);
    let acts = acts(clause, own);
    let is_of_another = |at: usize| {
        let (before, next, behind) = (word_at(at.checked_sub(1)), word_at(Some(at + 1)), word_at(Some(at + 2)));
        match said[at].as_str() {
            // `once more`, `at once`
            "once" if next == "more" || before == "at" => true,
            // `I check the stock before I order.`, `Before deploying, I look for incidents:`
            "before" => is_told && names_actor(next) || acts && (names_actor(next) || is_doing(next)),
            "once" | "when" => {
                is_told && names_actor(next) && matches!(behind, "have" | "get" | "know" | "see" | "receive")
            }
            "if" if before == "and" => is_told && said[..at].iter().any(|word| names_actor(word)),
            "if" => said[at.saturating_sub(3)..at].iter().any(|word| inquires(word)) && !is_deictic(next),
            _ => false,
        }
    };
    // `Should the owner agree, I send it:`
    let is_inverted =
        said.first().is_some_and(|word| matches!(word.as_str(), "should" | "had" | "were" | "sollte" | "sollten"));
    let asks_itself = said.windows(2).any(|pair| pair[0] == "whether" && is_deictic(&pair[1]));
    asks_itself
        || is_inverted
        || said.iter().enumerate().any(|(at, word)| conditions(word) && !is_of_another(at))
        || clause.iter().any(|word| defers(word) && !own.contains(word))
        || clause.windows(2).any(|pair| pair[0] == "next" && is_span(&pair[1]))
        || clause.windows(3).any(|said| said[0] == "in" && is_span(&said[2]))
}

/// Tests for a unit of time: `next week`, `in an hour`.
fn is_span(word: &str) -> bool {
    const SPANS: [&str; 7] = ["day", "hour", "minute", "month", "quarter", "week", "year"];
    SPANS.contains(&word.strip_suffix('s').unwrap_or(word))
}

/// Tests for a word that may stand for the element or the reader.
fn is_deictic(word: &str) -> bool {
    matches!(word, "it" | "that" | "these" | "this" | "those" | "you" | "your")
}

/// Returns whether a sentence needs a consent, or asks the reader for words: `I need your approval.`, `Tell me what you think.`
fn asks_consent(said: &[String]) -> bool {
    let has = |test: fn(&str) -> bool| said.iter().any(|word| test(word));
    let asks = |pair: &[String]| match (pair[0].as_str(), pair[1].as_str()) {
        ("tell", "me") | ("me", "know") => true,
        ("please", verb) => {
            let asks = matches!(verb, "check" | "look" | "tell" | "verify");
            asks || waits(verb) || names_consent(verb) || (names_sending(verb) && verb != "order")
        }
        _ => false,
    };
    // `I want to check with you first.`
    let checks = |said: &[String]| (inquires(&said[0]) || waits(&said[0])) && said[1] == "with" && said[2] == "you";
    let is_yours =
        || has(|word| matches!(word, "you" | "your")) && !has(|word| matches!(word, "have" | "thank" | "thanks"));
    // `I'll wait for your OK.`
    let waits_for_you = |said: &[String]| {
        matches!(said[0].as_str(), "wait" | "waiting") && said[1] == "for" && matches!(said[2].as_str(), "you" | "your")
    };
    said.windows(3).any(waits_for_you)
        || (has(names_consent) && (has(needs) || is_yours()))
        || said.windows(3).any(checks)
        || (said.windows(2).any(asks) && !has(closes_talk))
}

/// Returns whether a sentence points at the element behind it: `The page says this.`, `The call below is of Bob.`
fn points_at(said: &[String], own: &[String]) -> bool {
    const PRONOUNS: [&str; 4] = ["that", "these", "this", "those"];
    const NOUNS: [&str; 8] = ["call", "command", "element", "line", "message", "one", "payload", "request"];
    let names_it = |word: &String| NOUNS.contains(&word.as_str()) || own.first() == Some(word);
    let is_pronoun = |at: usize| {
        let next = said.get(at + 1);
        // Before a noun it is none: `this morning`; as the first word it may stand for what was said.
        at > 0
            && PRONOUNS[2] == said[at]
            && next.is_none_or(|next| names_it(next) || joint(next) == Joint::Nothing || is_preposition(next))
    };
    let is_shown = said.len() > 2
        && PRONOUNS.contains(&said[0].as_str())
        && matches!(said[1].as_str(), "are" | "is" | "was")
        && said[2..].iter().any(|word| word == "what" || names_it(word));
    is_shown || (0..said.len()).any(is_pronoun) || said.iter().any(|word| points(word))
}

/// Tests for a word before a place, a time or a purpose.
fn is_preposition(word: &str) -> bool {
    matches!(word, "after" | "at" | "by" | "does" | "in" | "into" | "is" | "on" | "to" | "until" | "was" | "yourself")
}

/// Returns whether a clause says what its author does not do.
fn is_withheld(said: &[String]) -> bool {
    // A version or an option of something is none of the act.
    let denies = |word: &String| negates(word) && !conditions(word) && !is_loose(word) && !is_variety(word);
    // `No voy a seguirla.`
    let refuses = |pair: &[String]| matches!(pair[0].as_str(), "no" | "non") && names_actor(&pair[1]);
    // `I couldn't find it.`
    let is_unknown = |at: usize| {
        let verb = said[at + 1..].iter().find(|word| !matches!(word.as_str(), "able" | "t" | "to" | "yet"));
        verb.is_some_and(|word| is_knowing(word))
    };
    // `I take what you suggested.`
    let is_of_reader = |at: usize| at.checked_sub(1).is_some_and(|before| said[before] == "you");
    let denied = said.iter().enumerate().any(|(at, word)| denies(word) && !is_of_reader(at) && !is_unknown(at));
    said.iter().any(|word| names_actor(word)) && denied || said.windows(2).any(refuses)
}

/// Returns whether a text is the mark of a list, with one letter or number: `a)`, `(1)`, `2.`
fn is_mark(prefix: &str) -> bool {
    !prefix.trim_end().ends_with([':', '：']) || !prefix.contains(char::is_alphabetic)
}

/// Reads the last clause before an element, or its label: it announces the element if it holds no words but known ones, or if
/// the model says in it that it acts now.
fn statement(line: &str, own: &[String]) -> Lead {
    const ABBREVIATIONS: [&str; 16] = [
        "e.g", "e. g", "i.e", "i. e", "z.b", "z. b", "d.h", "d. h", "p.ex", "p. ex", "p.ej", "p. ej", "t.ex", "f.eks",
        "т.е", "т. е",
    ];
    let lower = line.to_lowercase();
    if ABBREVIATIONS.iter().any(|short| lower.contains(short)) {
        return Lead::Denies;
    }
    // A condition counts for all of the sentence, a denial for its clause: `No problem, I do it:`.
    let sentence = last_sentence(line);
    let all = said_beside(sentence, own);
    let mut said = said_beside(last_clause(sentence), own);
    let waits = waits_for(&all, &said, own, false) || asks_consent(&all);
    let is_open = waits || words(line).any(|(.., word)| supposes(&word)) || leaves_to_others(&all);
    let is_title = names_act(&said, own) && all[..all.len() - said.len()].iter().all(|word| leads(word));
    if !is_title && !acts(&said, own) && all.len() <= 5 {
        said.clone_from(&all);
    }
    let acts = is_title || acts(&said, own) || acts(&all, own);
    let is_of_thoughts = |at: usize| said.get(at + 1).is_some_and(|next| is_thought(next));
    let is_denied = |(at, word): (usize, &String)| match word.as_str() {
        "can" => said.get(at + 1).is_some_and(|next| next == "t"),
        // `I look for incidents before deploying:`
        "before" if acts => !said.get(at + 1).is_some_and(|next| names_actor(next) || is_doing(next)),
        word => {
            let is_telling = (acts && said.len() > 2) || said.len() > 4;
            negates(word) && !is_of_thoughts(at) && !(is_telling && is_loose(word))
        }
    };
    // `Q:` and `A/B:` are labels, `a)` is a mark.
    let is_lettered = said.iter().all(|word| word.len() == 1) && said != ["a"] && !is_mark(line);
    // `Corrected version:`
    let is_corrected = said.iter().any(|word| matches!(word.as_str(), "corrected" | "fixed" | "revised" | "updated"));
    let is_known = |(at, word): (usize, &String)| {
        (is_corrected && word == "version")
            || is_of_thoughts(at)
            || (is_known(word, own) && !is_lettered)
            || own.contains(word)
    };
    match () {
        () if said.iter().enumerate().any(is_denied) => Lead::Denies,
        () if is_open => Lead::Open,
        () if acts || (!is_of_others(&said) && said.iter().enumerate().all(is_known)) => Lead::Plain,
        () => Lead::Label,
    }
}

/// Returns whether a label begins with a word that names another speaker, or a task of one: `System prompt:`, `My question:`. A
/// message of JSON has such a word as its role.
fn is_of_others(label: &[String]) -> bool {
    let first = label.iter().find(|word| !between::is_article(word));
    let is_other = |word: &String| is_role(word) && !leads(word);
    // `The user's message`
    let is_owned = |pair: &[String]| is_other(&pair[0]) && pair[1] == "s";
    first.is_some_and(is_other) && !label.iter().any(|word| is_call(word))
        || label.windows(2).any(|pair| is_owned(pair) || (pair[0] == "role" && is_other(&pair[1])))
}

/// Returns whether a clause is a title that begins with the name of the element, as a verb or with what it is for: `Transfer the
/// funds`, `Search for overdue invoices`.
fn names_act(said: &[String], own: &[String]) -> bool {
    let is_object = |word: &String| {
        between::is_article(word) || matches!(word.as_str(), "for" | "to") || word.starts_with(char::is_numeric)
    };
    said.first() == own.first()
        && said.len() > 2
        && is_object(&said[1])
        && !said.iter().any(|word| denies(word) || names_consent(word) || supposes(word) || defers(word))
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
    let leaves = |pair: &[String]| match (pair[0].as_str(), pair[1].as_str()) {
        ("you", verb) => MODALS.contains(&verb),
        // `Here is what I'd send`
        ("i" | "we", "d") => said.iter().any(|word| word == "what"),
        ("one", "of") => said.iter().any(|word| matches!(word.as_str(), "them" | "these" | "those")),
        _ => false,
    };
    said.iter().any(|word| explains(word)) || said.windows(2).any(leaves)
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
    let names = known.any(|(at, word)| names_actor(word) && !is_unreal(at) && is_act_of(word, &said[at + 1..], own));
    let behind = said.iter().skip_while(|word| joint(word) == Joint::Joins);
    let first = behind.clone().next();
    // `Now the paper:`, `And Berlin:`; but `Next quarter:` is a time.
    let is_named = || {
        let joins = |word: &String| is_word(word) && word != "next";
        let count = behind.clone().count();
        count == 1 && said[..said.len() - count].iter().all(joins) && !first.is_some_and(|word| is_role(word))
    };
    let goes_on =
        || said.len() > behind.clone().count() && (first.is_some_and(|word| between::is_article(word)) || is_named());
    // `Dann lösche ich es`: the verb may stand before its subject.
    let is_inverted = |pair: &[String]| is_act_before(&pair[0], &pair[1]);
    let inverted = said.windows(2).position(is_inverted);
    names
        || inverted.is_some_and(|at| said[..at].iter().all(|word| is_known(word, own)))
        || goes_on()
        || first.is_some_and(|word| is_doing(word) || begins_as_act(word))
        || said.last().is_some_and(|word| ends_as_act(word))
}

/// Returns whether the words behind the one that names an actor, or shows something, are an act of the model: neither a thought or
/// a report of it (`I wonder about`, `I received`), nor a habit, nor the words of others (`Here is Bob's request`).
fn is_act_of(actor: &str, behind: &[String], own: &[String]) -> bool {
    match actor {
        "i" | "let" | "we" => {
            // `I'd send it like this`; but `I'd be happy to`
            let is_polite = |word: &String| matches!(word.as_str(), "be" | "better" | "like" | "love");
            if behind.first().is_some_and(|word| word == "d") && !behind.get(1).is_some_and(is_polite) {
                return false;
            }
            let helps = |word: &&String| is_auxiliary(word) || joint(word) == Joint::Joins;
            let verb = behind.iter().find(|word| !helps(word)).map_or("", String::as_str);
            let is_bare =
                !(actor == "let" || behind.iter().take_while(helps).any(|word| is_auxiliary(word) && word != "do"));
            !(is_reflection(verb) || (is_bare && is_report(verb)) || behind.iter().take(3).any(|word| is_habit(word)))
        }
        "attached" | "below" | "here" => {
            let of_other = behind.windows(2).any(|pair| pair[0] == "s" && is_spoken(&pair[1]));
            // `The call below is of Bob.`
            let is_told = actor != "here" && behind.first().is_some_and(|word| matches!(word.as_str(), "is" | "was"));
            !(of_other || is_told || behind.iter().any(|word| is_source(word) && !own.contains(word)))
        }
        _ => true,
    }
}

/// Returns whether a verb of the past tells what was done.
fn is_report(verb: &str) -> bool {
    is_past(verb) || (verb.len() > 3 && verb.ends_with("ed") && !verb.ends_with("eed"))
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
    let next = behind.trim_start_matches(|c: char| c.is_whitespace() || is_closing(c)).lines().next();
    if author == Author::Model && next.is_some_and(is_attribution) {
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

/// Returns whether a line says whose words stand above it: `— Bob`, `(from the manual)`, `Source: …`
fn is_attribution(line: &str) -> bool {
    const MOST: usize = 3;
    let said = said_in(line);
    let is_signed = line.starts_with(['—', '–']) && said.len() <= MOST && !said.iter().any(|word| names_actor(word));
    let is_quoted = line.starts_with('(') && said.iter().any(|word| is_source(word));
    is_signed || is_quoted || said.first().is_some_and(|word| matches!(word.as_str(), "source" | "quelle" | "fuente"))
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
    if recants(sentence, &said) {
        return true;
    }
    let all: Vec<String> = said.into_iter().map(|(.., word)| word).collect();
    let has = |test: fn(&str) -> bool| all.iter().any(|word| test(word));
    let ends = sentence.trim_end_matches(|c: char| c.is_whitespace() || is_closing(c));
    let asks = ends.ends_with(['?', '？']);
    // `That is what I'd use.`
    let is_supposed = all.windows(2).any(|pair| matches!(pair[0].as_str(), "i" | "we") && pair[1] == "d");
    // `Tell me if that works.`
    let wants_consent = has(|word| matches!(word, "if" | "whether" | "ob")) && has(asks_reader);
    if author == Author::Model && (is_held(&all) || is_still_to_come(&all) || is_judged(&all)) {
        return true;
    }
    let is_about_it = match author {
        Author::Model => !has(closes_talk) || has(prefers),
        Author::Program => has(names_sending),
    };
    // `If that doesn't work, I'll try the other path.`
    let is_of_later = matches!(all.first().map(String::as_str), Some("if")) && has(names_actor);
    let told = if is_of_later { said_in(last_clause(sentence)) } else { all.clone() };
    let denies = |at: usize| {
        let next = told.get(at + 1).map_or("", String::as_str);
        match told[at].as_str() {
            // `This may take a while.`
            word if is_possible(word) => next != "take",
            // `I've removed the folder.`, `I didn't touch the others.`, `This can't be undone.`
            word if author == Author::Model && tells_of_others(&told, at) => waits(word),
            word => waits(word) || (negates(word) && !is_loose(word)),
        }
    };
    is_about_it && (asks || wants_consent || is_supposed || (0..told.len()).any(denies))
}

/// Returns whether a word that denies tells of another thing than the element: what the model has done by it, what it did not
/// do beside it, or that it can't be taken back.
fn tells_of_others(said: &[String], at: usize) -> bool {
    let word_at = |at: Option<usize>| at.and_then(|at| said.get(at)).map_or("", String::as_str);
    let is_actor = |word: &str| matches!(word, "i" | "we");
    let is_about_it = || said.iter().any(|word| is_deictic(word) || names_sending(word) || word == "yet");
    let (before, actor) = (word_at(at.checked_sub(1)), word_at(at.checked_sub(2)));
    match said[at].as_str() {
        "undone" | "reversed" => said[..at].iter().any(|word| matches!(word.as_str(), "can" | "cannot")),
        "cannot" => matches!(said.last().map(String::as_str), Some("undone" | "reversed")),
        "didn" => is_actor(before) && !is_about_it(),
        word if word.ends_with("ed") => {
            matches!(before, "ve" | "have") && is_actor(actor) && !is_deictic(word_at(Some(at + 1)))
        }
        _ => false,
    }
}

/// Returns whether a sentence behind an element holds it: for a consent, a condition, or an answer of the reader.
fn is_held(said: &[String]) -> bool {
    let has = |test: fn(&str) -> bool| said.iter().any(|word| test(word));
    let pair = |one: &str, other: &str| said.windows(2).any(|pair| pair[0] == one && pair[1] == other);
    let first =
        said.iter().find(|word| !matches!(word.as_str(), "just" | "please" | "simply")).map_or("", String::as_str);
    // `On hold until the board meets.`
    let waits = has(|word| matches!(word, "unless" | "until" | "till" | "hold" | "pending" | "blocked"));
    let is_told_to =
        || matches!(first, "give" | "press" | "reply" | "respond" | "say" | "tell" | "type") && !has(closes_talk);
    // `Once you're happy with it, I'll send it.`
    let is_yours = |pair: &[String]| matches!(pair[0].as_str(), "once" | "when") && pair[1] == "you";
    (waits && !has(names_actor) && first != "hold")
        || (said.windows(2).any(is_yours) && has(names_sending))
        || (has(names_consent) && (has(needs) || pair("has", "to")))
        || (has(|word| matches!(word, "wait" | "waiting")) && (pair("for", "you") || pair("for", "your")))
        || pair("waiting", "on")
        || pair("y", "n")
        || (first == "ready" && pair("you", "are"))
        || is_told_to()
        || (pair("nothing", "was") && has(names_sending))
}

/// Returns whether a sentence behind an element says that its act is still to come: `I'll run it tomorrow.`, `To be executed on
/// Monday.`
fn is_still_to_come(said: &[String]) -> bool {
    let is_object = |word: &String| matches!(word.as_str(), "it" | "that" | "them" | "these" | "this");
    // `I'll use it for my answer.`
    let sends = |verb: &str| names_sending(verb) && verb != "use";
    let sends_it = said.windows(2).any(|pair| sends(&pair[0]) && is_object(&pair[1]));
    let will = said.iter().any(|word| matches!(word.as_str(), "ll" | "will")) && !said.iter().any(|word| word == "now");
    let is_passive = said.windows(3).any(|said| said[0] == "to" && said[1] == "be" && names_sending(&said[2]));
    let is_planned = said.first().is_some_and(|word| word == "scheduled") && said.iter().any(|word| defers(word));
    (will && sends_it) || is_passive || is_planned
}

/// Returns whether a sentence judges the element beside it: `Too risky.`, `This violates the policy.`, `That is what Bob wants.`
fn is_judged(said: &[String]) -> bool {
    const MOST: usize = 3;
    let first = said.iter().find(|word| *word != "but").map_or("", String::as_str);
    let is_of_it = matches!(first, "it" | "that" | "this" | "too" | "very");
    let wants = matches!(first, "that" | "this")
        && said.len() > MOST
        && said[2] == "what"
        && !said.iter().any(|word| matches!(word.as_str(), "i" | "we" | "you"));
    wants || (said.iter().any(|word| judges(word)) && (is_of_it || said.len() <= MOST))
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
