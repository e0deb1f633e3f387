//! The checksum of a row, because a flipped bit in a text is none of SQLite's business.
//!
//! It finds damage, not malice: the first 64 bits of BLAKE3 over the table's name and all columns of the row that say
//! something, with their types and lengths. The sums of all rows that are not over are added up (wrapping) in `meta`,
//! with each transaction: a row that is missing, doubled, or from another time is found by that.

use rusqlite::types::ValueRef;

/// Adds up the columns of one row.
pub(super) struct Sum<'a>(&'a mut Vec<u8>);

impl<'a> Sum<'a> {
    /// The sum of a row of that table; `buffer` is only there to be used again.
    pub(super) fn new(table: &str, buffer: &'a mut Vec<u8>) -> Self {
        buffer.clear();
        buffer.extend_from_slice(table.as_bytes());
        Self(buffer)
    }

    pub(super) fn add(&mut self, value: ValueRef<'_>) {
        let (kind, bytes) = match value {
            ValueRef::Null => return self.0.push(0),
            ValueRef::Integer(value) => {
                self.0.push(1);
                return self.0.extend_from_slice(&value.to_le_bytes());
            }
            ValueRef::Real(value) => {
                self.0.push(2);
                return self.0.extend_from_slice(&value.to_le_bytes());
            }
            ValueRef::Text(bytes) => (3, bytes),
            ValueRef::Blob(bytes) => (4, bytes),
        };
        self.0.push(kind);
        self.0.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
        self.0.extend_from_slice(bytes);
    }

    pub(super) fn finish(self) -> i64 {
        let hash = blake3::hash(self.0);
        i64::from_le_bytes(hash.as_bytes()[..8].try_into().expect("a hash has more than 8 bytes"))
    }
}
