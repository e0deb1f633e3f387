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
    let grammar = engine::compile(&Reader::new(&documents));
    let grammar = grammar.unwrap_or_else(|wrong| panic!("the schema of schemas is wrong: {wrong:?}"));
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
    let hint = hint(tree, violation.element);
    Err((at, format!("{}{hint}", violation.rule)))
}

/// The hint for an element that breaks the structure.
fn hint(tree: &Tree, element: usize) -> String {
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
    if ELEMENTS.contains(&local) {
        return String::new();
    }
    match nearest(local, ELEMENTS.into_iter()) {
        Some(near) => format!(" (there is no xs:{local}: did you mean xs:{near}?)"),
        None => format!(" (there is no xs:{local})"),
    }
}
