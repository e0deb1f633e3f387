//! Payloads as JSON on the command line.

use std::sync::Arc;

use bytes::Bytes;
use systole_core::vocab::{QName, XmlLimits};
use systole_xml::ladder::Canonical;
use systole_xml::ladder::strict::canonicalize;
use systole_xml::schema::{Catalog, Validator};

/// Returns whether bytes are JSON rather than XML or a text around XML: an object.
pub(super) fn is_json(bytes: &[u8]) -> bool {
    bytes.trim_ascii_start().starts_with(b"{") && bytes.trim_ascii_end().ends_with(b"}")
}

/// Reads a payload that names itself, of those that it may be, and validates it.
///
/// # Errors
/// A line for each mistake, with its place as a JSON pointer.
pub(super) fn to_xml(
    bytes: &[u8],
    may_be: impl Fn(&QName) -> bool,
    catalog: &Catalog,
    limits: &XmlLimits,
) -> Result<Bytes, Vec<String>> {
    let text = std::str::from_utf8(bytes).map_err(|error| vec![format!("not UTF-8: {error}")])?;
    let read = catalog.from_named_json(text, may_be, limits).map_err(|error| vec![error.to_string()])?;
    let xml = Bytes::copy_from_slice(read.xml().as_bytes());
    let payload = canonicalize(&xml, limits).map_err(|error| vec![error.to_string()])?;
    match Validator::new(Arc::new(catalog.clone())).validate(payload) {
        Ok(_) => Ok(xml),
        Err(error) => {
            let rules = std::iter::once(&error.rule).chain(error.more.iter().map(|finding| &finding.rule));
            Err(read.pointers(&error).into_iter().zip(rules).map(|(at, rule)| format!("{at}: {rule}")).collect())
        }
    }
}

/// Writes a payload as JSON that names it; `None` if the catalog has no schema of it.
pub(super) fn of_xml(payload: &Canonical, catalog: &Catalog) -> Option<String> {
    catalog.to_named_json(payload).map(|json| json + "\n")
}
