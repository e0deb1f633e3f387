//! A schema document as one canonical element that keeps its meaning inside of a message.
//!
//! Exclusive canonicalization keeps a namespace declaration only where an element or attribute name uses its
//! prefix. A schema uses prefixes in values (`type="tns:Add"`), so each such prefix gets an attribute without
//! meaning on the root, `tns:used=""`, which XML Schema allows; names in a default namespace get a prefix.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::documents::{attribute, canonical, tree};
use super::needed::{is_kept, needed};
use super::tree::{Child, NodeId, Tree};
use crate::ladder::Canonical;
use crate::vocab::{QName, ns};

/// The attributes whose values are QNames, or lists of them (XSD 1.0 part 1).
const REFERENCES: [&str; 8] =
    ["type", "ref", "base", "itemType", "memberTypes", "substitutionGroup", "refer", "defaultOpenContent"];
/// The attributes with paths of QNames.
const PATHS: [&str; 1] = ["xpath"];

/// The part of a schema document that a global element needs, as one document.
pub(in crate::schema) fn part(document: &str, element: &QName) -> Option<Canonical> {
    let tree = tree(document)?;
    let needed = needed(&tree, element);
    embed(&tree, |id| is_kept(&tree, id, &needed))
}

/// The embeddable form of the top-level parts of a document for which `is_kept` is true.
fn embed(tree: &Tree, is_kept: impl Fn(NodeId) -> bool) -> Option<Canonical> {
    let mut out = Embedding { tree, prefixes: BTreeMap::new() };
    let mut body = String::new();
    let mut between = None;
    for child in tree.children(0) {
        match child {
            Child::Element(id) if is_kept(id) => {
                between.take().into_iter().for_each(|text| escape(&mut body, text));
                out.element(&mut body, id);
            }
            Child::Element(_) => {}
            Child::Text(text) => between = Some(text),
        }
    }
    between.into_iter().for_each(|text| escape(&mut body, text));
    let mut text = String::from("<xs:schema");
    let _ = write!(text, " xmlns:xs=\"{}\"", ns::XSD);
    out.attributes(&mut text, 0);
    for (uri, prefix) in &out.prefixes {
        let _ = write!(text, " xmlns:{prefix}=\"{}\" {prefix}:used=\"\"", attribute(uri));
    }
    text.push('>');
    text.push_str(&body);
    text.push_str("</xs:schema>");
    canonical(text)
}

fn escape(out: &mut String, text: &str) {
    text.chars().for_each(|c| match c {
        '&' => out.push_str("&amp;"),
        '<' => out.push_str("&lt;"),
        '>' => out.push_str("&gt;"),
        '\r' => out.push_str("&#xD;"),
        c => out.push(c),
    });
}

struct Embedding<'a> {
    tree: &'a Tree,
    /// The prefixes of the namespaces that are used in values, by namespace name.
    prefixes: BTreeMap<String, String>,
}

impl Embedding<'_> {
    /// Writes the children of an element. Recurses at most 256 deep: schema documents are checked for that.
    fn children(&mut self, out: &mut String, id: NodeId) {
        for child in self.tree.children(id) {
            match child {
                Child::Element(child) => self.element(out, child),
                Child::Text(text) => escape(out, text),
            }
        }
    }

    fn element(&mut self, out: &mut String, id: NodeId) {
        let node = self.tree.node(id);
        // A foreign element keeps its name, under a default namespace.
        let own = node.namespace == ns::XSD;
        let name = if own { format!("xs:{}", node.local) } else { node.local.to_owned() };
        let _ = write!(out, "<{name}");
        if !own {
            let _ = write!(out, " xmlns=\"{}\"", attribute(node.namespace));
        }
        self.attributes(out, id);
        out.push('>');
        self.children(out, id);
        let _ = write!(out, "</{name}>");
    }

    fn attributes(&mut self, out: &mut String, id: NodeId) {
        let node = self.tree.node(id);
        let mut foreign = 0;
        for (name, value) in self.tree.attributes(id) {
            let Some((prefix, local)) = name.split_once(':') else {
                let own = node.namespace == ns::XSD;
                let value = match name {
                    reference if own && REFERENCES.contains(&reference) => self.references(id, value),
                    path if own && PATHS.contains(&path) => self.path(id, value),
                    _ => value.to_owned(),
                };
                let _ = write!(out, " {name}=\"{}\"", attribute(&value));
                continue;
            };
            // The mark of an earlier embedding is written again where it is needed.
            if (local, value) == ("used", "") && id == 0 {
                continue;
            }
            if prefix == "xml" {
                let _ = write!(out, " {name}=\"{}\"", attribute(value));
                continue;
            }
            foreign += 1;
            let uri = attribute(self.tree.resolve(id, prefix));
            let _ = write!(out, " xmlns:f{foreign}=\"{uri}\" f{foreign}:{local}=\"{}\"", attribute(value));
        }
    }

    fn references(&mut self, id: NodeId, names: &str) -> String {
        names.split_whitespace().map(|name| self.reference(id, name)).collect::<Vec<_>>().join(" ")
    }

    fn reference(&mut self, id: NodeId, name: &str) -> String {
        let (prefix, local) = name.split_once(':').unwrap_or(("", name));
        match self.tree.resolve(id, prefix) {
            "" => local.to_owned(),
            ns::XSD => format!("xs:{local}"),
            ns::XML => format!("xml:{local}"),
            uri => format!("{}:{local}", self.prefix(uri)),
        }
    }

    /// The names in a path of an identity constraint. Only those with a prefix are in a namespace.
    fn path(&mut self, id: NodeId, path: &str) -> String {
        let is_name = |c: char| crate::vocab::is_ncname(&format!("a{c}")) || c == ':';
        let mut out = String::new();
        let mut rest = path;
        while !rest.is_empty() {
            let end = rest.find(|c| !is_name(c)).unwrap_or(rest.len());
            let (name, behind) = rest.split_at(end);
            let (axis, name) = name.rfind("::").map_or(("", name), |at| name.split_at(at + 2));
            out.push_str(axis);
            match name.contains(':') {
                true => out.push_str(&self.reference(id, name)),
                false => out.push_str(name),
            }
            let separator = behind.chars().next().map_or(0, char::len_utf8);
            out.push_str(&behind[..separator]);
            rest = &behind[separator..];
        }
        out
    }

    fn prefix(&mut self, uri: &str) -> String {
        let target = self.tree.get(0, "targetNamespace") == Some(uri);
        let number = self.prefixes.len();
        let new = if target { "tns".to_owned() } else { format!("n{number}") };
        self.prefixes.entry(uri.to_owned()).or_insert(new).clone()
    }
}
