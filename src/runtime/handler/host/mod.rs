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

use std::rc::Rc;

use crate::runtime::shard::context::ShardContext;
use crate::runtime::shard::handlers::HandlerKey;
use systole_core::core::{HandlerOutcome, ListenerId, Message};

/// A listener in a shard.
pub(crate) trait Host {
    /// Runs a handler.
    fn start(self: Rc<Self>, key: HandlerKey, message: Message);

    /// Drops a handler that is queued here or runs in the listener itself, and reports that it was aborted: at once, or
    /// at its end if it can't be stopped.
    fn abort(&self, key: HandlerKey);

    /// Takes the outcome of a handler that ran on a thread of its own.
    fn ended(self: Rc<Self>, key: HandlerKey, outcome: HandlerOutcome) {
        unreachable!("only blocking listeners run elsewhere: {key:?} came back with {outcome:?}");
    }

    /// Drops the listener and all its handlers.
    fn close(&self);
}

/// Makes the host of a listener in a shard, on the shard's thread.
pub(crate) type HostFactory = Box<dyn Fn(Rc<ShardContext>, ListenerId) -> Rc<dyn Host> + Send + Sync>;

#[cfg(test)]
mod tests;
