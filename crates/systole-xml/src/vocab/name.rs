//! Names of listeners and clients.

use std::borrow::Borrow;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// The name of a listener or a client, which share one space of names.
///
/// 1 to [`Name::MAX_LEN`] ASCII letters, digits, `_`, `-` and `.`; a dot has no meaning. `core`, `root` and `system`
/// are reserved: [`Name::parse`] refuses them; [`Name::core`], [`Name::root`] and [`Name::system`] make them.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Name(Arc<str>);

/// The rule of names that a text breaks.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NameError {
    /// An empty text.
    #[error("a name can't be empty")]
    Empty,
    /// A text longer than [`Name::MAX_LEN`] bytes.
    #[error("a name has at most {max} bytes, this one has {len}", max = Name::MAX_LEN)]
    TooLong {
        /// Length of the text in bytes.
        len: usize,
    },
    /// A character that a name can't have.
    #[error("'{}' can't stand in a name: use letters, digits, '_', '-' and '.'", .found.escape_debug())]
    Character {
        /// The first such character.
        found: char,
    },
    /// A name that the pump keeps for itself.
    #[error("'{name}' is reserved: choose a name other than core, root and system")]
    Reserved {
        /// The reserved name.
        name: &'static str,
    },
}

const RESERVED: [&str; 3] = ["core", "root", "system"];

impl Name {
    /// The longest name, in bytes.
    pub const MAX_LEN: usize = 128;

    /// Parses a name.
    ///
    /// # Errors
    /// [`NameError`] says which rule the text breaks.
    pub fn parse(text: &str) -> Result<Self, NameError> {
        if text.is_empty() {
            return Err(NameError::Empty);
        }
        if text.len() > Self::MAX_LEN {
            return Err(NameError::TooLong { len: text.len() });
        }
        let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
        if let Some(found) = text.chars().find(|&c| !allowed(c)) {
            return Err(NameError::Character { found });
        }
        if let Some(name) = RESERVED.into_iter().find(|&name| name == text) {
            return Err(NameError::Reserved { name });
        }
        Ok(Self(text.into()))
    }

    /// The privileged actor that answers meta payloads.
    pub fn core() -> Self {
        Self("core".into())
    }

    /// The first segment of every thread path.
    pub fn root() -> Self {
        Self("root".into())
    }

    /// The sender of messages that the pump makes itself: boot and faults.
    pub fn system() -> Self {
        Self("system".into())
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Lets a map of names be searched by a text, without a `Name`: a name equals and hashes as its text.
impl Borrow<str> for Name {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl FromStr for Name {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        Self::parse(text)
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Name({})", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dots_are_plain_characters() {
        assert_eq!(Name::parse("a.b-c_1").unwrap().as_str(), "a.b-c_1");
    }

    #[test]
    fn each_rule_has_its_error() {
        assert_eq!(Name::parse(""), Err(NameError::Empty));
        assert_eq!(Name::parse(&"x".repeat(129)), Err(NameError::TooLong { len: 129 }));
        assert_eq!(Name::parse("a/b"), Err(NameError::Character { found: '/' }));
        assert_eq!(Name::parse("é"), Err(NameError::Character { found: 'é' }));
        for name in RESERVED {
            assert_eq!(Name::parse(name), Err(NameError::Reserved { name }));
        }
    }
}
