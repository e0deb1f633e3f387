//! Keys of the core's tables: threads, invocations, fan-outs, and their hash.

use std::hash::Hasher;

use slotmap::{Key, new_key_type};

new_key_type! {
    /// A thread of one core, as the core and its runtime name it. Never reused.
    pub struct ThreadKey;

    /// A handler that runs or is parked, as the core and its runtime name it. Never reused.
    pub struct InvocationId;

    /// The calls of one response, or of one group of awaited calls.
    pub(super) struct FanOutKey;
}

/// Hashes keys that the core itself made: clients can't choose them to collide, so that a
/// multiplication for each word is enough.
#[derive(Debug, Default)]
pub(super) struct KeyHasher(u64);

impl Hasher for KeyHasher {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    fn write_u16(&mut self, word: u16) {
        self.write_u64(u64::from(word));
    }

    fn write_u32(&mut self, word: u32) {
        self.write_u64(u64::from(word));
    }

    fn write_u64(&mut self, word: u64) {
        // 2^64 divided by the golden ratio (Knuth, The Art of Computer Programming, section 6.4).
        const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(GOLDEN);
    }

    fn finish(&self) -> u64 {
        // A table takes its places from the low bits, which a multiplication mixes least.
        self.0 ^ (self.0 >> 32)
    }
}

impl InvocationId {
    /// The slot of the handler in its core: dense, so that a table can be indexed by it.
    pub fn index(self) -> usize {
        // The low half of the key is its slot, the high half its generation.
        (self.data().as_ffi() & u64::from(u32::MAX)) as usize
    }

    /// An id that a test made up.
    #[doc(hidden)]
    pub fn made_up(index: u32) -> Self {
        Self::from(slotmap::KeyData::from_ffi(1 << 32 | u64::from(index)))
    }
}
