//! The prolog of a schema document, and the entities that a DOCTYPE declares there.
//!
//! One scanner goes over the text once, with a stack of the open entities, so no input makes it recurse. A schema is
//! trusted, but the size of its expanded entities is bounded. Nothing is fetched: a reference to an external entity is
//! refused.

use std::borrow::Cow;

use foldhash::{HashMap, HashMapExt};

use crate::schema::shorten::quoted;
use crate::vocab::{is_name_char, is_name_start};

/// Maximum number of bytes that entities may add to a document.
const MOST: usize = 1 << 20;

/// An error, with its offset in bytes.
pub(in crate::schema) type Problem = (usize, String);

/// The text without byte order mark, XML declaration and DOCTYPE, with the same lines. The entities of its internal
/// subset are replaced.
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
    let entities = doctype(&mut rest)?;
    plain.push_str(&lines(&text[start..rest.at]));
    if entities.is_empty() {
        plain.push_str(&text[rest.at..]);
    } else {
        expand(&mut plain, &text[rest.at..], rest.at, &entities)?;
    }
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

    fn name(&mut self) -> &'a str {
        let rest = self.rest();
        let length =
            if rest.starts_with(is_name_start) { rest.find(|c| !is_name_char(c)).unwrap_or(rest.len()) } else { 0 };
        self.at += length;
        &rest[..length]
    }

    /// Reads a literal in quotes.
    fn literal(&mut self) -> Option<&'a str> {
        let quote = self.rest().chars().next().filter(|c| matches!(c, '"' | '\''))?;
        let start = self.at + 1;
        let length = self.text[start..].find(quote)?;
        self.at = start + length + 1;
        Some(&self.text[start..start + length])
    }
}

/// The replacement texts of general entities; `None` for external ones.
type Entities<'a> = HashMap<&'a str, Option<Cow<'a, str>>>;

/// The general entities that the DOCTYPE declares. Moves from behind `<!DOCTYPE` to behind
/// its `>`.
fn doctype<'a>(scan: &mut Scan<'a>) -> Result<Entities<'a>, Problem> {
    let start = scan.at;
    let mut entities = HashMap::new();
    let mut inside = false;
    loop {
        match scan.rest().chars().next() {
            None => return Err((start, "the document type declaration is never closed".to_owned())),
            Some('"' | '\'') if scan.literal().is_some() => {}
            Some('[') => {
                inside = true;
                scan.at += 1;
            }
            Some(']') => {
                inside = false;
                scan.at += 1;
            }
            Some('>') if !inside => {
                scan.at += 1;
                return Ok(entities);
            }
            Some('<') if scan.takes("<!ENTITY") => {
                scan.spaces();
                let name = scan.name();
                // A parameter entity matters only in declarations.
                if name.is_empty() {
                    continue;
                }
                scan.spaces();
                let value = scan.literal().map(characters).transpose().map_err(|problem| (scan.at, problem))?;
                entities.entry(name).or_insert(value);
            }
            Some('<') if scan.comment_or_instruction() => {}
            Some(c) => scan.at += c.len_utf8(),
        }
    }
}

/// The replacement text of an entity: its literal with references to characters replaced (XML 1.0, section 4.5).
fn characters(literal: &str) -> Result<Cow<'_, str>, String> {
    if !literal.contains("&#") {
        return Ok(literal.into());
    }
    let mut out = String::new();
    let mut rest = literal;
    while let Some(at) = rest.find("&#") {
        out.push_str(&rest[..at]);
        let reference = &rest[at + 2..];
        let (number, behind) = reference.split_once(';').ok_or("a reference to a character has no ';'")?;
        let code = match number.strip_prefix('x') {
            Some(hex) => u32::from_str_radix(hex, 16),
            None => number.parse(),
        };
        let character = code.ok().and_then(char::from_u32);
        out.push(character.ok_or_else(|| format!("'&#{};' is no character", quoted(number)))?);
        rest = behind;
    }
    out.push_str(rest);
    Ok(out.into())
}

/// The markup that the scanner is in, which decides how an entity is replaced.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Context {
    Text,
    Tag,
    /// An attribute value, with its quote and the number of entities around it: a quote in an entity ends no value
    /// around the entity (XML 1.0, section 4.4.5).
    Value(char, usize),
}

/// Writes `body`, which begins at byte `offset` of its document, with the references to `entities` replaced.
fn expand(out: &mut String, body: &str, offset: usize, entities: &Entities) -> Result<(), Problem> {
    let most = out.len() + body.len() + MOST;
    let mut context = Context::Text;
    // The document and the entities that are being replaced, outermost first.
    let mut open = vec![("", Scan { text: body, at: 0 })];
    while let Some((_, scan)) = open.last_mut() {
        let start = scan.at;
        let Some(c) = scan.rest().chars().next() else {
            open.pop();
            continue;
        };
        if context == Context::Text {
            let is_section = scan.rest().starts_with("<![CDATA[");
            if is_section {
                scan.past("]]>");
            }
            if is_section || scan.comment_or_instruction() {
                out.push_str(&scan.text[start..scan.at]);
                continue;
            }
        }
        scan.at += c.len_utf8();
        if c == '&' {
            let name = scan.name();
            if let Some(value) = entities.get(name).filter(|_| scan.takes(";")) {
                let at = offset + open[0].1.at;
                let Some(value) = value else {
                    return Err((
                        at,
                        format!("the entity '{}' is external, and nothing is ever fetched", quoted(name)),
                    ));
                };
                if open.iter().any(|(outer, _)| *outer == name) {
                    return Err((at, format!("the entity '{}' refers to itself", quoted(name))));
                }
                open.push((name, Scan { text: value, at: 0 }));
                continue;
            }
            scan.at = start + 1;
        }
        let depth = open.len();
        context = match (context, c) {
            (Context::Text, '<') => Context::Tag,
            (Context::Tag, '>') => Context::Text,
            (Context::Tag, '"' | '\'') => Context::Value(c, depth),
            (Context::Value(quote, outer), c) if c == quote && depth == outer => Context::Tag,
            (Context::Value(_, outer), '"') if depth != outer => {
                out.push_str("&quot;");
                continue;
            }
            (Context::Value(_, outer), '\'') if depth != outer => {
                out.push_str("&apos;");
                continue;
            }
            (context, _) => context,
        };
        out.push(c);
        if out.len() > most {
            return Err((offset + open[0].1.at, format!("its entities expand to more than {MOST} bytes")));
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
    fn entities_are_replaced_where_they_are_referred_to() {
        let head = "<!DOCTYPE a [<!ENTITY % p 'x'><!ENTITY q \"say &#34;&i;'\"><!ENTITY i '&lt;<b c=\"d\"/>'>%p;]>";
        let text = format!("{head}<a b=\"&q;\">&q;<!--&q;--><![CDATA[&q;]]>&amp;&none;</a>");
        let expected = "<a b=\"say &quot;&lt;<b c=&quot;d&quot;/>&apos;\">say \"&lt;<b c=\"d\"/>'<!--&q;--><![CDATA[&q;]]>&amp;&none;</a>";
        assert_eq!(plain(&text).as_deref(), Ok(expected));
    }

    #[test]
    fn entities_are_bounded_and_never_fetched() {
        let refused = |subset: &str| plain(&format!("<!DOCTYPE a [{subset}]><a>&e;</a>")).unwrap_err().1;
        assert!(refused("<!ENTITY e '&f;'><!ENTITY f '&e;'>").contains("refers to itself"));
        assert!(refused("<!ENTITY e SYSTEM 'file:///etc/passwd'>").contains("is external"));
        let bomb: String = (0..64).map(|n| format!("<!ENTITY e{n} '{}'>", format!("&e{};", n + 1).repeat(9))).collect();
        assert!(refused(&format!("<!ENTITY e '&e0;'>{bomb}<!ENTITY e64 'x'>")).contains("expand to more"));
        assert!(plain("<!DOCTYPE a [").unwrap_err().1.contains("never closed"));
        assert!(plain(&format!("{}<a/>", "<!DOCTYPE a [ ]>".repeat(2))).is_ok());
    }
}
