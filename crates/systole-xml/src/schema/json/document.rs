//! JSON documents (RFC 8259) as a flat list of values, read in one pass without recursion.
//!
//! Invariants: a value stands before all that is in it, and knows where the next one begins. An object has each key
//! once: of two members with one name readers take the first, the last or both (RFC 8259, section 4), and so each
//! another document.

use std::borrow::Cow;
use std::fmt::Write;

use foldhash::{HashSet, HashSetExt};

use super::error::{FromJsonError, JsonProblem};
use crate::vocab::XmlLimits;

/// The limits of a document.
#[derive(Debug, Clone, Copy)]
pub(in crate::schema) struct Limits {
    pub(in crate::schema) bytes: usize,
    pub(in crate::schema) depth: usize,
}

impl Limits {
    /// The limits of a payload as JSON: an element is at most an array of its namesakes, an object and an array of its
    /// content.
    pub(super) fn of(limits: &XmlLimits) -> Self {
        Self { bytes: limits.message_bytes, depth: limits.depth.saturating_mul(3) }
    }
}

/// A parsed document.
#[derive(Debug)]
pub(in crate::schema) struct Document<'t> {
    pub(in crate::schema) text: &'t str,
    nodes: Vec<Node>,
}

/// The number of a value in its document; the first is the whole.
pub(in crate::schema) type NodeId = u32;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::schema) enum Kind {
    Null,
    True,
    False,
    Number,
    /// A string without escapes.
    Plain,
    Escaped,
    Array,
    /// The keys and values follow in turn.
    Object,
}

#[derive(Debug, Clone, Copy)]
struct Node {
    kind: Kind,
    /// The place in the text; that of a string is without its quotes.
    at: u32,
    end: u32,
    /// The first value behind all that is in this one.
    next: NodeId,
}

impl<'t> Document<'t> {
    /// Reads a document. Takes linear time.
    pub(in crate::schema) fn read(text: &'t str, limits: Limits) -> Result<Self, FromJsonError> {
        if text.len() > limits.bytes.min(u32::MAX as usize - 1) {
            return Err(FromJsonError::whole(JsonProblem::TooLarge { most: limits.bytes }));
        }
        let nodes = Vec::with_capacity(text.len() / 8 + 4);
        let mut reader = Reader { document: Self { text, nodes }, open: Vec::new(), at: 0, depth: limits.depth };
        match reader.run() {
            Ok(()) => Ok(reader.document),
            Err(problem) => Err(reader.told(problem)),
        }
    }

    #[inline]
    pub(in crate::schema) fn kind(&self, node: NodeId) -> Kind {
        self.nodes[node as usize].kind
    }

    /// The first value behind a value and all that is in it.
    #[inline]
    pub(in crate::schema) fn next(&self, node: NodeId) -> NodeId {
        self.nodes[node as usize].next
    }

    /// The text of a scalar: a number as written, a string without its quotes and escapes.
    #[inline]
    pub(in crate::schema) fn scalar(&self, node: NodeId) -> Cow<'t, str> {
        let Node { kind, at, end, .. } = self.nodes[node as usize];
        let written = &self.text[at as usize..end as usize];
        if kind == Kind::Escaped { Cow::Owned(unescaped(written)) } else { Cow::Borrowed(written) }
    }

    /// An object or an array as it is written.
    fn written(&self, node: NodeId) -> &'t str {
        let Node { at, end, .. } = self.nodes[node as usize];
        &self.text[at as usize..end as usize]
    }

    /// The objects of a document that is an array, each as it is written; `None` if it is no array. Any other value among them
    /// is `null`.
    pub(in crate::schema) fn objects(&self) -> Option<impl Iterator<Item = &'t str>> {
        let of = |item| if self.kind(item) == Kind::Object { self.written(item) } else { "null" };
        (self.kind(0) == Kind::Array).then(|| self.items(0).map(of))
    }

    /// The values of an array.
    pub(in crate::schema) fn items(&self, array: NodeId) -> impl Iterator<Item = NodeId> {
        let mut at = array + 1;
        std::iter::from_fn(move || {
            let item = at;
            (item < self.next(array)).then(|| {
                at = self.next(item);
                item
            })
        })
    }

    /// The keys and values of an object.
    #[inline]
    pub(in crate::schema) fn members(&self, object: NodeId) -> impl Iterator<Item = (Cow<'t, str>, NodeId)> {
        let (mut at, end) = (object + 1, self.next(object));
        std::iter::from_fn(move || {
            if at >= end {
                return None;
            }
            let (key, value) = (at, at + 1);
            at = self.next(value);
            Some((self.scalar(key), value))
        })
    }

    /// The line and the column of a value, both from 1. Scans the document: meant for errors.
    pub(in crate::schema) fn place(&self, node: NodeId) -> (usize, usize) {
        let Node { kind, at, .. } = self.nodes[node as usize];
        let quote = usize::from(matches!(kind, Kind::Plain | Kind::Escaped));
        let before = &self.text[..(at as usize).saturating_sub(quote)];
        let line = memchr::memchr_iter(b'\n', before.as_bytes()).count() + 1;
        let column = before[before.rfind('\n').map_or(0, |at| at + 1)..].chars().count() + 1;
        (line, column)
    }

    /// A value as it is written.
    pub(in crate::schema) fn value(&self, node: NodeId) -> &'t str {
        let Node { kind, at, end, .. } = self.nodes[node as usize];
        let quote = u32::from(matches!(kind, Kind::Plain | Kind::Escaped));
        &self.text[(at - quote) as usize..(end + quote) as usize]
    }

    /// The object or the array that a value stands in, and its key if it has one. Scans the document.
    pub(in crate::schema) fn parent(&self, node: NodeId) -> Option<(NodeId, Option<Cow<'t, str>>)> {
        let holders = (0..node).rev().filter(|&at| matches!(self.kind(at), Kind::Object | Kind::Array));
        let parent = holders.into_iter().find(|&at| node < self.next(at))?;
        let key = || self.members(parent).find(|(_, value)| *value == node).map(|(key, _)| key);
        Some((parent, if self.kind(parent) == Kind::Object { key() } else { None }))
    }

    /// The place of a value as a JSON pointer (RFC 6901). Scans the document: meant for errors.
    pub(in crate::schema) fn pointer(&self, node: NodeId) -> String {
        let mut pointer = String::new();
        let mut at = 0;
        while at != node {
            let inside = |inner: NodeId| inner <= node && node < self.next(inner);
            at = match self.kind(at) {
                Kind::Object => match self.members(at).find(|(_, value)| inside(*value)) {
                    Some((key, value)) => {
                        push_step(&mut pointer, &key);
                        value
                    }
                    None => break,
                },
                Kind::Array => match self.items(at).enumerate().find(|(_, value)| inside(*value)) {
                    Some((index, value)) => {
                        let _ = write!(pointer, "/{index}");
                        value
                    }
                    None => break,
                },
                _ => break,
            };
        }
        pointer
    }
}

/// Appends a step to a JSON pointer.
pub(in crate::schema) fn push_step(pointer: &mut String, key: &str) {
    pointer.push('/');
    pointer.push_str(&key.replace('~', "~0").replace('/', "~1"));
}

/// The value of a string that the reader has checked.
fn unescaped(written: &str) -> String {
    let mut out = String::with_capacity(written.len());
    let mut rest = written;
    while let Some(at) = memchr::memchr(b'\\', rest.as_bytes()) {
        out.push_str(&rest[..at]);
        let code = |from: usize| rest.get(from..from + 4).and_then(|digits| u32::from_str_radix(digits, 16).ok());
        let mut behind = at + 2;
        out.push(match rest.as_bytes()[at + 1] {
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => {
                behind = at + 6;
                let first = code(at + 2).unwrap_or_default();
                match char::from_u32(first) {
                    Some(character) => character,
                    None => {
                        behind = at + 12;
                        let second = code(at + 8).unwrap_or_default();
                        let both = 0x10000
                            + ((first.wrapping_sub(0xD800) & 0x3FF) << 10 | second.wrapping_sub(0xDC00) & 0x3FF);
                        char::from_u32(both).unwrap_or(char::REPLACEMENT_CHARACTER)
                    }
                }
            }
            other => char::from(other),
        });
        rest = &rest[behind..];
    }
    out.push_str(rest);
    out
}

struct Reader<'t> {
    document: Document<'t>,
    /// The open arrays and objects, each with the index of its item or the number of its key that is being read; 0 for no
    /// key yet.
    open: Vec<(NodeId, u32)>,
    at: usize,
    depth: usize,
}

impl Reader<'_> {
    /// Adds the place to a problem.
    fn told(&self, problem: JsonProblem) -> FromJsonError {
        let read = &self.document.text.as_bytes()[..self.at.min(self.document.text.len())];
        let line = memchr::memchr_iter(b'\n', read).count() + 1;
        let column =
            String::from_utf8_lossy(&read[memchr::memrchr(b'\n', read).map_or(0, |at| at + 1)..]).chars().count() + 1;
        let mut pointer = self.pointer();
        if let JsonProblem::Repeated { key } = &problem {
            push_step(&mut pointer, key);
        }
        FromJsonError { pointer, at: Some((line, column)), problem }
    }

    /// The pointer of the value that is being read.
    fn pointer(&self) -> String {
        let mut pointer = String::new();
        for &(open, step) in &self.open {
            match (self.document.kind(open), step) {
                (Kind::Object, 0) => {}
                (Kind::Object, key) => push_step(&mut pointer, &self.document.scalar(key)),
                (_, index) => {
                    let _ = write!(pointer, "/{index}");
                }
            }
        }
        pointer
    }

    fn run(&mut self) -> Result<(), JsonProblem> {
        loop {
            self.value()?;
            // The end of each value is the place of a comma, or of the end of what it is in.
            loop {
                let Some(&(open, _)) = self.open.last() else {
                    self.space();
                    return if self.at == self.document.text.len() {
                        Ok(())
                    } else {
                        Err(self.expected("the end of the document"))
                    };
                };
                let is_object = self.document.kind(open) == Kind::Object;
                match (self.peek(), is_object) {
                    (Some(b','), _) => {
                        self.at += 1;
                        match (is_object, self.open.last_mut()) {
                            (false, Some((_, index))) => *index += 1,
                            _ => self.key()?,
                        }
                        break;
                    }
                    (Some(b'}'), true) | (Some(b']'), false) => self.close()?,
                    (_, true) => return Err(self.expected("',' or '}'")),
                    (_, false) => return Err(self.expected("',' or ']'")),
                }
            }
        }
    }

    fn close(&mut self) -> Result<(), JsonProblem> {
        self.at += 1;
        let Some((open, _)) = self.open.pop() else { return Ok(()) };
        let next = self.document.nodes.len() as NodeId;
        let node = &mut self.document.nodes[open as usize];
        (node.next, node.end) = (next, self.at as u32);
        if node.kind == Kind::Object { self.check_keys(open) } else { Ok(()) }
    }

    /// Refuses a key that an object has twice.
    fn check_keys(&self, object: NodeId) -> Result<(), JsonProblem> {
        const FEW: usize = 8;
        let mut few: [&str; FEW] = [""; FEW];
        for (known, (key, _)) in self.document.members(object).enumerate() {
            let Cow::Borrowed(key) = key else { return self.check_many_keys(object) };
            if known == FEW {
                return self.check_many_keys(object);
            }
            if few[..known].contains(&key) {
                return Err(JsonProblem::Repeated { key: key.to_owned() });
            }
            few[known] = key;
        }
        Ok(())
    }

    fn check_many_keys(&self, object: NodeId) -> Result<(), JsonProblem> {
        let mut keys = HashSet::new();
        for (key, _) in self.document.members(object) {
            if let Some(key) = keys.replace(key) {
                return Err(JsonProblem::Repeated { key: key.into_owned() });
            }
        }
        Ok(())
    }

    /// Reads a value up to its end, or up to the first one that is in it.
    fn value(&mut self) -> Result<(), JsonProblem> {
        loop {
            let Some(byte) = self.peek() else { return Err(self.expected("a JSON value")) };
            let at = self.at;
            match byte {
                b'{' | b'[' => {
                    let kind = if byte == b'{' { Kind::Object } else { Kind::Array };
                    if self.open.len() >= self.depth {
                        return Err(JsonProblem::TooDeep { most: self.depth });
                    }
                    self.open.push((self.document.nodes.len() as NodeId, 0));
                    self.push(kind, at, at);
                    self.at += 1;
                    match (kind, self.peek()) {
                        (Kind::Object, Some(b'}')) | (Kind::Array, Some(b']')) => return self.close(),
                        (Kind::Object, _) => self.key()?,
                        _ => {}
                    }
                    continue;
                }
                b'"' => self.string()?,
                b'-' | b'0'..=b'9' => {
                    let length = number_length(&self.document.text.as_bytes()[at..]);
                    let Some(length) = length else { return Err(self.expected("a number, such as -12, 0.5 or 1e3")) };
                    self.at += length;
                    self.push(Kind::Number, at, self.at);
                }
                _ => {
                    let rest = &self.document.text[at..];
                    let words = [("null", Kind::Null), ("true", Kind::True), ("false", Kind::False)];
                    let Some((word, kind)) = words.into_iter().find(|(word, _)| rest.starts_with(word)) else {
                        return Err(self.expected("a JSON value"));
                    };
                    self.at += word.len();
                    self.push(kind, at, self.at);
                }
            }
            return Ok(());
        }
    }

    fn key(&mut self) -> Result<(), JsonProblem> {
        if self.peek() != Some(b'"') {
            return Err(self.expected("a key in double quotes"));
        }
        let key = self.document.nodes.len() as NodeId;
        self.string()?;
        if let Some((_, step)) = self.open.last_mut() {
            *step = key;
        }
        if self.peek() != Some(b':') {
            return Err(self.expected("':'"));
        }
        self.at += 1;
        Ok(())
    }

    #[inline]
    fn string(&mut self) -> Result<(), JsonProblem> {
        let bytes = self.document.text.as_bytes();
        let start = self.at + 1;
        let mut at = start;
        let mut kind = Kind::Plain;
        loop {
            match bytes.get(at) {
                None => {
                    self.at = at;
                    return Err(self.expected("the end of a string, '\"'"));
                }
                Some(b'"') => break,
                Some(b'\\') => {
                    kind = Kind::Escaped;
                    let Some(length) = escape_length(&self.document.text[at..]) else {
                        self.at = at;
                        return Err(self
                            .expected("an escape of JSON, such as \\\\, \\\" or \\u00e9 with both halves of a pair"));
                    };
                    at += length;
                }
                Some(0..0x20) => {
                    self.at = at;
                    return Err(self.expected("an escape in place of the control character, such as \\n or \\t"));
                }
                Some(_) => at += 1,
            }
        }
        self.push(kind, start, at);
        self.at = at + 1;
        Ok(())
    }

    #[inline]
    fn push(&mut self, kind: Kind, at: usize, end: usize) {
        let next = self.document.nodes.len() as NodeId + 1;
        self.document.nodes.push(Node { kind, at: at as u32, end: end as u32, next });
    }

    #[inline]
    fn peek(&mut self) -> Option<u8> {
        self.space();
        self.document.text.as_bytes().get(self.at).copied()
    }

    #[inline]
    fn space(&mut self) {
        let bytes = self.document.text.as_bytes();
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = bytes.get(self.at) {
            self.at += 1;
        }
    }

    fn expected(&self, expected: &'static str) -> JsonProblem {
        let found = self.document.text.get(self.at..).and_then(|rest| rest.chars().next());
        JsonProblem::Syntax { found, expected }
    }
}

/// The length of the number that a text begins with (RFC 8259, section 6).
fn number_length(bytes: &[u8]) -> Option<usize> {
    let digits = |from: usize| bytes[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let start = usize::from(bytes.first() == Some(&b'-'));
    let mut at = start + digits(start);
    if at == start || bytes[start] == b'0' && at > start + 1 {
        return None;
    }
    if bytes.get(at) == Some(&b'.') {
        let fraction = digits(at + 1);
        if fraction == 0 {
            return None;
        }
        at += 1 + fraction;
    }
    if let Some(b'e' | b'E') = bytes.get(at) {
        let sign = usize::from(matches!(bytes.get(at + 1), Some(b'+' | b'-')));
        let exponent = digits((at + 1 + sign).min(bytes.len()));
        if exponent == 0 {
            return None;
        }
        at += 1 + sign + exponent;
    }
    Some(at)
}

/// Returns whether a text is a JSON number.
pub(super) fn is_number(text: &str) -> bool {
    number_length(text.as_bytes()) == Some(text.len())
}

/// The length of the escape that a text begins with; surrogates come in pairs (RFC 8259, section 7).
fn escape_length(text: &str) -> Option<usize> {
    let unit = |from: usize| {
        let digits = text.get(from..from + 4).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
        u32::from_str_radix(digits, 16).ok()
    };
    match text.as_bytes().get(1)? {
        b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => Some(2),
        b'u' => match unit(2)? {
            0xD800..0xDC00 if text.get(6..8) == Some("\\u") => (0xDC00..0xE000).contains(&unit(8)?).then_some(12),
            0xD800..0xE000 => None,
            _ => Some(6),
        },
        _ => None,
    }
}
