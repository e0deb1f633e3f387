//! The reader of a payload for the decoder.

use std::borrow::Cow;

use super::element::ElementValue;
use super::{DecodeError, DecodeProblem, MAX_DEPTH, Undecodable, Within};
use crate::ladder::tape::{Cursor, Tag};

/// The elements and texts of one payload.
pub(super) struct Reader<'de> {
    cursor: Cursor<'de>,
    depth: usize,
    /// The type around the next value.
    pub(super) within: Within,
}

impl<'de> Reader<'de> {
    pub(super) fn new(cursor: Cursor<'de>) -> Self {
        Self { cursor, depth: 0, within: Within::Field }
    }

    /// Number of start tags taken so far.
    pub(super) fn elements(&self) -> usize {
        self.cursor.elements()
    }

    /// The next start tag, if a child stands before the end of this element; text before it is skipped.
    #[inline]
    pub(super) fn peek_child(&self) -> Option<Tag<'de>> {
        self.cursor.child()
    }

    /// Takes the next start tag; decoding its element takes the rest.
    #[inline]
    pub(super) fn element(&mut self) -> Result<ElementValue<'_, 'de>, DecodeError> {
        let Some(tag) = self.cursor.enter() else { return Err(Undecodable::End.into()) };
        Ok(ElementValue { reader: self, tag })
    }

    /// Takes the rest of an element that holds only text, end tag included.
    #[inline]
    pub(super) fn text(&mut self) -> Result<Cow<'de, str>, DecodeError> {
        self.cursor.content().ok_or_else(|| Undecodable::Element.into())
    }

    /// Returns whether the rest of the element begins without a child: then it can be read as text.
    pub(super) fn peek_text(&self) -> bool {
        let mut ahead = self.cursor;
        ahead.text().is_some() || ahead.child().is_none()
    }

    /// Takes the rest of an element, end tag included, with any content.
    #[inline]
    pub(super) fn skip(&mut self) {
        self.cursor.leave();
    }

    /// Records that a value is nested in another. The depth is bounded, because each level takes stack.
    pub(super) fn enter(&mut self) -> Result<(), DecodeError> {
        self.depth += 1;
        if self.depth > MAX_DEPTH { Err(DecodeProblem::Depth.into()) } else { Ok(()) }
    }

    /// The opposite of [`enter`](Self::enter).
    pub(super) fn leave(&mut self) {
        self.depth -= 1;
    }
}
