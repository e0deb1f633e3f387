//! The tape of a canonical document: the places of its elements, attributes and texts, and their namespaces, found once.
//!
//! The strict pass leaves it behind; a document without one is scanned for it. Later steps go from element to
//! element by a [`Cursor`] instead of searching the bytes again; finding a value, or passing a subtree, is one step.
//! Namespaces are numbers in a table of the tape, so that later steps compare numbers, and look a name up once for a
//! document. Prefixes have a meaning only for values that are qualified names: [`Bindings`] holds those in scope.
//!
//! A tape is only ever used for the document that it was made of. It belongs to the OS thread and not to the
//! message: a message that waits in a mailbox carries none.

mod bindings;
mod cursor;
mod part;
mod read;
mod tag;
#[cfg(test)]
mod tests;
mod uris;

pub(crate) use bindings::Bindings;
pub(crate) use cursor::Cursor;
pub(crate) use tag::{Attribute, Attributes, Tag};
pub(crate) use uris::Uri;
pub(super) use uris::Uris;

use std::ops::Range;

use uris::Marked;

/// The elements of one document, in document order.
#[derive(Debug, Default)]
pub(super) struct Tape {
    nodes: Vec<Node>,
    /// The attributes of all elements, one element after the other.
    attributes: Vec<Place>,
    uris: Uris,
    /// The declarations in scope while a document is scanned.
    scope: Bindings,
}

/// An element, by offsets into the document and numbers of elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Node {
    /// Start of its start tag.
    at: u32,
    /// Start of the local part of its name.
    local: u32,
    name_end: u32,
    /// The end of its start tag.
    content: u32,
    /// Start of its end tag.
    close: u32,
    /// The first element behind its descendants.
    next: u32,
    /// The parent; [`NONE`] for the root.
    parent: u32,
    /// The first attribute; those of the next element stand behind the last one.
    attributes: u32,
    /// The namespace of its name, with marks of its content, child elements apart.
    uri: Marked,
}

impl Node {
    #[inline]
    fn is_prefixed(&self) -> bool {
        self.local != self.at + 1
    }
}

/// An attribute or a namespace declaration, by offsets into the document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    /// Start of its name.
    name: u32,
    /// Start and end of its value, inside of the quotes.
    value: u32,
    end: u32,
    /// The namespace of its name, or the one that it declares, with the mark of a declaration.
    uri: Marked,
}

impl Place {
    /// Returns whether it declares the default namespace.
    fn is_default(&self) -> bool {
        self.uri.has(Marked::DECLARATION) && self.value - self.name == offset("xmlns=\"".len())
    }
}

const NONE: u32 = u32::MAX;

impl Tape {
    pub(super) fn clear(&mut self) {
        self.nodes.clear();
        self.attributes.clear();
        self.uris.clear();
    }

    /// The table of the namespaces that it has recorded.
    pub(super) fn uris_mut(&mut self) -> &mut Uris {
        &mut self.uris
    }

    /// The namespace of the root element, and the place of its local name in its start tag.
    pub(super) fn root(&self) -> (Uri, Range<usize>) {
        let root = &self.nodes[0];
        (root.uri.uri(), (root.local - root.at) as usize..(root.name_end - root.at) as usize)
    }

    /// A cursor at the begin of the document of the tape.
    pub(super) fn cursor<'a>(&'a self, text: &'a str) -> Cursor<'a> {
        Cursor::new(text, self)
    }

    /// Records a start tag that begins at `at`, and its end, which [`Self::content`] may record later. Returns the number
    /// of the element.
    #[inline]
    pub(super) fn start(
        &mut self,
        at: usize,
        local: usize,
        name_end: usize,
        content: usize,
        parent: Option<u32>,
        uri: Uri,
    ) -> u32 {
        let number = offset(self.nodes.len());
        self.nodes.push(Node {
            at: offset(at),
            local: offset(local),
            name_end: offset(name_end),
            content: offset(content),
            close: 0,
            next: 0,
            parent: parent.unwrap_or(NONE),
            attributes: offset(self.attributes.len()),
            uri: Marked::new(uri, 0),
        });
        number
    }

    /// Records an attribute of the element that started last: the start and the length of its name, the end of its value, and
    /// the namespace of its name.
    #[inline]
    pub(super) fn attribute(&mut self, name: usize, length: usize, end: usize, uri: Uri) {
        self.place(name, length, end, Marked::new(uri, 0));
    }

    /// Records a declaration of a namespace likewise.
    #[inline]
    pub(super) fn declaration(&mut self, name: usize, length: usize, end: usize, uri: Uri) {
        self.place(name, length, end, Marked::new(uri, Marked::DECLARATION));
    }

    #[inline]
    fn place(&mut self, name: usize, length: usize, end: usize, uri: Marked) {
        let value = name + length + "=\"".len();
        self.attributes.push(Place { name: offset(name), value: offset(value), end: offset(end), uri });
    }

    #[inline]
    fn tag<'a>(&'a self, text: &'a str, element: usize) -> Tag<'a> {
        let node = &self.nodes[element];
        let end = self.nodes.get(element + 1).map_or(self.attributes.len(), |next| next.attributes as usize);
        Tag::new(text, node, &self.attributes[node.attributes as usize..end])
    }

    /// Records that the start tag of an element ends at `at`.
    #[inline]
    pub(super) fn content(&mut self, element: u32, at: usize) {
        self.nodes[element as usize].content = offset(at);
    }

    /// Records that the end tag of an element begins at `at`.
    #[inline]
    pub(super) fn end(&mut self, element: u32, at: usize) {
        let next = offset(self.nodes.len());
        let node = &mut self.nodes[element as usize];
        (node.close, node.next) = (offset(at), next);
    }

    /// Records a character reference in the text of an element.
    pub(super) fn reference(&mut self, element: u32) {
        self.nodes[element as usize].uri.mark(Marked::REFERENCES);
    }

    /// Records a processing instruction in an element.
    pub(super) fn instruction(&mut self, element: u32) {
        self.nodes[element as usize].uri.mark(Marked::INSTRUCTIONS);
    }

    /// Frees the memory, if a large document has left much.
    pub(super) fn shrink(&mut self) {
        const KEPT: usize = 1 << 15;
        if self.nodes.capacity() > KEPT || self.attributes.capacity() > KEPT || self.uris.is_large(KEPT) {
            *self = Self::default();
        }
        self.scope.shrink(KEPT);
    }
}

/// Equality but for the numbers of namespaces.
impl PartialEq for Tape {
    fn eq(&self, other: &Self) -> bool {
        let is_same = |own: Marked, its: Marked| {
            own == its.of(own.uri()) && self.uris.name(own.uri()) == other.uris.name(its.uri())
        };
        let is_node = |(own, its): (&Node, &Node)| is_same(own.uri, its.uri) && *own == Node { uri: own.uri, ..*its };
        let is_place =
            |(own, its): (&Place, &Place)| is_same(own.uri, its.uri) && *own == Place { uri: own.uri, ..*its };
        self.nodes.len() == other.nodes.len()
            && self.attributes.len() == other.attributes.len()
            && self.nodes.iter().zip(&other.nodes).all(is_node)
            && self.attributes.iter().zip(&other.attributes).all(is_place)
    }
}

/// An offset as recorded. Documents are shorter than 4 GiB: the strict pass takes and writes no more.
#[inline]
fn offset(at: usize) -> u32 {
    at as u32
}
