//! References: those that stay, those that become characters, and text that only looks like one.

use std::sync::LazyLock;

use super::RepairKind;
use super::lexis::is_xml_char;

/// The meaning of an `&`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reference {
    /// A reference that XML allows, of that many bytes.
    Keep(usize),
    /// A reference that stands for this character: `len` bytes to be replaced.
    Expand { len: usize, c: char, kind: RepairKind },
    /// Text: the `&` is to be escaped. The text that looks like a reference has `len` bytes.
    Escape { len: usize, kind: RepairKind },
}

const STRAY: Reference = Reference::Escape { len: 1, kind: RepairKind::StrayAmpersand };

/// Reads the reference at the `&` at `at` of a text that ends at `end`.
///
/// A reference ends with `;`: without it, `AT&T` and `?a=1&copy=2` would change their meaning. Of the names of HTML, those
/// of HTML 4.01 count that no program would use for a variable. Those that are words as well (`reg`, `copy`, `alpha`) count only
/// where the text around them tells that they are signs, and those that are words of code (`sum`, `and`) never do.
pub(super) fn read(text: &str, at: usize, end: usize) -> Reference {
    let (before, text) = (&text[..at], &text[at..end]);
    match text.as_bytes().get(1) {
        Some(b'#') => numeric(text),
        Some(b'A'..=b'Z' | b'a'..=b'z' | b'_') => named(before, text),
        _ => STRAY,
    }
}

fn named(before: &str, text: &str) -> Reference {
    const NEAR: usize = 64;
    let window = &text.as_bytes()[1..text.len().min(NEAR)];
    let is_end = |byte: &u8| !(byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b':'));
    let Some(length) = window.iter().position(is_end).filter(|&end| window[end] == b';') else { return STRAY };
    let len = length + 2;
    match &text[1..=length] {
        "amp" | "lt" | "gt" | "quot" | "apos" => Reference::Keep(len),
        name => match html(name).filter(|sign| is_sign(sign, before, &text[len..])) {
            Some(Sign { c, .. }) => Reference::Expand { len, c, kind: RepairKind::HtmlEntity },
            None => Reference::Escape { len, kind: RepairKind::UnknownEntity },
        },
    }
}

/// Returns whether a name of HTML stands for its character between two texts. In the query of a URL it is the name of a
/// parameter (`?a=1&copy;=2`).
fn is_sign(sign: &Sign, before: &str, behind: &str) -> bool {
    let is_in_query = is_in_query(before);
    match sign.is_word {
        true => !is_in_query && !behind.starts_with('=') && is_amid_prose(before, behind),
        false => !(is_in_query && behind.starts_with('=')),
    }
}

/// Returns whether a text ends in the query of a URL: in a word with a question mark, and an equals sign behind it.
fn is_in_query(text: &str) -> bool {
    const NEAR: usize = 256;
    let near = &text.as_bytes()[text.len().saturating_sub(NEAR)..];
    let ends_word = |byte: u8| byte.is_ascii_whitespace() || matches!(byte, b'"' | b'\'' | b'<' | b'>');
    let word = &near[near.iter().rposition(|&byte| ends_word(byte)).map_or(0, |at| at + 1)..];
    memchr::memchr(b'?', word).is_some_and(|at| word[at..].contains(&b'='))
}

/// Returns whether a name that is a word stands where a sign does, and no variable: right behind a word or another
/// reference (`Intel&reg;`), at the start of a text, or beside a number (`&copy; 2024`, `20 &deg;C`).
fn is_amid_prose(before: &str, behind: &str) -> bool {
    let last = before.chars().next_back();
    last.is_none_or(|last| last.is_alphanumeric() || matches!(last, ';' | '>' | '"' | '\''))
        || before.trim_end_matches(' ').ends_with(|c: char| c.is_ascii_digit())
        || behind.trim_start_matches(' ').starts_with(|c: char| c.is_ascii_digit())
}

/// Reads `&#65;`, `&#x41;`, and `&#X41;`, which only HTML has. Two references to the halves of a surrogate pair, as JSON writes
/// them, are one character.
fn numeric(text: &str) -> Reference {
    let Some(Number { code, len, is_capital }) = number(text) else { return STRAY };
    let kind = RepairKind::CharacterReference;
    match code.and_then(char::from_u32).filter(|&c| is_xml_char(c)) {
        Some(c) if is_capital => Reference::Expand { len, c, kind },
        Some(_) => Reference::Keep(len),
        None => {
            match code.zip(number(&text[len..])).and_then(|(high, low)| Some((surrogates(high, low.code?)?, low.len))) {
                Some((c, behind)) => Reference::Expand { len: len + behind, c, kind },
                None => Reference::Escape { len, kind },
            }
        }
    }
}

/// A reference to a character by its number.
struct Number {
    /// The number, if it is one of 32 bits.
    code: Option<u32>,
    len: usize,
    /// True if it begins with `&#X`.
    is_capital: bool,
}

fn number(text: &str) -> Option<Number> {
    text.strip_prefix("&#")?;
    let marker = text.as_bytes().get(2).copied();
    let (radix, start) = if matches!(marker, Some(b'x' | b'X')) { (16, 3) } else { (10, 2) };
    let digits = text[start..].find(|c: char| !c.is_digit(radix)).unwrap_or(text.len() - start);
    let end = start + digits;
    if digits == 0 || text.as_bytes().get(end) != Some(&b';') {
        return None;
    }
    Some(Number { code: code_point(&text[start..end], radix), len: end + 1, is_capital: marker == Some(b'X') })
}

/// The character of a pair of surrogates of UTF-16.
fn surrogates(high: u32, low: u32) -> Option<char> {
    let units = [u16::try_from(high).ok()?, u16::try_from(low).ok()?];
    let mut found = char::decode_utf16(units);
    found.next()?.ok().filter(|&c| found.next().is_none() && is_xml_char(c))
}

/// The references to characters of HTML 4.01 and the names in capitals of HTML 5, without those that XML has, too, and those that
/// are words of code: a name and its code point in a line, and a question mark behind words; sorted by the bytes of the name.
static HTML: LazyLock<Vec<(&str, &str)>> =
    LazyLock::new(|| include_str!("entities.txt").lines().filter_map(|line| line.split_once(' ')).collect());

/// The character that a name of HTML stands for.
struct Sign {
    c: char,
    /// True if the name may be that of a variable.
    is_word: bool,
}

fn html(name: &str) -> Option<Sign> {
    let found = HTML.binary_search_by_key(&name, |&(name, _)| name).ok()?;
    let (code, is_word) = match HTML[found].1.split_once(' ') {
        Some((code, _)) => (code, true),
        None => (HTML[found].1, false),
    };
    Some(Sign { c: char::from_u32(u32::from_str_radix(code, 16).ok()?)?, is_word })
}

/// The character of a reference that XML allows.
pub(super) fn character(reference: &str) -> Option<char> {
    match &reference[1..reference.len() - 1] {
        "amp" => Some('&'),
        "lt" => Some('<'),
        "gt" => Some('>'),
        "quot" => Some('"'),
        "apos" => Some('\''),
        number => {
            let code = match number.strip_prefix("#x") {
                Some(digits) => code_point(digits, 16),
                None => code_point(number.strip_prefix('#')?, 10),
            };
            char::from_u32(code?).filter(|&c| is_xml_char(c))
        }
    }
}

fn code_point(digits: &str, radix: u32) -> Option<u32> {
    digits.chars().try_fold(0_u32, |code, c| code.checked_mul(radix)?.checked_add(c.to_digit(radix)?))
}

/// Writes a character as content: as a reference if it would be markup or
/// white space that normalization changes, else as itself.
pub(super) fn write_char(out: &mut String, c: char) {
    match c {
        '&' => out.push_str("&amp;"),
        '<' => out.push_str("&lt;"),
        '>' => out.push_str("&gt;"),
        '"' => out.push_str("&quot;"),
        '\t' => out.push_str("&#9;"),
        '\n' => out.push_str("&#10;"),
        '\r' => out.push_str("&#13;"),
        _ => out.push(c),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_told_from_text() {
        let escape = |len, kind| Reference::Escape { len, kind };
        let expand = |len, c, kind| Reference::Expand { len, c, kind };
        for (text, expected) in [
            ("&amp;x", Reference::Keep(5)),
            ("&#0065;", Reference::Keep(7)),
            ("&#x1F600;", Reference::Keep(9)),
            ("&#X41;", expand(6, 'A', RepairKind::CharacterReference)),
            ("&#xD83D;&#xDE00;", expand(16, '😀', RepairKind::CharacterReference)),
            ("&#55357;&#56832;", expand(16, '😀', RepairKind::CharacterReference)),
            ("&nbsp;", expand(6, '\u{A0}', RepairKind::HtmlEntity)),
            ("&LT;", expand(4, '<', RepairKind::HtmlEntity)),
            ("&thetasym;", escape(10, RepairKind::UnknownEntity)),
            ("&CounterClockwiseContourIntegral;", escape(33, RepairKind::UnknownEntity)),
            ("&unknown;", escape(9, RepairKind::UnknownEntity)),
            ("&#0;", escape(4, RepairKind::CharacterReference)),
            ("&#xD800;", escape(8, RepairKind::CharacterReference)),
            ("&#xD83D;&#x41;", escape(8, RepairKind::CharacterReference)),
            ("&#99999999999999999999;", escape(23, RepairKind::CharacterReference)),
            ("&#xFFFE;", escape(8, RepairKind::CharacterReference)),
            ("&", STRAY),
            ("&T", STRAY),
            ("&copy=2;", STRAY),
            ("& amp;", STRAY),
            ("&#;", STRAY),
            ("&#x;", STRAY),
            ("&#12", STRAY),
            ("&é;", STRAY),
            ("&nbspé;", STRAY),
        ] {
            assert_eq!(read(text, 0, text.len()), expected, "{text}");
        }
    }

    #[test]
    fn names_that_are_words_are_signs_only_amid_prose() {
        let is_sign = |text: &str| {
            let at = text.find('&').unwrap();
            matches!(read(text, at, text.len()), Reference::Expand { .. })
        };
        for text in [
            "&copy; Acme",
            "Intel&reg; chips",
            "in &copy; 2024",
            "20 &deg;C",
            "3&times;4",
            "<p>&alpha;",
            "n &le; 5",
            "What? a=1 Intel&reg;",
            "a&nbsp;= b",
            "x?a=caf&eacute;",
        ] {
            assert!(is_sign(text), "{text}");
        }
        for text in [
            "p = &reg;",
            "Foo &copy;",
            "f(x, &times;",
            "= &alpha;",
            "*p = &sum;",
            "$a&and; ls",
            "x &int;",
            "&sum;",
            "1 &part;",
            "&image;",
            "q = &num;",
            "/x?a=1&copy;=1",
            "x?a=1&reg;",
            "/x?a=1&nbsp;=2",
            "a&times;=2",
        ] {
            assert!(!is_sign(text), "{text}");
        }
    }

    #[test]
    fn the_table_is_sorted_and_stands_for_characters_of_xml() {
        assert!(HTML.is_sorted());
        for (name, _) in HTML.iter() {
            assert!(is_xml_char(html(name).unwrap().c), "{name}");
        }
    }
}
