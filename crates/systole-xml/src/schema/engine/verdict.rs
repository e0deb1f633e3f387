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
    origin: Box<Origin>,
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
    origin: Box<Origin>,
}

/// A broken rule for who has sent the payload in another form than XML.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Origin {
    /// The element, by its number in document order.
    element: usize,
    /// Its attribute, if that breaks the rule.
    attribute: Option<String>,
    /// The rule in words of JSON.
    json: String,
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
    SchemaError::told(payload, violations)
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

    /// The places of the broken rules: the number of the element, and the name of its attribute, if that breaks the rule.
    pub(in crate::schema) fn parts(&self) -> impl Iterator<Item = (usize, Option<&str>)> {
        let more = self.more.iter().map(|finding| &finding.origin);
        std::iter::once(&self.origin).chain(more).map(|origin| (origin.element, origin.attribute.as_deref()))
    }

    /// The broken rules for who has sent JSON, in the order of [`Self::parts`].
    pub(in crate::schema) fn into_json(self) -> impl Iterator<Item = String> {
        std::iter::once(self.origin)
            .chain(self.more.into_iter().map(|finding| finding.origin))
            .map(|origin| origin.json)
    }

    /// The error of an element, by its number.
    pub(in crate::schema) fn of_element(payload: &Canonical, element: usize, rule: String) -> Self {
        let violation = Violation { element, part: judge::Part::Tag, json: rule.clone(), rule };
        let whole = || Self::whole(String::new(), None);
        Self::told(payload, vec![violation]).err().unwrap_or_else(whole)
    }

    /// An error of a payload as a whole.
    fn whole(rule: String, at: Option<Position>) -> Self {
        let origin = Box::new(Origin { json: rule.clone(), ..Origin::default() });
        Self { rule, at, path: String::new(), more: Vec::new(), origin }
    }

    /// An error of all broken rules, each with its element and place; `Ok` if there are none.
    fn told(payload: &Canonical, violations: Vec<Violation>) -> Result<(), Self> {
        let elements: Vec<usize> = violations.iter().map(|violation| violation.element).collect();
        let finding = |(Violation { element, part, rule, json }, path)| {
            let (part, attribute) = match &part {
                judge::Part::Tag => (Part::Tag, None),
                judge::Part::Attribute(name) => (Part::Attribute(name), Some(name.clone())),
                judge::Part::Content => (Part::Content, None),
            };
            let at = payload.position_of(element, part);
            Finding { rule, at, path, origin: Box::new(Origin { element, attribute, json }) }
        };
        let findings = violations.into_iter().zip(paths(payload.as_str(), &elements)).map(finding);
        let mut findings = findings.collect::<Vec<_>>().into_iter();
        match findings.next() {
            Some(Finding { rule, at, path, origin }) => Err(Self { rule, at, path, more: findings.collect(), origin }),
            None => Ok(()),
        }
    }
}
