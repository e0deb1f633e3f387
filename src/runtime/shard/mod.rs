//! The state of shards, and the ways to reach them from other threads: commands, messages that leave for clients, the
//! table of running handlers, the cores.
//!
//! Not here: the loop that moves a shard (`pump`).

pub(super) mod breakdown;
pub(super) mod claim;
pub(super) mod command;
pub(super) mod context;
pub(super) mod cores;
pub(super) mod egress;
#[cfg(feature = "gateway")]
pub(super) mod endings;
pub(super) mod events;
pub(super) mod handlers;
pub(super) mod host;
pub(super) mod pending_acks;
pub(super) mod restart;
pub(super) mod shared;
pub(super) mod spin;
pub(super) mod watchdog;
