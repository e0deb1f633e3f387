//! An `organism.yaml` as a tree of nodes with their places.
//!
//! Every scalar is text here, as it was written: its reader decides its type, so that `command: [sleep, 1.50]` and
//! `name: on` mean what they look like.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_saphyr::options::{DuplicateKeyPolicy, NonFiniteFloatPolicy};
use serde_saphyr::{Location, MessageFormatter, Spanned, UserMessageFormatter};
use systole_core::vocab::Span;

use super::yaml_help;

/// A value and its place.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) value: Value,
    pub(super) span: Span,
}

#[derive(Debug)]
pub(super) enum Value {
    /// No value, `null` or `~`.
    Nothing,
    Scalar(String),
    List(Vec<Node>),
    /// Entries in the order of the file; a key may be repeated.
    Map(Vec<(Key, Node)>),
}

#[derive(Debug)]
pub(super) struct Key {
    pub(super) text: String,
    pub(super) span: Span,
}

/// Reason why a text is no YAML document.
#[derive(Debug)]
pub(super) struct YamlError {
    pub(super) message: String,
    /// Correction, where a known slip stopped the scanner.
    pub(super) help: Option<String>,
    pub(super) span: Span,
}

impl Value {
    /// The kind of the value, for "expected …, found …".
    pub(super) fn what(&self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::Scalar(_) => "a single value",
            Self::List(_) => "a list",
            Self::Map(_) => "a mapping",
        }
    }
}

/// Parses the one document of a text.
pub(super) fn parse(source: &str) -> Result<Node, YamlError> {
    let options = serde_saphyr::options! {
        duplicate_keys: DuplicateKeyPolicy::PassThrough,
        non_finite_float_policy: NonFiniteFloatPolicy::PassThrough,
        strict_booleans: true,
        reject_unsupported_tags: true,
        with_snippet: false,
        budget: serde_saphyr::budget! { max_depth: 64 },
    };
    let spanned: Spanned<Parsed> = serde_saphyr::from_str_with_options(source, options).map_err(|error| {
        let span = error.location().map_or(Span { start: 0, end: 0 }, |at| span_of(source, &at));
        let message = UserMessageFormatter.format_message(&error).into_owned();
        YamlError { message, help: yaml_help::help(source, span.start), span }
    })?;
    Ok(spanned.into_node(source))
}

/// The deserializer's form of a node; typed scalars still have to be read from the source.
enum Parsed {
    Nothing,
    Typed,
    Text(String),
    List(Vec<Spanned<Parsed>>),
    Map(Vec<(Spanned<String>, Spanned<Parsed>)>),
}

trait IntoNode {
    fn into_node(self, source: &str) -> Node;
}

impl IntoNode for Spanned<Parsed> {
    /// Recursive: the budget of the parser bounds the depth.
    fn into_node(self, source: &str) -> Node {
        let value = match self.value {
            Parsed::Nothing => Value::Nothing,
            Parsed::Text(text) => Value::Scalar(text),
            Parsed::Typed => {
                let Span { start, end } = span_of(source, &self.defined);
                Value::Scalar(source[start..end].to_owned())
            }
            Parsed::List(items) => Value::List(items.into_iter().map(|item| item.into_node(source)).collect()),
            Parsed::Map(entries) => {
                let entry = |(key, value): (Spanned<String>, Self)| {
                    let span = span_of(source, &key.referenced);
                    (Key { text: key.value, span }, value.into_node(source))
                };
                Value::Map(entries.into_iter().map(entry).collect())
            }
        };
        Node { value, span: span_of(source, &self.referenced) }
    }
}

/// The bytes of a location. The scanner's own errors count in characters only.
fn span_of(source: &str, at: &Location) -> Span {
    let span = at.span();
    let byte = |character: u64| {
        let character = usize::try_from(character).unwrap_or(usize::MAX);
        source.char_indices().nth(character).map_or(source.len(), |(at, _)| at)
    };
    let (start, end) = match (span.byte_offset(), span.byte_len()) {
        (Some(start), Some(len)) => (to_usize(start), to_usize(start.saturating_add(len))),
        _ => (byte(span.offset()), byte(span.offset().saturating_add(span.len()))),
    };
    let boundary = |at: usize| (0..=at.min(source.len())).rev().find(|&at| source.is_char_boundary(at)).unwrap_or(0);
    let start = boundary(start);
    Span { start, end: boundary(end).max(start) }
}

fn to_usize(offset: u64) -> usize {
    usize::try_from(offset).unwrap_or(usize::MAX)
}

impl<'de> Deserialize<'de> for Parsed {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ParsedVisitor)
    }
}

struct ParsedVisitor;

impl<'de> Visitor<'de> for ParsedVisitor {
    type Value = Parsed;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a YAML value")
    }

    fn visit_unit<E: Error>(self) -> Result<Parsed, E> {
        Ok(Parsed::Nothing)
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<Parsed, E> {
        Ok(Parsed::Typed)
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<Parsed, E> {
        Ok(Parsed::Typed)
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<Parsed, E> {
        Ok(Parsed::Typed)
    }

    fn visit_i128<E: Error>(self, _: i128) -> Result<Parsed, E> {
        Ok(Parsed::Typed)
    }

    fn visit_u128<E: Error>(self, _: u128) -> Result<Parsed, E> {
        Ok(Parsed::Typed)
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<Parsed, E> {
        Ok(Parsed::Typed)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Parsed, E> {
        Ok(Parsed::Text(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Parsed, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Parsed::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Parsed, A::Error> {
        let mut map = Vec::new();
        while let Some(entry) = entries.next_entry()? {
            map.push(entry);
        }
        Ok(Parsed::Map(map))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn show(node: &Node, source: &str) -> String {
        let span = &source[node.span.start..node.span.end];
        match &node.value {
            Value::Nothing => "~".into(),
            Value::Scalar(text) => format!("{text:?}<{span}>"),
            Value::List(items) => {
                format!("[{}]", items.iter().map(|item| show(item, source)).collect::<Vec<_>>().join(" "))
            }
            Value::Map(entries) => {
                let entry = |(key, value): &(Key, Node)| {
                    format!("{}<{}>:{}", key.text, &source[key.span.start..key.span.end], show(value, source))
                };
                format!("{{{}}}", entries.iter().map(entry).collect::<Vec<_>>().join(" "))
            }
        }
    }

    fn read(source: &str) -> String {
        show(&parse(source).unwrap(), source)
    }

    #[test]
    fn scalars_are_the_text_that_was_written() {
        assert_eq!(
            read("é: [1.50, true, yes, 0x1F, 1e999, .nan, 1MiB, 'q', ]\nk: \n"),
            r#"{é<é>:["1.50"<1.50> "true"<true> "yes"<yes> "0x1F"<0x1F> "1e999"<1e999> ".nan"<.nan> "1MiB"<1MiB> "q"<'q'>] k<k>:~}"#
        );
    }

    #[test]
    fn keys_may_stand_twice_and_aliases_keep_their_place() {
        assert_eq!(read("a: &x 7\na: *x\n"), r#"{a<a>:"7"<7> a<a>:"7"<*x>}"#);
    }

    #[test]
    fn errors_point_at_their_place() {
        let source = "ö: 1\nb: [\n";
        let error = parse(source).unwrap_err();
        assert_eq!((error.message.as_str(), error.span.start), ("unclosed bracket '['", 9));
        assert!(parse(&"[".repeat(100)).is_err());
        assert!(parse("a: !thing 1\n").is_err());
    }
}
