//! The prolog of a schema document: a DOCTYPE is skipped with its internal subset, which nothing may use.
//!
//! Published schemas have one, such as that of XML Signature. Nothing is fetched, and no entity is replaced: a reference to
//! one is an error of the document.

use crate::schema::shorten::quoted;
use crate::vocab::{is_name_char, is_name_start};

/// An error, with its offset in bytes.
pub(in crate::schema) type Problem = (usize, String);

/// The text without byte order mark, XML declaration and DOCTYPE, with the same lines.
pub(in crate::schema) fn plain(given: &str) -> Result<String, Problem> {
    let text = given.strip_prefix('\u{FEFF}').unwrap_or(given);
    let mut plain = String::with_capacity(text.len());
    let mut rest = Scan { text, at: 0 };
    if let Some(behind) = text.strip_prefix("<?xml")
        && behind.starts_with(SPACES)
    {
        rest.past("?>");
        plain.push_str(&lines(&text[..rest.at]));
    }
    loop {
        let start = rest.at;
        rest.spaces();
        if !rest.comment_or_instruction() {
            plain.push_str(&text[start..rest.at]);
            break;
        }
        plain.push_str(&text[start..rest.at]);
    }
    let start = rest.at;
    if !rest.takes("<!DOCTYPE") {
        plain.push_str(&text[start..]);
        return Ok(plain);
    }
    doctype(&mut rest)?;
    plain.push_str(&lines(&text[start..rest.at]));
    plain.push_str(rest.rest());
    refuse_entities(rest)?;
    Ok(plain)
}

const SPACES: [char; 4] = [' ', '\t', '\n', '\r'];

/// The line ends of a removed text.
fn lines(text: &str) -> String {
    "\n".repeat(text.matches('\n').count())
}

/// A place in a text.
struct Scan<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Scan<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn takes(&mut self, token: &str) -> bool {
        let is_there = self.rest().starts_with(token);
        self.at += if is_there { token.len() } else { 0 };
        is_there
    }

    /// Moves behind the next `token`, or to the end if there is none.
    fn past(&mut self, token: &str) {
        self.at = self.rest().find(token).map_or(self.text.len(), |found| self.at + found + token.len());
    }

    fn spaces(&mut self) {
        self.at = self.text.len() - self.rest().trim_start_matches(SPACES).len();
    }

    fn comment_or_instruction(&mut self) -> bool {
        let end = match self.rest() {
            rest if rest.starts_with("<!--") => "-->",
            rest if rest.starts_with("<?") => "?>",
            _ => return false,
        };
        self.at += 2;
        self.past(end);
        true
    }

    /// Moves behind a literal in quotes, if one is there.
    fn literal(&mut self) -> bool {
        let quote = self.rest().chars().next().filter(|c| matches!(c, '"' | '\''));
        let length = quote.and_then(|quote| self.text[self.at + 1..].find(quote));
        self.at += length.map_or(0, |length| length + 2);
        length.is_some()
    }
}

/// Moves from behind `<!DOCTYPE` to behind its `>`.
fn doctype(scan: &mut Scan<'_>) -> Result<(), Problem> {
    let start = scan.at;
    let mut inside = false;
    loop {
        match scan.rest().chars().next() {
            None => return Err((start, "the document type declaration is never closed".to_owned())),
            Some('"' | '\'') if scan.literal() => {}
            Some('<') if scan.comment_or_instruction() => {}
            Some('>') if !inside => {
                scan.at += 1;
                return Ok(());
            }
            Some(c) => {
                inside = c == '[' || (inside && c != ']');
                scan.at += c.len_utf8();
            }
        }
    }
}

/// Refuses a reference to an entity that the DOCTYPE may declare.
fn refuse_entities(mut scan: Scan<'_>) -> Result<(), Problem> {
    while let Some(length) = scan.rest().find(['<', '&']) {
        scan.at += length;
        if scan.rest().starts_with("<![CDATA[") {
            scan.past("]]>");
        } else if !scan.comment_or_instruction() {
            let at = scan.at;
            scan.at += 1;
            let reference = scan.rest().split_once(';').map_or("", |(name, _)| name);
            let is_entity = scan.text[at..].starts_with('&')
                && reference.starts_with(is_name_start)
                && reference.chars().all(is_name_char)
                && !["amp", "apos", "gt", "lt", "quot"].contains(&reference);
            if is_entity {
                let name = quoted(reference);
                return Err((at, format!("the entity '{name}' is not replaced: write its text, and no DOCTYPE")));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_doctype_is_one_only_in_the_prolog() {
        for text in [
            "<!-- <!DOCTYPE a [ --><a/>",
            "<a><!-- <!DOCTYPE a [ > --><![CDATA[<!DOCTYPE a [ ]]></a>",
            "<a b=\"<!DOCTYPE a [ >\"/>",
        ] {
            assert_eq!(plain(text).as_deref(), Ok(text));
        }
        let text = "\u{FEFF}<?xml version='1.0'?>\n<!-- [ --><!DOCTYPE a SYSTEM \"[>\" [\n<!-- ]> --><?p ]> ?>]>\n<a/>";
        assert_eq!(plain(text).as_deref(), Ok("\n<!-- [ -->\n\n<a/>"));
    }

    #[test]
    fn a_doctype_is_skipped_and_its_entities_are_refused() {
        let head = "<!DOCTYPE a [<!ENTITY % p ''><!ENTITY e 'x'><!ATTLIST a b CDATA #IMPLIED>%p;]>";
        let unused = "<a b='&amp;&#60;'>&lt;<!-- &e; --><?p &e;?><![CDATA[&e;]]> & &e </a>";
        assert_eq!(plain(&format!("{head}{unused}")).as_deref(), Ok(unused));
        for used in ["<a>&e;</a>", "<a b='&e;'/>", "<a>\n<!-- --><b c=\"x&e;\"/></a>", "<a>&none;</a>"] {
            let (at, problem) = plain(&format!("{head}{used}")).unwrap_err();
            assert_eq!(Some(at - head.len()), used.find('&'), "{used}");
            assert!(problem.contains("write its text"), "{problem}");
        }
        assert!(plain("<!DOCTYPE a [").unwrap_err().1.contains("never closed"));
        assert!(plain(&format!("{}<a/>", "<!DOCTYPE a [ ]>".repeat(2))).is_ok());
    }
}
