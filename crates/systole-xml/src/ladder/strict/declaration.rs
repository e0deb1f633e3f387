//! The XML declaration.

use super::error::{CutToken, StrictErrorKind};
use super::pass::{Check, Pass};
use crate::ladder::chars::{self, excerpt};

impl Pass<'_> {
    /// Checks the XML declaration, if there is one (XML 1.0, production 23).
    ///
    /// Any version 1.x is read as 1.0, as section 2.8 says.
    pub(super) fn declaration(&mut self) -> Check {
        // The declaration of most programs.
        const USUAL: &[u8] = br#"<?xml version="1.0" encoding="UTF-8"?>"#;
        let at = self.pos;
        if self.src[at..].starts_with(USUAL) {
            self.pos = at + USUAL.len();
            return Ok(());
        }
        let behind = at + b"<?xml".len();
        if !self.src[at..].starts_with(b"<?xml") || !(self.is_space(behind) || self.src.get(behind) == Some(&b'?')) {
            return Ok(());
        }
        let Some(length) = memchr::memmem::find(&self.src[behind..], b"?>") else {
            return Err(self.cut(CutToken::Instruction));
        };
        let end = behind + length;
        let body = &self.text[behind..end];
        let Some(declared) = parse(body) else {
            return Err(self.error(StrictErrorKind::MalformedDeclaration, at));
        };
        if declared.is_some_and(|encoding| !self.is_encoding(encoding)) {
            let declared = excerpt(declared.unwrap_or_default());
            return Err(self.error(StrictErrorKind::Encoding { declared }, at));
        }
        self.pos = end + 2;
        Ok(())
    }

    /// Returns whether the bytes, which are UTF-8, are also in the encoding of that name.
    fn is_encoding(&self, name: &str) -> bool {
        let is_one_of = |names: &[&str]| names.iter().any(|known| known.eq_ignore_ascii_case(name));
        is_one_of(&["UTF-8", "UTF8"]) || (is_one_of(&["US-ASCII", "ASCII"]) && self.text[self.pos..].is_ascii())
    }
}

/// The encoding that an XML declaration names, if any; `None` if it is malformed.
fn parse(body: &str) -> Option<Option<&str>> {
    let (version, rest) = pseudo_attribute(body, "version")??;
    let minor = version.strip_prefix("1.")?;
    if minor.is_empty() || !minor.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let (encoding, rest) = pseudo_attribute(rest, "encoding")?.map_or((None, rest), |(name, rest)| (Some(name), rest));
    if encoding.is_some_and(|name| !is_encoding_name(name)) {
        return None;
    }
    let (standalone, rest) =
        pseudo_attribute(rest, "standalone")?.map_or((None, rest), |(value, rest)| (Some(value), rest));
    if !matches!(standalone, None | Some("yes" | "no")) || !rest.bytes().all(|byte| chars::is(byte, chars::SPACE)) {
        return None;
    }
    Some(encoding)
}

/// The value of ` name = "value"` at the start of `text` and the text behind it; `Some(None)` if
/// something else stands there, `None` if it is malformed.
fn pseudo_attribute<'t>(text: &'t str, name: &str) -> Option<Option<(&'t str, &'t str)>> {
    let trim = |text: &'t str| &text[chars::skip_space(text.as_bytes(), 0)..];
    let Some(rest) = trim(text).strip_prefix(name) else { return Some(None) };
    if trim(text).len() == text.len() {
        return None;
    }
    let rest = trim(trim(rest).strip_prefix('=')?);
    let quote = rest.chars().next().filter(|c| matches!(c, '"' | '\''))?;
    let (value, rest) = rest[1..].split_once(quote)?;
    Some(Some((value, rest)))
}

/// Returns whether a name is an `EncName` of XML 1.0, production 81.
fn is_encoding_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-'))
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn good_declarations_name_their_encoding() {
        assert_eq!(parse(" version='1.0'"), Some(None));
        assert_eq!(parse("\n version = \"1.17\"\tencoding='UTF-8' standalone='no' "), Some(Some("UTF-8")));
        assert_eq!(parse(" version='1.0' standalone=\"yes\""), Some(None));
    }

    #[test]
    fn bad_declarations_are_malformed() {
        for body in [
            "",
            " ",
            " encoding='UTF-8'",
            " version='2.0'",
            " version='1.'",
            " version='1.0a'",
            " version='1.0",
            " version=1.0",
            " version '1.0'",
            " version='1.0'encoding='UTF-8'",
            " version='1.0' encoding=''",
            " version='1.0' encoding='8bit'",
            " version='1.0' encoding='UTF 8'",
            " version='1.0' standalone='no' encoding='UTF-8'",
            " version='1.0' standalone='maybe'",
            " version='1.0' encoding='UTF-8' more='x'",
            " version='1.0' version='1.0'",
            " version='1.0\" encoding='UTF-8'",
        ] {
            assert_eq!(parse(body), None, "{body}");
        }
    }
}
