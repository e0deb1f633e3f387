//! Listeners that are not actors.

use std::fmt;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;

use systole_core::core::{Blueprint, Contract, HandlerOutcome, ListenerId, Message};
use systole_core::vocab::Limits;
use systole_xml::schema::Catalog;

use super::thread::Thread;
use crate::runtime::shard::restart::Rests;
use systole_store::clock::Clock;

/// A future that may move between threads.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A future that stays on the thread of its shard.
pub type LocalBoxFuture<T> = Pin<Box<dyn Future<Output = T>>>;

/// A listener that is no actor: it turns one message into one outcome.
///
/// Commands, people and echoes are such listeners. Messages run concurrently, up to the `concurrency` of the contract;
/// the core enforces `timeout` and deadlines from outside.
///
/// # Panics
/// A panic in `run` or in its future fails the thread of that message; the factory then makes the listener again, and
/// running futures keep the old one alive until they end.
///
/// # Cancel safety
/// The pump drops the future when the message's thread is cancelled or times out: a `Drop` must undo everything that
/// may not outlive it (a process, a question on a terminal).
pub trait RawListener: 'static {
    /// Runs the handler of one message: [`HandlerOutcome::Wrote`] for raw bytes (0..n payloads, dirty or
    /// not), [`HandlerOutcome::Emitted`] for judged ones, [`HandlerOutcome::Failed`] for an `agent-error`.
    fn run(self: Rc<Self>, message: Message, context: RunContext) -> LocalBoxFuture<HandlerOutcome>;

    /// Prepares for messages at the start of the organism, for listeners that are
    /// [made then](crate::runtime::OrganismBuilder::raw_listener_at_start). Does nothing unless it is overridden.
    fn prepare(self: Rc<Self>, _context: StartContext) {}
}

/// The environment of a [`RawListener`] at the start of the organism.
pub struct StartContext {
    pub(crate) clock: Clock,
    pub(crate) listener: ListenerId,
    pub(crate) blueprint: Arc<Blueprint>,
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) rests: Rests,
}

impl StartContext {
    /// Returns the rests of listeners, as operators see them.
    pub(crate) fn rests(&self) -> Rests {
        self.rests.clone()
    }

    /// Returns the listener's own contract.
    pub fn contract(&self) -> &Contract {
        &self.blueprint[self.listener]
    }

    /// Returns every payload schema of the organism, with examples and prompts.
    pub fn catalog(&self) -> &Arc<Catalog> {
        &self.catalog
    }

    /// Returns the limits of the organism.
    pub fn limits(&self) -> &Limits {
        &self.blueprint.limits
    }

    pub(crate) fn clock(&self) -> &Clock {
        &self.clock
    }
}

impl fmt::Debug for StartContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StartContext").finish_non_exhaustive()
    }
}

/// The environment of a [`RawListener`]'s handler, and its thread to call from.
#[derive(Clone)]
pub struct RunContext {
    pub(crate) thread: Thread,
    pub(crate) listener: ListenerId,
    pub(crate) blueprint: Arc<Blueprint>,
    pub(crate) catalog: Arc<Catalog>,
}

impl RunContext {
    /// Returns the thread of the message: `thread().call(..)` awaits answers, as in an actor.
    pub fn thread(&self) -> &Thread {
        &self.thread
    }

    /// Returns the listener's own contract.
    pub fn contract(&self) -> &Contract {
        &self.blueprint[self.listener]
    }

    /// The blueprint of the organism, and the listener's own place in it.
    #[cfg(feature = "gateway")]
    pub(crate) fn place(&self) -> (&Blueprint, ListenerId) {
        (&self.blueprint, self.listener)
    }

    /// Returns the rests of listeners, as operators see them.
    pub(crate) fn rests(&self) -> Rests {
        self.thread.rests()
    }

    /// Notes that nobody can answer the question of this handler here: it waits, but not as work of the organism.
    pub(crate) fn unattended(&self) {
        self.thread.unattended(self.listener);
    }

    /// Waits until the organism ends without a journal: then nothing keeps the message of this handler.
    pub(crate) async fn ends_unkept(&self) {
        self.thread.ends_unkept().await;
    }

    /// Returns the limits of the organism.
    pub fn limits(&self) -> &Limits {
        &self.blueprint.limits
    }

    /// Returns every payload schema of the organism, with examples and prompts.
    pub fn catalog(&self) -> &Arc<Catalog> {
        &self.catalog
    }
}

impl fmt::Debug for RunContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunContext").field("listener", &self.contract().name).finish_non_exhaustive()
    }
}
