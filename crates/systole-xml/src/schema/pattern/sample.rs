//! Texts that match a pattern.

use regex_syntax::hir::{Class, ClassUnicode, Hir, HirKind};

use crate::ladder::chars::is_xml_char;

/// Maximum size of a text in bytes.
const LONGEST: usize = 1_024;

/// Leaves out all that may be left out.
const BARE: usize = usize::MAX;

/// Texts that the tree matches, simple ones first; they differ by `variant`. Each branch of an alternation is among
/// them, and so are texts of about `length` characters.
pub(super) fn samples(tree: &Hir, variant: usize, length: Option<u64>) -> impl Iterator<Item = String> {
    const FEW: usize = 8;
    const DICE: u64 = 48;
    const REPEATED: usize = 64;
    let branches = widest(tree).clamp(2, 2 * FEW);
    let simple = (variant..variant + branches).flat_map(|variant| [(variant, 0), (variant, BARE)]);
    let fitted = length.into_iter().flat_map(move |length| extras(tree, variant, length));
    let longer = (1..=FEW).flat_map(move |extra| [(variant, extra), (variant + 1, extra)]);
    let plain = |(variant, extra)| Choice::new(variant, extra, None);
    let random = move |turn: u64| {
        let most = length.map_or(FEW, |length| usize::try_from(length).unwrap_or(LONGEST).clamp(FEW, LONGEST));
        let extra = usize::try_from(turn).unwrap_or(0) % most;
        Choice::new(variant, extra, Some(turn * 2 + variant as u64))
    };
    let long = (FEW + 1..REPEATED).map(move |extra| (variant, extra));
    let choices = simple.chain(fitted).chain(longer).map(plain).chain((0..DICE).map(random)).chain(long.map(plain));
    choices.filter_map(move |choice| sample(tree, choice))
}

/// The repetitions by which the shortest text gets `length` characters, if one expression or all of them repeat.
fn extras(tree: &Hir, variant: usize, length: u64) -> Vec<(usize, usize)> {
    let size = |extra| Some(sample(tree, Choice::new(variant, extra, None))?.chars().count());
    let (Some(least), Some(more)) = (size(0), size(1)) else { return Vec::new() };
    let Some(missing) = usize::try_from(length).ok().and_then(|length| length.checked_sub(least)) else {
        return Vec::new();
    };
    match more.checked_sub(least).filter(|each| *each > 0) {
        Some(each) => vec![(variant, missing / each), (variant, missing.div_ceil(each))],
        None => Vec::new(),
    }
}

/// Number of branches of the widest alternation.
fn widest(tree: &Hir) -> usize {
    match tree.kind() {
        HirKind::Empty | HirKind::Look(_) | HirKind::Literal(_) | HirKind::Class(_) => 1,
        HirKind::Repetition(repetition) => widest(&repetition.sub),
        HirKind::Capture(capture) => widest(&capture.sub),
        HirKind::Concat(parts) => parts.iter().map(widest).max().unwrap_or(1),
        HirKind::Alternation(branches) => branches.iter().map(widest).max().unwrap_or(1).max(branches.len()),
    }
}

/// The choices that make one text out of a pattern.
struct Choice {
    /// Index of the alternatives and characters.
    variant: usize,
    /// Number of occurrences of unbounded repetitions beside those that they must have; [`BARE`] for the fewest of all.
    extra: usize,
    /// Chooses at random instead, from this seed.
    dice: Option<u64>,
    /// Number of expressions that may still be visited: one that matches only the empty text may be repeated for long.
    left: usize,
}

impl Choice {
    fn new(variant: usize, extra: usize, dice: Option<u64>) -> Self {
        Self { variant, extra, dice, left: 4 * LONGEST }
    }

    /// A number below `end`.
    fn below(&mut self, end: usize) -> usize {
        match &mut self.dice {
            None => self.variant % end.max(1),
            Some(seed) => {
                // SplitMix64.
                *seed = seed.wrapping_add(0x9E37_79B9_7F4A_7C15);
                let mixed = (*seed ^ (*seed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
                let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
                usize::try_from((mixed >> 33) % end.max(1) as u64).unwrap_or(0)
            }
        }
    }

    fn occurrences(&mut self, min: u32, max: Option<u32>) -> usize {
        let most = usize::try_from(max.unwrap_or(u32::MAX)).unwrap_or(usize::MAX);
        let min = usize::try_from(min).unwrap_or(usize::MAX);
        match self.dice {
            None if self.extra == BARE => min,
            // One occurrence of an optional part shows more than none.
            None => min.max(1).saturating_add(self.extra).min(most),
            Some(_) => min.saturating_add(self.below((self.extra + 3).min(most.saturating_sub(min) + 1))),
        }
    }
}

/// A text that the tree matches; `None` if it would be too long.
fn sample(tree: &Hir, mut choice: Choice) -> Option<String> {
    let mut text = String::new();
    write(&mut text, tree, &mut choice)?;
    Some(text)
}

/// Appends a text of the tree. Recurses as deep as the pattern nests, which the parser bounds.
fn write(text: &mut String, tree: &Hir, choice: &mut Choice) -> Option<()> {
    choice.left = choice.left.checked_sub(1)?;
    match tree.kind() {
        HirKind::Empty | HirKind::Look(_) | HirKind::Class(Class::Bytes(_)) => {}
        HirKind::Literal(literal) => text.push_str(&String::from_utf8_lossy(&literal.0)),
        HirKind::Class(Class::Unicode(class)) => text.extend(character(class, choice)),
        HirKind::Repetition(repetition) => {
            let occurrences = choice.occurrences(repetition.min, repetition.max);
            (0..occurrences).try_for_each(|_| write(text, &repetition.sub, choice))?;
        }
        HirKind::Capture(capture) => write(text, &capture.sub, choice)?,
        HirKind::Concat(parts) => parts.iter().try_for_each(|part| write(text, part, choice))?,
        HirKind::Alternation(branches) => write(text, &branches[choice.below(branches.len())], choice)?,
    }
    (text.len() <= LONGEST).then_some(())
}

/// A legible character of the class.
fn character(class: &ClassUnicode, choice: &mut Choice) -> Option<char> {
    if choice.dice.is_some() {
        let plain: Vec<char> = printable(class).collect();
        if !plain.is_empty() {
            return Some(plain[choice.below(plain.len())]);
        }
    }
    let has = |c: char| class.iter().any(|range| (range.start()..=range.end()).contains(&c));
    let second = choice.variant % 2 == 1;
    let favourites = [['a', 'b'], ['A', 'B'], ['1', '2'], ['0', '9']];
    let favourite = favourites.into_iter().map(|pair| pair[usize::from(second)]).find(|&c| has(c));
    let any = || class.iter().flat_map(|range| range.start()..=range.end()).find(|&c| is_xml_char(c));
    let mut plain = printable(class);
    favourite
        .or_else(|| plain.next().map(|first| if second { plain.next().unwrap_or(first) } else { first }))
        .or_else(any)
}

/// The visible characters of ASCII in a class.
fn printable(class: &ClassUnicode) -> impl Iterator<Item = char> {
    let ranges = class.iter().take_while(|range| range.start() <= '~');
    ranges.flat_map(|range| range.start().max('!')..=range.end().min('~'))
}
