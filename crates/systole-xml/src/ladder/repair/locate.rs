//! Lines and columns of raw offsets.

use crate::vocab::Position;

/// The coding of characters in the raw bytes.
#[derive(Debug, Clone, Copy)]
pub(super) enum Coding {
    /// UTF-8, broken or not, behind a byte order mark of `start` bytes.
    Utf8 { start: usize },
    /// UTF-16 behind a byte order mark.
    Utf16 { unit: fn([u8; 2]) -> u16 },
    /// A character for each byte.
    SingleByte,
}

/// Finds the line and column of raw offsets that don't decrease, in one walk over the input.
///
/// A byte order mark takes no column.
#[derive(Debug)]
pub(super) struct Locator<'r> {
    raw: &'r [u8],
    coding: Coding,
    offset: usize,
    at: Position,
}

impl<'r> Locator<'r> {
    pub(super) const fn new(raw: &'r [u8], coding: Coding) -> Self {
        let offset = match coding {
            Coding::Utf8 { start } => start,
            Coding::Utf16 { .. } => 2,
            Coding::SingleByte => 0,
        };
        Self { raw, coding, offset, at: Position { line: 1, column: 1 } }
    }

    /// The place of `offset`, which must not be smaller than that of the call before.
    pub(super) fn position(&mut self, offset: usize) -> Position {
        if offset > self.offset {
            let step = self.step(&self.raw[self.offset..offset]);
            self.offset = offset;
            self.at = match step.line {
                1 => Position { column: self.at.column.saturating_add(step.column - 1), ..self.at },
                _ => Position { line: self.at.line.saturating_add(step.line - 1), column: step.column },
            };
        }
        self.at
    }

    /// The position behind `bytes`, as if they were the start.
    fn step(&self, bytes: &[u8]) -> Position {
        match self.coding {
            // The most frequent step: from one repair to the next on the same line.
            Coding::Utf8 { .. } if bytes.len() <= 32 && bytes.is_ascii() => {
                count(bytes.iter().map(|&byte| (byte == b'\n', true)))
            }
            Coding::Utf8 { .. } => Position::of(bytes, bytes.len()),
            Coding::SingleByte => count(bytes.iter().map(|&byte| (byte == b'\n', true))),
            Coding::Utf16 { unit } => {
                let units = bytes.as_chunks::<2>().0.iter().map(|&pair| unit(pair));
                count(units.map(|unit| (unit == 0x0A, !(0xDC00..=0xDFFF).contains(&unit))))
            }
        }
    }
}

/// Counts lines and columns. Each item tells whether it ends a line, and whether it takes a column.
fn count(items: impl Iterator<Item = (bool, bool)>) -> Position {
    let mut at = Position { line: 1, column: 1 };
    for (ends_line, takes_column) in items {
        if ends_line {
            at = Position { line: at.line.saturating_add(1), column: 1 };
        } else if takes_column {
            at.column = at.column.saturating_add(1);
        }
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    fn positions(raw: &[u8], coding: Coding, offsets: &[usize]) -> Vec<String> {
        let mut locator = Locator::new(raw, coding);
        offsets.iter().map(|&offset| locator.position(offset).to_string()).collect()
    }

    #[test]
    fn positions_add_up_over_steps() {
        let raw = "\u{FEFF}é<\n\nx<y".as_bytes();
        assert_eq!(positions(raw, Coding::Utf8 { start: 3 }, &[0, 5, 6, 9, 9]), ["1:1", "1:2", "1:3", "3:2", "3:2"]);
        assert_eq!(positions(b"\xC3\xA9\n\xC3x", Coding::SingleByte, &[1, 2, 4]), ["1:2", "1:3", "2:2"]);
    }

    #[test]
    fn utf_16_counts_characters() {
        let raw: Vec<u8> = "\u{FEFF}\u{1D11E}Ċ\nab".encode_utf16().flat_map(u16::to_be_bytes).collect();
        assert_eq!(
            positions(&raw, Coding::Utf16 { unit: u16::from_be_bytes }, &[2, 6, 8, 10, 12]),
            ["1:1", "1:2", "1:3", "2:1", "2:2"]
        );
    }
}
