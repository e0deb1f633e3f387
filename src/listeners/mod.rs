//! Listeners that the library brings: programs with one process for each message ([`command`]) or with processes that
//! stay ([`worker`]), people at the terminal ([`human`]), and [echoes](echo).
//!
//! All are [raw listeners](crate::runtime::RawListener), registered as any other: the runtime knows none of them.

pub mod command;
pub mod echo;
pub(crate) mod fleet;
pub mod human;
pub mod json;
pub mod mcp;
pub mod organism;
pub mod worker;
