//! Markers that are words: thoughts, answers and turns that a model names in brackets of any script, on lines of their own,
//! as labels, and in the fields of JSON.
//!
//! The shapes of notations are one table here; the meanings of their words are the table of [`words`](super::words):
//!
//! | shape | examples |
//! |---|---|
//! | brackets, anywhere | `[ thinking ]`, `[BEGIN THOUGHT]`, `〖think〗`, `{% think %}`, `< think >`, `[[ ## reasoning ## ]]` |
//! | brackets with text | `[Thinking: …]`, `(Thought: …)` |
//! | brackets that quote, in pairs | `` `<think>`…`</think>` ``, `&lt;think&gt;…&lt;/think&gt;`, `«think»…«/think»` |
//! | a line | `## Thinking`, `**Thought process**`, `=====Thinking=====`, `...done thinking.`, `thought` |
//! | a label | `Thinking: …`, `Thought - …`, `*thinking* …`, `Answer: …`, `Human: …` |
//! | a field of JSON | `"thinking": "…"`, `"type": "thinking"` |
//! | a property of YAML, a sign | `- type: thinking`, `kind = "thought"`, `💭` |
//! | struck out | `~~…~~` |

use super::lexis::name_end;
use super::template::{Kind, Marker, Voice};
use super::words::{Phrase, Says, begins, phrase};

/// Brackets around the words of a marker.
const BRACKETS: &[(char, char)] = &[
    ('[', ']'),
    ('{', '}'),
    ('<', '>'),
    ('【', '】'),
    ('〖', '〗'),
    ('〈', '〉'),
    ('《', '》'),
    ('＜', '＞'),
    ('［', '］'),
    ('｛', '｝'),
    ('〔', '〕'),
    ('⟨', '⟩'),
    ('⟦', '⟧'),
    ('⟪', '⟫'),
    ('◁', '▷'),
    ('❬', '❭'),
    ('❮', '❯'),
    ('❰', '❱'),
    ('❲', '❳'),
    ('⧼', '⧽'),
];

/// Brackets that also quote a word of prose: markers only in pairs around a draft, or at the start of a line.
const QUOTES: &[(char, char)] =
    &[('«', '»'), ('‹', '›'), ('「', '」'), ('『', '』'), ('（', '）'), ('`', '`'), ('&', '&')];

/// Names of fields whose value tells what an object holds.
const KINDS: &[&str] = &["channel", "kind", "name", "phase", "role", "section", "stage", "type"];

/// Length of the longest marker, in bytes.
const LONGEST: usize = 160;

/// The markers of a text that are words, in no order. Names of elements of the contract in angle brackets are none.
pub(super) fn read(text: &str, is_element: &dyn Fn(&str) -> bool) -> Vec<Marker> {
    let mut found = Vec::new();
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        found.extend(head(text, start, start + line.len()));
        start += line.len();
    }
    let bytes = text.as_bytes();
    found.extend(memchr::memchr3_iter(b'[', b'{', b'<', bytes).filter_map(|at| bracket(text, at, is_element)));
    found.extend(memchr::memchr2_iter(b'"', b'\'', bytes).filter_map(|at| field(text, at)));
    let mut quotes: Vec<usize> = memchr::memchr2_iter(b'`', b'&', bytes).collect();
    if !text.is_ascii() {
        for (at, c) in text.char_indices().filter(|(_, c)| !c.is_ascii()) {
            if QUOTES.iter().any(|(open, _)| *open == c) {
                quotes.push(at);
            } else if BRACKETS.iter().any(|(open, _)| *open == c) {
                found.extend(bracket(text, at, is_element));
            }
        }
        quotes.sort_unstable();
    }
    quoted(text, &quotes, &mut found);
    struck(text, &mut found);
    found
}

/// Returns whether comments or instructions in bytes mark thoughts: `<!-- thinking -->`, `<?thinking?>`.
pub(in crate::ladder) fn marks_thoughts(bytes: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(bytes) else { return false };
    let marks = |open: &str| memchr::memmem::find_iter(bytes, open).any(|at| bracket(text, at, &|_| false).is_some());
    marks("<!--") || marks("<?")
}

/// The marker that a line begins with: the whole line, the part of it before a tag, or a label.
fn head(text: &str, start: usize, line_end: usize) -> Option<Marker> {
    let line = &text[start..line_end];
    let from = start + (line.len() - line.trim_start().len());
    if let Some(length) = message_mark(&text[from..line_end]) {
        return Some(Marker { start: from, end: from + length, kind: Kind::Said(Voice::Result) });
    }
    let stop = head_end(text, from, line_end);
    if let Some(end) = balloon(text, from, stop).or_else(|| property(text, from, stop)) {
        return Some(Marker { start: from, end, kind: Kind::Spoken { is_sure: true } });
    }
    let opener = text[from..stop].chars().next()?;
    let found = phrase(text, from, stop, |gap| label_end(gap, opener).is_some())?;
    let Phrase { says, closes, .. } = found;
    let (before, gap) = (&text[from..found.start], &text[found.end..found.next]);
    // A field of JSON, and the text of a link in Markdown, are read elsewhere or not at all.
    if before.ends_with(['"', '\'']) || gap.contains("](") {
        return None;
    }
    let label = label_end(gap, opener);
    // The words may go on behind what is read.
    if label.is_none() && stop - from >= LONGEST {
        return None;
    }
    let is_named = label.is_some_and(|_| gap.contains([':', '：'])) || before.contains(['#', '*', '[', '|', '=']);
    let is_bare = || {
        before.is_empty()
            && stop == line_end
            && [u8::is_ascii_lowercase, u8::is_ascii_uppercase]
                .iter()
                .any(|is_case| text[from..stop].bytes().all(|byte| is_case(&byte) || byte.is_ascii_whitespace()))
    };
    let kind = match says {
        Says::Thoughts { is_sure: true } if closes => Kind::SpokenEnd,
        Says::Thoughts { .. } if closes => Kind::Answer { is_bracketed: false, is_final: false },
        Says::Thoughts { is_sure } => Kind::Spoken { is_sure },
        Says::Answer { is_final } => Kind::Answer { is_bracketed: before.contains('['), is_final },
        Says::End => {
            let kind = Kind::Answer { is_bracketed: before.contains('['), is_final: false };
            return (!before.is_empty()).then_some(Marker { start: from, end: stop, kind });
        }
        Says::User if is_named || is_bare() => Kind::Said(Voice::User),
        Says::Task if before.contains('#') => Kind::Said(Voice::User),
        Says::Result if is_named || is_bare() => Kind::Said(Voice::Result),
        Says::Model if is_named || is_bare() => Kind::Said(Voice::Model),
        Says::User | Says::Task | Says::Result | Says::Model => return None,
    };
    if let Some(close) = enclosing(opener, gap, found.next).filter(|_| matches!(kind, Kind::Spoken { .. })) {
        // A comment holds its own text, wherever it stands on a line.
        if text[from..].starts_with("<!--") {
            return None;
        }
        return Some(Marker { start: from, end: found.next, kind: Kind::Enclosed { open: opener, close } });
    }
    Some(Marker { start: from, end: found.next, kind })
}

/// The end of a sign of thoughts at the start of a line, behind the marks of a list or a heading: `💭`, `- 🤔`.
fn balloon(text: &str, from: usize, stop: usize) -> Option<usize> {
    let signs = text[from..stop].trim_start_matches(|c: char| c.is_whitespace() || "-*#>•".contains(c));
    let sign = signs.chars().next().filter(|c| matches!(c, '💭' | '🤔' | '🧠' | '🗯' | '🗨'))?;
    Some(stop - signs.len() + sign.len_utf8())
}

/// The end of a property of YAML or the like that says that thoughts follow: `- type: thinking`, `kind = "thought"`.
fn property(text: &str, from: usize, stop: usize) -> Option<usize> {
    let (name, value) = text[from..stop].split_once([':', '='])?;
    let is_kind = KINDS.contains(&name.trim_start_matches(['-', ' ', '\t']).trim_end());
    let found = phrase(value, 0, value.len(), |_| false).filter(|found| is_kind && !found.closes)?;
    matches!(found.says, Says::Thoughts { .. }).then_some(stop)
}

/// Length of the words with which the pump begins a message to a model, never a model: `[abcdefghij] Message 2 from core`.
fn message_mark(line: &str) -> Option<usize> {
    const MARK: usize = 10;
    let (mark, rest) = line.strip_prefix('[')?.split_once(']')?;
    let rest = rest.strip_prefix(" Message ")?;
    let behind = rest.trim_start_matches(char::is_numeric);
    let is_mark = mark.len() == MARK && mark.bytes().all(|byte| byte.is_ascii_lowercase());
    let words = behind.strip_prefix(" from ").filter(|_| is_mark && behind.len() < rest.len())?;
    Some(line.len() - words.len())
}

/// Returns whether the marker at an offset stands in brackets, or in quotes used as such.
pub(super) fn is_bracketed(text: &str, start: usize) -> bool {
    let text = text[start..].trim_start_matches('\\');
    text.starts_with(|c| BRACKETS.iter().chain(QUOTES).any(|(open, _)| *open == c))
}

/// The end of the text that may be the marker of a line: the line, a tag on it, or the longest marker.
fn head_end(text: &str, from: usize, line_end: usize) -> usize {
    let mut bound = line_end.min(from + LONGEST);
    while !text.is_char_boundary(bound) {
        bound -= 1;
    }
    let is_tag = |at: usize| {
        let name = at + 1 + usize::from(text[at + 1..].starts_with('/'));
        !text[..at].ends_with('`') && name_end(text, name.min(text.len())).is_some()
    };
    let tag =
        memchr::memchr_iter(b'<', &text.as_bytes()[from..bound]).map(|length| from + length).find(|&at| is_tag(at));
    tag.unwrap_or(bound)
}

/// The offset in the gap behind words at which a label ends: behind a colon, dots, a dash or the like, or behind what closes
/// the emphasis or the bracket that the label began with.
fn label_end(gap: &str, opener: char) -> Option<usize> {
    const MARKS: &[&str] = &[":", "：", "...", "…", "—", "–", " - ", "=", "→", "->", "|"];
    let close = match opener {
        '*' | '_' | '`' | '"' | '~' => Some(opener),
        '(' => Some(')'),
        _ => BRACKETS.iter().chain(QUOTES).find(|(open, _)| *open == opener).map(|(_, close)| *close),
    };
    let mark = MARKS.iter().find_map(|mark| gap.find(mark).map(|at| at + mark.len()));
    mark.or_else(|| close.and_then(|close| gap.find(close).map(|at| at + close.len_utf8())))
}

/// The bracket that closes the text behind a label, if the label stands in one: `[Thinking: …]`.
fn enclosing(opener: char, gap: &str, next: usize) -> Option<char> {
    let close = match opener {
        '(' => ')',
        '（' => '）',
        _ => BRACKETS.iter().find(|(open, _)| *open == opener)?.1,
    };
    (next > 0 && !gap.contains(close)).then_some(close)
}

/// The marker in the brackets that open at `at`.
fn bracket(text: &str, at: usize, is_element: &dyn Fn(&str) -> bool) -> Option<Marker> {
    let open = text[at..].chars().next()?;
    let (_, close) = *BRACKETS.iter().find(|(known, _)| *known == open)?;
    let inner = at + open.len_utf8();
    if open == '<' && is_tag(text, inner, is_element) {
        return None;
    }
    let found = bracketed(text, inner, open, close)?;
    let gap = &text[found.end..found.next];
    let closes = gap.find(close).map(|length| found.end + length);
    let label = label_end(gap, ':').filter(|_| closes.is_none() && !gap.starts_with(['"', '\'']));
    let Some(shut) = closes else {
        return match (label, found.says) {
            (Some(length), Says::Thoughts { .. }) if !found.closes => {
                Some(Marker { start: at, end: found.end + length, kind: Kind::Enclosed { open, close } })
            }
            _ => None,
        };
    };
    let end = shut + text[shut..].chars().take_while(|&c| c == close).map(char::len_utf8).sum::<usize>();
    // The text of a link in Markdown.
    if open == '[' && text[end..].starts_with(['(', ':']) {
        return None;
    }
    // `\begin{thinking}`, `\end{thinking}`
    let (start, is_end) = match &text[..at] {
        before if before.ends_with("\\end") => (at - "\\end".len(), true),
        before if before.ends_with("\\begin") => (at - "\\begin".len(), false),
        _ => (at, false),
    };
    let is_comment = text[at..].starts_with("<!--");
    let kind = match found.says {
        Says::Thoughts { is_sure: true } if found.closes || is_end => Kind::SpokenEnd,
        Says::Thoughts { is_sure: true } if !is_comment => Kind::Thought,
        Says::Thoughts { .. } if !found.closes => {
            Kind::Spoken { is_sure: found.says == Says::Thoughts { is_sure: true } }
        }
        Says::Answer { is_final } => Kind::Answer { is_bracketed: true, is_final },
        Says::Thoughts { .. } | Says::End => Kind::Answer { is_bracketed: true, is_final: false },
        Says::User | Says::Task | Says::Result | Says::Model => return None,
    };
    Some(Marker { start, end, kind })
}

/// The phrase in brackets that `close` ends; up to the first gap with the bracket, or with the mark of a label.
fn bracketed(text: &str, inner: usize, open: char, close: char) -> Option<Phrase> {
    if !begins(&text[inner..]) {
        return None;
    }
    let mut until = text.len().min(inner + LONGEST);
    while !text.is_char_boundary(until) {
        until -= 1;
    }
    let until = memchr::memchr(b'\n', &text.as_bytes()[inner..until]).map_or(until, |length| inner + length);
    // Words that begin behind the bracket are none of the marker, and those behind the next one are of another marker.
    let behind = text[inner..until].trim_start_matches(open);
    let until = behind.find(open).map_or(until, |length| until - behind.len() + length);
    let until = text[inner..until].find(close).map_or(until, |length| inner + length + close.len_utf8());
    phrase(text, inner, until, |gap| gap.contains(close) || label_end(gap, ':').is_some())
}

/// Returns whether a tag opens behind a `<`, which isn't a word in angle brackets: `<think>`, `</think>`, `<a href=x>`.
fn is_tag(text: &str, inner: usize, is_element: &dyn Fn(&str) -> bool) -> bool {
    let name = inner + usize::from(text[inner..].starts_with('/'));
    let spaced = name + (text[name..].len() - text[name..].trim_start().len());
    let is_known = name_end(text, spaced).is_some_and(|end| is_element(&text[spaced..end]));
    let is_written = name_end(text, name)
        .is_some_and(|end| text[end..].is_empty() || text[end..].starts_with(['>', '/', '<', ' ', '\t', '\r', '\n']));
    is_known || is_written
}

/// The markers in brackets that quote: those that stand in pairs around the start of a tag.
fn quoted(text: &str, quotes: &[usize], found: &mut Vec<Marker>) {
    let mut open: Option<Marker> = None;
    let mut from = 0;
    for &at in quotes.iter() {
        if at < from {
            continue;
        }
        let Some((end, is_end)) = quote(text, at) else { continue };
        from = end;
        if !is_end {
            open = Some(Marker { start: at, end, kind: Kind::Spoken { is_sure: true } });
        } else if let Some(start) = open.take().filter(|start| holds_tag(&text[start.end..at])) {
            found.push(start);
            found.push(Marker { start: at, end, kind: Kind::SpokenEnd });
        }
    }
}

/// The end of the thoughts' marker in quoting brackets at `at`, and whether it ends thoughts.
fn quote(text: &str, at: usize) -> Option<(usize, bool)> {
    let open = text[at..].chars().next()?;
    let (_, close) = *QUOTES.iter().find(|(known, _)| *known == open)?;
    let inner = at + open.len_utf8();
    let (inner, close) = match open {
        '&' => (at + 4, "&gt;".to_owned()),
        _ => (inner, close.to_string()),
    };
    if open == '&' && !text[at..].starts_with("&lt;") {
        return None;
    }
    let mut until = text.len().min(inner + LONGEST);
    while !text.is_char_boundary(until) {
        until -= 1;
    }
    let shut = inner + text[inner..until].find(&close)?;
    let found = phrase(text, inner, shut, |_| false)?;
    matches!(found.says, Says::Thoughts { is_sure: true }).then_some((shut + close.len(), found.closes))
}

/// Marks what is struck out, if it holds a tag: `~~…~~`.
fn struck(text: &str, found: &mut Vec<Marker>) {
    let bytes = text.as_bytes();
    let mut open: Option<usize> = None;
    for at in memchr::memmem::find_iter(bytes, "~~") {
        if bytes.get(at + 2) == Some(&b'~') || text[..at].ends_with('~') {
            continue;
        }
        match open.take() {
            Some(start) if !text[..at].ends_with(' ') => {
                if holds_tag(&text[start..at]) {
                    found.push(Marker { start, end: start + 2, kind: Kind::Unknown { end: at + 2 } });
                }
            }
            _ => open = Some(at).filter(|_| !text[at + 2..].starts_with(' ')),
        }
    }
}

fn holds_tag(text: &str) -> bool {
    memchr::memchr_iter(b'<', text.as_bytes()).any(|at| name_end(text, at + 1).is_some())
}

/// The field of JSON or of a literal of Python whose name, or whose value behind a name such as `type`, begins at a quote.
fn field(text: &str, at: usize) -> Option<Marker> {
    let quote = char::from(text.as_bytes()[at]);
    let (name, end) = string(text, at, quote)?;
    let rest = text[end..].trim_start();
    let value = rest.strip_prefix(':')?.trim_start();
    let end = text.len() - value.len();
    let thoughts = |text: &str| {
        let found = phrase(text, 0, text.len(), |_| false);
        found.is_some_and(|found| matches!(found.says, Says::Thoughts { .. }) && !found.closes)
    };
    if thoughts(name) {
        return Some(Marker { start: at, end, kind: Kind::Field });
    }
    let (value, behind) = string(text, end, quote).filter(|_| KINDS.contains(&name))?;
    thoughts(value).then_some(Marker { start: at, end: behind, kind: Kind::Object })
}

/// The short string between the quote at `at` and the next one, and the offset behind that.
fn string(text: &str, at: usize, quote: char) -> Option<(&str, usize)> {
    let rest = text[at..].strip_prefix(quote)?;
    // A quote behind the longest string is found in vain, but once for each quote.
    let near = rest.char_indices().map(|(at, _)| at).take_while(|&at| at <= 48).last()?;
    let length = rest[..near].find([quote, '\n', '<'])?;
    rest[length..].starts_with(quote).then_some((&rest[..length], at + length + 2))
}

/// The end of the value of JSON that begins at an offset: a string, or what stands in brackets. `None` if nothing ends it.
pub(super) fn value_end(text: &str, at: usize) -> Option<usize> {
    match text.as_bytes().get(at)? {
        quote @ (b'"' | b'\'') => string_end(text, at + 1, *quote),
        b'[' | b'{' => object_end(text, at + 1),
        _ => Some(text[at..].find([',', '}', ']', '\n']).map_or(text.len(), |length| at + length)),
    }
}

/// The offset behind the quote that ends a string: one that a comma, a bracket, a line end or the end of the text follows, so
/// that quotes which nobody escaped end none.
fn string_end(text: &str, at: usize, quote: u8) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut from = at;
    loop {
        let stop = from + memchr::memchr2(quote, b'\\', &bytes[from..])?;
        if bytes[stop] == b'\\' {
            from = (stop + 2).min(bytes.len());
            continue;
        }
        let behind = text[stop + 1..].trim_start_matches([' ', '\t', '\r']);
        if behind.is_empty() || behind.starts_with([',', '}', ']', '\n']) {
            return Some(stop + 1);
        }
        from = stop + 1;
    }
}

/// The offset behind the bracket that ends an object or a list which is open at an offset.
pub(super) fn object_end(text: &str, at: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    let (mut from, mut depth) = (at, 1_usize);
    while let Some(&byte) = bytes.get(from) {
        from += 1;
        match byte {
            b'"' => from = string_end_or_next(bytes, from),
            b'[' | b'{' => depth += 1,
            b']' | b'}' => {
                depth -= 1;
                if depth == 0 {
                    return Some(from);
                }
            }
            _ => {}
        }
    }
    None
}

/// The offset behind the quote that ends a string of JSON.
fn string_end_or_next(bytes: &[u8], mut at: usize) -> usize {
    while let Some(length) = memchr::memchr2(b'"', b'\\', &bytes[at..]) {
        let stop = at + length;
        if bytes[stop] == b'"' {
            return stop + 1;
        }
        at = (stop + 2).min(bytes.len());
    }
    bytes.len()
}

/// The offset behind the bracket that closes one which is open at an offset.
pub(super) fn closed_at(text: &str, at: usize, open: char, close: char) -> Option<usize> {
    let mut depth = 1_usize;
    for (length, c) in text[at..].char_indices() {
        if c == open {
            depth += 1;
        } else if c == close {
            depth -= 1;
            if depth == 0 {
                return Some(at + length + c.len_utf8());
            }
        }
    }
    None
}
