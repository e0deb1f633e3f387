//! The namespace names of a document, by number.

use crate::ladder::names::Names;
use crate::vocab::ns;

/// A namespace name, by its number in the table of its document.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Uri(u32);

impl Uri {
    /// No namespace: that of an unprefixed name where no default namespace is declared.
    pub(crate) const NONE: Self = Self(0);
    pub(crate) const XML: Self = Self(1);

    /// Number of names that are in no table, because every document has them: the two above.
    const KNOWN: u32 = 2;

    /// The number, for lists by it.
    #[inline]
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

/// A namespace name with marks, in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Marked(u32);

impl Marked {
    /// Mark of an attribute that declares the namespace instead of being in it.
    pub(super) const DECLARATION: u32 = 1 << 31;
    /// Mark of an element with character references in its text.
    pub(super) const REFERENCES: u32 = 1 << 30;
    /// Mark of an element with processing instructions, which divide its text.
    pub(super) const INSTRUCTIONS: u32 = 1 << 29;

    /// The bits of the number: a document has less than 4 GiB, and a declaration takes ten bytes of it (` xmlns="a"`).
    const NUMBER: u32 = (1 << 29) - 1;

    #[inline]
    pub(super) fn new(uri: Uri, marks: u32) -> Self {
        Self(uri.0 | marks)
    }

    #[inline]
    pub(super) fn uri(self) -> Uri {
        Uri(self.0 & Self::NUMBER)
    }

    #[inline]
    pub(super) fn has(self, mark: u32) -> bool {
        self.0 & mark != 0
    }

    pub(super) fn mark(&mut self, mark: u32) {
        self.0 |= mark;
    }

    /// Copies the marks to another namespace.
    pub(super) fn of(self, uri: Uri) -> Self {
        Self(self.0 & !Self::NUMBER | uri.0)
    }
}

/// The namespace names of a document.
#[derive(Debug, Default)]
pub(in crate::ladder) struct Uris(Names);

impl Uris {
    pub(in crate::ladder) fn clear(&mut self) {
        self.0.truncate(0);
    }

    /// The number of a name, which is added if it isn't there.
    pub(in crate::ladder) fn intern(&mut self, name: &str) -> Uri {
        match name {
            "" => Uri::NONE,
            ns::XML => Uri::XML,
            name => Uri(Uri::KNOWN + self.0.intern(name)),
        }
    }

    /// The number of a name that isn't one of those of every document.
    pub(super) fn find(&self, name: &str) -> Option<Uri> {
        Some(Uri(Uri::KNOWN + self.0.find(name)?))
    }

    #[inline]
    pub(in crate::ladder) fn name(&self, uri: Uri) -> &str {
        match uri {
            Uri::NONE => "",
            Uri::XML => ns::XML,
            Uri(number) => self.0.name(number - Uri::KNOWN),
        }
    }

    /// The bound of the numbers: one more than the greatest.
    pub(super) fn len(&self) -> usize {
        self.0.len() + Uri::KNOWN as usize
    }

    /// Becomes a copy of `other`, in the memory that it has.
    pub(super) fn copy(&mut self, other: &Self) {
        self.0.copy(&other.0);
    }

    /// Returns whether its capacity is over `kept` names.
    pub(in crate::ladder) fn is_large(&self, kept: usize) -> bool {
        self.0.is_large(kept)
    }
}
