//! Whether a schema document has the structure of one: the engine judges it by a schema of schemas (`schema.xsd`).

use std::sync::{Arc, LazyLock};

use super::documents::Documents;
use super::read::{Reader, nearest};
use super::tree::Tree;
use crate::ladder::{Canonical, Part};
use crate::schema::engine::{self, ElementId, Grammar, Judge};
use crate::vocab::{Position, ns};

/// Of schema documents, which follow from `schema.xsd`.
static STRUCTURE: LazyLock<(Arc<Grammar>, ElementId)> = LazyLock::new(|| {
    let documents = Documents::of_structure(include_str!("schema.xsd"));
    let reader = Reader::new(&documents);
    let components =
        engine::compile(&reader).unwrap_or_else(|wrong| panic!("the schema of schemas is wrong: {wrong:?}"));
    let grammar = components.into_grammar();
    let root = grammar.element(ns::XSD, "schema").expect("the schema of schemas declares it");
    (grammar, root)
});

/// Elements of XSD 1.1.
const OF_1_1: [&str; 7] =
    ["assert", "assertion", "alternative", "override", "openContent", "defaultOpenContent", "explicitTimezone"];

/// Elements of XSD 1.0.
const ELEMENTS: [&str; 42] = [
    "all",
    "annotation",
    "any",
    "anyAttribute",
    "appinfo",
    "attribute",
    "attributeGroup",
    "choice",
    "complexContent",
    "complexType",
    "documentation",
    "element",
    "enumeration",
    "extension",
    "field",
    "fractionDigits",
    "group",
    "import",
    "include",
    "key",
    "keyref",
    "length",
    "list",
    "maxExclusive",
    "maxInclusive",
    "maxLength",
    "minExclusive",
    "minInclusive",
    "minLength",
    "notation",
    "pattern",
    "redefine",
    "restriction",
    "schema",
    "selector",
    "sequence",
    "simpleContent",
    "simpleType",
    "totalDigits",
    "union",
    "unique",
    "whiteSpace",
];

/// Attributes of XSD 1.0.
const ATTRIBUTES: [&str; 34] = [
    "abstract",
    "attributeFormDefault",
    "base",
    "block",
    "blockDefault",
    "default",
    "elementFormDefault",
    "final",
    "finalDefault",
    "fixed",
    "form",
    "id",
    "itemType",
    "maxOccurs",
    "memberTypes",
    "minOccurs",
    "mixed",
    "name",
    "namespace",
    "nillable",
    "processContents",
    "public",
    "ref",
    "refer",
    "schemaLocation",
    "source",
    "substitutionGroup",
    "system",
    "targetNamespace",
    "type",
    "use",
    "value",
    "version",
    "xpath",
];

/// Refuses a document that is no XSD 1.0 schema, with the place and the rule.
pub(super) fn check(document: &Canonical, tree: &Tree) -> Result<(), (Option<Position>, String)> {
    let (grammar, root) = &*STRUCTURE;
    let violations = Judge::default().judge(grammar, Some(*root), document, 1);
    let Some(violation) = violations.into_iter().next() else { return Ok(()) };
    let part = match &violation.part {
        engine::Part::Tag => Part::Tag,
        engine::Part::Attribute(name) => Part::Attribute(name),
        engine::Part::Content => Part::Content,
    };
    let at = document.position_of(violation.element, part);
    let hint = hint(tree, violation.element, &violation.part);
    Err((at, format!("{}{hint}", violation.rule)))
}

/// The hint for an element that breaks the structure, or an attribute of it.
fn hint(tree: &Tree, element: usize, part: &engine::Part) -> String {
    let node = tree.node(element);
    if node.namespace != ns::XSD {
        return String::new();
    }
    let local = node.local.as_str();
    if OF_1_1.contains(&local) {
        return format!(
            " (xs:{local} is of XSD 1.1, and schemas here are XSD 1.0: check it in the handler, and remove it or leave it out by vc:minVersion=\"1.1\")"
        );
    }
    if let engine::Part::Attribute(attribute) = part {
        return attribute_hint(tree, element, attribute);
    }
    if ELEMENTS.contains(&local) {
        return place_hint(tree, element).unwrap_or_default().to_owned();
    }
    match nearest(local, ELEMENTS.into_iter()) {
        Some(near) => format!(" (there is no xs:{local}: did you mean xs:{near}?)"),
        None => format!(" (there is no xs:{local})"),
    }
}

/// The hint for an attribute that its element doesn't have, or not with this value.
fn attribute_hint(tree: &Tree, element: usize, attribute: &str) -> String {
    let parent = tree.ancestors(element).nth(1).map(|parent| tree.node(parent).local.as_str());
    match (attribute, tree.node(element).local.as_str(), parent) {
        ("maxOccurs", "element", Some("all")) => {
            " (in xs:all an element stands once at most: use xs:sequence, or xs:choice with maxOccurs)".to_owned()
        }
        ("minOccurs" | "maxOccurs", "all", _) => " (an xs:all stands once at most)".to_owned(),
        _ if ATTRIBUTES.contains(&attribute) || attribute.contains(':') => String::new(),
        _ => match nearest(attribute, ATTRIBUTES.into_iter()) {
            Some(near) => format!(" (did you mean {near}?)"),
            None => String::new(),
        },
    }
}

/// The hint for an element of XSD that stands where it can't.
fn place_hint(tree: &Tree, element: usize) -> Option<&'static str> {
    let is_content = |local: &str| matches!(local, "sequence" | "choice" | "all" | "group");
    let is_attribute = |local: &str| matches!(local, "attribute" | "attributeGroup" | "anyAttribute");
    let local = tree.node(element).local.as_str();
    let parent = tree.ancestors(element).nth(1)?;
    match tree.node(parent).local.as_str() {
        "element"
            if is_content(local) || is_attribute(local) || matches!(local, "simpleContent" | "complexContent") =>
        {
            Some(" (write xs:complexType around it)")
        }
        "complexType" | "extension" | "restriction" if is_content(local) => {
            let mut before = tree.parts(parent).take_while(|part| *part != element);
            let behind = before.any(|part| is_attribute(&tree.node(part).local));
            behind.then_some(" (attributes stand behind the content: write it before them)")
        }
        _ => None,
    }
}
