use std::borrow::Cow;

use crate::ladder::scan::{self, Attributes, declared_prefix, split_prefix};

/// A walk over canonical bytes, tag by tag.
///
/// Relies on what canonical form guarantees: no comments, CDATA sections or empty-element tags,
/// attributes as ` name="value"`, no `<` that isn't markup.
#[derive(Debug)]
pub(super) struct Tags<'a> {
    pub(super) text: &'a str,
    pub(super) pos: usize,
    /// How many start tags were passed.
    pub(super) elements: usize,
}

/// A start tag.
#[derive(Debug, Clone, Copy)]
pub(super) struct Start<'a> {
    /// Where its `<` stands.
    pub(super) at: usize,
    /// Its place in document order, from 0.
    pub(super) index: usize,
    pub(super) prefix: &'a str,
    pub(super) local: &'a str,
    /// What stands between the name and `>`.
    pub(super) attributes: Attributes<'a>,
}

/// What stands between the last tag and this one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Gap {
    /// White space, instructions or nothing.
    Blank,
    Text,
}

impl<'a> Tags<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, pos: 0, elements: 0 }
    }

    /// The next start tag, or `None` if an end tag comes first; what stands before either.
    pub(super) fn next(&mut self) -> (Gap, Option<Start<'a>>) {
        let mut gap = Gap::Blank;
        loop {
            let at = self.find(self.pos, "<");
            if !is_blank(&self.text[self.pos..at]) {
                gap = Gap::Text;
            }
            match self.text.as_bytes().get(at + 1) {
                Some(b'?') => self.pos = self.find(at, "?>") + 2,
                Some(b'/') => {
                    self.pos = self.find(at, ">") + 1;
                    return (gap, None);
                }
                _ => return (gap, Some(self.start(at))),
            }
        }
    }

    /// The text of the element whose start tag was read last, without white space around it;
    /// `None` if it holds an element.
    pub(super) fn text(&mut self) -> Option<Cow<'a, str>> {
        let mut text = Cow::Borrowed("");
        loop {
            let at = self.find(self.pos, "<");
            let piece = &self.text[self.pos..at];
            if text.is_empty() {
                text = Cow::Borrowed(piece);
            } else if !piece.is_empty() {
                text.to_mut().push_str(piece);
            }
            match self.text.as_bytes().get(at + 1) {
                Some(b'?') => self.pos = self.find(at, "?>") + 2,
                Some(b'/') => {
                    self.pos = self.find(at, ">") + 1;
                    return Some(unescape(text));
                }
                _ => return None,
            }
        }
    }

    /// Passes the rest of the element whose start tag was read last.
    pub(super) fn skip(&mut self) {
        let mut depth = 1;
        while depth > 0 {
            let from = self.pos;
            let bytes = self.text.as_bytes();
            // One search for all tags: nothing else holds `<` but instructions, which start it anew.
            for at in memchr::memchr_iter(b'<', &bytes[from..]).map(|ahead| from + ahead) {
                match bytes.get(at + 1) {
                    Some(b'?') => {
                        self.pos = self.find(at, "?>") + 2;
                        break;
                    }
                    Some(b'/') => {
                        self.pos = at + 2;
                        depth -= 1;
                        if depth == 0 {
                            break;
                        }
                    }
                    _ => {
                        self.pos = at + 1;
                        self.elements += 1;
                        depth += 1;
                    }
                }
            }
            if self.pos == from {
                return;
            }
        }
        self.pos = self.find(self.pos, ">") + 1;
    }

    fn start(&mut self, at: usize) -> Start<'a> {
        let (start, end) = name_and_end(self.text, at);
        self.pos = end + 1;
        self.elements += 1;
        let (prefix, local) = split_prefix(start);
        let attributes = Attributes::new(&self.text[at + 1 + start.len()..end]);
        Start { at, index: self.elements - 1, prefix, local, attributes }
    }

    fn find(&self, from: usize, what: &str) -> usize {
        let rest = &self.text.as_bytes()[from..];
        let ahead = match what.as_bytes() {
            &[byte] => memchr::memchr(byte, rest),
            more => memchr::memmem::find(rest, more),
        };
        ahead.map_or(self.text.len(), |ahead| from + ahead)
    }
}

impl<'a> Start<'a> {
    /// The prefixes that this tag declares, and their namespace names as they are written.
    pub(super) fn declarations(&self) -> impl Iterator<Item = (&'a str, &'a str)> + use<'a> {
        self.attributes.filter_map(|(name, value)| Some((declared_prefix(name)?, value)))
    }
}

/// The name in the start tag at `at`, and where the tag's `>` stands.
pub(super) fn name_and_end(text: &str, at: usize) -> (&str, usize) {
    let bytes = text.as_bytes();
    let name = memchr::memchr2(b' ', b'>', &bytes[at..]).map_or(bytes.len(), |ahead| at + ahead);
    let mut end = name;
    // `>` can stand in a value, and a value ends at the quote that opened it
    while bytes.get(end) == Some(&b' ') {
        let open = memchr::memchr(b'"', &bytes[end..]).map_or(bytes.len(), |ahead| end + ahead + 1);
        end = memchr::memchr(b'"', &bytes[open..]).map_or(bytes.len(), |ahead| open + ahead + 1);
    }
    (&text[at + 1..name], end)
}

/// Whether every element of a canonical text has a prefix.
pub(super) fn all_prefixed(text: &str) -> bool {
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(ahead) = memchr::memchr(b'<', &bytes[at..]) {
        let start = at + ahead + 1;
        match bytes.get(start) {
            Some(b'/') => at = start,
            Some(b'?') => {
                at = memchr::memmem::find(&bytes[start..], b"?>").map_or(bytes.len(), |ahead| start + ahead);
            }
            _ => match memchr::memchr3(b':', b' ', b'>', &bytes[start..]) {
                Some(ahead) if bytes[start + ahead] == b':' => at = start + ahead,
                _ => return false,
            },
        }
    }
    true
}

fn is_blank(text: &str) -> bool {
    text.is_empty() || text.split("&#xD;").all(|part| part.bytes().all(|byte| matches!(byte, b' ' | b'\t' | b'\n')))
}

/// Canonical text as the characters it stands for, without white space around it.
fn unescape(text: Cow<'_, str>) -> Cow<'_, str> {
    let text = match text {
        Cow::Borrowed(text) => scan::unescape(text),
        Cow::Owned(text) => Cow::Owned(scan::unescape(&text).into_owned()),
    };
    let is_space = |c| matches!(c, ' ' | '\t' | '\n' | '\r');
    match text {
        Cow::Borrowed(text) => Cow::Borrowed(text.trim_matches(is_space)),
        Cow::Owned(text) => Cow::Owned(text.trim_matches(is_space).to_owned()),
    }
}
