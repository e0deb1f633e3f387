//! The meaning of a document, independent of its spelling.

use roxmltree::{Document, Node};
use systole_xml::ladder::repair::Shape;

/// A form in which two documents are equal if they mean the same: attributes sorted, references and
/// CDATA sections resolved, names expanded, comments and instructions left out. White space counts.
pub(crate) fn of(bytes: &[u8], shape: Shape) -> Result<String, String> {
    parse(bytes, shape, |root| {
        let mut out = String::new();
        let top = if shape == Shape::Fragment { root.first_element_child().unwrap_or(root) } else { root };
        let keep = |node: &Node<'_, '_>| node.is_element();
        top.children().filter(keep).for_each(|child| write(child, &mut out));
        out
    })
}

fn parse<T>(bytes: &[u8], shape: Shape, read: impl FnOnce(Node<'_, '_>) -> T) -> Result<T, String> {
    let text = std::str::from_utf8(bytes).map_err(|error| error.to_string())?;
    let wrapped;
    let text = match shape {
        Shape::Document => text,
        Shape::Fragment => {
            let start = if text.starts_with("<?xml ") { text.find("?>").map_or(0, |end| end + 2) } else { 0 };
            wrapped = format!("<w>{}</w>", &text[start..]);
            &wrapped
        }
    };
    let document = Document::parse(text).map_err(|error| error.to_string())?;
    Ok(read(document.root()))
}

fn write(node: Node<'_, '_>, out: &mut String) {
    if node.is_text() {
        out.push_str(&format!("{:?}", node.text().unwrap_or_default()));
    }
    if !node.is_element() {
        return;
    }
    let name = node.tag_name();
    out.push_str(&format!("<{{{}}}{}", name.namespace().unwrap_or_default(), name.name()));
    let mut attributes: Vec<String> = node
        .attributes()
        .map(|attribute| {
            format!(" {{{}}}{}={:?}", attribute.namespace().unwrap_or_default(), attribute.name(), attribute.value())
        })
        .collect();
    attributes.sort();
    attributes.iter().for_each(|attribute| out.push_str(attribute));
    out.push('>');
    node.children().for_each(|child| write(child, out));
    out.push_str("</>");
}
