//! Characters and texts: the classes that XML allows and those that end a run of bytes, absolute URIs, excerpts.

use super::blocks::{self, BLOCK};
use crate::vocab::{is_name_char, is_name_start};

/// Space, tab, line feed, carriage return (XML 1.0, production 3).
pub(super) const SPACE: u8 = 1;
/// An ASCII character that starts an NCName.
const NAME_START: u8 = 2;
/// An ASCII character of an NCName.
pub(super) const NAME: u8 = 4;
/// Ends a run of text that can be copied unchanged.
pub(super) const TEXT_STOP: u8 = 8;
/// Ends a run of an attribute value that can be copied unchanged.
pub(super) const VALUE_STOP: u8 = 16;

static CLASS: [u8; 256] = classes();

const fn classes() -> [u8; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = match byte as u8 {
            b' ' => SPACE,
            b'\t' | b'\n' => SPACE | VALUE_STOP,
            b'\r' => SPACE | VALUE_STOP | TEXT_STOP,
            b'<' | b'&' => TEXT_STOP | VALUE_STOP,
            b'>' => TEXT_STOP,
            b'"' | b'\'' => VALUE_STOP,
            b'A'..=b'Z' | b'a'..=b'z' | b'_' => NAME_START | NAME,
            b'0'..=b'9' | b'-' | b'.' => NAME,
            _ => 0,
        };
        byte += 1;
    }
    table
}

/// Returns whether `byte` is of a class.
#[inline]
pub(super) fn is(byte: u8, class: u8) -> bool {
    CLASS[byte as usize] & class != 0
}

/// The offset of the first stop of text at or behind `at`, or the end.
#[inline]
pub(super) fn text_end(src: &[u8], at: usize) -> usize {
    // Names, numbers and white space end soon; a search in larger blocks pays only for longer runs.
    const SHORT: usize = 4 * BLOCK;
    let mut from = at;
    while let Some(block) = src[from..].first_chunk() {
        if from - at >= SHORT {
            return long_text_end(src, from);
        }
        let stop = blocks::text_stop(block);
        from += stop;
        if stop < BLOCK {
            return from;
        }
    }
    first_of(src, from, TEXT_STOP)
}

/// The offset of the first stop of values at or behind `at`, or the end.
#[inline]
pub(super) fn value_end(src: &[u8], at: usize) -> usize {
    let mut from = at;
    while let Some(block) = src[from..].first_chunk() {
        let stop = blocks::value_stop(block);
        from += stop;
        if stop < BLOCK {
            return from;
        }
    }
    first_of(src, from, VALUE_STOP)
}

#[inline(never)]
fn long_text_end(src: &[u8], from: usize) -> usize {
    // Two searches, of which the first may pass the stop of the second: in pieces, so that many stops of the second, at the
    // ends of long lines, don't make the whole quadratic.
    const PIECE: usize = 1024;
    let mut at = from;
    for piece in src[from..].chunks(PIECE) {
        let markup = memchr::memchr3(b'<', b'>', b'&', piece).unwrap_or(piece.len());
        let stop = memchr::memchr(b'\r', &piece[..markup]).unwrap_or(markup);
        at += stop;
        if stop < piece.len() {
            break;
        }
    }
    at
}

#[inline(never)]
fn first_of(src: &[u8], from: usize, class: u8) -> usize {
    let mut at = from;
    while at < src.len() && !is(src[at], class) {
        at += 1;
    }
    at
}

/// A text without the white space around it.
#[inline]
pub(crate) fn trimmed(text: &str) -> &str {
    let is_space = |byte: Option<&u8>| byte.is_some_and(|&byte| is(byte, SPACE));
    let bytes = text.as_bytes();
    // Most values have none.
    if !is_space(bytes.first()) && !is_space(bytes.last()) {
        return text;
    }
    text.trim_matches([' ', '\t', '\n', '\r'])
}

/// The offset of the first byte at or behind `at` that is no white space, or the end.
#[inline]
pub(super) fn skip_space(src: &[u8], at: usize) -> usize {
    let mut at = at;
    while src.get(at).is_some_and(|&byte| is(byte, SPACE)) {
        at += 1;
    }
    at
}

/// Returns whether the `length` bytes at `first` stand at `second` as well.
#[inline]
pub(super) fn is_repeated(src: &[u8], first: usize, second: usize, length: usize) -> bool {
    // Most names have at most eight bytes.
    if let (1..=8, Some(one), Some(other)) = (length, src[first..].first_chunk(), src[second..].first_chunk()) {
        let differences = u64::from_le_bytes(*one) ^ u64::from_le_bytes(*other);
        return differences << (64 - 8 * length) == 0;
    }
    src[second..].starts_with(&src[first..first + length])
}

/// The end of the NCName that starts at `at`; `at` itself if none does (Namespaces 1.0, production 4).
#[inline(always)]
pub(super) fn ncname_end(text: &str, at: usize) -> usize {
    // Most names are short and of ASCII.
    if let Some(block) = text.as_bytes().get(at..).and_then(<[u8]>::first_chunk)
        && is(block[0], NAME_START)
        && let end = blocks::name_end(block)
        && block.get(end).is_some_and(u8::is_ascii)
    {
        return at + end;
    }
    any_ncname_end(text, at)
}

#[inline(never)]
fn any_ncname_end(text: &str, at: usize) -> usize {
    let src = text.as_bytes();
    let mut end = match src.get(at) {
        Some(&byte) if is(byte, NAME_START) => at + 1,
        Some(0x80..) => match char_at(text, at) {
            c if is_name_start(c) => at + c.len_utf8(),
            _ => return at,
        },
        _ => return at,
    };
    loop {
        match src.get(end) {
            Some(&byte) if is(byte, NAME) => end += 1,
            Some(0x80..) => match char_at(text, end) {
                c if is_name_char(c) => end += c.len_utf8(),
                _ => return end,
            },
            _ => return end,
        }
    }
}

/// The character at a boundary of `text`; U+FFFD at its end.
pub(super) fn char_at(text: &str, at: usize) -> char {
    text[at..].chars().next().unwrap_or(char::REPLACEMENT_CHARACTER)
}

/// Returns whether a character is a `Char` of XML 1.0 (5th edition), production 2.
pub(crate) fn is_xml_char(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r' | ' '..='\u{D7FF}' | '\u{E000}'..='\u{FFFD}' | '\u{10000}'..)
}

/// The first character that XML forbids, and its offset.
pub(super) fn forbidden(text: &str) -> Option<(usize, char)> {
    if may_hold_forbidden(text.as_bytes()) { text.char_indices().find(|&(_, c)| !is_xml_char(c)) } else { None }
}

/// Returns whether the input holds a control character, or the first byte of U+FFFE and U+FFFF: then its characters
/// have to be checked one by one.
pub(crate) fn may_hold_forbidden(input: &[u8]) -> bool {
    let (blocks, rest) = input.as_chunks();
    let mut last = [b' '; BLOCK];
    last[..rest.len()].copy_from_slice(rest);
    blocks::have_suspects(blocks) || blocks::have_suspects(&[last])
}

/// A name for an error text, cut to 64 characters.
pub(crate) fn excerpt(text: &str) -> Box<str> {
    text.chars().take(64).collect::<String>().into()
}

/// Returns whether a URI is absolute (RFC 3986, section 3.1).
pub(crate) fn has_scheme(uri: &[u8]) -> bool {
    let Some(colon) = memchr::memchr(b':', uri) else { return false };
    let rest = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
    uri[..colon].first().is_some_and(u8::is_ascii_alphabetic) && uri[..colon].iter().all(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ascii_classes_agree_with_the_productions() {
        for byte in 0..0x80u8 {
            let c = byte as char;
            assert_eq!(is(byte, NAME_START), c != ':' && is_name_start(c), "{c:?}");
            assert_eq!(is(byte, NAME), c != ':' && is_name_char(c), "{c:?}");
            assert_eq!(is(byte, SPACE), matches!(c, ' ' | '\t' | '\r' | '\n'), "{c:?}");
        }
    }

    #[test]
    fn stops_are_found_wherever_they_stand() {
        for (find, class) in [(text_end as fn(&[u8], usize) -> usize, TEXT_STOP), (value_end, VALUE_STOP)] {
            for stop in (0..=255).filter(|&byte| is(byte, class)) {
                for length in (0..100).chain([127, 128, 129, 1023, 1087, 1088, 1089, 3000]) {
                    let text = [vec![b'x'; length], vec![stop, b'x', stop]].concat();
                    assert_eq!(find(&text, 0), length, "{stop} after {length}");
                    assert_eq!(find(&text[..length], 0), length, "the end after {length}");
                }
            }
        }
    }

    #[test]
    fn names_end_where_the_production_says() {
        for (text, end) in
            [("a:b", 1), ("é·x y", 5), ("1a", 0), ("·a", 0), ("", 0), ("a\u{D7}", 1), ("\u{10000}-\u{300}>", 7)]
        {
            assert_eq!(ncname_end(text, 0), end, "{text}");
        }
    }

    #[test]
    fn forbidden_characters_are_found_wherever_they_stand() {
        for found in ['\0', '\u{8}', '\u{B}', '\u{1F}', '\u{FFFE}', '\u{FFFF}'] {
            for length in [0, 1, 255, 256, 700] {
                let text = format!("{}{found}x", "é".repeat(length));
                assert_eq!(forbidden(&text), Some((2 * length, found)), "{found:?} after {length}");
            }
        }
        for text in ["\t\n\r \u{7F}\u{85}\u{FFFD}\u{10FFFF}", "\u{1FFFE}"] {
            assert_eq!(forbidden(text), None);
        }
    }
}
