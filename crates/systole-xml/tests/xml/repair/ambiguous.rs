//! Start tags of the contract in a text that may hold them: a mention and an element without its end tag look alike.

use std::sync::Arc;

use systole_xml::ladder::repair::{RepairError, Shape};
use systole_xml::ladder::strict::canonicalize;
use systole_xml::schema::{Catalog, Validator};
use systole_xml::vocab::XmlLimits;

use super::files::{contract, run_by, schemas};

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

#[test]
fn thoughts_that_began_in_the_prompt_of_the_model_are_dropped() {
    let kept = ticket("<title>yes</title>");
    for thought in ["hm", "hm, <em>or</em> not", &ticket("<title>no</title>"), "a < b & \"c", "<query>1</query>\n"] {
        let text = format!("{thought}\n</think>\n{kept}");
        let found = run_by(contract(), text.clone(), Shape::Fragment).unwrap_or_else(|error| panic!("{text}: {error}"));
        let found = std::str::from_utf8(found.bytes()).unwrap().trim();
        assert_eq!(found, kept, "{text}");
    }
}

/// Each element of the contract, mentioned in each place that holds text, with and without the end tag of that place.
#[test]
fn a_mention_never_becomes_a_valid_element() {
    const NAMES: [&str; 17] = [
        "answer", "search", "query", "limit", "ticket", "title", "customer", "name", "email", "step", "body", "total",
        "note", "article", "para", "em", "link",
    ];
    const PLACES: [&str; 8] = [
        "<answer xmlns=\"urn:example:desk:v1\">TEXT</answer>",
        "<search xmlns=\"urn:example:desk:v1\"><query>TEXT</query><limit>1</limit></search>",
        "<ticket xmlns=\"urn:example:desk:v1\"><title>TEXT</title><step>s</step><body>b</body></ticket>",
        "<ticket xmlns=\"urn:example:desk:v1\"><title>t</title><step>s</step><step>TEXT</step><note>n</note></ticket>",
        "<ticket xmlns=\"urn:example:desk:v1\"><title>t</title><customer><name>TEXT</name></customer></ticket>",
        "<ticket xmlns=\"urn:example:desk:v1\"><title>t</title><body>TEXT</body></ticket>",
        "<article xmlns=\"urn:example:desk:v1\"><heading>h</heading><para>TEXT</para><para>p</para></article>",
        "<article xmlns=\"urn:example:desk:v1\"><heading>h</heading><para>p <em>TEXT</em></para></article>",
    ];
    const TEXTS: [&str; 6] = [
        "a & b: the <NAME> tag",
        "<NAME> is a & b",
        "a & **<NAME>** b",
        "a & (<NAME>) b",
        "a & b, then <NAME>, then c",
        "a & '<NAME>' b",
    ];
    let mut catalog = Catalog::new();
    schemas().into_iter().for_each(|schema| catalog.add(schema).expect("a payload"));
    let mut validator = Validator::new(Arc::new(catalog));
    let mut lies = Vec::new();
    for (name, place, text) in NAMES.iter().flat_map(|name| {
        PLACES.iter().flat_map(move |place| TEXTS.iter().map(move |text| (name, place, text.replace("NAME", name))))
    }) {
        let whole = place.replace("TEXT", &text);
        // The same without the end tag behind the text.
        let (before, behind) = place.split_once("TEXT").expect("a place for the text");
        let open = format!("{before}{text}{}", behind.split_once('>').expect("an end tag").1);
        for dirty in [whole, open] {
            let Ok(found) = run_by(contract(), dirty.clone(), Shape::Fragment) else { continue };
            let Ok(payload) = canonicalize(found.bytes(), &XmlLimits::default()) else { continue };
            let is_text = payload.as_str().contains(&format!("&lt;{name}"));
            if !is_text && validator.validate(payload.clone()).is_ok() {
                lies.push(format!("{dirty}\n  {}", payload.as_str()));
            }
        }
    }
    assert!(lies.is_empty(), "{}:\n{}", lies.len(), lies.join("\n"));
}
