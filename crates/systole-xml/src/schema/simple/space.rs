//! White space normalization.

use std::borrow::Cow;

/// The facet `whiteSpace` (part 2, section 4.3.6), loosest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Space {
    Preserve,
    Replace,
    Collapse,
}

/// The white space characters of XML (production 3).
pub(super) const WHITE: [char; 4] = [' ', '\t', '\n', '\r'];

impl Space {
    pub(super) fn named(name: &str) -> Option<Self> {
        match name {
            "preserve" => Some(Self::Preserve),
            "replace" => Some(Self::Replace),
            "collapse" => Some(Self::Collapse),
            _ => None,
        }
    }

    /// The normalized text; copied only if white space inside of it changes.
    pub(super) fn normalize(self, text: &str) -> Cow<'_, str> {
        match self {
            Self::Preserve => Cow::Borrowed(text),
            Self::Replace if text.contains(['\t', '\n', '\r']) => text.replace(['\t', '\n', '\r'], " ").into(),
            Self::Replace => Cow::Borrowed(text),
            Self::Collapse if is_collapsed(text) => Cow::Borrowed(text),
            Self::Collapse => collapse(text.trim_matches(WHITE)),
        }
    }
}

/// Collapses white space in `text`, which neither starts nor ends with it.
fn collapse(text: &str) -> Cow<'_, str> {
    if is_collapsed(text) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    for word in text.split(WHITE).filter(|word| !word.is_empty()) {
        if !out.is_empty() {
            out.push(' ');
        }
        out.push_str(word);
    }
    Cow::Owned(out)
}

/// Reports whether a text has only single spaces as white space, and none at either end.
fn is_collapsed(text: &str) -> bool {
    let mut before = b' ';
    let inside = text.bytes().all(|byte| {
        let fits = !matches!(byte, b'\t' | b'\n' | b'\r') && (byte, before) != (b' ', b' ');
        before = byte;
        fits
    });
    inside && (before != b' ' || text.is_empty())
}
