//! Descriptions of the values of a type, for people and models.

use std::fmt::Write;

use super::bound::Bound;
use super::definition::Variety;
use super::facets::Facets;
use super::primitive::Primitive;
use crate::schema::shorten::{LONGEST_RULE, shortened};

/// The source of the values of an enumeration.
pub(super) enum Enumerators<'a> {
    None,
    /// The description of the base lists them.
    OfBase(String),
    /// The first values, and the number of all.
    Own(Vec<&'a str>, usize),
}

/// The greatest number of values that a description lists.
pub(super) const MOST: usize = 24;

pub(super) fn list(item: &str) -> String {
    bounded(format!("any number of values between spaces, each: {item}"))
}

pub(super) fn union<'a>(members: impl Iterator<Item = &'a str>) -> String {
    bounded(members.take(MOST).collect::<Vec<_>>().join("; or "))
}

/// Shortens a description: types are built from types, so that descriptions could grow without a bound.
fn bounded(words: String) -> String {
    if words.len() <= LONGEST_RULE { words } else { shortened(&words, LONGEST_RULE) }
}

pub(super) fn restriction(noun: &str, variety: &Variety, facets: &Facets, enumerators: Enumerators) -> String {
    match enumerators {
        Enumerators::Own(values, all) => bounded(enumeration(&values, all)),
        Enumerators::OfBase(words) => words,
        Enumerators::None => {
            let mut out = noun.to_owned();
            // The limits of 64-bit numbers are not helpful in a description.
            let counted = |bound: &&Bound| !UNCOUNTABLE.contains(&bound.written.as_ref());
            push_bounds(&mut out, facets.least.as_ref().filter(counted), facets.most.as_ref().filter(counted));
            push_length(&mut out, variety, facets);
            push_digits(&mut out, facets);
            for pattern in &facets.patterns {
                let _ = write!(out, ", matching {}", pattern.written);
            }
            bounded(out)
        }
    }
}

fn enumeration(values: &[&str], all: usize) -> String {
    let named: Vec<String> = values.iter().take(MOST).map(|value| format!("'{value}'")).collect();
    match (named.as_slice(), all.saturating_sub(MOST)) {
        ([one], 0) => one.clone(),
        (named, 0) => format!("one of {}", named.join(", ")),
        (named, more) => format!("one of {} and {more} others", named.join(", ")),
    }
}

/// The bounds that descriptions leave out.
const UNCOUNTABLE: [&str; 3] = ["-9223372036854775808", "9223372036854775807", "18446744073709551615"];

/// The description with both bounds, for a value outside of them; `None` if the usual description has them.
pub(super) fn bounds(noun: &str, facets: &Facets, words: &str) -> Option<String> {
    let uncounted =
        |bound: &Option<Bound>| bound.as_ref().is_some_and(|bound| UNCOUNTABLE.contains(&bound.written.as_ref()));
    if !uncounted(&facets.least) && !uncounted(&facets.most) || words.starts_with("one of ") {
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
        Variety::Atomic(Primitive::Hex | Primitive::Base64) => "octet",
        Variety::List(_) => "item",
        _ => "character",
    };
    let (min, max) = match facets.length {
        Some(exact) => (Some(exact), Some(exact)),
        None => (facets.min_length, facets.max_length),
    };
    let plural = |count: usize| if count == 1 { "" } else { "s" };
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
        let _ = write!(out, ", at most {most} digits");
    }
    match facets.fraction_digits {
        Some(0) => out.push_str(", without a fraction"),
        Some(most) => drop(write!(out, ", at most {most} digits behind the point")),
        None => {}
    }
}
