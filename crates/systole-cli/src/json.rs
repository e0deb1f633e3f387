//! Payloads as JSON on the command line.

use systole_xml::ladder::Canonical;
use systole_xml::schema::Catalog;

/// Returns whether bytes are JSON, perhaps cut, rather than XML or a text around XML: they begin as an object.
pub(super) fn is_json(bytes: &[u8]) -> bool {
    bytes.trim_ascii_start().starts_with(b"{")
}

/// Writes a payload as JSON that names it; `None` if the catalog has no schema of it.
pub(super) fn of_xml(payload: &Canonical, catalog: &Catalog) -> Option<String> {
    catalog.to_named_json(payload).map(|json| json + "\n")
}
