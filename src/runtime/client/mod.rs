//! Clients and their conversations.

pub(super) mod asking;

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use systole_core::core::{
    Answer, Arrival, Attachment, AttachmentEnd, ClientId, Egress, Emission, ExitPlace, Failure, Injected, Input,
    OpenFilter, Overloaded, ReadMessage, read_label,
};
use systole_core::journal::{Op, SubmissionRecord};
use systole_core::protocol::Request;
use systole_core::vocab::{MessageId, Name, ThreadId, Time, ns};
use systole_xml::ladder::{Canonical, Raw};
use systole_xml::schema::Draft;
use tokio::sync::mpsc::WeakUnboundedSender;
use tokio::sync::oneshot;

use crate::drafts::Drafts;
use crate::runtime::handler::response::call_to;
use crate::runtime::handler::thread::IntoRequest;
use crate::runtime::shard::command::Command;
use crate::runtime::shard::egress::{EgressReceiver, EgressSender, Unread, way};
use crate::runtime::shard::shared::{ClientEnd, Shared};
use asking::{Asking, returned};

/// A client of an organism, under its name.
///
/// Clones are handles of the same client: a message to the client outside of its [`Conversation`]s goes to the clone
/// that reads first.
#[derive(Clone)]
pub struct Client {
    shared: Arc<Shared>,
    id: ClientId,
    name: Name,
    end: Arc<ClientEnd>,
    patience: Option<Duration>,
    remote: bool,
}

/// Refusal of a message. No part of it was taken.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SendError {
    /// The organism is full. Requests to the core are taken even then, a few at a time.
    #[error(transparent)]
    Overloaded(#[from] Overloaded),
    /// As many answers as the client may have are unread or still to come: it must read first. `limits: egress` and
    /// `egress_bytes` bound them.
    #[error("as many answers as may wait for this client are unread or still to come: read before sending more")]
    Unread,
    /// The log of the journal has as many bytes as it may have, because another program reads the journal in one
    /// transaction.
    #[error("the journal's log is full, because another program reads the journal in one transaction")]
    LogFull,
    /// The organism takes no more messages, or the conversation has closed.
    #[error("the organism or the conversation has closed")]
    Closed,
    /// The message can't be written.
    #[error("the message can't be written: {reason}")]
    Unwritable {
        /// The reason.
        reason: Arc<str>,
    },
}

systole_core::vocab::debug_is_display!(SendError);

/// Options of an injected message: the sender of its answers, the operations that are written with it, the message as
/// its entrance has read it, and what holds its answer.
#[derive(Default)]
struct Way {
    sender: Option<EgressSender>,
    attachment: Option<Attachment>,
    read: Option<ReadMessage>,
    exit: ExitKind,
}

/// The store of the answers to a message until the client reads them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum ExitKind {
    /// The memory of the organism: the message is taken only with a place for its answer.
    #[default]
    Memory,
    /// The journal, where the client finds them at any time: its reader only passes them on.
    #[cfg(feature = "gateway")]
    Journal,
}

impl Client {
    pub(crate) fn new(shared: Arc<Shared>, id: ClientId) -> Self {
        let (name, end) = (shared.blueprint()[id].name.clone(), shared.client(id));
        Self { shared, id, name, end, patience: None, remote: false }
    }

    /// Returns the name of the client.
    pub fn name(&self) -> &Name {
        &self.name
    }

    /// Returns a handle whose messages have a deadline of `patience` after they are sent.
    #[must_use]
    pub fn with_deadline(self, patience: Duration) -> Self {
        Self { patience: Some(patience), ..self }
    }

    /// Returns a handle whose messages count as coming over a network.
    #[must_use]
    pub fn over_network(self) -> Self {
        Self { remote: true, ..self }
    }

    /// Sends the bytes of one envelope, dirty or not. It continues the conversation that its `<thread>` names, or opens
    /// one; the answers come to [`receive`](Self::receive).
    ///
    /// Returns the id of the conversation, if it opens one.
    ///
    /// # Errors
    /// [`SendError`] if the envelope was not taken.
    pub fn send(&self, envelope: impl Into<Bytes>) -> Result<ThreadId, SendError> {
        let root = self.shared.root();
        self.inject(root, envelope.into(), false, Way::default())?;
        Ok(root)
    }

    /// Sends the bytes of one envelope as [`send`](Self::send) does, as the last message of that conversation, which
    /// closes when its threads have, rather than 15 minutes later.
    ///
    /// # Errors
    /// [`SendError`] if the envelope was not taken.
    pub fn send_last(&self, envelope: impl Into<Bytes>) -> Result<ThreadId, SendError> {
        let root = self.shared.root();
        self.inject(root, envelope.into(), true, Way::default())?;
        Ok(root)
    }

    /// Sends the bytes of one envelope as [`send_last`](Self::send_last) does, under a key that is written in the step that
    /// takes them: [`Reader::keys`](crate::journal::Reader::keys) has the keys of what was sent, also after a
    /// crash, until retention deletes them. A key that was used before is not refused.
    ///
    /// # Errors
    /// [`SendError`] if the envelope was not taken.
    pub fn send_under(&self, key: Arc<str>, envelope: impl Into<Bytes>) -> Result<ThreadId, SendError> {
        let (root, envelope) = (self.shared.root(), envelope.into());
        let (id, client) = (MessageId::from_uuid(self.shared.entropy.random()), self.name().clone());
        let key = Some((key, *blake3::hash(&envelope).as_bytes()));
        let submission = SubmissionRecord { id, client, root, key };
        self.inject_with(root, envelope, vec![Op::Submitted(submission)], Way::default())?;
        Ok(root)
    }

    /// Draws the id of a new conversation.
    pub(crate) fn root(&self) -> ThreadId {
        self.shared.root()
    }

    /// Sends the bytes of one envelope as the only message of a conversation of that id, with operations that are written in the
    /// step that takes them. Returns a future that is ready when the step is durable.
    /// `by_journal`: the answers are found in the journal, and need no place in the exit.
    ///
    /// # Errors
    /// [`SendError`] if they were not taken. After [`SendError::Closed`] of the future they may still have been, if the organism
    /// has ended.
    pub(crate) fn send_with(
        &self,
        root: ThreadId,
        envelope: Bytes,
        ops: Vec<Op>,
        by_journal: bool,
    ) -> Result<impl Future<Output = Result<(), SendError>> + Send + use<>, SendError> {
        #[cfg(feature = "gateway")]
        let exit = if by_journal { ExitKind::Journal } else { ExitKind::Memory };
        // Without the gateway nobody finds answers in the journal.
        #[cfg(not(feature = "gateway"))]
        let (exit, _) = (ExitKind::Memory, by_journal);
        let taken = self.inject_with(root, envelope, ops, Way { exit, ..Way::default() })?;
        Ok(async { taken.await.map_err(|_| SendError::Closed) })
    }

    /// Returns whether one of these conversations is open.
    pub(crate) async fn has_open(&self, among: HashSet<ThreadId>) -> bool {
        if among.is_empty() {
            return false;
        }
        let wanted = OpenFilter { limit: 1, among: Some(Arc::new(among)), ..OpenFilter::default() };
        let open = self.shared.look(move |core| !core.open_conversations(&wanted).is_empty()).await;
        open.contains(&true)
    }

    /// Returns whether the organism takes no more messages.
    pub(crate) fn is_closed(&self) -> bool {
        self.shared.closed.load(Ordering::Acquire)
    }

    /// Reads the id that the sender of an envelope gave it; `None` if it has none, or is no message of this client.
    pub fn label(&self, envelope: impl Into<Bytes>) -> Option<Box<str>> {
        let present = self.shared.present();
        read_label(&Raw::new(envelope.into()), self.id, &present.blueprint, &present.catalog)
    }

    /// Declares that no message follows in a conversation that [`send`](Self::send) began: it closes when its threads have,
    /// rather than 15 minutes later. Has no effect on one that has closed.
    pub fn leave(&self, conversation: ThreadId) {
        self.shared.send_to(conversation, Command::Leave { client: self.id, root: conversation, cancel: false });
    }

    /// Cancels everything in a conversation that [`send`](Self::send) began, as [`Conversation::cancel`] does. Has no effect
    /// on one that has closed.
    pub fn cancel(&self, conversation: ThreadId) {
        self.shared.send_to(conversation, Command::Leave { client: self.id, root: conversation, cancel: true });
    }

    /// Sends a request in a conversation of its own, and returns the id of that; the answers come to
    /// [`receive`](Self::receive).
    ///
    /// # Errors
    /// [`SendError`] if the request was not taken.
    pub fn tell(&self, request: impl IntoRequest) -> Result<ThreadId, SendError> {
        let root = self.shared.root();
        self.inject(root, self.write(request.into_request())?, true, Way::default())?;
        Ok(root)
    }

    /// Sends a request as [`tell`](Self::tell) does, and waits until it is durable: in the journal, if there is one, or
    /// refused by a fault that is on its way back.
    ///
    /// # Errors
    /// [`SendError`] if the request was not taken. After [`SendError::Closed`] it may still have been taken, if the
    /// organism ended in the meantime.
    ///
    /// # Cancel safety
    /// Once polled, the request is sent even if the future is dropped.
    pub async fn post(&self, request: impl IntoRequest) -> Result<ThreadId, SendError> {
        let root = self.shared.root();
        let envelope = self.write(request.into_request())?;
        let taken = self.inject_with(root, envelope, Vec::new(), Way::default())?;
        taken.await.map_err(|_| SendError::Closed)?;
        Ok(root)
    }

    /// Sends the bytes of one envelope, maybe read already, and nothing else, in a conversation of that id. Returns a
    /// future that is ready when they are durable in the journal, where there is one, or when their fault is on its way
    /// back.
    ///
    /// # Errors
    /// [`SendError`] if they were not taken. After [`SendError::Closed`] they may still have been.
    #[cfg(feature = "gateway")]
    pub(crate) fn hand_over(
        &self,
        root: ThreadId,
        (envelope, read): (Bytes, Option<ReadMessage>),
        submission: Option<SubmissionRecord>,
    ) -> Result<impl Future<Output = Result<(), SendError>> + Send + use<>, SendError> {
        let ops = submission.map(Op::Submitted).into_iter().collect();
        let way = Way { read, exit: ExitKind::Journal, ..Way::default() };
        let taken = self.inject_with(root, envelope, ops, way)?;
        Ok(async { taken.await.map_err(|_| SendError::Closed) })
    }

    /// Receives the next message as [`receive`](Self::receive) does, without marking it as read.
    pub async fn receive_unread(&self) -> Option<Unread> {
        self.end.receiver.lock().await.next_unread().await
    }

    /// Sends a request in a conversation of its own and waits for its reply.
    ///
    /// # Errors
    /// [`AskError`](crate::runtime::AskError): the fault that came as the answer, or why none could come.
    ///
    /// # Cancel safety
    /// Nothing is sent before the first poll. Dropping the future cancels the conversation.
    pub fn ask<R: Request>(&self, request: R) -> Asking<R::Reply> {
        Asking::new(self.clone(), request.into_request(), returned)
    }

    /// Asks one listener, by name, as [`ask`](Self::ask) does.
    ///
    /// # Errors
    /// As [`ask`](Self::ask).
    pub fn ask_to<R: Request>(&self, listener: &str, request: R) -> Asking<R::Reply> {
        Asking::new(self.clone(), call_to(listener, request).into_request(), returned)
    }

    /// Sends a request as [`ask`](Self::ask) does and waits for its first answer, of any type: for payloads that are no
    /// [`Request`], and for the output of [`call_to`](super::call_to()).
    ///
    /// # Errors
    /// As [`ask`](Self::ask).
    pub fn ask_any(&self, request: impl IntoRequest) -> Asking<Answer> {
        Asking::new(self.clone(), request.into_request(), Ok)
    }

    /// Makes a conversation, which opens with its first message.
    pub fn converse(&self) -> Conversation {
        let (sender, receiver) = way();
        Conversation {
            client: self.clone(),
            root: self.shared.root(),
            receiver,
            sender: sender.downgrade(),
            unopened: Some(sender),
            give_up: false,
        }
    }

    /// Receives the next message outside of this client's [`Conversation`]s; `None` when the organism has ended.
    ///
    /// A message counts as read when the next one is requested, by this client or a clone of it, or when the organism
    /// ends in order: a durable organism that is killed before delivers it again, under the same [`Egress::number`].
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing.
    pub async fn receive(&self) -> Option<Egress> {
        self.end.receiver.lock().await.next().await
    }

    /// Receives the next such message, if there is one.
    pub fn try_receive(&self) -> Option<Egress> {
        self.end.receiver.try_lock().ok()?.try_next()
    }

    /// Receives the next such message, if there is one, without marking it as read.
    pub fn try_receive_unread(&self) -> Option<Unread> {
        self.end.receiver.try_lock().ok()?.try_next_unread()
    }

    fn write(&self, requests: Result<Vec<Emission>, Failure>) -> Result<Bytes, SendError> {
        let deadline = self.patience.map(|patience| self.shared.clock.now().after(patience));
        ClientEnvelope { from: self.name(), to: None, id: None, deadline }.write(requests)
    }

    /// Writes the envelope of a payload, with an id of the message, for a listener or for all that take it.
    pub(crate) fn envelope(&self, to: Option<&Name>, id: MessageId, payload: &Canonical) -> Bytes {
        ClientEnvelope { from: self.name(), to, id: Some(id), deadline: None }.around(payload.as_str())
    }

    /// Sends the last envelope of a conversation, with operations that are written in the step that takes it; the receiver
    /// waits for that step.
    fn inject_with(
        &self,
        root: ThreadId,
        envelope: Bytes,
        ops: Vec<Op>,
        way: Way,
    ) -> Result<oneshot::Receiver<()>, SendError> {
        let (ticket, taken) = self.shared.links.pending_acks.issue();
        let way = Way { attachment: Some(Attachment { ops, note: None, ticket }), ..way };
        if let Err(error) = self.inject(root, envelope, true, way) {
            self.shared.links.pending_acks.resolve(ticket, AttachmentEnd::Dropped);
            return Err(error);
        }
        Ok(taken)
    }

    fn inject(&self, root: ThreadId, envelope: Bytes, last: bool, way: Way) -> Result<(), SendError> {
        let Way { sender, attachment, read, exit } = way;
        if self.shared.closed.load(Ordering::Acquire) {
            return Err(SendError::Closed);
        }
        if self.shared.log_full.get() {
            return Err(SendError::LogFull);
        }
        let place = self.place(envelope.len(), exit)?;
        let several = self.shared.several_clients.load(Ordering::Relaxed);
        let permit = self.shared.gauge.admit_entry(&envelope, Some(&self.end.uses).filter(|_| several))?;
        let (client, remote) = (self.id, self.remote);
        let message = read.map_or_else(|| Raw::new(envelope).into(), |read| Arrival::Read(Box::new(Ok(read))));
        let input = Input::Injected(Injected { client, message, root, remote, last, attachment, permit, place });
        let command = match sender {
            Some(sender) => Command::Open { root, sender, input },
            None => Command::Core(input),
        };
        if self.shared.send_to(root, command) { Ok(()) } else { Err(SendError::Closed) }
    }
}

impl Client {
    /// Takes the place of an answer in the exit, where one is reserved.
    fn place(&self, message: usize, exit: ExitKind) -> Result<Option<ExitPlace>, SendError> {
        let own = &self.end.exit;
        match exit {
            ExitKind::Memory => own.reserve(message).map(Some).ok_or(SendError::Unread),
            #[cfg(feature = "gateway")]
            ExitKind::Journal if own.has_room() => Ok(None),
            #[cfg(feature = "gateway")]
            ExitKind::Journal => Err(SendError::Unread),
        }
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("name", self.name()).finish_non_exhaustive()
    }
}

/// A conversation of a client: its messages into one root, and the messages that leave there.
///
/// Each message opens a child of its own, in parallel with earlier ones. Dropping the value ends the reading: the
/// conversation closes when it has no open child.
pub struct Conversation {
    client: Client,
    root: ThreadId,
    receiver: EgressReceiver,
    sender: WeakUnboundedSender<Unread>,
    unopened: Option<EgressSender>,
    give_up: bool,
}

impl Conversation {
    /// Returns the id of the conversation.
    pub fn id(&self) -> ThreadId {
        self.root
    }

    /// Reads the drafts of the conversation from now on: what its handlers have written so far of messages that are not there
    /// yet. They end with the conversation.
    pub fn drafts(&self) -> Drafts {
        self.client.shared.drafts.read(self.root, None)
    }

    /// Sends a request.
    ///
    /// # Errors
    /// [`SendError`] if the request was not taken; [`SendError::Closed`] also if the conversation has closed, 15
    /// minutes after its last message.
    pub fn send(&mut self, request: impl IntoRequest) -> Result<(), SendError> {
        let envelope = self.client.write(request.into_request())?;
        self.put(envelope, false)
    }

    /// Sends the one request of the conversation, which is given up if it is dropped before [`keep`](Self::keep).
    pub(crate) fn send_only(&mut self, requests: Result<Vec<Emission>, Failure>) -> Result<(), SendError> {
        self.give_up = true;
        let envelope = self.client.write(requests)?;
        self.put(envelope, true)
    }

    /// Lets the conversation go on when this is dropped.
    pub(crate) fn keep(&mut self) {
        self.give_up = false;
    }

    /// Lets the conversation go on when this is dropped: its further messages come to the client. Returns one that has come
    /// before.
    pub(crate) async fn hand_over(&mut self) -> Option<Egress> {
        let (tell, told) = oneshot::channel();
        self.keep();
        self.client.shared.send_to(self.root, Command::HandOver { root: self.root, tell });
        // It fails with the organism.
        let _ = told.await;
        self.try_receive()
    }

    /// Sends the bytes of the one envelope of the conversation, which is given up if it is dropped before
    /// [`keep`](Self::keep).
    pub(crate) fn send_only_bytes(&mut self, envelope: Bytes) -> Result<(), SendError> {
        self.give_up = true;
        self.put(envelope, true)
    }

    /// Sends the bytes of one envelope, dirty or not.
    ///
    /// # Errors
    /// As [`send`](Self::send).
    pub fn send_bytes(&mut self, envelope: impl Into<Bytes>) -> Result<(), SendError> {
        self.put(envelope.into(), false)
    }

    /// Sends the bytes of the last envelope of the conversation, dirty or not: it closes when its threads have.
    ///
    /// # Errors
    /// As [`send`](Self::send).
    pub fn send_last(&mut self, envelope: impl Into<Bytes>) -> Result<(), SendError> {
        self.put(envelope.into(), true)
    }

    /// Receives the next message that leaves; `None` when the conversation has closed.
    ///
    /// Waits for ever if nothing was sent. A message counts as read when the next one is requested or the conversation
    /// is dropped: a durable organism that is killed before delivers it again, to [`Client::receive`].
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing.
    pub async fn receive(&mut self) -> Option<Egress> {
        self.receiver.next().await
    }

    /// Receives the next message, if there is one.
    pub fn try_receive(&mut self) -> Option<Egress> {
        self.receiver.try_next()
    }

    /// Cancels everything in the conversation.
    pub fn cancel(mut self) {
        self.give_up = true;
    }

    fn put(&mut self, envelope: Bytes, last: bool) -> Result<(), SendError> {
        let sender = self.unopened.clone().or_else(|| self.sender.upgrade()).ok_or(SendError::Closed)?;
        let way = Way { sender: Some(sender), ..Way::default() };
        self.client.inject(self.root, envelope, last, way)?;
        self.unopened = None;
        Ok(())
    }
}

impl Drop for Conversation {
    fn drop(&mut self) {
        if self.unopened.is_none() {
            let leave = Command::Leave { client: self.client.id, root: self.root, cancel: self.give_up };
            self.client.shared.send_to(self.root, leave);
        }
    }
}

impl fmt::Debug for Conversation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Conversation").field("client", self.client.name()).field("id", &self.root).finish()
    }
}

/// Metadata that a client adds to a request.
struct ClientEnvelope<'a> {
    from: &'a Name,
    to: Option<&'a Name>,
    id: Option<MessageId>,
    deadline: Option<Time>,
}

impl ClientEnvelope<'_> {
    /// Writes the envelope; the pump parses it like that of any other sender.
    fn write(&self, requests: Result<Vec<Emission>, Failure>) -> Result<Bytes, SendError> {
        let unwritable = |reason: &dyn ToString| SendError::Unwritable { reason: reason.to_string().into() };
        let mut requests = requests.map_err(|failure| unwritable(&failure.message))?;
        let (Some(Emission { to, thread: None, payload, .. }), true) = (requests.pop(), requests.is_empty()) else {
            return Err(unwritable(&"a client sends one request at a time, to no thread of a listener"));
        };
        let payload = match payload {
            Draft::Canonical(payload) => payload,
            Draft::Proved(proof) => proof.payload().clone(),
            Draft::Unencodable(error) => return Err(unwritable(&error)),
            Draft::NoEnvelope(error) => return Err(unwritable(&error)),
        };
        Ok(ClientEnvelope { to: to.as_ref(), ..*self }.around(payload.as_str()))
    }

    fn around(&self, payload: &str) -> Bytes {
        // The envelope uses a prefix, so that it declares no namespace around the payload that would change the meaning
        // of names in it. No text below needs escaping.
        let (envelope, meta) = (ns::ENVELOPE, ns::SYSTOLE_META);
        let Self { from, to, id, deadline } = self;
        let mut text = format!("<e:message xmlns:e=\"{envelope}\"><e:meta><e:from>{from}</e:from>");
        if let Some(to) = to {
            text += &format!("<e:to>{to}</e:to>");
        }
        if let Some(id) = id {
            text += &format!("<m:id xmlns:m=\"{meta}\">{id}</m:id>");
        }
        if let Some(deadline) = deadline {
            text += &format!("<m:deadline xmlns:m=\"{meta}\">{deadline}</m:deadline>");
        }
        text += "</e:meta>";
        text += payload;
        text += "</e:message>";
        text.into()
    }
}
