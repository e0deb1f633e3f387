//! Attribute values: where they end, with quotes of any kind.

use super::lexis::{is_space, name_end, skip_blank, skip_space};
use crate::vocab::is_name_char;

/// The reading of the text behind `=`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Value {
    /// A value.
    Found(Found),
    /// Text that can't stand in a tag here.
    None,
    /// The end of the input.
    Cut,
}

/// A value between `start` and `end`; the tag goes on at `next`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) next: usize,
    pub(super) quotes: Quotes,
}

/// The quotes of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Quotes {
    /// Quotes of XML.
    Good,
    /// No quotes, or other characters.
    Bad,
    /// A closing quote is missing: the end of the value is a guess.
    Unclosed,
}

/// The quotes that can close a value that one of them opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Family {
    Ascii(char),
    /// An escaped quote, `\"`, as in a JSON string.
    Escaped(char),
    /// A reference to the character, as in `&quot;1&quot;`.
    Reference(&'static str),
    Double,
    Single,
}

const REFERENCES: [&str; 6] = ["&quot;", "&apos;", "&#34;", "&#39;", "&#x22;", "&#x27;"];
const DOUBLE: &[char] = &['"', '“', '”', '„', '‟', '″', '«', '»', '＂'];
const SINGLE: &[char] = &['\'', '‘', '’', '‚', '‛', '′', '‹', '›'];

impl Family {
    /// The family of the quote that stands at the start of `text`, and its length.
    fn opening(text: &str) -> Option<(Self, usize)> {
        let mut chars = text.chars();
        let c = chars.next()?;
        match c {
            '"' | '\'' | '`' => Some((Self::Ascii(c), 1)),
            '&' => REFERENCES.iter().find(|found| text.starts_with(*found)).map(|f| (Self::Reference(f), f.len())),
            '\\' => chars.next().filter(|&c| matches!(c, '"' | '\'')).map(|c| (Self::Escaped(c), 2)),
            _ if DOUBLE.contains(&c) => Some((Self::Double, c.len_utf8())),
            _ if SINGLE.contains(&c) => Some((Self::Single, c.len_utf8())),
            _ => None,
        }
    }

    /// The first quote in `text` that closes: its start and its end.
    fn closing(self, text: &str) -> Option<(usize, usize)> {
        let find_any = |set: &[char]| text.char_indices().find(|(_, c)| set.contains(c));
        let (at, c) = match self {
            Self::Ascii(c) => (memchr::memchr(c as u8, text.as_bytes())?, c),
            Self::Escaped(c) => {
                let pair = [b'\\', c as u8];
                let at = memchr::memmem::find(text.as_bytes(), &pair)?;
                return Some((at, at + 2));
            }
            Self::Reference(reference) => {
                let at = memchr::memmem::find(text.as_bytes(), reference.as_bytes())?;
                return Some((at, at + reference.len()));
            }
            Self::Double => find_any(DOUBLE)?,
            Self::Single => find_any(SINGLE)?,
        };
        Some((at, at + c.len_utf8()))
    }

    const fn is_xml(self) -> bool {
        matches!(self, Self::Ascii('"' | '\''))
    }
}

/// Returns whether a text starts with a quote of any kind.
pub(super) fn is_quote(text: &str) -> bool {
    Family::opening(text).is_some()
}

/// Reads the value at `at`. A quoted one may hold `<` only before `horizon`. Moves `seen` behind
/// the bytes that were looked at.
///
/// A quote closes if the text behind it can follow a value in a tag. The first one may stand anywhere; later
/// ones only before the next `<` or `>`, and only if the earlier ones don't open a value: so
/// `a="say "hi""` keeps its inner quotes, and neither `a="b>text <c d="e">` swallows the text nor
/// `a="b c="d">` the attribute.
pub(super) fn read(text: &str, at: usize, horizon: usize, seen: &mut Seen) -> Value {
    match Family::opening(&text[at..]) {
        Some((family, length)) => quoted(text, at + length, family, horizon, seen),
        None => unquoted(text, at),
    }
}

fn quoted(text: &str, start: usize, family: Family, horizon: usize, seen: &mut Seen) -> Value {
    let horizon = horizon.max(start);
    let (mut from, mut second) = (start, None);
    let mut plain = true;
    loop {
        if plain && from > start {
            let second = *second.get_or_insert(from);
            if let Some(known) = seen.known(family, horizon, from) {
                seen.note(family, Search { from: second, ..known });
                return known.value(text, start, family);
            }
        }
        let Some((quote, next)) = family.closing(&text[from..horizon]) else {
            seen.until = seen.until.max(horizon);
            return seen.end(text, start, family, (second, horizon), (horizon, None));
        };
        let (end, next) = (from + quote, from + next);
        seen.until = seen.until.max(next);
        let markup = memchr::memchr2(b'<', b'>', &text.as_bytes()[from..end]).map(|at| from + at);
        plain &= markup.is_none();
        if may_follow(text, next, plain && from == start) {
            if from == start {
                let quotes = if family.is_xml() { Quotes::Good } else { Quotes::Bad };
                return Value::Found(Found { start, end, next, quotes });
            }
            return seen.end(text, start, family, (second, horizon), (markup.unwrap_or(end), Some((end, next))));
        }
        if !plain || opens_attribute(&text[start..end]) {
            return seen.end(text, start, family, (second, horizon), (markup.unwrap_or(end), None));
        }
        from = next;
    }
}

/// The bytes inside of quotes that readings have looked at.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// Offset behind the last byte that was looked at.
    pub(super) until: usize,
    /// The last search of each family for a closing quote.
    searches: Vec<(Family, Search)>,
}

/// The end of a search for the quote that closes, behind the first one that could. It is the same for any quote that
/// opens within it, if no markup stands between: so the quotes of a tag are looked at once, however many values they
/// open.
#[derive(Debug, Clone, Copy)]
struct Search {
    horizon: usize,
    /// First offset from which a search has this end.
    from: usize,
    /// Last offset from which a search has this end.
    until: usize,
    /// The end of the value, and the offset at which the tag goes on; `None` if no quote closes.
    closes: Option<(usize, usize)>,
}

impl Seen {
    /// The end of a search that begins at `from`, if it is known.
    fn known(&self, family: Family, horizon: usize, from: usize) -> Option<Search> {
        let is_it = |search: &Search| search.horizon == horizon && (search.from..=search.until).contains(&from);
        self.searches.iter().find(|(of, search)| *of == family && is_it(search)).map(|(_, search)| *search)
    }

    fn note(&mut self, family: Family, search: Search) {
        match self.searches.iter_mut().find(|(of, _)| *of == family) {
            Some((_, known)) => *known = search,
            None => self.searches.push((family, search)),
        }
    }

    /// Ends a search, which has passed a first quote if there is a `second`.
    fn end(
        &mut self,
        text: &str,
        start: usize,
        family: Family,
        (second, horizon): (Option<usize>, usize),
        (until, closes): (usize, Option<(usize, usize)>),
    ) -> Value {
        let search = Search { horizon, from: second.unwrap_or(until), until, closes };
        if second.is_some() {
            self.note(family, search);
        }
        search.value(text, start, family)
    }
}

impl Search {
    fn value(self, text: &str, start: usize, family: Family) -> Value {
        match self.closes {
            Some((end, next)) => Value::Found(Found { start, end, next, quotes: Quotes::Bad }),
            None => unclosed(text, start, family),
        }
    }
}

/// Returns whether the quote behind `text` looks like the opening one of the next attribute.
fn opens_attribute(text: &str) -> bool {
    text.strip_suffix('=').is_some_and(|name| name.ends_with(is_name_char))
}

/// Returns whether a tag can go on at `at`, behind a closing quote: with its end, or with an attribute.
/// An attribute without a value counts only if `valueless`.
fn may_follow(text: &str, at: usize, valueless: bool) -> bool {
    let bytes = text.as_bytes();
    let name = skip_blank(text, at);
    match &bytes[name..] {
        [b',' | b';', ..] if name == at => return may_follow(text, at + 1, false),
        [] | [b'>', ..] | [b'/'] | [b'/', b'>', ..] => return true,
        _ => {}
    }
    let Some(end) = name_end(text, name) else { return false };
    let behind = skip_space(text, end);
    match bytes.get(behind) {
        None | Some(b'=') => true,
        Some(_) if end > name + 1 && text[name..end].ends_with(':') && is_quote(&text[behind..]) => true,
        Some(&byte) => valueless && name > at && (behind > end || matches!(byte, b'>' | b'/')),
    }
}

/// Reads a value whose quote is never closed: it ends at the end of the tag, or before the next attribute
/// that has a quoted value. A closing quote of another kind isn't part of it.
fn unclosed(text: &str, start: usize, family: Family) -> Value {
    let bytes = text.as_bytes();
    let mut at = start;
    let end = loop {
        match bytes[at..].iter().position(|&byte| is_space(byte) || matches!(byte, b'<' | b'>')) {
            None => return Value::Cut,
            Some(length) => at += length,
        }
        match bytes[at] {
            b'<' => return Value::None,
            b'>' => break if at > start && bytes[at - 1] == b'/' { at - 1 } else { at },
            _ => {
                let name = skip_space(text, at);
                let behind = name_end(text, name).unwrap_or(name);
                let equals = skip_space(text, behind);
                let is_attribute = behind > name
                    && bytes.get(equals) == Some(&b'=')
                    && Family::opening(&text[skip_space(text, equals + 1)..]).is_some();
                if is_attribute {
                    break at;
                }
                at = behind;
            }
        }
    };
    let value = without_last_quote(&text[start..end]);
    if family.closing(value).is_some() {
        return Value::None;
    }
    Value::Found(Found { start, end: start + value.len(), next: end, quotes: Quotes::Unclosed })
}

/// Reads a value without quotes: it ends at white space of any kind, `>` or `/>`. A lone quote at its end is dropped.
fn unquoted(text: &str, at: usize) -> Value {
    let bytes = text.as_bytes();
    let is_end = |c: char| matches!(c, '<' | '>') || c.is_whitespace() || c == '\u{200B}';
    let Some(length) = text[at..].find(is_end) else { return Value::Cut };
    let stop = at + length;
    if bytes[stop] == b'<' {
        return Value::None;
    }
    let next = if bytes[stop] == b'>' && stop > at && bytes[stop - 1] == b'/' { stop - 1 } else { stop };
    let value = without_last_quote(&text[at..next]);
    if value.contains(['"', '\'', '`']) {
        return Value::None;
    }
    Value::Found(Found { start: at, end: at + value.len(), next, quotes: Quotes::Bad })
}

fn without_last_quote(value: &str) -> &str {
    let is_quote = |c: char| c == '`' || DOUBLE.contains(&c) || SINGLE.contains(&c);
    value.strip_suffix(is_quote).unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The value of the attribute, the text behind it, and its quotes.
    fn value(text: &str) -> Option<(&str, &str, Quotes)> {
        match read(text, 0, text.len(), &mut Seen::default()) {
            Value::Found(found) => Some((&text[found.start..found.end], &text[found.next..], found.quotes)),
            Value::None | Value::Cut => None,
        }
    }

    #[test]
    fn values_end_where_their_writer_meant() {
        use Quotes::{Bad, Good, Unclosed};
        for (text, expected) in [
            (r#""b">"#, ("b", ">", Good)),
            (r#""b > c" d="e">"#, ("b > c", r#" d="e">"#, Good)),
            (r#""1 < 2"/>"#, ("1 < 2", "/>", Good)),
            (r#""b"c="d">"#, ("b", r#"c="d">"#, Good)),
            (r#""b" checked>"#, ("b", " checked>", Good)),
            (r#""say "hi" now">"#, (r#"say "hi" now"#, ">", Bad)),
            (r#""say "hi" now" c="d">"#, (r#"say "hi" now"#, r#" c="d">"#, Bad)),
            ("'it's' c='d'>", ("it's", " c='d'>", Bad)),
            (r#""b>text</x><y c="d">"#, ("b", r#">text</x><y c="d">"#, Unclosed)),
            (r#""b c="d">"#, ("b", r#" c="d">"#, Unclosed)),
            (r#""b'>"#, ("b", ">", Unclosed)),
            (r#""b”>"#, ("b", ">", Unclosed)),
            (r#""b/>"#, ("b", "/>", Unclosed)),
            ("“b”>", ("b", ">", Bad)),
            ("„b“ c='d'>", ("b", " c='d'>", Bad)),
            ("“b\">", ("b", ">", Bad)),
            ("‘it’s’>", ("it’s", ">", Bad)),
            ("`b`>", ("b", ">", Bad)),
            (r#"\"b c\">"#, ("b c", ">", Bad)),
            ("b>", ("b", ">", Bad)),
            ("b c=d>", ("b", " c=d>", Bad)),
            ("5/>", ("5", "/>", Bad)),
            ("http://x/?a=1&b=2 c>", ("http://x/?a=1&b=2", " c>", Bad)),
            ("b\">", ("b", ">", Bad)),
            ("/>", ("", "/>", Bad)),
        ] {
            assert_eq!(value(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn what_was_looked_at_before_changes_no_value() {
        let parts = ["\"", "'", "“", "\\\"", "&quot;", "=", " ", "a", "b c", "<", ">", "/>", "a=", ":", ","];
        let mut state = 7u64;
        let mut draw = |bound: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % bound
        };
        let mut again = 0;
        for _ in 0..3_000 {
            let text: String = (0..draw(40)).map(|_| parts[draw(parts.len())]).collect();
            let horizons = [text.len(), text.find('<').unwrap_or(text.len())];
            let mut seen = Seen::default();
            for at in (0..text.len()).filter(|at| text.is_char_boundary(*at)) {
                for horizon in horizons {
                    let fresh = read(&text, at, horizon, &mut Seen::default());
                    assert_eq!(read(&text, at, horizon, &mut seen), fresh, "{text:?} at {at} to {horizon}");
                    again += seen.searches.len();
                }
            }
        }
        assert!(again > 10_000, "{again}: nothing was known");
    }

    #[test]
    fn what_is_no_value_is_none() {
        for text in [r#""b" $>"#, r#""b <c"#, "b\"c\">", "\"b", "b", "b<c>"] {
            assert_eq!(value(text), None, "{text}");
        }
    }
}
