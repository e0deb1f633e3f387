//! Instances of listeners that are not actors.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use systole_core::core::ListenerId;
use systole_core::core::catch_panic::discard;

use super::restart::{COOL_DOWN, Restarts, Verdict};
use crate::runtime::shard::context::ShardContext;

/// The instance of a listener whose handlers run apart from it: its factory makes it when it is needed, and again after
/// a panic.
pub(super) struct Supervised<T> {
    shard_context: Rc<ShardContext>,
    listener: ListenerId,
    factory: Arc<dyn Fn() -> T + Send + Sync>,
    instance: RefCell<Option<T>>,
    restarts: RefCell<Restarts>,
    down: Cell<bool>,
}

impl<T: Clone + 'static> Supervised<T> {
    pub(super) fn new(
        shard_context: Rc<ShardContext>,
        listener: ListenerId,
        factory: Arc<dyn Fn() -> T + Send + Sync>,
    ) -> Rc<Self> {
        let supervised = Self {
            shard_context,
            listener,
            factory,
            instance: RefCell::default(),
            restarts: RefCell::default(),
            down: Cell::new(false),
        };
        Rc::new(supervised)
    }

    /// Returns the instance; `None` while the listener is down.
    pub(super) fn instance(self: &Rc<Self>) -> Option<T> {
        while !self.down.get() {
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

    /// Drops the instance after a failure; too many failures take the listener down.
    pub(super) fn failed(self: &Rc<Self>) {
        self.close();
        if !self.down.get() && self.restarts.borrow_mut().failed(self.shard_context.clock.now()) == Verdict::Down {
            self.down.set(true);
            self.shard_context.announce_down(self.listener);
            let supervised = Rc::downgrade(self);
            tokio::task::spawn_local(async move {
                tokio::time::sleep(COOL_DOWN).await;
                if let Some(supervised) = supervised.upgrade() {
                    supervised.down.set(false);
                    supervised.shard_context.announce_up(supervised.listener);
                }
            });
        }
    }

    /// Drops the instance.
    pub(super) fn close(&self) {
        let instance = self.instance.borrow_mut().take();
        discard(instance);
    }
}
