//! Markup other than start tags: comments, CDATA sections, instructions, document types, end tags.

use memchr::memmem;

use super::lexis::{is_qname, is_space, name_end, skip_space};

/// The markup at a `<` that opens no start tag; ends are offsets behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Markup<'t> {
    Comment {
        end: usize,
    },
    Section {
        end: usize,
    },
    Instruction {
        end: usize,
        target: &'t str,
        /// True if white space stands between target and data, and the target has no colon.
        well_formed: bool,
    },
    EndTag {
        name: &'t str,
        end: usize,
        /// True if it is an end tag by the rules of XML.
        well_formed: bool,
    },
    Text,
    /// The input ends inside of it.
    Cut,
}

/// The declaration at a `<!DOCTYPE`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Doctype {
    Whole { end: usize },
    Subset { at: usize },
    Text,
    Cut,
}

/// Reads the markup at the `<` at `at`. Looks past the next `<` only for the end of a comment, a
/// section or an instruction; if there is none, the input is cut, so no byte is searched twice.
pub(super) fn read(text: &str, at: usize) -> Markup<'_> {
    let rest = &text.as_bytes()[at..];
    let until = |end: &[u8], skip: usize| {
        rest.get(skip..).and_then(|rest| memmem::find(rest, end)).map(|length| at + skip + length + end.len())
    };
    match rest {
        [b'<', b'!', b'-', b'-', ..] => until(b"-->", 4).map_or(Markup::Cut, |end| Markup::Comment { end }),
        [b'<', b'/', b'>', ..] => Markup::EndTag { name: "", end: at + 3, well_formed: false },
        [b'<', b'/', ..] => end_tag(text, at),
        [b'<', b'\\', ..] => backslash_tag(text, at),
        [b'<', b'?', ..] => match name_end(text, at + 2) {
            None if rest.len() == 2 => Markup::Cut,
            None => Markup::Text,
            Some(name_end) => match until(b"?>", name_end - at) {
                None => Markup::Cut,
                Some(end) => {
                    let target = &text[at + 2..name_end];
                    let spaced = name_end + 2 == end || is_space(text.as_bytes()[name_end]);
                    Markup::Instruction { end, target, well_formed: spaced && !target.contains(':') }
                }
            },
        },
        _ if rest.starts_with(SECTION) => until(b"]]>", 9).map_or(Markup::Cut, |end| Markup::Section { end }),
        _ if is_start(rest) => Markup::Cut,
        _ => Markup::Text,
    }
}

const SECTION: &[u8] = b"<![CDATA[";
const DOCTYPE: &[u8] = b"<!DOCTYPE";

/// Returns whether `rest` is the start of markup that the end of the input cuts.
fn is_start(rest: &[u8]) -> bool {
    SECTION.starts_with(rest) || DOCTYPE.starts_with(rest) || b"<!--".starts_with(rest)
}

/// Reads `</name>`, and text close to it: white space before the name, anything up to `>` behind it,
/// or the next `<` in place of the `>`.
fn end_tag(text: &str, at: usize) -> Markup<'_> {
    let bytes = text.as_bytes();
    let slashes = if bytes.get(at + 2) == Some(&b'/') { 2 } else { 1 };
    let start = skip_space(text, at + 1 + slashes);
    let Some(name_end) = name_end(text, start) else {
        return if start == text.len() { Markup::Cut } else { Markup::Text };
    };
    let name = &text[start..name_end];
    let behind = skip_space(text, name_end);
    let Some(stop) = memchr::memchr2(b'<', b'>', &bytes[behind..]).map(|length| behind + length) else {
        return Markup::Cut;
    };
    let closed = bytes[stop] == b'>';
    if !is_qname(name) || (!closed && stop != behind) {
        return Markup::Text;
    }
    let end = if closed { stop + 1 } else { name_end };
    Markup::EndTag { name, end, well_formed: closed && stop == behind && start == at + 2 }
}

/// Reads `<\name>`: an end tag, if an element of this name is open.
fn backslash_tag(text: &str, at: usize) -> Markup<'_> {
    let Some(end) = name_end(text, at + 2).filter(|&end| is_qname(&text[at + 2..end])) else { return Markup::Text };
    match text.as_bytes().get(end) {
        Some(b'>') => Markup::EndTag { name: &text[at + 2..end], end: end + 1, well_formed: false },
        _ => Markup::Text,
    }
}

/// Returns whether `<!DOCTYPE` stands at `at`, in any case of letters.
pub(super) fn is_doctype(text: &str, at: usize) -> bool {
    text.as_bytes()[at..].get(..DOCTYPE.len()).is_some_and(|start| start.eq_ignore_ascii_case(DOCTYPE))
}

/// Reads the document type declaration at `at`. A quoted identifier hides `>` and `[`, but no `<`.
pub(super) fn doctype(text: &str, at: usize) -> Doctype {
    let bytes = text.as_bytes();
    let mut pos = at + DOCTYPE.len();
    while let Some(&byte) = bytes.get(pos) {
        match byte {
            b'>' => return Doctype::Whole { end: pos + 1 },
            b'[' => return Doctype::Subset { at: pos },
            b'<' => return Doctype::Text,
            b'"' | b'\'' => match memchr::memchr2(byte, b'<', &bytes[pos + 1..]) {
                Some(length) if bytes[pos + 1 + length] == byte => pos += length + 2,
                _ => pos += 1,
            },
            _ => pos += 1,
        }
    }
    Doctype::Cut
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_is_told_from_text() {
        let instruction = |end, well_formed| Markup::Instruction { end, target: "p", well_formed };
        let end_tag = |end, well_formed| Markup::EndTag { name: "a", end, well_formed };
        for (text, expected) in [
            ("<!-- - -- -->x", Markup::Comment { end: 13 }),
            ("<!-->", Markup::Cut),
            ("<!-", Markup::Cut),
            ("<![CDATA[ ]] ]]>x", Markup::Section { end: 16 }),
            ("<![CDATA[ ]]", Markup::Cut),
            ("<![CDA", Markup::Cut),
            ("<![cdata[", Markup::Text),
            ("<", Markup::Cut),
            ("<!", Markup::Cut),
            ("<!x", Markup::Text),
            ("<?p?>", instruction(5, true)),
            ("<?p ?? ?>x", instruction(9, true)),
            ("<?p+?>", instruction(6, false)),
            ("<? p?>", Markup::Text),
            ("<?", Markup::Cut),
            ("<?p ", Markup::Cut),
            ("</a>", end_tag(4, true)),
            ("</a \n>x", end_tag(6, true)),
            ("</ a>", end_tag(5, false)),
            ("</a b='c'>", end_tag(10, false)),
            ("</a <b>", end_tag(3, false)),
            ("</a x<b>", Markup::Text),
            ("</a:b:c>", Markup::Text),
            ("</>", Markup::EndTag { name: "", end: 3, well_formed: false }),
            ("<//a>", end_tag(5, false)),
            ("<\\a>", end_tag(4, false)),
            ("<\\a b>", Markup::Text),
            ("<\\/a>", Markup::Text),
            ("</", Markup::Cut),
            ("</a", Markup::Cut),
        ] {
            assert_eq!(read(text, 0), expected, "{text}");
        }
    }

    #[test]
    fn document_types_end_behind_their_identifiers() {
        for (text, expected) in [
            ("<!DOCTYPE a>", Doctype::Whole { end: 12 }),
            ("<!doctype html PUBLIC '>[' \"]\">x", Doctype::Whole { end: 31 }),
            ("<!DOCTYPE a 'x>", Doctype::Whole { end: 15 }),
            ("<!DOCTYPE a [", Doctype::Subset { at: 12 }),
            ("<!DOCTYPE a '[<", Doctype::Subset { at: 13 }),
            ("<!DOCTYPE a <", Doctype::Text),
            ("<!DOCTYPE a", Doctype::Cut),
        ] {
            assert!(is_doctype(text, 0));
            assert_eq!(doctype(text, 0), expected, "{text}");
        }
    }
}
