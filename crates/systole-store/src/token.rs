//! Bearer tokens (RFC 6750): 244 random bits that are shown once; only a hash is kept.

use std::fmt;

use crate::entropy::Entropy;
pub use crate::principal::TokenHash;

/// Prefix of tokens, by which people and scanners recognize them.
pub const PREFIX: &str = "syt_";

/// The secret that authenticates a principal. Its `Debug` output reveals nothing.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl Token {
    /// Draws a new token.
    pub fn draw() -> Self {
        let secret = Entropy::Real.secret();
        Self(secret.iter().fold(PREFIX.to_owned(), |text, byte| text + &format!("{byte:02x}")))
    }

    /// Returns the text of the token, to be shown once.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// Returns the hash, which is kept.
    pub fn hash(&self) -> TokenHash {
        hash(&self.0)
    }
}

/// Hashes the text of a token.
pub fn hash(shown: &str) -> TokenHash {
    TokenHash(blake3::derive_key("systole gateway 2026 bearer token", shown.as_bytes()))
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(..)")
    }
}
