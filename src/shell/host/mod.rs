//! Hosts: what keeps a listener alive in a shard and runs its handlers.
//!
//! A host gets handlers from the core, in order and never more than the listener has slots; it
//! reports how each ended exactly once, whatever the listener does: panics are contained, and the
//! listener is made anew by its factory.

mod actor;
mod acts;
mod blocking;
mod detached;
mod feed;
mod lives;
mod raw;
pub(super) mod restart;

pub(super) use actor::ActorHost;
pub(super) use blocking::{BlockingHost, Routed, Run};
pub(super) use raw::RawHost;

use std::rc::Rc;

use super::desk::Desk;
use super::handler::HandlerKey;
use systole_core::core::{ListenerId, Message, Outcome};

/// One listener in one shard.
pub(super) trait Host {
    /// Runs a handler.
    fn start(self: Rc<Self>, key: HandlerKey, message: Message);

    /// Drops a handler that is queued here or runs in the listener itself, and reports that it
    /// was aborted: at once, unless nothing can stop it before it ends.
    fn abort(&self, key: HandlerKey);

    /// Takes what a handler that ran on a thread of its own came to.
    fn ended(self: Rc<Self>, key: HandlerKey, outcome: Outcome) {
        unreachable!("only blocking listeners run elsewhere: {key:?} came back with {outcome:?}");
    }

    /// Drops the listener and everything that runs in it.
    fn close(&self);
}

/// Makes the host of a listener in a shard, on the shard's thread.
pub(super) type HostFactory = Box<dyn Fn(Rc<Desk>, ListenerId) -> Rc<dyn Host> + Send + Sync>;

#[cfg(test)]
mod tests;
