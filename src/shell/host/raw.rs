//! The host of raw listeners.

use std::rc::Rc;
use std::sync::Arc;

use systole_core::core::catch_panic::discard;
use systole_core::core::{ListenerId, Message, Outcome};

use super::Host;
use super::detached::detach;
use super::lives::Lives;
use crate::shell::desk::Desk;
use crate::shell::handler::HandlerKey;
use crate::shell::raw::{RawListener, RunContext};
use crate::shell::thread::Thread;

/// The host of a [`RawListener`]: its handlers need no actor, so each starts at once.
pub(in crate::shell) struct RawHost {
    desk: Rc<Desk>,
    listener: ListenerId,
    lives: Rc<Lives<Rc<dyn RawListener>>>,
}

impl RawHost {
    pub(in crate::shell) fn new(
        desk: Rc<Desk>,
        listener: ListenerId,
        factory: Arc<dyn Fn() -> Rc<dyn RawListener> + Send + Sync>,
    ) -> Rc<Self> {
        let lives = Lives::new(desk.clone(), listener, factory);
        Rc::new(Self { desk, listener, lives })
    }
}

impl Host for RawHost {
    fn start(self: Rc<Self>, key: HandlerKey, mut message: Message) {
        let Some(instance) = self.lives.instance() else {
            self.desk.finish(key, Outcome::Discarded);
            return discard(message);
        };
        let thread = Thread::of(&mut message, key);
        let context = RunContext {
            thread,
            listener: self.listener,
            blueprint: self.desk.blueprint.clone(),
            catalog: self.desk.catalog.clone(),
        };
        match self.desk.run(self.listener, || instance.run(message, context)) {
            Ok(future) => {
                let lives = self.lives.clone();
                detach(&self.desk, (key, self.listener), future, |outcome| outcome, move || lives.failed());
            }
            Err(_) => {
                self.desk.finish(key, Outcome::Panicked);
                self.lives.failed();
            }
        }
    }

    fn abort(&self, key: HandlerKey) {
        self.desk.finish(key, Outcome::Aborted);
    }

    fn close(&self) {
        self.lives.close();
    }
}
