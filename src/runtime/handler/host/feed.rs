//! The feed of an actor: it takes messages from the host and runs their handlers.

use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context as TaskContext, Poll, Waker};

use actix::dev::MessageResponse;
use actix::fut::ActorFuture;
use actix::{Actor, AsyncContext, Context, ResponseActFuture};
use systole_core::core::catch_panic::{Panicked, discard};
use systole_core::core::{Failure, HandlerOutcome};
use systole_core::vocab::Fault;
use tokio::sync::oneshot;

use super::actor::{ActorHost, Held, Job};
use super::actor_futures::PendingFuture;
use super::detached::detach;
use crate::runtime::handler::delivery::{Delivery, DeliveryMeta};
use crate::runtime::handler::response::{Response, outcome_of};
use crate::runtime::handler::result::Reply;
use crate::runtime::shard::handlers::HandlerKey;

/// The most handlers that run before other work on the thread.
const BUDGET: usize = 64;

/// The replacement of a mailbox in an actor's context: takes messages from the host's queue one by one and runs their
/// handlers.
pub(super) struct Feed<A: Actor<Context = Context<A>>> {
    pub(super) host: Rc<ActorHost<A>>,
    pub(super) life: u64,
}

impl<A: Actor<Context = Context<A>>> ActorFuture<A> for Feed<A> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, actor: &mut A, ctx: &mut Context<A>, cx: &mut TaskContext<'_>) -> Poll<()> {
        let host = &self.host;
        host.shard_context.count_activity();
        self.take_foreign_result();
        for _ in 0..BUDGET {
            if host.life.get() != self.life {
                return Poll::Ready(());
            }
            // A handler holds the actor exclusively, or has stopped it.
            if ctx.waiting() {
                return Poll::Pending;
            }
            let pending = host.futures.borrow_mut().next_ready();
            if let Some(pending) = pending {
                self.resume(pending, actor, ctx);
                continue;
            }
            let job = host.queue.borrow_mut().pop_front();
            match job {
                Some(job) => self.start(job, actor, ctx),
                None if host.futures.borrow().sleep(cx.waker()) => {
                    host.idle_feed.set(Some(cx.waker().clone()));
                    return Poll::Pending;
                }
                None => {}
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

impl<A: Actor<Context = Context<A>>> Feed<A> {
    fn start(&self, Job { key, message }: Job, actor: &mut A, ctx: &mut Context<A>) {
        let (meta, value) = DeliveryMeta::open(message, key);
        let payload = (*value).type_id();
        let Some(route) = self.host.routes.iter().find(|route| route.payload == payload) else {
            let failure = Failure::new("the listener has no handler for this payload");
            return self.host.shard_context.finish(key, HandlerOutcome::Failed(failure));
        };
        match self.host.run(|| (route.handle)(actor, value, meta, ctx)) {
            Ok(Reply::Now(response)) => self.host.shard_context.finish(key, outcome_of(response)),
            Ok(Reply::Future(future)) => {
                let host = self.host.clone();
                detach(&self.host.shard_context, (key, self.host.listener), future, outcome_of, move || host.fail());
            }
            Ok(Reply::Actor(future)) => self.start_act(key, future, actor, ctx),
            Ok(Reply::Exclusive(future)) => self.start_exclusive(key, future, actor, ctx),
            Ok(Reply::Foreign(response)) => {
                self.host.shard_context.forbid_parking(key);
                let (tx, result) = oneshot::channel();
                // The message type doesn't matter, only the result does.
                MessageResponse::<A, Delivery<Fault>>::handle(response, ctx, Some(tx));
                *self.host.held.borrow_mut() = Some(Held::Foreign { key, result });
                self.host.shard_context.begun(key);
            }
            Err(panicked) => self.ended(key, Err(panicked)),
        }
    }

    fn start_act(
        &self,
        key: HandlerKey,
        mut future: ResponseActFuture<A, Response>,
        actor: &mut A,
        ctx: &mut Context<A>,
    ) {
        let mut cx = TaskContext::from_waker(Waker::noop());
        match self.host.run(|| future.as_mut().poll(actor, ctx, &mut cx)) {
            Ok(Poll::Pending) => {
                self.host.futures.borrow_mut().insert(key, future);
                self.host.shard_context.begun(key);
            }
            Ok(Poll::Ready(response)) => {
                self.ended(key, Ok(response));
                discard(future);
            }
            Err(panicked) => {
                self.ended(key, Err(panicked));
                discard(future);
            }
        }
    }

    fn resume(&self, mut pending: PendingFuture<A>, actor: &mut A, ctx: &mut Context<A>) {
        let waker = Waker::from(pending.waker.clone());
        match self.host.run(|| pending.future.as_mut().poll(actor, ctx, &mut TaskContext::from_waker(&waker))) {
            Ok(Poll::Pending) => {
                let key = pending.key;
                self.host.futures.borrow_mut().put_back(pending);
                self.host.shard_context.settle(key);
            }
            ended => {
                self.host.futures.borrow_mut().forget(&pending);
                self.ended(
                    pending.key,
                    ended.map(|poll| match poll {
                        Poll::Ready(response) => response,
                        Poll::Pending => unreachable!("matched above"),
                    }),
                );
                discard(pending);
            }
        }
    }

    fn start_exclusive(
        &self,
        key: HandlerKey,
        mut future: ResponseActFuture<A, Response>,
        actor: &mut A,
        ctx: &mut Context<A>,
    ) {
        self.host.shard_context.forbid_parking(key);
        let mut cx = TaskContext::from_waker(Waker::noop());
        match self.host.run(|| future.as_mut().poll(actor, ctx, &mut cx)) {
            Ok(Poll::Pending) => {
                *self.host.held.borrow_mut() = Some(Held::Ours { key, future });
                self.host.shard_context.begun(key);
                ctx.wait(Exclusive { host: self.host.clone(), life: self.life });
            }
            Ok(Poll::Ready(response)) => {
                self.ended(key, Ok(response));
                discard(future);
            }
            Err(panicked) => {
                self.ended(key, Err(panicked));
                discard(future);
            }
        }
    }

    /// Takes the result of an exclusive future of actix; it has ended, since the feed is polled only when nothing holds
    /// the actor.
    fn take_foreign_result(&self) {
        let held = self.host.held.borrow_mut().take_if(|held| matches!(held, Held::Foreign { .. }));
        if let Some(Held::Foreign { key, mut result }) = held {
            let outcome = result.try_recv().map_or(HandlerOutcome::Discarded, outcome_of);
            self.host.shard_context.finish(key, outcome);
        }
    }

    fn ended(&self, key: HandlerKey, result: Result<Response, Panicked>) {
        ended(&self.host, key, result);
    }
}

fn ended<A: Actor<Context = Context<A>>>(host: &ActorHost<A>, key: HandlerKey, result: Result<Response, Panicked>) {
    match result {
        Ok(response) => host.shard_context.finish(key, outcome_of(response)),
        Err(Panicked) => {
            host.shard_context.finish(key, HandlerOutcome::Panicked);
            host.fail();
        }
    }
}

/// The future that the context waits for while an exclusive handler of systole holds the actor.
struct Exclusive<A: Actor<Context = Context<A>>> {
    host: Rc<ActorHost<A>>,
    life: u64,
}

impl<A: Actor<Context = Context<A>>> ActorFuture<A> for Exclusive<A> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, actor: &mut A, ctx: &mut Context<A>, cx: &mut TaskContext<'_>) -> Poll<()> {
        if self.host.life.get() != self.life {
            return Poll::Ready(());
        }
        let held = self.host.held.borrow_mut().take();
        let Some(Held::Ours { key, mut future }) = held else { return Poll::Ready(()) };
        match self.host.run(|| future.as_mut().poll(actor, ctx, cx)) {
            Ok(Poll::Pending) => {
                *self.host.held.borrow_mut() = Some(Held::Ours { key, future });
                Poll::Pending
            }
            Ok(Poll::Ready(response)) => {
                ended(&self.host, key, Ok(response));
                discard(future);
                Poll::Ready(())
            }
            Err(panicked) => {
                ended(&self.host, key, Err(panicked));
                discard(future);
                Poll::Ready(())
            }
        }
    }
}
