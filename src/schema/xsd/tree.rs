use std::sync::Arc;

use quick_xml::Reader;
use quick_xml::events::{BytesRef, BytesStart, Event};

use crate::ladder::scan::declared_prefix;
use crate::vocab::ns;

/// The elements of a schema document, in document order; the first is its root.
#[derive(Debug, Clone)]
pub(in crate::schema) struct Tree {
    nodes: Vec<Node>,
    /// The namespace of the prefix `xml`, which needs no declaration.
    xml: Arc<str>,
    /// The namespace of names without one.
    none: Arc<str>,
}

pub(in crate::schema) type NodeId = usize;

#[derive(Debug, Clone)]
pub(in crate::schema) struct Node {
    /// As it is written.
    pub(in crate::schema) prefix: String,
    pub(in crate::schema) namespace: Arc<str>,
    pub(in crate::schema) local: String,
    /// Names as they are written, values without references; no declarations.
    pub(in crate::schema) attributes: Vec<(String, String)>,
    /// Prefix and namespace name.
    pub(in crate::schema) declarations: Vec<(String, Arc<str>)>,
    pub(in crate::schema) children: Vec<Child>,
    parent: Option<NodeId>,
    /// The bytes of the start tag.
    pub(in crate::schema) tag: std::ops::Range<usize>,
    /// The byte behind its end tag.
    end: usize,
}

impl Node {
    /// The bytes of the element.
    pub(in crate::schema) fn whole(&self) -> std::ops::Range<usize> {
        self.tag.start..self.end
    }
}

#[derive(Debug, Clone)]
pub(in crate::schema) enum Child {
    Element(NodeId),
    Text(String),
}

impl Tree {
    /// The tree of a text that passed the strict pass; what did not yields some tree or none.
    pub(in crate::schema) fn parse(text: &str) -> Option<Self> {
        let mut reader = Reader::from_str(text);
        let mut tree = Self { nodes: Vec::new(), xml: ns::XML.into(), none: "".into() };
        let mut open: Vec<NodeId> = Vec::new();
        loop {
            let start = usize::try_from(reader.buffer_position()).ok()?;
            let event = reader.read_event().ok()?;
            let end = usize::try_from(reader.buffer_position()).ok()?;
            match event {
                Event::Start(tag) => open.push(tree.open(&tag, open.last().copied(), start..end)),
                Event::Empty(tag) => drop(tree.open(&tag, open.last().copied(), start..end)),
                Event::End(_) => tree.nodes[open.pop()?].end = end,
                Event::Text(text) => tree.text(open.last(), &text.xml10_content()),
                Event::CData(text) => tree.text(open.last(), &text.xml10_content()),
                Event::GeneralRef(reference) => tree.text(open.last(), &character(&reference).unwrap_or_default()),
                Event::Eof => return Some(tree).filter(|tree| !tree.nodes.is_empty()),
                Event::Comment(_) | Event::Decl(_) | Event::PI(_) | Event::DocType(_) => {}
            }
        }
    }

    /// All elements, in document order.
    pub(in crate::schema) fn ids(&self) -> std::ops::Range<NodeId> {
        0..self.nodes.len()
    }

    pub(in crate::schema) fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id]
    }

    /// The child elements in the namespace of XML Schema.
    pub(in crate::schema) fn parts(&self, id: NodeId) -> impl Iterator<Item = NodeId> + '_ {
        self.nodes[id].children.iter().filter_map(|child| match child {
            Child::Element(id) if &*self.nodes[*id].namespace == ns::XSD => Some(*id),
            Child::Element(_) | Child::Text(_) => None,
        })
    }

    /// The value of an attribute without namespace.
    pub(in crate::schema) fn get(&self, id: NodeId, attribute: &str) -> Option<&str> {
        self.untrimmed(id, attribute).map(|value| value.trim_matches([' ', '\t', '\n', '\r']))
    }

    /// The value of an attribute without namespace, white space around it included.
    pub(in crate::schema) fn untrimmed(&self, id: NodeId, attribute: &str) -> Option<&str> {
        let found = self.nodes[id].attributes.iter().find(|(name, _)| name == attribute);
        found.map(|(_, value)| value.as_str())
    }

    /// The namespace name that a prefix is bound to at a node; empty for none.
    pub(in crate::schema) fn resolve(&self, id: NodeId, prefix: &str) -> &str {
        self.bound(id, prefix)
    }

    /// The same, to be kept.
    pub(in crate::schema) fn bound(&self, mut id: NodeId, prefix: &str) -> &Arc<str> {
        if prefix == "xml" {
            return &self.xml;
        }
        loop {
            let node = &self.nodes[id];
            if let Some((_, uri)) = node.declarations.iter().find(|(declared, _)| declared == prefix) {
                return uri;
            }
            match node.parent {
                Some(parent) => id = parent,
                None => return &self.none,
            }
        }
    }

    /// A prefix that is bound to a namespace at a node.
    pub(in crate::schema) fn prefix_of(&self, id: NodeId, namespace: &str) -> Option<&str> {
        let declared = self.ancestors(id).flat_map(|id| &self.nodes[id].declarations);
        let mut prefixes = declared.map(|(prefix, _)| &**prefix).filter(|prefix| !prefix.is_empty());
        prefixes.find(|prefix| self.resolve(id, prefix) == namespace)
    }

    /// An element and all that it stands in, from inside out.
    pub(in crate::schema) fn ancestors(&self, id: NodeId) -> impl Iterator<Item = NodeId> + '_ {
        std::iter::successors(Some(id), |id| self.nodes[*id].parent)
    }

    /// The docs of a component.
    pub(in crate::schema) fn documentation(&self, id: NodeId) -> String {
        let notes = self.parts(id).filter(|part| self.nodes[*part].local == "annotation");
        let docs = notes.flat_map(|note| self.parts(note)).filter(|part| self.nodes[*part].local == "documentation");
        let texts: Vec<String> = docs.map(|doc| unindented(&self.text_of(doc))).filter(|doc| !doc.is_empty()).collect();
        texts.join("\n\n")
    }

    /// All text inside of an element.
    fn text_of(&self, id: NodeId) -> String {
        let mut text = String::new();
        let mut pending: Vec<&Child> = self.nodes[id].children.iter().rev().collect();
        while let Some(child) = pending.pop() {
            match child {
                Child::Text(part) => text.push_str(part),
                Child::Element(id) => pending.extend(self.nodes[*id].children.iter().rev()),
            }
        }
        text
    }

    fn open(&mut self, tag: &BytesStart, parent: Option<NodeId>, span: std::ops::Range<usize>) -> NodeId {
        let name = tag.name().into_inner().to_owned();
        let (prefix, local) = name.split_once(':').unwrap_or(("", &name));
        let (mut attributes, mut declarations) = (Vec::new(), Vec::new());
        for attribute in tag.attributes().with_checks(false).flatten() {
            let name = attribute.key.into_inner();
            let value = attribute.normalized_value(quick_xml::XmlVersion::Implicit1_0).unwrap_or_default().into_owned();
            match declared_prefix(name) {
                Some(prefix) => declarations.push((prefix.to_owned(), value.into())),
                None => attributes.push((name.to_owned(), value)),
            }
        }
        let id = self.nodes.len();
        let (prefix, local) = (prefix.to_owned(), local.to_owned());
        let node = Node {
            prefix,
            local,
            attributes,
            declarations,
            parent,
            end: span.end,
            tag: span,
            namespace: self.none.clone(),
            children: Vec::new(),
        };
        self.nodes.push(node);
        self.nodes[id].namespace = self.bound(id, &self.nodes[id].prefix).clone();
        if let Some(parent) = parent {
            self.nodes[parent].children.push(Child::Element(id));
        }
        id
    }

    fn text(&mut self, open: Option<&NodeId>, text: &str) {
        let Some(&open) = open else { return };
        match self.nodes[open].children.last_mut() {
            Some(Child::Text(before)) => before.push_str(text),
            _ => self.nodes[open].children.push(Child::Text(text.to_owned())),
        }
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

/// Docs without the indentation that they have in the document.
fn unindented(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    lines.join("\n").trim().to_owned()
}
