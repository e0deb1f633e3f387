//! The writer of the canonical form.

use std::ops::Range;

use bytestring::ByteString;

use super::escape::push_value;

/// Collects canonical output out of ranges of the source and literal text.
///
/// Neighbouring ranges are joined and copied at once; if the output is one range of the source,
/// nothing is copied at all.
#[derive(Debug)]
pub(super) struct Writer<'a> {
    src: &'a str,
    /// Empty at the start.
    out: &'a mut String,
    pending: Range<usize>,
    /// The length of the output, pieces that were taken included, less the end of `pending`; modulo 2^64.
    shift: usize,
    reserve: usize,
}

/// A piece of finished output.
#[derive(Debug)]
pub(super) enum Piece {
    /// A range of the source, which is canonical.
    Source(Range<usize>),
    /// Text that had to be written.
    Written(ByteString),
}

/// Pieces of up to that many bytes are copied out of the buffer, which is kept; longer ones take it along.
pub(super) const COPIED: usize = 64 << 10;

impl<'a> Writer<'a> {
    /// A writer; `reserve` is the expected length of a piece that has to be written.
    pub(super) fn new(src: &'a str, out: &'a mut String, reserve: usize) -> Self {
        Self { src, out, pending: 0..0, shift: 0, reserve }
    }

    /// Appends a range of the source.
    #[inline]
    pub(super) fn source(&mut self, start: usize, end: usize) {
        self.resume(start);
        self.pending.end = end;
    }

    /// Appends the source up to `end`, which follows what was appended last.
    #[inline]
    pub(super) fn keep(&mut self, end: usize) {
        debug_assert!(self.pending.end <= end, "the source is appended in order");
        self.pending.end = end;
    }

    /// Continues at a place of the source: what stands before it is left out.
    #[inline]
    pub(super) fn resume(&mut self, at: usize) {
        if self.pending.end != at {
            self.jump(at);
        }
    }

    #[inline(never)]
    fn jump(&mut self, at: usize) {
        self.flush();
        self.shift = self.len().wrapping_sub(at);
        self.pending = at..at;
    }

    /// Appends text that doesn't stand in the source.
    #[inline]
    pub(super) fn literal(&mut self, text: &str) {
        self.flush();
        self.out.push_str(text);
        self.shift = self.shift.wrapping_add(text.len());
    }

    /// Appends a decoded attribute value.
    pub(super) fn escaped(&mut self, value: &str) {
        self.flush();
        let before = self.out.len();
        push_value(self.out, value);
        self.shift = self.shift.wrapping_add(self.out.len() - before);
    }

    /// Bytes of output so far, including all pieces that were taken.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.shift.wrapping_add(self.pending.end)
    }

    /// Ends a piece and starts the next one.
    pub(super) fn take(&mut self) -> Piece {
        let length = self.len();
        let piece = if self.out.is_empty() {
            Piece::Source(self.pending.clone())
        } else {
            self.flush();
            Piece::Written(self.take_written())
        };
        (self.pending, self.shift) = (0..0, length);
        piece
    }

    fn take_written(&mut self) -> ByteString {
        if self.out.len() > COPIED {
            return std::mem::take(self.out).into();
        }
        let written = ByteString::from(self.out.as_str());
        self.out.clear();
        written
    }

    #[inline]
    fn flush(&mut self) {
        if !self.pending.is_empty() {
            self.copy_pending();
        }
    }

    #[inline(never)]
    fn copy_pending(&mut self) {
        if self.out.is_empty() {
            self.out.reserve(self.reserve);
        }
        self.out.push_str(&self.src[self.pending.clone()]);
        self.pending.start = self.pending.end;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_range_is_shared_and_anything_else_is_written() {
        let mut out = String::new();
        let mut writer = Writer::new("abcdef", &mut out, 0);
        writer.source(1, 3);
        writer.source(3, 4);
        assert!(matches!(writer.take(), Piece::Source(range) if range == (1..4)));
        writer.source(0, 2);
        writer.literal("-");
        writer.source(2, 3);
        writer.source(5, 6);
        assert_eq!(writer.len(), 8);
        assert!(matches!(writer.take(), Piece::Written(text) if *text == *"ab-cf"));
        assert_eq!(writer.len(), 8);
    }
}
