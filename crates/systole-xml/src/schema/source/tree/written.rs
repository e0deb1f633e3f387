//! Documents that are written together with their trees, so that nothing has to parse them.

use std::borrow::Cow;
use std::ops::Range;

use super::{NodeId, Tree};
use crate::ladder::escape::{EscapeContext, carriable, escape_lossy};

/// A writer of a document, each element on a line of its own.
pub(in crate::schema) struct Pen {
    text: String,
    parts: Vec<Part>,
    /// The names of the elements that have not ended.
    open: Vec<&'static str>,
    elements: NodeId,
    size: Size,
}

/// The measures of a document that are limited.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::schema) struct Size {
    /// The number of elements, annotations left out.
    pub(in crate::schema) elements: usize,
    /// The greatest number of elements inside of each other.
    pub(in crate::schema) depth: usize,
    /// The bytes of the longest value of an attribute.
    pub(in crate::schema) value: usize,
}

/// A part of a document, by its bytes.
pub(super) enum Part {
    Start { tag: Range<usize>, name: usize, attributes: Vec<(Range<usize>, Characters)> },
    Text(Characters),
    End(usize),
}

/// Characters, as bytes of the document or, if those have references, by themselves.
pub(super) enum Characters {
    Written(Range<usize>),
    Resolved(String),
}

impl Characters {
    pub(super) fn of<'d>(&'d self, document: &'d str) -> Cow<'d, str> {
        match self {
            Self::Written(range) => document[range.clone()].into(),
            Self::Resolved(text) => text.into(),
        }
    }
}

impl Pen {
    /// A writer that has written the XML declaration.
    pub(in crate::schema) fn new() -> Self {
        let text = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n".to_owned();
        Self { text, parts: Vec::new(), open: Vec::new(), elements: 0, size: Size::default() }
    }

    /// Starts an element.
    pub(in crate::schema) fn start(&mut self, name: &'static str, attributes: &[(&str, &str)]) {
        self.tag(name, attributes, ">");
        self.text.push('\n');
    }

    /// The id that the element to start next has in the tree.
    pub(in crate::schema) fn next(&self) -> NodeId {
        self.elements
    }

    /// Writes an element without content.
    pub(in crate::schema) fn empty(&mut self, name: &'static str, attributes: &[(&str, &str)]) {
        self.tag(name, attributes, "/>");
        self.close();
    }

    /// Writes an element with text alone.
    pub(in crate::schema) fn text(&mut self, name: &'static str, text: &str) {
        self.tag(name, &[], ">");
        let characters = self.characters(text, EscapeContext::Text);
        self.parts.push(Part::Text(characters));
        self.end_tag();
    }

    /// Ends the element that started last.
    pub(in crate::schema) fn end(&mut self) {
        self.text.extend(std::iter::repeat_n(' ', 2 * self.open.len().saturating_sub(1)));
        self.end_tag();
    }

    /// The tree with its document, and the size of the document.
    pub(in crate::schema) fn finish(self) -> (Option<Tree>, Size) {
        let parts = self.parts;
        (Tree::made(self.text.into(), |builder| builder.place(&parts)), self.size)
    }

    fn tag(&mut self, name: &'static str, attributes: &[(&str, &str)], end: &str) {
        self.text.extend(std::iter::repeat_n(' ', 2 * self.open.len()));
        let start = self.text.len();
        self.text.push('<');
        self.text.push_str(name);
        let mut written = Vec::with_capacity(attributes.len());
        for (attribute, value) in attributes {
            self.text.push(' ');
            let at = self.text.len();
            self.text.push_str(attribute);
            let at = at..self.text.len();
            self.text.push_str("=\"");
            self.size.value = self.size.value.max(value.len());
            written.push((at, self.characters(value, EscapeContext::Attribute)));
            self.text.push('"');
        }
        self.text.push_str(end);
        self.parts.push(Part::Start { tag: start..self.text.len(), name: name.len(), attributes: written });
        self.open.push(name);
        self.elements += 1;
        self.size.elements += usize::from(!matches!(name, "xs:annotation" | "xs:documentation"));
        self.size.depth = self.size.depth.max(self.open.len());
    }

    fn characters(&mut self, text: &str, place: EscapeContext) -> Characters {
        let start = self.text.len();
        escape_lossy(&mut self.text, text, place);
        match self.text[start..] == *text {
            true => Characters::Written(start..self.text.len()),
            false => Characters::Resolved(carriable(text).into_owned()),
        }
    }

    fn end_tag(&mut self) {
        if let Some(name) = self.open.last() {
            self.text.push_str("</");
            self.text.push_str(name);
            self.text.push('>');
        }
        self.close();
    }

    fn close(&mut self) {
        self.open.pop();
        self.parts.push(Part::End(self.text.len()));
        self.text.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_written_document_has_the_tree_of_its_text() {
        let mut pen = Pen::new();
        let schema = [("xmlns:xs", "http://www.w3.org/2001/XMLSchema"), ("xmlns:t", "urn:a?b=1&c=2"), ("id", "é")];
        pen.start("xs:schema", &schema);
        assert_eq!(pen.next(), 1);
        pen.start("xs:annotation", &[]);
        pen.text("xs:documentation", "a < b\r\n& \u{1}c\n\n  ]]> \"d\"");
        pen.end();
        pen.empty("xs:pattern", &[("value", "[<&>'\"\t\n\r]\\d"), ("id", "")]);
        pen.start("t:x", &[("name", "  ")]);
        pen.empty("y", &[]);
        pen.text("xs:documentation", "");
        pen.end();
        pen.end();
        let (tree, size) = pen.finish();
        let tree = tree.unwrap();
        let read = Tree::parse(tree.document()).unwrap();
        let shown = |tree: &Tree| -> Vec<String> {
            let each = |id| {
                let attributes: Vec<_> = tree.attributes(id).collect();
                let declarations: Vec<_> = tree.declarations(id).collect();
                let around: Vec<_> = tree.ancestors(id).collect();
                format!("{:?} {attributes:?} {declarations:?} {around:?} {}", tree.node(id), tree.documentation(id))
            };
            tree.ids().map(each).collect()
        };
        assert_eq!(shown(&tree), shown(&read), "{}", tree.document());
        assert_eq!((tree.ids().len(), size.elements, size.depth), (7, 4, 3));
        assert_eq!(tree.documentation(0), "a < b\n& \u{FFFD}c\n\n]]> \"d\"");
    }
}
