//! Whether a schema document has the structure of one: the engine judges it by a schema of schemas (`schema.xsd`).

use std::sync::{Arc, LazyLock};

use super::documents::Documents;
use super::hints::hint;
use super::read::Reader;
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
