//! Instances of listeners that are not actors.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::time::Duration;

use systole_core::core::catch_panic::discard;
use systole_core::core::{ListenerId, Message};

use crate::runtime::shard::context::ShardContext;
use crate::runtime::shard::handlers::HandlerKey;
use crate::runtime::shard::host::Host;
use crate::runtime::shard::restart::LONGEST_REST;

/// The instance of a listener whose handlers run apart from it: its factory makes it when it is needed, and again after
/// a panic.
pub(super) struct Supervised<T> {
    shard_context: Rc<ShardContext>,
    listener: ListenerId,
    factory: Arc<dyn Fn() -> T + Send + Sync>,
    instance: RefCell<Option<T>>,
    rests: Cell<bool>,
    /// The host, which starts handlers that have waited.
    host: Weak<dyn Host>,
    /// The handlers that wait until the listener is back.
    waiting: RefCell<VecDeque<(HandlerKey, Message)>>,
}

impl<T: Clone + 'static> Supervised<T> {
    pub(super) fn new(
        shard_context: Rc<ShardContext>,
        listener: ListenerId,
        factory: Arc<dyn Fn() -> T + Send + Sync>,
        host: Weak<dyn Host>,
    ) -> Rc<Self> {
        let supervised = Self {
            shard_context,
            listener,
            factory,
            instance: RefCell::default(),
            rests: Cell::new(false),
            host,
            waiting: RefCell::default(),
        };
        Rc::new(supervised)
    }

    /// Returns the instance; `None` while the listener rests.
    pub(super) fn instance(self: &Rc<Self>) -> Option<T> {
        while !self.rests.get() {
            if let Some(instance) = &*self.instance.borrow() {
                return Some(instance.clone());
            }
            match self.shard_context.run(self.listener, || (self.factory)()) {
                Ok(instance) => *self.instance.borrow_mut() = Some(instance),
                Err(_) => self.failed(),
            }
        }
        None
    }

    /// Drops the instance after a failure; the listener rests after too many in a row.
    pub(super) fn failed(self: &Rc<Self>) {
        discard(self.instance.take());
        if self.rests.get() {
            return;
        }
        let Some(rest) = self.shard_context.failed(self.listener) else { return };
        self.rests.set(true);
        self.shard_context.announce_rest(self.listener, Some(rest));
        let supervised = Rc::downgrade(self);
        tokio::task::spawn_local(async move {
            tokio::time::sleep(rest).await;
            if let Some(supervised) = supervised.upgrade() {
                supervised.is_back(rest);
            }
        });
    }

    /// Ends the rest: handlers that have waited start. If the factory fails as before, they wait on, and behind the longest
    /// rest they are given up.
    fn is_back(self: &Rc<Self>, rest: Duration) {
        self.rests.set(false);
        self.shard_context.announce_rest(self.listener, None);
        let host = self.host.upgrade().filter(|_| self.instance().is_some());
        if host.is_none() && rest < LONGEST_REST {
            return;
        }
        let waiting = self.waiting.take();
        for (key, message) in waiting {
            self.shard_context.stall(key, false);
            match &host {
                Some(host) => host.clone().start(key, message),
                None => {
                    self.shard_context.give_up(key);
                    discard(message);
                }
            }
        }
    }

    /// Lets a handler wait until the listener is back. Its time stands still meanwhile.
    pub(super) fn wait(&self, key: HandlerKey, message: Message) {
        self.shard_context.stall(key, true);
        self.waiting.borrow_mut().push_back((key, message));
    }

    /// Takes the message of a handler that waits.
    pub(super) fn withdraw(&self, key: HandlerKey) -> Option<Message> {
        let mut waiting = self.waiting.borrow_mut();
        let at = waiting.iter().position(|(other, _)| *other == key)?;
        waiting.remove(at).map(|(_, message)| message)
    }

    /// Drops the instance and the messages that wait for it.
    pub(super) fn close(&self) {
        discard((self.instance.take(), self.waiting.take()));
    }
}
