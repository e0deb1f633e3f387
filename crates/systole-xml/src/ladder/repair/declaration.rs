//! The XML declaration (XML 1.0, production 23).

use super::lexis::{is_space_char, name_end};

/// The pseudo-attributes of an XML declaration.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Declaration<'t> {
    pub(super) encoding: Option<&'t str>,
    version: &'t str,
    standalone: Option<&'t str>,
}

impl Declaration<'_> {
    /// Returns whether it can stay: XML 1.x, in UTF-8.
    pub(super) fn is_plain(&self) -> bool {
        let is_utf_8 = |name: &str| name.eq_ignore_ascii_case("UTF-8") || name.eq_ignore_ascii_case("UTF8");
        let is_minor = |minor: &str| !minor.is_empty() && minor.bytes().all(|byte| byte.is_ascii_digit());
        self.version.strip_prefix("1.").is_some_and(is_minor)
            && self.encoding.is_none_or(is_utf_8)
            && self.standalone.is_none_or(|standalone| matches!(standalone, "yes" | "no"))
    }
}

/// Reads `<?xml …?>`; `None` if it is malformed.
pub(super) fn read(text: &str) -> Option<Declaration<'_>> {
    let mut rest = text.strip_prefix("<?xml")?.strip_suffix("?>")?;
    let version = pseudo_attribute(&mut rest, "version")?;
    let encoding = pseudo_attribute(&mut rest, "encoding");
    let standalone = pseudo_attribute(&mut rest, "standalone");
    rest.trim_matches(is_space_char).is_empty().then_some(Declaration { encoding, version, standalone })
}

/// Takes white space and `name="value"` off the front of `rest`; `None` if they don't stand there.
fn pseudo_attribute<'t>(rest: &mut &'t str, name: &str) -> Option<&'t str> {
    let start = rest.trim_start_matches(is_space_char);
    if start.len() == rest.len() || name_end(start, 0)? != name.len() {
        return None;
    }
    let value = start.strip_prefix(name)?.trim_start_matches(is_space_char).strip_prefix('=')?;
    let value = value.trim_start_matches(is_space_char);
    let quote = value.chars().next().filter(|&c| matches!(c, '"' | '\''))?;
    let (value, behind) = value[1..].split_once(quote)?;
    *rest = behind;
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_declarations_are_told_from_others() {
        for (text, plain) in [
            ("<?xml version='1.0'?>", Some(true)),
            ("<?xml  version = \"1.0\"\nencoding='utf-8' standalone='no' ?>", Some(true)),
            ("<?xml version='1.1'?>", Some(true)),
            ("<?xml version='1.'?>", Some(false)),
            ("<?xml version='2.0'?>", Some(false)),
            ("<?xml version='1.0' encoding='utf8'?>", Some(true)),
            ("<?xml version='1.0' encoding='latin1'?>", Some(false)),
            ("<?xml version='1.0' standalone='maybe'?>", Some(false)),
            ("<?xml?>", None),
            ("<?xml encoding='UTF-8'?>", None),
            ("<?xml version='1.0'encoding='UTF-8'?>", None),
            ("<?xml version=1.0?>", None),
            ("<?xml version='1.0' extra='x'?>", None),
        ] {
            assert_eq!(read(text).map(|declaration| declaration.is_plain()), plain, "{text}");
        }
    }
}
