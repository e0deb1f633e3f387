//! The events of a canonical payload in the form that libxml's validator takes: names and values as C strings,
//! namespaces resolved, text in one piece.
//!
//! So libxml never parses a message: its parser, its limits and its quadratic concatenation of text stay out of
//! the way, and the index of each element is known while it is judged.

use std::collections::HashMap;

use crate::ladder::scan::{Scanner, Tag, Token, declared_prefix, split_prefix, unescape, unescape_into};
use crate::vocab::ns;

/// An offset into the arena; the C string there ends at the next NUL.
pub(super) type Text = Option<u32>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Event {
    Start {
        local: u32,
        namespace: Text,
        /// How many of the next declarations and attributes are its own.
        declarations: u32,
        attributes: u32,
    },
    Text {
        start: u32,
        len: u32,
    },
    End {
        local: u32,
        namespace: Text,
    },
}

/// The prefix and namespace name of a declaration.
pub(super) type Declaration = (Text, u32);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Attribute {
    pub(super) local: u32,
    pub(super) prefix: Text,
    pub(super) namespace: Text,
    pub(super) value: u32,
    pub(super) value_len: u32,
}

/// The events of one payload. Reused from one to the next, for its memory.
#[derive(Debug, Default)]
pub(super) struct Events {
    arena: Vec<u8>,
    events: Vec<Event>,
    declarations: Vec<Declaration>,
    attributes: Vec<Attribute>,
    text: String,
}

impl Events {
    /// Takes the events of a canonical document of less than 4 GiB.
    pub(super) fn read(&mut self, canonical: &str) {
        self.clear();
        let mut scope = Scope::default();
        let mut open: Vec<(u32, Text)> = Vec::new();
        for token in Scanner::new(canonical) {
            match token {
                Token::Text(written) => unescape_into(&mut self.text, written),
                Token::Start(tag) => {
                    self.flush_text();
                    open.push(self.start(&mut scope, tag));
                }
                Token::End => {
                    self.flush_text();
                    scope.leave();
                    let Some((local, namespace)) = open.pop() else { return };
                    self.events.push(Event::End { local, namespace });
                }
            }
        }
    }

    pub(super) fn arena(&self) -> &[u8] {
        &self.arena
    }

    pub(super) fn events(&self) -> &[Event] {
        &self.events
    }

    pub(super) fn declarations(&self) -> &[Declaration] {
        &self.declarations
    }

    pub(super) fn attributes(&self) -> &[Attribute] {
        &self.attributes
    }

    fn clear(&mut self) {
        // A large message must not be remembered by its room.
        const KEPT: usize = 1 << 20;
        if self.arena.capacity() > KEPT || self.events.capacity() > KEPT / size_of::<Event>() {
            *self = Self::default();
        }
        self.arena.clear();
        self.events.clear();
        self.declarations.clear();
        self.attributes.clear();
        self.text.clear();
    }

    fn start<'a>(&mut self, scope: &mut Scope<'a>, tag: Tag<'a>) -> (u32, Text) {
        let (declared, given) = (self.declarations.len(), self.attributes.len());
        scope.enter();
        for (name, written) in tag.attributes() {
            let Some(prefix) = declared_prefix(name) else { continue };
            let uri = self.push(&unescape(written));
            scope.declare(prefix, if written.is_empty() { None } else { Some(uri) });
            let prefix = if prefix.is_empty() { None } else { Some(self.push(prefix)) };
            self.declarations.push((prefix, uri));
        }
        for (name, written) in tag.attributes() {
            if declared_prefix(name).is_none() {
                self.attribute(scope, name, written);
            }
        }
        let (prefix, local) = split_prefix(tag.name());
        let namespace = scope.resolve(prefix);
        let local = self.push(local);
        self.events.push(Event::Start {
            local,
            namespace,
            declarations: offset(self.declarations.len() - declared),
            attributes: offset(self.attributes.len() - given),
        });
        (local, namespace)
    }

    fn attribute(&mut self, scope: &Scope, name: &str, written: &str) {
        let (prefix, local) = split_prefix(name);
        let (prefix, namespace) = match prefix {
            "" => (None, None),
            "xml" => {
                let namespace = self.push(ns::XML);
                (Some(self.push(prefix)), Some(namespace))
            }
            _ => (Some(self.push(prefix)), scope.resolve(prefix)),
        };
        let local = self.push(local);
        let value = offset(self.arena.len());
        // libxml's SAX interface has ampersands in attributes as `&#38;`.
        if memchr::memchr(b'&', written.as_bytes()).is_none() {
            self.arena.extend_from_slice(written.as_bytes());
        } else {
            self.arena.extend_from_slice(unescape(&written.replace("&amp;", "&amp;#38;")).as_bytes());
        }
        let value_len = offset(self.arena.len()) - value;
        self.arena.push(0);
        self.attributes.push(Attribute { local, prefix, namespace, value, value_len });
    }

    fn flush_text(&mut self) {
        if self.text.is_empty() {
            return;
        }
        let text = std::mem::take(&mut self.text);
        let start = self.push(&text);
        self.events.push(Event::Text { start, len: offset(text.len()) });
        self.text = text;
        self.text.clear();
    }

    fn push(&mut self, text: &str) -> u32 {
        let at = offset(self.arena.len());
        self.arena.extend_from_slice(text.as_bytes());
        self.arena.push(0);
        at
    }
}

/// Offsets are half as large as pointers: a payload is far smaller than 4 GiB, and its arena hardly larger.
fn offset(at: usize) -> u32 {
    u32::try_from(at).expect("a payload is smaller than 4 GiB")
}

/// The namespace declarations in scope, with what each one hides.
#[derive(Default)]
struct Scope<'a> {
    default: Text,
    prefixes: HashMap<&'a str, Text>,
    hidden: Vec<(&'a str, Text)>,
    /// For each open element the length of `hidden` before it.
    open: Vec<usize>,
}

impl<'a> Scope<'a> {
    fn enter(&mut self) {
        self.open.push(self.hidden.len());
    }

    fn leave(&mut self) {
        let before = self.open.pop().unwrap_or(0);
        while self.hidden.len() > before {
            if let Some((prefix, uri)) = self.hidden.pop() {
                self.set(prefix, uri);
            }
        }
    }

    fn declare(&mut self, prefix: &'a str, uri: Text) {
        self.hidden.push((prefix, self.resolve(prefix)));
        self.set(prefix, uri);
    }

    fn set(&mut self, prefix: &'a str, uri: Text) {
        if prefix.is_empty() {
            self.default = uri;
        } else {
            self.prefixes.insert(prefix, uri);
        }
    }

    fn resolve(&self, prefix: &str) -> Text {
        if prefix.is_empty() { self.default } else { self.prefixes.get(prefix).copied().flatten() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn string(events: &Events, at: u32) -> &str {
        let bytes = &events.arena[at as usize..];
        std::str::from_utf8(&bytes[..bytes.iter().position(|&b| b == 0).unwrap()]).unwrap()
    }

    #[test]
    fn names_are_resolved_and_text_is_whole() {
        let mut events = Events::default();
        events.read("<a xmlns=\"urn:1\"><p:b xmlns:p=\"urn:2\" k=\"&amp;#38;\" p:l=\"x\">1<?pi?>2&lt;</p:b><c xmlns=\"\"></c><d></d></a>");
        let names: Vec<_> = events
            .events
            .iter()
            .map(|event| match *event {
                Event::Start { local, namespace, .. } => {
                    format!("<{} {}", string(&events, local), namespace.map_or("-", |at| string(&events, at)))
                }
                Event::Text { start, len } => {
                    assert_eq!(string(&events, start).len(), len as usize);
                    string(&events, start).to_owned()
                }
                Event::End { local, .. } => format!("/{}", string(&events, local)),
            })
            .collect();
        assert_eq!(names, ["<a urn:1", "<b urn:2", "12<", "/b", "<c -", "/c", "<d urn:1", "/d", "/a"]);
        let values: Vec<_> = events.attributes.iter().map(|a| string(&events, a.value)).collect();
        assert_eq!(values, ["&#38;#38;", "x"]);
        assert_eq!(events.attributes[0].namespace, None);
        assert_eq!(events.attributes[1].namespace.map(|at| string(&events, at)), Some("urn:2"));
    }
}
