//! The writer of XSD patterns, from syntax trees.

use regex_syntax::hir::{Class, ClassUnicode, ClassUnicodeRange, Hir, HirKind, Look, Repetition};

use super::class;

const ANYTHING: &str = "[\\s\\S]*";
/// A class without characters.
const NOTHING: &str = "[^\\s\\S]";

/// Writes the XSD pattern for the texts in which the tree finds a match.
///
/// # Errors
/// The part that XSD can't express.
pub(super) fn emit(tree: &Hir) -> Result<String, &'static str> {
    let mut out = String::new();
    search(&mut out, tree, Ends { start: true, end: true })?;
    Ok(out)
}

/// The ends of the whole value that a tree touches. There a match may begin late or end early, unless an
/// anchor forbids it.
#[derive(Clone, Copy)]
struct Ends {
    start: bool,
    end: bool,
}

fn search(out: &mut String, tree: &Hir, ends: Ends) -> Result<(), &'static str> {
    match tree.kind() {
        HirKind::Alternation(branches) if is_anchored(tree) => {
            out.push('(');
            for (index, branch) in branches.iter().enumerate() {
                if index > 0 {
                    out.push('|');
                }
                search(out, branch, ends)?;
            }
            out.push(')');
            Ok(())
        }
        HirKind::Capture(capture) if is_anchored(tree) => search(out, &capture.sub, ends),
        HirKind::Concat(parts) => sequence(out, parts, ends),
        _ => sequence(out, std::slice::from_ref(tree), ends),
    }
}

fn sequence(out: &mut String, parts: &[Hir], ends: Ends) -> Result<(), &'static str> {
    let is = |part: Option<&Hir>, look| part.is_some_and(|part| matches!(part.kind(), HirKind::Look(l) if *l == look));
    let start = ends.start && is(parts.first(), Look::Start);
    let parts = if start { &parts[1..] } else { parts };
    let end = ends.end && is(parts.last(), Look::End);
    let parts = if end { &parts[..parts.len() - 1] } else { parts };
    // A part at an end that has anchors of its own adds the missing texts itself.
    let own = |part: Option<&Hir>, open: bool| open && part.is_some_and(branches_anchored);
    let first_decides = own(parts.first(), ends.start && !start);
    let last_decides = own(parts.last(), ends.end && !end);
    if ends.start && !start && !first_decides {
        out.push_str(ANYTHING);
    }
    for (index, part) in parts.iter().enumerate() {
        let ends = Ends { start: index == 0 && first_decides, end: index + 1 == parts.len() && last_decides };
        if ends.start || ends.end { search(out, part, ends)? } else { write(out, part)? }
    }
    if ends.end && !end && !last_decides {
        out.push_str(ANYTHING);
    }
    Ok(())
}

/// Returns whether a tree contains an anchor.
fn is_anchored(tree: &Hir) -> bool {
    !tree.properties().look_set().is_empty()
}

/// Returns whether a tree is a choice, in parentheses or not, with anchors in its branches.
fn branches_anchored(tree: &Hir) -> bool {
    matches!(tree.kind(), HirKind::Alternation(_) | HirKind::Capture(_)) && is_anchored(tree)
}

/// The alternatives of a choice, in parentheses or not; the tree itself if it is none.
pub(super) fn branches(tree: &Hir) -> &[Hir] {
    match tree.kind() {
        HirKind::Alternation(branches) => branches,
        HirKind::Capture(capture) => branches(&capture.sub),
        _ => std::slice::from_ref(tree),
    }
}

/// Writes a tree without anchors. Recurses as deep as the pattern nests, which the parser bounds.
fn write(out: &mut String, tree: &Hir) -> Result<(), &'static str> {
    match tree.kind() {
        HirKind::Empty => Ok(()),
        HirKind::Literal(literal) => {
            let text = std::str::from_utf8(&literal.0).map_err(|_| "it matches bytes that are no text")?;
            for c in text.chars() {
                // No text of XML has a character that XML forbids: the schema could not name it either.
                match clipped([ClassUnicodeRange::new(c, c)].iter()).is_empty() {
                    true => out.push_str(NOTHING),
                    false => push_escaped(out, c, false),
                }
            }
            Ok(())
        }
        HirKind::Class(Class::Unicode(class)) => {
            push_class(out, class);
            Ok(())
        }
        HirKind::Class(Class::Bytes(_)) => Err("it matches bytes that are no text"),
        HirKind::Look(_) => Err("an anchor or a word boundary stands inside of it"),
        HirKind::Capture(capture) => group(out, &capture.sub),
        HirKind::Concat(parts) => parts.iter().try_for_each(|part| write(out, part)),
        HirKind::Alternation(_) => group(out, tree),
        HirKind::Repetition(repetition) => {
            group(out, &repetition.sub)?;
            push_quantifier(out, repetition);
            Ok(())
        }
    }
}

/// Writes the tree as one atom.
fn group(out: &mut String, tree: &Hir) -> Result<(), &'static str> {
    if let HirKind::Class(_) = tree.kind() {
        return write(out, tree);
    }
    out.push('(');
    for (index, branch) in branches(tree).iter().enumerate() {
        if index > 0 {
            out.push('|');
        }
        write(out, branch)?;
    }
    out.push(')');
    Ok(())
}

/// Writes a quantifier, in the syntax that all dialects have.
pub(super) fn push_quantifier(out: &mut String, repetition: &Repetition) {
    match (repetition.min, repetition.max) {
        (0, None) => out.push('*'),
        (1, None) => out.push('+'),
        (0, Some(1)) => out.push('?'),
        (min, None) => out.push_str(&format!("{{{min},}}")),
        (min, Some(max)) if min == max => out.push_str(&format!("{{{min}}}")),
        (min, Some(max)) => out.push_str(&format!("{{{min},{max}}}")),
    }
}

fn push_class(out: &mut String, class: &ClassUnicode) {
    // Two classes have a short name: the digits, which are the same in both syntaxes, and the word characters, which
    // differ only in a few enclosed letters. All others are written out.
    let known = [(r"\d", r"\d"), (r"\D", r"\D"), (r"\w", r"[\p{L}\p{M}\p{Nd}\p{Nl}\p{Pc}]")];
    if let Some((_, name)) = known.iter().find(|(rust, _)| perl(rust).as_ref() == Some(class)) {
        out.push_str(name);
        return;
    }
    let ranges = clipped(class.iter());
    let others = clipped(class::not(class.clone()).iter());
    match (ranges.as_slice(), others.as_slice()) {
        ([(one, same)], _) if one == same => push_escaped(out, *one, false),
        (_, []) => out.push_str("[\\s\\S]"),
        ([], _) => out.push_str(NOTHING),
        (ranges, others) if others.len() < ranges.len() => push_ranges(out, "[^", others),
        (ranges, _) => push_ranges(out, "[", ranges),
    }
}

fn push_ranges(out: &mut String, open: &str, ranges: &[(char, char)]) {
    out.push_str(open);
    for &(start, end) in ranges {
        push_escaped(out, start, true);
        if end > start {
            out.push('-');
            push_escaped(out, end, true);
        }
    }
    out.push(']');
}

/// The ranges without the characters that XML forbids.
fn clipped<'a>(ranges: impl Iterator<Item = &'a ClassUnicodeRange>) -> Vec<(char, char)> {
    const XML: [(char, char); 5] =
        [('\t', '\n'), ('\r', '\r'), (' ', '\u{D7FF}'), ('\u{E000}', '\u{FFFD}'), ('\u{10000}', char::MAX)];
    let meet = |range: &ClassUnicodeRange, (low, high): (char, char)| (range.start().max(low), range.end().min(high));
    ranges.flat_map(|range| XML.map(|xml| meet(range, xml))).filter(|(start, end)| start <= end).collect()
}

fn push_escaped(out: &mut String, c: char, in_class: bool) {
    match c {
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\t' => out.push_str("\\t"),
        '-' if !in_class => out.push(c),
        '\\' | '|' | '.' | '-' | '^' | '?' | '*' | '+' | '{' | '}' | '(' | ')' | '[' | ']' => {
            out.push('\\');
            out.push(c);
        }
        _ => out.push(c),
    }
}

fn perl(class: &str) -> Option<ClassUnicode> {
    match regex_syntax::parse(class).ok()?.into_kind() {
        HirKind::Class(Class::Unicode(class)) => Some(class),
        _ => None,
    }
}
