//! Texts that match a pattern.

use regex_syntax::hir::{Class, ClassUnicode, Hir, HirKind};

use crate::ladder::strict::is_xml_char;

/// A text that the tree matches. `variant` chooses alternatives and characters; unbounded repetitions occur
/// `extra` times more than they must.
pub(super) fn sample(tree: &Hir, variant: usize, extra: usize) -> String {
    let mut text = String::new();
    write(&mut text, tree, variant, extra);
    text
}

/// Appends a text of the tree. Recurses as deep as the pattern nests, which the parser bounds.
fn write(text: &mut String, tree: &Hir, variant: usize, extra: usize) {
    match tree.kind() {
        HirKind::Empty | HirKind::Look(_) => {}
        HirKind::Literal(literal) => text.push_str(&String::from_utf8_lossy(&literal.0)),
        HirKind::Class(Class::Unicode(class)) => text.extend(character(class, variant)),
        HirKind::Class(Class::Bytes(_)) => {}
        HirKind::Repetition(repetition) => {
            let most = repetition.max.unwrap_or(u32::MAX);
            // One occurrence of an optional part shows more than none.
            let least = repetition.min.max(1).saturating_add(u32::try_from(extra).unwrap_or(u32::MAX));
            for _ in 0..least.min(most).min(1024) {
                write(text, &repetition.sub, variant, extra);
            }
        }
        HirKind::Capture(capture) => write(text, &capture.sub, variant, extra),
        HirKind::Concat(parts) => parts.iter().for_each(|part| write(text, part, variant, extra)),
        HirKind::Alternation(branches) => write(text, &branches[variant % branches.len()], variant, extra),
    }
}

/// A legible character of the class.
fn character(class: &ClassUnicode, variant: usize) -> Option<char> {
    let has = |c: char| class.iter().any(|range| (range.start()..=range.end()).contains(&c));
    let favourites = [['a', 'b'], ['A', 'B'], ['1', '2'], ['0', '9']];
    let favourite = favourites.into_iter().map(|pair| pair[variant % 2]).find(|&c| has(c));
    let any = || class.iter().flat_map(|range| range.start()..=range.end()).find(|&c| is_xml_char(c));
    let mut plain = ('!'..='~').filter(|&c| has(c));
    favourite
        .or_else(|| {
            plain.next().map(|first| if variant.is_multiple_of(2) { first } else { plain.next().unwrap_or(first) })
        })
        .or_else(any)
}
