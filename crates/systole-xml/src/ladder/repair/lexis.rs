//! Names, white space and characters of XML 1.0, read from an offset.

use crate::ladder::chars::may_hold_forbidden;
pub(super) use crate::ladder::chars::{excerpt, has_scheme, is_xml_char};
use crate::vocab::{is_name_char, is_name_start};

/// White space (XML 1.0, production 3).
pub(super) const fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
}

/// Returns whether a character is white space (XML 1.0, production 3).
pub(super) const fn is_space_char(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\r' | '\n')
}

/// Returns whether a text is white space, or empty.
pub(super) fn is_blank(text: &str) -> bool {
    text.bytes().all(is_space)
}

/// The offset of the first byte at or behind `at` that is no white space, or the end.
pub(super) fn skip_space(text: &str, at: usize) -> usize {
    let rest = &text.as_bytes()[at..];
    at + rest.iter().position(|&byte| !is_space(byte)).unwrap_or(rest.len())
}

/// The offset of the first character at or behind `at` that is no white space of any script, nor a zero-width space.
pub(super) fn skip_blank(text: &str, at: usize) -> usize {
    let plain = skip_space(text, at);
    match text.as_bytes().get(plain) {
        Some(0x80..) => text.len() - text[plain..].trim_start_matches(is_blank_char).len(),
        _ => plain,
    }
}

fn is_blank_char(c: char) -> bool {
    c.is_whitespace() || c == '\u{200B}'
}

/// The end of the name that starts at `at` (XML 1.0, production 5: colons included).
pub(super) fn name_end(text: &str, at: usize) -> Option<usize> {
    let rest = &text.as_bytes()[at..];
    let is_start = match *rest.first()? {
        byte @ ..0x80 => byte.is_ascii_alphabetic() || matches!(byte, b'_' | b':'),
        _ => text[at..].starts_with(is_name_start),
    };
    if !is_start {
        return None;
    }
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b':');
    let plain = at + rest.iter().position(|byte| !is_plain(byte)).unwrap_or(rest.len());
    match text.as_bytes().get(plain) {
        Some(0x80..) => Some(text.len() - text[plain..].trim_start_matches(is_name_char).len()),
        _ => Some(plain),
    }
}

/// Returns whether a name that [`name_end`] found is qualified (Namespaces in XML 1.0, production 7).
pub(super) fn is_qname(name: &str) -> bool {
    match name.split_once(':') {
        Some((prefix, local)) => !prefix.is_empty() && !local.contains(':') && local.starts_with(is_name_start),
        None => true,
    }
}

/// Returns whether a text holds only characters that XML allows.
pub(super) fn is_xml_text(text: &str) -> bool {
    !may_hold_forbidden(text.as_bytes()) || text.chars().all(is_xml_char)
}

/// Returns whether markup can start with `<` and this byte.
pub(super) const fn may_start_markup(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || matches!(byte, b'!' | b'/' | b'\\' | b'?' | b'_' | 0x80..)
}

/// The offset of the first of three bytes at or behind `at`, or the end. The nearest bytes are searched
/// one by one, those behind them by vector instructions.
pub(super) fn find_any(text: &str, at: usize, stops: [u8; 3]) -> usize {
    const NEAR: usize = 16;
    let rest = &text.as_bytes()[at..];
    let near = rest.len().min(NEAR);
    let found = rest[..near].iter().position(|byte| stops.contains(byte));
    let far = || memchr::memchr3(stops[0], stops[1], stops[2], &rest[near..]).map(|length| near + length);
    found.or_else(far).map_or(text.len(), |length| at + length)
}

/// The offset of an end tag that a text ends with and that isn't written as one: `[/name]`, `/name>`, `< /name>`,
/// `&lt;/name&gt;`.
///
/// Looks back some 256 bytes over white space, so that a long run of it below many open elements costs little.
pub(super) fn written_end(text: &str, name: &str) -> Option<usize> {
    const NEAR: usize = 256;
    let near = (text.len().saturating_sub(NEAR + name.len())..).find(|at| text.is_char_boundary(*at))?;
    written_end_near(&text[near..], name).map(|length| near + length)
}

fn written_end_near(text: &str, name: &str) -> Option<usize> {
    let closed = text.trim_end_matches(is_space_char);
    let closed = closed.strip_suffix("&gt;").or_else(|| closed.strip_suffix(['>', ']', ')', '}']))?;
    let named = closed.trim_end_matches(is_space_char);
    let at = named.len().checked_sub(name.len()).filter(|at| named.is_char_boundary(*at))?;
    let before = named[..at].trim_end_matches(is_space_char);
    (named[at..].eq_ignore_ascii_case(name) && before.ends_with(['/', '\\'])).then(|| before.len() - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_end_where_the_production_says() {
        for (text, end) in [("a:b", Some(3)), ("é·x y", Some(5)), ("1a", None), ("·a", None), ("", None), ("-", None)]
        {
            assert_eq!(name_end(text, 0), end, "{text}");
        }
    }

    #[test]
    fn qualified_names_have_at_most_one_colon_inside() {
        for (name, qualified) in
            [("a", true), ("a:b", true), ("a:b:c", false), (":a", false), ("a:", false), ("a:1", false)]
        {
            assert_eq!(is_qname(name), qualified, "{name}");
        }
    }

    #[test]
    fn end_tags_are_found_where_text_ends_with_one() {
        for (text, found) in [
            ("x[/name]", Some(2)),
            ("x/Name>\n", Some(1)),
            ("x < / name >", Some(4)),
            ("x&lt;/name&gt;", Some(5)),
            ("é\\name)", Some(2)),
            ("x[name]", None),
            ("x/name", None),
            ("x/a-name>", None),
            ("é>", None),
        ] {
            assert_eq!(written_end(text, "name"), found, "{text}");
        }
    }
}
