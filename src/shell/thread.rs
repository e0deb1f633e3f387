//! Threads as handlers use them: calls, notes, time.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use serde::Serialize;
use serde::de::DeserializeOwned;
#[cfg(feature = "gateway")]
use systole_core::core::Attachment;
use systole_core::core::{Answer, CallId, Emission, EmissionKind, Failure, Input, Join, Message, Remembered, Settled};
use systole_core::journal::{NoteRecord, Number};
use systole_core::vocab::{Fault, FaultCode, ThreadId, Time};
use systole_xml::schema::{DecodeError, Draft, IntoDraft, Payload};

use super::clock::Clock;
use super::desk::Desk;
use super::entropy::Entropy;
use super::handler::HandlerKey;
use super::response::{Emit, call_on, call_to};

/// The thread of the message that a handler works on, which it may call from.
///
/// A handle is a key, valid while its handler runs; it may be cloned and moved freely, but only the thread of its shard
/// can call through it.
#[derive(Debug, Clone)]
pub struct Thread {
    id: ThreadId,
    deadline: Option<Time>,
    history: Option<Arc<[Remembered]>>,
    /// The number of the message in the journal; 0 if there is none.
    message: Number,
    /// Notes of the handler from a run before a crash.
    notes: Option<Arc<[NoteRecord]>>,
    key: HandlerKey,
}

impl Thread {
    /// Makes the thread of a message, taking the message's history.
    pub(super) fn of(message: &mut Message, key: HandlerKey) -> Self {
        let history = std::mem::take(&mut message.history);
        let history = (!history.is_empty()).then(|| history.into());
        let notes = std::mem::take(&mut message.notes);
        let notes = (!notes.is_empty()).then(|| notes.into());
        Self { id: message.thread, deadline: message.deadline, history, message: message.number, notes, key }
    }

    /// Attaches operations to the end of the handler, which must follow at once: they are written in the step that
    /// consumes its message. Returns them if the handler has ended.
    #[cfg(feature = "gateway")]
    pub(crate) fn attach(&self, attachment: Attachment) -> Result<(), Attachment> {
        let Some(desk) = Desk::here(self.key.desk) else { return Err(attachment) };
        desk.tell(self.key.origin, Input::Attached { task: self.key.task, attachment });
        Ok(())
    }

    /// Returns the opaque id of the thread.
    pub fn id(&self) -> ThreadId {
        self.id
    }

    /// Returns the deadline of the thread.
    pub fn deadline(&self) -> Option<Time> {
        self.deadline
    }

    /// Returns the earlier payloads of the thread, oldest first; for contracts with context.
    pub fn history(&self) -> &[Remembered] {
        self.history.as_deref().unwrap_or_default()
    }

    /// Awaits a value that can't be computed twice alike, such as an answer from outside, and records it. A handler
    /// that runs again after a crash gets the recorded value, and the future is not polled.
    ///
    /// The value is durable when this method returns, so later actions may depend on it. Actions of the future outside
    /// of the organism may happen twice, if the process ends in between. Names distinguish the values of one handler,
    /// and occur in faults.
    ///
    /// # Errors
    /// A fault if the handler recorded a value of another name here in the run before, if the value has no JSON form,
    /// or if this is not the handler's own thread any more.
    pub async fn record<T, F>(&self, name: &str, learn: F) -> Result<T, Fault>
    where
        T: Serialize + DeserializeOwned,
        F: Future<Output = T>,
    {
        let page = match self.open_note(name)? {
            Noted::Before(value) => return Ok(value),
            Noted::Not(page) => page,
        };
        let value = learn.await;
        let NoteRecord { index, name, value: json, .. } = page.write(&value)?;
        let desk = Desk::here(self.key.desk).ok_or_else(gone)?;
        desk.note(self.key, index, name, json);
        drop(desk);
        std::future::poll_fn(|cx| match Desk::here(self.key.desk) {
            Some(desk) => desk.poll_note(self.key, index, cx),
            None => Poll::Ready(()),
        })
        .await;
        Ok(value)
    }

    /// Opens the next of the handler's notes: the value from a run before a restart, or an empty page.
    pub(super) fn open_note<T: DeserializeOwned>(&self, name: &str) -> Result<Noted<T>, Fault> {
        let index = Desk::here(self.key.desk).and_then(|desk| desk.next_note(self.key)).ok_or_else(gone)?;
        let Some(note) = self.notes.iter().flat_map(|notes| notes.iter()).find(|note| note.index == index) else {
            return Ok(Noted::Not(Page { message: self.message, index, name: name.into() }));
        };
        if *note.name != *name {
            return Err(failed(format!("before the restart the handler recorded '{}' here, now '{name}'", note.name)));
        }
        let value = serde_json::from_str(&note.value);
        value.map(Noted::Before).map_err(|error| failed(format!("'{name}' is not what was recorded: {error}")))
    }

    /// Returns the time, [recorded](Self::record).
    ///
    /// # Errors
    /// As [`record`](Self::record).
    pub async fn now(&self) -> Result<Time, Fault> {
        let desk = self.key.desk;
        let nanos = self.record("now", async move { Desk::here(desk).map_or(0, |desk| desk.clock.now().as_nanos()) });
        nanos.await.map(Time::from_nanos)
    }

    /// Returns 64 random bits, [recorded](Self::record).
    ///
    /// # Errors
    /// As [`record`](Self::record).
    pub async fn random(&self) -> Result<u64, Fault> {
        self.record("random", async { Entropy::Real.bits() }).await
    }

    /// Returns the clock of the organism, on the thread of its shard.
    pub(super) fn clock(&self) -> Option<Clock> {
        Desk::here(self.key.desk).map(|desk| desk.clock.clone())
    }

    /// Awaits the answer to one call: its reply, or the fault that came instead.
    ///
    /// Nothing is sent before the first poll. While the handler waits, it is parked: it holds no slot and its timeout
    /// is suspended.
    ///
    /// The fault that came as the answer. An immediate fault if the handler can't wait: it holds its actor exclusively,
    /// runs on a blocking pool, or has ended.
    ///
    /// # Cancel safety
    /// Dropping the future cancels the child.
    pub fn call(&self, request: impl IntoRequest) -> Calling {
        let requests = collect([request]).and_then(|requests| match requests.len() {
            1 => Ok(requests),
            count => Err(failed(format!("call awaits one request, not {count}: use call_all"))),
        });
        Calling(self.await_all(requests, Join::All))
    }

    /// Awaits the answer of one listener, by name.
    ///
    /// # Errors
    /// As [`Thread::call`].
    pub fn call_to(&self, listener: &str, payload: impl IntoDraft) -> Calling {
        self.call(call_to(listener, payload))
    }

    /// Awaits the answer to a message on a thread that was spawned with `<spawn-thread>`.
    ///
    /// # Errors
    /// As [`Thread::call`].
    pub fn call_on(&self, thread: ThreadId, payload: impl IntoDraft) -> Calling {
        self.call(call_on(thread, payload))
    }

    /// Awaits the answers to several calls, until `join` is decided; the remaining calls are cancelled.
    ///
    /// # Errors
    /// The fault that decided the join; an immediate one as in [`Thread::call`].
    ///
    /// # Cancel safety
    /// Dropping the future cancels the children.
    pub fn call_all<I>(&self, requests: I, join: Join) -> CallingAll
    where
        I: IntoIterator,
        I::Item: IntoRequest,
    {
        self.await_all(collect(requests), join)
    }

    /// Reports that all calls from before a crash that are still wanted have been made again; the others are dropped.
    /// For listeners that [reattach](systole_core::core::Contract::reattaches).
    pub(super) fn reattached(&self) {
        if let Some(desk) = Desk::here(self.key.desk) {
            desk.tell(self.key.origin, Input::Reattached { task: self.key.task });
        }
    }

    fn await_all(&self, requests: Result<Vec<Emission>, Fault>, join: Join) -> CallingAll {
        let state = match requests {
            Ok(requests) => Stage::New { requests, join },
            Err(fault) => Stage::Refused(fault),
        };
        CallingAll { key: self.key, state }
    }
}

/// A request that a handler can await: a payload, or the result of [`super::call`] and its relatives.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no payload",
    label = "no payload, and no call of one",
    note = "derive it: `#[derive(Serialize, Deserialize, JsonSchema, Payload)]` with `#[payload(namespace = \"urn:…\")]`"
)]
pub trait IntoRequest {
    /// Converts the value to requests.
    ///
    /// # Errors
    /// [`Failure`] if the value is no call.
    fn into_request(self) -> Result<Vec<Emission>, Failure>;
}

impl<T: IntoDraft> IntoRequest for T {
    fn into_request(self) -> Result<Vec<Emission>, Failure> {
        Ok(vec![request(self.into_draft())])
    }
}

impl IntoRequest for Emit {
    fn into_request(self) -> Result<Vec<Emission>, Failure> {
        self.into_calls()
    }
}

fn request(payload: Draft) -> Emission {
    Emission { kind: EmissionKind::Call, to: None, thread: None, payload }
}

fn collect<I>(requests: I) -> Result<Vec<Emission>, Fault>
where
    I: IntoIterator,
    I::Item: IntoRequest,
{
    let mut all = Vec::new();
    for request in requests {
        all.append(&mut request.into_request().map_err(|failure| failed(failure.message))?);
    }
    Ok(all)
}

/// A note of a handler.
pub(super) enum Noted<T> {
    /// The value from a run before a restart.
    Before(T),
    /// An empty page.
    Not(Page),
}

/// The position of a new note.
pub(super) struct Page {
    message: Number,
    index: u32,
    name: Arc<str>,
}

impl Page {
    /// Writes the note.
    pub(super) fn write<T: Serialize>(self, value: &T) -> Result<NoteRecord, Fault> {
        let Self { message, index, name } = self;
        let json =
            serde_json::to_string(value).map_err(|error| failed(format!("'{name}' can't be recorded: {error}")))?;
        Ok(NoteRecord { message, index, name, value: json.into() })
    }
}

fn gone() -> Fault {
    failed("a value can only be recorded by its handler, on its own thread and while it runs")
}

fn failed(message: impl Into<Arc<str>>) -> Fault {
    Fault::new(FaultCode::Failed, message)
}

/// The future of an awaited call.
#[derive(Debug)]
#[must_use = "nothing is sent unless it is awaited"]
pub struct Calling(CallingAll);

impl Calling {
    /// Awaits the reply as a value.
    ///
    /// # Errors
    /// The errors of the call itself; a reply of another type is a fault, too.
    pub async fn returning<T: Payload>(self) -> Result<T, Fault> {
        self.await?.decode().map_err(|error| failed(error.to_string()))
    }

    /// Reports that the outcome is stored elsewhere, durable before any later change. For listeners that
    /// [reattach](systole_core::core::Contract::reattaches).
    pub(super) fn forget(self) {
        let CallingAll { key, state } = &self.0;
        if let (Stage::Done(Some(call)), Some(desk)) = (state, Desk::here(key.desk)) {
            desk.tell(key.origin, Input::CallForgotten { task: key.task, call: *call });
        }
    }
}

impl Future for Calling {
    type Output = Result<Answer, Fault>;

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
pub struct CallingAll {
    key: HandlerKey,
    state: Stage,
}

#[derive(Debug)]
enum Stage {
    Refused(Fault),
    New { requests: Vec<Emission>, join: Join },
    Waiting(CallId),
    Done(Option<CallId>),
}

impl Future for CallingAll {
    type Output = Result<Answers, Fault>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let key = self.key;
        let gone = || failed("an answer can only be awaited by its handler, on its own thread and while it runs");
        match std::mem::replace(&mut self.state, Stage::Done(None)) {
            Stage::Refused(fault) => return Poll::Ready(Err(fault)),
            Stage::New { requests, .. } if requests.is_empty() => return Poll::Ready(Ok(Answers(Vec::new()))),
            Stage::New { requests, join } => {
                let call = Desk::here(key.desk).ok_or_else(gone)?.call(key, requests, join)?;
                self.state = Stage::Waiting(call);
            }
            waiting => self.state = waiting,
        }
        let Stage::Waiting(call) = self.state else { panic!("a call was polled after its end") };
        let answered = match Desk::here(key.desk) {
            Some(desk) => desk.poll_call(key, call, cx).map(|answered| answered.unwrap_or_else(|| Err(gone()))),
            None => Poll::Ready(Err(gone())),
        };
        answered.map(|answered| {
            self.state = Stage::Done(Some(call));
            answered.map(Answers)
        })
    }
}

impl Drop for CallingAll {
    fn drop(&mut self) {
        if let Stage::Waiting(call) = self.state
            && let Some(desk) = Desk::here(self.key.desk)
        {
            desk.drop_call(self.key, call);
        }
    }
}

/// The outcomes of several awaited calls, in order of index.
#[derive(Debug, Clone)]
pub struct Answers(Vec<Settled>);

impl Answers {
    /// Returns the outcomes; with any join but [`Join::Settled`] all of them are replies.
    pub fn outcomes(&self) -> &[Settled] {
        &self.0
    }

    /// Returns the replies.
    pub fn replies(&self) -> impl Iterator<Item = &Answer> {
        self.0.iter().filter_map(|settled| settled.outcome.as_ref().ok())
    }

    /// Decodes the replies as values of one type.
    ///
    /// # Errors
    /// [`DecodeError`] for the first reply of another type.
    pub fn decode<T: Payload>(&self) -> Result<Vec<T>, DecodeError> {
        self.replies().map(Answer::decode).collect()
    }
}

impl IntoIterator for Answers {
    type Item = Settled;
    type IntoIter = std::vec::IntoIter<Settled>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}
