//! Lexical rules of the built-in types that derive from a primitive type.

use crate::vocab::{is_name_char, is_name_start, is_ncname};

/// The lexical rule that a derived built-in type adds to its primitive type (part 2, section 3.3). Each implies those
/// of its base types, so the last one is enough.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lexis {
    Any,
    Language,
    Nmtoken,
    Name,
    Ncname,
    /// A name that must be declared as an entity, which a message can't do.
    Entity,
    Integer,
}

impl Lexis {
    pub(super) fn allows(self, text: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Language => is_language(text),
            Self::Nmtoken => !text.is_empty() && text.chars().all(is_name_char),
            Self::Name => text.starts_with(is_name_start) && text.chars().all(is_name_char),
            Self::Ncname | Self::Entity => is_ncname(text),
            Self::Integer => !text.contains('.'),
        }
    }
}

/// Reports whether a text matches `[a-zA-Z]{1,8}(-[a-zA-Z0-9]{1,8})*` (section 3.3.3).
fn is_language(text: &str) -> bool {
    let mut parts = text.split('-');
    let sized = |part: &str| (1..=8).contains(&part.len());
    parts.next().is_some_and(|part| sized(part) && part.bytes().all(|byte| byte.is_ascii_alphabetic()))
        && parts.all(|part| sized(part) && part.bytes().all(|byte| byte.is_ascii_alphanumeric()))
}
