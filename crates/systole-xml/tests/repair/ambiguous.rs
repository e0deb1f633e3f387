//! Start tags of the contract in a text that may hold them: a mention and an element without its end tag look alike.

use systole_xml::ladder::repair::{RepairError, Shape};

use crate::files::{contract, run_by};

fn article(para: &str) -> String {
    format!("<article xmlns=\"urn:example:desk:v1\"><heading>h & t</heading><para>{para}</para></article>")
}

fn ticket(inside: &str) -> String {
    format!("<ticket xmlns=\"urn:example:desk:v1\">{inside}</ticket>")
}

#[test]
fn tags_that_may_be_text_are_refused() {
    for text in [
        article("An <em> tag stresses a word"),
        article("<em> stresses a word"),
        article("Use **<em>** for stress"),
        article("Use <em>, please"),
        article("Close it, <em>a</em>, then <em> again"),
        // The only end tag may be that of the paragraph around it, or of the one that is mentioned.
        "<article xmlns=\"urn:example:desk:v1\"><heading>h</heading><para>bold **<para>** done</para></article>"
            .to_owned(),
        ticket("<title>Write a <note> about it"),
        ticket("<title>a</title><step>The <step> tag is a step</step>"),
    ] {
        let found = run_by(contract(), text.clone(), Shape::Fragment);
        assert!(matches!(found, Err(RepairError::Ambiguous { .. })), "{text}: {found:?}");
    }
}

#[test]
fn tags_that_are_elements_or_text_stay_so() {
    for (text, expected) in [
        (article("An <em>e</em> here"), article("An <em>e</em> here")),
        (article("An <title> tag"), article("An &lt;title> tag")),
        (article("An <b> tag"), article("An &lt;b> tag")),
        (ticket("<title>Broken<note>soon"), ticket("<title>Broken</title><note>soon</note>")),
        (ticket("<title>a</title><step>one<step>two"), ticket("<title>a</title><step>one</step><step>two</step>")),
        (
            ticket("<title>a</title><step>one</step>\n<step> two\n<note>n</note>"),
            ticket("<title>a</title><step>one</step>\n<step> two\n</step><note>n</note>"),
        ),
    ] {
        let found = run_by(contract(), text.clone(), Shape::Fragment).unwrap_or_else(|error| panic!("{text}: {error}"));
        let expected = expected.replace("h & t", "h &amp; t");
        assert_eq!(std::str::from_utf8(found.bytes()).unwrap(), expected, "{text}");
    }
}
