//! Keys of the core's tables: threads, invocations, fan-outs.

use slotmap::{Key, new_key_type};

new_key_type! {
    /// A thread of one core, as the core and its runtime name it. Never reused.
    pub struct ThreadKey;

    /// A handler that runs or is parked, as the core and its runtime name it. Never reused.
    pub struct InvocationId;

    /// The calls of one response, or of one group of awaited calls.
    pub(super) struct FanOutKey;
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
