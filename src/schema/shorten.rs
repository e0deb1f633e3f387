//! Sentences of bounded length: what is found may be as long as a message.

/// The most characters of a sentence about a broken rule.
pub(super) const LONGEST_RULE: usize = 320;

/// The first `most` characters of a text.
pub(super) fn shortened(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}
