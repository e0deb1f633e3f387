//! Transcripts of conversations: the form of their files, which is one for each content.
//!
//! A file is an element `t:transcript` with an entry on each line, the first of which describes the conversation, and the head
//! on the last one. An entry has short values as attributes, and long ones as elements; a canonical document stands in the last
//! of them as it is, so the hash of an entry covers the bytes that the organism handled. Each entry is an element that stands
//! for itself: its bytes are a document of their own. The head is an envelope, so its signature is that of any message.
//!
//! Always true of what [`Entry::read`] returns: [`Entry::write`] writes the same bytes. [`Cutter`] holds one element at a time.
//!
//! Not here: hashes and keys, the meaning of entries, and files.

use base64::prelude::{BASE64_STANDARD, Engine};
use bytes::Bytes;
use memchr::{memchr, memmem};

use super::Raw;
use super::escape::uncarriable;
use super::signature::Signed;
use super::strict::{self, push_text, push_value};
use crate::vocab::{XmlLimits, ns};

/// The first line of a file.
pub const OPENING: &str = "<t:transcript xmlns:t=\"urn:systole:transcript:v1\">\n";
/// The last line of a file.
pub const CLOSING: &str = "</t:transcript>\n";
/// The begin of a file of any version.
pub const START: &str = "<t:transcript xmlns:t=\"urn:systole:transcript:";
/// Most bytes of an element of a file.
pub const ELEMENT_BYTES: usize = 256 << 20;

/// The byte order mark of UTF-8, which other programs write in front of a text.
const MARK: &[u8] = b"\xef\xbb\xbf";
/// The begin of an XML declaration.
const DECLARED: &[u8] = b"<?xml";
/// Most bytes of the name of an entry or of a value.
const NAME: usize = 64;
const DECLARATION: &str = " xmlns:t=\"urn:systole:transcript:v1\"";
const BINARY: &str = " encoding=\"base64\"";

/// Reason why bytes are no transcript.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FormError {
    /// The file begins otherwise.
    #[error("it is no transcript: the first line is {OPENING:?}")]
    NoTranscript,
    /// The file has another version of the form.
    #[error("it is a transcript of another version than v1: use the systole that wrote it")]
    Version,
    /// The lines of the file end otherwise.
    #[error(
        "its lines end with CR LF: the file was changed in transfer, so its hashes do not hold; transfer it as binary (mail it as \
         an attachment, keep Git from converting it by `-text`)"
    )]
    LineEnds,
    /// Something stands before the first line.
    #[error(
        "a byte order mark or an XML declaration stands in front of the first line: the file was changed; remove it, so that the \
         file begins with <t:transcript"
    )]
    Front,
    /// An element is no entry in the one form.
    #[error("{expected} is expected at byte {at} of the entry")]
    Entry {
        /// The part that should stand there.
        expected: &'static str,
        /// Bytes of the entry before that place.
        at: usize,
    },
    /// Bytes between the elements.
    #[error(
        "an element is expected at byte {at} of the file, each on a line of its own, without comments and sections"
    )]
    Between {
        /// Bytes of the file before that place.
        at: u64,
    },
    /// An element is longer than those that are read.
    #[error("the element at byte {at} of the file has more than {ELEMENT_BYTES} bytes")]
    Large {
        /// Bytes of the file before the element.
        at: u64,
    },
    /// The head is no envelope of the one form.
    #[error("the head is no envelope around <head entries=\"…\" hash=\"…\">")]
    Head,
    /// The `<meta>` of the head has something other than one signature.
    #[error(
        "the <meta> of the head must hold one signature and nothing else, as `systole thread transcript --sign` writes it: a \
         signed message of another use is no head"
    )]
    Meta,
}

/// An entry of a transcript: a kind, and values by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    kind: String,
    values: Vec<(String, Value)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Value {
    /// A short text, an attribute.
    Short(String),
    /// A text, an element.
    Long(String),
    /// A canonical document.
    Document(String),
}

impl Value {
    fn text(&self) -> &str {
        match self {
            Self::Short(text) | Self::Long(text) | Self::Document(text) => text,
        }
    }
}

impl Entry {
    /// An entry without values. Kinds and names of values are lower-case letters of ASCII, digits, `-` and `_`, and begin with a
    /// letter.
    pub fn new(kind: &str) -> Self {
        Self { kind: kind.to_owned(), values: Vec::new() }
    }

    /// The kind.
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// The value of a name.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.value(name).map(Value::text)
    }

    /// The value of a name, if it is a canonical document.
    pub fn document(&self, name: &str) -> Option<&str> {
        match self.value(name)? {
            Value::Document(document) => Some(document),
            Value::Short(_) | Value::Long(_) => None,
        }
    }

    fn value(&self, name: &str) -> Option<&Value> {
        self.values.iter().find(|(known, _)| known == name).map(|(_, value)| value)
    }

    /// Adds a short value. One with a character that XML can't carry is written as a long one is.
    pub fn put(&mut self, name: &str, value: impl Into<String>) {
        let value = value.into();
        let value = if uncarriable(&value).is_none() { Value::Short(value) } else { Value::Long(value) };
        self.values.push((name.to_owned(), value));
    }

    /// Adds a short value in front of all others.
    pub fn lead(&mut self, name: &str, value: impl Into<String>) {
        self.values.insert(0, (name.to_owned(), Value::Short(value.into())));
    }

    /// Adds a long value.
    pub fn put_long(&mut self, name: &str, value: impl Into<String>) {
        self.values.push((name.to_owned(), Value::Long(value.into())));
    }

    /// Adds the last value, which is written as it is if it is a canonical document, and as text otherwise.
    pub fn put_document(&mut self, name: &str, document: impl Into<String>) {
        let document = document.into();
        let value = if is_canonical(&document) { Value::Document(document) } else { Value::Long(document) };
        self.values.push((name.to_owned(), value));
    }

    /// Writes the entry, without a line feed.
    pub fn write(&self) -> String {
        let mut out = format!("<t:{}{DECLARATION}", self.kind);
        for (name, value) in &self.values {
            if let Value::Short(text) = value {
                out.push_str(&format!(" {name}=\""));
                push_value(&mut out, text);
                out.push('"');
            }
        }
        out.push('>');
        let documents = |value: &Value| matches!(value, Value::Document(_));
        let long = self.values.iter().filter(|(_, value)| matches!(value, Value::Long(_)));
        for (name, value) in long.chain(self.values.iter().filter(|(_, value)| documents(value))) {
            match value {
                Value::Document(document) => out.push_str(&format!("<t:{name}>{document}")),
                Value::Short(text) | Value::Long(text) if uncarriable(text).is_none() => {
                    out.push_str(&format!("<t:{name}>"));
                    push_text(&mut out, text);
                }
                Value::Short(text) | Value::Long(text) => {
                    out.push_str(&format!("<t:{name}{BINARY}>{}", BASE64_STANDARD.encode(text.as_bytes())));
                }
            }
            out.push_str(&format!("</t:{name}>"));
        }
        out.push_str(&format!("</t:{}>", self.kind));
        out
    }

    /// Reads an entry.
    ///
    /// # Errors
    /// [`FormError::Entry`] for bytes that [`write`](Self::write) doesn't write.
    pub fn read(text: &str) -> Result<Self, FormError> {
        let mut reader = EntryReader { text, at: 0 };
        let entry = reader.entry()?;
        // Names of several values, other references, or another order.
        if entry.write() != text {
            return Err(reader.error("the one spelling of its values"));
        }
        Ok(entry)
    }
}

/// Returns whether a text is a canonical document, so that it can stand in an entry as it is.
fn is_canonical(text: &str) -> bool {
    if !text.starts_with('<') {
        return false;
    }
    let read = strict::canonicalize(&Bytes::copy_from_slice(text.as_bytes()), &XmlLimits::UNLIMITED);
    read.is_ok_and(|read| read.as_str() == text)
}

struct EntryReader<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> EntryReader<'a> {
    fn entry(&mut self) -> Result<Entry, FormError> {
        self.expect("<t:", "<t:")?;
        let kind = self.name()?;
        self.expect(DECLARATION, "the declaration of the prefix t")?;
        let mut values: Vec<(String, Value)> = Vec::new();
        while !self.takes(">") {
            self.expect(" ", "an attribute, or >")?;
            let name = self.name()?;
            self.expect("=\"", "=\"")?;
            let value = self.until(b'"', "the end of the attribute")?;
            values.push((name.to_owned(), Value::Short(self.unescape(value)?)));
            self.expect("\"", "\"")?;
        }
        let close = format!("</t:{kind}>");
        let Some(content) = self.text[self.at..].strip_suffix(&*close) else {
            return Err(self.error("the end tag of the entry, and nothing behind it"));
        };
        let end = self.at + content.len();
        while self.at < end {
            self.expect("<t:", "a value, or the end tag of the entry")?;
            let name = self.name()?;
            let is_binary = self.takes(BINARY);
            self.expect(">", ">")?;
            let close = format!("</t:{name}>");
            let rest = &self.text[self.at..end];
            let value = if rest.starts_with('<') && !rest.starts_with(&*close) {
                let document = rest.strip_suffix(&*close).filter(|document| is_canonical(document));
                let document = document.ok_or_else(|| self.error("a canonical document as the last value"))?;
                self.at += document.len();
                Value::Document(document.to_owned())
            } else {
                let written = self.until(b'<', "the end tag of the value")?;
                let text = match is_binary {
                    true => BASE64_STANDARD.decode(written).ok().and_then(|bytes| String::from_utf8(bytes).ok()),
                    false => Some(self.unescape(written)?),
                };
                Value::Long(text.ok_or_else(|| self.error("a text of UTF-8 in base64"))?)
            };
            self.expect(&close, "the end tag of the value")?;
            values.push((name.to_owned(), value));
        }
        let mut names: Vec<&String> = values.iter().map(|(name, _)| name).collect();
        names.sort_unstable();
        if names.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err(self.error("one value of each name"));
        }
        Ok(Entry { kind: kind.to_owned(), values })
    }

    fn error(&self, expected: &'static str) -> FormError {
        FormError::Entry { expected, at: self.at }
    }

    fn takes(&mut self, text: &str) -> bool {
        let is_next = self.text[self.at..].starts_with(text);
        if is_next {
            self.at += text.len();
        }
        is_next
    }

    fn expect(&mut self, text: &str, expected: &'static str) -> Result<(), FormError> {
        if self.takes(text) { Ok(()) } else { Err(self.error(expected)) }
    }

    fn name(&mut self) -> Result<&'a str, FormError> {
        let rest = &self.text[self.at..];
        let is_part = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'_');
        let name = &rest[..rest.bytes().take_while(is_part).count()];
        // XML keeps names that begin so for itself.
        let is_kept = name.starts_with("xml");
        if !name.starts_with(|c: char| c.is_ascii_lowercase()) || is_kept || name.len() > NAME {
            return Err(self.error("a name of small letters"));
        }
        self.at += name.len();
        Ok(name)
    }

    fn until(&mut self, end: u8, expected: &'static str) -> Result<&'a str, FormError> {
        let rest = &self.text[self.at..];
        let found = memchr(end, rest.as_bytes()).ok_or_else(|| self.error(expected))?;
        self.at += found;
        Ok(&rest[..found])
    }

    /// Replaces the references of the canonical form; that there are no others is checked by writing again.
    fn unescape(&self, written: &str) -> Result<String, FormError> {
        const REFERENCES: [(&str, char); 7] =
            [("amp;", '&'), ("lt;", '<'), ("gt;", '>'), ("quot;", '"'), ("#x9;", '\t'), ("#xA;", '\n'), ("#xD;", '\r')];
        let mut parts = written.split('&');
        let mut text = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let known = REFERENCES.iter().find_map(|(name, c)| Some((part.strip_prefix(name)?, *c)));
            let (rest, c) = known.ok_or_else(|| self.error("a reference of canonical XML"))?;
            text.push(c);
            text.push_str(rest);
        }
        if uncarriable(&text).is_some() { Err(self.error("characters of XML")) } else { Ok(text) }
    }
}

/// The head of a transcript, as a message says it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Head {
    /// Entries behind the first one, which describes the conversation.
    pub entries: u64,
    /// The hash of the last entry, as hexadecimal digits.
    pub hash: String,
    /// True if `<meta>` has a signature, which is not verified.
    pub is_signed: bool,
}

impl Head {
    /// Makes the head without a signature: an envelope.
    pub fn write(entries: u64, hash: &str) -> String {
        format!(
            "<message xmlns=\"{}\"><meta></meta><head xmlns=\"{}\" entries=\"{entries}\" hash=\"{hash}\"></head></message>",
            ns::ENVELOPE,
            ns::TRANSCRIPT
        )
    }

    /// Reads a head; a signature in it is not verified.
    ///
    /// # Errors
    /// [`FormError::Meta`] if `<meta>` has something other than a signature in the one spelling: a message that was signed for
    /// another use may have the payload of a head. [`FormError::Head`] for any other text.
    pub fn read(text: &str) -> Result<Self, FormError> {
        let start = format!("<message xmlns=\"{}\"><meta>", ns::ENVELOPE);
        let read = || {
            // The texts of a signature are escaped.
            let (meta, rest) = text.strip_prefix(&*start)?.split_once("</meta>")?;
            let rest = rest.strip_prefix(&*format!("<head xmlns=\"{}\" entries=\"", ns::TRANSCRIPT))?;
            let (entries, rest) = rest.split_once("\" hash=\"")?;
            let hash = rest.strip_suffix("\"></head></message>")?;
            let entries: u64 = entries.parse().ok().filter(|count: &u64| count.to_string() == entries)?;
            let is_hash = hash.len() == 64 && hash.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
            is_hash.then(|| (meta, Self { entries, hash: hash.to_owned(), is_signed: !meta.is_empty() }))
        };
        let (meta, head) = read().ok_or(FormError::Head)?;
        if head.is_signed && spelling(text).is_none_or(|signature| signature != meta) {
            return Err(FormError::Meta);
        }
        Ok(head)
    }
}

/// The one spelling of the signature of an envelope.
fn spelling(text: &str) -> Option<String> {
    let raw = Raw::new(text.to_owned());
    let message = strict::canonicalize(raw.bytes(), &XmlLimits::UNLIMITED).ok()?;
    Signed::open(&raw, &message).ok().map(|signed| signed.spelling())
}

/// A piece of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// An element: an entry, or the head.
    Element(String),
    /// The last line.
    End,
}

/// Cuts a file into its elements, from chunks of any size.
#[derive(Debug, Default)]
pub struct Cutter {
    bytes: Vec<u8>,
    /// Bytes of the file before those.
    before: u64,
    /// Begin of the present element.
    start: usize,
    /// Place up to which it was scanned, at the begin of a tag or in a text.
    scanned: usize,
    depth: usize,
    part: Part,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Part {
    #[default]
    Opening,
    Elements,
    /// An element is whole, and its line feed is expected.
    Line,
    Behind,
}

impl Cutter {
    /// Adds bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.drain(..self.start);
        self.before += self.start as u64;
        self.scanned -= self.start;
        self.start = 0;
        self.bytes.extend_from_slice(bytes);
    }

    /// Bytes that are held.
    pub fn held(&self) -> usize {
        self.bytes.len() - self.start
    }

    /// Takes the next piece; none if it is not whole yet. Behind the end there is none.
    ///
    /// # Errors
    /// [`FormError`]; the file has no further pieces then.
    pub fn next_piece(&mut self) -> Result<Option<Piece>, FormError> {
        loop {
            let rest = &self.bytes[self.start..];
            match self.part {
                Part::Opening => {
                    if [MARK, DECLARED].iter().any(|front| rest.len() < front.len() && front.starts_with(rest)) {
                        return Ok(None);
                    }
                    if !begins(OPENING, rest) {
                        return Err(match rest.strip_prefix(OPENING.trim_end().as_bytes()) {
                            Some([b'\r', ..]) => FormError::LineEnds,
                            _ if begins(START, rest) => FormError::Version,
                            _ if rest.starts_with(MARK) || rest.starts_with(DECLARED) => FormError::Front,
                            _ => FormError::NoTranscript,
                        });
                    }
                    if rest.len() < OPENING.len() {
                        return Ok(None);
                    }
                    self.consume(OPENING.len());
                    self.part = Part::Elements;
                }
                Part::Elements if self.depth == 0 && !rest.is_empty() && begins(CLOSING, rest) => {
                    // Also the begin of an element.
                    if rest.len() < CLOSING.len() {
                        return Ok(None);
                    }
                    self.consume(CLOSING.len());
                    self.part = Part::Behind;
                    return Ok(Some(Piece::End));
                }
                Part::Elements => match self.scan()? {
                    false if self.bytes.len() - self.start > ELEMENT_BYTES => {
                        return Err(FormError::Large { at: self.before + self.start as u64 });
                    }
                    false => return Ok(None),
                    true => self.part = Part::Line,
                },
                Part::Line => {
                    match self.bytes.get(self.scanned) {
                        None => return Ok(None),
                        Some(b'\n') => {}
                        Some(_) => return Err(self.between(self.scanned)),
                    }
                    let element = self.bytes[self.start..self.scanned].to_vec();
                    let element = String::from_utf8(element)
                        .map_err(|error| self.between(self.start + error.utf8_error().valid_up_to()))?;
                    self.consume(element.len() + 1);
                    self.part = Part::Elements;
                    return Ok(Some(Piece::Element(element)));
                }
                Part::Behind if rest.is_empty() => return Ok(None),
                Part::Behind => return Err(self.between(self.start)),
            }
        }
    }

    fn consume(&mut self, bytes: usize) {
        self.start += bytes;
        self.scanned = self.start;
    }

    fn between(&self, at: usize) -> FormError {
        FormError::Between { at: self.before + at as u64 }
    }

    /// Scans the present element as far as it is there; true at its end. Only what canonical XML has is understood: a `>` may
    /// stand in values.
    fn scan(&mut self) -> Result<bool, FormError> {
        loop {
            let rest = &self.bytes[self.scanned..];
            let found = memchr(b'<', rest);
            if self.depth == 0 && !rest.is_empty() && found != Some(0) {
                return Err(self.between(self.scanned));
            }
            let Some(found) = found else {
                self.scanned = self.bytes.len();
                return Ok(false);
            };
            self.scanned += found;
            let tag = &self.bytes[self.scanned..];
            let end = match tag.get(1) {
                None => None,
                Some(b'/') if self.depth > 0 => memchr(b'>', tag),
                Some(b'?') if self.depth > 0 => memmem::find(tag, b"?>").map(|end| end + 1),
                Some(b'/' | b'?' | b'!') => return Err(self.between(self.scanned)),
                Some(_) => tag_end(tag),
            };
            let Some(end) = end else { return Ok(false) };
            match tag[1] {
                b'/' => self.depth -= 1,
                b'?' => {}
                _ if tag[end - 1] == b'/' => return Err(self.between(self.scanned)),
                _ => self.depth += 1,
            }
            self.scanned += end + 1;
            if self.depth == 0 {
                return Ok(true);
            }
        }
    }
}

/// Returns whether a file with these first bytes is meant as a transcript, of whatever version, also behind a byte order mark and
/// an XML declaration.
pub fn is_meant(start: &[u8]) -> bool {
    let start = start.strip_prefix(MARK).unwrap_or(start);
    let start = match start.starts_with(DECLARED) {
        true => memmem::find(start, b"?>").map_or(start, |end| start[end + 2..].trim_ascii_start()),
        false => start,
    };
    start.starts_with(START.as_bytes())
}

/// Returns whether bytes are the begin of a text, or begin with it.
fn begins(text: &str, bytes: &[u8]) -> bool {
    let shared = bytes.len().min(text.len());
    bytes[..shared] == text.as_bytes()[..shared]
}

/// The place of the `>` that ends a start tag.
fn tag_end(tag: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        at += memchr::memchr2(b'>', b'"', &tag[at..])?;
        if tag[at] == b'>' {
            return Some(at);
        }
        at += 1 + memchr(b'"', &tag[at + 1..])? + 1;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn entry() -> Entry {
        let mut entry = Entry::new("message");
        entry.put("at", "2026-11-30T12:00:00Z");
        entry.put("sender", "a\"<&>\t\n\r'b");
        entry.put("label", "with \u{1}");
        entry.put_long("value", "two\nlines <b> & \u{fffe}");
        entry.put_long("empty", "");
        entry.put_document("body", "<say xmlns=\"urn:e\" a=\">\">&lt;<?x y?></say>");
        entry
    }

    #[test]
    fn the_namespace_is_the_one_of_the_lines() {
        assert!(OPENING.contains(ns::TRANSCRIPT) && DECLARATION.contains(ns::TRANSCRIPT));
        assert!(OPENING.starts_with(START));
    }

    #[test]
    fn an_entry_is_read_as_it_was_written() {
        let text = entry().write();
        let read = Entry::read(&text).unwrap();
        assert_eq!(read.get("sender"), Some("a\"<&>\t\n\r'b"));
        assert_eq!(read.get("label"), Some("with \u{1}"));
        assert_eq!(read.get("value"), Some("two\nlines <b> & \u{fffe}"));
        assert_eq!(read.get("empty"), Some(""));
        assert!(read.document("body").unwrap().ends_with("<?x y?></say>"));
        assert_eq!((read.document("value"), read.get("none")), (None, None));
        assert_eq!(read.write(), text);
        // The document is well-formed.
        strict::canonicalize(&text.into(), &XmlLimits::default()).unwrap();
    }

    #[test]
    fn a_text_that_is_no_canonical_document_is_a_text() {
        for text in ["<?xml version='1.0'?><a></a>", "<a/>", "<a>", "<a></a><b></b>", "plain", "<!--c--><a></a>"] {
            let mut entry = Entry::new("note");
            entry.put_document("value", text);
            let read = Entry::read(&entry.write()).unwrap();
            assert_eq!((read.get("value"), read.document("value")), (Some(text), None));
        }
    }

    #[test]
    fn other_spellings_are_refused() {
        let text = entry().write();
        for (from, to) in [
            ("<t:message", "<x:message"),
            ("<t:message", "<t:Message"),
            (" at=", "  at="),
            (" at=", " at ="),
            (" at=\"", " at=\"\u{0}"),
            (" at=", " xmlns="),
            ("&amp;", "&amp;\u{1}"),
            ("&quot;", "&#34;"),
            ("&quot;", "&apos;"),
            ("&amp;", "&"),
            ("<t:value encoding", "<t:sender encoding"),
            (" encoding=\"base64\">d", " encoding=\"base64\">D!"),
            ("<t:empty></t:empty>", "<t:empty/>"),
            ("<t:empty></t:empty>", "<!--c-->"),
            ("<t:empty></t:empty>", " <t:empty></t:empty>"),
            ("<say ", "<say  "),
            ("</t:message>", "</t:message> "),
            ("</t:message>", ""),
            ("<t:body>", "<t:body>x"),
        ] {
            assert!(text.contains(from), "{from}");
            let other = text.replacen(from, to, 1);
            assert!(matches!(Entry::read(&other), Err(FormError::Entry { .. })), "{other}");
        }
    }

    #[test]
    fn a_file_is_cut_into_its_elements() {
        let (first, head) = (entry().write(), Head::write(1, &"0".repeat(64)));
        // A document with the tags of the form is content.
        let mut inner = Entry::new("note");
        inner.put_document("value", format!("<a>\n{first}\n</a>"));
        let inner = inner.write();
        let file = format!("{OPENING}{first}\n{inner}\n{head}\n{CLOSING}");
        let cut = |file: &str, size: usize| {
            let (mut cutter, mut pieces) = (Cutter::default(), Vec::new());
            for chunk in file.as_bytes().chunks(size) {
                cutter.push(chunk);
                while let Some(piece) = cutter.next_piece()? {
                    pieces.push(piece);
                }
            }
            Ok((pieces, cutter.held()))
        };
        let whole = [first.clone(), inner, head.clone()].map(Piece::Element).into_iter().chain([Piece::End]);
        let whole: Vec<_> = whole.collect();
        for size in [1, 7, file.len()] {
            assert_eq!(cut(&file, size), Ok((whole.clone(), 0)), "{size}");
        }
        for (from, to, error) in [
            ("v1\">\n", "v2\">\n", FormError::Version),
            ("v1\">\n", "v1\">\r\n", FormError::LineEnds),
            ("<t:transcript", "<transcript", FormError::NoTranscript),
            (
                "\n</t:transcript>",
                "</t:transcript>",
                FormError::Between { at: (file.len() - CLOSING.len() - 1) as u64 },
            ),
            ("</t:transcript>\n", "</t:transcript>\nx", FormError::Between { at: file.len() as u64 }),
            ("\n<t:message", "\n\n<t:message", FormError::Between { at: OPENING.len() as u64 }),
            ("\n<t:message", "\n<!--c--><t:message", FormError::Between { at: OPENING.len() as u64 }),
        ] {
            assert_eq!(cut(&file.replacen(from, to, 1), 3), Err(error), "{from}");
        }
        for front in ["\u{feff}", "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n", "\u{feff}<?xml version='1.0'?> "] {
            let other = format!("{front}{file}");
            for size in [1, 7, other.len()] {
                assert_eq!(cut(&other, size), Err(FormError::Front), "{front}");
            }
            assert!(is_meant(other.as_bytes()), "{front}");
        }
        assert!(is_meant(file.as_bytes()) && !is_meant(b"<?xml version='1.0'?><a/>") && !is_meant(b"<?xml"));
        let (pieces, held) = cut(&file[..file.len() - CLOSING.len() - 5], 9).unwrap();
        assert_eq!((pieces.len(), held), (2, head.len() - 4));
    }

    #[test]
    fn a_head_is_read_as_it_was_written() {
        let hash = "0123456789abcdef".repeat(4);
        let text = Head::write(17, &hash);
        assert_eq!(Head::read(&text), Ok(Head { entries: 17, hash: hash.clone(), is_signed: false }));
        for (from, to) in [("17", "017"), ("17", "-1"), ("0123", "012G"), ("0123", "01234"), ("<meta>", "<meta >")] {
            assert_eq!(Head::read(&text.replacen(from, to, 1)), Err(FormError::Head), "{to}");
        }
        for meta in ["<from>a</from>", " ", "<x xmlns=\"\"></x>", "<ds:Signature></ds:Signature>"] {
            let other = text.replacen("<meta>", &format!("<meta>{meta}"), 1);
            assert_eq!(Head::read(&other), Err(FormError::Meta), "{meta}");
        }
    }

    proptest! {
        #[test]
        fn any_values_are_read_as_they_were_written(short in any::<String>(), long in any::<String>(), last in any::<String>()) {
            let mut entry = Entry::new("note");
            entry.put("a", short.clone());
            entry.put_long("b", long.clone());
            entry.put_document("c", last.clone());
            let text = entry.write();
            let read = Entry::read(&text).unwrap();
            prop_assert_eq!(read.get("a"), Some(&*short));
            prop_assert_eq!(read.get("b"), Some(&*long));
            prop_assert_eq!(read.get("c"), Some(&*last));
            prop_assert_eq!(read.write(), text);
        }
    }
}
