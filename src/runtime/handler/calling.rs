//! The futures of awaited calls, and their results.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use systole_core::core::{Answer, CallId, Emission, Input, Join, Settled};
use systole_core::vocab::{Fault, FaultCode};
use systole_xml::schema::{DecodeError, Payload};

use super::thread::failed;
use crate::runtime::shard::context::ShardContext;
use crate::runtime::shard::handlers::HandlerKey;

/// Turns an answer into the value that the caller awaits.
pub(crate) type Read<T> = fn(Answer) -> Result<T, Fault>;

/// The future of an awaited call: its reply as a value, or the [`Answer`] where its type is open.
#[derive(Debug)]
#[must_use = "nothing is sent unless it is awaited"]
pub struct Calling<T>(CallingAll<T>);

impl<T> Calling<T> {
    pub(crate) fn new(key: HandlerKey, requests: Result<Vec<Emission>, Fault>, read: Read<T>) -> Self {
        Self(CallingAll::new(key, requests, Join::All, read))
    }

    /// Waits so long at most, by the clock of the organism: then the call is cancelled, and its outcome is a fault
    /// [`Timeout`](FaultCode::Timeout). The time counts from the first poll, and goes on while the organism is down.
    pub fn within(self, time: Duration) -> Self {
        Self(self.0.within(time))
    }

    /// Reports that the results are kept elsewhere, durable before anything that comes later. For listeners that
    /// [reattach](systole_core::core::OnRestart::Reattach).
    pub(crate) fn forget(self) {
        let CallingAll { key, state, .. } = &self.0;
        if let (Stage::Done(Some(call)), Some(shard_context)) = (state, ShardContext::here(key.shard_context)) {
            shard_context.tell(key.origin, Input::CallForgotten { invocation: key.invocation, call: *call });
        }
    }
}

impl<T> Future for Calling<T> {
    type Output = Result<T, Fault>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(cx).map(|answers| {
            let first = answers?.0.into_iter().next();
            first.map_or_else(|| Err(Fault::new(FaultCode::Internal, "a call without an outcome")), |one| one.outcome)
        })
    }
}

/// The future of several awaited calls.
#[derive(Debug)]
#[must_use = "nothing is sent unless it is awaited"]
pub struct CallingAll<T> {
    key: HandlerKey,
    join: Join,
    within: Option<Duration>,
    read: Read<T>,
    state: Stage,
}

#[derive(Debug)]
enum Stage {
    Refused(Fault),
    New(Vec<Emission>),
    Waiting(CallId),
    Done(Option<CallId>),
}

impl<T> CallingAll<T> {
    pub(crate) fn new(key: HandlerKey, requests: Result<Vec<Emission>, Fault>, join: Join, read: Read<T>) -> Self {
        Self { key, join, within: None, read, state: requests.map_or_else(Stage::Refused, Stage::New) }
    }

    /// Waits so long at most, by the clock of the organism: then each call without an outcome is cancelled, and has a fault
    /// [`Timeout`](FaultCode::Timeout) for one. [`Join::Settled`] gives back what came, those faults beside it; to the
    /// other joins they count as any fault. The time counts from the first poll, and goes on while the organism is down.
    pub fn within(mut self, time: Duration) -> Self {
        self.within = Some(time);
        self
    }

    /// The outcomes as the caller wants them. A reply that can't be read is a fault, which decides against all joins but
    /// the one that wants every outcome.
    fn read(&self, settled: Vec<Settled>) -> Result<Answers<T>, Fault> {
        let read = settled.into_iter().map(|Settled { index, outcome }| match outcome.and_then(self.read) {
            Err(fault) if self.join != Join::Settled => Err(fault),
            outcome => Ok(Settled { index, outcome }),
        });
        read.collect::<Result<_, _>>().map(Answers)
    }
}

impl<T> Future for CallingAll<T> {
    type Output = Result<Answers<T>, Fault>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let key = self.key;
        let gone = || failed("an answer can only be awaited by its handler, on its own thread and while it runs");
        match std::mem::replace(&mut self.state, Stage::Done(None)) {
            Stage::Refused(fault) => return Poll::Ready(Err(fault)),
            Stage::New(requests) if requests.is_empty() => return Poll::Ready(Ok(Answers(Vec::new()))),
            Stage::New(requests) => {
                let call = ShardContext::here(key.shard_context).ok_or_else(gone)?.call(
                    key,
                    requests,
                    self.join,
                    self.within,
                )?;
                self.state = Stage::Waiting(call);
            }
            waiting => self.state = waiting,
        }
        let Stage::Waiting(call) = self.state else { panic!("a call was polled after its end") };
        let answered = match ShardContext::here(key.shard_context) {
            Some(shard_context) => {
                shard_context.poll_call(key, call, cx).map(|answered| answered.unwrap_or_else(|| Err(gone())))
            }
            None => Poll::Ready(Err(gone())),
        };
        answered.map(|answered| {
            self.state = Stage::Done(Some(call));
            self.read(answered?)
        })
    }
}

impl<T> Drop for CallingAll<T> {
    fn drop(&mut self) {
        if let Stage::Waiting(call) = self.state
            && let Some(shard_context) = ShardContext::here(self.key.shard_context)
        {
            shard_context.drop_call(self.key, call);
        }
    }
}

/// The outcomes of several awaited calls, in order of index.
#[derive(Debug, Clone)]
pub struct Answers<T>(Vec<Settled<T>>);

impl<T> Answers<T> {
    /// The outcomes; with any join but [`Join::Settled`] all of them are replies.
    pub fn outcomes(&self) -> &[Settled<T>] {
        &self.0
    }

    /// The replies.
    pub fn replies(&self) -> impl Iterator<Item = &T> {
        self.0.iter().filter_map(|settled| settled.outcome.as_ref().ok())
    }

    /// The replies, by value.
    pub fn into_replies(self) -> impl Iterator<Item = T> {
        self.0.into_iter().filter_map(|settled| settled.outcome.ok())
    }
}

impl Answers<Answer> {
    /// The replies as values of one type.
    ///
    /// # Errors
    /// [`DecodeError`] for the first that is none.
    pub fn decode<T: Payload>(&self) -> Result<Vec<T>, DecodeError> {
        self.replies().map(Answer::decode).collect()
    }
}

impl<T> IntoIterator for Answers<T> {
    type Item = Settled<T>;
    type IntoIter = std::vec::IntoIter<Settled<T>>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}
