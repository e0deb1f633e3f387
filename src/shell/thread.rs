use std::sync::Arc;
use std::task::Poll;

use serde::Serialize;
use serde::de::DeserializeOwned;
#[cfg(feature = "gateway")]
use systole_core::core::Attachment;
use systole_core::core::{Answer, Emission, EmissionKind, Failure, Input, Join, Message, Remembered};
use systole_core::journal::{NoteRecord, Number};
use systole_core::protocol::Request;
use systole_core::vocab::{Fault, FaultCode, ThreadId, Time};
use systole_xml::schema::{Draft, IntoDraft, Payload};

use super::calling::{Calling, CallingAll, Read};
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

    /// The next of the handler's notes: what stands there since before a restart, or where it is to stand.
    pub(super) fn open_note<T: DeserializeOwned>(&self, name: &str) -> Result<Noted<T>, Fault> {
        let index = Desk::here(self.key.desk).and_then(|desk| desk.next_note(self.key)).ok_or_else(gone)?;
        let Some(note) = self.notes.iter().flat_map(|notes| notes.iter()).find(|note| note.index == index) else {
            return Ok(Noted::Not(Page { message: self.message, index, name: name.into() }));
        };
        if *note.name != *name {
            return Err(failed(format!("before the restart it recorded '{}' here, now '{name}'", note.name)));
        }
        let value = serde_json::from_str(&note.value);
        value.map(Noted::Before).map_err(|error| failed(format!("'{name}' is not what was recorded: {error}")))
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
    pub(super) fn clock(&self) -> Option<Clock> {
        Desk::here(self.key.desk).map(|desk| desk.clock.clone())
    }

    /// Awaits the reply to a request.
    ///
    /// Nothing is sent before the first poll. While it waits, the handler is parked: it holds no
    /// slot and its timeout stands still.
    ///
    /// # Errors
    /// The fault that came as the answer; a reply of another type is a fault too. At once, if the handler can't wait: it
    /// holds its actor exclusively, runs on a blocking pool, or has ended.
    ///
    /// # Cancel safety
    /// Dropping the future cancels the child.
    pub fn call<R: Request>(&self, request: R) -> Calling<R::Reply> {
        self.await_one(request, returned)
    }

    /// Awaits the reply of one listener, by name.
    ///
    /// # Errors
    /// As [`Thread::call`].
    pub fn call_to<R: Request>(&self, listener: &str, request: R) -> Calling<R::Reply> {
        self.await_one(call_to(listener, request), returned)
    }

    /// Awaits the reply to a request on a thread that was spawned with `<spawn-thread>`.
    ///
    /// # Errors
    /// As [`Thread::call`].
    pub fn call_on<R: Request>(&self, thread: ThreadId, request: R) -> Calling<R::Reply> {
        self.await_one(call_on(thread, request), returned)
    }

    /// Awaits the answer to one call, whatever its type: for payloads that are no [`Request`], and for what
    /// [`call_to`](super::call_to()) and its kin make of them.
    ///
    /// # Errors
    /// As [`Thread::call`].
    pub fn call_any(&self, request: impl IntoRequest) -> Calling<Answer> {
        self.await_one(request, Ok)
    }

    /// Awaits the replies to several requests of one type, until `join` is decided; losers are cancelled.
    ///
    /// # Errors
    /// The fault that decided against; at once as in [`Thread::call`].
    ///
    /// # Cancel safety
    /// Dropping the future cancels the children.
    pub fn call_all<R: Request>(&self, requests: impl IntoIterator<Item = R>, join: Join) -> CallingAll<R::Reply> {
        CallingAll::new(self.key, collect(requests), join, returned)
    }

    /// Awaits the answers to several calls, whatever their types, as [`call_all`](Self::call_all) does.
    ///
    /// # Errors
    /// As [`Thread::call_all`].
    pub fn call_all_any<I>(&self, requests: I, join: Join) -> CallingAll<Answer>
    where
        I: IntoIterator,
        I::Item: IntoRequest,
    {
        CallingAll::new(self.key, collect(requests), join, Ok)
    }

    /// Says that all that was called before a crash, and is still wanted, was called again: the rest is given up. For
    /// listeners that [reattach](systole_core::core::Contract::reattaches).
    pub(super) fn reattached(&self) {
        if let Some(desk) = Desk::here(self.key.desk) {
            desk.tell(self.key.origin, Input::Reattached { task: self.key.task });
        }
    }

    fn await_one<T>(&self, request: impl IntoRequest, read: Read<T>) -> Calling<T> {
        let requests = collect([request]).and_then(|requests| match requests.len() {
            1 => Ok(requests),
            count => Err(failed(format!("a call awaits one request, not {count}: use call_all or call_all_any"))),
        });
        Calling::new(self.key, requests, read)
    }
}

/// The reply as a value.
fn returned<T: Payload>(answer: Answer) -> Result<T, Fault> {
    answer.decode().map_err(|error| failed(error.to_string()))
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

pub(super) fn failed(message: impl Into<Arc<str>>) -> Fault {
    Fault::new(FaultCode::Failed, message)
}
