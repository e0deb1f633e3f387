use std::fmt;
use std::ops::Deref;

use bytes::Bytes;

use crate::ladder::Canonical;

/// A text of `<meta>`, unbelieved. It shares the bytes of its message, and keeps them in memory.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Claim(Bytes);

impl Claim {
    /// A text as it stands in a message.
    pub(super) fn of(message: &Canonical, text: &str) -> Self {
        Self(message.bytes().slice_ref(text.as_bytes()))
    }
}

/// A text that stands in no message as it is.
impl From<String> for Claim {
    fn from(text: String) -> Self {
        Self(text.into())
    }
}

impl Deref for Claim {
    type Target = str;

    fn deref(&self) -> &str {
        std::str::from_utf8(&self.0).expect("canonical bytes are UTF-8")
    }
}

impl fmt::Debug for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}
