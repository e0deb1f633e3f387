//! Start and end tags.

use crate::ladder::chars::{self, VALUE_STOP, excerpt};
use std::ops::Range;

use super::error::{CutToken, StrictError, StrictErrorKind};
use super::pass::{Check, Open, Pass};
use super::scope::Prefix;
use crate::ladder::tape::Uri;

/// A qualified name in the source.
#[derive(Debug, Clone, Copy)]
pub(super) struct Name {
    pub(super) start: usize,
    /// Start of the local part.
    pub(super) local: usize,
    pub(super) end: usize,
}

/// An attribute that is no namespace declaration.
#[derive(Debug, Clone, Copy)]
pub(super) struct Attribute {
    pub(super) name: Name,
    pub(super) prefix: Prefix,
    pub(super) namespace: Uri,
    pub(super) value: Value,
}

/// An attribute value in the source.
#[derive(Debug, Clone, Copy)]
pub(super) struct Value {
    /// Start of the white space before the attribute.
    pub(super) lead: usize,
    pub(super) start: usize,
    /// Offset of the closing quote.
    pub(super) end: usize,
    /// True if `lead..=end` is the canonical form of the attribute.
    pub(super) verbatim: bool,
    /// True if the characters between the quotes are the value.
    pub(super) literal: bool,
}

impl<'a> Pass<'a> {
    /// Parses a start tag (XML 1.0, productions 40 and 44). Returns the expanded name.
    pub(super) fn start_tag(&mut self) -> Check<(Uri, Range<usize>)> {
        let at = self.pos;
        if self.open.len() >= self.limits.depth {
            return Err(self.error(StrictErrorKind::TooDeep { limit: self.limits.depth }, at));
        }
        let name = self.qname(at + 1)?.ok_or_else(|| self.no_tag(at))?;
        let mark = self.scope.mark();
        self.pos = name.end;
        self.elements += 1;
        let end = if self.byte(0) == Some(b'>') { name.end } else { self.attributes(at)? };
        let closed = self.src[end] == b'/';
        let prefix = self.element_prefix(&name)?;
        let namespace = self.scope.binding(prefix).uri;
        self.resolve_attributes()?;
        let (place, parent) = (self.place(), self.open.last().map(|open| open.number));
        let number = self.tape.start(place, place + name.local - at, place + name.end - at, parent, namespace);
        self.write_start_tag(at, &name, prefix, end)?;
        let content = self.place() + 1;
        self.tape.content(number, content);
        if closed {
            self.tape.end(number, content);
            self.writer.literal("></");
            self.writer.source(name.start, name.end);
            self.writer.literal(">");
            self.scope.rewind(mark);
            self.pos = end + 2;
        } else {
            self.writer.source(end, end + 1);
            self.open.push(Open { name: name.start..name.end, mark, number });
            self.pos = end + 1;
        }
        self.check_output(at)?;
        Ok((namespace, name.local..name.end))
    }

    /// Parses an end tag (XML 1.0, production 42).
    pub(super) fn end_tag(&mut self) -> Check {
        let at = self.pos;
        let Some(open) = self.open.last() else { return Err(self.stray_end()) };
        let (mark, number) = (open.mark, open.number);
        let name = &self.src[open.name.clone()];
        let name_end = at + 2 + name.len();
        if !self.src[at + 2..].starts_with(name) {
            return Err(self.mismatched_end());
        }
        let end = chars::skip_space(self.src, name_end);
        match self.src.get(end) {
            Some(b'>') => {}
            None => return Err(self.cut(CutToken::EndTag)),
            Some(_) if end == name_end => return Err(self.mismatched_end()),
            Some(_) => return Err(self.unexpected(end)),
        }
        let place = self.place();
        self.tape.end(number, place);
        self.writer.source(at, name_end);
        self.writer.source(end, end + 1);
        self.open.pop();
        self.scope.rewind(mark);
        self.pos = end + 1;
        Ok(())
    }

    /// Parses the attributes of the start tag at `tag`, up to `>` or `/>`, whose offset it returns.
    fn attributes(&mut self, tag: usize) -> Check<usize> {
        let mut count = 0;
        loop {
            let lead = self.pos;
            let at = chars::skip_space(self.src, lead);
            match self.src.get(at) {
                Some(b'>') => return Ok(at),
                Some(b'/') => match self.src.get(at + 1) {
                    Some(b'>') => return Ok(at),
                    Some(_) => return Err(self.unexpected(at)),
                    None => return Err(self.cut_tag(tag)),
                },
                Some(_) => {}
                None => return Err(self.cut_tag(tag)),
            }
            count += 1;
            if count > self.limits.attributes {
                return Err(self.error(StrictErrorKind::TooManyAttributes { limit: self.limits.attributes }, at));
            }
            self.attribute(lead, at, tag)?;
        }
    }

    /// Parses an attribute (XML 1.0, production 41).
    fn attribute(&mut self, lead: usize, at: usize, tag: usize) -> Check {
        let Some(name) = self.qname(at)? else { return Err(self.unexpected(at)) };
        if lead == at {
            return Err(self.error(StrictErrorKind::MissingSpace, at));
        }
        let equals = chars::skip_space(self.src, name.end);
        match self.src.get(equals) {
            Some(b'=') => {}
            Some(_) => {
                let name = excerpt(&self.text[name.start..name.end]);
                return Err(self.error(StrictErrorKind::MissingValue { name }, at));
            }
            None => return Err(self.cut_tag(tag)),
        }
        let quote = chars::skip_space(self.src, equals + 1);
        let mut value = match self.src.get(quote) {
            Some(&delimiter @ (b'"' | b'\'')) => self.value(quote, delimiter)?,
            Some(_) => {
                let name = excerpt(&self.text[name.start..name.end]);
                let kind = match self.text[quote..].chars().next() {
                    Some(quote) if is_foreign_quote(quote) => StrictErrorKind::ForeignQuote { name, quote },
                    _ => StrictErrorKind::UnquotedValue { name },
                };
                return Err(self.error(kind, quote));
            }
            None => return Err(self.cut_tag(tag)),
        };
        let tight = at == lead + 1 && self.src[lead] == b' ' && equals == name.end && quote == equals + 1;
        value.verbatim &= tight;
        value.lead = lead;
        self.pos = value.end + 1;
        self.sort_out(name, value)
    }

    /// Declares a namespace, or keeps an attribute until all declarations are known.
    fn sort_out(&mut self, name: Name, value: Value) -> Check {
        let text = self.text;
        let declared = match (&text[name.start..name.local], &text[name.local..name.end]) {
            ("", "xmlns") => "",
            ("xmlns:", local) => local,
            _ => {
                self.check_value(name, value.end - value.start)?;
                self.attributes.push(Attribute { name, prefix: Prefix::DEFAULT, namespace: Uri::NONE, value });
                return Ok(());
            }
        };
        let decoded;
        let uri = if value.literal {
            &text[value.start..value.end]
        } else {
            decoded = self.decoded(value.start, value.end)?;
            &decoded
        };
        let verbatim = value.verbatim.then_some((value.lead, value.end + 1));
        let depth = self.open.len() + 1;
        self.scope.declare(declared, uri, verbatim, depth, self.limits).map_err(|kind| self.error(kind, name.start))
    }

    pub(super) fn check_value(&self, name: Name, bytes: usize) -> Check {
        let limit = self.limits.value_bytes;
        if bytes > limit {
            let kind = StrictErrorKind::ValueTooLong { name: excerpt(&self.text[name.start..name.end]), bytes, limit };
            return Err(self.error(kind, name.start));
        }
        Ok(())
    }

    /// XML 1.0, production 10: checks a value and finds its end.
    fn value(&self, quote: usize, delimiter: u8) -> Check<Value> {
        let start = quote + 1;
        let mut literal = true;
        let mut verbatim = delimiter == b'"';
        let mut at = start;
        loop {
            at = chars::find(self.src, at, VALUE_STOP);
            match self.src.get(at) {
                Some(&byte) if byte == delimiter => {
                    return Ok(Value { lead: start, start, end: at, verbatim, literal });
                }
                Some(b'"' | b'\'') => {
                    verbatim &= delimiter == b'"';
                    at += 1;
                }
                Some(b'<') => return Err(self.error(StrictErrorKind::LessThanInValue, at)),
                Some(b'&') => {
                    let (_, end) = self.reference(at)?;
                    verbatim &= self.is_canonical_in_value(at, end);
                    literal = false;
                    at = end;
                }
                Some(_) => {
                    verbatim = false;
                    literal = false;
                    at += 1;
                }
                None => return Err(self.error(StrictErrorKind::EndOfInput { token: CutToken::Value }, quote)),
            }
        }
    }

    /// The name at `at` (Namespaces 1.0, production 7); `None` if nothing there starts a name.
    #[inline]
    fn qname(&self, at: usize) -> Check<Option<Name>> {
        let end = chars::ncname_end(self.text, at);
        let mut name = Name { start: at, local: at, end };
        if self.src.get(end) == Some(&b':') {
            name.local = end + 1;
            name.end = chars::ncname_end(self.text, end + 1);
            if end == at || name.end == name.local || self.src.get(name.end) == Some(&b':') {
                return Err(self.bad_qname(at));
            }
        } else if end == at {
            return Ok(None);
        }
        self.check_name(name.start, name.end)?;
        Ok(Some(name))
    }

    /// The error of a `<` without a name behind it.
    #[cold]
    fn no_tag(&self, at: usize) -> StrictError {
        if self.src.len() == at + 1 { self.cut_tag(at) } else { self.error(StrictErrorKind::StrayLessThan, at) }
    }

    #[cold]
    fn cut_tag(&self, tag: usize) -> StrictError {
        self.error(StrictErrorKind::EndOfInput { token: CutToken::StartTag }, tag)
    }

    #[cold]
    fn unexpected(&self, at: usize) -> StrictError {
        self.error(StrictErrorKind::UnexpectedInTag { found: chars::char_at(self.text, at) }, at)
    }

    #[cold]
    fn bad_qname(&self, at: usize) -> StrictError {
        let name = excerpt(self.name_with_colons(at));
        self.error(StrictErrorKind::BadQName { name }, at)
    }

    #[cold]
    fn mismatched_end(&self) -> StrictError {
        let at = self.pos;
        let found = self.name_with_colons(at + 2);
        let (Some(open), false) = (self.open.last(), found.is_empty()) else { return self.no_end(at) };
        if at + 2 + found.len() == self.src.len() {
            return self.cut(CutToken::EndTag);
        }
        let (expected, found) = (excerpt(&self.text[open.name.clone()]), excerpt(found));
        self.error(StrictErrorKind::MismatchedEnd { expected, found, opened: self.opened(open) }, at)
    }

    #[cold]
    pub(super) fn stray_end(&self) -> StrictError {
        match self.name_with_colons(self.pos + 2) {
            "" => self.no_end(self.pos),
            name => self.error(StrictErrorKind::StrayEnd { name: excerpt(name) }, self.pos),
        }
    }

    /// The error of a `</` without a name behind it.
    fn no_end(&self, at: usize) -> StrictError {
        if self.src.len() == at + 2 {
            self.cut(CutToken::EndTag)
        } else {
            self.error(StrictErrorKind::StrayLessThan, at)
        }
    }

    /// The name at `at` by XML 1.0 alone, where colons can stand anywhere.
    fn name_with_colons(&self, at: usize) -> &'a str {
        let mut end = at;
        while let Some(&byte) = self.src.get(end) {
            let next = chars::ncname_end(self.text, end);
            match byte {
                b':' => end += 1,
                _ if next > end => end = next,
                _ if end > at && crate::vocab::is_name_char(chars::char_at(self.text, end)) => {
                    end += chars::char_at(self.text, end).len_utf8();
                }
                _ => break,
            }
        }
        &self.text[at..end]
    }
}

/// Returns whether a character is a quote in text, but not in XML.
fn is_foreign_quote(c: char) -> bool {
    matches!(
        c,
        '“' | '”'
            | '„'
            | '‟'
            | '″'
            | '«'
            | '»'
            | '＂'
            | '‘'
            | '’'
            | '‚'
            | '‛'
            | '′'
            | '‹'
            | '›'
            | '`'
            | '´'
            | '＇'
    )
}
