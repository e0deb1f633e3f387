//! The scan of a document that has no tape.

use super::uris::Marked;
use super::{NONE, Tape, Uri};
use crate::ladder::scan::{ScanToken, Scanner, Tag, declared_prefix, find, split_prefix, unescape};

impl Tape {
    /// Records a document. For bytes that are not canonical, or 4 GiB long, the tape stays empty.
    pub(in crate::ladder) fn read(&mut self, text: &str) {
        self.clear();
        self.scope.clear();
        if u32::try_from(text.len()).is_err() || self.scan(text).is_none() {
            self.clear();
        }
    }

    fn scan(&mut self, text: &str) -> Option<()> {
        let mut scanner = Scanner::new(text);
        let mut open = None;
        loop {
            let behind = scanner.offset();
            let token = scanner.next();
            let at = match token {
                None if open.is_none() && scanner.offset() == text.len() => return Some(()),
                None => return None,
                Some(ScanToken::Start(tag)) => {
                    let at = scanner.offset() - tag.len();
                    if open.is_none() && !self.nodes.is_empty() {
                        return None;
                    }
                    at
                }
                Some(ScanToken::Text(written)) => scanner.offset() - written.len(),
                Some(ScanToken::End) => {
                    let node = self.nodes[open? as usize];
                    let name = &text[node.at as usize + 1..node.name_end as usize];
                    let at = scanner.offset().checked_sub(name.len() + "</>".len())?;
                    (text.get(at + 2..)?.starts_with(name)).then_some(at)?
                }
            };
            if let (Some(element), true) = (open, at > behind) {
                self.instruction(element);
            }
            match token? {
                ScanToken::Start(tag) => {
                    let name_end = at + 1 + tag.name().len();
                    let element =
                        self.start(at, name_end - tag.local().len(), name_end, scanner.offset(), open, Uri::NONE);
                    self.scan_attributes(element, name_end, tag);
                    self.nodes[element as usize].uri = Marked::new(self.scope.uri(tag.prefix()), 0);
                    open = Some(element);
                }
                ScanToken::Text(written) => {
                    if find(written.as_bytes(), b'&').is_some() {
                        self.reference(open?);
                    }
                    open?;
                }
                ScanToken::End => {
                    let element = open?;
                    self.end(element, at);
                    self.scope.leave(element);
                    open = Some(self.nodes[element as usize].parent).filter(|parent| *parent != NONE);
                }
            }
        }
    }

    /// Records the attributes of the element that started last, whose name ends at `at`. Declarations come first.
    fn scan_attributes(&mut self, element: u32, at: usize, tag: Tag) {
        let mut at = at;
        for (name, value) in tag.attributes() {
            let start = at + 1;
            at = start + name.len() + "=\"".len() + value.len();
            if let Some(declared) = declared_prefix(name) {
                let uri = self.uris.intern(&unescape(value));
                self.scope.declare(element, declared, uri);
                self.declaration(start, name.len(), at, uri);
            } else {
                let prefix = split_prefix(name).0;
                let uri = if prefix.is_empty() { Uri::NONE } else { self.scope.uri(prefix) };
                self.attribute(start, name.len(), at, uri);
            }
            at += 1;
        }
    }
}
