use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use serde::Serialize;
use serde::de::DeserializeOwned;
#[cfg(feature = "gateway")]
use systole_core::core::Attachment;
use systole_core::core::{
    Answer, CallId, Emission, EmissionKind, Failure, Input, Join, Message, ModelAnswer, Remembered, Settled,
};
use systole_core::journal::{NoteRecord, Number};
use systole_core::vocab::{Fault, FaultCode, ThreadId, Time};
use systole_xml::schema::{DecodeError, Draft, IntoDraft, Payload};

use super::clock::Clock;
use super::desk::Desk;
use super::entropy::Entropy;
use super::handler::HandlerKey;
use super::response::{Emit, call_on, call_to};

/// The thread of the message that a handler works on: what it may call from.
///
/// A handle is a key, valid while its handler runs; it may be cloned and moved freely, but only
/// the thread of its shard can call through it.
#[derive(Debug, Clone)]
pub struct Thread {
    id: ThreadId,
    deadline: Option<Time>,
    history: Option<Arc<[Remembered]>>,
    /// The number of the message in the journal; 0 if there is none.
    message: Number,
    /// What the handler noted when it ran before a crash.
    notes: Option<Arc<[NoteRecord]>>,
    key: HandlerKey,
}

impl Thread {
    /// The thread of a message, which keeps the message's history from now on.
    pub(super) fn of(message: &mut Message, key: HandlerKey) -> Self {
        let history = std::mem::take(&mut message.history);
        let history = (!history.is_empty()).then(|| history.into());
        let notes = std::mem::take(&mut message.notes);
        let notes = (!notes.is_empty()).then(|| notes.into());
        Self { id: message.thread, deadline: message.deadline, history, message: message.number, notes, key }
    }

    /// Attaches changes to the end of the handler, which is to follow at once: they are written in the step that
    /// consumes its message. They are given back where the handler has ended.
    #[cfg(feature = "gateway")]
    pub(crate) fn attach(&self, attachment: Attachment) -> Result<(), Attachment> {
        let Some(desk) = Desk::here(self.key.desk) else { return Err(attachment) };
        desk.tell(self.key.origin, Input::Attached { task: self.key.task, attachment });
        Ok(())
    }

    /// The opaque id of the thread.
    pub fn id(&self) -> ThreadId {
        self.id
    }

    /// When the thread ends at the latest.
    pub fn deadline(&self) -> Option<Time> {
        self.deadline
    }

    /// The payloads of the thread before this one, oldest first; for contracts with context.
    pub fn history(&self) -> &[Remembered] {
        self.history.as_deref().unwrap_or_default()
    }

    /// Learns something that can't be learned twice alike, such as an answer from outside, and writes it down. A handler
    /// that runs again after a crash gets what is written, and the future is not polled.
    ///
    /// The value is durable when this returns, so whatever follows from it can rest on it. What the future does
    /// outside may happen twice: the process can end in between. Names tell apart what is learned in one handler, and
    /// show in faults.
    ///
    /// # Errors
    /// A fault, if the handler learned something of another name here before it was run again, if the value has no
    /// JSON form, or if this is not the handler's own thread any more.
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
        self.write_down(page.write(&value)?, None).await?;
        Ok(value)
    }

    /// Asks a model and writes its answer down, as [`record`](Self::record) does, with the key of what was asked. A handler
    /// that runs again asks anew where it asks something else, and writes that down instead. A failure is not written down.
    #[cfg(feature = "gateway")]
    pub(crate) async fn record_answer<T, F>(&self, name: &str, key: &str, ask: F) -> Result<T, Failure>
    where
        T: Serialize + DeserializeOwned,
        F: Future<Output = Result<(T, ModelAnswer), Failure>>,
    {
        let (before, page) = self.turn_page::<Keyed<T>>(name)?;
        if let Some(Keyed { value, .. }) = before.filter(|before| before.key == key) {
            return Ok(value);
        }
        let (value, answer) = ask.await?;
        self.write_down(page.write(&Keyed { key: key.to_owned(), value: &value })?, Some(Box::new(answer))).await?;
        Ok(value)
    }

    /// Comes back when a note is durable.
    async fn write_down(&self, note: NoteRecord, answer: Option<Box<ModelAnswer>>) -> Result<(), Fault> {
        let index = note.index;
        let desk = Desk::here(self.key.desk).ok_or_else(gone)?;
        desk.note(self.key, note, answer);
        drop(desk);
        std::future::poll_fn(|cx| match Desk::here(self.key.desk) {
            Some(desk) => desk.poll_note(self.key, index, cx),
            None => Poll::Ready(()),
        })
        .await;
        Ok(())
    }

    /// The next of the handler's notes: what stands there since before a restart, or where it is to stand.
    pub(super) fn open_note<T: DeserializeOwned>(&self, name: &str) -> Result<Noted<T>, Fault> {
        let (before, page) = self.turn_page(name)?;
        Ok(before.map_or(Noted::Not(page), Noted::Before))
    }

    /// The value at the place of the handler's next note, if there is one since before a restart, and that place.
    fn turn_page<T: DeserializeOwned>(&self, name: &str) -> Result<(Option<T>, Page), Fault> {
        let index = Desk::here(self.key.desk).and_then(|desk| desk.next_note(self.key)).ok_or_else(gone)?;
        let page = Page { message: self.message, index, name: name.into() };
        let Some(note) = self.notes.iter().flat_map(|notes| notes.iter()).find(|note| note.index == index) else {
            return Ok((None, page));
        };
        if *note.name != *name {
            return Err(failed(format!("before the restart it recorded '{}' here, now '{name}'", note.name)));
        }
        let value = serde_json::from_str(&note.value);
        let value = value.map_err(|error| failed(format!("'{name}' is not what was recorded: {error}")))?;
        Ok((Some(value), page))
    }

    /// The time, [recorded](Self::record).
    ///
    /// # Errors
    /// As [`record`](Self::record).
    pub async fn now(&self) -> Result<Time, Fault> {
        let desk = self.key.desk;
        let nanos = self.record("now", async move { Desk::here(desk).map_or(0, |desk| desk.clock.now().as_nanos()) });
        nanos.await.map(Time::from_nanos)
    }

    /// 64 random bits, [recorded](Self::record).
    ///
    /// # Errors
    /// As [`record`](Self::record).
    pub async fn random(&self) -> Result<u64, Fault> {
        self.record("random", async { Entropy::Real.bits() }).await
    }

    /// The clock of the organism, on the thread of its shard.
    pub(crate) fn clock(&self) -> Option<Clock> {
        Desk::here(self.key.desk).map(|desk| desk.clock.clone())
    }

    /// Awaits the answer to one call: its reply, or the fault that came instead.
    ///
    /// Nothing is sent before the first poll. While it waits, the handler is parked: it holds no
    /// slot and its timeout stands still.
    ///
    /// # Errors
    /// The fault that came as the answer. At once, if the handler can't wait: it holds its actor
    /// exclusively, runs on a blocking pool, or has ended.
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

    /// Awaits the answers to several calls, until `join` is decided; losers are cancelled.
    ///
    /// # Errors
    /// The fault that decided against; at once as in [`Thread::call`].
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

    /// Says that all that was called before a crash, and is still wanted, was called again: the rest is given up. For
    /// listeners that [reattach](systole_core::core::Contract::reattaches).
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

/// Whatever can be a request that a handler awaits: a payload, or what [`super::call`] and its
/// kin make.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no payload",
    label = "no payload, and no call of one",
    note = "derive it: `#[derive(Serialize, Deserialize, JsonSchema, Payload)]` with `#[payload(namespace = \"urn:…\")]`"
)]
pub trait IntoRequest {
    /// The requests.
    ///
    /// # Errors
    /// [`Failure`] if it isn't a call.
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

/// A place among the notes of a handler.
pub(super) enum Noted<T> {
    /// What the handler noted there before a restart.
    Before(T),
    /// Nothing yet.
    Not(Page),
}

/// A note that holds for one key alone.
#[cfg(feature = "gateway")]
#[derive(serde::Serialize, serde::Deserialize)]
struct Keyed<T> {
    key: String,
    value: T,
}

/// Where a note is to stand.
pub(super) struct Page {
    message: Number,
    index: u32,
    name: Arc<str>,
}

impl Page {
    /// The note.
    pub(super) fn write<T: Serialize>(self, value: &T) -> Result<NoteRecord, Fault> {
        let Self { message, index, name } = self;
        let json =
            serde_json::to_string(value).map_err(|error| failed(format!("'{name}' can't be recorded: {error}")))?;
        Ok(NoteRecord { message, index, name, value: json.into() })
    }
}

fn gone() -> Fault {
    failed("something can only be recorded by its handler, on its own thread and while it runs")
}

fn failed(message: impl Into<Arc<str>>) -> Fault {
    Fault::new(FaultCode::Failed, message)
}

/// The future of an awaited call.
#[derive(Debug)]
#[must_use = "nothing is sent unless it is awaited"]
pub struct Calling(CallingAll);

impl Calling {
    /// The reply as a value.
    ///
    /// # Errors
    /// As the call itself; a reply of another type is a fault too.
    pub async fn returning<T: Payload>(self) -> Result<T, Fault> {
        self.await?.decode().map_err(|error| failed(error.to_string()))
    }

    /// Says that what came of it is kept elsewhere, durable before anything that comes later. For listeners that
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
    /// The outcomes; with any join but [`Join::Settled`] all of them are replies.
    pub fn outcomes(&self) -> &[Settled] {
        &self.0
    }

    /// The replies.
    pub fn replies(&self) -> impl Iterator<Item = &Answer> {
        self.0.iter().filter_map(|settled| settled.outcome.as_ref().ok())
    }

    /// The replies as values of one type.
    ///
    /// # Errors
    /// [`DecodeError`] for the first that is none.
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
