//! Summaries of messages in the context of a thread. They are never sent.

use systole_xml::ladder::Canonical;

use super::boot::core_qname;
use super::reader::ElementReader;
use super::writer::Writer;
use crate::vocab::{QName, ns};

/// The name of the element that stands for summarized messages.
pub fn summary_qname() -> QName {
    core_qname("summary")
}

/// A summary of the messages between two places of a thread. Characters that XML can't carry become U+FFFD.
pub fn write_summary((first, last): (u32, u32), text: &str) -> Canonical {
    let places = [("first", &*first.to_string()), ("last", &*last.to_string())];
    Writer::with_attributes(ns::CORE, "summary", &places).text(text).finish()
}

/// The place of the first message that a summary stands for.
pub fn first_of_summary(summary: &Canonical) -> Option<u32> {
    let reader = ElementReader::open(summary).ok().filter(|_| *summary.root() == summary_qname())?;
    reader.attributes().iter().find(|(name, _)| name == "first")?.1.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_knows_its_first_message() {
        let summary = write_summary((2, 40), "a < b\u{1}");
        let expected =
            "<summary xmlns=\"https://xml-pipeline.org/ns/core/v1\" first=\"2\" last=\"40\">a &lt; b\u{fffd}</summary>";
        assert_eq!(summary.as_str(), expected);
        assert_eq!(first_of_summary(&summary), Some(2));
        assert_eq!(first_of_summary(&Writer::new(ns::CORE, "boot").finish()), None);
    }
}
