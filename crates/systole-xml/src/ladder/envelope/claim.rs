//! Texts of `<meta>`, which the pump doesn't trust.

use std::fmt;
use std::ops::Deref;

use bytestring::ByteString;

use crate::ladder::Canonical;

/// A text of `<meta>`, not verified. It shares the bytes of its message, and keeps them in memory.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Claim(ByteString);

impl Claim {
    /// A text within the bytes of a message.
    pub(super) fn of(message: &Canonical, text: &str) -> Self {
        Self(message.text().slice_ref(text))
    }
}

/// A text that differs from the bytes in the message, or stands in none.
impl From<String> for Claim {
    fn from(text: String) -> Self {
        Self(text.into())
    }
}

impl Deref for Claim {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}
