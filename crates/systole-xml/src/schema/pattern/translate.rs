//! The translation of patterns of XSD into those of the regex crate.

use std::collections::HashSet;
use std::str::Chars;

use regex_syntax::hir::{Class, ClassUnicode, ClassUnicodeRange, Hir};

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

/// Translates a pattern of XSD (part 2, appendix F) into the syntax of the regex crate, anchored at both ends.
///
/// Classes are written out as ranges, so that none of their parts means something else in the other syntax.
///
/// # Errors
/// The error by the grammar of the Recommendation.
pub(super) fn translate(pattern: &str) -> Result<String, Flaw> {
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

/// Maximum number of bytes of a translation: several times as many as the states that a schema may have. A class such
/// as `\p{L}` takes some thousands.
const LONGEST: usize = 4 << 20;

/// Translates as [`translate`]. `open` has the places behind the brackets that are not closed; `read` returns the
/// number of bytes read.
fn translated(
    chars: &mut Chars,
    open: &mut Vec<usize>,
    read: &impl Fn(&Chars) -> usize,
) -> Result<String, &'static str> {
    let mut out = String::from("^(?:");
    // A quantifier needs an atom before it, and an atom has at most one.
    let mut atom = false;
    let mut quantified = false;
    while let Some(c) = chars.next() {
        if out.len() > LONGEST {
            return Err(super::TOO_LARGE);
        }
        let was_atom = atom;
        atom = match c {
            '(' => {
                if let Some(why) = foreign::group(chars.as_str()) {
                    return Err(why);
                }
                if open.len() >= super::NESTING as usize {
                    return Err("groups stand more than 100 deep inside each other");
                }
                open.push(read(chars));
                out.push_str("(?:");
                false
            }
            ')' => {
                open.pop().ok_or("a ')' closes nothing: escape it by a backslash, \\)")?;
                out.push(')');
                true
            }
            '|' => {
                out.push('|');
                false
            }
            '?' | '+' if quantified => return Err(foreign::GREED),
            '*' | '{' if quantified => return Err("a quantifier stands behind a quantifier: remove one of them"),
            '?' | '*' | '+' | '{' if !atom => return Err("a quantifier stands behind nothing that it can repeat"),
            '?' | '*' | '+' => {
                out.push(c);
                false
            }
            '{' => {
                push_quantity(&mut out, chars)?;
                false
            }
            '}' | ']' => return Err("a closing brace or bracket closes nothing: escape it by a backslash"),
            '.' => push_class(&mut out, class::dot()),
            '[' => {
                open.push(read(chars));
                let class = bracketed(chars)?;
                open.pop();
                push_class(&mut out, class)
            }
            '\\' => match escape(chars)? {
                Escape::One(c) => push_char(&mut out, c),
                Escape::Many(class) => push_class(&mut out, class),
            },
            c => push_char(&mut out, c),
        };
        quantified = was_atom && matches!(c, '?' | '*' | '+' | '{');
    }
    if !open.is_empty() {
        return Err(UNCLOSED_GROUP);
    }
    out.push_str(")$");
    Ok(out)
}

fn push_char(out: &mut String, c: char) -> bool {
    if regex_syntax::is_meta_character(c) {
        out.push('\\');
    }
    out.push(c);
    true
}

fn push_class(out: &mut String, class: ClassUnicode) -> bool {
    out.push_str(&Hir::class(Class::Unicode(class)).to_string());
    true
}

/// Translates the text behind the `{` of a quantifier: `n}`, `n,}` or `n,m}`.
fn push_quantity(out: &mut String, chars: &mut Chars) -> Result<(), &'static str> {
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
    match quantity.split_once(',') {
        None => out.push_str(&format!("{{{least}}}")),
        Some((_, "")) => out.push_str(&format!("{{{least},}}")),
        Some((_, most)) => {
            let most = number(most)?;
            if most < least {
                return Err("a quantifier has an end before its start");
            }
            out.push_str(&format!("{{{least},{most}}}"));
        }
    }
    *chars = rest.chars();
    Ok(())
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
    let mut class = ClassUnicode::new(ranges);
    if negated {
        class.negate();
    }
    Ok((class, minus))
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
