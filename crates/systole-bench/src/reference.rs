//! References for the stages: quick-xml on the same bytes.

use quick_xml::XmlVersion;
use quick_xml::events::Event;
use quick_xml::reader::Reader;
use serde::Deserialize;
use serde::de::DeserializeOwned;

/// A message as quick-xml's serde deserializes it.
#[derive(Deserialize)]
#[expect(dead_code, reason = "reading them is what is measured")]
pub(super) struct Message<T> {
    meta: Meta,
    #[serde(rename = "$value")]
    payload: T,
}

/// The metadata of a message.
#[derive(Deserialize)]
#[expect(dead_code, reason = "reading them is what is measured")]
pub(super) struct Meta {
    from: String,
    to: Option<String>,
    thread: Option<String>,
}

/// Deserializes a whole message with quick-xml's serde.
pub(super) fn deserialize<T: DeserializeOwned>(message: &str) -> Message<T> {
    quick_xml::de::from_str(message).expect("the samples are what they say")
}

/// Reads all events of quick-xml, with the names and values of all attributes and the text. Returns a number that
/// depends on all of them, so that the work isn't optimized away.
pub(super) fn tokenize(message: &str) -> usize {
    let mut reader = Reader::from_str(message);
    let mut seen = 0;
    loop {
        match reader.read_event().expect("the samples are well-formed") {
            Event::Start(start) | Event::Empty(start) => {
                seen += start.name().as_ref().len();
                for attribute in start.attributes() {
                    let attribute = attribute.expect("the samples are well-formed");
                    let value = attribute.normalized_value(XmlVersion::Implicit1_0);
                    seen += attribute.key.as_ref().len() + value.expect("the samples have no entities").len();
                }
            }
            Event::Text(text) => seen += text.xml10_content().len(),
            Event::Eof => return seen,
            _ => seen += 1,
        }
    }
}
