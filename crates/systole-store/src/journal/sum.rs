//! The checksum of a row, because SQLite doesn't notice a flipped bit in a text.
//!
//! Finds damage, not malice: XXH3 with 64 bits over the table's name and all columns of the record, with their types
//! and lengths, XOR the times of the row (`at`, and `ended` once there is one). XOR, so that a statement that ends a
//! row changes its sum without reading the other columns. With each transaction, `meta` gets the wrapping sum of the
//! sums of all open rows, which finds rows that are missing, doubled, or restored from another time.

use rusqlite::types::ValueRef;
use twox_hash::XxHash3_64;

use super::row::Record;

/// Computes checksums.
#[derive(Default)]
pub(super) struct Sums {
    /// A reusable buffer.
    buffer: Vec<u8>,
}

impl Sums {
    /// Computes the sum of a row whose columns are added by `columns`.
    pub(super) fn sum<R: Record, E>(
        &mut self,
        (at, ended): (i64, Option<i64>),
        columns: impl FnOnce(&mut Columns<'_>) -> Result<(), E>,
    ) -> Result<i64, E> {
        self.buffer.clear();
        self.buffer.extend_from_slice(R::TABLE.as_bytes());
        columns(&mut Columns(&mut self.buffer))?;
        let ended = ended.filter(|_| R::ENDED == "ended").unwrap_or(0);
        Ok(XxHash3_64::oneshot(&self.buffer).cast_signed() ^ at ^ ended)
    }
}

/// Encoder for the columns of one row.
pub(super) struct Columns<'a>(&'a mut Vec<u8>);

impl Columns<'_> {
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
}
