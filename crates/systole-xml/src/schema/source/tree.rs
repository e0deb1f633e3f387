//! The elements of a schema document.

mod builder;

use std::ops::Range;
use std::sync::Arc;

use crate::vocab::ns;
use builder::Builder;

/// The elements of a schema document, in document order; the first is its root.
///
/// Names and values are ranges of the document, and the attributes and texts of all elements share lists: an element
/// takes some 60 bytes.
#[derive(Debug)]
pub(in crate::schema) struct Tree {
    document: Arc<str>,
    /// Values and texts that differ from their written form in the document.
    resolved: String,
    elements: Vec<Element>,
    /// The attributes of all elements, one element after the other, without declarations.
    attributes: Vec<Attribute>,
    /// The declarations of all elements, one element after the other, behind [`NONE`](Tree::NONE) and
    /// [`XML`](Tree::XML).
    declarations: Vec<Declaration>,
    texts: Vec<Text>,
}

pub(in crate::schema) type NodeId = usize;

/// An element.
#[derive(Debug, Clone)]
pub(in crate::schema) struct Node<'a> {
    /// The prefix, as written.
    pub(in crate::schema) prefix: &'a str,
    pub(in crate::schema) namespace: &'a str,
    pub(in crate::schema) local: &'a str,
    /// The bytes of the start tag.
    pub(in crate::schema) tag: Range<usize>,
    /// The bytes of the element.
    pub(in crate::schema) whole: Range<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::schema) enum Child<'a> {
    Element(NodeId),
    Text(&'a str),
}

/// An element, by offsets into the document and indexes into the lists of the tree.
#[derive(Debug)]
struct Element {
    /// Start and end of the start tag, and end of the element.
    tag: u32,
    content: u32,
    end: u32,
    /// Lengths of the prefix and of the whole name.
    prefix: u32,
    name: u32,
    parent: u32,
    /// The first element behind its descendants.
    next: u32,
    /// Index of the declaration of its prefix.
    namespace: u32,
    /// The first attribute, declaration and text. Those of the next element stand behind its own, except for texts.
    attributes: u32,
    declarations: u32,
    text: u32,
}

#[derive(Debug)]
struct Attribute {
    /// The name, as written.
    name: Span,
    value: Span,
}

#[derive(Debug)]
struct Declaration {
    prefix: Span,
    name: Arc<str>,
    /// True if the name is that of XML Schema.
    is_own: bool,
}

impl Declaration {
    fn new(prefix: Span, name: Arc<str>) -> Self {
        Self { prefix, is_own: *name == *ns::XSD, name }
    }
}

/// Text between two tags.
#[derive(Debug)]
struct Text {
    span: Span,
    /// The next element that starts.
    before: u32,
    /// The next text of the same parent.
    next: u32,
}

/// A range of the document, or of the resolved texts, whose offsets continue those of the document.
#[derive(Debug, Clone, Copy)]
struct Span {
    start: u32,
    end: u32,
}

/// An index that stands for none.
const NOWHERE: u32 = u32::MAX;

impl Tree {
    /// Index of the declaration of a name without prefix where no default namespace is declared.
    const NONE: u32 = 0;
    /// Index of the declaration of the prefix `xml`, which needs none in the document.
    const XML: u32 = 1;

    /// The tree of a text that passed the strict pass. Any other text yields some tree or none.
    pub(in crate::schema) fn parse(document: impl Into<Arc<str>>) -> Option<Self> {
        let document = document.into();
        // A resolved text is at most as long as the written one.
        u32::try_from(document.len().checked_mul(2)?).ok()?;
        let nowhere = Span { start: 0, end: 0 };
        let declarations = ["", ns::XML].map(|name| Declaration::new(nowhere, name.into()));
        let mut tree = Self {
            document,
            resolved: String::new(),
            elements: Vec::new(),
            attributes: Vec::new(),
            declarations: declarations.into(),
            texts: Vec::new(),
        };
        Builder::new(&mut tree).read()?;
        tree.elements.shrink_to_fit();
        tree.attributes.shrink_to_fit();
        (!tree.elements.is_empty()).then_some(tree)
    }

    /// The text of the document.
    pub(in crate::schema) fn document(&self) -> &str {
        &self.document
    }

    /// All elements, in document order.
    pub(in crate::schema) fn ids(&self) -> Range<NodeId> {
        0..self.elements.len()
    }

    pub(in crate::schema) fn node(&self, id: NodeId) -> Node<'_> {
        let element = &self.elements[id];
        let (prefix, local) = element.names(&self.document);
        let [tag, content, end] = [element.tag, element.content, element.end].map(index);
        let namespace = &*self.declarations[index(element.namespace)].name;
        Node { prefix, namespace, local, tag: tag..content, whole: tag..end }
    }

    /// The attributes of an element without declarations: names as written, values with references resolved.
    pub(in crate::schema) fn attributes(&self, id: NodeId) -> impl Iterator<Item = (&str, &str)> {
        self.attributes_of(id).iter().map(|attribute| (self.text(attribute.name), self.text(attribute.value)))
    }

    fn attributes_of(&self, id: NodeId) -> &[Attribute] {
        let end = self.elements.get(id + 1).map_or(self.attributes.len(), |next| index(next.attributes));
        &self.attributes[index(self.elements[id].attributes)..end]
    }

    /// The prefixes that an element declares, each with its namespace name.
    pub(in crate::schema) fn declarations(&self, id: NodeId) -> impl Iterator<Item = (&str, &str)> {
        let own = &self.declarations[self.declared(id)];
        own.iter().map(|declaration| (self.text(declaration.prefix), &*declaration.name))
    }

    /// The direct children of an element: elements and texts.
    pub(in crate::schema) fn children(&self, id: NodeId) -> impl Iterator<Item = Child<'_>> {
        let (mut next, mut text) = (id + 1, self.elements[id].text);
        let end = index(self.elements[id].next);
        std::iter::from_fn(move || {
            if let Some(found) = self.texts.get(index(text))
                && (index(found.before) <= next || next >= end)
            {
                text = found.next;
                return Some(Child::Text(self.text(found.span)));
            }
            let child = (next < end).then_some(next)?;
            next = index(self.elements[child].next);
            Some(Child::Element(child))
        })
    }

    /// The child elements in the namespace of XML Schema.
    pub(in crate::schema) fn parts(&self, id: NodeId) -> impl Iterator<Item = NodeId> + '_ {
        let end = index(self.elements[id].next);
        let children =
            std::iter::successors(Some(id + 1), |child| self.elements.get(*child).map(|child| index(child.next)));
        children.take_while(move |child| *child < end).filter(|child| self.is_part(*child))
    }

    /// All elements but annotations and their content, in document order.
    pub(in crate::schema) fn outside_annotations(&self) -> impl Iterator<Item = NodeId> + '_ {
        let mut next = 0;
        std::iter::from_fn(move || {
            while self.elements.get(next).is_some_and(|_| self.is_part(next) && self.node(next).local == "annotation") {
                next = index(self.elements[next].next);
            }
            let id = (next < self.elements.len()).then_some(next)?;
            next += 1;
            Some(id)
        })
    }

    /// Returns whether an element is in the namespace of XML Schema.
    fn is_part(&self, id: NodeId) -> bool {
        self.declarations[index(self.elements[id].namespace)].is_own
    }

    /// The value of an attribute without namespace.
    pub(in crate::schema) fn get(&self, id: NodeId, attribute: &str) -> Option<&str> {
        self.untrimmed(id, attribute).map(|value| value.trim_matches([' ', '\t', '\n', '\r']))
    }

    /// The value of an attribute without namespace, white space around it included.
    pub(in crate::schema) fn untrimmed(&self, id: NodeId, attribute: &str) -> Option<&str> {
        // Most names have another length, which is known without the text.
        let named = |known: &&Attribute| known.name.len() == attribute.len() && self.text(known.name) == attribute;
        self.attributes_of(id).iter().find(named).map(|known| self.text(known.value))
    }

    /// The namespace name that a prefix is bound to at a node; empty for none.
    pub(in crate::schema) fn resolve(&self, id: NodeId, prefix: &str) -> &str {
        self.bound(id, prefix)
    }

    /// The namespace name as by [`Self::resolve`], but shared, so that it can be kept.
    pub(in crate::schema) fn bound(&self, id: NodeId, prefix: &str) -> &Arc<str> {
        &self.declarations[index(self.declaration(id, prefix))].name
    }

    /// Index of the declaration of a prefix at a node.
    fn declaration(&self, mut id: NodeId, prefix: &str) -> u32 {
        if prefix == "xml" {
            return Self::XML;
        }
        loop {
            if let Some(at) = self.declared(id).find(|at| self.text(self.declarations[*at].prefix) == prefix) {
                return place(at);
            }
            match self.parent(id) {
                Some(parent) => id = parent,
                None => return Self::NONE,
            }
        }
    }

    /// Indexes of the declarations of an element.
    fn declared(&self, id: NodeId) -> Range<usize> {
        let end = self.elements.get(id + 1).map_or(self.declarations.len(), |next| index(next.declarations));
        index(self.elements[id].declarations)..end
    }

    /// A prefix that is bound to a namespace at a node.
    pub(in crate::schema) fn prefix_of(&self, id: NodeId, namespace: &str) -> Option<&str> {
        let declared = self.ancestors(id).flat_map(|id| self.declarations(id));
        let mut prefixes = declared.map(|(prefix, _)| prefix).filter(|prefix| !prefix.is_empty());
        prefixes.find(|prefix| self.resolve(id, prefix) == namespace)
    }

    /// An element and all elements around it, innermost first.
    pub(in crate::schema) fn ancestors(&self, id: NodeId) -> impl Iterator<Item = NodeId> + '_ {
        std::iter::successors(Some(id), |id| self.parent(*id))
    }

    fn parent(&self, id: NodeId) -> Option<NodeId> {
        Some(self.elements[id].parent).filter(|parent| *parent != NOWHERE).map(index)
    }

    /// The docs of a component.
    pub(in crate::schema) fn documentation(&self, id: NodeId) -> String {
        let notes = self.parts(id).filter(|part| self.node(*part).local == "annotation");
        let docs = notes.flat_map(|note| self.parts(note)).filter(|part| self.node(*part).local == "documentation");
        let texts: Vec<String> = docs.map(|doc| unindented(&self.text_of(doc))).filter(|doc| !doc.is_empty()).collect();
        texts.join("\n\n")
    }

    /// All text inside of an element.
    fn text_of(&self, id: NodeId) -> String {
        let mut text = String::new();
        let mut open = vec![self.children(id)];
        while let Some(children) = open.last_mut() {
            match children.next() {
                Some(Child::Text(part)) => text.push_str(part),
                Some(Child::Element(id)) => open.push(self.children(id)),
                None => drop(open.pop()),
            }
        }
        text
    }

    fn text(&self, span: Span) -> &str {
        let [start, end] = [span.start, span.end].map(index);
        match start < self.document.len() {
            true => &self.document[start..end],
            false => &self.resolved[start - self.document.len()..end - self.document.len()],
        }
    }
}

impl Span {
    fn len(self) -> usize {
        index(self.end - self.start)
    }
}

impl Element {
    /// The prefix and the local name.
    fn names<'a>(&self, document: &'a str) -> (&'a str, &'a str) {
        let start = index(self.tag) + "<".len();
        let prefix = index(self.prefix);
        let colon = usize::from(prefix > 0);
        (&document[start..start + prefix], &document[start + prefix + colon..start + index(self.name)])
    }
}

/// An offset or index in 32 bits: the document is shorter than 2 GiB.
fn place(at: usize) -> u32 {
    at as u32
}

fn index(place: u32) -> usize {
    place as usize
}

/// Docs without their indentation in the document.
fn unindented(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    lines.join("\n").trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The content of an element, in depth: names, attributes and texts.
    fn shown(tree: &Tree, id: NodeId) -> String {
        let node = tree.node(id);
        let attributes: String = tree.attributes(id).map(|(name, value)| format!(" {name}={value}")).collect();
        let inside = tree.children(id).map(|child| match child {
            Child::Element(id) => shown(tree, id),
            Child::Text(text) => format!("'{text}'"),
        });
        format!("{{{}}}{}{attributes}({})", node.namespace, node.local, inside.collect::<String>())
    }

    #[test]
    fn a_tree_has_what_stands_in_its_document() {
        for (document, expected) in [
            ("<a/>", "{}a()"),
            ("<a>1<b/>2<c>3<d/></c><e>4</e>5</a>", "{}a('1'{}b()'2'{}c('3'{}d()){}e('4')'5')"),
            ("<a>1&amp;2<![CDATA[<]]>&#x41;<b/>&lt;</a>", "{}a('1''&''2''<''A'{}b()'<')"),
            ("<a k='1' l='&lt;2&gt;' m=' 3\n'/>", "{}a k=1 l=<2> m= 3 ()"),
            ("<a k=''><b k=\"x\"/></a>", "{}a k=({}b k=x())"),
            (
                "<a xmlns='urn:1' xmlns:p='urn:2'><p:b p:k='1' xml:lang='en'/><c xmlns=''/></a>",
                "{urn:1}a({urn:2}b p:k=1 xml:lang=en(){}c())",
            ),
            ("<!-- x --><a>1<!-- y -->2<?z?>3</a>\n", "{}a('1''2''3')"),
        ] {
            let tree = Tree::parse(document).unwrap();
            assert_eq!(shown(&tree, 0), expected, "{document}");
        }
    }

    #[test]
    fn a_node_knows_its_bytes_and_what_is_around_it() {
        let document =
            "<s:a xmlns:s='http://www.w3.org/2001/XMLSchema' xmlns:t='urn:t'>\n<b><s:c k='t:x'>1</s:c></b><s:d/></s:a>";
        let tree = Tree::parse(document).unwrap();
        let [a, b, c, d] = [0, 1, 2, 3];
        assert_eq!(&document[tree.node(c).tag], "<s:c k='t:x'>");
        assert_eq!(&document[tree.node(c).whole], "<s:c k='t:x'>1</s:c>");
        assert_eq!(&document[tree.node(d).whole.clone()], "<s:d/>");
        assert_eq!(tree.node(a).whole, 0..document.len());
        assert_eq!((tree.parts(a).collect::<Vec<_>>(), tree.parts(b).collect::<Vec<_>>()), (vec![d], vec![c]));
        assert_eq!(tree.ancestors(c).collect::<Vec<_>>(), [c, b, a]);
        assert_eq!((tree.resolve(c, "t"), tree.resolve(c, ""), tree.resolve(c, "u")), ("urn:t", "", ""));
        assert_eq!(tree.resolve(c, "xml"), ns::XML);
        assert_eq!(tree.prefix_of(c, "urn:t"), Some("t"));
        assert_eq!((tree.get(c, "k"), tree.get(c, "l")), (Some("t:x"), None));
        assert_eq!(tree.declarations(a).count(), 2);
        assert_eq!(tree.text_of(a), "\n1");
    }
}
