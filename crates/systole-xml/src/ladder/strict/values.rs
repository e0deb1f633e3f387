//! Prefixes in values: those of `xsi:type="p:T"` and other QNames in content.

use super::pass::Root;
use super::scope::Scope;
use super::writer::Piece;
use crate::ladder::scan::{ScanToken, Scanner, declared_prefix};
use crate::vocab::is_name_char;

impl Root {
    /// The canonical form of the document.
    pub(super) fn text<'a>(&'a self, input: &'a str) -> &'a str {
        match &self.piece {
            Piece::Source(range) => &input[range.clone()],
            Piece::Written(text) => text,
        }
    }
}

/// The prefixes whose declarations were left out of a canonical text and that stand before a colon in one of its
/// values, in the order of their first use.
pub(super) fn prefixes(text: &str, scope: &mut Scope) -> Vec<Box<str>> {
    let mut found = Vec::new();
    if !scope.left_out_may_stand_in(text) {
        return found;
    }
    scope.leave_out_again();
    for token in Scanner::new(text) {
        match token {
            ScanToken::Start(tag) => {
                let values = tag.attributes().filter(|(name, _)| declared_prefix(name).is_none());
                values.for_each(|(_, value)| collect(value, scope, &mut found));
            }
            ScanToken::Text(written) => collect(written, scope, &mut found),
            ScanToken::End => {}
        }
    }
    found
}

/// Collects the prefixes of a value. A prefix is the whole name before a colon, so each byte is looked at twice at
/// most.
fn collect(value: &str, scope: &mut Scope, found: &mut Vec<Box<str>>) {
    let mut start = 0;
    for colon in memchr::memchr_iter(b':', value.as_bytes()) {
        let before = &value[start..colon];
        let is_part = |c: char| is_name_char(c) && c != ':';
        let prefix = &before[before.trim_end_matches(is_part).len()..];
        if !prefix.is_empty() && scope.keep(prefix) {
            found.push(prefix.into());
        }
        start = colon + 1;
    }
}
