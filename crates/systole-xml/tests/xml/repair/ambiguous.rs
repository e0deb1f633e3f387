//! Start tags of the contract in a text that may hold them: a mention and an element without its end tag look alike.

use std::sync::Arc;

use systole_xml::ladder::repair::{RepairError, Shape, Vocabulary};
use systole_xml::ladder::strict::canonicalize;
use systole_xml::schema::{Catalog, Validator};
use systole_xml::vocab::XmlLimits;

use super::files::{contract, review, run_by, schemas};

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

/// Payloads of `contract.xsd`, with a place that holds text.
const DESK: [&str; 8] = [
    "<answer xmlns=\"urn:example:desk:v1\">TEXT</answer>",
    "<search xmlns=\"urn:example:desk:v1\"><query>TEXT</query><limit>1</limit></search>",
    "<ticket xmlns=\"urn:example:desk:v1\"><title>TEXT</title><step>s</step><body>b</body></ticket>",
    "<ticket xmlns=\"urn:example:desk:v1\"><title>t</title><step>s</step><step>TEXT</step><note>n</note></ticket>",
    "<ticket xmlns=\"urn:example:desk:v1\"><title>t</title><customer><name>TEXT</name></customer></ticket>",
    "<ticket xmlns=\"urn:example:desk:v1\"><title>t</title><body>TEXT</body></ticket>",
    "<article xmlns=\"urn:example:desk:v1\"><heading>h</heading><para>TEXT</para><para>p</para></article>",
    "<article xmlns=\"urn:example:desk:v1\"><heading>h</heading><para>p <em>TEXT</em></para></article>",
];

/// The same of `review.xsd`.
const REVIEW: [&str; 8] = [
    "<note xmlns=\"urn:k\">TEXT</note>",
    "<review xmlns=\"urn:k\"><verdict>fail</verdict><comment>TEXT</comment></review>",
    "<review xmlns=\"urn:k\"><verdict>fail</verdict><comment>c</comment><comment>TEXT</comment></review>",
    "<plan xmlns=\"urn:k\"><goal>g</goal><task><name>n</name><arg>a</arg><arg>TEXT</arg></task></plan>",
    "<page xmlns=\"urn:k\"><head>h</head><p>TEXT</p></page>",
    "<page xmlns=\"urn:k\"><head>h</head><p>p <code>TEXT</code> p</p></page>",
    "<patch path=\"p\" xmlns=\"urn:k\"><hunk>TEXT</hunk><hunk>h</hunk></patch>",
    "<config xmlns=\"urn:k\"><entry>TEXT</entry></config>",
];

/// Each element of a contract, mentioned in each place that holds text, with and without the end tag of that place.
#[test]
fn a_mention_never_becomes_a_valid_element() {
    const NAMES: [&str; 17] = [
        "answer", "search", "query", "limit", "ticket", "title", "customer", "name", "email", "step", "body", "total",
        "note", "article", "para", "em", "link",
    ];
    const TEXTS: [&str; 6] = [
        "a & b: the <NAME> tag",
        "<NAME> is a & b",
        "a & **<NAME>** b",
        "a & (<NAME>) b",
        "a & b, then <NAME>, then c",
        "a & '<NAME>' b",
    ];
    let mut lies = Lies::new("contract.xsd", contract());
    for (name, place, text) in NAMES.iter().flat_map(|name| {
        DESK.iter().flat_map(move |place| TEXTS.iter().map(move |text| (name, place, text.replace("NAME", name))))
    }) {
        // The same without the end tag behind the text.
        let (before, behind) = place.split_once("TEXT").expect("a place for the text");
        let open = format!("{before}{text}{}", behind.split_once('>').expect("an end tag").1);
        lies.check(name, &place.replace("TEXT", &text));
        lies.check(name, &open);
    }
    lies.assert_none();
}

/// Comparisons, types and words that hold the name of an element.
#[test]
fn a_word_with_a_tag_in_it_never_becomes_a_valid_element() {
    const TEXTS: [&str; 12] = [
        "if (i<NAME>0 && j) x",
        "if (f(i)<NAME>0 && j) x",
        "if i <NAME>0 && j",
        "1<NAME>2 & 3",
        "List<NAME>items & more",
        "set<NAME>::iterator & x",
        "Option<NAME>. And & x",
        "check x<NAME>y, then z<NAME>w & v",
        "drop all <NAME>s & go",
        "--in<NAME>out & d",
        "-x<NAME>+y & z",
        "a_<NAME>\nb & c",
    ];
    let names = ["comment", "quote", "arg", "cmd", "p", "b", "code", "hunk", "entry", "note", "done", "score"];
    let mut lies = Lies::new("review.xsd", review());
    for (name, place) in names.iter().flat_map(|name| REVIEW.iter().map(move |place| (name, place))) {
        TEXTS.iter().for_each(|text| lies.check(name, &place.replace("TEXT", &text.replace("NAME", name))));
    }
    lies.assert_none();
}

/// The outputs in which a mention became an element of a valid payload.
struct Lies {
    contract: &'static Vocabulary,
    validator: Validator,
    found: Vec<String>,
}

impl Lies {
    fn new(file: &str, contract: &'static Vocabulary) -> Self {
        let mut catalog = Catalog::new();
        schemas(file).into_iter().for_each(|schema| catalog.add(schema).expect("a payload"));
        Self { contract, validator: Validator::new(Arc::new(catalog)), found: Vec::new() }
    }

    fn check(&mut self, name: &str, dirty: &str) {
        let Ok(repaired) = run_by(self.contract, dirty.to_owned(), Shape::Fragment) else { return };
        let Ok(payload) = canonicalize(repaired.bytes(), &XmlLimits::default()) else { return };
        let is_text = payload.as_str().contains(&format!("&lt;{name}"));
        if !is_text && self.validator.validate(payload.clone()).is_ok() {
            self.found.push(format!("{dirty}\n  {}", payload.as_str()));
        }
    }

    fn assert_none(&self) {
        assert!(self.found.is_empty(), "{}:\n{}", self.found.len(), self.found.join("\n"));
    }
}
