use bytes::Bytes;

/// Bytes from outside that nobody has looked at.
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
