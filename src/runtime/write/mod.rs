//! Writing: the journal as the shards use it, and as the parts of an organism beside the cores use it.

pub(super) mod appender;
pub(super) mod handle;
