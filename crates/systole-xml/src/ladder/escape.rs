//! Character data from values rather than from XML: it may hold characters that XML can't carry.

use std::borrow::Cow;

use super::chars::{is_xml_char, may_hold_forbidden};
use super::strict::{push_text, push_value};

/// The place of character data: each has its own references.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EscapeContext {
    /// The text between tags.
    Text,
    /// The value between the quotes of an attribute.
    Attribute,
}

/// Appends `text` with the references that its place needs.
///
/// # Errors
/// The first character that XML 1.0 can't carry (production 2). Then nothing is written.
pub(crate) fn escape_into(out: &mut String, text: &str, place: EscapeContext) -> Result<(), char> {
    if let Some(character) = uncarriable(text) {
        return Err(character);
    }
    push(out, text, place);
    Ok(())
}

/// Appends text of any content, with the characters that XML can't carry replaced: see [`carriable`].
pub fn escape_lossy(out: &mut String, text: &str, place: EscapeContext) {
    push(out, &carriable(text), place);
}

/// Text with U+FFFD for each character that XML can't carry: for foreign text in faults.
pub fn carriable(text: &str) -> Cow<'_, str> {
    if uncarriable(text).is_none() {
        return Cow::Borrowed(text);
    }
    text.chars().map(|c| if is_xml_char(c) { c } else { char::REPLACEMENT_CHARACTER }).collect::<String>().into()
}

/// The first character that XML can't carry.
pub fn uncarriable(text: &str) -> Option<char> {
    if may_hold_forbidden(text.as_bytes()) { text.chars().find(|&c| !is_xml_char(c)) } else { None }
}

fn push(out: &mut String, text: &str, place: EscapeContext) {
    match place {
        EscapeContext::Text => push_text(out, text),
        EscapeContext::Attribute => push_value(out, text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn escaped(text: &str, place: EscapeContext) -> Result<String, char> {
        let mut out = String::new();
        escape_into(&mut out, text, place).map(|()| out)
    }

    #[test]
    fn each_place_has_its_references() {
        assert_eq!(escaped("a<>&\"\t\n\rß", EscapeContext::Text).unwrap(), "a&lt;&gt;&amp;\"\t\n&#xD;ß");
        assert_eq!(escaped("a<>&\"\t\n\rß", EscapeContext::Attribute).unwrap(), "a&lt;>&amp;&quot;&#x9;&#xA;&#xD;ß");
    }

    #[test]
    fn exactly_the_characters_of_xml_pass() {
        for code in (0..0x300).chain(0xD700..0x10100).chain(0x10_FF00..=0x10_FFFF) {
            let Some(character) = char::from_u32(code) else { continue };
            let text = format!("a{character}b");
            assert_eq!(escaped(&text, EscapeContext::Text).is_ok(), is_xml_char(character), "{code:x}");
        }
        assert_eq!(escaped("ok\u{1}", EscapeContext::Text), Err('\u{1}'));
        assert_eq!(escaped("\u{FFFF}", EscapeContext::Attribute), Err('\u{FFFF}'));
        assert_eq!(carriable("a\u{0}b"), "a\u{FFFD}b");
    }
}
