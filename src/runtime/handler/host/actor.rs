//! The host of actix actors.

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::Duration;

use actix::dev::ContextFut;
use actix::{Actor, AsyncContext, Context};
use systole_core::core::catch_panic::{Panicked, discard};
use systole_core::core::{HandlerOutcome, ListenerId, Message};
use tokio::sync::oneshot;
use tokio::task::AbortHandle;

use super::actor_futures::ActorFutures;
use super::feed::Feed;
use crate::runtime::handler::kind::ActorRoute;
use crate::runtime::handler::raw::LocalBoxFuture;
use crate::runtime::handler::response::Response;
use crate::runtime::shard::context::ShardContext;
use crate::runtime::shard::handlers::HandlerKey;
use crate::runtime::shard::host::Host;
use crate::runtime::shard::restart::LONGEST_REST;

/// The host of an actix actor.
///
/// A task of its own builds the actor, polls its context, drops both after a failure, and builds the actor again. The
/// feed, an actor future inside the context, takes messages from the host's queue: queued messages survive the actor,
/// in order.
pub(crate) struct ActorHost<A: Actor<Context = Context<A>>> {
    pub(super) shard_context: Rc<ShardContext>,
    pub(super) routes: Arc<[ActorRoute<A>]>,
    pub(super) queue: RefCell<VecDeque<Job>>,
    pub(super) futures: RefCell<ActorFutures<A>>,
    pub(super) held: RefCell<Option<Held<A>>>,
    /// The number of the present instance; leftovers of an earlier instance do nothing.
    pub(super) life: Cell<u64>,
    /// The waker of an idle feed.
    pub(super) idle_feed: Cell<Option<Waker>>,
    pub(super) listener: ListenerId,
    factory: Arc<dyn Fn() -> A + Send + Sync>,
    body: RefCell<Option<Body<A>>>,
    end: Cell<Option<End>>,
    waker: Cell<Option<Waker>>,
    rests: Cell<bool>,
    task: OnceCell<AbortHandle>,
}

/// The actor in its context.
type Body<A> = Pin<Box<ContextFut<A, Context<A>>>>;

/// A queued handler.
pub(super) struct Job {
    pub(super) key: HandlerKey,
    pub(super) message: Message,
}

/// The handler that holds the actor exclusively.
pub(super) enum Held<A: Actor> {
    /// A future of systole, which can be dropped.
    Ours { key: HandlerKey, future: actix::ResponseActFuture<A, Response> },
    /// A future of actix, which lives inside the context until its end.
    Foreign { key: HandlerKey, result: oneshot::Receiver<Response> },
}

/// Reason for the end of an instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// The actor panicked or stopped itself; counts as a failure.
    Failed,
    /// The actor held a handler that was aborted.
    Replaced,
}

impl<A: Actor<Context = Context<A>>> ActorHost<A> {
    /// Builds the actor and waits for messages.
    pub(crate) fn spawn(
        shard_context: Rc<ShardContext>,
        listener: ListenerId,
        factory: Arc<dyn Fn() -> A + Send + Sync>,
        routes: Arc<[ActorRoute<A>]>,
    ) -> Rc<Self> {
        let host = Rc::new(Self {
            shard_context,
            routes,
            queue: RefCell::default(),
            futures: RefCell::default(),
            held: RefCell::default(),
            life: Cell::new(0),
            idle_feed: Cell::default(),
            listener,
            factory,
            body: RefCell::default(),
            end: Cell::default(),
            waker: Cell::default(),
            rests: Cell::new(false),
            task: OnceCell::new(),
        });
        let lives: LocalBoxFuture<()> = Box::pin(host.clone().live());
        // The cell is new, so this can't be the second handle.
        let _ = host.task.set(tokio::task::spawn_local(lives).abort_handle());
        host
    }

    /// Runs code of the listener, and catches its panics.
    pub(super) fn run<R>(&self, code: impl FnOnce() -> R) -> Result<R, Panicked> {
        self.shard_context.run(self.listener, code)
    }

    /// Ends the instance after a failure.
    pub(super) fn fail(&self) {
        self.finish_life(End::Failed);
    }

    fn finish_life(&self, end: End) {
        self.life.set(self.life.get() + 1);
        self.end.set(Some(self.end.take().map_or(end, |earlier| if end == End::Failed { end } else { earlier })));
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }

    async fn live(self: Rc<Self>) {
        let mut rested = None;
        loop {
            if self.one_life().await != End::Failed {
                continue;
            }
            let Some(rest) = self.shard_context.failed(self.listener) else { continue };
            // Without a life since the longest rest, those that waited then are given up.
            if rested.replace((self.life.get(), rest)) == Some((self.life.get(), LONGEST_REST)) {
                for job in self.queue.take() {
                    discard(job.message);
                    self.shard_context.give_up(job.key);
                }
            }
            self.set_rests(Some(rest));
            tokio::time::sleep(rest).await;
            self.set_rests(None);
        }
    }

    async fn one_life(self: &Rc<Self>) -> End {
        self.end.set(None);
        let Ok(body) = self.run(|| {
            let actor = (self.factory)();
            let mut context = Context::new();
            context.spawn(Feed { host: self.clone(), life: self.life.get() });
            Box::pin(context.into_future(actor))
        }) else {
            return End::Failed;
        };
        *self.body.borrow_mut() = Some(body);
        let died = poll_fn(|cx| {
            self.waker.set(Some(cx.waker().clone()));
            if self.end.get().is_some() {
                return Poll::Ready(Ok(()));
            }
            // Taken out of its cell while it runs, because the code may use the cell.
            let Some(mut body) = self.body.borrow_mut().take() else { return Poll::Pending };
            let polled = self.run(|| body.as_mut().poll(cx));
            *self.body.borrow_mut() = Some(body);
            match polled {
                Ok(Poll::Pending) if self.end.get().is_none() => Poll::Pending,
                Ok(Poll::Pending | Poll::Ready(())) => Poll::Ready(Ok(())),
                Err(panicked) => Poll::Ready(Err(panicked)),
            }
        })
        .await;
        self.end_instance(died);
        self.end.take().unwrap_or(End::Failed)
    }

    /// Drops the instance, and reports the end of every handler that ended with it.
    fn end_instance(&self, died: Result<(), Panicked>) {
        self.life.set(self.life.get() + 1);
        self.idle_feed.take();
        let body = self.body.borrow_mut().take();
        discard(body);
        match self.held.borrow_mut().take() {
            Some(Held::Foreign { key, .. }) if died.is_err() => {
                self.shard_context.finish(key, HandlerOutcome::Panicked)
            }
            Some(Held::Foreign { key, .. }) => self.shard_context.finish(key, HandlerOutcome::Discarded),
            Some(Held::Ours { key, future }) => {
                self.shard_context.finish(key, HandlerOutcome::Discarded);
                discard(future);
            }
            None => {}
        }
        let futures = self.futures.borrow_mut().take_all();
        for pending in futures {
            self.shard_context.finish(pending.key, HandlerOutcome::Discarded);
            discard(pending);
        }
    }

    /// Lets the listener rest, or ends its rest. The time of queued handlers stands still meanwhile.
    fn set_rests(&self, rest: Option<Duration>) {
        self.rests.set(rest.is_some());
        self.shard_context.announce_rest(self.listener, rest);
        self.queue.borrow().iter().for_each(|job| self.shard_context.stall(job.key, rest.is_some()));
    }
}

impl<A: Actor<Context = Context<A>>> Host for ActorHost<A> {
    fn start(self: Rc<Self>, key: HandlerKey, message: Message) {
        if self.rests.get() {
            self.shard_context.stall(key, true);
        }
        self.queue.borrow_mut().push_back(Job { key, message });
        if let Some(feed) = self.idle_feed.take() {
            feed.wake();
        }
    }

    fn abort(&self, key: HandlerKey) {
        let queued = {
            let mut queue = self.queue.borrow_mut();
            let at = queue.iter().position(|job| job.key == key);
            at.and_then(|at| queue.remove(at))
        };
        let pending = self.futures.borrow_mut().remove(key);
        let held = self.held.borrow_mut().take_if(|held| match held {
            Held::Ours { key: held, .. } | Held::Foreign { key: held, .. } => *held == key,
        });
        self.shard_context.finish(key, HandlerOutcome::Aborted);
        match &held {
            Some(Held::Foreign { .. }) => self.finish_life(End::Replaced),
            // The context waits for it; the next poll finds that no handler holds the actor.
            Some(Held::Ours { .. }) => self.waker.take().into_iter().for_each(Waker::wake),
            None => {}
        }
        discard((queued, pending, held));
    }

    fn close(&self) {
        self.life.set(self.life.get() + 1);
        if let Some(task) = self.task.get() {
            task.abort();
        }
        self.end_instance(Ok(()));
        discard(std::mem::take(&mut *self.queue.borrow_mut()));
    }
}
