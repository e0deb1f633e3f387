//! The schemas of the pump's own payloads.

use std::sync::LazyLock;

use super::PayloadSchema;
use crate::vocab::QName;

/// The payloads of the pump itself, from the documents under `schemas/`.
pub(super) fn all() -> &'static [PayloadSchema] {
    static ALL: LazyLock<Vec<PayloadSchema>> = LazyLock::new(|| {
        let documents = [
            ("envelope.xsd", include_str!("../../schemas/envelope.xsd")),
            ("core.xsd", include_str!("../../schemas/core.xsd")),
            ("meta.xsd", include_str!("../../schemas/meta.xsd")),
        ];
        // The documents are part of the program: its tests judge their structure, and compile them.
        let schemas = documents.map(|(name, text)| PayloadSchema::built_in(name, text));
        schemas.into_iter().flat_map(|schemas| schemas.expect("a schema of the pump compiles")).collect()
    });
    &ALL
}

/// The schema of a payload of the pump itself; `None` for any other payload.
pub fn own_schema(qname: &QName) -> Option<&'static PayloadSchema> {
    all().iter().find(|schema| schema.qname() == qname)
}
