use std::borrow::Cow;

/// The facet `whiteSpace` (part 2, section 4.3.6), loosest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Space {
    Preserve,
    Replace,
    Collapse,
}

/// What XML calls white space (production 3).
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

    /// The text as the type sees it; copied only if white space inside of it changes.
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

/// `text` neither starts nor ends with white space.
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

/// Whether no white space stands at either end, nor two together, nor any but spaces.
fn is_collapsed(text: &str) -> bool {
    let mut before = b' ';
    let inside = text.bytes().all(|byte| {
        let fits = !matches!(byte, b'\t' | b'\n' | b'\r') && (byte, before) != (b' ', b' ');
        before = byte;
        fits
    });
    inside && (before != b' ' || text.is_empty())
}
