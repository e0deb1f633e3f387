//! Descriptions of the values of a type, for people and models.

use std::fmt::Write;

use super::bound::Bound;
use super::definition::Variety;
use super::facets::{Facets, Pattern};
use super::primitive::Primitive;
use crate::schema::shorten::{LONGEST_RULE, shortened};

/// The greatest number of values that a description lists.
pub(super) const MOST: usize = 24;

pub(super) fn list(item: &str) -> String {
    bounded(list_of(item))
}

/// The description of a list, from that of an item.
pub(in crate::schema) fn list_of(item: &str) -> String {
    format!("any number of values between spaces, each: {item}")
}

pub(super) fn union<'a>(members: impl Iterator<Item = &'a str>) -> String {
    bounded(union_of(&members.take(MOST).collect::<Vec<_>>()))
}

/// The description of a union, from those of its members.
pub(in crate::schema) fn union_of<T: AsRef<str>>(members: &[T]) -> String {
    members.iter().map(AsRef::as_ref).collect::<Vec<_>>().join("; or ")
}

/// Shortens a description: types are built from types, so that descriptions could grow without a bound.
fn bounded(words: String) -> String {
    if words.len() <= LONGEST_RULE { words } else { shortened(&words, LONGEST_RULE) }
}

/// The description of a value: the noun of its type, and the facets behind it.
pub(super) fn restriction(noun: &str, variety: &Variety, facets: &Facets, implied: Option<&Facets>) -> String {
    bounded(format!("{noun}{}", limits(variety, facets, implied)))
}

/// The facets in words, to stand behind the noun of a type or the values of its enumeration. All of an enumeration are
/// valid by the facets `implied`, which are left out.
pub(super) fn limits(variety: &Variety, facets: &Facets, implied: Option<&Facets>) -> String {
    // The limits of 64-bit numbers are not helpful in a description.
    let counted = |bound: &&Bound| !UNCOUNTABLE.contains(&bound.written.as_ref());
    let none = Facets::default();
    let known = implied.unwrap_or(&none);
    let is_new = |bound: &Option<Bound>, known: &Option<Bound>| {
        let key = |bound: &Option<Bound>| bound.as_ref().map(|bound| (bound.written.clone(), bound.inclusive));
        key(bound) != key(known)
    };
    let mut out = String::new();
    let least = facets.least.as_ref().filter(|_| is_new(&facets.least, &known.least)).filter(counted);
    let most = facets.most.as_ref().filter(|_| is_new(&facets.most, &known.most)).filter(counted);
    push_bounds(&mut out, least, most);
    if implied.is_some() && out.starts_with(' ') {
        out.insert(0, ',');
    }
    let lengths = |facets: &Facets| (facets.length, facets.min_length, facets.max_length);
    if lengths(facets) != lengths(known) {
        push_length(&mut out, variety, facets);
    }
    let digits = |facets: &Facets| (facets.total_digits, facets.fraction_digits);
    if digits(facets) != digits(known) {
        push_digits(&mut out, facets);
    }
    push_patterns(&mut out, variety, facets.patterns.get(known.patterns.len()..).unwrap_or_default());
    out
}

/// The description of one of the first values of an enumeration, which has `all`.
pub(super) fn enumeration(values: &[&str], all: usize) -> String {
    let named: Vec<String> = values.iter().take(MOST).map(|value| format!("'{value}'")).collect();
    let words = match (named.as_slice(), all.saturating_sub(MOST)) {
        ([one], 0) => one.clone(),
        (named, 0) => format!("one of {}", named.join(", ")),
        (named, more) => format!("one of {} and {more} others", named.join(", ")),
    };
    bounded(words)
}

/// The bounds that descriptions leave out.
const UNCOUNTABLE: [&str; 3] = ["-9223372036854775808", "9223372036854775807", "18446744073709551615"];

/// The description with both bounds, for a value outside of them; `None` if the usual description has them.
pub(super) fn bounds(noun: &str, facets: &Facets) -> Option<String> {
    let uncounted =
        |bound: &Option<Bound>| bound.as_ref().is_some_and(|bound| UNCOUNTABLE.contains(&bound.written.as_ref()));
    if !uncounted(&facets.least) && !uncounted(&facets.most) || facets.values.is_some() {
        return None;
    }
    let mut out = noun.to_owned();
    push_bounds(&mut out, facets.least.as_ref(), facets.most.as_ref());
    Some(out)
}

fn push_bounds(out: &mut String, least: Option<&Bound>, most: Option<&Bound>) {
    if let (Some(Bound { inclusive: true, written: least, .. }), Some(Bound { inclusive: true, written: most, .. })) =
        (least, most)
    {
        let _ = write!(out, " from {least} to {most}");
        return;
    }
    for (bound, inclusive, exclusive) in [(least, "at least", "more than"), (most, "at most", "less than")] {
        if let Some(bound) = bound {
            let _ = write!(out, ", {} {}", if bound.inclusive { inclusive } else { exclusive }, bound.written);
        }
    }
}

fn push_length(out: &mut String, variety: &Variety, facets: &Facets) {
    let unit = match variety {
        Variety::Atomic(Primitive::Hex | Primitive::Base64) => "byte",
        Variety::List(_) => "item",
        _ => "character",
    };
    let (min, max) = match facets.length {
        Some(exact) => (Some(exact), Some(exact)),
        None => (facets.min_length, facets.max_length),
    };
    let _ = match (min, max) {
        (None | Some(0), None) => Ok(()),
        (Some(min), Some(max)) if min == max => write!(out, ", exactly {min} {unit}{}", plural(min)),
        (None | Some(0), Some(max)) => write!(out, ", at most {max} {unit}{}", plural(max)),
        (Some(min), None) => write!(out, ", at least {min} {unit}{}", plural(min)),
        (Some(min), Some(max)) => write!(out, ", {min} to {max} {unit}s"),
    };
}

fn push_digits(out: &mut String, facets: &Facets) {
    if let Some(most) = facets.total_digits {
        let _ = write!(out, ", at most {most} digit{}", plural(most));
    }
    match facets.fraction_digits {
        Some(0) => out.push_str(", without a fraction"),
        Some(most) => drop(write!(out, ", at most {most} digit{} behind the point", plural(most))),
        None => {}
    }
}

/// A pattern of a list or union stands apart from those of its items or members.
fn push_patterns(out: &mut String, variety: &Variety, patterns: &[Pattern]) {
    let before = match variety {
        Variety::List(_) | Variety::Union(_) => "; the whole text matching",
        Variety::Any | Variety::Atomic(_) => ", matching",
    };
    for pattern in patterns {
        let _ = write!(out, "{before} {}", pattern.written);
    }
}

fn plural(count: usize) -> &'static str {
    if count == 1 { "" } else { "s" }
}
