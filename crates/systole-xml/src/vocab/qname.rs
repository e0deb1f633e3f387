//! Qualified names, and the character classes that names consist of.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// The qualified name of an element, written `{namespace}local`; `local` alone has no namespace.
///
/// See Namespaces in XML 1.0, section 2.1; the notation is James Clark's.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct QName {
    namespace: Arc<str>,
    local: Arc<str>,
}

/// The rule of qualified names that a text breaks.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum QNameError {
    /// An opening brace without a closing one.
    #[error("'{{' without '}}': write {{namespace}}local")]
    Unclosed,
    /// The part after the namespace is no NCName.
    #[error(
        "'{local}' is no element name: write {{namespace}}local, with a local name that starts with a letter or '_' and has no colon or space"
    )]
    Local {
        /// The text at the place of the local name.
        local: String,
    },
}

impl QName {
    /// A name in a namespace; an empty `namespace` stands for none.
    ///
    /// # Errors
    /// [`QNameError::Local`] if `local` is no NCName.
    pub fn new(namespace: &str, local: &str) -> Result<Self, QNameError> {
        if !is_ncname(local) {
            return Err(QNameError::Local { local: local.to_owned() });
        }
        Ok(Self { namespace: namespace.into(), local: local.into() })
    }

    /// The namespace name; empty for none.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// The part after the namespace.
    pub fn local(&self) -> &str {
        &self.local
    }
}

impl FromStr for QName {
    type Err = QNameError;

    fn from_str(text: &str) -> Result<Self, QNameError> {
        match text.strip_prefix('{') {
            Some(rest) => {
                let (namespace, local) = rest.rsplit_once('}').ok_or(QNameError::Unclosed)?;
                Self::new(namespace, local)
            }
            None => Self::new("", text),
        }
    }
}

impl fmt::Display for QName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.namespace.is_empty() {
            f.write_str(&self.local)
        } else {
            write!(f, "{{{}}}{}", self.namespace, self.local)
        }
    }
}

impl fmt::Debug for QName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "QName({self})")
    }
}

/// Returns whether a text is an NCName (Namespaces in XML 1.0, production 4).
pub fn is_ncname(text: &str) -> bool {
    let mut chars = text.chars();
    chars.next().is_some_and(|c| c != ':' && is_name_start(c)) && chars.all(|c| c != ':' && is_name_char(c))
}

/// A class of characters from its ranges: a function that tests one character, and the ranges as a constant.
macro_rules! class {
    ($(#[$doc:meta])* $is:ident, $ranges:ident: $($low:literal..=$high:literal)|+) => {
        $(#[$doc])*
        pub(crate) fn $is(c: char) -> bool {
            matches!(c, $($low..=$high)|+)
        }

        $(#[$doc])*
        pub(crate) const $ranges: &[(char, char)] = &[$(($low, $high)),+];
    };
}

class! {
    /// Characters of `NameStartChar` of XML 1.0 (5th edition), production 4.
    is_name_start, NAME_START:
    ':'..=':' | '_'..='_' | 'A'..='Z' | 'a'..='z'
    | '\u{C0}'..='\u{D6}' | '\u{D8}'..='\u{F6}' | '\u{F8}'..='\u{2FF}' | '\u{370}'..='\u{37D}'
    | '\u{37F}'..='\u{1FFF}' | '\u{200C}'..='\u{200D}' | '\u{2070}'..='\u{218F}'
    | '\u{2C00}'..='\u{2FEF}' | '\u{3001}'..='\u{D7FF}' | '\u{F900}'..='\u{FDCF}'
    | '\u{FDF0}'..='\u{FFFD}' | '\u{10000}'..='\u{EFFFF}'
}

class! {
    /// Characters of `NameChar` (XML 1.0, 5th edition, production 4a) beyond `NameStartChar`.
    is_name_rest, NAME_REST:
    '-'..='.' | '0'..='9' | '\u{B7}'..='\u{B7}' | '\u{300}'..='\u{36F}' | '\u{203F}'..='\u{2040}'
}

/// Returns whether a character is a `NameChar` of XML 1.0 (5th edition), production 4a.
pub(crate) fn is_name_char(c: char) -> bool {
    is_name_start(c) || is_name_rest(c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clark_notation_round_trips() {
        for text in ["{urn:a}b", "b", "{http://x/{y}}z"] {
            assert_eq!(text.parse::<QName>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn bad_names_are_refused() {
        assert_eq!("{urn:a".parse::<QName>(), Err(QNameError::Unclosed));
        for local in ["", "1a", "a:b", "a b", "-a"] {
            assert_eq!(QName::new("urn:a", local), Err(QNameError::Local { local: local.into() }));
        }
    }
}
