use proptest::prelude::*;
use systole::ladder::properties;
use systole::ladder::repair::Shape;

use crate::damage::{damage, document};
use crate::files::run;
use crate::meaning;

/// Pieces that mean something to repair, in any order.
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
        "xmlns=\"urn:x\"",
    ];
    prop::collection::vec(prop::sample::select(pieces), 0..24).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]

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

    /// Damage that touches nothing but escapes, and what models put around their answers.
    #[test]
    fn text_is_kept(
        clean in document(),
        ampersands in any::<bool>(),
        less_than in any::<bool>(),
        before in prop::sample::select(vec!["", "Here it is:\n\n", "```xml\n", "Sure! 1 < 2, so\n", "</dummy>", "\u{FEFF}"]),
        after in prop::sample::select(vec!["", "\n", "\n```\n", "\n\nThat's all & more.", "</wrapper>"]),
    ) {
        let mut dirty = clean.clone();
        if ampersands {
            dirty = dirty.replace("AT&amp;T", "AT&T");
        }
        if less_than {
            dirty = dirty.replace("1 &lt; 2", "1 < 2");
        }
        for shape in [Shape::Document, Shape::Fragment] {
            let repaired = run(format!("{before}{dirty}{after}"), shape).unwrap();
            prop_assert_eq!(meaning::of(repaired.bytes(), shape), meaning::of(clean.as_bytes(), shape));
        }
    }

    /// A missing end tag may move where an element ends, or turn its start tag into text if it reads like some,
    /// never take text away.
    #[test]
    fn text_survives_missing_end_tags(clean in document(), nth in 0..6usize) {
        let Some((at, tag)) = clean.match_indices("</").nth(nth) else { return Ok(()) };
        let end = at + tag.len() + clean[at + tag.len()..].find('>').unwrap() + 1;
        if end == clean.len() {
            return Ok(());
        }
        let dirty = format!("{}{}", &clean[..at], &clean[end..]);
        let repaired = run(dirty, Shape::Document).unwrap();
        let (kept, meant) = (all_text(repaired.bytes()), all_text(clean.as_bytes()));
        let start = format!("<{}", &clean[at + tag.len()..end - 1]);
        prop_assert!(kept == meant || (kept.contains(&start) && kept.len() > meant.len()), "{} for {}", kept, meant);
    }

    /// A message cut in the middle is never taken for a whole one that says less.
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
}

fn all_text(bytes: &[u8]) -> String {
    let text = std::str::from_utf8(bytes).unwrap();
    let document = roxmltree::Document::parse(text).unwrap();
    document.descendants().filter(|node| node.is_text()).filter_map(|node| node.text()).collect()
}
