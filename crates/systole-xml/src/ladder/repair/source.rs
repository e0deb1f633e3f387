//! Decoding of raw bytes into characters that XML allows, and offsets back to the raw bytes.

use std::borrow::Cow;
use std::str::Utf8Error;

use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252};

use super::declaration;
use super::lexis::{excerpt, is_xml_char, is_xml_text};
use super::locate::{Coding, Locator};
use super::{RepairError, RepairKind};
use crate::vocab::Position;

/// The input as text. Every character in it is one that XML allows.
#[derive(Debug)]
pub(super) struct Source<'r> {
    pub(super) text: Cow<'r, str>,
    /// The changes of decoding, in raw offsets, in order.
    pub(super) marks: Vec<Mark>,
    raw: &'r [u8],
    coding: Coding,
    runs: Vec<Run>,
}

/// A repair without its line and column, which are computed at the end.
#[derive(Debug, Clone, Copy)]
pub(super) struct Mark {
    pub(super) start: u32,
    pub(super) end: u32,
    pub(super) kind: RepairKind,
}

impl Mark {
    pub(super) fn new(start: usize, end: usize, kind: RepairKind) -> Self {
        Self { start: narrow(start), end: narrow(end), kind }
    }
}

/// A stretch of text in which `text_unit` bytes come from each `raw_unit` raw bytes.
#[derive(Debug, Clone, Copy)]
struct Run {
    text: u32,
    raw: u32,
    text_unit: u8,
    raw_unit: u8,
}

/// Maximum number of raw bytes: beyond it, offsets into decoded text would not fit into 32 bits.
pub(super) const MAX_BYTES: usize = (u32::MAX / 4) as usize;

const UTF_8_MARK: &[u8] = b"\xEF\xBB\xBF";

/// Decodes raw bytes: UTF-16 with a byte order mark; else UTF-8 if they are valid; else the encoding of the
/// XML declaration, if it is ISO-8859-1 or windows-1252 (one decoder for both, as in the WHATWG's Encoding
/// standard). Other bytes are refused: an encoding that nobody names would be a guess, and U+FFFD a loss that nobody learns of.
///
/// Bytes that are valid UTF-8 are never read as anything else: text in another
/// encoding is hardly ever valid UTF-8, and declarations are often copied without thought.
///
/// # Errors
/// [`RepairError::UnsupportedEncoding`] for any other encoding, [`RepairError::InvalidBytes`] for bytes that are no characters,
/// [`RepairError::Truncated`] for a character that the end of the input cuts, [`RepairError::Unclosed`] for a control sequence of
/// a terminal without its end.
pub(super) fn decode(raw: &[u8]) -> Result<Source<'_>, RepairError> {
    match *raw {
        [0xFF, 0xFE, 0, 0, ..] | [0, 0, 0xFE, 0xFF, ..] => Err(unsupported(raw, 0, "UTF-32")),
        [0xFF, 0xFE, ..] => decode_utf_16(raw, u16::from_le_bytes),
        [0xFE, 0xFF, ..] => decode_utf_16(raw, u16::from_be_bytes),
        [b'<', 0, low, 0, ..] | [0, b'<', 0, low, ..] if low != 0 => {
            Err(unsupported(raw, 0, "UTF-16 without a byte order mark"))
        }
        _ => decode_bytes(raw),
    }
}

fn decode_bytes(raw: &[u8]) -> Result<Source<'_>, RepairError> {
    let start = if raw.starts_with(UTF_8_MARK) { UTF_8_MARK.len() } else { 0 };
    let body = &raw[start..];
    match std::str::from_utf8(body) {
        Ok(text) if is_xml_text(text) => {
            let runs = vec![Run { text: 0, raw: narrow(start), text_unit: 1, raw_unit: 1 }];
            Ok(Source { text: Cow::Borrowed(text), marks: Vec::new(), raw, coding: Coding::Utf8 { start }, runs })
        }
        Ok(text) => decode_utf_8(text, raw, start),
        Err(error) => match declared_encoding(body).filter(|_| start == 0) {
            // The Encoding standard reads it as windows-1252, but these bytes are in no encoding of that name.
            Some((label, _)) if names_ascii(label) => {
                let at = Locator::new(raw, Coding::Utf8 { start }).position(start + error.valid_up_to());
                Err(RepairError::InvalidBytes { at, encoding: "US-ASCII" })
            }
            Some((label, at)) => match Encoding::for_label(label.as_bytes()) {
                Some(known) if known == WINDOWS_1252 => decode_windows_1252(raw, at),
                Some(known) if known == UTF_8 || known == UTF_16LE || known == UTF_16BE => {
                    Err(invalid(raw, start, error))
                }
                _ => Err(unsupported(raw, at, label)),
            },
            None => Err(invalid(raw, start, error)),
        },
    }
}

/// Tests the name of an encoding for one of ASCII.
pub(crate) fn names_ascii(label: &str) -> bool {
    ["ascii", "us-ascii", "ansi_x3.4-1968", "iso646-us"].iter().any(|known| known.eq_ignore_ascii_case(label))
}

/// The encoding that the XML declaration names, and the offset of the declaration. It may have
/// prose or a fence before it, but no other markup.
fn declared_encoding(body: &[u8]) -> Option<(&str, usize)> {
    let at = memchr::memchr_iter(b'<', body)
        .find(|&at| matches!(body.get(at + 1), Some(b'?' | b'!' | b'/' | b'_' | b'A'..=b'Z' | b'a'..=b'z')))?;
    let length = memchr::memmem::find(&body[at..], b"?>")? + 2;
    let text = std::str::from_utf8(&body[at..at + length]).ok()?;
    Some((declaration::read(text)?.encoding?, at))
}

/// The error of bytes that are no UTF-8.
fn invalid(raw: &[u8], start: usize, error: Utf8Error) -> RepairError {
    let at = Locator::new(raw, Coding::Utf8 { start }).position(start + error.valid_up_to());
    match error.error_len() {
        None => RepairError::Truncated { at, inside: None },
        Some(_) => RepairError::InvalidBytes { at, encoding: "UTF-8" },
    }
}

fn decode_utf_8<'r>(text: &str, raw: &'r [u8], start: usize) -> Result<Source<'r>, RepairError> {
    let mut builder = Builder::new(raw.len(), start);
    text.chars().for_each(|c| builder.push(c, c.len_utf8()));
    builder.finish(raw, Coding::Utf8 { start })
}

fn decode_utf_16(raw: &[u8], unit: fn([u8; 2]) -> u16) -> Result<Source<'_>, RepairError> {
    let coding = Coding::Utf16 { unit };
    let mut builder = Builder::new(raw.len(), 2);
    builder.marks.push(Mark::new(0, 2, RepairKind::Encoding));
    let (pairs, rest) = raw[2..].as_chunks::<2>();
    for c in char::decode_utf16(pairs.iter().map(|&pair| unit(pair))) {
        match c {
            Ok(c) => builder.push(c, 2 * c.len_utf16()),
            Err(_) => {
                let at = Locator::new(raw, coding).position(builder.raw);
                return Err(RepairError::InvalidBytes { at, encoding: "UTF-16" });
            }
        }
    }
    if !rest.is_empty() {
        let at = Locator::new(raw, coding).position(builder.raw);
        return Err(RepairError::Truncated { at, inside: None });
    }
    builder.finish(raw, coding)
}

fn decode_windows_1252(raw: &[u8], declaration: usize) -> Result<Source<'_>, RepairError> {
    let mut builder = Builder::new(raw.len(), 0);
    builder.marks.push(Mark::new(declaration, declaration + "<?xml".len(), RepairKind::Encoding));
    let (text, _) = WINDOWS_1252.decode_without_bom_handling(raw);
    text.chars().for_each(|c| builder.push(c, 1));
    builder.finish(raw, Coding::SingleByte)
}

fn unsupported(raw: &[u8], at: usize, encoding: &str) -> RepairError {
    RepairError::UnsupportedEncoding { at: Position::of(raw, at), encoding: excerpt(encoding) }
}

impl Source<'_> {
    /// The raw offset of the character at `offset` of the text.
    pub(super) fn raw_start(&self, offset: usize) -> usize {
        self.raw_offset(offset, self.runs.partition_point(|run| run.text as usize <= offset))
    }

    /// The raw offset behind the character that ends at `offset` of the text.
    pub(super) fn raw_end(&self, offset: usize) -> usize {
        self.raw_offset(offset, self.runs.partition_point(|run| (run.text as usize) < offset))
    }

    fn raw_offset(&self, offset: usize, run: usize) -> usize {
        match self.runs[..run].last().or(self.runs.first()) {
            Some(run) => {
                run.raw as usize + (offset - run.text as usize) / usize::from(run.text_unit) * usize::from(run.raw_unit)
            }
            None => self.raw.len(),
        }
    }

    /// The place of the character at `offset` of the text. Reads the input up to there: meant for errors.
    pub(super) fn position(&self, offset: usize) -> Position {
        self.locator().position(self.raw_start(offset))
    }

    /// A locator for raw offsets that don't decrease.
    pub(super) fn locator(&self) -> Locator<'_> {
        Locator::new(self.raw, self.coding)
    }

    /// The raw bytes that are the text; `None` if decoding changed them.
    pub(super) fn verbatim(&self) -> Option<std::ops::Range<usize>> {
        match (&self.text, self.coding) {
            (Cow::Borrowed(_), Coding::Utf8 { start }) => Some(start..self.raw.len()),
            _ => None,
        }
    }
}

/// Collects text, runs and marks.
struct Builder {
    text: String,
    runs: Vec<Run>,
    marks: Vec<Mark>,
    /// The raw offset that comes next.
    raw: usize,
    /// The raw offset behind the last run.
    run_end: usize,
    control: Control,
}

/// The place in a control sequence of a terminal (ECMA-48): such a sequence is removed whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Control {
    None,
    /// Behind ESC.
    Escape,
    /// Behind ESC and `[` at a raw offset: parameters, up to a letter or the like.
    Sequence(usize),
    /// Behind the intermediate character of a sequence, of which terminals use few: `ESC [2 q`, `ESC [!p`.
    Intermediate(usize, char),
    /// Behind ESC and `(` or the like: the name of a character set.
    Charset(usize),
    /// In a control string that began at a raw offset, such as the title of a window.
    String(usize),
    /// Behind an ESC in it.
    StringEscape(usize),
    /// In a sequence or a control string that began at a raw offset and has no end.
    Unclosed(usize),
}

impl Builder {
    fn new(capacity: usize, start: usize) -> Self {
        Self {
            text: String::with_capacity(capacity),
            runs: Vec::new(),
            marks: Vec::new(),
            raw: start,
            run_end: start,
            control: Control::None,
        }
    }

    /// Adds a character that came from `raw` bytes.
    fn push(&mut self, c: char, raw: usize) {
        let next = match (self.control, c) {
            (Control::None | Control::Unclosed(_), '\u{1B}') => Control::Escape,
            (Control::None | Control::Unclosed(_), _) => return self.add(c, raw),
            (Control::Escape, '[') => Control::Sequence(self.raw),
            (Control::Escape, ']' | 'P' | 'X' | '^' | '_') => Control::String(self.raw),
            (Control::Escape, '(' | ')' | '*' | '+') => Control::Charset(self.raw),
            (Control::Escape, '7' | '8') => Control::None,
            // No terminal takes these for parameters where a tag may follow.
            (Control::Sequence(start), '0'..=';' | '='..='?') => Control::Sequence(start),
            (Control::Sequence(start), ' ' | '!') => Control::Intermediate(start, c),
            (Control::Sequence(_), '@'..='~') => Control::None,
            (Control::Intermediate(_, ' '), 'q') | (Control::Intermediate(_, '!'), 'p') => Control::None,
            (Control::Charset(_), '0'..='9' | 'A'..='Z') => Control::None,
            (Control::Sequence(start) | Control::Intermediate(start, _) | Control::Charset(start), _) => {
                Control::Unclosed(start)
            }
            (Control::String(_), '\u{7}') | (Control::StringEscape(_), '\\') => Control::None,
            (Control::String(start), '\u{1B}') => Control::StringEscape(start),
            (Control::String(start), '\n' | '<') | (Control::StringEscape(start), _) => Control::Unclosed(start),
            (Control::String(start), _) => Control::String(start),
            (Control::Escape, _) => {
                self.control = Control::None;
                return self.push(c, raw);
            }
        };
        // The first control string without an end is the error of the input.
        if !matches!(self.control, Control::Unclosed(_)) {
            self.control = next;
        }
        self.mark(raw, RepairKind::ControlCharacter);
        self.raw += raw;
    }

    fn add(&mut self, c: char, raw: usize) {
        if is_xml_char(c) {
            if c.len_utf8() == raw { self.keep(c, 1, 1) } else { self.keep(c, c.len_utf8(), raw) }
        } else {
            self.mark(raw, RepairKind::ControlCharacter);
            self.raw += raw;
        }
    }

    /// Adds a character to the current run, or starts a new one. Where the units are 1, the
    /// character takes as many raw bytes as it has in UTF-8.
    fn keep(&mut self, c: char, text_unit: usize, raw_unit: usize) {
        let units = (unit(text_unit), unit(raw_unit));
        let fits = |run: &Run| (run.text_unit, run.raw_unit) == units;
        if self.run_end != self.raw || !self.runs.last().is_some_and(fits) {
            let (text, raw) = (narrow(self.text.len()), narrow(self.raw));
            self.runs.push(Run { text, raw, text_unit: units.0, raw_unit: units.1 });
        }
        self.text.push(c);
        self.raw += c.len_utf8() / text_unit * raw_unit;
        self.run_end = self.raw;
    }

    /// Records a change to the next `raw` bytes; adjacent changes of one kind become one.
    fn mark(&mut self, raw: usize, kind: RepairKind) {
        let end = narrow(self.raw + raw);
        match self.marks.last_mut() {
            Some(last) if last.kind == kind && last.end as usize == self.raw => last.end = end,
            _ => self.marks.push(Mark { start: narrow(self.raw), end, kind }),
        }
    }

    fn finish(self, raw: &[u8], coding: Coding) -> Result<Source<'_>, RepairError> {
        let open = match self.control {
            Control::None | Control::Escape => None,
            Control::Sequence(start) | Control::Intermediate(start, _) | Control::Charset(start) => Some(start),
            Control::String(start) | Control::StringEscape(start) | Control::Unclosed(start) => Some(start),
        };
        if let Some(start) = open {
            let at = Locator::new(raw, coding).position(start);
            return Err(RepairError::Unclosed {
                at,
                construct: "control sequence of a terminal",
                end: "its last byte",
            });
        }
        Ok(Source { text: Cow::Owned(self.text), marks: self.marks, raw, coding, runs: self.runs })
    }
}

fn unit(bytes: usize) -> u8 {
    u8::try_from(bytes).expect("a character has at most 4 bytes")
}

fn narrow(offset: usize) -> u32 {
    u32::try_from(offset).expect("longer inputs are refused")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text, and the raw offset of each character.
    fn offsets(raw: &[u8]) -> (String, Vec<usize>) {
        let source = decode(raw).unwrap();
        (source.text.to_string(), source.text.char_indices().map(|(at, _)| source.raw_start(at)).collect())
    }

    #[test]
    fn offsets_lead_back_from_utf_8() {
        assert_eq!(offsets(b"\xEF\xBB\xBFab"), ("ab".into(), vec![3, 4]));
        assert_eq!(offsets(b"a\0\0\xC3\xA9b"), ("aéb".into(), vec![0, 3, 5]));
        assert_eq!(offsets(b"\0\0"), (String::new(), vec![]));
    }

    #[test]
    fn offsets_lead_back_from_utf_16() {
        let raw: Vec<u8> = [0xFEFF, 0x61, 0xD834, 0xDD1E, 0xE9].iter().flat_map(|u: &u16| u.to_le_bytes()).collect();
        assert_eq!(offsets(&raw), ("a\u{1D11E}é".into(), vec![2, 4, 8]));
    }

    #[test]
    fn bytes_that_are_no_characters_are_refused_where_they_stand() {
        for (raw, place) in [
            (&b"\xFFa"[..], "1:1"),
            (b"ab\xE9c", "1:3"),
            (b"a\n\xEF\xBB\xBFb\xC3(", "2:3"),
            (b"\xEF\xBB\xBF<?xml version='1.0' encoding='ISO-8859-1'?>\xE9x", "1:44"),
            (b"<?xml version='1.0' encoding='UTF-8'?><a>\xE9</a>", "1:42"),
            (b"<?xml version='1.0' encoding='US-ASCII'?><a>\xE9</a>", "1:45"),
            (b"\xFE\xFF\0a\xD8\0\0b", "1:2"),
        ] {
            let error = decode(raw).expect_err("no characters");
            assert!(matches!(error, RepairError::InvalidBytes { .. }), "{error}");
            assert!(error.to_string().starts_with(place), "{error}");
        }
        for raw in [&b"<a>caf\xC3"[..], b"<a>\xF0\x9F\x98", b"\xFE\xFF\0a\0"] {
            assert!(matches!(decode(raw), Err(RepairError::Truncated { .. })), "{raw:?}");
        }
    }

    #[test]
    fn control_sequences_of_terminals_are_removed_whole() {
        for (raw, text) in [
            ("\x1b[31mred\x1b[0m text", "red text"),
            ("\x1b[38;5;1mx\x1b[?25l", "x"),
            ("a\x1b[2 qb\x1b[!pc", "abc"),
            ("a\x1b]0;a title\x07b", "ab"),
            ("a\x1b]8;;http://x.org\x1b\\b", "ab"),
            ("\x1b(B<a>\x1b7", "<a>"),
            ("\x1b<a>", "<a>"),
            ("a\x1bb", "ab"),
            ("\x1b\x1b[1mb\x1b", "b"),
        ] {
            let wide: Vec<u8> = [0xFEFF].into_iter().chain(text_units(raw)).flat_map(u16::to_be_bytes).collect();
            assert_eq!(decode(raw.as_bytes()).unwrap().text, text, "{raw:?}");
            assert_eq!(decode(&wide).unwrap().text, text, "{raw:?}");
        }
        for raw in [
            "\x1b[1<a>",
            "a\x1b[31",
            "cost \x1b[1 (see b) x",
            "cost \x1b[1 see",
            "a\x1b[!x",
            "a\x1b[",
            "a\x1b[1é",
            "a\x1b(",
            "a\x1b(<",
            "a\x1b]0;title",
            "\x1b]0;title<a>\x07</a>",
            "\x1bPx\ny\x07",
        ] {
            assert!(matches!(decode(raw.as_bytes()), Err(RepairError::Unclosed { .. })), "{raw:?}");
        }
    }

    fn text_units(text: &str) -> impl Iterator<Item = u16> {
        text.encode_utf16().collect::<Vec<u16>>().into_iter()
    }

    #[test]
    fn a_removed_character_belongs_to_neither_neighbour() {
        let source = decode(b"a\0b").unwrap();
        assert_eq!((source.raw_start(1), source.raw_end(1)), (2, 1));
    }

    #[test]
    fn a_declared_encoding_counts_only_where_utf_8_fails() {
        let latin = b"<?xml version='1.0' encoding='ISO-8859-1'?><a>\xE9\x80</a>";
        assert!(decode(latin).unwrap().text.contains("é€"));
        let utf_8 = "<?xml version='1.0' encoding='ISO-8859-1'?><a>é</a>";
        assert!(decode(utf_8.as_bytes()).unwrap().text.contains('é'));
        let other = b"<?xml version='1.0' encoding='Shift_JIS'?><a>\x83\x41\xFF</a>";
        assert!(matches!(decode(other), Err(RepairError::UnsupportedEncoding { .. })));
    }
}
