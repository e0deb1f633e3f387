//! The buffer of a stream.

use crate::vocab::Position;

/// The part of a stream that is still needed. Offsets count from the start of the stream.
#[derive(Debug)]
pub(super) struct Stream {
    bytes: Vec<u8>,
    /// Number of bytes at the start of `bytes` that are no longer needed.
    stale: usize,
    /// The offset of the first byte that is needed; its line and column.
    first: u64,
    line: u32,
    column: u32,
}

impl Default for Stream {
    fn default() -> Self {
        Self { bytes: Vec::new(), stale: 0, first: 0, line: 1, column: 1 }
    }
}

impl Stream {
    pub(super) fn push(&mut self, chunk: &[u8]) {
        self.bytes.extend_from_slice(chunk);
    }

    /// The offset behind the last byte.
    pub(super) fn end(&self) -> u64 {
        self.first + (self.bytes.len() - self.stale) as u64
    }

    pub(super) fn slice(&self, start: u64, end: u64) -> &[u8] {
        &self.bytes[self.index(start)..self.index(end)]
    }

    /// The first offset from `at` on that is no white space, or the end.
    pub(super) fn skip_space(&self, at: u64) -> u64 {
        let rest = self.slice(at, self.end());
        at + rest.iter().take_while(|byte| byte.is_ascii_whitespace()).count() as u64
    }

    /// The place of an offset. Bytes that aren't UTF-8 may take no column.
    pub(super) fn position(&self, at: u64) -> Position {
        let (line, column) = self.advance(at);
        Position { line, column }
    }

    /// Drops the bytes before an offset.
    pub(super) fn forget(&mut self, before: u64) {
        (self.line, self.column) = self.advance(before);
        self.stale = self.index(before);
        self.first = before;
        // The rest is moved only when it is the smaller part, so the cost is linear.
        if self.stale >= self.bytes.len() / 2 {
            self.bytes.drain(..self.stale);
            self.stale = 0;
        }
    }

    fn advance(&self, to: u64) -> (u32, u32) {
        let passed = self.slice(self.first, to);
        let characters = |bytes: &[u8]| bytes.iter().filter(|&&byte| byte & 0xC0 != 0x80).count();
        match memchr::memrchr(b'\n', passed) {
            Some(last) => {
                let lines = memchr::memchr_iter(b'\n', passed).count();
                (self.line.saturating_add(saturate(lines)), saturate(1 + characters(&passed[last + 1..])))
            }
            None => (self.line, self.column.saturating_add(saturate(characters(passed)))),
        }
    }

    fn index(&self, offset: u64) -> usize {
        self.stale + usize::try_from(offset - self.first).expect("what is needed is in memory")
    }
}

fn saturate(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}
