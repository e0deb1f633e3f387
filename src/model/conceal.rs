//! Removal of a secret from a text that another party wrote: in parts, too, and behind the escapes of JSON and URLs.

use std::ops::Range;

/// The shortest part of a secret that is removed, in characters. A shorter secret is removed as a whole.
const PART: usize = 8;

/// Replaces each part of a secret by `…`. Takes time in proportion to the product of both lengths.
pub(super) fn conceal(text: &str, secret: &str) -> String {
    let secret: Vec<char> = secret.chars().collect();
    // As it is, and as a reader of JSON or of a URL reads it.
    let text = without(text, &written(text), &secret);
    without(&text, &read(&text), &secret)
}

/// A text without the parts of a secret, by its characters and the bytes that stand for each.
fn without(text: &str, chars: &[(char, Range<usize>)], secret: &[char]) -> String {
    let least = PART.min(secret.len()).max(1);
    let (mut out, mut end, mut at) = (String::with_capacity(text.len()), 0, 0);
    while let Some((_, first)) = chars.get(at) {
        let found = (0..secret.len()).map(|from| common(&chars[at..], &secret[from..])).max().unwrap_or(0);
        if found < least {
            at += 1;
            continue;
        }
        out += &text[end..first.start];
        out.push('…');
        end = chars[at + found - 1].1.end;
        at += found;
    }
    out + &text[end..]
}

/// The number of characters that both begin with, in capitals or not.
fn common(chars: &[(char, Range<usize>)], secret: &[char]) -> usize {
    chars.iter().zip(secret).take_while(|((one, _), other)| one.eq_ignore_ascii_case(other)).count()
}

/// The characters of a text.
fn written(text: &str) -> Vec<(char, Range<usize>)> {
    text.char_indices().map(|(at, char)| (char, at..at + char.len_utf8())).collect()
}

/// The characters of a text, with an escape of JSON (RFC 8259, section 7) or of a URL (RFC 3986, section 2.1) for one.
fn read(text: &str) -> Vec<(char, Range<usize>)> {
    let (mut chars, mut at) = (Vec::new(), 0);
    while let Some(char) = text[at..].chars().next() {
        let (char, len) = escaped(&text[at..]).unwrap_or((char, char.len_utf8()));
        chars.push((char, at..at + len));
        at += len;
    }
    chars
}

/// The character that an escape at the start of a text stands for, and the length of the escape.
fn escaped(text: &str) -> Option<(char, usize)> {
    let code = |digits: Option<&str>| char::from_u32(u32::from_str_radix(digits?, 16).ok()?);
    match text.as_bytes() {
        [b'\\', b'u', ..] => Some((code(text.get(2..6))?, 6)),
        [b'\\', plain @ (b'"' | b'\\' | b'/' | b'\''), ..] => Some(((*plain).into(), 2)),
        [b'%', ..] => Some((code(text.get(1..3))?, 3)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::conceal;

    #[test]
    fn a_secret_is_removed_however_it_is_written() {
        let secret = r#"abcd/SECRET/+x"y\z=="#;
        for text in [
            r#"key abcd/SECRET/+x"y\z== is bad"#,
            r#"key ABCD/secret/+X"y\Z== is bad"#,
            r#"key abcd\/SECRET\/+x\"y\\z== is bad"#,
            r#"key abcd\u002fSECRET\u002F+x\u0022y\u005cz== is bad"#,
            "key abcd%2FSECRET%2f%2Bx%22y%5Cz%3D%3D is bad",
        ] {
            assert_eq!(conceal(text, secret), "key … is bad", "{text}");
        }
    }

    #[test]
    fn parts_of_eight_characters_are_removed_and_shorter_ones_stay() {
        assert_eq!(conceal("starts sk-12345, ends 567890abc", "sk-1234567890abc"), "starts …, ends …");
        assert_eq!(conceal("starts sk-1234", "sk-1234567890abc"), "starts sk-1234");
        assert_eq!(conceal("abc and ab and abc", "abc"), "… and ab and …");
        assert_eq!(conceal("", "abc"), "");
        assert_eq!(conceal(r"\u12 \ % %zz \u00e4 ü", "\u{e4}"), r"\u12 \ % %zz … ü");
    }
}
