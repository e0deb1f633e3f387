//! Examples that a person can fill in.

use crate::vocab::QName;

/// The example of a payload, with the texts in it that can be replaced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Offer {
    pub(super) payload: QName,
    example: String,
    leaves: Vec<Leaf>,
}

/// An element without child elements.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Leaf {
    name: String,
    start: usize,
    end: usize,
}

impl Offer {
    /// An offer from canonical XML.
    pub(super) fn new(payload: QName, example: &str) -> Self {
        Self { payload, example: example.to_owned(), leaves: leaves(example) }
    }

    pub(super) fn example(&self) -> &str {
        &self.example
    }

    /// The name of a text and what the example says there; `None` past the last.
    pub(super) fn field(&self, index: usize) -> Option<(&str, &str)> {
        self.leaves.get(index).map(|leaf| (leaf.name.as_str(), &self.example[leaf.start..leaf.end]))
    }

    /// The example with the texts that were given, in order; an empty one keeps what the example has.
    pub(super) fn fill(&self, texts: &[String]) -> String {
        let mut out = String::with_capacity(self.example.len());
        let mut done = 0;
        for (leaf, text) in self.leaves.iter().zip(texts).filter(|(_, text)| !text.is_empty()) {
            out.push_str(&self.example[done..leaf.start]);
            for c in text.chars() {
                match c {
                    '&' => out.push_str("&amp;"),
                    '<' => out.push_str("&lt;"),
                    '>' => out.push_str("&gt;"),
                    c => out.push(c),
                }
            }
            done = leaf.end;
        }
        out + &self.example[done..]
    }
}

/// The leaves of canonical XML: where `>` of a start tag is followed by text and an end tag.
fn leaves(example: &str) -> Vec<Leaf> {
    let mut leaves = Vec::new();
    let mut open: Option<(&str, usize)> = None;
    let mut at = 0;
    while let Some(start) = example[at..].find('<').map(|found| at + found) {
        let end = tag_end(example, start);
        let tag = &example[start + 1..end];
        if tag.starts_with('/') {
            if let Some((name, from)) = open.take() {
                leaves.push(Leaf { name: name.to_owned(), start: from, end: start });
            }
        } else if !tag.starts_with(['?', '!']) {
            let name = tag.split([' ', '\n']).next().unwrap_or(tag);
            let local = name.rsplit(':').next().unwrap_or(name);
            open = Some((local, (end + 1).min(example.len())));
        }
        at = (end + 1).min(example.len());
    }
    leaves
}

/// Where the `>` of a tag is: values in quotes may hold one too.
fn tag_end(text: &str, start: usize) -> usize {
    let mut quoted = false;
    for (at, byte) in text.bytes().enumerate().skip(start) {
        match byte {
            b'"' => quoted = !quoted,
            b'>' if !quoted => return at,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    const VERDICT: &str =
        r#"<v:verdict xmlns:v="urn:v" a="1>0"><v:ok>true</v:ok><v:notes><note></note></v:notes></v:verdict>"#;

    fn offer(example: &str) -> Offer {
        Offer::new("{urn:v}verdict".parse().unwrap(), example)
    }

    #[test]
    fn leaves_are_named_without_their_prefix() {
        let offer = offer(VERDICT);
        assert_eq!(offer.field(0), Some(("ok", "true")));
        assert_eq!(offer.field(1), Some(("note", "")));
        assert_eq!(offer.field(2), None);
    }

    #[test]
    fn texts_are_escaped_and_empty_ones_keep_the_example() {
        let filled = offer(VERDICT).fill(&[String::new(), "a<b & c>d".into()]);
        let expected = VERDICT.replace("<note></note>", "<note>a&lt;b &amp; c&gt;d</note>");
        assert_eq!(filled, expected);
        assert_eq!(offer("<a>x</a>").fill(&["y".into()]), "<a>y</a>");
    }
}
