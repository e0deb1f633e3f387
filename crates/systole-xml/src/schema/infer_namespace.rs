//! Schema-guided repair: inferring the namespace of a root that has none.

use super::Catalog;
use crate::ladder::Canonical;
use crate::vocab::{QName, XmlLimits};

/// Infers the namespace of an emitted payload: gives a root without a namespace that of the only
/// candidate with its local name. Returns any other payload unchanged.
///
/// `candidates` are the payloads that the emitter may send. If the schema's local elements are qualified, the
/// namespace becomes the default one; else the root alone gets it.
pub fn infer_namespace<'a>(
    payload: Canonical,
    candidates: impl Iterator<Item = &'a QName>,
    catalog: &Catalog,
) -> Canonical {
    if !payload.root().namespace().is_empty() {
        return payload;
    }
    let mut found: Option<&QName> = None;
    for candidate in candidates.filter(|candidate| candidate.local() == payload.root().local()) {
        if found.is_some_and(|found| found != candidate) {
            return payload;
        }
        found = Some(candidate);
    }
    let Some(schema) = found.filter(|found| !found.namespace().is_empty()).and_then(|found| catalog.get(found)) else {
        return payload;
    };
    // The payload was within the limits, and one more declaration hardly takes it past them.
    payload.in_namespace(schema.qname().namespace(), schema.is_qualified(), &XmlLimits::UNLIMITED).unwrap_or(payload)
}
