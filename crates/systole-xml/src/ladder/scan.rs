//! Tokens of canonical bytes: a cheap walk over XML that is known to be canonical.
//!
//! Exclusive C14N leaves one spelling of everything: no CDATA, no empty-element tags, one space before
//! each attribute, double quotes, seven character references. Input that is not canonical
//! never panics here; it ends the walk early.

use std::borrow::Cow;

/// A token. Processing instructions and comments are skipped, so one text may follow another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScanToken<'a> {
    /// A start tag.
    Start(Tag<'a>),
    /// Text as written, with its character references.
    Text(&'a str),
    /// An end tag.
    End,
}

/// A start tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tag<'a> {
    name: &'a str,
    /// Offset of the local part in `name`.
    local: usize,
    attributes: &'a str,
}

/// A cursor over canonical text.
#[derive(Debug, Clone, Copy)]
pub struct Scanner<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Scanner<'a> {
    pub fn new(text: &'a str) -> Self {
        Self::starting(text, 0)
    }

    /// A cursor at the offset of a token.
    pub fn starting(text: &'a str, at: usize) -> Self {
        Self { text, at }
    }

    /// The offset of the next token.
    pub fn offset(&self) -> usize {
        self.at
    }

    #[inline]
    fn start(&mut self) -> Option<ScanToken<'a>> {
        let bytes = self.text.as_bytes();
        let begin = self.at + 1;
        let (mut name_end, mut local) = (begin, begin);
        loop {
            match *bytes.get(name_end)? {
                b' ' | b'>' => break,
                b':' => local = name_end + 1,
                _ => {}
            }
            name_end += 1;
        }
        let mut end = name_end;
        while *bytes.get(end)? == b' ' {
            let open = end + find(&bytes[end..], b'"')?;
            end = open + 2 + find(&bytes[open + 1..], b'"')?;
        }
        self.at = end + 1;
        let name = &self.text[begin..name_end];
        Some(ScanToken::Start(Tag { name, local: local - begin, attributes: &self.text[name_end..end] }))
    }

    /// Moves behind the next occurrence of `end`.
    fn skip_past(&mut self, end: &[u8]) -> Option<()> {
        let [.., last] = *end else { return None };
        let bytes = self.text.as_bytes();
        loop {
            self.at += find(&bytes[self.at..], last)? + 1;
            if bytes[..self.at].ends_with(end) {
                return Some(());
            }
        }
    }
}

impl<'a> Iterator for Scanner<'a> {
    type Item = ScanToken<'a>;

    #[inline]
    fn next(&mut self) -> Option<ScanToken<'a>> {
        loop {
            let rest = &self.text.as_bytes()[self.at..];
            match (rest.first()?, rest.get(1)) {
                (b'<', Some(b'/')) => {
                    self.skip_past(b">")?;
                    return Some(ScanToken::End);
                }
                (b'<', Some(b'?')) => self.skip_past(b"?>")?,
                (b'<', Some(b'!')) => self.skip_past(b"-->")?,
                (b'<', _) => return self.start(),
                _ => {
                    let begin = self.at;
                    self.at += find(rest, b'<').unwrap_or(rest.len());
                    return Some(ScanToken::Text(&self.text[begin..self.at]));
                }
            }
        }
    }
}

impl<'a> Tag<'a> {
    /// The name as written, prefix included.
    pub fn name(&self) -> &'a str {
        self.name
    }

    /// The prefix of the name; empty for none.
    pub fn prefix(&self) -> &'a str {
        &self.name[..self.local.saturating_sub(1)]
    }

    /// The name without its prefix.
    pub fn local(&self) -> &'a str {
        &self.name[self.local..]
    }

    /// Length of the tag in bytes, from `<` to `>`.
    pub(crate) fn len(&self) -> usize {
        self.name.len() + self.attributes.len() + "<>".len()
    }

    /// Names and written values, namespace declarations included, in canonical order.
    pub fn attributes(&self) -> Attributes<'a> {
        Attributes::new(self.attributes)
    }
}

/// The attributes of a start tag: see [`Tag::attributes`].
#[derive(Debug, Clone, Copy)]
pub struct Attributes<'a> {
    rest: &'a str,
}

impl<'a> Attributes<'a> {
    /// The attributes in `written`: the bytes between the name and the end of a start tag.
    pub fn new(written: &'a str) -> Self {
        Self { rest: written }
    }
}

impl<'a> Iterator for Attributes<'a> {
    type Item = (&'a str, &'a str);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        // Most tags have no attributes.
        if self.rest.is_empty() {
            return None;
        }
        let bytes = self.rest.as_bytes();
        let open = find(bytes, b'"')?;
        let close = open + 1 + find(&bytes[open + 1..], b'"')?;
        let (name, value) = (self.rest.get(1..open.checked_sub(1)?)?, &self.rest[open + 1..close]);
        self.rest = &self.rest[close + 1..];
        Some((name, value))
    }
}

/// The first place of `byte`. The first 32 bytes are searched eight at a time: names and values are short, and a
/// vector search pays only for long ones.
#[inline]
pub fn find(bytes: &[u8], byte: u8) -> Option<usize> {
    const SOON: usize = 4;
    const LOW: u64 = u64::from_ne_bytes([0x01; 8]);
    const HIGH: u64 = u64::from_ne_bytes([0x80; 8]);
    let (words, _) = bytes.as_chunks::<8>();
    for (at, word) in words.iter().take(SOON).enumerate() {
        // After this the first zero byte is the lowest one with its high bit set (Hacker's Delight, 6-1).
        let zero = u64::from_le_bytes(*word) ^ u64::from_ne_bytes([byte; 8]);
        let found = zero.wrapping_sub(LOW) & !zero & HIGH;
        if found != 0 {
            return Some(8 * at + found.trailing_zeros() as usize / 8);
        }
    }
    let passed = 8 * words.len().min(SOON);
    let rest = &bytes[passed..];
    let ahead = if rest.len() < 8 { rest.iter().position(|&b| b == byte) } else { memchr::memchr(byte, rest) };
    ahead.map(|ahead| passed + ahead)
}

/// Prefix (empty for none) and local part of a qualified name.
pub fn split_prefix(name: &str) -> (&str, &str) {
    // A byte loop: names are too short for a search to pay.
    match name.bytes().position(|byte| byte == b':') {
        Some(colon) => (&name[..colon], &name[colon + 1..]),
        None => name.split_at(0),
    }
}

/// The prefix that an attribute declares (empty for the default namespace); `None` if it is no declaration.
pub fn declared_prefix(attribute: &str) -> Option<&str> {
    let rest = attribute.strip_prefix("xmlns")?;
    if rest.is_empty() { Some(rest) } else { rest.strip_prefix(':') }
}

/// Text, or the value of an attribute, with its character references resolved.
pub fn unescape(written: &str) -> Cow<'_, str> {
    if find(written.as_bytes(), b'&').is_none() {
        return Cow::Borrowed(written);
    }
    let mut text = String::with_capacity(written.len());
    unescape_into(&mut text, written);
    Cow::Owned(text)
}

/// Appends the result of [`unescape`] to `text`.
pub fn unescape_into(text: &mut String, written: &str) {
    const REFERENCES: [(&str, char); 7] =
        [("amp;", '&'), ("lt;", '<'), ("gt;", '>'), ("quot;", '"'), ("#x9;", '\t'), ("#xA;", '\n'), ("#xD;", '\r')];
    let mut rest = written;
    while let Some(at) = memchr::memchr(b'&', rest.as_bytes()) {
        text.push_str(&rest[..at]);
        let reference = &rest[at + 1..];
        match REFERENCES.iter().find(|(name, _)| reference.starts_with(name)) {
            Some((name, character)) => {
                text.push(*character);
                rest = &reference[name.len()..];
            }
            None => {
                text.push('&');
                rest = reference;
            }
        }
    }
    text.push_str(rest);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn canonical_text_falls_into_tokens() {
        let mut scanner = Scanner::new("<a xmlns=\"urn:x\" k=\"1>&quot;2\">t&amp;<?pi >?>u<p:b></p:b><!-- <c> --></a>");
        let Some(ScanToken::Start(tag)) = scanner.next() else { panic!("no start tag") };
        assert_eq!(tag.name(), "a");
        assert_eq!(tag.attributes().collect::<Vec<_>>(), [("xmlns", "urn:x"), ("k", "1>&quot;2")]);
        assert_eq!(scanner.next(), Some(ScanToken::Text("t&amp;")));
        assert_eq!(scanner.next(), Some(ScanToken::Text("u")));
        let Some(ScanToken::Start(tag)) = scanner.next() else { panic!("no start tag") };
        assert_eq!((tag.name(), tag.local()), ("p:b", "b"));
        assert_eq!(scanner.by_ref().collect::<Vec<_>>(), [ScanToken::End, ScanToken::End]);
        assert_eq!(scanner.offset(), scanner.text.len());
    }

    #[test]
    fn bytes_are_found_where_they_stand_first() {
        for len in 0..100 {
            for at in 0..len {
                let mut bytes = vec![b'='; len];
                bytes[at..].fill(b'<');
                assert_eq!(find(&bytes, b'<'), Some(at));
                assert_eq!(find(&bytes[..at], b'<'), None);
            }
        }
    }

    #[test]
    fn references_are_resolved() {
        assert_eq!(unescape("a&lt;&gt;&amp;&quot;&#x9;&#xA;&#xD;b"), "a<>&\"\t\n\rb");
        assert_eq!(unescape("plain"), "plain");
    }

    #[test]
    fn what_is_not_canonical_ends_the_walk() {
        for text in ["<a", "<a b", "<a b=\"", "</a", "<?a", "<", "<a b=\"1\""] {
            assert!(Scanner::new(text).next().is_none(), "{text}");
        }
    }
}
