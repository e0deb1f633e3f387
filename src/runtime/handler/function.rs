//! Listeners that are async functions, without an actor, with a state or without.

use std::any::TypeId;
use std::rc::Rc;
use std::sync::Arc;

use systole_core::core::{Failure, HandlerOutcome, Message};
use systole_core::protocol::Request;
use systole_xml::schema::{Decoded, Payload};

use super::contract::ContractBuilder;
use super::delivery::{Delivery, DeliveryMeta};
use super::kind::{HandlerKind, deliver};
use super::raw::{LocalBoxFuture, RawListener, RunContext};
use super::response::{Emit, outcome_of, reply_any};

/// The kind of listeners that are functions.
#[derive(Debug, Clone, Copy)]
pub struct AsFunctions;

/// A listener of one function, or of one function for each payload that it accepts, with the state that they share.
pub struct Functions<S = ()> {
    routes: Arc<[FunctionRoute<S>]>,
    state: Rc<S>,
}

/// Route of one type of payload to its function.
#[doc(hidden)]
pub struct FunctionRoute<S> {
    payload: TypeId,
    handle: Handle<S>,
}

type Handle<S> = Box<dyn Fn(&Rc<S>, Decoded, DeliveryMeta) -> LocalBoxFuture<HandlerOutcome> + Send + Sync>;

impl<S> HandlerKind<Functions<S>> for AsFunctions {
    type Route = FunctionRoute<S>;
}

/// Makes a function of one that has a state, by value: each call gets a clone, so what the calls share is behind an
/// `Arc`, as in a pool of connections. A state that need not be `Send` has a factory
/// ([`stateful`](crate::runtime::OrganismBuilder::stateful)).
///
/// ```
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicI64, Ordering};
///
/// use systole::prelude::*;
///
/// # #[derive(Serialize, Deserialize, JsonSchema, Payload)]
/// # #[payload(namespace = "urn:example:numbers:v1", reply = Sum)]
/// # struct Add { value: i64 }
/// # #[derive(Serialize, Deserialize, JsonSchema, Payload)]
/// # #[payload(namespace = "urn:example:numbers:v1")]
/// # struct Sum { value: i64 }
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let sum = Arc::new(AtomicI64::new(40));
/// let add = async |sum: Arc<AtomicI64>, add: Delivery<Add>| {
///     Ok(Sum { value: sum.fetch_add(add.value, Ordering::Relaxed) + add.value })
/// };
/// let organism = Organism::builder("numbers")
///     .on("counter", with_state(sum, add))
///     .client("cli", |c| c.calls::<Add>())
///     .start()?;
/// assert_eq!(block_on(organism.client("cli")?.ask(Add { value: 2 }))?.value, 42);
/// # Ok(())
/// # }
/// ```
pub fn with_state<S, T, F, H>(state: S, function: H) -> impl Fn(Delivery<T>) -> F + Send + Sync + 'static
where
    S: Clone + Send + Sync + 'static,
    H: Fn(S, Delivery<T>) -> F + Send + Sync + 'static,
{
    move |delivery| function(state.clone(), delivery)
}

/// The success of a function that takes `T`: the reply that the request names, or an [`Emit`], whose payloads its contract
/// has to list.
#[diagnostic::on_unimplemented(
    message = "a function that takes `{T}` can't answer with `{Self}`",
    label = "not the reply to `{T}`, and no `Emit`",
    note = "return `Ok(payload)` of the type that `{T}` names as its reply, or an `Emit`: `Ok(reply_any(payload))`, `Ok(call(payload))`, `Ok(none())`"
)]
pub trait FunctionAnswer<T>: 'static {
    /// Converts the answer to an emission.
    #[doc(hidden)]
    fn into_emit(self) -> Emit;

    /// Adds the payload of the type to the replies of a contract.
    #[doc(hidden)]
    fn declare<S>(contract: ContractBuilder<Functions<S>, AsFunctions>) -> ContractBuilder<Functions<S>, AsFunctions> {
        contract
    }
}

impl<T: Request<Reply = R>, R: Payload> FunctionAnswer<T> for R {
    fn into_emit(self) -> Emit {
        reply_any(self)
    }

    fn declare<S>(contract: ContractBuilder<Functions<S>, AsFunctions>) -> ContractBuilder<Functions<S>, AsFunctions> {
        contract.replies::<R>()
    }
}

impl<T> FunctionAnswer<T> for Emit {
    fn into_emit(self) -> Emit {
        self
    }
}

impl<S: 'static> ContractBuilder<Functions<S>, AsFunctions> {
    /// Accepts `T` as a request for this function, whose result is the reply.
    #[must_use]
    pub fn on<T, R, F, H>(self, function: H) -> Self
    where
        T: Payload,
        R: FunctionAnswer<T>,
        F: Future<Output = Result<R, Failure>> + 'static,
        H: Fn(Delivery<T>) -> F + Send + Sync + 'static,
    {
        self.on_state(move |_, delivery| function(delivery))
    }

    /// Accepts `T` as a request for this function, which gets the state of the listener, too.
    #[must_use]
    pub fn on_state<T, R, F, H>(self, function: H) -> Self
    where
        T: Payload,
        R: FunctionAnswer<T>,
        F: Future<Output = Result<R, Failure>> + 'static,
        H: Fn(Rc<S>, Delivery<T>) -> F + Send + Sync + 'static,
    {
        let handle = move |state: &Rc<S>, value, meta| {
            let answer = function(state.clone(), deliver::<T>(value, meta));
            let outcome: LocalBoxFuture<HandlerOutcome> =
                Box::pin(async move { outcome_of(answer.await.map(FunctionAnswer::into_emit)) });
            outcome
        };
        let route = FunctionRoute { payload: TypeId::of::<T>(), handle: Box::new(handle) };
        R::declare(self.accepts_by::<T>(route))
    }
}

impl<S> Functions<S> {
    pub(crate) fn new(routes: Arc<[FunctionRoute<S>]>, state: S) -> Self {
        Self { routes, state: Rc::new(state) }
    }
}

impl<S: 'static> RawListener for Functions<S> {
    fn run(self: Rc<Self>, message: Message, context: RunContext) -> LocalBoxFuture<HandlerOutcome> {
        let (meta, value) = DeliveryMeta::of(message, context.thread);
        let payload = (*value).type_id();
        let route = self.routes.iter().find(|route| route.payload == payload);
        (route.expect("each payload that is decoded has a function").handle)(&self.state, value, meta)
    }
}
