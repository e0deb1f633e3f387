//! Listeners that are async functions, without an actor; their only state is shared by the function.

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

/// A listener of one function, or of one function for each payload that it accepts.
pub struct Functions {
    routes: Arc<[FunctionRoute]>,
}

/// Route of one type of payload to its function.
#[doc(hidden)]
#[derive(Clone)]
pub struct FunctionRoute {
    payload: TypeId,
    handle: Arc<dyn Fn(Decoded, DeliveryMeta) -> LocalBoxFuture<HandlerOutcome> + Send + Sync>,
}

impl HandlerKind<Functions> for AsFunctions {
    type Route = FunctionRoute;
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
    fn declare(contract: ContractBuilder<Functions, AsFunctions>) -> ContractBuilder<Functions, AsFunctions> {
        contract
    }
}

impl<T: Request<Reply = R>, R: Payload> FunctionAnswer<T> for R {
    fn into_emit(self) -> Emit {
        reply_any(self)
    }

    fn declare(contract: ContractBuilder<Functions, AsFunctions>) -> ContractBuilder<Functions, AsFunctions> {
        contract.replies::<R>()
    }
}

impl<T> FunctionAnswer<T> for Emit {
    fn into_emit(self) -> Emit {
        self
    }
}

impl ContractBuilder<Functions, AsFunctions> {
    /// Accepts `T` as a request for this function, whose result is the reply.
    #[must_use]
    pub fn on<T, R, F, H>(self, function: H) -> Self
    where
        T: Payload,
        R: FunctionAnswer<T>,
        F: Future<Output = Result<R, Failure>> + 'static,
        H: Fn(Delivery<T>) -> F + Send + Sync + 'static,
    {
        let handle = move |value, meta| {
            let answer = function(deliver::<T>(value, meta));
            let outcome: LocalBoxFuture<HandlerOutcome> =
                Box::pin(async move { outcome_of(answer.await.map(FunctionAnswer::into_emit)) });
            outcome
        };
        let route = FunctionRoute { payload: TypeId::of::<T>(), handle: Arc::new(handle) };
        R::declare(self.accepts_by::<T>(route))
    }
}

impl Functions {
    pub(crate) fn new(routes: Arc<[FunctionRoute]>) -> Self {
        Self { routes }
    }
}

impl RawListener for Functions {
    fn run(self: Rc<Self>, message: Message, context: RunContext) -> LocalBoxFuture<HandlerOutcome> {
        let (meta, value) = DeliveryMeta::of(message, context.thread);
        let payload = (*value).type_id();
        let route = self.routes.iter().find(|route| route.payload == payload);
        (route.expect("each payload that is decoded has a function").handle)(value, meta)
    }
}
