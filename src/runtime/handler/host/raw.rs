//! The host of raw listeners.

use std::rc::{Rc, Weak};
use std::sync::Arc;

use systole_core::core::catch_panic::discard;
use systole_core::core::{HandlerOutcome, ListenerId, Message, OrganismVersion};

use super::detached::detach;
use super::supervised::Supervised;
use crate::runtime::handler::raw::{RawListener, RunContext, StartContext};
use crate::runtime::handler::thread::Thread;
use crate::runtime::shard::context::ShardContext;
use crate::runtime::shard::handlers::HandlerKey;
use crate::runtime::shard::host::Host;

/// The host of a [`RawListener`]: its handlers need no actor, so each starts at once.
pub(crate) struct RawHost {
    shard_context: Rc<ShardContext>,
    listener: ListenerId,
    /// The version that the listener belongs to.
    version: OrganismVersion,
    supervised: Rc<Supervised<Rc<dyn RawListener>>>,
}

impl RawHost {
    pub(crate) fn new(
        shard_context: Rc<ShardContext>,
        listener: ListenerId,
        factory: Arc<dyn Fn() -> Rc<dyn RawListener> + Send + Sync>,
    ) -> Rc<Self> {
        Rc::new_cyclic(|host: &Weak<Self>| {
            let supervised = Supervised::new(shard_context.clone(), listener, factory, host.clone());
            let version = shard_context.version_of(listener);
            Self { shard_context, listener, version, supervised }
        })
    }

    /// Makes the listener now, not with its first message, and lets it prepare.
    pub(crate) fn prepare(&self) {
        let Some(instance) = self.supervised.instance() else { return };
        let context = StartContext {
            clock: self.shard_context.clock.clone(),
            listener: self.listener,
            blueprint: self.version.blueprint.clone(),
            catalog: self.version.catalog.clone(),
            rests: self.shard_context.links.rests.clone(),
        };
        if self.shard_context.run(self.listener, || instance.prepare(context)).is_err() {
            self.supervised.failed();
        }
    }
}

impl Host for RawHost {
    fn start(self: Rc<Self>, key: HandlerKey, mut message: Message) {
        let Some(instance) = self.supervised.instance() else { return self.supervised.wait(key, message) };
        let thread = Thread::of(&mut message, key);
        let context = RunContext {
            thread,
            listener: self.listener,
            blueprint: self.version.blueprint.clone(),
            catalog: self.version.catalog.clone(),
        };
        match self.shard_context.run(self.listener, || instance.run(message, context)) {
            Ok(future) => {
                let supervised = self.supervised.clone();
                detach(
                    &self.shard_context,
                    (key, self.listener),
                    future,
                    |outcome| outcome,
                    move || supervised.failed(),
                );
            }
            Err(_) => {
                self.shard_context.finish(key, HandlerOutcome::Panicked);
                self.supervised.failed();
            }
        }
    }

    fn abort(&self, key: HandlerKey) {
        let message = self.supervised.withdraw(key);
        self.shard_context.finish(key, HandlerOutcome::Aborted);
        discard(message);
    }

    fn close(&self) {
        self.supervised.close();
    }
}
