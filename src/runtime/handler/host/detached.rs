//! Handlers that run in tasks of their own.

use std::cell::{Cell, OnceCell, RefCell};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use systole_core::core::catch_panic::discard;
use systole_core::core::{HandlerOutcome, ListenerId};
use tokio::task::AbortHandle;

use crate::runtime::handler::raw::LocalBoxFuture;
use crate::runtime::shard::context::ShardContext;
use crate::runtime::shard::handlers::{Cancel, HandlerKey, Place};

/// Runs the future of a handler in a task of its own, apart from the listener's state, so that it survives a restart of
/// the listener.
///
/// A future that is ready at its first poll never becomes a task. `on_panic` is called after the panic was reported.
pub(super) fn detach<R: 'static>(
    shard_context: &Rc<ShardContext>,
    (key, listener): (HandlerKey, ListenerId),
    mut future: LocalBoxFuture<R>,
    outcome: fn(R) -> HandlerOutcome,
    on_panic: impl FnOnce() + 'static,
) {
    match shard_context.run(listener, || future.as_mut().poll(&mut Context::from_waker(Waker::noop()))) {
        Ok(Poll::Ready(result)) => {
            discard(future);
            shard_context.finish(key, outcome(result));
        }
        Ok(Poll::Pending) => {
            let future = RefCell::new(Some(future));
            let detached = Rc::new(Detached {
                future,
                shard_context: shard_context.clone(),
                key,
                listener,
                task: OnceCell::new(),
            });
            shard_context.moved(key, Place::Detached(detached.clone()));
            shard_context.begun(key);
            let running = Running { detached: detached.clone(), outcome, on_panic: Cell::new(Some(on_panic)) };
            // The cell is new, so this can't be the second handle.
            let _ = detached.task.set(tokio::task::spawn_local(running).abort_handle());
        }
        Err(_) => {
            discard(future);
            shard_context.finish(key, HandlerOutcome::Panicked);
            on_panic();
        }
    }
}

struct Detached<R> {
    future: RefCell<Option<LocalBoxFuture<R>>>,
    shard_context: Rc<ShardContext>,
    key: HandlerKey,
    listener: ListenerId,
    task: OnceCell<AbortHandle>,
}

impl<R> Cancel for Detached<R> {
    fn cancel(&self) {
        let future = self.future.borrow_mut().take();
        self.shard_context.finish(self.key, HandlerOutcome::Aborted);
        discard(future);
        if let Some(task) = self.task.get() {
            task.abort();
        }
    }
}

struct Running<R, P> {
    detached: Rc<Detached<R>>,
    outcome: fn(R) -> HandlerOutcome,
    on_panic: Cell<Option<P>>,
}

impl<R, P: FnOnce()> Future for Running<R, P> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let Detached { future, shard_context, key, listener, .. } = &*self.detached;
        shard_context.count_activity();
        // Taken out of its cell while it runs: its code may use the cell.
        let Some(mut running) = future.borrow_mut().take() else { return Poll::Ready(()) };
        let outcome = match shard_context.run(*listener, || running.as_mut().poll(cx)) {
            Ok(Poll::Pending) => {
                *future.borrow_mut() = Some(running);
                shard_context.settle(*key);
                return Poll::Pending;
            }
            Ok(Poll::Ready(result)) => (self.outcome)(result),
            Err(_) => HandlerOutcome::Panicked,
        };
        let panicked = matches!(outcome, HandlerOutcome::Panicked);
        discard(running);
        shard_context.finish(*key, outcome);
        if panicked && let Some(on_panic) = self.on_panic.take() {
            on_panic();
        }
        Poll::Ready(())
    }
}
