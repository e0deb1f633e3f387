//! The tape of a canonical document: the places of its elements, attributes and texts, found once.
//!
//! The strict pass leaves it behind; a document without one is scanned for it. Later steps go from element to
//! element by a [`Cursor`] instead of searching the bytes again; finding a value, or passing a subtree, is one step.
//!
//! A tape is only ever used for the document that it was made of. It belongs to the OS thread and not to the
//! message: a message that waits in a mailbox carries none.

mod cursor;
mod tag;

pub(crate) use cursor::Cursor;
pub(crate) use tag::{Attribute, Attributes, Tag};

use super::scan::{self, ScanToken, Scanner, find, split_prefix};

/// The elements of one document, in document order.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Tape {
    nodes: Vec<Node>,
    /// The attributes of all elements, one element after the other.
    attributes: Vec<Place>,
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
    /// Bits for its content, child elements apart.
    marks: u8,
}

/// An attribute or a namespace declaration, by offsets into the document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    /// Start of its name, and of the local part.
    name: u32,
    local: u32,
    /// Start and end of its value, inside of the quotes.
    value: u32,
    end: u32,
}

const NONE: u32 = u32::MAX;

/// Mark of text with character references.
const REFERENCES: u8 = 1;
/// Mark of processing instructions, which divide the text.
const INSTRUCTIONS: u8 = 2;

impl Tape {
    pub(super) fn clear(&mut self) {
        self.nodes.clear();
        self.attributes.clear();
    }

    /// A cursor at the begin of the document of the tape.
    pub(super) fn cursor<'a>(&'a self, text: &'a str) -> Cursor<'a> {
        Cursor::new(text, self)
    }

    /// Records a start tag that begins at `at`. Returns the number of the element.
    #[inline]
    pub(super) fn start(&mut self, at: usize, local: usize, name_end: usize, parent: Option<u32>) -> u32 {
        let number = offset(self.nodes.len());
        self.nodes.push(Node {
            at: offset(at),
            local: offset(local),
            name_end: offset(name_end),
            content: 0,
            close: 0,
            next: 0,
            parent: parent.unwrap_or(NONE),
            attributes: offset(self.attributes.len()),
            marks: 0,
        });
        number
    }

    /// Records an attribute of the element that started last: the start of its name, the lengths of the name and of the
    /// prefix with the colon, and the end of its value.
    #[inline]
    pub(super) fn attribute(&mut self, name: usize, length: usize, prefix: usize, end: usize) {
        let value = name + length + "=\"".len();
        let (local, end) = (offset(name + prefix), offset(end));
        self.attributes.push(Place { name: offset(name), local, value: offset(value), end });
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
        self.nodes[element as usize].marks |= REFERENCES;
    }

    /// Records a processing instruction in an element.
    pub(super) fn instruction(&mut self, element: u32) {
        self.nodes[element as usize].marks |= INSTRUCTIONS;
    }

    /// Records a document. For bytes that are not canonical, or 4 GiB long, the tape stays empty.
    pub(super) fn read(&mut self, text: &str) {
        self.clear();
        if u32::try_from(text.len()).is_err() || self.scan(text).is_none() {
            self.clear();
        }
    }

    fn scan(&mut self, text: &str) -> Option<()> {
        let mut scanner = Scanner::new(text);
        let mut open = None;
        loop {
            let behind = scanner.offset();
            let token = scanner.next();
            let at = match token {
                None if open.is_none() && scanner.offset() == text.len() => return Some(()),
                None => return None,
                Some(ScanToken::Start(tag)) => {
                    let at = scanner.offset() - tag.len();
                    if open.is_none() && !self.nodes.is_empty() {
                        return None;
                    }
                    at
                }
                Some(ScanToken::Text(written)) => scanner.offset() - written.len(),
                Some(ScanToken::End) => {
                    let node = self.nodes[open? as usize];
                    let name = &text[node.at as usize + 1..node.name_end as usize];
                    let at = scanner.offset().checked_sub(name.len() + "</>".len())?;
                    (text.get(at + 2..)?.starts_with(name)).then_some(at)?
                }
            };
            if let (Some(element), true) = (open, at > behind) {
                self.instruction(element);
            }
            match token? {
                ScanToken::Start(tag) => {
                    let name_end = at + 1 + tag.name().len();
                    let element = self.start(at, name_end - tag.local().len(), name_end, open);
                    self.scan_attributes(name_end, tag);
                    self.content(element, scanner.offset());
                    open = Some(element);
                }
                ScanToken::Text(written) => {
                    if find(written.as_bytes(), b'&').is_some() {
                        self.reference(open?);
                    }
                    open?;
                }
                ScanToken::End => {
                    let element = open?;
                    self.end(element, at);
                    open = Some(self.nodes[element as usize].parent).filter(|parent| *parent != NONE);
                }
            }
        }
    }

    /// Records the attributes of the element that started last, whose name ends at `at`.
    fn scan_attributes(&mut self, at: usize, tag: scan::Tag) {
        let mut at = at;
        for (name, value) in tag.attributes() {
            let (start, prefix) = (at + 1, name.len() - split_prefix(name).1.len());
            at = start + name.len() + "=\"".len() + value.len();
            self.attribute(start, name.len(), prefix, at);
            at += 1;
        }
    }

    /// Makes the tape of one element as a document of its own, `text`, which differs from its bytes in this document at
    /// most in the attributes of the root.
    pub(super) fn subtree(&self, element: usize, text: &str, tape: &mut Self) -> Option<()> {
        let Some(ScanToken::Start(tag)) = Scanner::new(text).next() else { return None };
        let (root, first) = (self.nodes[element], offset(element));
        let nodes = &self.nodes[element..root.next as usize];
        let length = (root.close + (root.name_end - root.at) + 2) - root.at;
        let shift = offset(text.len()).wrapping_sub(length).wrapping_sub(root.at);
        tape.clear();
        tape.start(0, (root.local - root.at) as usize, (root.name_end - root.at) as usize, None);
        tape.scan_attributes(1 + tag.name().len(), tag);
        let below = nodes.get(1).map_or(0, |child| child.attributes);
        let behind = self.nodes.get(root.next as usize).map_or(self.attributes.len(), |next| next.attributes as usize);
        let renumbered = offset(tape.attributes.len()).wrapping_sub(below);
        let moved = |node: &Node| Node {
            at: node.at.wrapping_add(shift),
            local: node.local.wrapping_add(shift),
            name_end: node.name_end.wrapping_add(shift),
            content: node.content.wrapping_add(shift),
            close: node.close.wrapping_add(shift),
            next: node.next - first,
            parent: node.parent - first,
            attributes: node.attributes.wrapping_add(renumbered),
            marks: node.marks,
        };
        tape.nodes.extend(nodes[1..].iter().map(moved));
        let top = &mut tape.nodes[0];
        (top.content, top.close) = (root.content.wrapping_add(shift), root.close.wrapping_add(shift));
        (top.next, top.marks) = (root.next - first, root.marks);
        if nodes.len() > 1 {
            let moved = |place: &Place| Place {
                name: place.name.wrapping_add(shift),
                local: place.local.wrapping_add(shift),
                value: place.value.wrapping_add(shift),
                end: place.end.wrapping_add(shift),
            };
            tape.attributes.extend(self.attributes[below as usize..behind].iter().map(moved));
        }
        Some(())
    }

    /// Frees the memory, if a large document has left much.
    pub(super) fn shrink(&mut self) {
        const KEPT: usize = 1 << 15;
        if self.nodes.capacity() > KEPT || self.attributes.capacity() > KEPT {
            *self = Self::default();
        }
    }
}

/// An offset as recorded. Documents are shorter than 4 GiB: the strict pass takes and writes no more.
#[inline]
fn offset(at: usize) -> u32 {
    at as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tape(text: &str) -> Tape {
        let mut tape = Tape::default();
        tape.read(text);
        tape
    }

    /// The tokens that a cursor finds: start tags by their names, texts, `/` for each end tag.
    fn walked(text: &str) -> Vec<String> {
        let tape = tape(text);
        let mut cursor = tape.cursor(text);
        let mut found = Vec::new();
        loop {
            if let Some(text) = cursor.text() {
                found.push(format!("'{}' {}", text.written, text.references));
            } else if let Some(tag) = cursor.enter() {
                found.push(format!("{} {}", tag.name(), tag.attributes().count()));
            } else if cursor.is_inside() {
                cursor.leave();
                found.push("/".to_owned());
            } else {
                return found;
            }
        }
    }

    #[test]
    fn tokens_stand_where_the_tape_says() {
        let text = "<a xmlns=\"urn:x\" k=\"1>\">t&amp;<?p <b> ?>u<p:b xmlns:p=\"urn:p\"></p:b>v</a>";
        let expected = ["a 2", "'t&amp;' true", "'u' true", "p:b 1", "/", "'v' true", "/"];
        assert_eq!(walked(text), expected);
    }

    #[test]
    fn of_what_is_not_canonical_nothing_is_kept() {
        for text in
            ["", "a", "<a", "<a>", "</a>", "<a></a><b></b>", "<a></a>b", "b<a></a>", "<a></b>", "<a>\u{e9}</\u{e9}>"]
        {
            assert_eq!(walked(text), [""; 0], "{text}");
        }
    }

    #[test]
    fn a_part_of_a_tape_is_the_tape_of_the_part() {
        let text = "<a k=\"1\"><?p?><b>&lt;</b><c xmlns=\"\"><d p:k=\"2\">1</d>2<e><f l=\"\"></f></e></c><g></g></a>";
        for (element, part) in [
            (0, text),
            (1, "<b>&lt;</b>"),
            (2, "<c><d p:k=\"2\">1</d>2<e><f l=\"\"></f></e></c>"),
            (2, "<c xmlns=\"urn:longer\"><d p:k=\"2\">1</d>2<e><f l=\"\"></f></e></c>"),
            (6, "<g></g>"),
        ] {
            let whole = tape(text);
            let mut found = tape("<x></x>");
            whole.subtree(element, part, &mut found).unwrap();
            assert_eq!(found, tape(part), "{part}");
        }
    }

    #[test]
    fn values_are_taken_whole_and_subtrees_passed_at_once() {
        let text = "<a><b>1&lt;</b><c>1<?p?>&lt;2</c><d>x<e></e>y</d><f></f></a>";
        let tape = tape(text);
        let mut cursor = tape.cursor(text);
        cursor.enter();
        let mut contents = Vec::new();
        while cursor.enter().is_some() {
            let content = cursor.content();
            if content.is_none() {
                cursor.leave();
            }
            contents.push(content.map(String::from));
        }
        assert_eq!(contents, [Some("1<".to_owned()), Some("1<2".to_owned()), None, Some(String::new())]);
        cursor.leave();
        assert!(!cursor.is_inside() && cursor.elements() == 6);
    }
}
