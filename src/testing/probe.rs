//! Probes: listeners that a test controls.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use actix::{Actor, Context, Handler, ResponseFuture};
use systole_core::core::Failure;
use systole_core::protocol::Request;
use systole_core::vocab::{MessageId, Name};
use systole_xml::schema::Payload;
use tokio::sync::oneshot;

use crate::runtime::{Delivery, Response, reply_any};

/// A listener that a test controls: it records its messages, and answers as the test decides.
///
/// Without an answer to give, it holds each message: [`Probe::take`] returns one to be answered by hand. Clones share
/// one probe.
pub struct Probe<T> {
    state: Arc<Mutex<State<T>>>,
}

struct State<T> {
    received: Vec<T>,
    held: Vec<Held<T>>,
    answer: Option<Answer<T>>,
}

type Answer<T> = Arc<dyn Fn(&T) -> Response + Send + Sync>;

/// A message that a probe holds.
pub struct Held<T> {
    /// The payload.
    pub payload: T,
    /// The sender.
    pub from: Name,
    /// The id of the message.
    pub id: MessageId,
    reply: oneshot::Sender<Response>,
}

/// The actor of a probe.
pub struct ProbeActor<T> {
    probe: Probe<T>,
}

impl<T: Payload + Clone> Probe<T> {
    /// Makes a probe that holds its messages.
    pub fn new() -> Self {
        Self { state: Arc::new(Mutex::new(State { received: Vec::new(), held: Vec::new(), answer: None })) }
    }

    /// Returns the factory for the builder.
    pub fn factory(&self) -> impl Fn() -> ProbeActor<T> + Send + Sync + 'static {
        let probe = self.clone();
        move || ProbeActor { probe: probe.clone() }
    }

    /// Answers each message from now on with a closure. It may panic, as a listener might.
    pub fn answer_with(&self, answer: impl Fn(&T) -> Response + Send + Sync + 'static) {
        self.lock().answer = Some(Arc::new(answer));
    }

    /// Replies to each message from now on with the payload that a closure makes of it.
    pub fn reply_with(&self, reply: impl Fn(&T) -> T::Reply + Send + Sync + 'static)
    where
        T: Request,
    {
        self.answer_with(move |payload| Ok(reply_any(reply(payload))));
    }

    /// Holds each message from now on.
    pub fn hold(&self) {
        self.lock().answer = None;
    }

    /// Returns all payloads so far, in order.
    pub fn received(&self) -> Vec<T> {
        self.lock().received.clone()
    }

    /// Takes the oldest held message.
    pub fn take(&self) -> Option<Held<T>> {
        let mut state = self.lock();
        // Messages of cancelled threads take no answer.
        state.held.retain(|held| !held.reply.is_closed());
        (!state.held.is_empty()).then(|| state.held.remove(0))
    }
}

impl<T> Probe<T> {
    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Held<T> {
    /// Replies to it.
    pub fn reply(self, reply: T::Reply)
    where
        T: Request,
    {
        self.answer(Ok(reply_any(reply)));
    }

    /// Answers the message.
    pub fn answer(self, response: Response) {
        // The thread may have been cancelled in the meantime.
        let _ = self.reply.send(response);
    }
}

impl<T: 'static> Actor for ProbeActor<T> {
    type Context = Context<Self>;
}

impl<T: Payload + Clone> Handler<Delivery<T>> for ProbeActor<T> {
    type Result = ResponseFuture<Response>;

    fn handle(&mut self, delivery: Delivery<T>, _: &mut Context<Self>) -> Self::Result {
        let (from, id) = (delivery.from().clone(), delivery.id());
        let payload = delivery.into_inner();
        let (reply, answer) = oneshot::channel();
        let told = {
            let mut state = self.probe.lock();
            state.received.push(payload.clone());
            state.answer.clone()
        };
        match told {
            Some(told) => {
                let response = told(&payload);
                Box::pin(async move { response })
            }
            None => {
                self.probe.lock().held.push(Held { payload, from, id, reply });
                let dropped = || Failure::new("the test let the message go without an answer");
                Box::pin(async move { answer.await.unwrap_or_else(|_| Err(dropped())) })
            }
        }
    }
}

impl<T> Clone for Probe<T> {
    fn clone(&self) -> Self {
        Self { state: self.state.clone() }
    }
}

impl<T: Payload + Clone> Default for Probe<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: fmt::Debug> fmt::Debug for Probe<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Probe").field("received", &self.lock().received).finish_non_exhaustive()
    }
}

impl<T: fmt::Debug> fmt::Debug for Held<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Held").field("payload", &self.payload).field("from", &self.from).finish_non_exhaustive()
    }
}
