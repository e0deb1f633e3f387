//! Properties of the ladder for any bytes: the fuzz properties over small corpora and generated input, with an
//! independent parser and libxml2 as judges of the strict pass.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use proptest::prelude::*;
use systole_xml::ladder::strict::CanonicalOptions;
use systole_xml::ladder::{properties, strict};
use systole_xml::schema;
use systole_xml::vocab::XmlLimits;

const PROPERTIES: [fn(&[u8]); 9] = [
    properties::strict,
    properties::c14n,
    properties::fragment,
    properties::envelope,
    properties::split,
    properties::signatures,
    properties::transcript,
    properties::repair,
    schema::properties::libxml,
];

/// The inputs of all golden files, of any stage.
fn corpus() -> Vec<Vec<u8>> {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let mut inputs = Vec::new();
    for stage in fs::read_dir(golden).unwrap().map(|stage| stage.unwrap().path()).filter(|path| path.is_dir()) {
        for file in fs::read_dir(stage).unwrap().map(|file| file.unwrap().path()) {
            if file.to_string_lossy().ends_with(".in.xml") {
                inputs.push(fs::read(file).unwrap());
            }
        }
    }
    assert!(inputs.len() > 200, "only {} golden inputs", inputs.len());
    inputs
}

#[test]
fn properties_hold_for_all_golden_inputs() {
    for input in corpus() {
        PROPERTIES.iter().for_each(|property| property(&input));
    }
}

#[test]
fn properties_hold_for_golden_inputs_cut_anywhere() {
    let corpus = corpus();
    let short = corpus.iter().filter(|input| input.len() < 180);
    // Many start alike.
    let cut: BTreeSet<&[u8]> = short.flat_map(|input| (0..input.len()).map(|end| &input[..end])).collect();
    for input in cut {
        PROPERTIES.iter().for_each(|property| property(input));
    }
}

/// Elements, texts and instructions whose names and namespaces collide often.
fn content() -> impl Strategy<Value = String> {
    let text = prop::sample::select(vec![
        "",
        "t",
        "é\u{10FFFF}",
        " \n",
        "\r\n",
        "\r",
        "\t",
        "&amp;",
        "&lt;",
        "&gt;",
        "&quot;",
        "&#13;",
        "&#xA;",
        "&#x41;",
        ">",
        "]]",
        "\"'",
        "<![CDATA[<&>]]]]>",
        "<![CDATA[\r\n]]>",
        "<!-- <c> -->",
        "<?p?>",
        "<?p  a?>",
        "<?p a\r\nb ?>",
        "p",
        ":a",
        "&amp;q:a",
        "<![CDATA[p:]]>",
    ]);
    let element = prop::sample::select(vec!["a", "b", "é", "p:a", "p:b", "q:a"]);
    let name = prop::sample::select(vec!["a", "b", "é", "p:a", "p:b", "q:a", "xml:a"]);
    let value = prop::sample::select(vec![
        "",
        "1",
        " \n\t\r\n",
        "&#9;&#10;&#13;",
        "&lt;&amp;&gt;>",
        "&quot;&apos;",
        "é",
        "p:a",
        "/q:a/p:b",
        "xp:q:",
        "p&#58;a",
    ]);
    let attribute = (name, value, prop::sample::select(vec!["\"", "'"]), prop::sample::select(vec!["=", " = "]));
    let attribute =
        attribute.prop_map(|(name, value, quote, equals)| (name, format!("{name}{equals}{quote}{value}{quote}")));
    let namespace = prop::sample::select(vec!["", "urn:1", "urn:2", "urn:&amp;&lt;"]);
    let declaration = (prop::sample::select(vec!["xmlns", "xmlns:p", "xmlns:q"]), namespace);
    let declaration = declaration.prop_map(|(name, namespace)| {
        let namespace = if namespace.is_empty() && name != "xmlns" { "urn:3" } else { namespace };
        (name, format!("{name}='{namespace}'"))
    });
    let attributes = prop::collection::vec(prop_oneof![attribute, declaration], 0..5).prop_map(|mut attributes| {
        attributes.sort();
        attributes.dedup_by(|a, b| a.0 == b.0);
        attributes.into_iter().map(|(_, text)| format!(" {text}")).collect::<String>()
    });
    text.prop_map(str::to_owned).prop_recursive(5, 40, 5, move |inner| {
        (element.clone(), attributes.clone(), prop::collection::vec(inner, 0..5)).prop_map(
            |(name, attributes, children)| match children.concat() {
                content if content.is_empty() => format!("<{name}{attributes}/>"),
                content => format!("<{name}{attributes}>{content}</{name} >"),
            },
        )
    })
}

fn document() -> impl Strategy<Value = String> {
    content().prop_map(|content| format!("<?p?><a xmlns:p='urn:1' xmlns:q='urn:2'>{content}</a><!-- c -->\n<?q x?>"))
}

/// Bytes that are nearly XML.
fn soup() -> impl Strategy<Value = Vec<u8>> {
    let token = prop::sample::select(vec![
        "<",
        ">",
        "/",
        "</a>",
        "<a>",
        "<a ",
        "<p:a",
        "a",
        ":",
        "=",
        "\"",
        "'",
        " ",
        "\n",
        "\r",
        "&",
        ";",
        "&amp;",
        "&#0;",
        "&#x41;",
        "<!--",
        "-->",
        "--",
        "<![CDATA[",
        "]]>",
        "<?",
        "?>",
        "<?xml version='1.0'?>",
        "<!DOCTYPE a>",
        "xmlns",
        "xmlns:p='urn:p'",
        "xmlns='urn:d'",
        "é",
        "\u{FFFE}",
        "\0",
        "-",
        "1",
    ]);
    let bytes = prop_oneof![20 => token.prop_map(|token| token.as_bytes().to_vec()), 1 => any::<[u8; 1]>().prop_map(|b| b.to_vec())];
    prop::collection::vec(bytes, 0..20).prop_map(|parts| parts.concat())
}

/// The meaning of a document to an independent parser: everything but comments.
fn meaning(text: &str) -> Result<Vec<String>, roxmltree::Error> {
    // XML 1.0, section 2.11: that parser doesn't normalize line ends after references.
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    let document = roxmltree::Document::parse(&text)?;
    let mut events = Vec::new();
    let mut texts = String::new();
    for node in document.descendants() {
        if let Some(text) = node.text().filter(|_| node.is_text()) {
            texts.push_str(text);
            continue;
        }
        if node.is_comment() || node.is_root() {
            continue;
        }
        let place = node.ancestors().count();
        events.push(format!("text {:?}", std::mem::take(&mut texts)));
        if let Some(pi) = node.pi() {
            events.push(format!("{place} pi {} {:?}", pi.target, pi.value.unwrap_or_default()));
        }
        if node.is_element() {
            let mut attributes: Vec<_> =
                node.attributes().map(|a| (a.namespace().unwrap_or_default(), a.name(), a.value())).collect();
            attributes.sort();
            let name = node.tag_name();
            let namespace = name.namespace().unwrap_or_default();
            events.push(format!("{place} element {namespace:?} {} {attributes:?}", name.name()));
        }
    }
    events.push(format!("text {texts:?}"));
    Ok(events)
}

/// The prefixes that a document declares and that precede a colon in an attribute value or text.
fn prefixes_in_values(text: &str) -> Vec<&'static str> {
    // XML 1.0, section 2.11.
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    let document = roxmltree::Document::parse(&text).unwrap();
    let root = document.root_element();
    let mut values: Vec<String> = Vec::new();
    for node in root.descendants().filter(|node| node.is_element()) {
        values.extend(node.attributes().map(|attribute| attribute.value().to_owned()));
        let mut run = String::new();
        for child in node.children() {
            match child.text().filter(|_| child.is_text()) {
                Some(text) => run.push_str(text),
                None if child.is_comment() => {}
                None => values.push(std::mem::take(&mut run)),
            }
        }
        values.push(run);
    }
    let is_name = |c: char| c.is_alphanumeric() || "-_.\u{B7}".contains(c);
    let stands = |prefix: &&str| {
        values.iter().any(|value| {
            let sought = format!("{prefix}:");
            value.match_indices(&sought).any(|(at, _)| !value[..at].ends_with(is_name))
        })
    };
    ["p", "q"].into_iter().filter(stands).collect()
}

fn canonical(input: &[u8]) -> Option<String> {
    let bytes = strict::c14n(input, CanonicalOptions::default(), &XmlLimits::default()).ok()?;
    Some(String::from_utf8(bytes).unwrap())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn canonical_form_means_what_the_document_means(text in document()) {
        if let Some(canonical) = canonical(text.as_bytes()) {
            prop_assert_eq!(meaning(&canonical).unwrap(), meaning(&text).unwrap());
        }
    }

    /// Checks that a message is in exclusive canonical form with a prefix list that is derivable from the document.
    #[test]
    fn messages_keep_the_prefixes_of_their_values(text in document()) {
        let limits = XmlLimits::default();
        let Ok(element) = strict::canonicalize(&text.clone().into(), &limits) else { return Ok(()) };
        let prefixes = prefixes_in_values(&text);
        let form = CanonicalOptions { prefixes: &prefixes, ..CanonicalOptions::default() };
        let expected = strict::c14n_subtree(text.as_bytes(), 0, form, &limits).unwrap().unwrap();
        prop_assert_eq!(element.as_str(), String::from_utf8(expected).unwrap());
        prop_assert_eq!(prefixes_in_values(element.as_str()), prefixes);
    }

    #[test]
    fn what_another_parser_refuses_is_refused(bytes in soup(), document in document(), at in any::<prop::sample::Index>()) {
        let mut mutated = document.into_bytes();
        let place = at.index(mutated.len());
        mutated.splice(place..place, bytes.iter().copied());
        for input in [bytes, mutated] {
            schema::properties::libxml(&input);
            if strict::c14n(&input, CanonicalOptions::default(), &XmlLimits::default()).is_ok() {
                let text = std::str::from_utf8(&input).unwrap();
                prop_assert!(meaning(text).is_ok(), "{:?} in {text:?}", meaning(text));
            }
        }
    }

    #[test]
    fn properties_hold_for_generated_documents(text in document()) {
        PROPERTIES.iter().for_each(|property| property(text.as_bytes()));
    }

    #[test]
    fn properties_hold_for_soup(bytes in soup()) {
        PROPERTIES.iter().for_each(|property| property(&bytes));
    }
}
