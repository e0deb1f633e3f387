//! Start tags and attributes, as the tape gives them.

use super::uris::Marked;
use super::{Node, Place, Uri};
use crate::ladder::scan::split_prefix;

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

    /// The name without its prefix.
    #[inline]
    pub(crate) fn local(&self) -> &'a str {
        &self.text[self.node.local as usize..self.node.name_end as usize]
    }

    /// The namespace of the name.
    #[inline]
    pub(crate) fn uri(&self) -> Uri {
        self.node.uri.uri()
    }

    /// Returns whether the name has a prefix.
    #[inline]
    pub(crate) fn is_prefixed(&self) -> bool {
        self.node.is_prefixed()
    }

    /// Returns whether there are attributes or namespace declarations.
    #[inline]
    pub(crate) fn has_attributes(&self) -> bool {
        !self.attributes.is_empty()
    }

    /// Namespace declarations, then attributes, in canonical order.
    #[inline]
    pub(crate) fn attributes(&self) -> Attributes<'a> {
        Attributes { text: self.text, places: self.attributes.iter() }
    }
}

impl Attributes<'_> {
    /// Returns whether none is left.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.places.as_slice().is_empty()
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

    /// The namespace of the name; `None` if it is a declaration.
    #[inline]
    pub(crate) fn uri(&self) -> Option<Uri> {
        let uri = self.place.uri;
        if uri.has(Marked::DECLARATION) { None } else { Some(uri.uri()) }
    }

    /// The name without its prefix.
    #[inline]
    pub(crate) fn local(&self) -> &'a str {
        // A name without a prefix is in no namespace.
        if self.place.uri == Marked::new(Uri::NONE, 0) { self.name() } else { split_prefix(self.name()).1 }
    }

    /// The value as written, with its character references.
    #[inline]
    pub(crate) fn written(&self) -> &'a str {
        &self.text[self.place.value as usize..self.place.end as usize]
    }

    /// The prefix that it declares (empty for the default namespace), and the namespace; `None` if it is no declaration.
    #[inline]
    pub(crate) fn declared(&self) -> Option<(&'a str, Uri)> {
        let uri = self.place.uri;
        uri.has(Marked::DECLARATION).then(|| (self.name().get("xmlns:".len()..).unwrap_or_default(), uri.uri()))
    }
}
