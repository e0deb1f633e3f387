//! The name of a root without the rest of its document.

use quick_xml::events::Event;
use quick_xml::name::ResolveResult;
use quick_xml::reader::NsReader;

use crate::vocab::QName;

/// Reads the name of the root element from the start of a canonical document, which may be cut behind the first tag.
pub fn root_of(start: &[u8]) -> Option<QName> {
    let mut reader = NsReader::from_reader(start);
    let (ResolveResult::Bound(namespace), Event::Start(tag)) = reader.read_resolved_event().ok()? else { return None };
    let namespace = quick_xml::escape::unescape(namespace.into_inner()).ok()?;
    QName::new(&namespace, tag.local_name().into_inner()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_root_is_read_from_the_first_tag() {
        let named = |start: &str| root_of(start.as_bytes()).map(|name| name.to_string());
        assert_eq!(named("<p:a xmlns:p=\"urn:a&amp;b\" x=\"1\">te").as_deref(), Some("{urn:a&b}a"));
        assert_eq!(named("<a xmlns=\"urn:t\"></a>").as_deref(), Some("{urn:t}a"));
        assert_eq!(named("<a xmlns=\"urn:t"), None);
        assert_eq!(named("text"), None);
    }
}
