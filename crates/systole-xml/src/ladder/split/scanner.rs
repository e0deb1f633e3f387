//! The scanner for tags in a stream.

use super::stream::Stream;

/// Finds tags in bytes that come in chunks. It keeps its state between them, and never goes back.
#[derive(Debug)]
pub(super) struct Scanner {
    /// Maximum length of a tag; longer ones are text.
    longest_tag: u64,
    state: State,
    /// Start of the current markup.
    markup: u64,
    /// The next byte to look at.
    cursor: u64,
}

/// A tag from its `<` to behind its `>`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Tag {
    pub(super) start: u64,
    pub(super) end: u64,
    /// True for an end tag.
    pub(super) is_end: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Text,
    /// The state behind a `<`.
    Markup,
    /// The state in a tag; in a quoted value if there is a quote.
    Tag(Option<u8>),
    /// The state in markup that ends with these bytes.
    Until(&'static [u8]),
    /// The state in a document type declaration; in its internal subset if true.
    Doctype(bool),
}

/// Markup that starts with `<!`, and the state that it leads to.
const DECLARATIONS: [(&[u8], State); 3] =
    [(b"<!--", State::Until(b"-->")), (b"<![CDATA[", State::Until(b"]]>")), (b"<!DOCTYPE", State::Doctype(false))];

impl Scanner {
    pub(super) fn new(longest_tag: u64) -> Self {
        Self { longest_tag, state: State::Text, markup: 0, cursor: 0 }
    }

    /// Continues with text at `cursor`.
    pub(super) fn restart(&mut self, cursor: u64) {
        self.state = State::Text;
        self.cursor = cursor;
    }

    /// The next tag that is complete before `end`.
    pub(super) fn next(&mut self, stream: &Stream, end: u64) -> Option<Tag> {
        while self.cursor < end {
            let bound = self.tag_start().map_or(end, |tag| end.min(tag.saturating_add(self.longest_tag)));
            let before = (self.state, self.cursor);
            let rest = stream.slice(self.cursor.min(bound), bound);
            match self.state {
                State::Text => self.text(rest),
                _ if rest.is_empty() => {}
                State::Markup => self.classify(stream.slice(self.markup, bound)),
                State::Tag(None) => {
                    if let Some(tag) = self.tag(rest, stream.slice(self.markup, bound)) {
                        return Some(tag);
                    }
                }
                State::Tag(Some(quote)) => self.value(rest, quote),
                State::Until(terminator) => self.until(rest, terminator),
                State::Doctype(subset) => self.doctype(rest, subset),
            }
            if (self.state, self.cursor) == before {
                if bound == end {
                    return None;
                }
                self.give_up();
            }
        }
        None
    }

    /// Returns whether nothing has been read since `start`.
    pub(super) fn is_in_text_at(&self, start: u64) -> bool {
        self.state == State::Text && self.cursor == start
    }

    /// Start of the tag that is being read.
    fn tag_start(&self) -> Option<u64> {
        matches!(self.state, State::Markup | State::Tag(_)).then_some(self.markup)
    }

    /// Start of the markup that is being read.
    pub(super) fn markup_start(&self) -> Option<u64> {
        (self.state != State::Text).then_some(self.markup)
    }

    /// Offset of the first byte that the scanner may still read again.
    pub(super) fn needs(&self) -> u64 {
        self.tag_start().unwrap_or(self.cursor)
    }

    /// Takes the markup that is being read for text.
    pub(super) fn give_up(&mut self) {
        self.state = State::Text;
    }

    fn text(&mut self, rest: &[u8]) {
        match memchr::memchr(b'<', rest) {
            Some(ahead) => self.start_markup(self.cursor + ahead as u64),
            None => self.cursor += rest.len() as u64,
        }
    }

    fn start_markup(&mut self, at: u64) {
        self.markup = at;
        self.cursor = at + 1;
        self.state = State::Markup;
    }

    /// Finds out the kind of markup from `markup`, the bytes that are there from its `<` on.
    fn classify(&mut self, markup: &[u8]) {
        self.state = match markup[1] {
            b'!' => {
                let known = DECLARATIONS.iter().find(|(opener, _)| markup.starts_with(opener));
                match known {
                    Some((opener, state)) => {
                        self.cursor = self.markup + opener.len() as u64;
                        *state
                    }
                    None if DECLARATIONS.iter().any(|(opener, _)| opener.starts_with(markup)) => return,
                    None => State::Text,
                }
            }
            b'?' => {
                self.cursor += 1;
                State::Until(b"?>")
            }
            b'/' => State::Tag(None),
            byte if starts_name(byte) => State::Tag(None),
            _ => State::Text,
        };
    }

    /// Reads a tag outside of values. A `<` shows that it was none.
    fn tag(&mut self, rest: &[u8], tag: &[u8]) -> Option<Tag> {
        let Some(ahead) = rest.iter().position(|byte| matches!(byte, b'>' | b'<' | b'"' | b'\'')) else {
            self.cursor += rest.len() as u64;
            return None;
        };
        let at = self.cursor + ahead as u64;
        match rest[ahead] {
            b'>' => {
                let found = Tag { start: self.markup, end: at + 1, is_end: tag[1] == b'/' };
                self.restart(at + 1);
                return Some(found);
            }
            b'<' => self.start_markup(at),
            quote => {
                let before = &tag[..tag.len() - rest.len() + ahead];
                self.cursor = at + 1;
                // Without an equals sign before it, a quote is an apostrophe in prose.
                if before.trim_ascii_end().ends_with(b"=") {
                    self.state = State::Tag(Some(quote));
                }
            }
        }
        None
    }

    /// Reads a quoted value. It can hold any `<`, although that isn't well-formed, but not the start of a
    /// `message`: then its closing quote was forgotten.
    fn value(&mut self, rest: &[u8], quote: u8) {
        let Some(ahead) = memchr::memchr2(quote, b'<', rest) else {
            self.cursor += rest.len() as u64;
            return;
        };
        let at = self.cursor + ahead as u64;
        if rest[ahead] == quote {
            self.cursor = at + 1;
            self.state = State::Tag(None);
            return;
        }
        match starts_message(&rest[ahead + 1..]) {
            Some(true) => self.start_markup(at),
            Some(false) => self.cursor = at + 1,
            None => self.cursor = at,
        }
    }

    fn until(&mut self, rest: &[u8], terminator: &[u8]) {
        match memchr::memmem::find(rest, terminator) {
            Some(ahead) => self.restart(self.cursor + (ahead + terminator.len()) as u64),
            None => self.cursor += rest.len().saturating_sub(terminator.len() - 1) as u64,
        }
    }

    fn doctype(&mut self, rest: &[u8], subset: bool) {
        let found = if subset { memchr::memchr(b']', rest) } else { memchr::memchr2(b'[', b'>', rest) };
        let Some(ahead) = found else {
            self.cursor += rest.len() as u64;
            return;
        };
        self.cursor += ahead as u64 + 1;
        self.state = match rest[ahead] {
            b'[' => State::Doctype(true),
            b']' => State::Doctype(false),
            _ => State::Text,
        };
    }
}

/// Returns whether a name can start with this byte; any byte beyond ASCII counts as a letter.
pub(super) fn starts_name(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || matches!(byte, b'_' | b':' | 0x80..)
}

/// Returns whether `rest`, which stands behind a `<`, is `message` or `prefix:message` and then white
/// space; `None` if it takes more bytes to decide.
fn starts_message(rest: &[u8]) -> Option<bool> {
    const LONGEST: usize = 64;
    let is_name = |byte: &u8| starts_name(*byte) || byte.is_ascii_digit() || matches!(byte, b'-' | b'.');
    let length = rest.iter().take(LONGEST).take_while(|byte| is_name(byte)).count();
    let name = &rest[..length];
    let behind = rest.get(length);
    if behind.is_none() && length < LONGEST {
        return None;
    }
    let is_message = name == b"message" || name.ends_with(b":message");
    Some(is_message && behind.is_some_and(u8::is_ascii_whitespace))
}
