//! Tokens in a text: a client may hand over all that it read, and its words about it.

use uuid::Uuid;

use super::delegate::NoticeToken;

/// Characters of a token.
const LENGTH: usize = 36;

/// Finds the tokens in a text, each once, in the order in which they come first.
///
/// The match is strict: a lower-case UUID with its hyphens (RFC 9562, section 4), which no letter, digit, `_` or `-`
/// touches. So neither a part of something longer is a token, nor a UUID in capitals.
pub(in crate::gateway) fn tokens(text: &str) -> Vec<NoticeToken> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(offset) = text[at..].find(is_hex) {
        let start = at + offset;
        let run = text[start..].find(|c| !is_part(c)).map_or(text.len(), |length| start + length);
        let touched = text[..start].chars().next_back().is_some_and(is_part);
        if let Some(token) = token(&text[start..run]).filter(|token| !touched && !found.contains(token)) {
            found.push(token);
        }
        at = run;
    }
    found
}

fn token(text: &str) -> Option<NoticeToken> {
    let shape = |(at, byte): (usize, u8)| match at {
        8 | 13 | 18 | 23 => byte == b'-',
        _ => is_hex(char::from(byte)),
    };
    let shaped = text.len() == LENGTH && text.bytes().enumerate().all(shape);
    let uuid = if shaped { Uuid::try_parse(text).ok()? } else { return None };
    Some(NoticeToken::from_bytes(uuid.into_bytes()))
}

fn is_hex(c: char) -> bool {
    matches!(c, '0'..='9' | 'a'..='f')
}

/// Checks for a character that continues a word, a number or an id.
fn is_part(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '-')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ONE: &str = "67e55044-10b1-426f-9247-bb680e5fe0c8";
    const TWO: &str = "00000000-0000-0000-0000-00000000000a";

    fn found(text: &str) -> Vec<String> {
        tokens(text).iter().map(NoticeToken::to_string).collect()
    }

    #[test]
    fn several_stand_in_one_text_and_each_counts_once() {
        assert_eq!(found(&format!("{ONE}, then '{TWO}' and {ONE}.")), [ONE, TWO]);
        assert_eq!(found(&format!("<?begin {TWO}?>é{{\"token\":\"{ONE}\"}}")), [TWO, ONE]);
    }

    #[test]
    fn what_is_almost_one_is_none() {
        let simple = ONE.replace('-', "");
        let braced = format!("urn:uuid:{}", ONE.to_uppercase());
        let cut = &ONE[..35];
        for text in [&ONE.to_uppercase(), &simple, &braced, cut, "", "-", &format!("{ONE}-"), &format!("x{ONE}")] {
            assert!(found(text).is_empty(), "{text}");
        }
        let one_capital = ONE.replacen('e', "E", 1);
        for text in [
            one_capital,
            format!("{ONE}0"),
            format!("-{ONE}"),
            format!("{ONE}_"),
            format!("{ONE}é"),
            format!("{ONE}{TWO}"),
        ] {
            assert!(found(&text).is_empty(), "{text}");
        }
    }

    /// States the same rule otherwise: words of the text that are written as their UUID is.
    fn expected(text: &str) -> Vec<String> {
        let mut all = Vec::new();
        for word in text.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == '-')) {
            // A word is one token or none.
            let is_one = Uuid::try_parse(word).is_ok_and(|uuid| uuid.as_hyphenated().to_string() == word);
            if is_one && !all.contains(&word.to_owned()) {
                all.push(word.to_owned());
            }
        }
        all
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_a_panic(text in any::<String>()) {
            prop_assert_eq!(found(&text), expected(&text));
        }

        #[test]
        fn exactly_the_tokens_are_found(
            parts in prop::collection::vec(prop_oneof![
                any::<[u8; 16]>().prop_map(|bytes| Uuid::from_bytes(bytes).to_string()),
                any::<[u8; 16]>().prop_map(|bytes| Uuid::from_bytes(bytes).to_string().to_uppercase()),
                Just(ONE.to_owned()), Just(TWO.to_owned()),
                "[ ,.<>?\"'é0-9a-f-]{0,4}", "\\PC{0,12}",
            ], 0..12)
        ) {
            let text = parts.concat();
            prop_assert_eq!(found(&text), expected(&text));
        }
    }
}
