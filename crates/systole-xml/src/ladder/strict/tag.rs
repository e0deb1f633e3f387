//! Start and end tags.

use super::error::{CutToken, StrictError, StrictErrorKind};
use super::pass::{Check, Open, Pass};
use super::scope::Prefix;
use crate::ladder::chars::{self, excerpt};
use crate::ladder::scan::declared_prefix;
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
    pub(super) start: usize,
    /// Offset of the closing quote.
    pub(super) end: usize,
    /// True if the attribute is written as in canonical form up to the opening quote, which may be the other kind: behind
    /// one space, and without white space around the equals sign.
    pub(super) tight: bool,
    /// True if the characters between the quotes are the canonical form of the value.
    pub(super) canonical: bool,
    /// True if the characters between the quotes are the value.
    pub(super) literal: bool,
}

impl<'a> Pass<'a> {
    /// Parses a start tag (XML 1.0, productions 40 and 44).
    #[inline(always)]
    pub(super) fn start_tag(&mut self) -> Check {
        let at = self.pos;
        if self.open.len() >= self.limits.depth {
            return Err(self.error(StrictErrorKind::TooDeep { limit: self.limits.depth }, at));
        }
        let Some(name) = self.qname(at + 1)? else { return Err(self.no_tag(at)) };
        self.elements += 1;
        // Most tags are canonical as written: without prefix, attributes and a namespace to declare.
        if self.src.get(name.end) == Some(&b'>') && name.local == name.start && self.scope.is_settled() {
            let content = self.place() + (name.end + 1 - at);
            let number = self.tape_start(at, &name, Prefix::DEFAULT, content);
            self.pos = name.end + 1;
            self.writer.keep(self.pos);
            self.open.push(Open { name: name.start..name.end, mark: self.scope.mark(), number });
        } else {
            self.start_tag_with(at, &name)?;
        }
        self.check_output(at)
    }

    /// Parses the rest of a start tag that may have attributes or namespaces.
    #[inline(never)]
    fn start_tag_with(&mut self, at: usize, name: &Name) -> Check {
        let mark = self.scope.mark();
        self.pos = name.end;
        let end = if self.byte(0) == Some(b'>') { name.end } else { self.attributes(at)? };
        let prefix = self.element_prefix(name)?;
        self.resolve_attributes()?;
        let number = self.tape_start(at, name, prefix, 0);
        self.write_start_tag(at, name, prefix)?;
        let content = self.place() + 1;
        self.tape.content(number, content);
        if self.src[end] == b'/' {
            self.tape.end(number, content);
            self.writer.literal("></");
            self.writer.source(name.start, name.end);
            self.writer.literal(">");
            self.scope.rewind(mark);
            self.pos = end + 2;
            self.writer.resume(self.pos);
        } else {
            self.writer.source(end, end + 1);
            self.open.push(Open { name: name.start..name.end, mark, number });
            self.pos = end + 1;
        }
        Ok(())
    }

    /// Records the start tag at `at` on the tape, and the end of the tag if it is known. Returns the number of the element.
    #[inline]
    fn tape_start(&mut self, at: usize, name: &Name, prefix: Prefix, content: usize) -> u32 {
        let (place, parent) = (self.place(), self.open.last().map(|open| open.number));
        let namespace = self.scope.binding(prefix).uri;
        let (local, name_end) = (place + (name.local - at), place + (name.end - at));
        self.tape.start(place, local, name_end, content, parent, namespace)
    }

    /// Parses an end tag (XML 1.0, production 42).
    #[inline]
    pub(super) fn end_tag(&mut self) -> Check {
        let at = self.pos;
        let Some(open) = self.open.last() else { return Err(self.stray_end()) };
        let (mark, number, length) = (open.mark, open.number, open.name.len());
        let name_end = at + 2 + length;
        if !chars::is_repeated(self.src, open.name.start, at + 2, length) {
            return Err(self.mismatched_end());
        }
        let place = self.place();
        self.tape.end(number, place);
        self.pos = name_end + 1;
        if self.src.get(name_end) == Some(&b'>') {
            self.writer.keep(self.pos);
        } else {
            self.end_tag_with_space(at, name_end)?;
        }
        self.open.pop();
        self.scope.rewind(mark);
        Ok(())
    }

    /// Parses the end tag at `at` behind its name, where no `>` stands.
    #[cold]
    fn end_tag_with_space(&mut self, at: usize, name_end: usize) -> Check {
        self.pos = at;
        let end = chars::skip_space(self.src, name_end);
        match self.src.get(end) {
            Some(b'>') => {}
            None => return Err(self.cut(CutToken::EndTag)),
            Some(_) if end == name_end => return Err(self.mismatched_end()),
            Some(_) => return Err(self.unexpected(end)),
        }
        self.writer.source(at, name_end);
        self.writer.source(end, end + 1);
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
        value.tight = at == lead + 1 && self.src[lead] == b' ' && equals == name.end && quote == equals + 1;
        self.pos = value.end + 1;
        self.sort_out(name, value)
    }

    /// Declares a namespace, or keeps an attribute until all declarations are known.
    fn sort_out(&mut self, name: Name, value: Value) -> Check {
        let text = self.text;
        let declared = match self.src[name.start] {
            b'x' => declared_prefix(&text[name.start..name.end]),
            _ => None,
        };
        let Some(declared) = declared else {
            self.check_value(name, value.end - value.start)?;
            self.attributes.push(Attribute { name, prefix: Prefix::DEFAULT, namespace: Uri::NONE, value });
            return Ok(());
        };
        let decoded;
        let uri = if value.literal {
            &text[value.start..value.end]
        } else {
            decoded = self.decoded(value.start, value.end)?;
            &decoded
        };
        let verbatim = self.is_verbatim(&value).then_some((name.start - 1, value.end + 1));
        let depth = self.open.len() + 1;
        self.scope.declare(declared, uri, verbatim, depth, self.limits).map_err(|kind| self.error(kind, name.start))
    }

    /// Returns whether the bytes of an attribute, with the white space in front, are its canonical form.
    #[inline]
    pub(super) fn is_verbatim(&self, value: &Value) -> bool {
        value.tight && value.canonical && self.src[value.end] == b'"'
    }

    #[inline]
    pub(super) fn check_value(&self, name: Name, bytes: usize) -> Check {
        if bytes > self.limits.value_bytes { Err(self.value_too_long(name, bytes)) } else { Ok(()) }
    }

    #[cold]
    fn value_too_long(&self, name: Name, bytes: usize) -> StrictError {
        let limit = self.limits.value_bytes;
        let kind = StrictErrorKind::ValueTooLong { name: excerpt(&self.text[name.start..name.end]), bytes, limit };
        self.error(kind, name.start)
    }

    /// XML 1.0, production 10: checks a value and finds its end.
    #[inline]
    fn value(&self, quote: usize, delimiter: u8) -> Check<Value> {
        let start = quote + 1;
        let end = chars::value_end(self.src, start);
        if self.src.get(end) == Some(&delimiter) {
            return Ok(Value { start, end, tight: false, canonical: true, literal: true });
        }
        self.value_from(end, quote, delimiter)
    }

    /// Checks the rest of a value, from its first stop on.
    #[inline(never)]
    fn value_from(&self, stop: usize, quote: usize, delimiter: u8) -> Check<Value> {
        let start = quote + 1;
        let (mut literal, mut canonical) = (true, true);
        let mut at = stop;
        loop {
            at = chars::value_end(self.src, at);
            match self.src.get(at) {
                Some(&byte) if byte == delimiter => {
                    return Ok(Value { start, end: at, tight: false, canonical, literal });
                }
                Some(&byte @ (b'"' | b'\'')) => {
                    canonical &= byte == b'\'';
                    at += 1;
                }
                Some(b'<') => return Err(self.error(StrictErrorKind::LessThanInValue, at)),
                Some(b'&') => {
                    let (_, end) = self.reference(at)?;
                    canonical &= self.is_canonical_in_value(at, end);
                    literal = false;
                    at = end;
                }
                Some(_) => {
                    canonical = false;
                    literal = false;
                    at += 1;
                }
                None => return Err(self.error(StrictErrorKind::EndOfInput { token: CutToken::Value }, quote)),
            }
        }
    }

    /// The name at `at` (Namespaces 1.0, production 7); `None` if nothing there starts a name.
    #[inline(always)]
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
