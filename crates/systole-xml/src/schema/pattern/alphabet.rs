//! Large patterns over a small alphabet: characters that every class of a pattern treats alike become one letter.
//!
//! The automaton of `\p{L}` has some 700 states, because it reads UTF-8, and a counted expression is repeated in it as
//! often as its count. Over the letters of the pattern a class is one state.

use std::cell::Cell;
use std::collections::HashMap;

use regex_syntax::hir::{Class, ClassUnicode, ClassUnicodeRange, Hir, HirKind, Look, Repetition};

/// The mapping from characters to letters.
#[derive(Debug)]
pub(crate) struct Alphabet {
    ascii: [u8; 128],
    /// Starts of the runs of characters with the same letter.
    runs: Vec<(u32, u8)>,
}

/// Ranges of characters, both ends included, in order.
type Ranges = Vec<(u32, u32)>;

/// The classes of a pattern, each once.
#[derive(Default)]
struct Classes {
    numbers: HashMap<Ranges, usize>,
    /// The letters of each class.
    letters: Vec<String>,
}

/// Letters are printable ASCII.
const LETTERS: std::ops::RangeInclusive<u8> = b'!'..=b'~';

/// A pattern in its own alphabet; `None` if it has too many classes.
pub(super) fn reduced(tree: &Hir) -> Option<(Alphabet, Hir)> {
    let mut classes = Classes::default();
    classes.collect(tree)?;
    let alphabet = classes.alphabet()?;
    let tree = classes.spelled(tree)?;
    Some((alphabet, tree))
}

impl Alphabet {
    /// Calls `read` with a text in these letters.
    pub(super) fn spell<T>(&self, text: &str, read: impl FnOnce(&[u8]) -> T) -> T {
        const KEPT: usize = 1 << 16;
        thread_local!(static SPELLED: Cell<Vec<u8>> = const { Cell::new(Vec::new()) });
        let mut spelled = SPELLED.take();
        spelled.clear();
        if text.is_ascii() {
            spelled.extend(text.as_bytes().iter().map(|byte| self.ascii[usize::from(byte & 0x7F)]));
        } else {
            spelled.extend(text.chars().map(|c| self.letter(c)));
        }
        let result = read(&spelled);
        if spelled.capacity() <= KEPT {
            SPELLED.set(spelled);
        }
        result
    }

    /// Number of runs of characters with the same letter.
    pub(super) fn runs(&self) -> usize {
        self.runs.len()
    }

    fn letter(&self, c: char) -> u8 {
        self.ascii.get(c as usize).copied().unwrap_or_else(|| self.search(c as u32))
    }

    /// The letter of the run that contains a character.
    fn search(&self, c: u32) -> u8 {
        let behind = self.runs.partition_point(|(start, _)| *start <= c);
        self.runs[behind - 1].1
    }
}

impl Classes {
    /// Maximum number of classes: a set of them is a word of bits.
    const MOST: usize = 64;

    fn collect(&mut self, tree: &Hir) -> Option<()> {
        match tree.kind() {
            HirKind::Empty | HirKind::Look(Look::Start | Look::End) => Some(()),
            HirKind::Look(_) => None,
            HirKind::Literal(literal) => {
                std::str::from_utf8(&literal.0).ok()?.chars().try_for_each(|c| self.add(single(c)))
            }
            HirKind::Class(Class::Unicode(class)) => self.add(ranges(class)),
            HirKind::Class(Class::Bytes(_)) => None,
            HirKind::Repetition(repetition) => self.collect(&repetition.sub),
            HirKind::Capture(capture) => self.collect(&capture.sub),
            HirKind::Concat(parts) | HirKind::Alternation(parts) => {
                parts.iter().try_for_each(|part| self.collect(part))
            }
        }
    }

    fn add(&mut self, class: Ranges) -> Option<()> {
        let next = self.numbers.len();
        let number = *self.numbers.entry(class).or_insert(next);
        (number < Self::MOST).then_some(())
    }

    /// Assigns a letter to each set of classes that has a character in common.
    fn alphabet(&mut self) -> Option<Alphabet> {
        let mut bounds: Vec<(u32, usize)> = Vec::new();
        for (class, number) in &self.numbers {
            bounds.extend(class.iter().flat_map(|(first, last)| [(*first, *number), (last + 1, *number)]));
        }
        bounds.sort_unstable();
        self.letters = vec![String::new(); self.numbers.len()];
        let mut free = LETTERS;
        let mut letters = HashMap::from([(0, free.next()?)]);
        let mut runs = vec![(0, *LETTERS.start())];
        let mut members = 0u64;
        for at in bounds.chunk_by(|one, other| one.0 == other.0) {
            at.iter().for_each(|(_, number)| members ^= 1 << number);
            let letter = match letters.get(&members) {
                Some(letter) => *letter,
                None => {
                    let letter = free.next()?;
                    letters.insert(members, letter);
                    let of_it = self.letters.iter_mut().enumerate().filter(|(number, _)| members & 1 << number != 0);
                    of_it.for_each(|(_, spelled)| spelled.push(char::from(letter)));
                    letter
                }
            };
            runs.push((at[0].0, letter));
        }
        let alphabet = Alphabet { ascii: [0; 128], runs };
        Some(Alphabet { ascii: std::array::from_fn(|c| alphabet.search(c as u32)), ..alphabet })
    }

    /// The tree with its classes spelled in letters.
    fn spelled(&self, tree: &Hir) -> Option<Hir> {
        let all = |parts: &[Hir]| parts.iter().map(|part| self.spelled(part)).collect::<Option<Vec<Hir>>>();
        Some(match tree.kind() {
            HirKind::Empty => Hir::empty(),
            HirKind::Look(look) => Hir::look(*look),
            HirKind::Literal(literal) => {
                let text = std::str::from_utf8(&literal.0).ok()?;
                Hir::concat(text.chars().map(|c| self.class(&single(c))).collect::<Option<Vec<Hir>>>()?)
            }
            HirKind::Class(Class::Unicode(class)) => self.class(&ranges(class))?,
            HirKind::Class(Class::Bytes(_)) => return None,
            HirKind::Repetition(repetition) => {
                let sub = Box::new(self.spelled(&repetition.sub)?);
                Hir::repetition(Repetition { sub, ..repetition.clone() })
            }
            HirKind::Capture(capture) => self.spelled(&capture.sub)?,
            HirKind::Concat(parts) => Hir::concat(all(parts)?),
            HirKind::Alternation(parts) => Hir::alternation(all(parts)?),
        })
    }

    fn class(&self, class: &Ranges) -> Option<Hir> {
        let letters = self.letters.get(*self.numbers.get(class)?)?;
        let ranges = letters.chars().map(|letter| ClassUnicodeRange::new(letter, letter));
        Some(Hir::class(Class::Unicode(ClassUnicode::new(ranges))))
    }
}

fn single(c: char) -> Ranges {
    vec![(c as u32, c as u32)]
}

fn ranges(class: &ClassUnicode) -> Ranges {
    class.iter().map(|range| (range.start() as u32, range.end() as u32)).collect()
}
