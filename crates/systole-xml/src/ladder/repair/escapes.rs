//! The reading of one string: either its references are references, or its author escapes nothing and they are text.
//!
//! A string is the text of one element, outside of its children, or the value of one attribute. Where it holds a raw `&`, or markup
//! that is text, its author does not escape: `&lt;` in it is what the text says. Where it holds the one sign raw and the other only
//! escaped (`a &lt; b && c`), both readings are possible, and it is refused.

use super::RepairError;
use super::RepairKind;
use super::reference::{self, Reference};
use super::scan::Scanner;
use super::source::Mark;

/// Signs that a string holds.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Escapes {
    /// Start of the first raw sign.
    first: Option<u32>,
    raw_ampersand: bool,
    /// A `<` in front of a name, a slash, an exclamation or a question mark.
    raw_markup: bool,
    /// Any other `<`.
    raw_less_than: bool,
    escaped_ampersand: bool,
    escaped_less_than: bool,
}

/// A reference, or a comment in a string, as it was written to the output under the assumption that its author escapes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Provisional {
    /// Start and end in the output.
    out: usize,
    out_end: usize,
    /// Start and end in the text.
    start: usize,
    end: usize,
    string: usize,
    /// The repair that it is, if it stays.
    kind: Option<RepairKind>,
}

impl Escapes {
    /// The signs of the value of an attribute, in offsets of the value.
    pub(super) fn of_value(value: &str) -> Self {
        let mut escapes = Self::default();
        for at in memchr::memchr2_iter(b'&', b'<', value.as_bytes()) {
            match value.as_bytes()[at] {
                b'<' => escapes.raw(value, at),
                _ => match reference::read(value, at, value.len()) {
                    Reference::Keep(len) => escapes.reference(&value[at..at + len]),
                    Reference::Expand { .. } | Reference::Escape { kind: RepairKind::CharacterReference, .. } => {}
                    Reference::Escape { .. } => escapes.raw(value, at),
                },
            }
        }
        escapes
    }

    /// Records the sign at an offset: `&` or `<`, which is text.
    pub(super) fn raw(&mut self, text: &str, at: usize) {
        self.first = self.first.or(u32::try_from(at).ok());
        let is_markup = |c: char| c.is_alphabetic() || matches!(c, '/' | '!' | '?' | '_');
        match text.as_bytes()[at] {
            b'&' => self.raw_ampersand = true,
            _ if text[at + 1..].starts_with(is_markup) => self.raw_markup = true,
            _ => self.raw_less_than = true,
        }
    }

    /// Records a reference that XML has.
    pub(super) fn reference(&mut self, reference: &str) {
        match reference::character(reference) {
            Some('&') => self.escaped_ampersand = true,
            Some('<') => self.escaped_less_than = true,
            _ => {}
        }
    }

    /// Returns whether the references of the string are text.
    pub(super) const fn is_raw(self) -> bool {
        self.raw_ampersand || self.raw_markup || self.raw_less_than
    }

    /// The offset of a raw sign in a string that can be read in both ways.
    pub(super) fn contradiction(self) -> Option<usize> {
        let half = self.raw_ampersand && self.escaped_less_than && !self.raw_markup && !self.raw_less_than;
        let other = self.raw_less_than && self.escaped_ampersand && !self.raw_markup && !self.raw_ampersand;
        self.first.filter(|_| half || other).map(|at| at as usize)
    }
}

impl Scanner<'_> {
    /// Writes the reference or the text that the `&` at `at` of an element starts; returns the offset behind it.
    pub(super) fn write_reference(&mut self, at: usize) -> usize {
        let (out, string) = (self.out.len(), self.string());
        match reference::read(self.text, at, self.text.len()) {
            Reference::Keep(len) => {
                self.strings[string].reference(&self.text[at..at + len]);
                self.out.push_str(&self.text[at..at + len]);
                self.provisional(out, at, at + len, None);
                at + len
            }
            Reference::Expand { len, c, kind } => {
                reference::write_char(&mut self.out, c);
                self.provisional(out, at, at + len, Some(kind));
                at + len
            }
            Reference::Escape { len, kind } => {
                // An author who refers to a character that XML forbids knows references.
                if kind != RepairKind::CharacterReference {
                    self.strings[string].raw(self.text, at);
                }
                self.out.push_str("&amp;");
                self.mark(at, at + len, kind);
                at + 1
            }
        }
    }

    /// Writes a comment of an element that holds text alone. Like a reference, it is text if the author escapes nothing.
    pub(super) fn string_comment(&mut self, end: usize) -> Result<(), RepairError> {
        let (at, out, marks) = (self.pos, self.out.len(), self.marks.len());
        self.comment(end)?;
        let kind = self.marks.split_off(marks).first().map(|mark| mark.kind);
        self.provisional(out, at, end, kind);
        Ok(())
    }

    /// Records that a raw sign of the innermost element is text.
    pub(super) fn note_raw(&mut self, at: usize) {
        let string = self.string();
        self.strings[string].raw(self.text, at);
    }

    /// The number of the string that the innermost element is.
    fn string(&self) -> usize {
        self.tree.last().map_or(0, |open| open.string)
    }

    fn provisional(&mut self, out: usize, start: usize, end: usize, kind: Option<RepairKind>) {
        let (out_end, string) = (self.out.len(), self.string());
        self.references.push(Provisional { out, out_end, start, end, string, kind });
    }

    /// Forgets what stood behind a length of the output.
    pub(super) fn forget_references(&mut self, out: usize) {
        while self.references.last().is_some_and(|last| last.out >= out) {
            self.references.pop();
        }
    }

    /// Decides on the references of each string, now that all of it is known, and writes those that are text.
    pub(super) fn settle_references(&mut self) -> Result<(), RepairError> {
        let references = std::mem::take(&mut self.references);
        let mut settled = String::new();
        let mut from = 0;
        for Provisional { out, out_end, start, end, string, kind } in references {
            let escapes = self.strings[string];
            if let Some(at) = escapes.contradiction() {
                return self.refuse(at, |at| RepairError::HalfEscaped { at });
            }
            if escapes.is_raw() {
                settled.push_str(&self.out[from..out]);
                push_escaped(&mut settled, &self.text[start..end]);
                self.marks.push(Mark::new(start, end, RepairKind::LiteralReference));
                from = out_end;
            } else if let Some(kind) = kind {
                self.marks.push(Mark::new(start, end, kind));
            }
        }
        if from > 0 {
            settled.push_str(&self.out[from..]);
            self.out = settled;
        }
        Ok(())
    }

    /// Writes the value of an attribute. A reference to the quote that encloses it stays one: the value can't hold it otherwise.
    pub(super) fn write_value(&mut self, start: usize, end: usize) -> Result<(), RepairError> {
        let text = self.text;
        let value = &text[start..end];
        let quote = text[..start].chars().next_back().filter(|quote| matches!(quote, '"' | '\''));
        let escapes = Escapes::of_value(value);
        if let Some(at) = escapes.contradiction() {
            return self.refuse(start + at, |at| RepairError::HalfEscaped { at });
        }
        let mut at = 0;
        while let Some(length) = memchr::memchr3(b'&', b'<', b'"', &value.as_bytes()[at..]) {
            self.out.push_str(&value[at..at + length]);
            at += length;
            let (written, kind) = match value.as_bytes()[at] {
                b'&' => match reference::read(value, at, value.len()) {
                    Reference::Keep(len)
                        if !escapes.is_raw()
                            || quote.is_some() && quote == reference::character(&value[at..at + len]) =>
                    {
                        self.out.push_str(&value[at..at + len]);
                        (len, None)
                    }
                    Reference::Expand { len, c, kind } if !escapes.is_raw() => {
                        reference::write_char(&mut self.out, c);
                        (len, Some((len, kind)))
                    }
                    Reference::Keep(len) | Reference::Expand { len, .. } => {
                        push_escaped(&mut self.out, &value[at..at + len]);
                        (len, Some((len, RepairKind::LiteralReference)))
                    }
                    Reference::Escape { len, kind } => {
                        self.out.push_str("&amp;");
                        (1, Some((len, kind)))
                    }
                },
                b'<' => {
                    self.out.push_str("&lt;");
                    (1, Some((1, RepairKind::StrayLessThan)))
                }
                _ => {
                    self.out.push_str("&quot;");
                    (1, None)
                }
            };
            if let Some((len, kind)) = kind {
                self.mark(start + at, start + at + len, kind);
            }
            at += written;
        }
        self.out.push_str(&value[at..]);
        Ok(())
    }
}

/// Writes a text as content that says it.
fn push_escaped(out: &mut String, text: &str) {
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' if out.ends_with("]]") => out.push_str("&gt;"),
            c => out.push(c),
        }
    }
}
