//! The walk along a tape.

use std::borrow::Cow;

use super::uris::Marked;
use super::{NONE, Node, Tag, Tape, Uri};
use crate::ladder::scan::{ScanToken, Scanner, unescape_into};

/// A place in a document between two of its tokens. A copy is cheap, and serves to look ahead, or to come back.
///
/// In bytes that are not canonical it finds no token.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cursor<'a> {
    text: &'a str,
    tape: &'a Tape,
    at: usize,
    /// The number of the next element.
    next: usize,
    /// The innermost open element and, behind its last descendant, the number of the next one.
    open: u32,
    limit: usize,
}

/// Text as written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Text<'a> {
    pub(crate) written: &'a str,
    /// True if it may hold character references.
    pub(crate) references: bool,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(text: &'a str, tape: &'a Tape) -> Self {
        let limit = tape.nodes.len().min(1);
        Self { text, tape, at: 0, next: 0, open: NONE, limit }
    }

    /// The document.
    pub(crate) fn document(&self) -> &'a str {
        self.text
    }

    /// Number of start tags passed, which is the number of the next element, in document order, from 0.
    #[inline]
    pub(crate) fn elements(&self) -> usize {
        self.next
    }

    /// Returns whether an element is open.
    #[inline]
    pub(crate) fn is_inside(&self) -> bool {
        self.open != NONE
    }

    /// The start tag of the next child of the innermost open element, wherever in its content the cursor is.
    #[inline]
    pub(crate) fn child(&self) -> Option<Tag<'a>> {
        if self.next < self.limit { Some(self.tape.tag(self.text, self.next)) } else { None }
    }

    /// Moves behind the start tag of [`child`](Self::child).
    #[inline]
    pub(crate) fn enter(&mut self) -> Option<Tag<'a>> {
        if self.next >= self.limit {
            return None;
        }
        let node = &self.tape.nodes[self.next];
        self.open = u32::try_from(self.next).ok()?;
        self.at = node.content as usize;
        self.limit = node.next as usize;
        let tag = self.tape.tag(self.text, self.next);
        self.next += 1;
        Some(tag)
    }

    /// Moves behind the end tag of the innermost open element, past all that stands before it.
    #[inline]
    pub(crate) fn leave(&mut self) {
        let Some(node) = self.tape.nodes.get(self.open as usize) else { return };
        self.at = (node.close + (node.name_end - node.at)) as usize + 2;
        self.next = self.limit;
        self.open = node.parent;
        self.limit = match self.tape.nodes.get(node.parent as usize) {
            Some(parent) => parent.next as usize,
            None => 0,
        };
    }

    /// The text up to the next tag; if instructions divide it, the first piece. Moves behind it.
    #[inline(always)]
    pub(crate) fn text(&mut self) -> Option<Text<'a>> {
        let node = self.tape.nodes.get(self.open as usize)?;
        let stop = if self.next < self.limit { self.tape.nodes[self.next].at } else { node.close } as usize;
        if self.at >= stop {
            return None;
        }
        let references = node.uri.has(Marked::REFERENCES);
        if node.uri.has(Marked::INSTRUCTIONS) {
            return self.divided_text(stop, references);
        }
        let written = &self.text[self.at..stop];
        self.at = stop;
        Some(Text { written, references })
    }

    /// The text of the element that was just entered, if only text stands between its tags; moves behind its end
    /// tag. Else `None`, without a move.
    #[inline]
    pub(crate) fn value(&mut self) -> Option<Text<'a>> {
        let node = self.tape.nodes.get(self.open as usize)?;
        if self.next < self.limit || self.at != node.content as usize || node.uri.has(Marked::INSTRUCTIONS) {
            return None;
        }
        let written = &self.text[self.at..node.close as usize];
        let references = node.uri.has(Marked::REFERENCES);
        self.leave();
        Some(Text { written, references })
    }

    /// The text as by [`Self::value`], if it has no references either.
    #[inline]
    pub(crate) fn plain_value(&mut self) -> Option<&'a str> {
        let written = self.plain_text()?;
        self.leave();
        Some(written)
    }

    /// The text of [`Self::plain_value`], without a move.
    #[inline(always)]
    pub(crate) fn plain_text(&self) -> Option<&'a str> {
        let node = self.tape.nodes.get(self.open as usize)?;
        let is_plain = !node.uri.has(Marked::REFERENCES | Marked::INSTRUCTIONS);
        let is_text = is_plain && self.next >= self.limit && self.at == node.content as usize;
        is_text.then(|| &self.text[self.at..node.close as usize])
    }

    /// The text of the element that was just entered, with its references resolved; moves behind its end tag. `None` if
    /// it holds an element.
    #[inline]
    pub(crate) fn content(&mut self) -> Option<Cow<'a, str>> {
        match self.plain_value() {
            Some(written) => Some(Cow::Borrowed(written)),
            None => self.resolved(),
        }
    }

    #[inline(never)]
    fn resolved(&mut self) -> Option<Cow<'a, str>> {
        let mut buffer = String::new();
        Some(self.content_in(&mut buffer)?.map_or(Cow::Owned(buffer), Cow::Borrowed))
    }

    /// The text as by [`Self::content`]; `Some(None)` if it can't be borrowed: then `buffer` holds it.
    pub(crate) fn content_in(&mut self, buffer: &mut String) -> Option<Option<&'a str>> {
        match self.value() {
            Some(Text { written, references: false }) => Some(Some(written)),
            Some(Text { written, .. }) => {
                buffer.clear();
                buffer.reserve(written.len());
                unescape_into(buffer, written);
                Some(None)
            }
            None => self.pieces(buffer).map(|()| None),
        }
    }

    fn pieces(&mut self, buffer: &mut String) -> Option<()> {
        buffer.clear();
        while let Some(text) = self.text() {
            unescape_into(buffer, text.written);
        }
        if self.next < self.limit || !self.is_inside() {
            return None;
        }
        self.leave();
        Some(())
    }

    /// The range of an element in the document, with its tags.
    pub(crate) fn range(&self, element: usize) -> std::ops::Range<usize> {
        let node = &self.tape.nodes[element];
        node.at as usize..(node.close + (node.name_end - node.at)) as usize + 2
    }

    /// The start tag of an element by its number.
    pub(crate) fn tag(&self, element: usize) -> Option<Tag<'a>> {
        (element < self.tape.nodes.len()).then(|| self.tape.tag(self.text, element))
    }

    /// The parent of an element.
    pub(crate) fn parent(&self, element: usize) -> Option<usize> {
        let parent = self.tape.nodes[element].parent;
        (parent != NONE).then_some(parent as usize)
    }

    /// Returns whether an element is `inner`, or around it.
    pub(crate) fn encloses(&self, element: usize, inner: usize) -> bool {
        (element..self.tape.nodes[element].next as usize).contains(&inner)
    }

    /// The name of a namespace.
    #[inline]
    pub(crate) fn uri_name(&self, uri: Uri) -> &'a str {
        self.tape.uris.name(uri)
    }

    /// The number of a namespace, if a name in the document may be in it.
    pub(crate) fn find_uri(&self, name: &str) -> Option<Uri> {
        self.tape.uris.find(name)
    }

    /// The bound of the numbers of namespaces: one more than the greatest.
    pub(crate) fn uris(&self) -> usize {
        self.tape.uris.len()
    }

    /// Returns whether an element and all elements in it have a prefix.
    pub(crate) fn all_prefixed(&self, element: usize) -> bool {
        let nodes = &self.tape.nodes[element..self.tape.nodes[element].next as usize];
        nodes.iter().all(Node::is_prefixed)
    }

    #[inline(never)]
    fn divided_text(&mut self, stop: usize, references: bool) -> Option<Text<'a>> {
        let mut pieces = Scanner::starting(&self.text[..stop], self.at);
        let piece = pieces.next();
        self.at = pieces.offset();
        match piece {
            Some(ScanToken::Text(written)) => Some(Text { written, references }),
            _ => None,
        }
    }
}
