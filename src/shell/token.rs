//! Bearer tokens (RFC 6750): 244 random bits that are shown once; what is kept is a hash.

use std::fmt;

use crate::shell::entropy::Entropy;
pub(crate) use crate::shell::principal::TokenHash;

/// What a token begins with, so that people and scanners know what they found.
const PREFIX: &str = "syt_";

/// What a principal shows to come in. Printing it for debugging shows nothing.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl Token {
    /// A new one.
    pub(crate) fn draw() -> Self {
        let secret = Entropy::Real.secret();
        Self(secret.iter().fold(PREFIX.to_owned(), |text, byte| text + &format!("{byte:02x}")))
    }

    /// The token as it is shown, once.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// What is kept of it.
    pub(crate) fn hash(&self) -> TokenHash {
        hash(&self.0)
    }
}

/// What is kept of a token that was shown.
pub(crate) fn hash(shown: &str) -> TokenHash {
    TokenHash(blake3::derive_key("systole gateway 2026 bearer token", shown.as_bytes()))
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(..)")
    }
}
