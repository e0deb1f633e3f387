//! The lowest rung: bytes as they came in.

use bytes::Bytes;

/// Bytes from outside that nothing has parsed yet.
#[derive(Debug, Clone)]
pub struct Raw(Bytes);

impl Raw {
    /// Takes bytes as they are.
    pub fn new(bytes: impl Into<Bytes>) -> Self {
        Self(bytes.into())
    }

    /// The bytes.
    pub fn bytes(&self) -> &Bytes {
        &self.0
    }
}
