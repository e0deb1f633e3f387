//! Results of actors' handlers.

use actix::dev::{MessageResponse, OneshotSender};
use actix::fut::{ActorFuture, ActorFutureExt};
use actix::{Actor, AsyncContext, Context, Message, ResponseActFuture, ResponseFuture};

use super::response::Response;

/// A result of an actor's handler: [`Response`], `ResponseFuture<Response>`,
/// `ResponseActFuture<Self, Response>` or `AtomicResponse<Self, Response>`.
#[diagnostic::on_unimplemented(
    message = "a handler of `{A}` can't return `{Self}`",
    label = "no result of a handler",
    note = "let its `type Result` be `Response`, `ResponseFuture<Response>`, `ResponseActFuture<Self, Response>` or `AtomicResponse<Self, Response>`"
)]
pub trait HandlerResult<A: Actor<Context = Context<A>>> {
    /// Converts the result to a reply by kind.
    #[doc(hidden)]
    fn into_reply(self) -> Reply<A>;
}

/// The result of a handler, by kind.
#[doc(hidden)]
#[non_exhaustive]
pub enum Reply<A: Actor<Context = Context<A>>> {
    Now(Response),
    Future(ResponseFuture<Response>),
    Actor(ResponseActFuture<A, Response>),
    Exclusive(ResponseActFuture<A, Response>),
    Foreign(actix::AtomicResponse<A, Response>),
}

impl<A: Actor<Context = Context<A>>> HandlerResult<A> for Response {
    fn into_reply(self) -> Reply<A> {
        Reply::Now(self)
    }
}

impl<A: Actor<Context = Context<A>>> HandlerResult<A> for ResponseFuture<Response> {
    fn into_reply(self) -> Reply<A> {
        Reply::Future(self)
    }
}

impl<A: Actor<Context = Context<A>>> HandlerResult<A> for ResponseActFuture<A, Response> {
    fn into_reply(self) -> Reply<A> {
        Reply::Actor(self)
    }
}

impl<A: Actor<Context = Context<A>>> HandlerResult<A> for AtomicResponse<A, Response> {
    fn into_reply(self) -> Reply<A> {
        Reply::Exclusive(self.0)
    }
}

impl<A: Actor<Context = Context<A>>> HandlerResult<A> for actix::AtomicResponse<A, Response> {
    fn into_reply(self) -> Reply<A> {
        Reply::Foreign(self)
    }
}

impl<A: Actor<Context = Context<A>>, M: Message<Result = Response>> HandlerResult<A> for actix::MessageResult<M> {
    fn into_reply(self) -> Reply<A> {
        Reply::Now(self.0)
    }
}

/// A future that holds its actor exclusively: the actor does nothing else until it ends.
///
/// It can't await answers: the actor handles nothing in the meantime, perhaps not even the message that it waits for.
///
/// Unlike actix's type of that name, which works, too, it can be dropped when its thread is cancelled or times out. A
/// future of actix can't be taken from its actor: then the actor is made again, and its state is lost.
pub struct AtomicResponse<A, T>(ResponseActFuture<A, T>);

impl<A: Actor, T> AtomicResponse<A, T> {
    /// Makes a future exclusive.
    pub fn new(future: ResponseActFuture<A, T>) -> Self {
        Self(future)
    }

    /// Makes a future exclusive.
    pub fn of(future: impl ActorFuture<A, Output = T> + 'static) -> Self {
        Self(Box::pin(future))
    }
}

impl<A, M> MessageResponse<A, M> for AtomicResponse<A, M::Result>
where
    A: Actor<Context = Context<A>>,
    M: Message,
{
    fn handle(self, ctx: &mut Context<A>, tx: Option<OneshotSender<M::Result>>) {
        ctx.wait(self.0.map(|result, _, _| {
            // The receiver may be gone.
            let _ = tx.map(|tx| tx.send(result));
        }));
    }
}
