//! The structure of schema documents: the engine judges it by a schema of schemas (`schema.xsd`).

use std::sync::{Arc, LazyLock};

use super::hints::hint;
use crate::ladder::{Canonical, Part};
use crate::schema::engine::{self, ElementId, Grammar, Judge};
use crate::schema::source::documents::Documents;
use crate::schema::source::read::Reader;
use crate::schema::source::tree::Tree;
use crate::vocab::{Position, ns};

/// The grammar of schema documents, from `schema.xsd`.
static STRUCTURE: LazyLock<(Arc<Grammar>, ElementId)> = LazyLock::new(|| {
    let documents = Documents::built_in("schema.xsd", include_str!("schema.xsd"));
    let reader = Reader::new(&documents);
    let components =
        engine::compile(&reader).unwrap_or_else(|wrong| panic!("the schema of schemas is wrong: {wrong:?}"));
    let grammar = components.into_grammar();
    let root = grammar.element(ns::XSD, "schema").expect("the schema of schemas declares it");
    (grammar, root)
});

/// The places where a document is no XSD 1.0 schema, in document order, each with the rule.
pub(super) fn flaws(document: &Canonical, tree: &Tree) -> Vec<(Position, String)> {
    /// Maximum number of errors: as many as fit on a screen.
    const MOST: usize = 10;
    let (grammar, root) = &*STRUCTURE;
    let violations = Judge::default().judge(grammar, Some(*root), document, MOST);
    let told = |violation: engine::Violation| {
        let part = match &violation.part {
            engine::Part::Tag => Part::Tag,
            engine::Part::Attribute(name) => Part::Attribute(name),
            engine::Part::Content => Part::Content,
        };
        let at = document.position_of(violation.element, part);
        let hint = hint(tree, violation.element, &violation.part);
        (at.unwrap_or(Position::START), format!("{}{hint}", violation.rule))
    };
    let mut flaws: Vec<_> = violations.into_iter().map(told).collect();
    flaws.sort_by_key(|(at, _)| *at);
    flaws
}

#[cfg(test)]
mod tests {
    use super::super::XsdSet;
    use crate::schema::XsdDocument;

    #[test]
    fn built_in_documents_would_be_taken_if_they_were_given() {
        let texts = [
            include_str!("schema.xsd"),
            include_str!("../source/xml.xsd"),
            include_str!("../source/xlink.xsd"),
            include_str!("../source/json.xsd"),
            include_str!("../../../schemas/envelope.xsd"),
            include_str!("../../../schemas/core.xsd"),
            include_str!("../../../schemas/meta.xsd"),
        ];
        for text in texts {
            let errors = XsdSet::read(&[XsdDocument { name: "a.xsd".to_owned(), text: text.to_owned() }]).err();
            assert!(errors.is_none(), "{errors:?} in {}", &text[..200]);
        }
    }
}
