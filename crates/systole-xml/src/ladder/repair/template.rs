//! Markers of chat templates: text in which a model marks thoughts, channels and turns without tags.
//!
//! Each model family has its own notation (`[THINK]`, `<|channel|>analysis<|message|>`, `<|START_THINKING|>`, `◁think▷`,
//! `<|im_start|>user`), but all are made alike: a word in brackets that XML does not have, with or without a second one
//! that ends what it began. So they are recognized by their shape and the parts of their words, not by a list of models. Only
//! the outside of elements has markers: inside of an element, they are text.

use std::collections::HashMap;

use super::spoken;

/// A marker of a chat template.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Marker {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) kind: Kind,
}

/// The meaning of a marker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// The start of thoughts: `[THINK]`, `<|begin_of_thought|>`.
    Thought,
    /// Their end: `[/THINK]`, `<|end_of_thought|>`.
    ThoughtEnd,
    /// The name of a channel follows: `<|channel|>`.
    Channel,
    /// The text of a channel or a turn follows: `<|message|>`, `<|end_header_id|>`.
    Message,
    /// A turn begins, and its speaker follows: `<|im_start|>`.
    Turn,
    /// A turn begins, and its speaker is named: `<|user|>`.
    TurnOf(Speaker),
    /// The end of a message or a turn: `<|end|>`.
    End,
    /// Text that is not of the model up to the offset: `[INST]` with its `[/INST]`.
    Quoted { end: usize },
    /// Text of unknown meaning up to the offset: `[PLAN]` with its `[/PLAN]`.
    Unknown { end: usize },
    /// The end of thoughts that words name: `...done thinking.` Without a start it may end something else.
    SpokenEnd,
    /// Thoughts that words begin: `## Thinking`. They end at their end marker, or where the answer begins.
    Spoken { is_sure: bool },
    /// Thoughts behind a label in brackets: `[Thinking: …]`.
    Enclosed { open: char, close: char },
    /// Thoughts in the value that follows: `"thinking": `.
    Field,
    /// Thoughts in the rest of an object: `"type": "thinking"`.
    Object,
    /// A part of the output begins. In brackets it ends thoughts in brackets; the answer ends those that words began.
    Answer { is_bracketed: bool, is_final: bool },
    /// Words name the speaker of a turn: `Human:`.
    Said(Voice),
}

impl Kind {
    /// Returns whether the marker counts only where no other one stands.
    const fn is_soft(self) -> bool {
        matches!(self, Self::Spoken { .. } | Self::Answer { .. } | Self::Said(_))
    }
}

/// A speaker that words name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Voice {
    User,
    /// A tool or the system: also a label of the answer.
    Result,
    Model,
}

/// The speaker of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Speaker {
    /// The model.
    Model,
    /// The model, in its thoughts.
    Thoughts,
    /// A user, a tool or the system.
    Other,
}

/// The markers of a text, in order.
#[derive(Debug, Default)]
pub(super) struct Template {
    markers: Vec<Marker>,
}

impl Template {
    /// Reads the markers of a text. Names of elements of the contract in angle brackets are none.
    pub(super) fn new(text: &str, is_element: &dyn Fn(&str) -> bool) -> Self {
        Self { markers: merge(read(text), spoken::read(text, is_element)) }
    }

    /// The first marker that starts at or behind an offset.
    pub(super) fn next(&self, at: usize) -> Option<Marker> {
        let index = self.markers.partition_point(|marker| marker.start < at);
        self.markers.get(index).copied()
    }

    /// The markers behind an offset.
    pub(super) fn behind(&self, at: usize) -> impl Iterator<Item = Marker> {
        let index = self.markers.partition_point(|marker| marker.start < at);
        self.markers[index..].iter().copied()
    }
}

/// Longest word of a marker, in bytes.
const LONGEST: usize = 48;

/// Parts of words that say that an edge begins something.
const OPENING: &[&str] = &["begin", "start", "open", "prefix"];

/// Parts of words that say that an edge ends something.
const CLOSING: &[&str] = &["end", "close", "stop", "suffix", "unused17"];

/// Parts of words of thoughts. Those that begin with `think` or `thought` are, too.
const THOUGHTS: &[&str] = &[
    "analysis",
    "cot",
    "deliberation",
    "inner",
    "monologue",
    "rationale",
    "reason",
    "reasoning",
    "reflect",
    "reflection",
    "scratchpad",
    "unused16",
    "unused17",
];

/// Parts that only hold a word together.
const GLUE: &[&str] = &["of", "the", "im", "id", "token", "section", "tag"];

/// Speakers other than the model.
const OTHERS: &[&str] = &[
    "context",
    "developer",
    "documents",
    "environment",
    "function",
    "functions",
    "human",
    "inst",
    "ipython",
    "observation",
    "system",
    "tool",
    "tools",
    "user",
];

/// What tools return.
const RESULTS: &[&str] = &["content", "output", "outputs", "response", "responses", "result", "results"];

/// The model as a speaker.
const MODEL: &[&str] = &["ai", "assistant", "bot", "chatbot", "gpt", "model"];

/// Channels that hold the answer.
const ANSWERS: &[&str] = &["answer", "final", "output", "reply", "response", "solution"];

/// Words around an answer that say nothing about it.
const NEUTRAL: &[&str] = &[
    "action",
    "actions",
    "ans",
    "answer",
    "bos",
    "box",
    "call",
    "calls",
    "center",
    "code",
    "constrain",
    "final",
    "function",
    "html",
    "json",
    "message",
    "output",
    "payload",
    "python",
    "reply",
    "response",
    "result",
    "sep",
    "sentence",
    "size",
    "solution",
    "startoftext",
    "text",
    "tool",
    "xml",
];

/// A word in brackets.
struct Token<'t> {
    word: &'t str,
    end: usize,
    /// True if a slash, or a bar at its end only, says that it ends something.
    closes: bool,
    /// True if the brackets are those of special tokens: `<|` and `|>`.
    is_special: bool,
}

/// A marker whose partner is still to be found.
enum Found {
    Known(Kind),
    Opens { key: String, is_quoted: bool },
    Closes { key: String },
}

/// Reads the markers of a text, in one pass and a search for their partners.
fn read(text: &str) -> Vec<Marker> {
    let mut found: Vec<(usize, usize, Found)> = Vec::new();
    let bytes = text.as_bytes();
    let mut from = 0;
    while let Some(length) = memchr::memchr3(b'<', b'[', b'{', &bytes[from..]) {
        let at = from + length;
        from = at + 1;
        // `\begin{thinking}`: the word before the brackets tells what they mean.
        if text[..at].ends_with("\\begin") || text[..at].ends_with("\\end") {
            continue;
        }
        if let Some(token) = token(text, at) {
            from = token.end;
            found.extend(sense(&token).map(|sense| (at, token.end, sense)));
        }
    }
    if !text.is_ascii() {
        for open in ["◁", "【", "⟨"] {
            for at in memchr::memmem::find_iter(bytes, open) {
                let Some(token) = token(text, at) else { continue };
                found.extend(sense(&token).map(|sense| (at, token.end, sense)));
            }
        }
    }
    found.extend(run_together(text));
    found.sort_by_key(|(start, ..)| *start);
    pair(found)
}

/// Adds the markers that are words to those of templates, where they don't overlap.
fn merge(tokens: Vec<Marker>, words: Vec<Marker>) -> Vec<Marker> {
    let (soft, mut hard): (Vec<Marker>, Vec<Marker>) = words.into_iter().partition(|marker| marker.kind.is_soft());
    hard.sort_by_key(|marker| marker.start);
    // A word that the table knows has a meaning of its own, without a partner.
    let mut markers = tokens;
    markers.retain(|token| {
        let is_known = hard.binary_search_by_key(&token.start, |marker| marker.start).is_ok();
        !(matches!(token.kind, Kind::Unknown { .. }) && is_known)
    });
    for found in [hard, soft] {
        markers.sort_by_key(|marker| marker.start);
        let ends: Vec<usize> = markers
            .iter()
            .scan(0, |reach: &mut usize, marker| {
                *reach = marker.end.max(*reach);
                Some(*reach)
            })
            .collect();
        let is_free = |new: &Marker| {
            let before = markers.partition_point(|marker| marker.start < new.end);
            before == 0 || ends[before - 1] <= new.start
        };
        let free: Vec<Marker> = found.into_iter().filter(is_free).collect();
        markers.extend(free);
    }
    markers.sort_by_key(|marker| marker.start);
    markers
}

/// Pairs the markers whose meaning depends on a partner. Those without one say nothing.
fn pair(found: Vec<(usize, usize, Found)>) -> Vec<Marker> {
    let mut markers: Vec<Marker> = Vec::with_capacity(found.len());
    let mut open: HashMap<String, (usize, usize, bool)> = HashMap::new();
    for (start, end, found) in found {
        match found {
            Found::Known(kind) => markers.push(Marker { start, end, kind }),
            Found::Opens { key, is_quoted } => drop(open.entry(key).or_insert((start, end, is_quoted))),
            Found::Closes { key } => {
                let Some((from, behind, is_quoted)) = open.remove(&key) else { continue };
                let kind = if is_quoted { Kind::Quoted { end } } else { Kind::Unknown { end } };
                markers.push(Marker { start: from, end: behind, kind });
            }
        }
    }
    markers.sort_by_key(|marker| marker.start);
    markers
}

/// Reads a word in brackets: `[WORD]`, `{word}`, `◁word▷`, `<|word|>`, `<|word>`, `<word|>`, and the turns of Gemma
/// (`<start_of_turn>`), each with a slash or without.
fn token(text: &str, at: usize) -> Option<Token<'_>> {
    let (_, close) = [("[", "]"), ("{", "}"), ("◁", "▷"), ("【", "】"), ("⟨", "⟩"), ("<", ">")]
        .into_iter()
        .find(|(open, _)| text[at..].starts_with(open))?;
    let mut pos = at + text[at..].chars().next()?.len_utf8();
    let is_angle = close == ">";
    let take = |pos: &mut usize, marks: &[char]| {
        let found = text[*pos..].chars().next().filter(|c| marks.contains(c));
        *pos += found.map_or(0, char::len_utf8);
        found.is_some()
    };
    const BARS: &[char] = &['|', '｜'];
    let mut closes = take(&mut pos, &['/']);
    let is_barred = is_angle && take(&mut pos, BARS);
    closes |= take(&mut pos, &['/']);
    let is_of_word =
        |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '▁' | ':' | '.') || (is_barred && c == ' ');
    let letters = text[pos..].char_indices().take_while(|&(length, c)| length < LONGEST && is_of_word(c));
    let length = letters.last().map_or(0, |(start, c)| start + c.len_utf8());
    let word = &text[pos..pos + length];
    pos += word.len();
    closes |= take(&mut pos, &['/']);
    let is_barred_behind = is_angle && take(&mut pos, BARS);
    let is_turn = || matches!(word, "start_of_turn" | "end_of_turn");
    let is_special = is_barred || is_barred_behind;
    if word.is_empty() || !text[pos..].starts_with(close) || (is_angle && !is_special && !is_turn()) {
        return None;
    }
    let end = pos + close.len();
    // The text of a link in Markdown.
    if close == "]" && text[end..].starts_with(['(', '[', ':']) {
        return None;
    }
    Some(Token { word, end, closes: closes || (is_barred_behind && !is_barred), is_special: is_angle })
}

/// The meaning of a word in brackets.
fn sense(token: &Token<'_>) -> Option<Found> {
    let is = |list: &[&str], part: &str| list.iter().any(|word| word.eq_ignore_ascii_case(part));
    let known = |kind| Some(Found::Known(kind));
    let mut core: Vec<&str> = Vec::new();
    let (mut opens, mut closes) = (false, token.closes);
    for part in parts(token.word) {
        opens |= is(OPENING, part);
        closes |= is(CLOSING, part);
        if !(is(OPENING, part) || is(GLUE, part) || (is(CLOSING, part) && !is(THOUGHTS, part))) {
            core.push(part);
        }
    }
    if core.contains(&"no") {
        return None;
    }
    if core.iter().any(|part| is_thinking(part) || is(THOUGHTS, part)) {
        return known(if closes { Kind::ThoughtEnd } else { Kind::Thought });
    }
    let key = core.join("_").to_ascii_lowercase();
    let quoted = |is_quoted| {
        if closes {
            Some(Found::Closes { key: key.clone() })
        } else {
            Some(Found::Opens { key: key.clone(), is_quoted })
        }
    };
    let is_result =
        core.iter().any(|part| is(RESULTS, part)) && core.iter().any(|part| is(&["tool", "function"], part));
    let is_other = core.iter().any(|part| is(OTHERS, part));
    if !token.is_special {
        let is_written = core.iter().all(|part| part.len() > 2 && part.bytes().all(|byte| byte.is_ascii_alphabetic()));
        let is_neutral = core.is_empty() || !is_written || core.iter().all(|part| is(NEUTRAL, part));
        return if names_calls(token.word) || (is_neutral && !is_result && !is_other) {
            None
        } else if is_result || is_other {
            quoted(true)
        } else {
            quoted(false)
        };
    }
    match &*key {
        "channel" => known(if closes { Kind::End } else { Kind::Channel }),
        "message" | "content" | "middle" | "sep" if !closes => known(Kind::Message),
        "header" | "role" if closes => known(Kind::Message),
        "" | "turn" | "role" | "header" if opens || (!closes && key == "turn") => known(Kind::Turn),
        "" | "turn" | "message" | "content" | "text" | "sentence" if closes => known(Kind::End),
        "return" | "call" | "eot" | "eom" | "eos" | "endoftext" => known(Kind::End),
        _ if is_result => quoted(true),
        _ if core.len() == 1 && is(MODEL, core[0]) => {
            known(if closes { Kind::End } else { Kind::TurnOf(Speaker::Model) })
        }
        _ if core.len() == 1 && is_other => known(if closes { Kind::End } else { Kind::TurnOf(Speaker::Other) }),
        _ if core.iter().any(|part| is(NEUTRAL, part)) => None,
        _ => quoted(false),
    }
}

/// Notations whose special tokens were lost, or that never had any: the channels of harmony run together
/// (`analysisWe should …assistantfinal…`), and the headings of Granite.
fn run_together(text: &str) -> Vec<(usize, usize, Found)> {
    let mut found = Vec::new();
    let start = text.len() - text.trim_start().len();
    let first = ["analysis", "commentary"].into_iter().find(|name| text[start..].starts_with(name));
    let finals: Vec<usize> = memchr::memmem::find_iter(text.as_bytes(), "assistantfinal").collect();
    if let Some(name) = first {
        let behind = start + name.len();
        if !finals.is_empty() || text[behind..].starts_with(char::is_uppercase) {
            found.push((start, behind, Found::Known(Kind::Thought)));
        }
    }
    found.extend(finals.into_iter().map(|at| (at, at + "assistantfinal".len(), Found::Known(Kind::ThoughtEnd))));
    let heading = |words: &str| {
        let at = memchr::memmem::find(text.as_bytes(), words.as_bytes())?;
        let lead = ["Here is ", "Here's "].into_iter().find(|lead| text[..at].ends_with(lead))?;
        Some((at - lead.len(), at + words.len()))
    };
    if let Some((thoughts, answer)) = heading("my thought process:").zip(heading("my response:"))
        && thoughts.1 <= answer.0
    {
        found.push((thoughts.0, thoughts.1, Found::Known(Kind::Thought)));
        found.push((answer.0, answer.1, Found::Known(Kind::ThoughtEnd)));
    }
    found
}

/// The name of a channel or a speaker at the start of a text, and its length with the white space before it.
pub(super) fn name(text: &str) -> (&str, usize) {
    let start = text.len() - text.trim_start_matches([' ', '\t']).len();
    let is_of_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | ':');
    let length = text[start..].find(|c| !is_of_name(c)).unwrap_or(text.len() - start);
    (&text[start..start + length], start + length)
}

/// Tests the name of a channel for one that holds the answer.
pub(super) fn is_answer(name: &str) -> bool {
    parts(name).next().is_some_and(|first| ANSWERS.iter().any(|answer| answer.eq_ignore_ascii_case(first)))
}

/// The speaker of a name behind the start of a turn.
pub(super) fn speaker(name: &str) -> Speaker {
    let is = |list: &[&str]| parts(name).any(|part| list.iter().any(|word| word.eq_ignore_ascii_case(part)));
    let is_thought = parts(name).any(is_thinking) || is(THOUGHTS);
    let first = parts(name).next().unwrap_or_default();
    match is_thought {
        true => Speaker::Thoughts,
        false if OTHERS.iter().any(|other| other.eq_ignore_ascii_case(first)) => Speaker::Other,
        false => Speaker::Model,
    }
}

/// Tests the name of an element or of a language of code for thoughts.
pub(super) fn names_thoughts(name: &str) -> bool {
    const WHOLE: &[&str] = &["reasoning", "reflection", "scratchpad"];
    const PARTS: &[&str] = &["think", "thinking", "thought", "thoughts"];
    let is = |list: &[&str], part: &str| list.iter().any(|word| word.eq_ignore_ascii_case(part));
    is(WHOLE, name) || parts(name).any(|part| is(PARTS, part))
}

/// Tests the name of an element, or a word in brackets, for one in which models enclose calls: `tool_call`, `function_calls`,
/// `invoke`.
pub(super) fn names_calls(name: &str) -> bool {
    const CALLS: &[&str] = &["action", "actions", "call", "calls", "invoke", "use"];
    const TOOLS: &[&str] = &["function", "functions", "tool", "tools"];
    let is = |list: &[&str], part: &str| list.iter().any(|word| word.eq_ignore_ascii_case(part));
    parts(name).all(|part| is(CALLS, part) || is(TOOLS, part)) && parts(name).any(|part| is(CALLS, part))
}

/// Tests the name of an element for one in which models enclose their whole answer: `response`, `final_answer`. Those with
/// further parts may hold the words of others: `tool_response`.
pub(super) fn names_answers(name: &str) -> bool {
    const ANSWERS: &[&str] = &["answer", "output", "reply", "response"];
    let is = |list: &[&str], part: &str| list.iter().any(|word| word.eq_ignore_ascii_case(part));
    parts(name).all(|part| is(ANSWERS, part) || is(&["final"], part)) && parts(name).any(|part| is(ANSWERS, part))
}

/// Returns whether a part of a word begins with `think` or `thought`, in any case of letters.
fn is_thinking(part: &str) -> bool {
    ["think", "thought"].iter().any(|stem| part.get(..stem.len()).is_some_and(|head| head.eq_ignore_ascii_case(stem)))
}

/// The parts of a word: runs of letters and digits, which a capital behind a small letter divides, too.
fn parts(word: &str) -> impl Iterator<Item = &str> {
    let runs = word.split(|c: char| !c.is_alphanumeric()).filter(|run| !run.is_empty());
    runs.flat_map(|run| {
        let mut rest = run;
        std::iter::from_fn(move || {
            let bytes = rest.as_bytes();
            let is_hump = |pair: &[u8]| pair[0].is_ascii_lowercase() && pair[1].is_ascii_uppercase();
            let end = bytes.windows(2).position(is_hump).map_or(rest.len(), |at| at + 1);
            let (part, behind) = rest.split_at(end);
            rest = behind;
            (!part.is_empty()).then_some(part)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_in_brackets_are_told_apart_by_their_parts() {
        let only = |text: &str| match &read(text)[..] {
            [] => None,
            [marker] => Some(marker.kind),
            more => panic!("{text}: {more:?}"),
        };
        for text in [
            "[THINK]",
            "[think]",
            "[BEGIN_OF_THOUGHT]",
            "<|think|>",
            "<|begin_of_thought|>",
            "<|START_THINKING|>",
            "◁think▷",
            "<｜begin▁of▁thinking｜>",
            "<|inner_prefix|>",
            "[unused16]",
            "{reasoning}",
            "【Thoughts】",
            "<|startOfThought|>",
        ] {
            assert_eq!(only(text), Some(Kind::Thought), "{text}");
        }
        for text in [
            "[/THINK]",
            "<|/think|>",
            "</|think|>",
            "<|end_of_thought|>",
            "<|END_THINKING|>",
            "◁/think▷",
            "<|thinking_end|>",
            "<|inner_suffix|>",
            "[unused17]",
            "<think|>",
        ] {
            assert_eq!(only(text), Some(Kind::ThoughtEnd), "{text}");
        }
        for (text, kind) in [
            ("<|channel|>", Kind::Channel),
            ("<|channel>", Kind::Channel),
            ("<channel|>", Kind::End),
            ("<|message|>", Kind::Message),
            ("<|end_header_id|>", Kind::Message),
            ("<|start|>", Kind::Turn),
            ("<|im_start|>", Kind::Turn),
            ("<start_of_turn>", Kind::Turn),
            ("<|im_end|>", Kind::End),
            ("<|eot_id|>", Kind::End),
            ("<|return|>", Kind::End),
            ("<|user|>", Kind::TurnOf(Speaker::Other)),
            ("<｜Assistant｜>", Kind::TurnOf(Speaker::Model)),
            ("[INST]x[/INST]", Kind::Quoted { end: 14 }),
            ("[PLAN]x[/PLAN]", Kind::Unknown { end: 14 }),
        ] {
            assert_eq!(only(text), Some(kind), "{text}");
        }
        for text in [
            "[thoughts](x)",
            "[INST]",
            "[PLAN]",
            "[1]",
            "[x]",
            "[a, b]",
            "<|>",
            "<think>",
            "</think>",
            "<|tool_call_begin|>",
            "<|begin_of_solution|>",
            "<|no_think|>",
            "[ANSWER]x[/ANSWER]",
            "a <b|c> d",
            "{",
            "[",
            "<|",
            "<|think",
            "[think",
        ] {
            assert_eq!(only(text), None, "{text}");
        }
    }

    #[test]
    fn channels_and_speakers_are_known_by_their_names() {
        assert!(
            is_answer("final")
                && is_answer("Final")
                && !is_answer("analysis")
                && !is_answer("commentary")
                && !is_answer("")
        );
        assert_eq!(name(" final <x"), ("final", 6));
        for (name, expected) in [
            ("assistant", Speaker::Model),
            ("", Speaker::Model),
            ("model", Speaker::Model),
            ("assistant/think", Speaker::Thoughts),
            ("user", Speaker::Other),
            ("functions.search", Speaker::Other),
            ("System", Speaker::Other),
        ] {
            assert_eq!(speaker(name), expected, "{name}");
        }
    }
}
