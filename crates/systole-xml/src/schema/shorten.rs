//! Sentences of bounded length: the texts that they quote may be as long as a message or a schema.

/// Maximum number of characters of a sentence about a broken rule.
pub(super) const LONGEST_RULE: usize = 320;

/// Maximum number of characters of a name or value that a sentence quotes.
const LONGEST_QUOTE: usize = 80;

/// Maximum number of characters of an error about a schema document, several quotes and the advice included.
const LONGEST_ERROR: usize = 1_000;

/// The first `most` characters of a text.
pub(super) fn shortened(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

/// A name or value as quoted in a sentence.
pub(super) fn quoted(text: &str) -> String {
    shortened(text, LONGEST_QUOTE)
}

/// An error about a schema document. A long one keeps its start and its end, where the advice stands.
pub(super) fn bounded_error(text: String) -> String {
    const HALF: usize = LONGEST_ERROR / 2;
    if text.len() <= LONGEST_ERROR {
        return text;
    }
    let head = text.char_indices().nth(HALF).map_or(text.len(), |(at, _)| at);
    let tail = text.char_indices().nth_back(HALF - 1).map_or(0, |(at, _)| at);
    if tail <= head { text } else { format!("{}…{}", &text[..head], &text[tail..]) }
}

#[cfg(test)]
mod tests {
    use super::{LONGEST_ERROR, bounded_error, quoted};

    #[test]
    fn long_texts_end_at_characters() {
        assert_eq!(quoted(&"é".repeat(80)), "é".repeat(80));
        assert_eq!(quoted(&"é".repeat(81)), format!("{}…", "é".repeat(80)));
    }

    #[test]
    fn long_errors_keep_their_start_and_their_advice() {
        assert_eq!(bounded_error("é".repeat(LONGEST_ERROR)), "é".repeat(LONGEST_ERROR));
        let told = bounded_error(format!("the name '{}' is no name: write another one", "é".repeat(200_000)));
        assert_eq!(told.chars().count(), LONGEST_ERROR + 1);
        assert!(told.starts_with("the name 'é") && told.ends_with("é' is no name: write another one"), "{told}");
    }
}
