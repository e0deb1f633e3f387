//! Hosts of listeners: each keeps a listener alive in a shard and runs its handlers.
//!
//! A host gets handlers from the core, in order and never more than the listener has slots; it reports the end of each
//! exactly once, whatever the listener does: panics are caught, and the factory makes the listener again.

mod actor;
mod actor_futures;
mod blocking;
mod detached;
mod feed;
mod raw;
mod supervised;

pub(crate) use actor::ActorHost;
pub(crate) use blocking::{BlockingHost, Routed, Run};
pub(crate) use raw::RawHost;

#[cfg(test)]
mod tests;
