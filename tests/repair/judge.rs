//! Who says whether bytes are well-formed.

use systole::ladder::repair::Shape;

use super::meaning;

/// Whether bytes are a document, or any number of elements.
pub(crate) fn accepts(bytes: &[u8], shape: Shape) -> Result<(), String> {
    match meaning::of(bytes, shape) {
        // The parser doesn't know that this prefix is always bound.
        Err(error) if error.starts_with("an unknown namespace prefix 'xml'") => Ok(()),
        verdict => verdict.map(drop),
    }
}
