//! Entries of the log.

use bytes::Bytes;
use systole_core::journal::Step;
use twox_hash::XxHash3_64;

use super::super::batch;
use super::problem::Problem;

/// The most bytes of an entry that is not compressed.
const LARGEST: usize = 1 << 30;

/// The kind of an entry; its number is in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Steps.
    Steps = 0,
    /// The start of an organism: it has not ended in order before its end.
    Start = 1,
    /// A new epoch of partitions, or of an operator who edits.
    Epoch = 2,
    /// The end of an organism in order.
    End = 3,
}

/// An entry as it was read.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) seq: i64,
    pub(super) epoch: i64,
    pub(super) kind: i16,
    pub(super) sum: i64,
    pub(super) body: Vec<u8>,
}

/// The checksum of a body.
pub(super) fn sum(body: &[u8]) -> i64 {
    XxHash3_64::oneshot(body).cast_signed()
}

/// Compresses steps that were encoded.
pub(super) fn compress(steps: &[u8]) -> Vec<u8> {
    lz4_flex::compress_prepend_size(steps)
}

impl Entry {
    /// Returns the kind.
    pub(super) fn kind(&self) -> Result<Kind, Problem> {
        let kinds = [Kind::Steps, Kind::Start, Kind::Epoch, Kind::End];
        kinds.into_iter().find(|kind| *kind as i16 == self.kind).ok_or_else(|| self.damaged())
    }

    /// Decodes the steps.
    pub(super) fn steps(&self) -> Result<Vec<Step>, Problem> {
        let length = self.body.first_chunk().map_or(0, |length| u32::from_le_bytes(*length) as usize);
        if sum(&self.body) != self.sum || length > LARGEST {
            return Err(self.damaged());
        }
        let plain = lz4_flex::decompress_size_prepended(&self.body).map_err(|_| self.damaged())?;
        batch::decode_steps(&Bytes::from(plain)).ok_or_else(|| self.damaged())
    }

    fn damaged(&self) -> Problem {
        Problem::Damaged { what: format!("entry {} of the log", self.seq) }
    }
}
