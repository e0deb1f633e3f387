//! The costs of patterns: states of their automata, and steps of a match.

use regex_syntax::hir::{Class, Hir, HirKind};
use regex_syntax::utf8::Utf8Sequences;

/// Approximate number of states of the automaton of a tree: a counted expression is repeated as often as its count.
///
/// Recurses as deep as the pattern nests, which the parser bounds.
pub(super) fn cost(tree: &Hir) -> usize {
    match tree.kind() {
        HirKind::Empty | HirKind::Look(_) => 1,
        HirKind::Literal(literal) => literal.0.len(),
        HirKind::Class(Class::Unicode(class)) => class.iter().map(|range| sequences(range.start(), range.end())).sum(),
        HirKind::Class(Class::Bytes(class)) => class.ranges().len(),
        HirKind::Repetition(repetition) => {
            let times = repetition.max.unwrap_or(repetition.min.saturating_add(1)).max(1);
            cost(&repetition.sub).saturating_add(1).saturating_mul(times as usize)
        }
        HirKind::Capture(capture) => cost(&capture.sub),
        HirKind::Concat(parts) | HirKind::Alternation(parts) => parts.iter().map(cost).fold(1, usize::saturating_add),
    }
}

/// Number of sequences of ranges of bytes for a range of characters. Most ranges of a class such as `\p{Lu}` are one
/// character, which is one sequence.
fn sequences(start: char, end: char) -> usize {
    if start == end { 1 } else { Utf8Sequences::new(start, end).count() }
}

/// Approximate number of states that one byte of a text can lead to at worst; 1 if they are few. They are
/// many if a text can be divided in several ways between an expression of variable length and the one behind it or its
/// repetition, as in `(a{0,9}){0,9}`, `.{0,99}a.{0,99}` and `.*a.{99}`. Else each byte leads to few, however high
/// the counts are, as in `.{0,4000}`.
pub(super) fn per_byte(tree: &Hir) -> usize {
    /// Number of states that are visited about as fast as one.
    const FEW: usize = 64;
    let Shape { spread, .. } = shape(tree);
    if spread > FEW { spread } else { 1 }
}

struct Shape {
    /// Number of characters and classes, counted ones as often as their count.
    positions: usize,
    /// Number of positions that a text can lead to at once.
    spread: usize,
    /// Minimum and maximum number of characters of a match.
    length: (usize, Option<usize>),
}

impl Shape {
    const fn fixed(length: usize) -> Self {
        Self { positions: length, spread: 1, length: (length, Some(length)) }
    }

    fn varies(&self) -> bool {
        self.length.1 != Some(self.length.0)
    }
}

/// The shape of a tree. Recurses as deep as the pattern nests, which the parser bounds.
fn shape(tree: &Hir) -> Shape {
    match tree.kind() {
        HirKind::Empty | HirKind::Look(_) => Shape::fixed(0),
        HirKind::Literal(literal) => Shape::fixed(literal.0.len()),
        HirKind::Class(_) => Shape::fixed(1),
        HirKind::Capture(capture) => shape(&capture.sub),
        HirKind::Repetition(repetition) => {
            let sub = shape(&repetition.sub);
            let (min, max) = (repetition.min as usize, repetition.max.map(|max| max as usize));
            let positions = sub.positions.saturating_mul(max.unwrap_or(min.saturating_add(1)).max(1));
            let (least, most) = sub.length;
            Shape {
                positions,
                spread: if sub.varies() && max != Some(1) { positions } else { sub.spread },
                length: (least.saturating_mul(min), most.zip(max).map(|(most, max)| most.saturating_mul(max))),
            }
        }
        HirKind::Concat(parts) => {
            let mut whole = Shape::fixed(0);
            let mut behind = 0usize;
            for part in parts.iter().map(shape) {
                if whole.varies() {
                    behind = behind.saturating_add(part.positions);
                }
                whole.positions = whole.positions.saturating_add(part.positions);
                whole.spread = whole.spread.max(part.spread);
                whole.length.0 = whole.length.0.saturating_add(part.length.0);
                whole.length.1 = whole.length.1.zip(part.length.1).map(|(one, other)| one.saturating_add(other));
            }
            Shape { spread: whole.spread.saturating_add(behind), ..whole }
        }
        HirKind::Alternation(parts) => {
            let mut whole = Shape { positions: 0, spread: 1, length: (usize::MAX, Some(0)) };
            for (tree, part) in parts.iter().map(|part| (part, shape(part))) {
                whole.positions = whole.positions.saturating_add(part.positions);
                // The first character of a text tells which alternative it may be.
                let is_text = matches!(tree.kind(), HirKind::Literal(_));
                whole.spread = whole.spread.max(part.spread).saturating_add(usize::from(!is_text));
                whole.length.0 = whole.length.0.min(part.length.0);
                whole.length.1 = whole.length.1.zip(part.length.1).map(|(one, other)| one.max(other));
            }
            whole
        }
    }
}
