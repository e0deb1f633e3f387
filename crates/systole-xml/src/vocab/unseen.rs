//! Characters of a text that a reader does not see: they can hide words in it, or show them in another order.
//!
//! One list for prompts, terminals and the markers that repair reads: [`is_invisible`]. It is a table, since the standard
//! library has no such property; a test compares it with the tables of `regex-syntax`.

/// Returns whether a character of a text is unseen, by its neighbours: control characters except the tab and the line
/// feed, and those that [`is_invisible`] knows.
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
    matches!(c, '\0'..='\u{8}' | '\u{b}'..='\u{1f}' | '\u{7f}'..='\u{9f}') || is_invisible(c)
}

/// Returns whether a character has no shape of its own, or turns the direction of the text behind it: the properties
/// `Default_Ignorable_Code_Point` and `Bidi_Control` and the categories of format characters and of separators of lines
/// and paragraphs (Unicode Standard Annex #44), without the signs that enclose numbers
/// (`Prepended_Concatenation_Mark`), which are seen.
pub const fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}'
        | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{13430}'..='\u{1343f}'
        | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
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
    fn the_invisible_characters_are_those_of_the_properties_of_unicode() {
        let class =
            r"[[\p{Default_Ignorable_Code_Point}\p{Bidi_Control}\p{Cf}\p{Zl}\p{Zp}]--\p{Prepended_Concatenation_Mark}]";
        let hir = regex_syntax::parse(class).expect("a class");
        let regex_syntax::hir::HirKind::Class(regex_syntax::hir::Class::Unicode(class)) = hir.kind() else {
            panic!("{hir:?}")
        };
        let is_in = |c: char| class.ranges().iter().any(|range| (range.start()..=range.end()).contains(&c));
        let wrong: Vec<_> = ('\0'..=char::MAX).filter(|&c| is_invisible(c) != is_in(c)).collect();
        assert!(wrong.is_empty(), "{wrong:?}");
    }

    #[test]
    fn what_hides_or_turns_a_text_is_unseen() {
        assert_eq!(unseen("a\u{202e}b\u{200b}c\u{e0041}d\u{2028}e\u{85}f\u{ad}g\r"), "a?b?c?d?e?f?g?");
        assert_eq!(unseen("a\u{1bca0}b\u{1d173}c\u{13430}d\u{e0100}"), "a?b?c?d?");
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
