use std::borrow::Cow;

use super::{DecodeError, DecodeProblem, MAX_DEPTH, Undecodable};
use crate::ladder::scan::{Scanner, Tag, Token, unescape, unescape_into};

/// The tokens of one payload, with one token of lookahead.
pub(super) struct Reader<'de> {
    scanner: Scanner<'de>,
    peeked: Option<Token<'de>>,
    elements: usize,
    depth: usize,
}

impl<'de> Reader<'de> {
    pub(super) fn new(text: &'de str) -> Self {
        Self { scanner: Scanner::new(text), peeked: None, elements: 0, depth: 0 }
    }

    /// How many start tags were taken.
    pub(super) fn elements(&self) -> usize {
        self.elements
    }

    /// The next start tag, if a child stands before the end of this element; text on the way is dropped.
    #[inline]
    pub(super) fn peek_child(&mut self) -> Result<Option<Tag<'de>>, DecodeError> {
        loop {
            match self.peek()? {
                Token::Start(tag) => return Ok(Some(tag)),
                Token::End => return Ok(None),
                Token::Text(_) => self.peeked = None,
            }
        }
    }

    /// Takes the next start tag.
    pub(super) fn open(&mut self) -> Result<Tag<'de>, DecodeError> {
        match self.peek_child()? {
            Some(tag) => {
                self.peeked = None;
                self.elements += 1;
                Ok(tag)
            }
            None => Err(Undecodable::End.into()),
        }
    }

    /// Takes the rest of an element that holds only text, end tag included.
    pub(super) fn text(&mut self) -> Result<Cow<'de, str>, DecodeError> {
        if self.peeked.is_none()
            && let Some(written) = self.scanner.value()
        {
            return Ok(unescape(written));
        }
        let mut text = Cow::Borrowed("");
        loop {
            match self.peek()? {
                Token::Text(written) if text.is_empty() => text = unescape(written),
                Token::Text(written) => unescape_into(text.to_mut(), written),
                Token::End => break,
                Token::Start(_) => return Err(Undecodable::Element.into()),
            }
            self.peeked = None;
        }
        self.peeked = None;
        Ok(text)
    }

    /// Whether the rest of the element begins without a child: then it can be read as text.
    pub(super) fn peek_text(&mut self) -> Result<bool, DecodeError> {
        Ok(!matches!(self.peek()?, Token::Start(_)))
    }

    /// Takes the rest of an element, end tag included, whatever it holds.
    pub(super) fn skip(&mut self) -> Result<(), DecodeError> {
        let mut open = 1;
        while open > 0 {
            match self.peek()? {
                Token::Start(_) => {
                    open += 1;
                    self.elements += 1;
                }
                Token::End => open -= 1,
                Token::Text(_) => {}
            }
            self.peeked = None;
        }
        Ok(())
    }

    /// Notes that a value is nested in another; bounded because each takes stack.
    pub(super) fn enter(&mut self) -> Result<(), DecodeError> {
        self.depth += 1;
        if self.depth > MAX_DEPTH { Err(DecodeProblem::Depth.into()) } else { Ok(()) }
    }

    /// The opposite of [`enter`](Self::enter).
    pub(super) fn leave(&mut self) {
        self.depth -= 1;
    }

    fn peek(&mut self) -> Result<Token<'de>, DecodeError> {
        if self.peeked.is_none() {
            self.peeked = self.scanner.next();
        }
        self.peeked.ok_or_else(|| Undecodable::End.into())
    }
}
