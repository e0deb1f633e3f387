//! The thread of a handler: its calls, and its recorded values.

use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll};

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use systole_core::core::{
    Answer, AttachedNote, Attachment, AttachmentEnd, DraftEnd, Emission, EmissionKind, Failure, Input, Join,
    ListenerId, Message, ModelAnswer, Remembered,
};
#[cfg(feature = "gateway")]
use systole_core::core::{CoreId, ModelFailure, Short, Usage};
use systole_core::journal::{NoteRecord, Number};
use systole_core::protocol::Request;
#[cfg(feature = "gateway")]
use systole_core::vocab::{Amounts, Budget, Millionths};
use systole_core::vocab::{Fault, FaultCode, MessageId, ThreadId, Time};
#[cfg(feature = "gateway")]
use systole_xml::ladder::Canonical;
use systole_xml::ladder::{Raw, Repair};
use systole_xml::schema::{Draft, IntoDraft, Payload};
#[cfg(feature = "gateway")]
use tokio::sync::oneshot;

use super::calling::{Calling, CallingAll, Read};
use super::response::{Emit, call_on, call_to};
use crate::drafts::DraftSubject;
#[cfg(feature = "gateway")]
use crate::runtime::shard::command::{Command, Links};
use crate::runtime::shard::context::ShardContext;
use crate::runtime::shard::handlers::HandlerKey;
use crate::runtime::shard::restart::Rests;
use systole_store::clock::Clock;
use systole_store::entropy::Entropy;

/// The thread of the message that a handler works on, which it may call from.
///
/// A handle is a key, valid while its handler runs; it may be cloned and moved freely, but only the thread of its shard
/// can call through it.
#[derive(Debug, Clone)]
pub struct Thread {
    id: ThreadId,
    root: ThreadId,
    message_id: MessageId,
    deadline: Option<Time>,
    #[cfg(feature = "gateway")]
    is_budgeted: bool,
    history: Option<Arc<[Remembered]>>,
    /// The number of the message in the journal; 0 if there is none.
    message: Number,
    /// Notes of the handler from runs before a crash, by index.
    notes: Option<Arc<[NoteRecord]>>,
    key: HandlerKey,
}

impl Thread {
    /// Makes the thread of a message, taking the message's history.
    pub(crate) fn of(message: &mut Message, key: HandlerKey) -> Self {
        let history = std::mem::take(&mut message.history);
        let history = (!history.is_empty()).then(|| history.into());
        let mut notes = std::mem::take(&mut message.notes);
        notes.sort_unstable_by_key(|note| note.index);
        let notes = (!notes.is_empty()).then(|| notes.into());
        Self {
            id: message.thread,
            root: message.root,
            message_id: message.id,
            deadline: message.deadline,
            #[cfg(feature = "gateway")]
            is_budgeted: message.is_budgeted,
            history,
            message: message.number,
            notes,
            key,
        }
    }

    /// Attaches operations to the end of the handler, which must follow at once: they are written in the step that
    /// consumes its message. Returns them if the handler has ended.
    #[cfg(feature = "gateway")]
    pub(crate) fn attach(&self, attachment: Attachment) -> Result<(), Attachment> {
        let Some(shard_context) = ShardContext::here(self.key.shard_context) else { return Err(attachment) };
        shard_context.tell(self.key.origin, Input::Attached { invocation: self.key.invocation, attachment });
        Ok(())
    }

    /// Prepares the end of the handler, which must follow at once, by the word of a party that waits to learn whether it
    /// counts: the note is written in the step in which the handler's outcome is the answer of its thread, and `told` gets the
    /// end of that.
    pub(crate) fn conclude(
        &self,
        name: &str,
        value: &RawValue,
        told: impl FnOnce(AttachmentEnd) + Send + Sync + 'static,
    ) -> Result<(), Fault> {
        let NoteRecord { index, name, value, .. } = self.new_page(name)?.write(&value)?;
        let shard_context = ShardContext::here(self.key.shard_context).ok_or_else(gone)?;
        let note = Some(AttachedNote { index, name, value });
        let attachment = Attachment { ops: Vec::new(), note, ticket: shard_context.links.pending_acks.watch(told) };
        shard_context.tell(self.key.origin, Input::Attached { invocation: self.key.invocation, attachment });
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
    /// of the organism may happen twice, if the process ends in between. A recorded value is found by its name; equal
    /// names get their values in the order in which they were recorded, so values that are learned side by side (`join!`)
    /// need different names.
    ///
    /// # Errors
    /// A fault if the recorded value has another type, if the value has no JSON form, or if this is not the handler's own
    /// thread any more.
    pub async fn record<T, F>(&self, name: &str, learn: F) -> Result<T, Fault>
    where
        T: Serialize + DeserializeOwned,
        F: Future<Output = T>,
    {
        let learned = self.record_success(name, async { Ok::<_, Infallible>(learn.await) }).await?;
        let Ok(value) = learned;
        Ok(value)
    }

    /// Awaits a value and records it, as [`record`](Self::record) does; an error is not recorded.
    pub(crate) async fn record_success<T, E, F>(&self, name: &str, learn: F) -> Result<Result<T, E>, Fault>
    where
        T: Serialize + DeserializeOwned,
        F: Future<Output = Result<T, E>>,
    {
        let page = match self.open_note(name)? {
            Noted::Before(value) => return Ok(Ok(value)),
            Noted::Not(page) => page,
        };
        let value = match learn.await {
            Ok(value) => value,
            Err(error) => return Ok(Err(error)),
        };
        self.write_down(page.write(&value)?, None).await?;
        Ok(Ok(value))
    }

    /// Asks a model and records its answer, as [`record`](Self::record) does, with the key of the request. A handler
    /// that runs again asks anew if its request differs, and records that answer instead. A failure is not recorded.
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

    /// Reports a request to a model that the handler made itself: it is charged to the budget of the thread, and is an event.
    pub(crate) fn used(&self, answer: ModelAnswer) {
        if let Some(shard_context) = ShardContext::here(self.key.shard_context) {
            let (invocation, answer) = (self.key.invocation, Box::new(answer));
            shard_context.tell_of(self.key, Input::Used { invocation, answer });
        }
    }

    /// Reports to operators how far the handler is: an event, which no journal keeps. 4096 bytes of the text are shown.
    pub fn progress(&self, text: impl Into<Arc<str>>) {
        if let Some(shard_context) = ShardContext::here(self.key.shard_context) {
            shard_context.tell_of(self.key, Input::Progressed { invocation: self.key.invocation, text: text.into() });
        }
    }

    /// Shows what the handler has written so far of the message that it is about to send: adds text to its
    /// [draft](crate::drafts), and begins one if it has none. It has no effect, no journal keeps it, and it is gone when the
    /// handler's message is there.
    ///
    /// As a call, it works on the thread of the shard alone: a handler that blocks has no draft.
    pub fn draft(&self, text: &str) {
        if let Some(shard_context) = ShardContext::here(self.key.shard_context) {
            shard_context.draft(self.key, self.draft_subject(), text);
        }
    }

    /// Gives the draft up: text from now on is that of another one. Its readers learn that the first one is gone.
    pub fn redraft(&self) {
        self.give_draft_up(DraftEnd::Retried);
    }

    pub(crate) fn give_draft_up(&self, end: DraftEnd) {
        if let Some(shard_context) = ShardContext::here(self.key.shard_context) {
            shard_context.give_draft_up(self.key, end);
        }
    }

    fn draft_subject(&self) -> DraftSubject {
        DraftSubject { conversation: self.root, thread: self.id, message: self.message_id }
    }

    /// A way to write the draft of the handler from other threads; none outside of the thread of the organism's shard.
    #[cfg(feature = "gateway")]
    pub(crate) fn drafter(&self) -> Option<Drafter> {
        let shard_context = ShardContext::here(self.key.shard_context)?;
        let (links, shard) = (shard_context.links.clone(), shard_context.shard);
        Some(Drafter { links, shard, key: self.key, subject: self.draft_subject() })
    }

    /// Stops the handler's time while it waits for a process of its listener, or starts it again.
    pub(crate) fn stall(&self, stalled: bool) {
        if let Some(shard_context) = ShardContext::here(self.key.shard_context) {
            shard_context.stall(self.key, stalled);
        }
    }

    /// Notes that the handler waits for a party elsewhere, until the answer to one of its calls comes: the end of a durable
    /// organism doesn't wait for it.
    pub(crate) fn waits_elsewhere(&self) {
        if let Some(shard_context) = ShardContext::here(self.key.shard_context) {
            shard_context.tell_of(self.key, Input::WaitsElsewhere { invocation: self.key.invocation });
        }
    }

    /// Records how many runs of the handler have ended with their process.
    pub(crate) fn attempted(&self, attempts: u8) {
        if let Some(shard_context) = ShardContext::here(self.key.shard_context) {
            shard_context.tell_of(self.key, Input::Attempted { invocation: self.key.invocation, attempts });
        }
    }

    /// Keeps the end of what a program wrote on standard error with the message, which is about to fail.
    pub(crate) fn said(&self, text: impl Into<Arc<str>>) {
        let text = text.into();
        if let Some(shard_context) = ShardContext::here(self.key.shard_context).filter(|_| !text.trim().is_empty()) {
            shard_context.tell_of(self.key, Input::Said { invocation: self.key.invocation, text });
        }
    }

    /// Tells operators that the bytes of calls had to be repaired.
    pub(crate) fn repaired(&self, repairs: &[Repair], text: Raw) {
        if repairs.is_empty() {
            return;
        }
        if let Some(shard_context) = ShardContext::here(self.key.shard_context) {
            let (invocation, repairs) = (self.key.invocation, repairs.to_vec());
            shard_context.tell_of(self.key, Input::Repaired { invocation, repairs, text });
        }
    }

    /// Puts a summary in place of the oldest messages of the thread's history, up to a place, or nothing, for a reason.
    #[cfg(feature = "gateway")]
    pub(crate) fn condense(&self, until: u32, summary: Result<Canonical, Arc<str>>) {
        if let Some(shard_context) = ShardContext::here(self.key.shard_context) {
            let invocation = self.key.invocation;
            shard_context.tell_of(self.key, Input::Condensed { invocation, until, summary });
        }
    }

    /// Shows operators the end of a text that a model writes.
    #[cfg(feature = "gateway")]
    pub(crate) fn grown(&self, text: Arc<str>) {
        if let Some(shard_context) = ShardContext::here(self.key.shard_context) {
            shard_context.tell_of(self.key, Input::Grown { invocation: self.key.invocation, text });
        }
    }

    /// Tells the cores that nobody can answer the questions of a listener here.
    pub(crate) fn unattended(&self, listener: ListenerId) {
        if let Some(shard_context) = ShardContext::here(self.key.shard_context) {
            shard_context.announce_unattended(listener);
        }
    }

    /// Returns the rests of listeners, as operators see them.
    pub(crate) fn rests(&self) -> Rests {
        ShardContext::here(self.key.shard_context)
            .map(|shard_context| shard_context.links.rests.clone())
            .unwrap_or_default()
    }

    /// Waits until the organism ends without a journal.
    pub(crate) async fn ends_unkept(&self) {
        match ShardContext::here(self.key.shard_context).map(|shard_context| shard_context.links.clone()) {
            Some(links) => links.ends_unkept().await,
            None => std::future::pending().await,
        }
    }

    /// Reserves amounts for a request to a model. `is_last`: the request takes what is left, and the thread ends with this
    /// fault unless the handler answers then.
    #[cfg(feature = "gateway")]
    pub(crate) async fn reserve(&self, amounts: Amounts, is_last: Option<Fault>) -> Result<(), Box<Short>> {
        match self.is_budgeted {
            true => reserve(self.key, amounts, is_last).await,
            false => Ok(()),
        }
    }

    /// Reserves all that is left of the budget of the thread, for a request elsewhere that may use it; `None` without a budget.
    #[cfg(feature = "gateway")]
    pub(crate) async fn reserve_rest(&self) -> Option<Budget> {
        // More than any budget has.
        let mut wanted = Amounts { tokens: u64::MAX, cost: Millionths(u64::MAX), calls: u64::MAX, threads: u64::MAX };
        let mut rest = None;
        // Other threads may take some of it meanwhile.
        while let Err(short) = self.reserve(wanted, None).await {
            (wanted, rest) = (short.left.into(), Some(short.left));
        }
        rest
    }

    /// Takes up what was reserved for a request before a crash, if the same request is still in flight.
    #[cfg(feature = "gateway")]
    pub(crate) fn reclaim(&self, amounts: Amounts) {
        if let Some(shard_context) = ShardContext::here(self.key.shard_context).filter(|_| self.is_budgeted) {
            shard_context.tell_of(self.key, Input::Reclaimed { invocation: self.key.invocation, amounts });
        }
    }

    /// Charges what a request elsewhere used instead of what was reserved for it, in the step that writes a note of that name.
    /// Comes back when both are durable.
    #[cfg(feature = "gateway")]
    pub(crate) async fn settle(&self, name: &str, used: Amounts) -> Result<(), Fault> {
        let note = self.new_page(name)?.write(&true)?;
        let index = note.index;
        ShardContext::here(self.key.shard_context).ok_or_else(gone)?.charge_with(self.key, note, used);
        std::future::poll_fn(|cx| self.poll_note(index, cx)).await;
        Ok(())
    }

    /// Returns whether the message of the handler runs again if its future is dropped now: the organism leaves it to its next
    /// start, or its conversation moves.
    #[cfg(feature = "gateway")]
    pub(crate) fn runs_again(&self) -> bool {
        ShardContext::here(self.key.shard_context).is_none_or(|shard_context| shard_context.runs_again())
    }

    /// Charges a request to a model that got no answer, instead of what was reserved for it.
    #[cfg(feature = "gateway")]
    pub(crate) fn charge(&self, usage: Usage) {
        if let Some(shard_context) = ShardContext::here(self.key.shard_context).filter(|_| self.is_budgeted) {
            shard_context.tell_of(self.key, Input::Charged { invocation: self.key.invocation, usage });
        }
    }

    /// Reports a request to a model that got no answer to operators.
    #[cfg(feature = "gateway")]
    pub(crate) fn unanswered(&self, attempt: ModelFailure) {
        if let Some(shard_context) = ShardContext::here(self.key.shard_context) {
            let (invocation, attempt) = (self.key.invocation, Box::new(attempt));
            shard_context.tell_of(self.key, Input::Unanswered { invocation, attempt });
        }
    }

    /// All values that the handler recorded before a restart, in order: its next new note stands behind them.
    pub(crate) fn notes(&self) -> Result<Vec<(String, Box<RawValue>)>, Fault> {
        self.before().iter().map(|note| Ok((note.name.to_string(), read(note)?))).collect()
    }

    /// Sends a value to the journal, as a new note; the index of that.
    pub(crate) fn send_note(&self, name: &str, value: &RawValue) -> Result<u32, Fault> {
        self.send(self.new_page(name)?.write(&value)?, None)
    }

    /// Polls whether a note is durable.
    pub(crate) fn poll_note(&self, index: u32, cx: &mut Context<'_>) -> Poll<()> {
        match ShardContext::here(self.key.shard_context) {
            Some(shard_context) => shard_context.poll_note(self.key, index, cx),
            None => Poll::Ready(()),
        }
    }

    fn send(&self, note: NoteRecord, answer: Option<Box<ModelAnswer>>) -> Result<u32, Fault> {
        let index = note.index;
        ShardContext::here(self.key.shard_context).ok_or_else(gone)?.note(self.key, note, answer);
        Ok(index)
    }

    /// Comes back when a note is durable.
    async fn write_down(&self, note: NoteRecord, answer: Option<Box<ModelAnswer>>) -> Result<(), Fault> {
        let index = self.send(note, answer)?;
        std::future::poll_fn(|cx| self.poll_note(index, cx)).await;
        Ok(())
    }

    /// Opens the handler's next note of that name: the value from a run before a restart, or an empty page.
    pub(crate) fn open_note<T: DeserializeOwned>(&self, name: &str) -> Result<Noted<T>, Fault> {
        let (before, page) = self.turn_page(name)?;
        Ok(before.map_or(Noted::Not(page), Noted::Before))
    }

    /// The value of the handler's next note of that name, if there is one since before a restart, and its place, or that of
    /// a new one.
    fn turn_page<T: DeserializeOwned>(&self, name: &str) -> Result<(Option<T>, Page), Fault> {
        let shard_context = ShardContext::here(self.key.shard_context).ok_or_else(gone)?;
        match shard_context.next_recorded(self.key, name, self.before()) {
            Some(note) => Ok((Some(read(note)?), Page { message: self.message, index: note.index, name: name.into() })),
            None => Ok((None, self.new_page(name)?)),
        }
    }

    /// The place of a new note.
    fn new_page(&self, name: &str) -> Result<Page, Fault> {
        let first = self.before().last().map_or(0, |note| note.index + 1);
        let index = ShardContext::here(self.key.shard_context)
            .and_then(|shard_context| shard_context.new_note(self.key, first))
            .ok_or_else(gone)?;
        Ok(Page { message: self.message, index, name: name.into() })
    }

    /// The notes of runs before a restart, by index.
    fn before(&self) -> &[NoteRecord] {
        self.notes.as_deref().unwrap_or_default()
    }

    /// Returns the time, [recorded](Self::record).
    ///
    /// # Errors
    /// As [`record`](Self::record).
    pub async fn now(&self) -> Result<Time, Fault> {
        let shard_context = self.key.shard_context;
        let nanos = self.record("now", async move {
            ShardContext::here(shard_context).map_or(0, |shard_context| shard_context.clock.now().as_nanos())
        });
        nanos.await.map(Time::from_nanos)
    }

    /// Returns 64 random bits, [recorded](Self::record).
    ///
    /// # Errors
    /// As [`record`](Self::record).
    pub async fn random(&self) -> Result<u64, Fault> {
        self.record("random", async { Entropy::Real.bits() }).await
    }

    /// A secret of a text, the same in each run of a handler: only who has the key of the organism can guess it.
    #[cfg(feature = "gateway")]
    pub(crate) fn secret_of(&self, text: &str) -> Result<[u8; 32], Failure> {
        let shard_context = ShardContext::here(self.key.shard_context);
        let secret = shard_context.map(|shard_context| shard_context.key.derive_secret(text));
        secret.ok_or_else(outside)
    }

    /// Returns the clock of the organism.
    ///
    /// # Errors
    /// [`Failure`] outside of the thread of the organism's shard.
    pub(crate) fn clock(&self) -> Result<Clock, Failure> {
        let shard_context = ShardContext::here(self.key.shard_context);
        let clock = shard_context.map(|shard_context| shard_context.clock.clone());
        clock.ok_or_else(outside)
    }

    /// Awaits the reply to a request.
    ///
    /// Nothing is sent before the first poll. While the handler waits, it is parked: it holds no slot and its timeout
    /// is suspended.
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

    /// Awaits the answer to one call, of any type: for payloads that are no [`Request`], and for the output of
    /// [`call_to`](crate::runtime::call_to()) and its kin.
    ///
    /// # Errors
    /// As [`Thread::call`].
    pub fn call_any(&self, request: impl IntoRequest) -> Calling<Answer> {
        self.await_one(request, Ok)
    }

    /// Awaits the replies to several requests of one type, until `join` is decided; losers are cancelled.
    ///
    /// # Errors
    /// The fault that decided the join; an immediate one as in [`Thread::call`].
    ///
    /// # Cancel safety
    /// Dropping the future cancels the children.
    pub fn call_all<R: Request>(&self, requests: impl IntoIterator<Item = R>, join: Join) -> CallingAll<R::Reply> {
        CallingAll::new(self.key, collect(requests), join, returned)
    }

    /// Awaits the answers to several calls, of any types, as [`call_all`](Self::call_all) does.
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

    /// Reports that all calls from before a crash that are still wanted have been made again; the others are dropped.
    /// For listeners that [reattach](systole_core::core::OnRestart::Reattach).
    pub(crate) fn reattached(&self) {
        if let Some(shard_context) = ShardContext::here(self.key.shard_context) {
            shard_context.tell(self.key.origin, Input::Reattached { invocation: self.key.invocation });
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

/// A way to the draft of a handler, from other threads.
#[cfg(feature = "gateway")]
#[derive(Clone)]
pub(crate) struct Drafter {
    links: Links,
    shard: CoreId,
    key: HandlerKey,
    subject: DraftSubject,
}

#[cfg(feature = "gateway")]
impl Drafter {
    /// Adds text to the draft, or to another one if it is to begin `anew`; whether the handler is still there.
    pub(crate) async fn write(&self, text: String, anew: bool) -> bool {
        let (tell, told) = oneshot::channel();
        let (key, subject) = (self.key, self.subject);
        self.links.send(self.shard, Command::Draft { key, subject, text, anew, tell });
        told.await.unwrap_or(false)
    }
}

/// The reply as a value.
fn returned<T: Payload>(answer: Answer) -> Result<T, Fault> {
    answer.decode().map_err(|error| failed(error.to_string()))
}

/// A request that a handler can await: a payload, or the result of [`crate::runtime::call`] and its relatives.
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
pub(crate) enum Noted<T> {
    /// The value from a run before a restart.
    Before(T),
    /// An empty page.
    Not(Page),
}

/// A note that holds for one key alone.
#[cfg(feature = "gateway")]
#[derive(serde::Serialize, serde::Deserialize)]
struct Keyed<T> {
    key: String,
    value: T,
}

/// The position of a new note.
pub(crate) struct Page {
    message: Number,
    index: u32,
    name: Arc<str>,
}

impl Page {
    /// Writes the note.
    pub(crate) fn write<T: Serialize>(self, value: &T) -> Result<NoteRecord, Fault> {
        let Self { message, index, name } = self;
        let json =
            serde_json::to_string(value).map_err(|error| failed(format!("'{name}' can't be recorded: {error}")))?;
        Ok(NoteRecord { message, index, name, value: json.into() })
    }
}

fn read<T: DeserializeOwned>(note: &NoteRecord) -> Result<T, Fault> {
    serde_json::from_str(&note.value)
        .map_err(|error| failed(format!("the recorded value of '{}' has another type: {error}", note.name)))
}

fn outside() -> Failure {
    Failure::new("the handler runs outside of its organism")
}

fn gone() -> Fault {
    failed("a value can only be recorded by its handler, on its own thread and while it runs")
}

/// Reserves amounts for a request of a handler. `is_last`: the request takes what is left, and the thread ends with this
/// fault unless the handler answers then.
#[cfg(feature = "gateway")]
async fn reserve(key: HandlerKey, amounts: Amounts, is_last: Option<Fault>) -> Result<(), Box<Short>> {
    let Some(shard_context) = ShardContext::here(key.shard_context) else { return Ok(()) };
    if shard_context.reserves(key) {
        shard_context.tell(key.origin, Input::Reserve { invocation: key.invocation, amounts, is_last });
    }
    drop(shard_context);
    std::future::poll_fn(|cx| match ShardContext::here(key.shard_context) {
        Some(shard_context) => shard_context.poll_reserved(key, cx),
        // The organism has ended, and this handler with it.
        None => Poll::Ready(Ok(())),
    })
    .await
}

pub(crate) fn failed(message: impl Into<Arc<str>>) -> Fault {
    Fault::new(FaultCode::Failed, message)
}
