//! The host of a listener, as its shard sees it.

use std::rc::Rc;

use systole_core::core::{HandlerOutcome, ListenerId, Message};

use super::context::ShardContext;
use super::handlers::HandlerKey;

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
