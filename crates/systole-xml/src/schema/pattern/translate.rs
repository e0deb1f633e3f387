//! The translation of patterns of XSD into syntax trees of the regex crate.

use std::collections::HashSet;
use std::str::Chars;

use regex_syntax::hir::{Class, ClassUnicode, ClassUnicodeRange, Hir, Repetition};

use super::class;
use super::foreign;

/// An error in a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Flaw {
    /// The place as the number of a character, from 1; `None` for the pattern as a whole.
    pub(crate) at: Option<usize>,
    /// The error, with its correction.
    pub(crate) why: &'static str,
}

/// Translates a pattern of XSD (part 2, appendix F). The tree has no anchors.
///
/// # Errors
/// The error by the grammar of the Recommendation.
pub(super) fn translate(pattern: &str) -> Result<Hir, Flaw> {
    let mut chars = pattern.chars();
    let mut open = Vec::new();
    let read = |rest: &Chars| pattern.len() - rest.as_str().len();
    translated(&mut chars, &mut open, &read).map_err(|why| {
        let at = match why {
            UNCLOSED_GROUP | UNCLOSED => open.pop(),
            _ => None,
        };
        Flaw { at: Some(pattern[..at.unwrap_or_else(|| read(&chars))].chars().count()), why }
    })
}

/// Maximum number of ranges of the classes of a pattern together: more than the states that a schema may have. A class
/// such as `\p{L}` has some 650.
const RANGES: usize = 400_000;

/// A group of a pattern, as far as it is read; the whole pattern is one.
#[derive(Default)]
struct Group {
    /// The alternatives before the last `|`.
    alternatives: Vec<Hir>,
    /// The parts behind it, without `text`.
    parts: Vec<Hir>,
    /// The characters behind `parts`.
    text: String,
}

impl Group {
    /// Ends the text, so that its last character can be repeated, or another part follow.
    fn end_text(&mut self) {
        if !self.text.is_empty() {
            self.parts.push(Hir::literal(std::mem::take(&mut self.text).into_bytes()));
        }
    }

    fn push(&mut self, part: Hir) {
        self.end_text();
        self.parts.push(part);
    }

    /// Repeats the last part, or the last character of the text.
    fn repeat(&mut self, min: u32, max: Option<u32>) {
        let last = self.text.pop().map(|c| Hir::literal(c.to_string().into_bytes()));
        self.end_text();
        if let Some(sub) = last.or_else(|| self.parts.pop()) {
            self.parts.push(Hir::repetition(Repetition { min, max, greedy: true, sub: Box::new(sub) }));
        }
    }

    fn end_alternative(&mut self) {
        self.end_text();
        self.alternatives.push(Hir::concat(std::mem::take(&mut self.parts)));
    }

    fn end(mut self) -> Hir {
        self.end_alternative();
        Hir::alternation(self.alternatives)
    }
}

/// Translates as [`translate`]. `open` has the places behind the brackets that are not closed; `read` returns the
/// number of bytes read.
fn translated(chars: &mut Chars, open: &mut Vec<usize>, read: &impl Fn(&Chars) -> usize) -> Result<Hir, &'static str> {
    let mut around: Vec<Group> = Vec::new();
    let mut group = Group::default();
    let mut ranges = 0;
    let mut push_class = |group: &mut Group, class: ClassUnicode| {
        ranges += class.ranges().len();
        group.push(Hir::class(Class::Unicode(class)));
        if ranges > RANGES { Err(super::TOO_LARGE) } else { Ok(true) }
    };
    // A quantifier needs an atom before it, and an atom has at most one.
    let mut atom = false;
    let mut quantified = false;
    while let Some(c) = chars.next() {
        let was_atom = atom;
        atom = match c {
            '(' => {
                if let Some(why) = foreign::group(chars.as_str()) {
                    return Err(why);
                }
                if open.len() >= super::NESTING {
                    return Err("groups stand more than 100 deep inside each other");
                }
                open.push(read(chars));
                around.push(std::mem::take(&mut group));
                false
            }
            ')' => {
                const CLOSES_NOTHING: &str = "a ')' closes nothing: escape it by a backslash, \\)";
                open.pop().ok_or(CLOSES_NOTHING)?;
                let inner = std::mem::replace(&mut group, around.pop().ok_or(CLOSES_NOTHING)?);
                group.push(inner.end());
                true
            }
            '|' => {
                group.end_alternative();
                false
            }
            '?' | '+' if quantified => return Err(foreign::GREED),
            '*' | '{' if quantified => return Err("a quantifier stands behind a quantifier: remove one of them"),
            '?' | '*' | '+' | '{' if !atom => return Err("a quantifier stands behind nothing that it can repeat"),
            '?' | '*' | '+' | '{' => {
                let (min, max) = match c {
                    '?' => (0, Some(1)),
                    '*' => (0, None),
                    '+' => (1, None),
                    _ => quantity(chars)?,
                };
                group.repeat(min, max);
                false
            }
            '}' | ']' => return Err("a closing brace or bracket closes nothing: escape it by a backslash"),
            '.' => push_class(&mut group, class::dot())?,
            '[' => {
                open.push(read(chars));
                let class = bracketed(chars)?;
                open.pop();
                push_class(&mut group, class)?
            }
            '\\' => match escape(chars)? {
                Escape::One(c) => {
                    group.text.push(c);
                    true
                }
                Escape::Many(class) => push_class(&mut group, class)?,
            },
            c => {
                group.text.push(c);
                true
            }
        };
        quantified = was_atom && matches!(c, '?' | '*' | '+' | '{');
    }
    if !open.is_empty() {
        return Err(UNCLOSED_GROUP);
    }
    Ok(group.end())
}

/// Reads the text behind the `{` of a quantifier, `n}`, `n,}` or `n,m}`: the minimum and the maximum.
fn quantity(chars: &mut Chars) -> Result<(u32, Option<u32>), &'static str> {
    const MALFORMED: &str = "a quantifier in braces is {n}, {n,} or {n,m}";
    let (quantity, rest) = chars.as_str().split_once('}').ok_or(MALFORMED)?;
    if quantity.starts_with(',') {
        return Err("a quantifier in braces has a first number: write {0,n}");
    }
    let number = |digits: &str| -> Result<u32, &'static str> {
        if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(MALFORMED);
        }
        digits.parse().map_err(|_| "a quantifier counts further than 4294967295")
    };
    let least = number(quantity.split(',').next().unwrap_or_default())?;
    let most = match quantity.split_once(',') {
        None => Some(least),
        Some((_, "")) => None,
        Some((_, most)) => Some(number(most)?),
    };
    if most.is_some_and(|most| most < least) {
        return Err("a quantifier has an end before its start");
    }
    *chars = rest.chars();
    Ok((least, most))
}

const UNCLOSED: &str = "this '[' is never closed";

const UNCLOSED_GROUP: &str = "this '(' is never closed";

/// Reads the class behind a `[`, up to its `]`. Subtractions nest to the right: `[a-[b-[c]]]`.
fn bracketed(chars: &mut Chars) -> Result<ClassUnicode, &'static str> {
    let mut groups = Vec::new();
    let mut class = loop {
        let (group, minus) = group(chars)?;
        if !minus {
            break group;
        }
        groups.push(group);
    };
    while let Some(mut whole) = groups.pop() {
        if chars.next() != Some(']') {
            return Err("a class ends behind what is taken away from it");
        }
        whole.difference(&class);
        class = whole;
    }
    Ok(class)
}

/// Reads one group of a class, up to its `]`, or up to the `-[` of a subtraction.
fn group(chars: &mut Chars) -> Result<(ClassUnicode, bool), &'static str> {
    // Sorted at the end: a class keeps itself sorted, so that adding a range takes as long as it has ranges already.
    let mut ranges = Vec::new();
    let mut seen = HashSet::new();
    let mut first = true;
    let negated = ahead(chars).0 == Some('^');
    if negated {
        chars.next();
    }
    let minus = loop {
        let c = chars.next().ok_or(UNCLOSED)?;
        let low = match (c, ahead(chars)) {
            (']', _) if first => return Err("a class is empty"),
            (']', _) => break false,
            ('-', (Some('['), _)) if !first => {
                chars.next();
                break true;
            }
            ('[', (Some(':'), _)) => return Err(foreign::POSIX),
            ('[', _) => return Err("a '[' in a class stands without a backslash"),
            // A hyphen is literal where no range is possible: at the start and at the end.
            ('-', (next, then)) if first || next == Some(']') || (next == Some('-') && then == Some('[')) => {
                ranges.push(ClassUnicodeRange::new('-', '-'));
                first = false;
                continue;
            }
            ('-', _) => return Err("a '-' inside of a class stands without a backslash"),
            ('\\', _) => {
                let behind = chars.as_str();
                match escape(chars)? {
                    Escape::One(c) => c,
                    Escape::Many(many) => {
                        if seen.insert(&behind[..behind.len() - chars.as_str().len()]) {
                            ranges.extend(many.iter().copied());
                        }
                        first = false;
                        continue;
                    }
                }
            }
            (c, _) => c,
        };
        first = false;
        let high = match ahead(chars) {
            (Some('-'), Some(end)) if end != ']' && end != '[' => {
                chars.next();
                // `[a--[b]]` subtracts from `a` and the hyphen, so the first hyphen starts no range.
                if end == '-' && chars.as_str().starts_with("-[") {
                    ranges.push(ClassUnicodeRange::new('-', '-'));
                    low
                } else {
                    range_end(chars)?
                }
            }
            _ => low,
        };
        if high < low {
            return Err("a range of a class has its end before its start");
        }
        ranges.push(ClassUnicodeRange::new(low, high));
    };
    let class = ClassUnicode::new(ranges);
    Ok((if negated { class::not(class) } else { class }, minus))
}

fn range_end(chars: &mut Chars) -> Result<char, &'static str> {
    match chars.next() {
        Some('\\') => match escape(chars)? {
            Escape::One(c) => Ok(c),
            Escape::Many(_) => Err("a range of a class ends with a class"),
        },
        Some('-') => Err("a '-' inside of a class stands without a backslash"),
        Some(c) => Ok(c),
        None => Err(UNCLOSED),
    }
}

fn ahead(chars: &Chars) -> (Option<char>, Option<char>) {
    let mut ahead = chars.clone();
    (ahead.next(), ahead.next())
}

enum Escape {
    One(char),
    Many(ClassUnicode),
}

/// Reads the escape behind a backslash.
fn escape(chars: &mut Chars) -> Result<Escape, &'static str> {
    let many = |class: ClassUnicode| Ok(Escape::Many(class));
    match chars.next().ok_or("a backslash stands at the end")? {
        'n' => Ok(Escape::One('\n')),
        'r' => Ok(Escape::One('\r')),
        't' => Ok(Escape::One('\t')),
        c @ ('\\' | '|' | '.' | '?' | '*' | '+' | '(' | ')' | '{' | '}' | '-' | '[' | ']' | '^') => Ok(Escape::One(c)),
        's' => many(class::space()),
        'S' => many(class::not(class::space())),
        'i' => many(class::name_start()),
        'I' => many(class::not(class::name_start())),
        'c' => many(class::name_char()),
        'C' => many(class::not(class::name_char())),
        'd' => many(class::category("Nd")?),
        'D' => many(class::not(class::category("Nd")?)),
        'w' => many(class::word()),
        'W' => many(class::not(class::word())),
        'p' => many(property(chars)?),
        'P' => many(class::not(property(chars)?)),
        c => Err(foreign::escape(c)),
    }
}

/// Reads the `{Name}` of a category or a block.
fn property(chars: &mut Chars) -> Result<ClassUnicode, &'static str> {
    let braced = chars.as_str().strip_prefix('{').and_then(|rest| rest.split_once('}'));
    let (name, rest) = braced.ok_or("\\p and \\P need a name in braces")?;
    *chars = rest.chars();
    match name.strip_prefix("Is") {
        Some(block) => class::block(block),
        None => class::category(name),
    }
}
