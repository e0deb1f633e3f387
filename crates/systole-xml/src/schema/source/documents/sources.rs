//! Documents for libxml: one main text, and the documents that it refers to by locations which the loader knows.

use super::{Documents, attribute};
use crate::schema::libxml2::Source;
use crate::schema::source::tree::NodeId;
use crate::vocab::ns;

/// Stand-in for a missing included document: either nothing of it is needed, or the engine refuses the schema.
const ABSENT: &str = "systole-schema:absent";

impl Documents {
    /// A main text that refers to these documents, and all documents that it refers to, directly or through others.
    pub(in crate::schema) fn sources(&self, roots: &[usize]) -> (String, Vec<Source>) {
        let mut wrappers = Vec::new();
        let mut others: Vec<Source> = Vec::new();
        let reached = self.reached(roots);
        for index in (0..reached.len()).filter(|index| reached[*index]) {
            let text = self.linked_text(index, &mut wrappers);
            others.push(Source { url: url(index), text });
        }
        let mut namespaces: Vec<(&str, Vec<usize>)> = Vec::new();
        for &root in roots {
            let target = self.documents[root].target.as_str();
            match namespaces.iter_mut().find(|(namespace, _)| *namespace == target) {
                Some((_, documents)) => documents.push(root),
                None => namespaces.push((target, vec![root])),
            }
        }
        let links = namespaces.into_iter().map(|(namespace, documents)| {
            let location = self.location(&documents, "main", &mut wrappers);
            if namespace.is_empty() {
                format!("<xs:include schemaLocation=\"{location}\"/>")
            } else {
                format!("<xs:import namespace=\"{}\" schemaLocation=\"{location}\"/>", attribute(namespace))
            }
        });
        let main = format!("<xs:schema xmlns:xs=\"{}\">{}</xs:schema>", ns::XSD, links.collect::<String>());
        others.append(&mut wrappers);
        others.push(Source { url: ABSENT.to_owned(), text: format!("<xs:schema xmlns:xs=\"{}\"/>", ns::XSD) });
        (main, others)
    }

    /// The name of the document of a URL of [`sources`](Self::sources).
    pub(in crate::schema) fn named_by(&self, location: &str) -> Option<&str> {
        let document = (0..self.documents.len()).find(|index| url(*index) == location);
        document.map(|index| self.documents[index].name.as_str())
    }

    /// The text of a document whose links refer to the URLs that the loader knows.
    fn linked_text(&self, index: usize, wrappers: &mut Vec<Source>) -> String {
        let document = &self.documents[index];
        let mut text = document.tree.document().to_owned();
        let mut links: Vec<(NodeId, Option<String>)> = Vec::new();
        for link in &document.links {
            let location = self.location(&link.to, &format!("{index}.{}", link.node), wrappers);
            links.push((link.node, Some(location)));
        }
        for (_, _, node) in self.missing.iter().filter(|(_, by, _)| *by == index) {
            let imports = document.tree.node(*node).local == "import";
            links.push((*node, (!imports).then(|| ABSENT.to_owned())));
        }
        links.sort_unstable_by_key(|(node, _)| *node);
        for (node, location) in links.into_iter().rev() {
            let tag = document.tree.node(node).tag.clone();
            let linked = relocated(&document.tree.document()[tag.clone()], location.as_deref());
            text.replace_range(tag, &linked);
        }
        text
    }

    /// The URL of a document; for several, that of a wrapper: libxml takes one document for a namespace.
    fn location(&self, documents: &[usize], wrapper: &str, wrappers: &mut Vec<Source>) -> String {
        if let [one] = documents {
            return url(*one);
        }
        let target = documents.first().map_or("", |first| &self.documents[*first].target);
        let url = format!("systole-schema:{wrapper}.{}", wrappers.len());
        wrappers.push(Source { url: url.clone(), text: self.wrapper(documents, target) });
        url
    }

    /// A document that includes all documents of one namespace.
    fn wrapper(&self, documents: &[usize], target: &str) -> String {
        let target =
            if target.is_empty() { String::new() } else { format!(" targetNamespace=\"{}\"", attribute(target)) };
        let includes: String =
            documents.iter().map(|index| format!("<xs:include schemaLocation=\"{}\"/>", url(*index))).collect();
        format!("<xs:schema xmlns:xs=\"{}\"{target}>{includes}</xs:schema>", ns::XSD)
    }
}

/// A tag with another `schemaLocation`, or without one.
fn relocated(tag: &str, target: Option<&str>) -> String {
    let attribute = target.map_or_else(String::new, |target| format!(" schemaLocation=\"{target}\""));
    let end_of_name = tag.find([' ', '\t', '\n', '\r', '/', '>']).unwrap_or(tag.len());
    let mut tag = tag.to_owned();
    let old = tag[end_of_name..].find("schemaLocation").map(|at| at + end_of_name);
    if let Some(old) = old {
        let quote = tag[old..].find(['"', '\'']).map(|at| at + old);
        let end = quote.and_then(|open| tag[open + 1..].find(&tag[open..=open]).map(|at| at + open + 2));
        tag.replace_range(old..end.unwrap_or(old), "");
    }
    tag.insert_str(end_of_name, &attribute);
    tag
}

fn url(index: usize) -> String {
    format!("systole-schema:{index}")
}
