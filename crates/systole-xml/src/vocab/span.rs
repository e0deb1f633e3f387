//! Places in an input: ranges of bytes, and lines with columns.

use std::fmt;

/// A range of bytes in an input: `start` inclusive, `end` exclusive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Span {
    /// Offset of the first byte.
    pub start: usize,
    /// Offset behind the last byte.
    pub end: usize,
}

/// A place in a text, as editors count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// Line, from 1. Lines end at a line feed.
    pub line: u32,
    /// Column in characters, from 1. Bytes that are no UTF-8 count as one character each.
    pub column: u32,
}

impl Position {
    /// The start of a text.
    pub const START: Self = Self { line: 1, column: 1 };

    /// The place of the byte at `offset` of `input`; offsets past the end mean the end.
    pub fn of(input: &[u8], offset: usize) -> Self {
        let before = &input[..offset.min(input.len())];
        let line = memchr::memchr_iter(b'\n', before).count();
        let start = memchr::memrchr(b'\n', before).map_or(0, |at| at + 1);
        let column: usize = before[start..].utf8_chunks().map(|c| c.valid().chars().count() + c.invalid().len()).sum();
        Self { line: saturate(line + 1), column: saturate(column + 1) }
    }
}

fn saturate(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_count_characters() {
        let text = "aé\nß<x>".as_bytes();
        assert_eq!(Position::of(text, 0), Position { line: 1, column: 1 });
        assert_eq!(Position::of(text, 6), Position { line: 2, column: 2 });
        assert_eq!(Position::of(b"\xff\xfe<", 2), Position { line: 1, column: 3 });
        assert_eq!(Position::of(b"a", 99), Position { line: 1, column: 2 });
    }
}
