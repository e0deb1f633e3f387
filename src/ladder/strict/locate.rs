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

#[cfg(test)]
mod tests {
    use super::element_offset;

    #[test]
    fn start_tags_are_counted_and_nothing_else() {
        let text = br#"<?p <x>?><!--<x>--><a><![CDATA[<x>]]><b c="]]>"/><!----><d></d></a>"#;
        let found: Vec<_> = (0..4).map(|index| element_offset(text, index).map(|at| &text[at..at + 2])).collect();
        assert_eq!(found, [Some(&b"<a"[..]), Some(b"<b"), Some(b"<d"), None]);
    }
}
