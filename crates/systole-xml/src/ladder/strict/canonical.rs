//! Canonical documents, the rung that the strict pass makes.

use std::collections::HashSet;
use std::fmt;
use std::sync::{Arc, Weak};

use bytes::Bytes;
use bytestring::ByteString;

use super::pool::Loan;
use super::{
    StrictError, Surroundings, attribute_offset, canonicalize, canonicalize_in, content_offset, element_offset,
    mark_len, push_value,
};
use crate::ladder::repair::{Repair, RepairKind};
use crate::ladder::tape::Cursor;
use crate::vocab::{Position, QName, Span, XmlLimits};

/// An element in the form of Exclusive XML Canonicalization 1.0 without comments, with an InclusiveNamespaces
/// PrefixList of the prefixes that stand before a colon in its values.
///
/// Always well-formed, namespace-well-formed, UTF-8 and within the limits. Only the strict pass
/// and the encoder of typed payloads can make one:
///
/// ```compile_fail,E0451
/// use systole_xml::ladder::Canonical;
/// fn forge(genuine: Canonical) -> Canonical {
///     Canonical { parts: genuine.parts }
/// }
/// ```
///
/// ```compile_fail,E0624
/// let forged = systole_xml::ladder::Canonical::from_encoder("<a>".into(), "a".parse().unwrap());
/// ```
///
/// Cheap to clone and to move: one pointer, because a message carries its payload through every
/// queue of the pump.
#[derive(Clone)]
pub struct Canonical {
    parts: Arc<Parts>,
}

#[derive(Clone)]
struct Parts {
    text: ByteString,
    root: QName,
    /// `None` instead of an empty list, which would be an allocation.
    repairs: Option<Arc<[Repair]>>,
    origin: Origin,
    /// True if it has declarations that only values need, and that a part of it may not need.
    keeps: bool,
}

/// The identity of a document. While it is kept, no other document can have the same address.
#[derive(Debug)]
pub(in crate::ladder) struct Identity(Weak<Parts>);

/// A part of an element, for [`Canonical::position_of`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part<'a> {
    /// The start tag.
    Tag,
    /// The attribute with this name, as written.
    Attribute(&'a str),
    /// The content between the tags, without the white space in front of it.
    Content,
}

/// The bytes that the strict pass read, and which of their elements is the root.
#[derive(Clone)]
pub(in crate::ladder) struct Origin {
    source: Bytes,
    first: usize,
}

impl Origin {
    /// The origin of a root that has `first` start tags in front of its own in `source`.
    pub(in crate::ladder) fn new(source: Bytes, first: usize) -> Self {
        Self { source, first }
    }
}

impl Canonical {
    /// The canonical bytes.
    pub fn bytes(&self) -> &Bytes {
        self.parts.text.as_bytes()
    }

    /// Bytes that it keeps in memory: the canonical ones, and those that the strict pass read.
    pub fn held(&self) -> usize {
        self.parts.text.len() + self.parts.origin.source.len()
    }

    /// The canonical bytes as text.
    pub fn as_str(&self) -> &str {
        &self.parts.text
    }

    /// The canonical text as shared bytes.
    pub(in crate::ladder) fn text(&self) -> &ByteString {
        &self.parts.text
    }

    /// The name of the root element.
    pub fn root(&self) -> &QName {
        &self.parts.root
    }

    /// Calls `read` with a cursor at the begin of the document.
    pub(crate) fn read<R>(&self, read: impl FnOnce(Cursor<'_>) -> R) -> R {
        let tape = Loan::of(self);
        read(tape.cursor(self.as_str()))
    }

    /// The changes that repair made to the input; empty for clean input.
    pub fn repairs(&self) -> &[Repair] {
        self.parts.repairs.as_deref().unwrap_or_default()
    }

    /// The place where the `index`-th element (document order, from 0) starts in the bytes that the strict
    /// pass read; `None` if there are fewer elements. After a repair these are the repaired bytes.
    ///
    /// Scans the bytes at each call: meant for errors.
    pub fn position(&self, index: usize) -> Option<Position> {
        self.position_of(index, Part::Tag)
    }

    /// The place of a part of the `index`-th element, counted as [`Self::position`] does; the place of its start tag if
    /// the element has no such part.
    pub fn position_of(&self, index: usize, part: Part) -> Option<Position> {
        let source = &self.parts.origin.source;
        let mark = mark_len(source);
        let tag = element_offset(source, self.parts.origin.first.checked_add(index)?)?;
        let offset = match part {
            Part::Tag => None,
            Part::Attribute(name) => attribute_offset(source, tag, name),
            Part::Content => content_offset(source, tag),
        };
        Some(Position::of(&source[mark..], offset.unwrap_or(tag) - mark))
    }

    /// The document that the encoder of typed payloads wrote.
    ///
    /// Contract: `text` is one element, `root`, in exclusive canonical form, within the limits.
    /// Builds with debug assertions check all of it but the limits.
    pub(in crate::ladder) fn from_encoder(text: String, root: QName) -> Self {
        let text = ByteString::from(text);
        let origin = Origin::new(text.as_bytes().clone(), 0);
        let canonical = Self::checked(text, root, origin, false);
        debug_assert_eq!(canonical.flaw(), None, "the encoder wrote {canonical:?}");
        canonical
    }

    /// The same element with `repairs` in front of those that it has.
    #[must_use]
    pub(in crate::ladder) fn with_repairs(mut self, repairs: impl Into<Arc<[Repair]>>) -> Self {
        let mut repairs: Arc<[Repair]> = repairs.into();
        if let Some(later) = &self.parts.repairs {
            repairs = repairs.iter().chain(later.iter()).cloned().collect();
        }
        Arc::make_mut(&mut self.parts).repairs = Some(repairs).filter(|repairs| !repairs.is_empty());
        self
    }

    /// The same element in a namespace that its author left out: schema-guided repair. The strict pass reads the result,
    /// so its promises are kept for each caller.
    ///
    /// `qualified` gives the namespace to the root and to all its descendants that have none, unless one
    /// says so by `xmlns=""`; else the root alone gets it, by a prefix. A root that has a namespace is
    /// returned unchanged.
    ///
    /// # Errors
    /// [`StrictError`] if no element can be in this namespace, or the result passes a limit.
    pub(crate) fn in_namespace(
        &self,
        namespace: &str,
        qualified: bool,
        limits: &XmlLimits,
    ) -> Result<Self, StrictError> {
        if !self.parts.root.namespace().is_empty() || namespace.is_empty() {
            return Ok(self.clone());
        }
        let text = self.as_str();
        let local = self.parts.root.local();
        let behind = &text[1 + local.len()..];
        let uri = escaped(namespace);
        let edited = if qualified {
            format!("<{local} xmlns=\"{uri}\"{behind}")
        } else {
            let prefix = self.free_prefix();
            let inner = &behind[..behind.len() - local.len() - b"</>".len()];
            format!("<{prefix}:{local} xmlns:{prefix}=\"{uri}\"{inner}</{prefix}:{local}>")
        };
        let moved = canonicalize_in(&edited.into(), Surroundings::default(), self.parts.origin.clone(), limits)?;
        let repairs: Vec<_> = self.repairs().iter().cloned().chain(self.root_repair()).collect();
        Ok(moved.with_repairs(repairs))
    }

    /// A document whose promises the caller keeps. Outside of this module only the strict pass calls it.
    pub(super) fn checked(text: ByteString, root: QName, origin: Origin, keeps: bool) -> Self {
        Self { parts: Arc::new(Parts { text, root, repairs: None, origin, keeps }) }
    }

    /// The `element`-th element (document order, from 0), `text` in canonical form, with the repairs of the whole.
    /// Reuses the allocation of a document that has no other holder.
    pub(in crate::ladder) fn into_part(mut self, text: ByteString, root: QName, element: usize) -> Self {
        let origin = self.origin_of(element);
        match Arc::get_mut(&mut self.parts) {
            Some(parts) => {
                *parts = Parts { text, root, repairs: parts.repairs.take(), origin, keeps: false };
                self
            }
            None => Self::checked(text, root, origin, false).sharing_repairs(&self),
        }
    }

    /// Returns whether it declares prefixes that only its values use.
    pub(in crate::ladder) fn keeps_prefixes(&self) -> bool {
        self.parts.keeps
    }

    /// Returns whether this is the only holder of the document.
    pub(in crate::ladder) fn is_alone(&self) -> bool {
        Arc::strong_count(&self.parts) == 1
    }

    pub(in crate::ladder) fn identity(&self) -> Identity {
        Identity(Arc::downgrade(&self.parts))
    }

    pub(in crate::ladder) fn is(&self, identity: &Identity) -> bool {
        std::ptr::eq(Arc::as_ptr(&self.parts), identity.0.as_ptr())
    }

    /// The origin of an element of this document that becomes a document of its own.
    pub(in crate::ladder) fn origin_of(&self, index: usize) -> Origin {
        Origin::new(self.parts.origin.source.clone(), self.parts.origin.first + index)
    }

    /// The same element with the repairs of the document that it is a part of.
    pub(in crate::ladder) fn sharing_repairs(mut self, whole: &Self) -> Self {
        if let Some(repairs) = &whole.parts.repairs {
            Arc::make_mut(&mut self.parts).repairs = Some(repairs.clone());
        }
        self
    }

    /// A prefix that occurs nowhere in the bytes: `n`, `n1`, `n2`, …
    fn free_prefix(&self) -> String {
        let taken: HashSet<u64> = memchr::memchr_iter(b':', self.bytes()).filter_map(|at| self.numbered(at)).collect();
        match (0..).find(|number| !taken.contains(number)) {
            None | Some(0) => "n".to_owned(),
            Some(number) => format!("n{number}"),
        }
    }

    /// The number of a prefix such as `n12` that ends at `colon`.
    fn numbered(&self, colon: usize) -> Option<u64> {
        const DIGITS: usize = 12;
        let near = &self.bytes()[colon.saturating_sub(DIGITS)..colon];
        let digits = near.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
        let (head, digits) = near.split_at(near.len() - digits);
        let number = digits.iter().fold(0, |number, digit| number * 10 + u64::from(digit - b'0'));
        head.ends_with(b"n").then_some(number)
    }

    fn root_repair(&self) -> Option<Repair> {
        let start = element_offset(&self.parts.origin.source, self.parts.origin.first)?;
        let span = Span { start, end: start + 1 + self.parts.root.local().len() };
        Some(Repair { span, at: self.position(0)?, kind: RepairKind::Namespace })
    }

    /// The promise of this type that the bytes break, for debug assertions.
    fn flaw(&self) -> Option<String> {
        match canonicalize(self.bytes(), &XmlLimits::UNLIMITED) {
            Ok(again) if again.bytes() == self.bytes() && again.root() == self.root() => None,
            Ok(again) => Some(format!("not canonical, rather {again:?}")),
            Err(error) => Some(error.to_string()),
        }
    }
}

fn escaped(value: &str) -> String {
    let mut escaped = String::with_capacity(value.len());
    push_value(&mut escaped, value);
    escaped
}

impl fmt::Debug for Canonical {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Canonical({})", self.as_str())?;
        if let Some(repairs) = &self.parts.repairs {
            write!(f, " after {repairs:?}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn canonical(text: &str) -> Canonical {
        canonicalize(&text.to_owned().into(), &XmlLimits::default()).unwrap()
    }

    fn in_namespace(text: &str, qualified: bool) -> String {
        canonical(text).in_namespace("urn:x&y", qualified, &XmlLimits::default()).unwrap().as_str().to_owned()
    }

    #[test]
    fn canonical_input_is_shared_and_other_input_is_not() {
        let input = Bytes::from_static(b" <a b=\"1\"><p:c xmlns:p=\"urn:p\">&amp;</p:c></a> ");
        let shared = canonicalize(&input, &XmlLimits::default()).unwrap();
        assert_eq!(shared.bytes().as_ptr(), input[1..].as_ptr());
        let input = Bytes::from_static(b"<a b='1'/>");
        let written = canonicalize(&input, &XmlLimits::default()).unwrap();
        assert_eq!(written.as_str(), "<a b=\"1\"></a>");
        assert_eq!(written.root().to_string(), "a");
    }

    #[test]
    fn elements_are_found_in_what_was_written() {
        let canonical = canonical("\u{FEFF}<?xml version='1.0'?>\n<a><!--<x>--><![CDATA[<y>]]>\n  <b c='>'/></a>");
        let places = [0, 1, 2].map(|index| canonical.position(index));
        assert_eq!(places, [Some(Position { line: 2, column: 1 }), Some(Position { line: 3, column: 3 }), None]);
        let fragment =
            super::super::canonicalize_fragment(&"<a><b/></a>\n <c><d/></c>".into(), &XmlLimits::default()).unwrap();
        assert_eq!(fragment[1].position(1), Some(Position { line: 2, column: 5 }));
    }

    #[test]
    fn a_qualified_namespace_goes_to_all_that_have_none() {
        for (text, expected) in [
            ("<a/>", r#"<a xmlns="urn:x&amp;y"></a>"#),
            ("<a z='1'><b/></a>", r#"<a xmlns="urn:x&amp;y" z="1"><b></b></a>"#),
            (
                "<a><p:b xmlns:p='urn:p'><c/></p:b><d xmlns='urn:d'><e xmlns=''/></d></a>",
                r#"<a xmlns="urn:x&amp;y"><p:b xmlns:p="urn:p"><c></c></p:b><d xmlns="urn:d"><e xmlns=""></e></d></a>"#,
            ),
            ("<a><b xmlns='urn:x&amp;y'/></a>", r#"<a xmlns="urn:x&amp;y"><b></b></a>"#),
            ("<b xmlns='urn:b'><a/></b>", r#"<b xmlns="urn:b"><a></a></b>"#),
        ] {
            assert_eq!(in_namespace(text, true), expected);
        }
    }

    #[test]
    fn an_unqualified_namespace_goes_to_the_root_alone() {
        for (text, expected) in [
            ("<a/>", r#"<n:a xmlns:n="urn:x&amp;y"></n:a>"#),
            ("<a z='1'><b/></a>", r#"<n:a xmlns:n="urn:x&amp;y" z="1"><b></b></n:a>"#),
            (
                "<a xmlns:z='urn:z' z:y='' xmlns:b='urn:b' b:y=''><n1:b xmlns:n1='urn:n'/>n:x</a>",
                r#"<n2:a xmlns:b="urn:b" xmlns:n2="urn:x&amp;y" xmlns:z="urn:z" b:y="" z:y=""><n1:b xmlns:n1="urn:n"></n1:b>n:x</n2:a>"#,
            ),
        ] {
            assert_eq!(in_namespace(text, false), expected);
        }
    }

    #[test]
    fn a_given_namespace_is_a_repair_with_its_place() {
        let moved = canonical("\n <abc/>").in_namespace("urn:x", true, &XmlLimits::default()).unwrap();
        let at = Position { line: 2, column: 2 };
        assert_eq!(moved.repairs(), [Repair { span: Span { start: 2, end: 6 }, at, kind: RepairKind::Namespace }]);
        assert_eq!(moved.root().to_string(), "{urn:x}abc");
        assert_eq!(moved.position(0), Some(at));
        let untouched = moved.in_namespace("urn:y", true, &XmlLimits::default()).unwrap();
        assert_eq!(untouched.repairs().len(), 1);
    }

    #[test]
    fn no_element_is_put_into_a_namespace_that_cannot_be() {
        for namespace in ["relative", "http://www.w3.org/2000/xmlns/", "urn:\0"] {
            for qualified in [true, false] {
                let moved = canonical("<a/>").in_namespace(namespace, qualified, &XmlLimits::default());
                assert!(moved.is_err(), "{namespace}");
            }
        }
    }

    #[test]
    fn earlier_repairs_stand_first() {
        let at = Position { line: 1, column: 1 };
        let repair = |start| Repair { span: Span { start, end: start }, at, kind: RepairKind::Namespace };
        let twice = canonical("<a/>").with_repairs(vec![repair(2)]).with_repairs(vec![repair(1)]);
        assert_eq!(twice.repairs(), [repair(1), repair(2)]);
        assert_eq!(canonical("<a/>").with_repairs(vec![]).repairs(), []);
    }

    #[test]
    #[cfg(debug_assertions)]
    #[should_panic = "the encoder wrote"]
    fn an_encoder_that_breaks_its_contract_is_found_out() {
        Canonical::from_encoder("<a/>".into(), "a".parse().unwrap());
    }
}
