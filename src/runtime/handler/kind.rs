//! Kinds of listeners, and the payloads that they have handlers for.

use std::any::TypeId;

use actix::{Actor, Context, Handler};
use systole_xml::schema::Decoded;

use super::delivery::{Delivery, DeliveryMeta};
use super::response::Response;
use super::result::{HandlerResult, Reply};

/// A listener of kind `K` that has a handler for `T`.
///
/// Implemented for every actor with a `Handler<Delivery<T>>`, and for every
/// [`BlockingHandler<T>`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no handler for `{T}`",
    label = "`{Self}` does not take `{T}`",
    note = "what a contract accepts or returns needs a handler: write `impl Handler<Delivery<{T}>> for {Self}` with `type Result = Response` (or `ResponseFuture<Response>`, `ResponseActFuture<Self, Response>`, `AtomicResponse<Self, Response>`); for a blocking listener write `impl BlockingHandler<{T}> for {Self}`"
)]
pub trait Accepts<T, K: HandlerKind<Self>>: Sized {
    /// The route of `T` into the listener.
    #[doc(hidden)]
    fn route() -> K::Route;
}

/// A kind of listener: [`AsActor`] or [`AsBlocking`].
pub trait HandlerKind<L> {
    /// Route of a payload into a listener.
    #[doc(hidden)]
    type Route;
}

/// Listeners that are actix actors.
#[derive(Debug, Clone, Copy)]
pub struct AsActor;

/// Listeners that run on a pool of threads of their own.
#[derive(Debug, Clone, Copy)]
pub struct AsBlocking;

impl<A: Actor<Context = Context<A>>> HandlerKind<A> for AsActor {
    type Route = ActorRoute<A>;
}

impl<L> HandlerKind<L> for AsBlocking {
    type Route = BlockingRoute<L>;
}

/// Route of one type of payload into an actor.
#[doc(hidden)]
pub struct ActorRoute<A: Actor<Context = Context<A>>> {
    pub(crate) payload: TypeId,
    pub(crate) handle: ActorHandle<A>,
}

type ActorHandle<A> = fn(&mut A, Decoded, DeliveryMeta, &mut Context<A>) -> Reply<A>;

/// Route of one type of payload into a blocking listener.
#[doc(hidden)]
pub struct BlockingRoute<L> {
    pub(crate) payload: TypeId,
    pub(crate) handle: fn(&L, Decoded, DeliveryMeta) -> Response,
}

#[diagnostic::do_not_recommend]
impl<A, T> Accepts<T, AsActor> for A
where
    T: 'static,
    A: Actor<Context = Context<A>> + Handler<Delivery<T>>,
    A::Result: HandlerResult<A>,
{
    fn route() -> ActorRoute<A> {
        let handle = |actor: &mut A, value, meta, ctx: &mut Context<A>| {
            actor.handle(deliver::<T>(value, meta), ctx).into_reply()
        };
        ActorRoute { payload: TypeId::of::<T>(), handle }
    }
}

/// A listener that blocks its thread: it runs on a pool of its own, and can't await answers.
///
/// One instance serves all threads of the pool, one for each concurrency slot of its contract.
pub trait BlockingHandler<T>: Send + Sync + 'static {
    /// Handles one message.
    ///
    /// # Errors
    /// Any error becomes an `agent-error` for the caller.
    ///
    /// # Cancel safety
    /// A running handler can't be stopped: after a timeout it keeps its slot until it ends, and its output is
    /// discarded.
    fn handle(&self, delivery: Delivery<T>) -> Response;
}

#[diagnostic::do_not_recommend]
impl<L, T> Accepts<T, AsBlocking> for L
where
    T: 'static,
    L: BlockingHandler<T>,
{
    fn route() -> BlockingRoute<L> {
        let handle = |listener: &L, value, meta| listener.handle(deliver::<T>(value, meta));
        BlockingRoute { payload: TypeId::of::<T>(), handle }
    }
}

pub(crate) fn deliver<T: 'static>(value: Decoded, meta: DeliveryMeta) -> Delivery<T> {
    let value = value.downcast::<T>().expect("routes are found by the type of the value");
    Delivery::new(value, meta)
}
