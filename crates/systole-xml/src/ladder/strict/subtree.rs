//! Elements of a canonical document as documents of their own.

use std::borrow::Cow;
use std::ops::Range;

use super::canonical::Canonical;
use super::{Surroundings, canonicalize_in};
use crate::ladder::scan::{ScanToken, Scanner, declared_prefix, unescape};
use crate::vocab::XmlLimits;

impl Canonical {
    /// The `index`-th element (document order, from 0) as a canonical document of its own; `None` if there are
    /// fewer elements. Keeps the repairs and, for positions, the origin of the whole.
    pub fn subtree(&self, index: usize) -> Option<Self> {
        let found = Subtree::find(self.as_str(), index)?;
        let text = self.text().slice_ref(&self.as_str()[found.range.clone()]);
        let declared = found.declared();
        let surroundings = Surroundings { declared: &declared, rendered: &[] };
        let subtree = canonicalize_in(&text, surroundings, self.origin_of(index), &XmlLimits::UNLIMITED);
        // An element of a canonical document is well-formed.
        subtree.ok().map(|subtree| subtree.sharing_repairs(self))
    }
}

/// An element of a canonical document, with or without comments.
#[derive(Debug)]
pub(super) struct Subtree<'a> {
    /// The bytes of the element.
    pub(super) range: Range<usize>,
    declared: Vec<(&'a str, Cow<'a, str>)>,
}

impl<'a> Subtree<'a> {
    /// The `index`-th element of `text`, in document order, from 0.
    pub(super) fn find(text: &'a str, index: usize) -> Option<Self> {
        let mut scanner = Scanner::new(text);
        let (mut declared, mut open): (Vec<(&str, &str)>, Vec<usize>) = (Vec::new(), Vec::new());
        let mut elements = 0;
        // Offset of the element, and the number of elements around it.
        let mut found: Option<(usize, usize)> = None;
        loop {
            let token = scanner.next()?;
            match (token, found) {
                (ScanToken::Start(tag), None) if elements == index => {
                    found = Some((scanner.offset() - tag.len(), open.len()));
                    open.push(declared.len());
                }
                (ScanToken::Start(tag), _) => {
                    elements += 1;
                    open.push(declared.len());
                    if found.is_none() {
                        let own = tag.attributes().filter_map(|(name, uri)| Some((declared_prefix(name)?, uri)));
                        declared.extend(own);
                    }
                }
                (ScanToken::End, found) => {
                    let outside = open.pop()?;
                    match found {
                        None => declared.truncate(outside),
                        Some((start, depth)) if open.len() == depth => {
                            let declared = declared.iter().map(|&(prefix, uri)| (prefix, unescape(uri))).collect();
                            return Some(Self { range: start..scanner.offset(), declared });
                        }
                        Some(_) => {}
                    }
                }
                (ScanToken::Text(_), _) => {}
            }
        }
    }

    /// Prefix and namespace name of the declarations around the element, outermost first.
    pub(super) fn declared(&self) -> Vec<(&str, &str)> {
        self.declared.iter().map(|(prefix, uri)| (*prefix, &**uri)).collect()
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::super::{CanonicalOptions, c14n_subtree, canonicalize};
    use crate::vocab::{Position, XmlLimits};

    #[test]
    fn elements_become_documents() {
        let text =
            "<a xmlns='urn:1' xmlns:p='urn:2?&lt;&amp;' p:k=''><b/>\n<p:c><d xmlns=''/>x</p:c><e xmlns='urn:3'/></a>";
        let whole = canonicalize(&Bytes::from(text), &XmlLimits::default()).unwrap();
        let subtree =
            |index| whole.subtree(index).map(|subtree| (subtree.root().to_string(), subtree.as_str().to_owned()));
        let expected = [
            ("{urn:1}a", whole.as_str()),
            ("{urn:1}b", "<b xmlns=\"urn:1\"></b>"),
            ("{urn:2?<&}c", "<p:c xmlns:p=\"urn:2?&lt;&amp;\"><d></d>x</p:c>"),
            ("d", "<d></d>"),
            ("{urn:3}e", "<e xmlns=\"urn:3\"></e>"),
        ];
        for (index, (root, text)) in expected.into_iter().enumerate() {
            assert_eq!(subtree(index), Some((root.to_owned(), text.to_owned())));
        }
        assert_eq!(subtree(5), None);
        assert_eq!(whole.subtree(2).unwrap().position(0), Some(Position { line: 2, column: 1 }));
    }

    #[test]
    fn subtrees_keep_comments_if_asked() {
        let text = b"<?q?><a xmlns:p='urn:1'><!-- <p:b> --><p:b k='1'><!--c\r\nd--><c/><?p x?></p:b></a><!--e-->";
        let subtree = |index, comments| {
            let subtree = c14n_subtree(
                text,
                index,
                CanonicalOptions { comments, ..CanonicalOptions::default() },
                &XmlLimits::default(),
            )
            .unwrap();
            subtree.map(|bytes| String::from_utf8(bytes).unwrap())
        };
        let with = "<p:b xmlns:p=\"urn:1\" k=\"1\"><!--c\nd--><c></c><?p x?></p:b>";
        assert_eq!(subtree(1, true).as_deref(), Some(with));
        assert_eq!(subtree(1, false), Some(with.replace("<!--c\nd-->", "")));
        assert_eq!(subtree(2, true).as_deref(), Some("<c></c>"));
        assert_eq!(subtree(3, true), None);
        assert!(c14n_subtree(b"<a><b/>", 1, CanonicalOptions::default(), &XmlLimits::default()).is_err());
    }
}
