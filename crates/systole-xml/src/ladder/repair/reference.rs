//! References: those that stay, those that become characters, and text that only looks like one.

use std::sync::LazyLock;

use super::RepairKind;
use super::lexis::is_xml_char;

/// The meaning of an `&`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Reference {
    /// A reference that XML allows, of that many bytes.
    Keep(usize),
    /// A reference that stands for these characters: `len` bytes to be replaced.
    Expand { len: usize, chars: Vec<char>, kind: RepairKind },
    /// Text: the `&` is to be escaped. The text that looks like a reference has `len` bytes.
    Escape { len: usize, kind: RepairKind },
}

/// Length of the longest name in the table of HTML.
const LONGEST_NAME: usize = 31;

const STRAY: Reference = Reference::Escape { len: 1, kind: RepairKind::StrayAmpersand };

/// Reads the reference at the start of a text that starts with `&`.
///
/// A reference ends with `;`: without it, `AT&T` and `?a=1&copy=2` would change their meaning.
pub(super) fn read(text: &str) -> Reference {
    match text.as_bytes().get(1) {
        Some(b'#') => numeric(text),
        Some(b'A'..=b'Z' | b'a'..=b'z' | b'_') => named(text),
        _ => STRAY,
    }
}

fn named(text: &str) -> Reference {
    let window = &text.as_bytes()[1..text.len().min(LONGEST_NAME + 2)];
    let is_end = |byte: &u8| !(byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b':'));
    let Some(length) = window.iter().position(is_end).filter(|&end| window[end] == b';') else { return STRAY };
    let len = length + 2;
    match &text[1..=length] {
        "amp" | "lt" | "gt" | "quot" | "apos" => Reference::Keep(len),
        name => match html(name) {
            Some(chars) => Reference::Expand { len, chars, kind: RepairKind::HtmlEntity },
            None => Reference::Escape { len, kind: RepairKind::UnknownEntity },
        },
    }
}

/// Reads `&#65;`, `&#x41;`, and `&#X41;`, which only HTML has.
fn numeric(text: &str) -> Reference {
    let marker = text.as_bytes().get(2).copied();
    let (radix, start) = if matches!(marker, Some(b'x' | b'X')) { (16, 3) } else { (10, 2) };
    let digits = text[start..].find(|c: char| !c.is_digit(radix)).unwrap_or(text.len() - start);
    let end = start + digits;
    if digits == 0 || text.as_bytes().get(end) != Some(&b';') {
        return STRAY;
    }
    let (len, kind) = (end + 1, RepairKind::CharacterReference);
    match code_point(&text[start..end], radix) {
        Some(c) if marker == Some(b'X') => Reference::Expand { len, chars: vec![c], kind },
        Some(_) => Reference::Keep(len),
        None => Reference::Escape { len, kind },
    }
}

/// The character references of the HTML standard, section 13.5, without those that XML has, too:
/// a name and its code points in a line, sorted by the bytes of the name.
static HTML: LazyLock<Vec<(&str, &str)>> =
    LazyLock::new(|| include_str!("entities.txt").lines().filter_map(|line| line.split_once(' ')).collect());

fn html(name: &str) -> Option<Vec<char>> {
    let found = HTML.binary_search_by_key(&name, |&(name, _)| name).ok()?;
    HTML[found].1.split(' ').map(|code| char::from_u32(u32::from_str_radix(code, 16).ok()?)).collect()
}

/// The character of a reference that XML allows.
pub(super) fn character(reference: &str) -> Option<char> {
    match &reference[1..reference.len() - 1] {
        "amp" => Some('&'),
        "lt" => Some('<'),
        "gt" => Some('>'),
        "quot" => Some('"'),
        "apos" => Some('\''),
        number => match number.strip_prefix("#x") {
            Some(digits) => code_point(digits, 16),
            None => code_point(number.strip_prefix('#')?, 10),
        },
    }
}

fn code_point(digits: &str, radix: u32) -> Option<char> {
    let add = |code: u32, c: char| code.saturating_mul(radix).saturating_add(c.to_digit(radix).unwrap_or_default());
    char::from_u32(digits.chars().fold(0, add)).filter(|&c| is_xml_char(c))
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
        let expand = |len, c, kind| Reference::Expand { len, chars: vec![c], kind };
        for (text, expected) in [
            ("&amp;x", Reference::Keep(5)),
            ("&#0065;", Reference::Keep(7)),
            ("&#x1F600;", Reference::Keep(9)),
            ("&#X41;", expand(6, 'A', RepairKind::CharacterReference)),
            ("&nbsp;", expand(6, '\u{A0}', RepairKind::HtmlEntity)),
            ("&LT;", expand(4, '<', RepairKind::HtmlEntity)),
            ("&CounterClockwiseContourIntegral;", expand(33, '\u{2233}', RepairKind::HtmlEntity)),
            ("&unknown;", escape(9, RepairKind::UnknownEntity)),
            ("&#0;", escape(4, RepairKind::CharacterReference)),
            ("&#xD800;", escape(8, RepairKind::CharacterReference)),
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
            assert_eq!(read(text), expected, "{text}");
        }
    }

    #[test]
    fn the_table_is_sorted_and_stands_for_characters_of_xml() {
        assert!(HTML.is_sorted());
        assert_eq!(HTML.len(), 2120);
        for (name, _) in HTML.iter() {
            assert!(name.len() <= LONGEST_NAME, "{name}");
            let chars = html(name).unwrap();
            assert!(!chars.is_empty() && chars.iter().all(|&c| is_xml_char(c)), "{name}");
        }
    }
}
