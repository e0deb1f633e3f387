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
            Self::Collapse => collapse(text.trim_matches(WHITE)),
        }
    }
}

/// `text` neither starts nor ends with white space.
fn collapse(text: &str) -> Cow<'_, str> {
    let mut spaces = 0;
    let single = text.bytes().all(|byte| {
        spaces = if byte == b' ' { spaces + 1 } else { 0 };
        spaces < 2 && !matches!(byte, b'\t' | b'\n' | b'\r')
    });
    if single {
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
