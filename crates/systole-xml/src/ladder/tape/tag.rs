//! Start tags and attributes, as the tape gives them.

use super::{Node, Place};
use crate::ladder::scan::declared_prefix;

/// A start tag. Its parts are cut out of the document on demand.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tag<'a> {
    text: &'a str,
    node: &'a Node,
    attributes: &'a [Place],
}

/// An attribute or a namespace declaration.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Attribute<'a> {
    text: &'a str,
    place: Place,
}

/// The attributes of a start tag: see [`Tag::attributes`].
#[derive(Debug, Clone)]
pub(crate) struct Attributes<'a> {
    text: &'a str,
    places: std::slice::Iter<'a, Place>,
}

impl<'a> Tag<'a> {
    #[inline]
    pub(super) fn new(text: &'a str, node: &'a Node, attributes: &'a [Place]) -> Self {
        Self { text, node, attributes }
    }

    /// The name as written, prefix included.
    #[inline]
    pub(crate) fn name(&self) -> &'a str {
        &self.text[self.node.at as usize + 1..self.node.name_end as usize]
    }

    /// The prefix of the name; empty for none.
    #[inline]
    pub(crate) fn prefix(&self) -> &'a str {
        prefix(self.text, self.node.at + 1, self.node.local)
    }

    /// The name without its prefix.
    #[inline]
    pub(crate) fn local(&self) -> &'a str {
        &self.text[self.node.local as usize..self.node.name_end as usize]
    }

    /// Namespace declarations, then attributes, in canonical order.
    #[inline]
    pub(crate) fn attributes(&self) -> Attributes<'a> {
        Attributes { text: self.text, places: self.attributes.iter() }
    }
}

impl<'a> Iterator for Attributes<'a> {
    type Item = Attribute<'a>;

    #[inline]
    fn next(&mut self) -> Option<Attribute<'a>> {
        let place = *self.places.next()?;
        Some(Attribute { text: self.text, place })
    }
}

impl<'a> Attribute<'a> {
    /// The name as written, prefix included.
    #[inline]
    pub(crate) fn name(&self) -> &'a str {
        &self.text[self.place.name as usize..self.place.value as usize - "=\"".len()]
    }

    /// The prefix of the name; empty for none, and `xmlns` for that of a declaration.
    #[inline]
    pub(crate) fn prefix(&self) -> &'a str {
        prefix(self.text, self.place.name, self.place.local)
    }

    /// The name without its prefix.
    #[inline]
    pub(crate) fn local(&self) -> &'a str {
        &self.text[self.place.local as usize..self.place.value as usize - "=\"".len()]
    }

    /// The value as written, with its character references.
    #[inline]
    pub(crate) fn written(&self) -> &'a str {
        &self.text[self.place.value as usize..self.place.end as usize]
    }

    /// The prefix that it declares (empty for the default namespace); `None` if it is no declaration.
    #[inline]
    pub(crate) fn declared(&self) -> Option<&'a str> {
        declared_prefix(self.name())
    }
}

/// A prefix. An empty one points into the document, as any other does: `""` points to no memory, and `memcmp` by masked
/// loads takes a hundred nanoseconds to compare nothing there.
#[inline]
fn prefix(text: &str, name: u32, local: u32) -> &str {
    let end = if local == name { name } else { local - 1 };
    &text[name as usize..end as usize]
}
