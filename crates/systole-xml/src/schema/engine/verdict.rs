//! Verdicts on payloads, with the rules that they break.

use std::fmt;

use super::grammar::{ElementId, Grammar};
use super::judge::{self, Judge, Violation, paths};
use crate::ladder::{Canonical, Part};
use crate::vocab::{Position, QName};

/// Maximum number of violations to report: a message can have as many as it has elements.
const MOST: usize = 8;

/// The reason why a payload breaks its schema.
///
/// Displayed as its first rule, with the path if the name of the element doesn't identify it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{rule}{}", AtPath(path))]
#[non_exhaustive]
pub struct SchemaError {
    /// The first broken rule: the element, the value or element found, and the expected one.
    pub rule: String,
    /// The place in the sender's bytes: the attribute, the text or the start of the element.
    pub at: Option<Position>,
    /// The path of the element in the payload, such as `order/item[2]/price`; empty if there is none.
    pub path: String,
    /// Further broken rules, up to a limit.
    pub more: Vec<Finding>,
}

/// A further broken rule, displayed like the first one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The broken rule: the element, the value or element found, and the expected one.
    pub rule: String,
    /// The place in the sender's bytes: the attribute, the text or the start of the element.
    pub at: Option<Position>,
    /// The path of the element in the payload, such as `order/item[2]/price`.
    pub path: String,
}

/// A path behind a sentence, displayed only if it says more than the name of its element.
struct AtPath<'p>(&'p str);

/// Judges a payload by the grammar of its schema. A root without a declaration is judged by its `xsi:type`.
pub(in crate::schema) fn verdict(
    grammar: &Grammar,
    root: Option<ElementId>,
    judge: &mut Judge,
    payload: &Canonical,
) -> Result<(), SchemaError> {
    let violations = judge.judge(grammar, root, payload, MOST);
    if violations.is_empty() {
        return Ok(());
    }
    let place = |violation: &Violation| {
        let part = match &violation.part {
            judge::Part::Tag => Part::Tag,
            judge::Part::Attribute(name) => Part::Attribute(name),
            judge::Part::Content => Part::Content,
        };
        (violation.element, payload.position_of(violation.element, part))
    };
    let places: Vec<_> = violations.iter().map(place).collect();
    SchemaError::told(payload, violations.into_iter().map(|violation| violation.rule).zip(places).collect())
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.rule, AtPath(&self.path))
    }
}

impl fmt::Display for AtPath<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.contains('[') { write!(f, " ({})", self.0) } else { Ok(()) }
    }
}

impl SchemaError {
    pub(in crate::schema) fn unknown(payload: &QName, at: Option<Position>) -> Self {
        Self::whole(format!("no schema is known for {payload}"), at)
    }

    /// An instruction at an offset of the canonical form.
    pub(in crate::schema) fn instruction(payload: &Canonical, offset: usize) -> Self {
        let before = payload.bytes()[..offset].windows(2);
        let opened = before.filter(|two| two[0] == b'<' && !matches!(two[1], b'/' | b'?')).count();
        let at = payload.position(opened.saturating_sub(1));
        let rule = "a processing instruction is not allowed here: leave it out, or write &lt;? if it is text";
        Self::whole(rule.to_owned(), at)
    }

    /// An error of a payload as a whole.
    fn whole(rule: String, at: Option<Position>) -> Self {
        Self { rule, at, path: String::new(), more: Vec::new() }
    }

    /// An error of all broken rules, each with its element and place; `Ok` if there are none.
    fn told(payload: &Canonical, rules: Vec<(String, (usize, Option<Position>))>) -> Result<(), Self> {
        let elements: Vec<usize> = rules.iter().map(|(_, (element, _))| *element).collect();
        let paths = paths(payload.as_str(), &elements);
        let findings = rules.into_iter().zip(paths).map(|((rule, (_, at)), path)| Finding { rule, at, path });
        let mut findings = findings.collect::<Vec<_>>().into_iter();
        match findings.next() {
            Some(Finding { rule, at, path }) => Err(Self { rule, at, path, more: findings.collect() }),
            None => Ok(()),
        }
    }
}
