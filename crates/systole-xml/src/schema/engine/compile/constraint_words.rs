//! Identity constraints in words, for a language model.

use std::ops::Range;

use crate::schema::engine::grammar::{Constraint, ConstraintKind, Grammar, NameTest, Steps};
use crate::schema::shorten::shortened;

/// Maximum number of alternatives of a path, and of fields, that a sentence names.
const MOST: usize = 8;

/// Maximum number of characters of a path.
const LONGEST: usize = 200;

/// The identity constraints of some indexes, each without a dot: "no two <item> have the same @id".
pub(super) fn constraint_words(grammar: &Grammar, indexes: Range<u32>) -> impl Iterator<Item = String> {
    indexes.filter_map(|index| words(grammar, index))
}

fn words(grammar: &Grammar, index: u32) -> Option<String> {
    let constraint = grammar.constraints.get(index as usize)?;
    let (selected, fields) = (selected(constraint), fields(constraint));
    Some(match constraint.kind {
        ConstraintKind::Unique => format!("no two {selected} have the same {fields}"),
        ConstraintKind::Key => format!("each {selected} has {fields}, and no two have the same"),
        ConstraintKind::Keyref(key) => {
            let key = grammar.constraints.get(key as usize)?;
            let (of, owner) = (self::selected(key), self::fields(key));
            let are = if key.fields.len() > 1 { "are" } else { "is" };
            let is_vowel = of.trim_start_matches('<').starts_with(['a', 'e', 'i', 'o', 'u']);
            let article = if is_vowel { "an" } else { "a" };
            format!("each {fields} of {selected} {are} the {owner} of {article} {of}")
        }
    })
}

/// The elements that a constraint is about.
fn selected(constraint: &Constraint) -> String {
    either(constraint.selector.iter().map(path))
}

/// The values by which a constraint compares elements.
fn fields(constraint: &Constraint) -> String {
    let named: Vec<String> = constraint.fields.iter().take(MOST).map(|paths| either(paths.iter().map(field))).collect();
    let more = if constraint.fields.len() > MOST { " and others" } else { "" };
    format!("{}{more}", named.join(" and "))
}

fn either(paths: impl ExactSizeIterator<Item = String>) -> String {
    let more = if paths.len() > MOST { " or another" } else { "" };
    format!("{}{more}", paths.take(MOST).collect::<Vec<_>>().join(" or "))
}

fn field(steps: &Steps) -> String {
    let Some(attribute) = &steps.attribute else {
        let is_own = steps.children.is_empty() && !steps.anywhere;
        return if is_own { "text".to_owned() } else { path(steps) };
    };
    let attribute = match attribute {
        NameTest::Name(name) => format!("@{}", shortened(&name.local, LONGEST)),
        NameTest::Any | NameTest::Namespace(_) => "attribute".to_owned(),
    };
    if steps.children.is_empty() && !steps.anywhere { attribute } else { format!("{attribute} of {}", path(steps)) }
}

/// The element at the end of a path, then those around it.
fn path(steps: &Steps) -> String {
    let test = |test: &NameTest| match test {
        NameTest::Name(name) => format!("<{}>", name.local),
        NameTest::Any | NameTest::Namespace(_) => "element".to_owned(),
    };
    let names: Vec<String> = steps.children.iter().rev().map(test).collect();
    let depth = if steps.anywhere { " at any depth" } else { "" };
    match names.is_empty() {
        true if steps.anywhere => "element at any depth".to_owned(),
        true => "element like this".to_owned(),
        false => format!("{}{depth}", shortened(&names.join(" in "), LONGEST)),
    }
}
