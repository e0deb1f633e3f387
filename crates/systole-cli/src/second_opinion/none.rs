//! No second opinion: the program is built without libxml2.

use systole::config::Advice;
use systole_xml::schema::XsdDocument;

/// Gives no opinion.
pub(super) fn ask(_: &[XsdDocument]) -> Advice {
    Advice::Unasked
}
