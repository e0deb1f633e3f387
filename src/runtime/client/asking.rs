//! Questions of a client: a request in a conversation of its own, and its first answer.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use systole_core::core::{Answer, Egress, Emission, Failure};
use systole_core::vocab::{Fault, Name};
use systole_xml::schema::Payload;

use super::{Client, SendError};

/// The reason why a question has no answer.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AskError {
    /// The message was not accepted.
    #[error(transparent)]
    Send(#[from] SendError),
    /// A fault came back.
    #[error("{from}: {fault}")]
    Fault {
        /// The listener that was asked, or the part of the pump that refused the request.
        from: Name,
        /// The fault.
        fault: Fault,
    },
    /// The reply has another type than the request names.
    #[error("{from}: the reply is not of the type that the request names: {reason}")]
    Reply {
        /// The listener that replied.
        from: Name,
        /// The difference from the type that the request names.
        reason: Arc<str>,
    },
    /// The conversation closed without an answer.
    #[error("the conversation closed without an answer")]
    Ended,
}

systole_core::vocab::debug_is_display!(AskError);

/// The future of a question: its reply as a value, or the [`Answer`] where its type is open.
#[must_use = "nothing is sent unless it is awaited"]
pub struct Asking<T> {
    state: State,
    read: Read<T>,
}

/// Turns an answer into the value that the client awaits.
pub(crate) type Read<T> = fn(Answer) -> Result<T, AskError>;

enum State {
    New(Client, Result<Vec<Emission>, Failure>),
    Waiting(Pin<Box<dyn Future<Output = Result<Answer, AskError>> + Send>>),
    Done,
}

impl<T> Asking<T> {
    pub(crate) fn new(client: Client, requests: Result<Vec<Emission>, Failure>, read: Read<T>) -> Self {
        Self { state: State::New(client, requests), read }
    }

    /// Waits so long at most, by the clock of the organism: then all that was asked for is cancelled, and a fault
    /// [`Timeout`](systole_core::vocab::FaultCode::Timeout) is the answer. The time counts from the first poll.
    pub fn within(self, time: Duration) -> Self {
        let state = match self.state {
            State::New(client, requests) => State::New(client.with_deadline(time), requests),
            state => state,
        };
        Self { state, ..self }
    }
}

impl<T> Future for Asking<T> {
    type Output = Result<T, AskError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut waiting = match std::mem::replace(&mut self.state, State::Done) {
            State::New(client, requests) => Box::pin(exchange(client, requests)),
            State::Waiting(waiting) => waiting,
            State::Done => panic!("a question was polled after its end"),
        };
        match waiting.as_mut().poll(cx) {
            Poll::Ready(answer) => Poll::Ready(answer.and_then(self.read)),
            Poll::Pending => {
                self.state = State::Waiting(waiting);
                Poll::Pending
            }
        }
    }
}

/// Sends a request and waits for its first answer; dropped before, it cancels the conversation.
async fn exchange(client: Client, requests: Result<Vec<Emission>, Failure>) -> Result<Answer, AskError> {
    let mut conversation = client.converse();
    conversation.send_only(requests)?;
    let answer = conversation.receive().await;
    conversation.keep();
    let Egress { from, fault, proof, .. } = answer.ok_or(AskError::Ended)?;
    match (fault, proof) {
        (Some(fault), _) => Err(AskError::Fault { from, fault }),
        (None, Some(payload)) => Ok(Answer::new(from, payload)),
        (None, None) => Err(AskError::Ended),
    }
}

/// The reply as a value.
pub(crate) fn returned<T: Payload>(answer: Answer) -> Result<T, AskError> {
    let decoded = answer.decode();
    decoded.map_err(|error| AskError::Reply { from: answer.from, reason: error.to_string().into() })
}

impl<T> fmt::Debug for Asking<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match &self.state {
            State::New(..) => "new",
            State::Waiting(_) => "waiting",
            State::Done => "done",
        };
        f.debug_struct("Asking").field("state", &state).finish_non_exhaustive()
    }
}
