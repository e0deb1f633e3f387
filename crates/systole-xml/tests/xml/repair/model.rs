//! Texts as models write them, with their intended meaning: `tests/corpus/model`.

use std::fs;
use std::path::Path;

use systole_xml::ladder::repair::{Author, RepairError, Shape, Vocabulary};
use systole_xml::ladder::{Raw, parse_fragment, properties};
use systole_xml::vocab::XmlLimits;

use super::files::{bot, contract, ops, run_by, schemas, shop};
use super::meaning;

/// The number of texts of each file that are repaired as intended, or refused as expected; a change may only raise it.
const RIGHT: [(&str, usize); 12] = [
    ("texts.txt", 88),
    ("more.txt", 87),
    ("third.txt", 76),
    ("thoughts.txt", 69),
    ("strings.txt", 28),
    ("fourth.txt", 183),
    ("spoken.txt", 185),
    ("drafts.txt", 192),
    ("fifth.txt", 193),
    ("sixth.txt", 238),
    ("seventh.txt", 214),
    ("eighth.txt", 471),
];

/// A text with its intended meaning.
struct Case<'t> {
    name: &'t str,
    shape: Shape,
    author: Author,
    /// The payloads that the emitter may send, if they are known.
    contract: Option<&'static Vocabulary>,
    text: &'t str,
    /// The intended XML, or else a part of the expected refusal.
    meant: Result<&'t str, &'t str>,
}

/// The outcome of a case.
enum Verdict {
    Right,
    /// Repaired to something else than intended, or not refused as expected.
    Wrong(String),
    /// Refused although the text has a meaning, or refused for another reason.
    Refused(String),
}

#[test]
fn model_texts() {
    let failures = RIGHT.iter().filter_map(|(file, least)| {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus/model").join(file);
        let texts = fs::read_to_string(path).expect("a readable file");
        judge_all(file, &cases(&texts), *least).err()
    });
    let failures: Vec<String> = failures.collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

fn judge_all(file: &str, cases: &[Case<'_>], least: usize) -> Result<(), String> {
    let (mut right, mut wrong, mut refused) = (0, Vec::new(), Vec::new());
    for case in cases {
        properties::repair(case.text.as_bytes());
        properties::repair_by(case.contract.unwrap_or(contract()), case.text.as_bytes());
        match judge(case) {
            Verdict::Right => right += 1,
            Verdict::Wrong(how) => wrong.push(format!("{}: {how}", case.name)),
            Verdict::Refused(how) => refused.push(format!("{}: {how}", case.name)),
        }
    }
    wrong.iter().for_each(|miss| println!("wrong    {miss}"));
    refused.iter().for_each(|miss| println!("refused  {miss}"));
    println!("{file}: {} texts: {right} right, {} wrong, {} wrongly refused", cases.len(), wrong.len(), refused.len());
    match right < least {
        true => Err(format!("{file}: {right} are less than the {least} that were right:\n{wrong:#?}\n{refused:#?}")),
        false => Ok(()),
    }
}

fn judge(case: &Case<'_>) -> Verdict {
    let vocabulary = case.contract.cloned().unwrap_or_default().by(case.author);
    let repaired = run_by(&vocabulary, case.text.to_owned(), case.shape);
    match (repaired, case.meant) {
        (Err(error), Err(words)) if error.to_string().contains(words) => Verdict::Right,
        (Err(error), _) => Verdict::Refused(error.to_string()),
        // Validation refuses an element that the contract does not have.
        (Ok(repaired), Err("")) if case.contract.is_some() && holds_foreign(repaired.bytes()) => Verdict::Right,
        (Ok(repaired), Err(_)) => Verdict::Wrong(format!("not refused: {:?}", repaired.bytes())),
        (Ok(repaired), Ok(meant)) => {
            let expected = meaning::of(meant.as_bytes(), case.shape).unwrap_or_else(|error| panic!("{meant}: {error}"));
            let actual = meaning::of(repaired.bytes(), case.shape);
            match actual == Ok(expected) {
                true => Verdict::Right,
                false => Verdict::Wrong(format!("{:?}", repaired.bytes())),
            }
        }
    }
}

/// Returns whether a top-level element is no payload of the contracts.
fn holds_foreign(repaired: &[u8]) -> bool {
    let wrapped = String::from_utf8([b"<all>", repaired, b"</all>"].concat()).expect("UTF-8");
    let payloads = ["bot.xsd", "contract.xsd", "ops.xsd", "shop.xsd"].map(schemas);
    let is_payload = |name: &str| payloads.iter().flatten().any(|payload| payload.qname().local() == name);
    let document = roxmltree::Document::parse(&wrapped).expect("well-formed XML");
    let elements = document.root_element().children().filter(roxmltree::Node::is_element);
    elements.into_iter().any(|element| !is_payload(element.tag_name().name()))
}

fn cases(texts: &str) -> Vec<Case<'_>> {
    let starts = texts.match_indices("=== ").map(|(at, _)| at);
    let starts: Vec<usize> = starts.filter(|&at| at == 0 || texts[..at].ends_with('\n')).collect();
    let ends = starts.iter().skip(1).copied().chain([texts.len()]);
    starts.iter().zip(ends).map(|(&start, end)| case(&texts[start + 4..end])).collect()
}

fn case(block: &str) -> Case<'_> {
    let (head, rest) = block.split_once('\n').expect("a line with the name");
    let mut words = head.split(' ');
    let name = words.next().expect("a name");
    let (mut shape, mut author, mut known) = (Shape::Document, Author::Model, None);
    for word in words {
        match word {
            "fragment" => shape = Shape::Fragment,
            "program" => author = Author::Program,
            "contract" => known = Some(contract()),
            "shop" => known = Some(shop()),
            "bot" => known = Some(bot()),
            "ops" => known = Some(ops()),
            other => panic!("{name}: {other} is no word of a case"),
        }
    }
    let rest = rest.strip_suffix('\n').unwrap_or(rest);
    let (text, meant) = match (rest.split_once("\n--- meant\n"), rest.split_once("\n--- refused")) {
        (Some((text, meant)), None) => (text, Ok(meant)),
        (None, Some((text, words))) => (text, Err(words.trim())),
        _ => panic!("{name}: write either --- meant or --- refused"),
    };
    Case { name, shape, author, contract: known, text, meant }
}

#[test]
fn an_element_that_holds_nothing_ends_before_the_white_space_behind_it() {
    let mut contract = Vocabulary::default();
    contract.declare("order", false, false);
    ["price", "note"].into_iter().for_each(|child| contract.place("order", child, true));
    contract.declare("price", false, false);
    contract.declare("note", true, false);
    for (text, meant) in [
        ("<price cents=500>\n", "<price cents=\"500\"></price>\n"),
        ("<order><price>\n<price>\n</order>", "<order><price></price>\n<price></price>\n</order>"),
        ("<order>\n<price>\n<note>late</note></order>", "<order>\n<price></price>\n<note>late</note></order>"),
        // An element with an end tag keeps its content, and words are not white space: the contract refuses them.
        ("<order a=1><price> </price></order>", "<order a=\"1\"><price> </price></order>"),
        ("<order><price>500</order>", "<order><price>500</price></order>"),
    ] {
        let repaired = run_by(&contract, text, Shape::Fragment).unwrap_or_else(|error| panic!("{error}: {text}"));
        assert_eq!(repaired.into_parts().0, meant, "{text}");
    }
}

#[test]
fn an_end_tag_that_ends_nothing_is_text_where_text_may_stand() {
    let mut contract = Vocabulary::default();
    contract.declare("order", false, false);
    ["price", "note"].into_iter().for_each(|child| contract.place("order", child, true));
    contract.declare("price", true, false);
    contract.declare("note", true, false);
    for (text, meant) in [
        ("<note>Write </p> last</note>", "<note>Write &lt;/p> last</note>"),
        ("<note></div></section></note>", "<note>&lt;/div>&lt;/section></note>"),
        (
            "<order><note>grep -c \"</item>\" f.xml</note></order>",
            "<order><note>grep -c \"&lt;/item>\" f.xml</note></order>",
        ),
        ("<note><?xml version=\"1.0\"?> first</note>", "<note>&lt;?xml version=\"1.0\"?> first</note>"),
        // An unmatched end tag is dropped where no text is allowed, or where an outer end tag has closed its element.
        ("<order><note>a</note></p></order>", "<order><note>a</note></order>"),
        ("<order><note>a</order></note>", "<order><note>a</note></order>"),
    ] {
        let repaired = run_by(&contract, text, Shape::Fragment).unwrap_or_else(|error| panic!("{error}: {text}"));
        assert_eq!(repaired.into_parts().0, meant, "{text}");
    }
    // The end tag is ambiguous: text, or the end of an element.
    run_by(&contract, "<order><note>Put the </price> behind it</note></order>", Shape::Fragment).unwrap_err();
}

#[test]
fn an_output_that_may_be_cut_is_refused_by_its_contract() {
    for (text, meant) in [
        ("<search><query>a</query>", Some("<search><query>a</query></search>")),
        ("<search><limit>3</limit>", None),
        ("<search>", None),
        ("<article><heading>h</heading>", None),
        ("<article><heading>h</heading><para>p</para>", Some("<article><heading>h</heading><para>p</para></article>")),
        ("<article><heading>h</heading><para>p <em>e</em>", None),
        ("<ticket><title>t</title><customer><name>n</name>", None),
        ("```xml\n<ticket><title>t</title>\n", None),
        ("```xml\n<search><limit>3</limit>\n```", Some("<search><limit>3</limit>\n</search>")),
    ] {
        match (run_by(contract(), text, Shape::Fragment), meant) {
            (Ok(repaired), Some(meant)) => assert_eq!(repaired.into_parts().0, meant, "{text}"),
            (Err(RepairError::Truncated { .. }), None) => {}
            (found, _) => panic!("{text}: {found:?}"),
        }
    }
}

#[test]
fn comments_are_text_where_the_contract_allows_any() {
    for (text, meant) in [
        ("<answer>a & <!-- b & ]]> c --> d</answer>", "<answer>a &amp; &lt;!-- b &amp; ]]&gt; c --> d</answer>"),
        ("<answer>a & <?b <c>?></answer>", "<answer>a &amp; &lt;?b &lt;c>?></answer>"),
        (
            "<answer>a & <!-- <title>t</title> --></answer>",
            "<answer>a &amp; &lt;!-- &lt;title>t&lt;/title> --></answer>",
        ),
        // In numbers, structure and mixed content, a comment is one.
        ("<search><!-- q --><limit>1<!-- & --></limit>", "<search><!-- q --><limit>1<!-- & --></limit></search>"),
    ] {
        let text = if text.starts_with("<search>") {
            text.replace("<limit>", "<query>a & b</query><limit>")
        } else {
            text.into()
        };
        let meant = meant.replace("<limit>", "<query>a &amp; b</query><limit>");
        let repaired =
            run_by(contract(), text.clone(), Shape::Fragment).unwrap_or_else(|error| panic!("{error}: {text}"));
        assert_eq!(repaired.into_parts().0, meant, "{text}");
    }
    // Well-formed input isn't repaired: there a comment is one, too.
    let raw = Raw::new("<answer>a<!-- b --></answer>");
    let fragment = parse_fragment(&raw, &XmlLimits::default(), contract()).expect("well-formed input");
    assert_eq!(fragment.elements[0].as_str(), "<answer>a</answer>");
}
