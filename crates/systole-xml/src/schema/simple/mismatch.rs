//! Mismatches between a literal and its type, and their texts.

use std::fmt;

use crate::schema::shorten::quoted;

/// The reason why a literal is not valid for a type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::schema) struct Mismatch {
    /// The first broken rule.
    pub(in crate::schema) rule: Rule,
    /// The value, or the item of a list, that breaks the rule; shortened.
    pub(in crate::schema) found: String,
    /// The description of a valid value.
    pub(in crate::schema) expected: String,
}

/// The rules for the characters of a value (part 2; the facets have the names of section 4.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::schema) enum Rule {
    /// The text is no literal of the type.
    Lexical,
    Length,
    MinLength,
    MaxLength,
    Pattern,
    Enumeration,
    /// `minInclusive` or `minExclusive`.
    Least,
    /// `maxInclusive` or `maxExclusive`.
    Most,
    TotalDigits,
    FractionDigits,
    /// A qualified name has a prefix that is not declared.
    Prefix,
    /// The value names an entity, but messages have no document type declaration that could declare one.
    Entity,
    /// No member of the union accepts the value.
    Member,
    /// A number in a date or duration has more digits than the engine supports.
    Limit,
    /// Comparing the value with patterns and members of unions would take more steps than a payload may.
    Steps,
}

/// A broken rule, before the error text is written.
#[derive(Debug)]
pub(super) struct Broken {
    pub(super) rule: Rule,
    /// The item of a list that breaks the rule, shortened.
    pub(super) item: Option<String>,
}

impl Broken {
    /// Sets the item that breaks the rule, unless it is known.
    pub(super) fn by(mut self, item: &str) -> Self {
        self.item.get_or_insert_with(|| quoted(item));
        self
    }
}

impl From<Rule> for Broken {
    fn from(rule: Rule) -> Self {
        Self { rule, item: None }
    }
}

impl Mismatch {
    /// Reports whether the value was not compared, because no steps are left.
    pub(in crate::schema) fn is_of_steps(&self) -> bool {
        self.rule == Rule::Steps
    }

    pub(super) fn new(broken: Broken, value: &str, expected: &str) -> Self {
        let Broken { rule, item } = broken;
        Self { rule, found: item.unwrap_or_else(|| quoted(value)), expected: expected.to_owned() }
    }
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rule, found, expected } = self;
        match rule {
            Rule::Prefix => write!(f, "found '{found}', whose prefix is not declared; expected {expected}"),
            Rule::Entity => write!(f, "found '{found}', the name of an entity, but a message declares no entities"),
            Rule::Limit => write!(f, "found '{found}' with a number of too many digits; expected {expected}"),
            Rule::Steps => write!(
                f,
                "found '{found}', which is not compared with its type: the values up to here take more steps than a \
                 payload may; send fewer or shorter ones, or have fewer counts inside of counts in patterns and fewer \
                 members in unions"
            ),
            _ => write!(f, "found '{found}', expected {expected}"),
        }
    }
}
