//! Documents that are written, not read.

use super::{BYTES, Document, Documents, ELEMENTS, LIMITS};
use crate::schema::contract::{ContractError, DocumentProblem};
use crate::schema::source::document_error;
use crate::schema::source::tree::Pen;
use crate::vocab::Position;

impl Documents {
    /// The set of a document that was written with its tree, and that refers to no other one. Its writer is trusted with
    /// the structure.
    ///
    /// # Errors
    /// [`ContractError::Document`] if the document is larger than one that is read may be.
    pub(in crate::schema) fn written(pen: Pen) -> Result<Self, ContractError> {
        let (tree, size) = pen.finish();
        let tree = tree.ok_or_else(|| document_error("", Position::START, DocumentProblem::no_element()))?;
        let limits = [
            (tree.document().len(), BYTES, "bytes"),
            (size.elements, ELEMENTS, "elements"),
            (size.depth, LIMITS.depth, "elements inside of each other"),
            (size.value, LIMITS.value_bytes, "bytes in one name, bound, pattern or enumerated value"),
        ];
        if let Some((_, most, what)) = limits.into_iter().find(|(has, most, _)| has > most) {
            let rule = format!("the schema has more than {most} {what}: make the type smaller");
            return Err(document_error("", Position::START, DocumentProblem::Rule(rule)));
        }
        let (set, wrong) = Self::linked(vec![Document::of_tree("", tree.shared(), tree)?], 1);
        wrong.map_or(Ok(set), Err)
    }
}
