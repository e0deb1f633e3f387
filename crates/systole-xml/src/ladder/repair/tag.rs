//! Start tags, read as tolerantly as is safe: a name right behind `<`, then only attributes.

use super::lexis::{is_qname, name_end, skip_blank, skip_space};
use super::value::{self, Quotes, Seen, Value};

/// The meaning of a `<` in front of a name.
#[derive(Debug)]
pub(super) enum Reading<'t> {
    /// A start tag; its attributes are in [`TagReader::attributes`].
    Tag(StartTag<'t>),
    /// Text.
    Text,
    /// A tag that the end of the input seems to cut.
    Cut,
}

/// A start tag.
#[derive(Debug, Clone, Copy)]
pub(super) struct StartTag<'t> {
    pub(super) name: &'t str,
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) empty: bool,
    /// Number of attributes, those beyond the limit included.
    pub(super) count: usize,
    /// True if an attribute has no value.
    pub(super) valueless: bool,
    /// True if the end of the tag is a guess, because a quote is missing.
    pub(super) guessed: bool,
    /// True if it must be rewritten, regardless of its attributes.
    pub(super) rewritten: bool,
}

/// An attribute as written in a tag.
#[derive(Debug, Clone, Copy)]
pub(super) struct Attribute<'t> {
    pub(super) name: &'t str,
    pub(super) start: usize,
    /// Offset behind the closing quote.
    pub(super) end: usize,
    pub(super) value_start: usize,
    pub(super) value_end: usize,
    pub(super) form: Form,
    /// True if white space stands before it.
    pub(super) spaced: bool,
    /// True if the same tag has an earlier attribute of its name.
    pub(super) duplicate: bool,
}

impl Attribute<'_> {
    pub(super) const fn value_len(&self) -> usize {
        self.value_end - self.value_start
    }
}

/// The form in which the value of an attribute is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Quoted,
    Requote,
    Valueless,
}

/// Reads start tags of one text.
///
/// A reading never goes past the next `<`, except inside of quotes, and there only past bytes that no earlier
/// reading has looked at. So all readings together look at each byte a bounded number of times.
#[derive(Debug)]
pub(super) struct TagReader<'t> {
    pub(super) attributes: Vec<Attribute<'t>>,
    text: &'t str,
    /// Maximum number of attributes to keep; more are only counted.
    keep: usize,
    seen: Seen,
}

impl<'t> TagReader<'t> {
    pub(super) fn new(text: &'t str, keep: usize) -> Self {
        Self { attributes: Vec::new(), text, keep, seen: Seen::default() }
    }

    /// Reads the tag or the text at the `<` at `start`.
    pub(super) fn read(&mut self, start: usize) -> Reading<'t> {
        self.attributes.clear();
        let text = self.text;
        let name_start = skip_space(text, start + 1);
        let Some(name_end) = name_end(text, name_start) else { return Reading::Text };
        let name = &text[name_start..name_end];
        let horizon = self.horizon(start);
        let mut tag = StartTag {
            name,
            start,
            end: name_end,
            empty: false,
            count: 0,
            valueless: false,
            guessed: false,
            rewritten: name_start > start + 1,
        };
        let mut may_touch = false;
        loop {
            let plain = skip_space(text, tag.end);
            let at = skip_separator(text, tag.end, may_touch);
            tag.rewritten |= at > plain;
            match text.as_bytes()[at..] {
                [] | [b'/'] => return Reading::Cut,
                [b'>', ..] => return finish(tag, at + 1, false),
                [b'/', b'>', ..] => return finish(tag, at + 2, true),
                _ if at == tag.end && !may_touch => return Reading::Text,
                _ => {}
            }
            let attribute = match self.attribute(at, horizon) {
                Step::Attribute(attribute, guessed) => {
                    tag.guessed |= guessed;
                    Attribute { spaced: plain > tag.end, ..attribute }
                }
                Step::Text => return Reading::Text,
                Step::Cut => return Reading::Cut,
            };
            tag.end = attribute.end;
            tag.count += 1;
            tag.valueless |= attribute.form == Form::Valueless;
            may_touch = attribute.form == Form::Quoted || attribute.end > attribute.value_end;
            if self.attributes.len() < self.keep {
                self.attributes.push(attribute);
            }
        }
    }

    /// The offset up to which a quoted value may reach in a reading that starts at `start`.
    fn horizon(&self, start: usize) -> usize {
        let bytes = self.text.as_bytes();
        if start >= self.seen.until {
            return bytes.len();
        }
        memchr::memchr(b'<', &bytes[start + 1..]).map_or(bytes.len(), |length| start + 1 + length)
    }

    fn attribute(&mut self, start: usize, horizon: usize) -> Step<'t> {
        let text = self.text;
        let Some(name_end) = name_end(text, start) else { return Step::Text };
        // XML counts a full-width equals sign as part of the name.
        let name_end = text[start..name_end].find('＝').map_or(name_end, |at| start + at);
        let name = &text[start..name_end];
        if let Some(found) = colon_for_equals(text, start, name_end) {
            return requoted(step(
                &text[start..name_end - 1],
                start,
                value::read(text, found, horizon, &mut self.seen),
            ));
        }
        if !is_qname(name) {
            return Step::Text;
        }
        let valueless = |end| Attribute {
            name,
            start,
            end,
            value_start: end,
            value_end: end,
            form: Form::Valueless,
            spaced: true,
            duplicate: false,
        };
        let equals = skip_space(text, name_end);
        let Some(at) = behind_equals(text, equals) else { return Step::Attribute(valueless(name_end), false) };
        if let Some(behind) = text[at..].strip_prefix('>') {
            let is_arrow = behind.starts_with(['"', '\'']);
            return if is_arrow { Step::Text } else { Step::Attribute(valueless(at), false) };
        }
        match value::read(text, at, horizon, &mut self.seen) {
            Value::Found(found) if found.next == at => Step::Attribute(valueless(at), false),
            found if text[equals..at].trim_end() == "=" => step(name, start, found),
            found => requoted(step(name, start, found)),
        }
    }
}

/// A step whose attribute must be rewritten with other quotes.
fn requoted(step: Step<'_>) -> Step<'_> {
    match step {
        Step::Attribute(attribute, guessed) if attribute.form == Form::Quoted => {
            Step::Attribute(Attribute { form: Form::Requote, ..attribute }, guessed)
        }
        other => other,
    }
}

fn step<'t>(name: &'t str, start: usize, value: Value) -> Step<'t> {
    match value {
        Value::None => Step::Text,
        Value::Cut => Step::Cut,
        Value::Found(found) => {
            let form = if found.quotes == Quotes::Good { Form::Quoted } else { Form::Requote };
            let (value_start, value_end, end) = (found.start, found.end, found.next);
            let attribute =
                Attribute { name, start, end, value_start, value_end, form, spaced: true, duplicate: false };
            Step::Attribute(attribute, found.quotes == Quotes::Unclosed)
        }
    }
}

/// Offset at which the next attribute or the end of the tag may begin: behind white space and, after a quoted value,
/// a comma or a semicolon.
fn skip_separator(text: &str, at: usize, is_quoted: bool) -> usize {
    let behind = skip_blank(text, at);
    match text.as_bytes().get(behind) {
        Some(b',' | b';') if is_quoted => skip_blank(text, behind + 1),
        _ => behind,
    }
}

/// Offset of a quote behind the colon that ends a name, as in `name: "value"`.
fn colon_for_equals(text: &str, start: usize, name_end: usize) -> Option<usize> {
    let name = text[start..name_end].strip_suffix(':').filter(|name| is_qname(name))?;
    let at = skip_space(text, name_end);
    (!name.is_empty() && value::is_quote(&text[at..])).then_some(at)
}

/// Offset of the value behind an equals sign, two of them, or a full-width one.
fn behind_equals(text: &str, at: usize) -> Option<usize> {
    let rest = &text[at..];
    let behind = rest.strip_prefix('=').or_else(|| rest.strip_prefix('＝'))?;
    Some(skip_space(text, text.len() - behind.strip_prefix('=').unwrap_or(behind).len()))
}

enum Step<'t> {
    Attribute(Attribute<'t>, bool),
    Text,
    Cut,
}

/// Ends a tag. One whose name isn't qualified, such as `<std::vector>`, is text.
fn finish(tag: StartTag<'_>, end: usize, empty: bool) -> Reading<'_> {
    if is_qname(tag.name) { Reading::Tag(StartTag { end, empty, ..tag }) } else { Reading::Text }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> String {
        let mut reader = TagReader::new(text, 10);
        match reader.read(0) {
            Reading::Text => "text".into(),
            Reading::Cut => "cut".into(),
            Reading::Tag(tag) => {
                let mut shown = tag.name.to_owned();
                for attribute in &reader.attributes {
                    shown += &format!(" {}={}", attribute.name, &text[attribute.value_start..attribute.value_end]);
                }
                if tag.empty { shown + "/" } else { shown }
            }
        }
    }

    #[test]
    fn tags_are_told_from_text() {
        for (text, expected) in [
            ("<a>", "a"),
            ("<a/>", "a/"),
            ("<p:a b = 'c'\n/>", "p:a b=c/"),
            ("<a b>", "a b="),
            ("<a b=>", "a b="),
            ("<a b=/>", "a b=/"),
            ("<a b c='d'e=\"f\">", "a b= c=d e=f"),
            ("<a b=c/>", "a b=c/"),
            ("<a b=“c”d='e'>", "a b=c d=e"),
            ("<a<b>", "text"),
            ("<a,b>", "text"),
            ("<a b && c>", "text"),
            ("<a 1='2'>", "text"),
            ("<a b:c:d='e'>", "text"),
            ("<std::vector>", "text"),
            ("<http://x.org>", "text"),
            ("<me@x.org>", "text"),
            ("<a/ >", "text"),
            ("<a", "cut"),
            ("<a ", "cut"),
            ("<a b='c' /", "cut"),
            ("<a b=\"c d", "cut"),
            ("<a b=", "cut"),
        ] {
            assert_eq!(read(text), expected, "{text}");
        }
    }

    #[test]
    fn a_second_look_does_not_pass_the_next_tag() {
        let text = "<a b=“c <a b=“c> ” $";
        let mut reader = TagReader::new(text, 10);
        assert!(matches!(reader.read(0), Reading::Text), "what follows the quote is no tag");
        let second = text.rfind('<').unwrap();
        assert!(matches!(reader.read(second), Reading::Tag(tag) if tag.guessed));
        assert_eq!(reader.horizon(0), second);
    }
}
