//! Properties of repair over random bytes, damaged documents and instances of a contract.

use proptest::prelude::*;
use systole_xml::ladder::repair::{RepairError, Shape};
use systole_xml::ladder::{RepairKind, properties};

use super::damage::{damage, document};
use super::files::{contract, run, run_by};
use super::meaning;

/// Pieces with a meaning to repair, in any order.
fn soup() -> impl Strategy<Value = String> {
    let pieces = vec![
        "<a>",
        "</a>",
        "<a",
        "<b c=\"d\">",
        "</b>",
        "<b/>",
        "<br>",
        "<p:q xmlns:p=\"urn:p\">",
        "</p:q>",
        "<!--",
        "-->",
        "--",
        "<![CDATA[",
        "]]>",
        "]]",
        ">",
        "<?p",
        "?>",
        "<?xml version=\"1.0\"?>",
        "<!DOCTYPE a>",
        "&amp;",
        "&",
        "&nbsp;",
        "&#0;",
        "<",
        " ",
        "\n",
        "```",
        "```xml\n",
        "```json\n",
        "`",
        "“",
        "\"",
        "'",
        "=",
        "/",
        "text",
        "a",
        "\u{1}",
        "é",
        "[THINK]",
        "[/THINK]",
        "<|channel|>",
        "final",
        "<|message|>",
        "<|end|>",
        "<|user|>",
        "[INST]",
        "[/INST]",
        "[PLAN]",
        "[/PLAN]",
        "```thinking\n",
        "xmlns=\"urn:x\"",
    ];
    prop::collection::vec(prop::sample::select(pieces), 0..24).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1024))]

    #[test]
    fn any_bytes(raw in prop::collection::vec(any::<u8>(), 0..64)) {
        properties::repair(&raw);
    }

    #[test]
    fn any_text(raw in "\\PC{0,64}") {
        properties::repair(raw.as_bytes());
    }

    #[test]
    fn any_order_of_pieces(raw in soup()) {
        properties::repair(raw.as_bytes());
    }

    #[test]
    fn any_units_of_utf_16(units in prop::collection::vec(any::<u16>(), 0..32), odd in any::<bool>(), pieces in soup()) {
        let mut raw: Vec<u8> = [0xFEFF].into_iter().chain(pieces.encode_utf16()).chain(units).flat_map(u16::to_be_bytes).collect();
        raw.extend(odd.then_some(b'<'));
        properties::repair(&raw);
    }

    #[test]
    fn clean_documents_stay_as_they_are(clean in document()) {
        for shape in [Shape::Document, Shape::Fragment] {
            let repaired = run(clean.clone(), shape).unwrap();
            prop_assert_eq!(repaired.repairs(), []);
            prop_assert_eq!(&repaired.bytes()[..], clean.as_bytes());
        }
    }

    #[test]
    fn damaged_documents_are_repaired_or_refused(clean in document(), acts in prop::collection::vec(damage(), 1..5)) {
        let raw = acts.iter().fold(clean.into_bytes(), |raw, act| act.apply(&raw));
        properties::repair(&raw);
    }

    /// Checks that text survives unescaped characters and the wrappers that models put around their answers.
    #[test]
    fn text_is_kept(
        clean in document(),
        is_raw in any::<bool>(),
        before in prop::sample::select(vec!["", "Here it is:\n\n", "```xml\n", "Sure! 1 < 2, so\n", "</dummy>", "\u{FEFF}"]),
        after in prop::sample::select(vec!["", "\n", "\n```\n", "\n\nThat's all & more.", "</wrapper>"]),
    ) {
        let mut dirty = clean.clone();
        // An author who does not escape writes no references at all.
        if is_raw {
            for (written, raw) in [("AT&amp;T", "AT&T"), ("1 &lt; 2", "1 < 2"), ("x &gt; y", "x > y"), ("&#65;", "A")] {
                dirty = dirty.replace(written, raw);
            }
        }
        for shape in [Shape::Document, Shape::Fragment] {
            let repaired = run(format!("{before}{dirty}{after}"), shape).unwrap();
            prop_assert_eq!(meaning::of(repaired.bytes(), shape), meaning::of(clean.as_bytes(), shape));
        }
    }

    /// Checks that a missing end tag never removes text. It may move the end of an element, turn its start tag into
    /// text if that reads like some, make it ambiguous or one that is written twice, or leave the end of the input open.
    #[test]
    fn text_survives_missing_end_tags(clean in document(), nth in 0..6usize) {
        let Some((at, tag)) = clean.match_indices("</").nth(nth) else { return Ok(()) };
        let end = at + tag.len() + clean[at + tag.len()..].find('>').unwrap() + 1;
        if end == clean.len() {
            return Ok(());
        }
        let dirty = format!("{}{}", &clean[..at], &clean[end..]);
        let repaired = match run(dirty, Shape::Document) {
            Err(
                RepairError::Ambiguous { .. } | RepairError::Truncated { .. } | RepairError::SecondElement { .. },
            ) => return Ok(()),
            repaired => repaired.unwrap(),
        };
        let (kept, meant) = (all_text(repaired.bytes()), all_text(clean.as_bytes()));
        let start = format!("<{}", &clean[at + tag.len()..end - 1]);
        prop_assert!(kept == meant || (kept.contains(&start) && kept.len() > meant.len()), "{} for {}", kept, meant);
    }

    /// Checks that a message cut in the middle is never taken for a complete one that says less.
    #[test]
    fn cut_text_is_refused(clean in document(), share in 0.0..1.0) {
        let mut cut = (share * clean.len() as f64) as usize;
        while !clean.is_char_boundary(cut) {
            cut -= 1;
        }
        let piece = &clean[..cut];
        if piece.trim_end().ends_with('>') || piece.trim().is_empty() {
            return Ok(());
        }
        prop_assert!(run(piece.to_owned(), Shape::Document).is_err(), "{}", piece);
    }

    /// Checks that a message cut behind a tag is not taken for a complete one, unless only its last end tag is missing.
    #[test]
    fn message_cut_behind_a_tag_is_refused(clean in document(), instance in instance(), share in 0.0..1.0) {
        for (clean, contract) in [(&clean, None), (&instance, Some(contract())), (&instance, None)] {
            let ends: Vec<usize> = clean.match_indices('>').map(|(at, _)| at + 1).collect();
            let piece = &clean[..ends[(share * ends.len() as f64) as usize]];
            let repaired = match contract {
                Some(contract) => run_by(contract, piece.to_owned(), Shape::Document),
                None => run(piece.to_owned(), Shape::Document),
            };
            if let Ok(repaired) = repaired {
                let count = |kind| repaired.repairs().iter().filter(|repair| repair.kind == kind).count();
                prop_assert!(repaired.repairs().len() <= 1, "{}: {:?}", piece, repaired.repairs());
                prop_assert!(count(RepairKind::MissingEndTag) <= 1, "{}: {:?}", piece, repaired.repairs());
            }
        }
    }
}

/// Instances of the payloads of the contract, in which each text is a word of its own.
fn instance() -> impl Strategy<Value = String> {
    let mixed = prop::sample::select(vec!["#", "<em>#</em>", "<link href=\"x\">#</link>", " ", "<!-- c -->"]);
    let para = prop::collection::vec(mixed, 0..5).prop_map(|parts| format!("<para>{}</para>", parts.concat()));
    let article = prop::collection::vec(para, 1..4)
        .prop_map(|paras| format!("<article><heading>#</heading>{}</article>", paras.concat()));
    let parts = vec![
        "<customer><name>#</name></customer>",
        "<customer><name>#</name><email>#</email></customer>",
        "<step>#</step>",
        "<step>#</step>\n<step>#</step>",
        "<body>#</body>",
        "<total>1</total>",
        "<note># &amp; #</note>",
    ];
    let ticket = prop::sample::subsequence(parts, 0..=7)
        .prop_map(|parts| format!("<ticket id=\"7\"><title>#</title>{}</ticket>", parts.concat()));
    let bag = Just("<bag><b>#</b><answer>#</answer><x>#<y/></x></bag>".to_owned());
    let plain = prop::sample::select(vec!["<answer>#</answer>", "<search><query>#</query><limit>3</limit></search>"]);
    let instance = prop_oneof![4 => ticket, 3 => article, 1 => bag, 1 => plain.prop_map(str::to_owned)];
    instance.prop_map(|text| {
        let mut pieces = text.split('#');
        let first = pieces.next().unwrap_or_default().to_owned();
        pieces.enumerate().fold(first, |out, (number, piece)| format!("{out}w{number}.{piece}"))
    })
}

/// Pieces with a meaning under the contract, in any order.
fn contract_soup() -> impl Strategy<Value = String> {
    let pieces = vec![
        "<ticket>",
        "</ticket>",
        "<title>",
        "</title>",
        "<title/>",
        "<step>",
        "</step>",
        "<customer>",
        "</customer>",
        "<name>",
        "</name>",
        "<em>",
        "</em>",
        "<para>",
        "</para>",
        "<u>",
        "</u>",
        "<u/>",
        "<total>",
        "</Total>",
        "</>",
        "<\\step>",
        "< note>",
        "</note>",
        "<bag>",
        "</bag>",
        "<b c>",
        "text",
        " ",
        "&",
        "<",
        "\n",
        "<article>",
        "</article>",
        "<think>",
        "<step xsi:type='x'>",
        "<!-- c -->",
        "<![CDATA[<u>]]>",
    ];
    prop::collection::vec(prop::sample::select(pieces), 0..24).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2048))]

    #[test]
    fn the_contract_leaves_its_instances_as_they_are(instance in instance()) {
        for shape in [Shape::Document, Shape::Fragment] {
            let repaired = run_by(contract(), instance.clone(), shape).unwrap();
            prop_assert_eq!(repaired.repairs(), []);
            prop_assert_eq!(&repaired.bytes()[..], instance.as_bytes());
        }
    }

    #[test]
    fn any_order_of_pieces_under_a_contract(raw in contract_soup(), instance in instance()) {
        properties::repair_by(contract(), raw.as_bytes());
        properties::repair_by(contract(), format!("{instance}{raw}").as_bytes());
        properties::repair_by(contract(), instance.replacen("w0.", &raw, 1).as_bytes());
    }

    #[test]
    fn damaged_instances_are_repaired_or_refused(clean in instance(), acts in prop::collection::vec(damage(), 1..5)) {
        let raw = acts.iter().fold(clean.into_bytes(), |raw, act| act.apply(&raw));
        properties::repair_by(contract(), &raw);
    }

    /// Checks that all text stays in order, whichever tags are lost or inserted.
    #[test]
    fn text_survives_under_a_contract(
        clean in instance(),
        lost in prop::option::of(0..8usize),
        put in prop::sample::select(vec!["", "<u>", "</u>", "<u>x</u>", "<total>", "<br/>", "<a b c>", " & ", "<Box<T>"]),
        word in 0..4usize,
    ) {
        let dirty = clean.replacen(&format!("w{word}."), &format!("w{word}{put}."), 1);
        let tag = lost.and_then(|nth| dirty.match_indices("</").nth(nth)).map(|(at, _)| at);
        let dirty = match tag {
            Some(at) => format!("{}{}", &dirty[..at], &dirty[at + dirty[at..].find('>').unwrap() + 1..]),
            None => dirty,
        };
        let words = |text: &str| -> Vec<String> {
            let found = text.match_indices('w').map(|(at, _)| text[at..].chars().take(2).collect());
            found.collect()
        };
        if let Ok(repaired) = run_by(contract(), dirty.clone(), Shape::Document) {
            let text = all_text(repaired.bytes());
            prop_assert_eq!(words(&text), words(&all_text(clean.as_bytes())), "{} of {}", text, dirty);
        }
    }
}

#[test]
fn a_comment_whose_start_looks_like_its_end_is_heard_as_one() {
    for start in ["<!-->", "<!--->"] {
        let raw = format!("<ara{start}ticle><heading>w0.</heading><para><!-- c --></para><para>w1.</para></article>");
        properties::repair_by(contract(), raw.as_bytes());
    }
}

fn all_text(bytes: &[u8]) -> String {
    let text = std::str::from_utf8(bytes).unwrap();
    let document = roxmltree::Document::parse(text).unwrap();
    document.descendants().filter(|node| node.is_text()).filter_map(|node| node.text()).collect()
}
