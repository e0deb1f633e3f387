//! Handlers: the code of an agent for its messages.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::task::Poll;

use super::BoxFuture;
use super::inbound::Inbound;

/// The code of an agent for its messages. Closures from [`Inbound`] to a future of a text or of [`Handled`] are
/// handlers. A panic is a failure of that message alone.
pub trait Handler: Send + Sync {
    /// Handles a message. It may come again after a crash, under the same id.
    ///
    /// # Errors
    /// [`Failed`]: the caller gets an `agent-error` with its text.
    fn handle<'a>(&'a self, message: Inbound) -> BoxFuture<'a, Result<Handled, Failed>>;
}

impl<F, Fut, T> Handler for F
where
    F: Fn(Inbound) -> Fut + Send + Sync,
    Fut: Future<Output = Result<T, Failed>> + Send + 'static,
    T: Into<Handled>,
{
    fn handle<'a>(&'a self, message: Inbound) -> BoxFuture<'a, Result<Handled, Failed>> {
        let handling = self(message);
        Box::pin(async move { handling.await.map(Into::into) })
    }
}

/// Result of handling a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Handled {
    /// The reply: one payload or several, dirty or not. A blank text is none.
    Reply(String),
    /// The message was taken, and is answered later by its program: with [`Mailbox::reply`](super::Mailbox::reply) or
    /// [`fail`](super::Mailbox::fail). Until then it has no time limit but its caller's deadline, and no other worker
    /// gets it.
    Later,
}

impl From<String> for Handled {
    fn from(reply: String) -> Self {
        Self::Reply(reply)
    }
}

/// Reason why a message could not be handled. Every error becomes one with `?`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failed {
    /// Text for the caller.
    pub why: String,
    /// True if the same may succeed later. A lease gives the message back then; everything else fails it.
    pub later: bool,
}

impl Failed {
    /// Makes a final failure.
    pub fn new(why: impl Into<String>) -> Self {
        Self { why: why.into(), later: false }
    }

    /// Makes a failure for now: the message may be handled again.
    pub fn for_now(why: impl Into<String>) -> Self {
        Self { why: why.into(), later: true }
    }
}

impl<E: std::error::Error> From<E> for Failed {
    fn from(error: E) -> Self {
        Self::new(error.to_string())
    }
}

/// Handles a message; a panic is a failure like any other.
pub(super) async fn handle(handler: &dyn Handler, message: Inbound) -> Result<Handled, Failed> {
    let id = message.id;
    let handled = catch_panic(async move { handler.handle(message).await }).await;
    handled.unwrap_or_else(|panic| {
        tracing::error!(%id, %panic, "a handler panicked");
        Err(Failed::new("the agent panicked"))
    })
}

/// Awaits a future; an error has the text of its panic.
pub(super) async fn catch_panic<T>(future: impl Future<Output = T>) -> Result<T, String> {
    let mut future = pin!(future);
    // The future is not polled again after a panic.
    let polled =
        std::future::poll_fn(|context| match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(context))) {
            Ok(Poll::Pending) => Poll::Pending,
            Ok(Poll::Ready(done)) => Poll::Ready(Ok(done)),
            Err(panic) => Poll::Ready(Err(words(&*panic))),
        });
    polled.await
}

fn words(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default()
}
