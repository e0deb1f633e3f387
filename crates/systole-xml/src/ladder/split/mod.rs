//! Splits a stream at an entrance into messages, before any of them is parsed.
//!
//! The splitter works on unchecked bytes. It finds tags, and follows them only as
//! far as needed to find the end of an envelope:
//!
//! - An envelope is an element `message`, under any prefix, that declares the envelope namespace
//!   in its own tag; it ends at its end tag. Comments, CDATA sections, instructions and quoted
//!   values hide their content. An end tag closes the elements that are open inside of its own, up to
//!   256; one that fits none of them is skipped.
//! - An envelope inside of an envelope is part of it: as the payload behind `<meta>`, or anywhere in
//!   the payload. If one begins at the place of a second payload, or in place of `<meta>`, the outer
//!   one lacks its end tag and ends there.
//! - An envelope that is still open at the end of the stream, or when it passes the limit on
//!   bytes, ends where the first envelope inside of it begins, and that one is a message of its
//!   own. So a message that was cut delays those behind it by at most one limit, and swallows none.
//! - Another element at the top level is a piece of its own, which ends at its end tag or where
//!   an envelope begins inside of it.
//! - Text, comments, instructions and declarations before an element belong to its piece. The
//!   rest at the end of the stream is a piece too, unless it is white space, comments,
//!   instructions and closing Markdown fences.
//! - A piece over the limit is skipped to its end without being kept. If its end doesn't come
//!   within sixteen limits, it ends where the next element called `message` begins.
//!
//! Boundaries of chunks never change the pieces. Time is linear; memory is bounded
//! by twice the limit and the largest chunk.
//!
//! The splitter does *not* check or decode anything. It finds no tag in UTF-16, so such a
//! stream is one piece.

mod scanner;
mod stream;
mod tag;

use std::collections::VecDeque;

use bytes::Bytes;

use crate::vocab::{Position, XmlLimits};
use scanner::{Scanner, Tag};
use stream::Stream;
use tag::{declares_envelope, has_tag, hash, is_noise, name_of};

/// A piece of the stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// A possible message; if it is none, the ladder gives the reason.
    Message(Bytes),
    /// A piece over the limit on bytes, which was skipped.
    TooLarge {
        /// Start of the piece in the stream.
        at: Position,
        /// Number of its bytes.
        bytes: u64,
    },
}

/// Splits a stream into messages. See the [module](self) for the rules.
///
/// ```
/// use systole_xml::ladder::split::{Piece, Splitter};
/// let mut splitter = Splitter::new(&Default::default());
/// splitter.push(b"<message xmlns='https://xml-pipeline.org/ns/envelope/v1'/> and <mess");
/// assert!(matches!(splitter.next(), Some(Piece::Message(_))));
/// assert_eq!(splitter.next(), None);
/// splitter.push(b"age/>");
/// assert_eq!(splitter.next(), Some(Piece::Message("and <message/>".into())));
/// assert_eq!(splitter.finish(), None);
/// ```
#[derive(Debug)]
pub struct Splitter {
    limit: u64,
    depth: usize,
    stream: Stream,
    scanner: Scanner,
    /// Start of the current piece.
    start: u64,
    /// The open elements of the current piece, outermost first.
    open: VecDeque<Open>,
    /// Number of open elements beyond those, too deep to be recorded.
    deeper: usize,
    /// Finished envelopes inside of the open ones, in order.
    nested: VecDeque<(u64, u64)>,
    /// Number of them that have become pieces of their own.
    given_up: usize,
    /// The start of the current piece, once it is over the limit.
    skipped: Option<Skipped>,
    pieces: VecDeque<Piece>,
}

#[derive(Debug)]
struct Open {
    name: u64,
    start: u64,
    children: usize,
    envelope: bool,
    /// True if its first child is called `meta`.
    begins_with_meta: bool,
    /// Number of finished envelopes before it, those that were given up included.
    mark: usize,
}

#[derive(Debug)]
struct Skipped {
    at: Position,
    /// The offset at which the wait for its end is given up.
    patience: u64,
}

impl Splitter {
    /// Number of limits that a skipped piece may have before the wait for its end is given up.
    const PATIENCE: u64 = 16;

    /// Number of open elements that an end tag may close inside of its own.
    const LOST: usize = 256;

    /// A splitter at the start of a stream.
    pub fn new(limits: &XmlLimits) -> Self {
        let limit = u64::try_from(limits.message_bytes).unwrap_or(u64::MAX).max(1);
        Self {
            limit,
            depth: limits.depth,
            stream: Stream::default(),
            scanner: Scanner::new(limit),
            start: 0,
            open: VecDeque::new(),
            deeper: 0,
            nested: VecDeque::new(),
            given_up: 0,
            skipped: None,
            pieces: VecDeque::new(),
        }
    }

    /// Takes the next bytes of the stream. Afterwards [`next`](Self::next) returns the pieces that
    /// they completed.
    pub fn push(&mut self, chunk: &[u8]) {
        self.stream.push(chunk);
        loop {
            self.skip_space();
            let end = self.stream.end().min(self.horizon());
            match self.scanner.next(&self.stream, end) {
                Some(tag) => self.take(tag),
                None if end == self.stream.end() => break,
                None => self.overflow(),
            }
        }
        self.stream.forget(self.needed());
    }

    /// The offset of the first byte to keep. A tag that began within the limit can still end the piece there, so that
    /// the piece isn't over the limit.
    fn needed(&self) -> u64 {
        let scanned = self.scanner.needs();
        let is_over = scanned > self.start.saturating_add(self.limit);
        if self.skipped.is_some() && is_over { scanned } else { self.start }
    }

    /// The next piece that is complete.
    #[expect(clippy::should_implement_trait, reason = "no iterator: there may be more after `None`")]
    pub fn next(&mut self) -> Option<Piece> {
        self.pieces.pop_front()
    }

    /// The start of a piece over the limit whose end has not come.
    pub fn skips_since(&self) -> Option<Position> {
        self.skipped.as_ref().map(|skipped| skipped.at)
    }

    /// Ends the stream and returns the next of the pieces that are left: call it until `None`.
    pub fn finish(&mut self) -> Option<Piece> {
        let end = self.stream.end();
        if self.start < end {
            while self.skipped.is_none() && self.holds_envelope() {
                self.give_up_root();
            }
            let is_piece = self.skipped.is_some() || !self.open.is_empty();
            if is_piece || !is_noise(self.stream.slice(self.start, end)) {
                self.emit(end);
            }
            self.start = end;
            self.close_all();
            self.scanner.restart(end);
        }
        self.pieces.pop_front()
    }

    /// The offset up to which the current piece may be read before [`overflow`](Self::overflow) has to decide.
    fn horizon(&self) -> u64 {
        self.skipped.as_ref().map_or(self.start.saturating_add(self.limit), |skipped| skipped.patience)
    }

    /// Skips white space between pieces, which belongs to none.
    fn skip_space(&mut self) {
        if self.open.is_empty() && self.skipped.is_none() && self.scanner.is_in_text_at(self.start) {
            self.start = self.stream.skip_space(self.start);
            self.scanner.restart(self.start);
        }
    }

    fn take(&mut self, tag: Tag) {
        let text = self.stream.slice(tag.start, tag.end);
        let name = name_of(text);
        if tag.is_end {
            self.end_tag(hash(name), tag);
        } else {
            let is_called = |local: &[u8]| name.rsplit(|&byte| byte == b':').next() == Some(local);
            let is_message = is_called(b"message");
            let is_meta = is_called(b"meta");
            let is_envelope = is_message && declares_envelope(text, name);
            let is_empty = text.ends_with(b"/>");
            if let Some(parent) = self.open.back_mut().filter(|parent| parent.children == 0) {
                parent.begins_with_meta = is_meta;
            }
            self.start_tag(hash(name), tag, is_message, is_envelope);
            if is_empty && self.deeper > 0 {
                self.deeper -= 1;
            } else if is_empty {
                self.close(tag.end);
            }
        }
    }

    fn start_tag(&mut self, name: u64, tag: Tag, is_message: bool, is_envelope: bool) {
        if is_envelope {
            self.end_what_lacks_its_end(tag.start);
        }
        if self.open.is_empty() && !self.begin_element(tag.start, is_message) {
            return;
        }
        if self.open.len() >= self.depth.max(1) {
            self.deeper += 1;
            return;
        }
        if let Some(parent) = self.open.back_mut() {
            parent.children += 1;
        }
        let mark = self.given_up + self.nested.len();
        self.open.push_back(Open {
            name,
            start: tag.start,
            children: 0,
            envelope: is_envelope,
            begins_with_meta: false,
            mark,
        });
    }

    /// Ends the elements that can't hold an envelope which begins at `at`.
    fn end_what_lacks_its_end(&mut self, at: u64) {
        if self.open.front().is_some_and(|root| !root.envelope) {
            self.close_all();
            self.emit(at);
        }
        let holds_none = |parent: &Open| parent.envelope && !(parent.begins_with_meta && parent.children == 1);
        while self.deeper == 0 && self.open.back().is_some_and(holds_none) {
            self.close(at);
        }
    }

    /// Begins an element at the top level, at `at`. Returns false if it is part of a skipped piece.
    fn begin_element(&mut self, at: u64, is_message: bool) -> bool {
        if self.skipped.is_some() && !is_message {
            return false;
        }
        if self.skipped.is_some() || has_tag(self.stream.slice(self.start, at)) {
            self.emit(at);
        }
        true
    }

    fn end_tag(&mut self, name: u64, tag: Tag) {
        if self.deeper > 0 {
            self.deeper -= 1;
            return;
        }
        let mut left_an_envelope = false;
        let inside = self.open.iter().rev().take(Self::LOST).position(|open| {
            let fits = open.name == name && (open.envelope || !left_an_envelope);
            left_an_envelope |= open.envelope;
            fits
        });
        let Some(inside) = inside else { return };
        (0..inside).for_each(|_| self.close(tag.start));
        self.close(tag.end);
    }

    /// Ends the innermost element.
    fn close(&mut self, end: u64) {
        let Some(closed) = self.open.pop_back() else { return };
        if self.open.is_empty() {
            self.nested.clear();
            self.emit(end);
        } else if closed.envelope {
            self.nested.truncate(closed.mark - self.given_up);
            if self.skipped.is_none() {
                self.nested.push_back((closed.start, end));
            }
        }
    }

    fn close_all(&mut self) {
        self.open.clear();
        self.nested.clear();
        self.deeper = 0;
    }

    /// Decides about a piece that was read up to the horizon and isn't complete.
    fn overflow(&mut self) {
        let inside = self.open.front().map(|root| root.start).or(self.scanner.markup_start());
        let patience = Self::PATIENCE.saturating_mul(self.limit);
        if let Some(skipped) = &mut self.skipped {
            skipped.patience = skipped.patience.saturating_add(patience);
            self.close_all();
            self.scanner.give_up();
        } else if let Some(start) = inside.filter(|&start| start > self.start) {
            // The bytes before the element or comment are refused alone.
            self.emit(start);
        } else if self.holds_envelope() {
            self.give_up_root();
        } else {
            let at = self.stream.position(self.start);
            self.skipped = Some(Skipped { at, patience: self.start.saturating_add(patience) });
            self.nested.clear();
        }
    }

    /// Returns whether the piece is an envelope with another one inside.
    fn holds_envelope(&self) -> bool {
        self.open.front().is_some_and(|root| root.envelope)
            && (!self.nested.is_empty() || self.open.range(1..).any(|open| open.envelope))
    }

    /// Gives up a root without an end: the bytes before the first envelope inside of it are a piece, and
    /// the envelopes inside are pieces.
    fn give_up_root(&mut self) {
        let inner = (1..self.open.len()).find(|&index| self.open[index].envelope);
        let before = inner.map_or(self.nested.len(), |index| self.open[index].mark - self.given_up);
        for _ in 0..before {
            let Some((start, end)) = self.nested.pop_front() else { break };
            self.given_up += 1;
            self.emit_before(start);
            self.emit(end);
        }
        match inner {
            Some(index) => {
                self.emit_before(self.open[index].start);
                self.open.drain(..index);
            }
            None => self.close_all(),
        }
    }

    /// Ends a piece before an envelope, unless it is text that belongs to the envelope.
    fn emit_before(&mut self, at: u64) {
        if has_tag(self.stream.slice(self.start, at)) {
            self.emit(at);
        }
    }

    /// Ends the piece at `end`, where the next one starts.
    fn emit(&mut self, end: u64) {
        let start = std::mem::replace(&mut self.start, end);
        if let Some(skipped) = self.skipped.take().filter(|_| end - start > self.limit) {
            return self.pieces.push_back(Piece::TooLarge { at: skipped.at, bytes: end - start });
        }
        let bytes = self.stream.slice(start, end);
        let bytes = bytes.trim_ascii_start();
        if !bytes.is_empty() {
            self.pieces.push_back(Piece::Message(Bytes::copy_from_slice(bytes)));
        }
    }
}

#[cfg(test)]
mod tests;
