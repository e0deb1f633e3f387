//! Valid markup of schema documents that rarely means what its author intends.

use crate::schema::shorten::quoted;
use crate::schema::source::documents::Documents;
use crate::schema::source::tree::{NodeId, Tree};
use crate::vocab::{Position, ns};

/// Valid markup of a schema document that rarely means what its author intends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pitfall {
    /// The name of the document.
    pub document: String,
    /// The place of the start tag.
    pub at: Position,
    /// The effect of the markup.
    pub message: String,
    /// The markup to write instead.
    pub help: &'static str,
}

/// The pitfalls in the given documents.
pub(super) fn pitfalls(documents: &Documents) -> Vec<Pitfall> {
    let mut found = Vec::new();
    for document in (0..documents.given).map(|index| documents.get(index)) {
        let tree = &document.tree;
        let mut note = |attribute: Option<&str>, node, message, help| {
            let at = attribute.map_or(document.position(node), |name| document.position_of_attribute(node, name));
            found.push(Pitfall { document: document.name.clone(), at, message, help });
        };
        let own: Vec<NodeId> = tree.ids().filter(|id| is_own(tree, *id)).collect();
        let says = |attribute| tree.get(0, attribute).is_some();
        if says("targetNamespace")
            && !says("elementFormDefault")
            && let Some(local) = own.iter().find(|id| is_bare_local(tree, **id))
        {
            let name = quoted(tree.get(*local, "name").unwrap_or_default());
            let message = format!(
                "elements inside of others, such as <{name}>, are in no namespace: elementFormDefault is missing"
            );
            note(
                None,
                0,
                message,
                "write elementFormDefault=\"qualified\", so that they are in the targetNamespace, or \"unqualified\" if they are to be in none",
            );
        }
        let is_missing = |node: &NodeId| {
            tree.node(*node).local == "include" && !document.links.iter().any(|link| link.node == *node)
        };
        for include in tree.parts(0).filter(is_missing) {
            let location = quoted(tree.get(include, "schemaLocation").unwrap_or_default());
            let message = format!("the included document '{location}' is not given: its declarations are missing");
            note(
                Some("schemaLocation"),
                include,
                message,
                "give it with the others (schemas: of the listener), or remove the xs:include",
            );
        }
        for pattern in own.iter().filter(|id| is_anchored(tree, **id)) {
            let message =
                "'^' and '$' are characters in this pattern: a pattern of XML Schema always holds for the whole value";
            note(Some("value"), *pattern, message.to_owned(), "leave them out");
        }
    }
    found
}

/// Returns whether an element is of XML Schema and outside of annotations.
pub(super) fn is_own(tree: &Tree, id: NodeId) -> bool {
    let is_annotation = |id| tree.node(id).namespace == ns::XSD && tree.node(id).local == "annotation";
    tree.node(id).namespace == ns::XSD && !tree.ancestors(id).any(is_annotation)
}

/// Returns whether it declares an element inside of others without a `form`.
fn is_bare_local(tree: &Tree, id: NodeId) -> bool {
    let is_local = tree.ancestors(id).nth(1).is_some_and(|parent| parent != 0);
    is_local && tree.node(id).local == "element" && tree.get(id, "name").is_some() && tree.get(id, "form").is_none()
}

/// Returns whether it is a pattern with anchors, as other dialects of regular expressions have them.
fn is_anchored(tree: &Tree, id: NodeId) -> bool {
    let value = tree.get(id, "value").unwrap_or_default();
    tree.node(id).local == "pattern" && has_anchor(value)
}

/// Returns whether a `^` or `$` stands at the start or the end of an alternative of a pattern.
fn has_anchor(pattern: &str) -> bool {
    let mut before = '(';
    let mut classes = 0usize;
    let mut chars = pattern.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\\' => drop(chars.next()),
            '[' => classes += 1,
            ']' => classes = classes.saturating_sub(1),
            '^' if classes == 0 && matches!(before, '(' | '|') => return true,
            '$' if classes == 0 && matches!(chars.peek(), None | Some(')' | '|')) => return true,
            _ => {}
        }
        before = if c == '\\' { 'x' } else { c };
    }
    false
}

#[cfg(test)]
mod tests {
    use crate::schema::{XsdDocument, XsdSet};

    fn told(attributes: &str, content: &str) -> Vec<(u32, &'static str)> {
        let text =
            format!("<xs:schema xmlns:xs='http://www.w3.org/2001/XMLSchema' {attributes}>\n{content}\n</xs:schema>");
        let found = XsdSet::read(&[XsdDocument { name: "t.xsd".into(), text }]).unwrap().pitfalls();
        found.into_iter().map(|pitfall| (pitfall.at.line, pitfall.help.split(',').next().unwrap_or_default())).collect()
    }

    #[test]
    fn local_elements_without_a_namespace_are_noted_where_the_schema_does_not_say_so() {
        let qualify = [(1, "write elementFormDefault=\"qualified\"")];
        let local = "<xs:element name='r'><xs:complexType><xs:sequence><xs:element name='a'/></xs:sequence></xs:complexType></xs:element>";
        assert_eq!(told("targetNamespace='urn:t'", local), qualify);
        assert_eq!(told("targetNamespace='urn:t' elementFormDefault='unqualified'", local), []);
        assert_eq!(told("", local), []);
        assert_eq!(told("targetNamespace='urn:t'", &local.replace("'a'", "'a' form='unqualified'")), []);
        assert_eq!(told("targetNamespace='urn:t'", "<xs:element name='r'/>"), []);
        let sample = format!("<xs:annotation><xs:appinfo>{local}</xs:appinfo></xs:annotation><xs:element name='r'/>");
        assert_eq!(told("targetNamespace='urn:t'", &sample), []);
    }

    #[test]
    fn anchors_in_patterns_are_noted() {
        for (pattern, is_noted) in [
            ("^[0-9]+$", true),
            ("[0-9]+$", true),
            ("^a", true),
            ("[0-9]+", false),
            ("a^b", false),
            ("[$^]", false),
            ("(^a|b)$", true),
            ("a$|b", true),
            ("a\\$", false),
            ("\\(^", false),
            ("[^$]", false),
        ] {
            let content = format!(
                "<xs:simpleType name='T'><xs:restriction base='xs:string'>\n<xs:pattern value='{pattern}'/></xs:restriction></xs:simpleType>"
            );
            assert_eq!(told("", &content).len(), usize::from(is_noted), "{pattern}");
        }
    }

    #[test]
    fn included_documents_that_are_not_given_are_told() {
        let text = "<xs:schema xmlns:xs='http://www.w3.org/2001/XMLSchema'>\n<xs:include schemaLocation='other.xsd'/>\
                    <xs:import namespace='urn:o' schemaLocation='o.xsd'/><xs:element name='r'/></xs:schema>";
        let found = XsdSet::read(&[XsdDocument { name: "t.xsd".into(), text: text.into() }]).unwrap().pitfalls();
        let [only] = &found[..] else { panic!("{found:?}") };
        assert_eq!(only.at.line, 2);
        assert!(only.message.contains("'other.xsd' is not given"), "{}", only.message);
    }
}
