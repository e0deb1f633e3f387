//! The writer of patterns for JSON Schema, from syntax trees.
//!
//! It keeps to what the dialects of regular expressions have in common (JSON Schema Core 2020-12, section 6.4):
//! characters, ranges of them, groups, alternatives, quantifiers and anchors. A class is written as its ranges, because
//! `\d` and `\w` mean other characters in ECMA-262, and not all readers know `\p{Nd}`.

use regex_syntax::hir::{Class, ClassUnicode, Hir, HirKind, Look};

use super::class;
use super::emit::{branches, push_quantifier};

/// The greatest number of ranges of a class. A class with letters or digits of all scripts has more, and no reader would
/// want to see them.
const RANGES: usize = 32;

/// The pattern, in the syntax of ECMA-262, that finds a match in the same texts; `None` if there is no short one.
pub(super) fn emit(tree: &Hir) -> Option<String> {
    let mut out = String::new();
    write(&mut out, tree)?;
    Some(out)
}

/// Recurses as deep as the pattern nests, which the parsers bound.
fn write(out: &mut String, tree: &Hir) -> Option<()> {
    match tree.kind() {
        HirKind::Empty => {}
        HirKind::Literal(literal) => std::str::from_utf8(&literal.0).ok()?.chars().for_each(|c| push(out, c, false)),
        HirKind::Class(Class::Unicode(class)) => push_class(out, class)?,
        HirKind::Class(Class::Bytes(_)) => return None,
        HirKind::Look(Look::Start) => out.push('^'),
        HirKind::Look(Look::End) => out.push('$'),
        HirKind::Look(_) => return None,
        HirKind::Capture(capture) => group(out, &capture.sub)?,
        HirKind::Concat(parts) => parts.iter().try_for_each(|part| write(out, part))?,
        HirKind::Alternation(_) => group(out, tree)?,
        HirKind::Repetition(repetition) => {
            match repetition.sub.kind() {
                HirKind::Class(_) => write(out, &repetition.sub)?,
                HirKind::Literal(literal) if is_one(&literal.0) => write(out, &repetition.sub)?,
                _ => group(out, &repetition.sub)?,
            }
            push_quantifier(out, repetition);
        }
    }
    Some(())
}

fn is_one(literal: &[u8]) -> bool {
    std::str::from_utf8(literal).is_ok_and(|text| text.chars().count() == 1)
}

/// Writes the tree as one atom.
fn group(out: &mut String, tree: &Hir) -> Option<()> {
    out.push_str("(?:");
    for (index, branch) in branches(tree).iter().enumerate() {
        if index > 0 {
            out.push('|');
        }
        write(out, branch)?;
    }
    out.push(')');
    Some(())
}

fn push_class(out: &mut String, class: &ClassUnicode) -> Option<()> {
    let others = class::not(class.clone());
    let (open, written) = if others.ranges().len() < class.ranges().len() { ("[^", &others) } else { ("[", class) };
    match (class.ranges(), others.ranges()) {
        // No character at all.
        ([], _) => return None,
        (_, []) => out.push_str("[\\s\\S]"),
        _ if written.ranges().len() > RANGES => return None,
        _ => {
            out.push_str(open);
            for range in written.ranges() {
                push(out, range.start(), true);
                if range.end() > range.start() {
                    out.push('-');
                    push(out, range.end(), true);
                }
            }
            out.push(']');
        }
    }
    Some(())
}

fn push(out: &mut String, c: char, in_class: bool) {
    match c {
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\t' => out.push_str("\\t"),
        '-' if !in_class => out.push(c),
        '\\' | '|' | '.' | '-' | '^' | '$' | '?' | '*' | '+' | '{' | '}' | '(' | ')' | '[' | ']' => {
            out.push('\\');
            out.push(c);
        }
        _ => out.push(c),
    }
}
