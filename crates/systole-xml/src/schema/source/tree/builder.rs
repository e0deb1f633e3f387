//! The builder of trees.

use std::borrow::Cow;
use std::ops::Range;

use quick_xml::Reader;
use quick_xml::events::{BytesRef, BytesStart, Event};

use super::{Attribute, Declaration, Element, NOWHERE, NodeId, Span, Text, Tree, index, place};
use crate::ladder::scan::declared_prefix;

/// A builder of a tree.
pub(super) struct Builder<'t> {
    tree: &'t mut Tree,
    /// The elements that have not ended, each with its last text.
    open: Vec<(NodeId, u32)>,
}

impl<'t> Builder<'t> {
    /// A builder for a tree without elements.
    pub(super) fn new(tree: &'t mut Tree) -> Self {
        Self { tree, open: Vec::new() }
    }

    /// Adds the elements of the document; `None` if it can't be parsed.
    pub(super) fn read(mut self) -> Option<()> {
        let document = self.tree.document.clone();
        let mut reader = Reader::from_str(&document);
        loop {
            let start = usize::try_from(reader.buffer_position()).ok()?;
            let event = reader.read_event().ok()?;
            let end = usize::try_from(reader.buffer_position()).ok()?;
            match event {
                Event::Start(tag) => self.read_tag(&tag, start..end),
                Event::Empty(tag) => {
                    self.read_tag(&tag, start..end);
                    self.close(end)?;
                }
                Event::End(_) => self.close(end)?,
                Event::Text(text) => self.text(text.xml10_content()),
                Event::CData(text) => self.text(text.xml10_content()),
                Event::GeneralRef(reference) => self.text(character(&reference).unwrap_or_default().into()),
                Event::Eof => {
                    while self.close(end).is_some() {}
                    return Some(());
                }
                Event::Comment(_) | Event::Decl(_) | Event::PI(_) | Event::DocType(_) => {}
            }
        }
    }

    fn read_tag(&mut self, tag: &BytesStart, span: Range<usize>) {
        let mut attributes = tag.attributes();
        let attributes = attributes.with_checks(false).flatten().map(|attribute| {
            let value = attribute.normalized_value(quick_xml::XmlVersion::Implicit1_0).unwrap_or_default();
            (attribute.key.into_inner(), value)
        });
        self.element(tag.name().into_inner(), span, attributes);
    }

    /// Starts an element.
    fn element<'v>(
        &mut self,
        name: &str,
        span: Range<usize>,
        attributes: impl Iterator<Item = (&'v str, Cow<'v, str>)>,
    ) {
        let id = self.tree.elements.len();
        self.tree.elements.push(Element {
            tag: place(span.start),
            content: place(span.end),
            end: place(span.end),
            prefix: place(name.find(':').unwrap_or(0)),
            name: place(name.len()),
            parent: self.open.last().map_or(NOWHERE, |(parent, _)| place(*parent)),
            next: place(id + 1),
            namespace: Tree::NONE,
            attributes: place(self.tree.attributes.len()),
            declarations: place(self.tree.declarations.len()),
            text: NOWHERE,
        });
        for (name, value) in attributes {
            match declared_prefix(name) {
                Some(prefix) => {
                    let prefix = self.span(prefix.into());
                    self.tree.declarations.push(Declaration::new(prefix, value.into()));
                }
                None => {
                    let attribute = Attribute { name: self.span(name.into()), value: self.span(value) };
                    self.tree.attributes.push(attribute);
                }
            }
        }
        let prefix = self.tree.elements[id].names(&self.tree.document).0;
        self.tree.elements[id].namespace = self.tree.declaration(id, prefix);
        self.open.push((id, NOWHERE));
    }

    /// Ends the element that started last.
    fn close(&mut self, end: usize) -> Option<()> {
        let (id, _) = self.open.pop()?;
        let next = place(self.tree.elements.len());
        let element = &mut self.tree.elements[id];
        (element.end, element.next) = (place(end), next);
        Some(())
    }

    fn text(&mut self, text: Cow<str>) {
        let before = place(self.tree.elements.len());
        let span = self.span(text);
        let Some((open, last)) = self.open.last_mut() else { return };
        let new = place(self.tree.texts.len());
        let slot = match self.tree.texts.get_mut(index(*last)) {
            Some(last) => &mut last.next,
            None => &mut self.tree.elements[*open].text,
        };
        (*slot, *last) = (new, new);
        self.tree.texts.push(Text { span, before, next: NOWHERE });
    }

    /// The range of a text in the document. A text that is not part of it is added to the resolved ones.
    fn span(&mut self, text: Cow<str>) -> Span {
        let within = match &text {
            Cow::Borrowed(text) => text.as_ptr().addr().checked_sub(self.tree.document.as_ptr().addr()),
            Cow::Owned(_) => None,
        };
        let start =
            within.filter(|start| start.saturating_add(text.len()) <= self.tree.document.len()).unwrap_or_else(|| {
                self.tree.resolved.push_str(&text);
                self.tree.document.len() + self.tree.resolved.len() - text.len()
            });
        Span { start: place(start), end: place(start + text.len()) }
    }
}

/// The character of a reference.
fn character(reference: &BytesRef) -> Option<String> {
    if let Some(character) = reference.resolve_char_ref().ok()? {
        return Some(character.to_string());
    }
    let character = match &*reference.xml10_content() {
        "amp" => "&",
        "lt" => "<",
        "gt" => ">",
        "quot" => "\"",
        "apos" => "'",
        _ => return None,
    };
    Some(character.to_owned())
}
