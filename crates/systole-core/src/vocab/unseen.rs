//! Characters of a text that a reader does not see: they can hide words in it, or show them in another order.

/// Returns whether a character of a text is unseen, by its neighbours: control characters except the tab and the line
/// feed, other line breaks, characters that turn the direction of text (Unicode Standard Annex #9), and characters
/// without a shape: soft hyphens, joiners of words, fillers, tags and selectors.
///
/// Joiners (U+200C, U+200D) and the selectors of emoji (U+FE00 to U+FE0F) are part of languages: they are seen where
/// they have an effect, which is once, behind a character that is no ASCII letter, joiners also before one.
pub fn is_unseen(before: Option<char>, c: char, after: Option<char>) -> bool {
    let shaped = |c: Option<char>| c.is_some_and(|c| !c.is_ascii() && !is_shapeless(c) && !is_joiner(c));
    match c {
        '\u{200c}' | '\u{200d}' => {
            let joined = shaped(before) || before.is_some_and(|before| matches!(before, '\u{fe00}'..='\u{fe0f}'));
            !(joined && shaped(after))
        }
        '\u{fe00}'..='\u{fe0f}' => !(shaped(before) || matches!(before, Some('0'..='9' | '#' | '*'))),
        _ => is_shapeless(c),
    }
}

const fn is_joiner(c: char) -> bool {
    matches!(c, '\u{200c}' | '\u{200d}' | '\u{fe00}'..='\u{fe0f}')
}

const fn is_shapeless(c: char) -> bool {
    matches!(c,
        '\0'..='\u{8}' | '\u{b}'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{ad}' | '\u{34f}' | '\u{61c}'
        | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}' | '\u{180b}'..='\u{180f}' | '\u{200b}'
        | '\u{200e}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{feff}'
        | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}

/// The characters of a text, each with whether it is unseen.
pub fn with_unseen(text: &str) -> impl Iterator<Item = (char, bool)> {
    let mut before = None;
    let mut chars = text.chars().peekable();
    std::iter::from_fn(move || {
        let c = chars.next()?;
        let is_unseen = is_unseen(before, c, chars.peek().copied());
        before = Some(c);
        Some((c, is_unseen))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unseen(text: &str) -> String {
        with_unseen(text).map(|(c, is_unseen)| if is_unseen { '?' } else { c }).collect()
    }

    #[test]
    fn what_hides_or_turns_a_text_is_unseen() {
        assert_eq!(unseen("a\u{202e}b\u{200b}c\u{e0041}d\u{2028}e\u{85}f\u{ad}g\r"), "a?b?c?d?e?f?g?");
        assert_eq!(unseen("a\n\tb"), "a\n\tb");
        assert_eq!(unseen("a\u{200d}b \u{200c}\u{200d}\u{200c}"), "a?b ???", "bits of a hidden text");
        assert_eq!(unseen("☺\u{fe0f}\u{fe01}\u{fe02}x\u{fe0f}"), "☺\u{fe0f}??x?");
    }

    #[test]
    fn joiners_of_languages_and_of_emoji_are_seen() {
        for text in ["می\u{200c}خواهم", "क\u{94d}\u{200d}ष", "👩\u{200d}💻", "❤\u{fe0f}\u{200d}🔥", "1\u{fe0f}\u{20e3}"]
        {
            assert_eq!(unseen(text), text);
        }
    }
}
