use regex_syntax::hir::{Class, Hir, HirKind};
use regex_syntax::utf8::Utf8Sequences;

/// About how many states the automaton of a tree has: what is counted stands there as often.
///
/// Recurses as deep as the pattern nests, which the parser bounds.
pub(super) fn cost(tree: &Hir) -> usize {
    match tree.kind() {
        HirKind::Empty | HirKind::Look(_) => 1,
        HirKind::Literal(literal) => literal.0.len(),
        HirKind::Class(Class::Unicode(class)) => {
            class.iter().map(|range| Utf8Sequences::new(range.start(), range.end()).count()).sum()
        }
        HirKind::Class(Class::Bytes(class)) => class.ranges().len(),
        HirKind::Repetition(repetition) => {
            let times = repetition.max.unwrap_or(repetition.min.saturating_add(1)).max(1);
            cost(&repetition.sub).saturating_add(1).saturating_mul(times as usize)
        }
        HirKind::Capture(capture) => cost(&capture.sub),
        HirKind::Concat(parts) | HirKind::Alternation(parts) => parts.iter().map(cost).fold(1, usize::saturating_add),
    }
}
