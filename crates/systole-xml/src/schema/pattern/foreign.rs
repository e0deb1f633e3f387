//! Features of other dialects of regular expressions that patterns of XML Schema lack, each with a replacement.

/// The error text for a quantifier behind a quantifier.
pub(super) const GREED: &str =
    "XML Schema has no lazy or possessive quantifiers, as a pattern always holds for the whole value: remove it";

/// The error text for `[:alpha:]`.
pub(super) const POSIX: &str =
    "XML Schema has no classes such as [:alpha:]: write \\p{L} for letters, \\d for digits, \\s for white space";

/// The error text for a group that starts with these characters behind its `(`; `None` for a plain one.
pub(super) fn group(inside: &str) -> Option<&'static str> {
    let kind = inside.strip_prefix('?')?;
    Some(match kind.as_bytes() {
        [b':', ..] => "XML Schema has no (?:…), as no group captures: write (…)",
        [b'=' | b'!', ..] | [b'<', b'=' | b'!', ..] => {
            "XML Schema has no (?=…), (?!…), (?<=…), (?<!…): write the texts that match, or check it in the listener"
        }
        [b'<' | b'\'', ..] | [b'P', b'<', ..] => "XML Schema has no groups with names: write (…)",
        [b'#', ..] => "XML Schema has no comments in patterns: write xs:documentation",
        [b'i', ..] => "XML Schema has no flags such as (?i): write both cases of a letter, as [Aa]",
        _ => "XML Schema has no flags and no groups such as (?s), (?>…): write (…)",
    })
}

/// The error text for a backslash before a character that needs none.
pub(super) fn escape(c: char) -> &'static str {
    match c {
        'b' | 'B' | '<' | '>' => {
            "XML Schema has no word boundaries such as \\b, as a pattern always holds for the whole value: write what stands around it"
        }
        'A' | 'z' | 'Z' | 'G' => {
            "XML Schema has no anchors such as \\A and \\z, as a pattern always holds for the whole value: remove it"
        }
        '0'..='9' | 'k' => "XML Schema has no references to groups such as \\1: write the texts that match",
        'x' | 'u' | 'U' => "XML Schema has no \\x41 and \\u0041: write the character itself, or &#x41;",
        'h' | 'v' | 'f' | 'R' | 'N' | 'X' => {
            "XML Schema has no such class: write \\s for white space, or a class in [ ]"
        }
        'Q' | 'E' => "XML Schema has no \\Q…\\E: write a backslash before each character that needs one",
        '$' | '/' | '"' | '\'' | ' ' | '#' | '@' | '%' | '&' | ',' | ':' | ';' | '=' | '!' | '~' | '`' | '_' => {
            "this character has no meaning of its own in XML Schema: write it without a backslash"
        }
        _ => "a backslash stands before a character that has no such meaning",
    }
}
