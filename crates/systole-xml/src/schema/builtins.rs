use std::sync::LazyLock;

use super::PayloadSchema;
use crate::vocab::QName;

/// The payloads that the pump itself speaks, from the documents under `schemas/`.
pub(super) fn all() -> &'static [PayloadSchema] {
    static ALL: LazyLock<Vec<PayloadSchema>> = LazyLock::new(|| {
        let documents = [
            ("envelope.xsd", include_str!("../../schemas/envelope.xsd")),
            ("core.xsd", include_str!("../../schemas/core.xsd")),
            ("meta.xsd", include_str!("../../schemas/meta.xsd")),
        ];
        let schemas = documents.map(|(name, text)| PayloadSchema::from_xsd(name, text));
        // The documents are part of the program, and its tests compile them.
        schemas.into_iter().flat_map(|schemas| schemas.expect("a schema of the pump compiles")).collect()
    });
    &ALL
}

/// The schema of a payload that the pump itself speaks.
pub fn builtin(qname: &QName) -> Option<&'static PayloadSchema> {
    all().iter().find(|schema| schema.qname() == qname)
}
