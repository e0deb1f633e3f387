//! References and escapes: XML 1.0, section 4.1, and Canonical XML 1.0, section 2.3.

use super::error::StrictErrorKind;
use super::pass::{Check, Pass};
use crate::ladder::chars::{self, excerpt};

impl Pass<'_> {
    /// The character of the reference at `at`, and the end of the reference.
    pub(super) fn reference(&self, at: usize) -> Check<(char, usize)> {
        if self.src.get(at + 1) == Some(&b'#') {
            return self.character_reference(at);
        }
        let end = chars::ncname_end(self.text, at + 1);
        if end == at + 1 || self.src.get(end) != Some(&b';') {
            return Err(self.error(StrictErrorKind::StrayAmpersand, at));
        }
        let c = match &self.text[at + 1..end] {
            "amp" => '&',
            "lt" => '<',
            "gt" => '>',
            "quot" => '"',
            "apos" => '\'',
            name => return Err(self.error(StrictErrorKind::UndeclaredEntity { name: excerpt(name) }, at)),
        };
        Ok((c, end + 1))
    }

    /// Reads a character reference (XML 1.0, production 66).
    fn character_reference(&self, at: usize) -> Check<(char, usize)> {
        let hex = self.src.get(at + 2) == Some(&b'x');
        let (radix, start) = if hex { (16, at + 3) } else { (10, at + 2) };
        let digits = self.src[start..].iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
        let end = start + digits;
        let code = self.src[start..end].iter().try_fold(0u32, |code, &byte| {
            let digit = char::from(byte).to_digit(radix)?;
            Some(code.saturating_mul(radix).saturating_add(digit))
        });
        let (Some(code), true, Some(b';')) = (code, digits > 0, self.src.get(end)) else {
            return Err(self.error(StrictErrorKind::BadCharacterReference, at));
        };
        match char::from_u32(code).filter(|&c| chars::is_xml_char(c)) {
            Some(c) => Ok((c, end + 1)),
            None => Err(self.error(StrictErrorKind::IllegalReference { code }, at)),
        }
    }

    /// Returns whether a reference in text is the canonical escape of its character.
    #[inline]
    pub(super) fn is_canonical_in_text(&self, at: usize, end: usize) -> bool {
        matches!(&self.src[at..end], b"&amp;" | b"&lt;" | b"&gt;" | b"&#xD;")
    }

    /// Returns whether a reference in an attribute value is the canonical escape of its character.
    #[inline]
    pub(super) fn is_canonical_in_value(&self, at: usize, end: usize) -> bool {
        matches!(&self.src[at..end], b"&amp;" | b"&lt;" | b"&quot;" | b"&#x9;" | b"&#xA;" | b"&#xD;")
    }

    /// Writes a character that came from a reference in text.
    pub(super) fn write_text_char(&mut self, c: char) {
        let mut buffer = [0; 4];
        let text = c.encode_utf8(&mut buffer);
        match text_escape(text.as_bytes()[0]) {
            Some(escape) => self.write_reference(escape),
            None => self.writer.literal(text),
        }
    }

    /// Writes the content of a CDATA section, from `start` to `end` of the source, as text.
    pub(super) fn write_text(&mut self, start: usize, end: usize) {
        let mut run = start;
        loop {
            let at = chars::text_end(&self.src[..end], run);
            if at == end {
                return self.writer.source(run, end);
            }
            if self.src[at] == b'\r' {
                self.writer.source(run, at);
                if at + 1 == end || self.src[at + 1] != b'\n' {
                    self.writer.literal("\n");
                }
            } else {
                self.writer.source(run, at);
                self.write_reference(text_escape(self.src[at]).unwrap_or_default());
            }
            run = at + 1;
        }
    }

    /// Writes a reference in text.
    pub(super) fn write_reference(&mut self, reference: &str) {
        self.note_reference();
        self.writer.literal(reference);
    }

    /// Writes the source from `start` to `end`, the data of an instruction or a comment: only
    /// line ends change.
    pub(super) fn write_with_line_ends(&mut self, start: usize, end: usize) {
        let mut run = start;
        while let Some(ahead) = memchr::memchr(b'\r', &self.src[run..end]) {
            run = self.line_end(run, run + ahead);
        }
        self.writer.source(run, end);
    }

    /// Writes the attribute value between two quotes of the source in its canonical form.
    pub(super) fn write_value(&mut self, start: usize, end: usize) -> Check {
        let value = self.decoded(start, end)?;
        self.writer.escaped(&value);
        Ok(())
    }

    /// The value of an attribute of type CDATA: references replaced, white space normalized
    /// (XML 1.0, sections 2.11 and 3.3.3).
    pub(super) fn decoded(&self, start: usize, end: usize) -> Check<String> {
        let mut value = String::with_capacity(end - start);
        let mut run = start;
        loop {
            let at = chars::value_end(&self.src[..end], run);
            value.push_str(&self.text[run..at]);
            run = at + 1;
            match self.src[at..end].first() {
                None => return Ok(value),
                Some(b'&') => {
                    let (c, behind) = self.reference(at)?;
                    value.push(c);
                    run = behind;
                }
                Some(b'\r') if self.src.get(at + 1) == Some(&b'\n') => {}
                Some(b'\t' | b'\n' | b'\r') => value.push(' '),
                Some(&quote) => value.push(char::from(quote)),
            }
        }
    }
}

/// Appends `text` as canonical text.
pub(crate) fn push_text(out: &mut String, text: &str) {
    push_escaped(out, text, chars::text_end, text_escape);
}

/// Appends `text` as the value of a canonical attribute, without quotes.
pub(crate) fn push_value(out: &mut String, text: &str) {
    push_escaped(out, text, chars::value_end, value_escape);
}

#[inline]
fn push_escaped(
    out: &mut String,
    text: &str,
    end: impl Fn(&[u8], usize) -> usize,
    escape: impl Fn(u8) -> Option<&'static str>,
) {
    let (mut run, mut from) = (0, 0);
    loop {
        let at = end(text.as_bytes(), from);
        let Some(&byte) = text.as_bytes().get(at) else { return out.push_str(&text[run..]) };
        if let Some(escape) = escape(byte) {
            out.push_str(&text[run..at]);
            out.push_str(escape);
            run = at + 1;
        }
        from = at + 1;
    }
}

/// The escape of a character in canonical text.
fn text_escape(byte: u8) -> Option<&'static str> {
    match byte {
        b'&' => Some("&amp;"),
        b'<' => Some("&lt;"),
        b'>' => Some("&gt;"),
        b'\r' => Some("&#xD;"),
        _ => None,
    }
}

/// The escape of a character in a canonical attribute value.
fn value_escape(byte: u8) -> Option<&'static str> {
    match byte {
        b'&' => Some("&amp;"),
        b'<' => Some("&lt;"),
        b'"' => Some("&quot;"),
        b'\t' => Some("&#x9;"),
        b'\n' => Some("&#xA;"),
        b'\r' => Some("&#xD;"),
        _ => None,
    }
}
