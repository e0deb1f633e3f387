//! Offsets of elements, attributes and contents in the source, found on demand for errors.

use memchr::memmem;

/// The offset of the `index`-th start tag of well-formed XML, in document order, from 0.
///
/// Only for input that the strict pass took: there a `<` outside of comments, CDATA sections and
/// instructions is markup.
pub(crate) fn element_offset(input: &[u8], index: usize) -> Option<usize> {
    let mut seen = 0;
    let mut at = 0;
    loop {
        at += memchr::memchr(b'<', &input[at..])?;
        let rest = &input[at..];
        let length = match rest.get(1)? {
            b'/' => 2,
            b'?' => memmem::find(rest, b"?>")?,
            b'!' if rest.starts_with(b"<!--") => 4 + memmem::find(&rest[4..], b"-->")?,
            b'!' => memmem::find(rest, b"]]>")?,
            _ if seen == index => return Some(at),
            _ => {
                seen += 1;
                1
            }
        };
        at += length;
    }
}

/// The offset of an attribute in the start tag at `tag` of well-formed XML, by its name as written.
pub(crate) fn attribute_offset(input: &[u8], tag: usize, name: &str) -> Option<usize> {
    let is_space = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
    let behind = |from: usize, wanted: &dyn Fn(&u8) -> bool| Some(from + input.get(from..)?.iter().position(wanted)?);
    let mut at = behind(tag, &|byte| is_space(byte) || *byte == b'>')?;
    loop {
        at = behind(at, &|byte| !is_space(byte))?;
        if matches!(input[at], b'/' | b'>') {
            return None;
        }
        let end = behind(at, &|byte| is_space(byte) || *byte == b'=')?;
        if &input[at..end] == name.as_bytes() {
            return Some(at);
        }
        let open = behind(end, &|byte| matches!(byte, b'"' | b'\''))?;
        at = open + 2 + memchr::memchr(input[open], &input[open + 1..])?;
    }
}

/// The offset of the content behind the start tag at `tag` of well-formed XML, white space skipped; `None` if the
/// element is empty.
pub(crate) fn content_offset(input: &[u8], tag: usize) -> Option<usize> {
    let mut at = tag;
    let end = loop {
        at += memchr::memchr3(b'>', b'"', b'\'', input.get(at..)?)?;
        match input[at] {
            b'>' => break at,
            quote => at += 2 + memchr::memchr(quote, &input[at + 1..])?,
        }
    };
    let rest = &input[end + 1..];
    let blank = rest.iter().take_while(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r')).count();
    (input[end - 1] != b'/' && !rest[blank..].starts_with(b"</")).then_some(end + 1 + blank)
}

#[cfg(test)]
mod tests {
    use super::{attribute_offset, content_offset, element_offset};

    #[test]
    fn start_tags_are_counted_and_nothing_else() {
        let text = br#"<?p <x>?><!--<x>--><a><![CDATA[<x>]]><b c="]]>"/><!----><d></d></a>"#;
        let found: Vec<_> = (0..4).map(|index| element_offset(text, index).map(|at| &text[at..at + 2])).collect();
        assert_eq!(found, [Some(&b"<a"[..]), Some(b"<b"), Some(b"<d"), None]);
    }

    #[test]
    fn attributes_and_content_are_found_in_tags() {
        let text = b"<a\n b='c=\"d>' c = \"b\"c:d=''> \n text<e/><f> </f></a>";
        let found = |name| attribute_offset(text, 0, name).map(|at| &text[at..at + 3]);
        assert_eq!(["b", "c", "c:d", "d"].map(found), [Some(&b"b='"[..]), Some(b"c ="), Some(b"c:d"), None]);
        assert_eq!(content_offset(text, 0).map(|at| &text[at..at + 4]), Some(&b"text"[..]));
        let tag = |number| element_offset(text, number).unwrap();
        assert_eq!((content_offset(text, tag(1)), content_offset(text, tag(2))), (None, None));
        for cut in 0..text.len() {
            let _ = (attribute_offset(&text[..cut], 0, "d"), content_offset(&text[..cut], 0));
        }
    }
}
