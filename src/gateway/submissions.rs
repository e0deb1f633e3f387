//! Messages that clients submit, on their way into the organism, and their answers.
//!
//! A submission is the injected message: the step of the core that takes it writes the submission, its idempotency key
//! and the threads that it opens, all of them or none, and is acknowledged then. The answers to a submission are the
//! messages that left its conversation; the journal keeps both.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use systole_core::core::{Egress, Party, ReadMessage};
use systole_core::journal::{MailRecord, Number, SubmissionRecord};
use systole_core::mailbox::MailboxInput;
use systole_core::vocab::{IdKey, MessageId, Name, ThreadId};
use tokio::sync::{Notify, watch};

use super::service::{MailboxService, UNPLACED};
use crate::journal::{Query, QueryError, Room, SentAnswer};
use crate::runtime::{Client, Organism, SendError, Unread};

/// Submissions of all clients that come in over the network.
pub(super) struct Submissions {
    mailboxes: MailboxService,
    query: Arc<dyn Query>,
    ids: IdKey,
    organism: Arc<Organism>,
    /// Clients whose answers go elsewhere.
    others: HashSet<String>,
    /// The clients whose answers are collected.
    clients: Mutex<HashMap<Name, Client>>,
    /// Room for the promises to clients.
    room: Option<Arc<Room>>,
    /// Mailboxes that also get the answers to a client, by client.
    answer_mailboxes: HashMap<Name, Name>,
    /// Keys of submissions that are not durable yet.
    keys: Mutex<HashMap<Key, Pending>>,
    /// Requests that wait for the answer to a submission.
    watched: Mutex<HashMap<MessageId, Arc<Watched>>>,
}

/// A submission whose answers requests wait for.
#[derive(Default)]
struct Watched {
    notify: Arc<Notify>,
    /// Answers since the first request began to wait.
    answers: Mutex<Vec<SentAnswer>>,
}

/// Client and idempotency key.
type Key = (Name, Arc<str>);

/// A submission that is not durable yet.
#[derive(Clone)]
struct Pending {
    digest: [u8; 32],
    /// The submission once it is durable; closed if it fails.
    kept: watch::Receiver<Option<Kept>>,
}

/// A submission that is durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Kept {
    pub(super) id: MessageId,
    /// Root of the conversation.
    pub(super) root: ThreadId,
}

/// An envelope as its client wrote it, or as the gateway re-encoded it, and the message that the gateway read in it.
pub(super) type Envelope = (Bytes, Option<ReadMessage>);

/// Effect of a submission.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Submitted {
    /// The message is durable: this one, or an earlier one with the same key and body.
    Kept(Kept),
    /// An earlier submission has the same key and another body.
    KeyReused,
}

/// Reason why a submission failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum SubmitError {
    #[error(transparent)]
    Send(#[from] SendError),
    /// The organism did not take it at all.
    #[error(transparent)]
    Unsent(SendError),
    #[error(transparent)]
    Query(#[from] QueryError),
    #[error("the organism has no client '{0}' for the gateway")]
    Stranger(Name),
    #[error("the messages of this client and their answers take the {0} bytes that it may have")]
    NoRoom(u64),
}

impl Submissions {
    /// Makes the submissions of all clients of an organism but those in `others`, whose answers go elsewhere.
    pub(super) fn new(
        mailboxes: MailboxService,
        query: Arc<dyn Query>,
        ids: IdKey,
        organism: &Arc<Organism>,
        others: &[&str],
        answer_mailboxes: HashMap<Name, Name>,
    ) -> Arc<Self> {
        Arc::new(Self {
            mailboxes,
            query,
            ids,
            organism: organism.clone(),
            others: others.iter().map(ToString::to_string).collect(),
            clients: Mutex::default(),
            room: organism.room(),
            answer_mailboxes,
            keys: Mutex::default(),
            watched: Mutex::default(),
        })
    }

    /// Checks whether a client of the present version submits messages through the gateway. The answers of one that came with a
    /// later version are collected from now on, on the current runtime.
    pub(super) fn knows(self: &Arc<Self>, client: &Name) -> bool {
        let blueprint = self.organism.blueprint();
        let Some(Party::Client(id)) = blueprint.party(client.as_str()) else { return false };
        !blueprint.has_retired(id) && self.client(client).is_some()
    }

    fn client(self: &Arc<Self>, name: &Name) -> Option<Client> {
        let mut clients = lock(&self.clients);
        if let Some(client) = clients.get(name) {
            return Some(client.clone());
        }
        if self.others.contains(name.as_str()) {
            return None;
        }
        let client = self.organism.client(name.as_str()).ok()?.over_network();
        clients.insert(name.clone(), client.clone());
        tokio::spawn(self.clone().collect(client.clone()));
        Some(client)
    }

    /// Submissions under a key that are on their way into the journal, and submissions whose answers requests wait for.
    pub(super) fn waiters(&self) -> usize {
        lock(&self.keys).len() + lock(&self.watched).len()
    }

    /// Starts to collect the answers of all clients, on the current runtime, until the organism ends.
    pub(super) fn start(self: &Arc<Self>) {
        for (_, client) in self.organism.blueprint().clients() {
            self.client(&client.name);
        }
    }

    /// Submits a message, once for each idempotency key.
    ///
    /// # Cancel safety
    /// Once polled, the submission goes on to its end.
    pub(super) async fn submit(
        self: &Arc<Self>,
        submission: SubmissionRecord,
        envelope: Envelope,
    ) -> Result<Submitted, SubmitError> {
        let whole = tokio::spawn(self.clone().take(submission, envelope));
        // The task ends early only with its runtime.
        whole.await.unwrap_or(Err(SubmitError::Send(SendError::Closed)))
    }

    async fn take(self: Arc<Self>, submission: SubmissionRecord, envelope: Envelope) -> Result<Submitted, SubmitError> {
        let Some((key, digest)) = submission.key.clone() else {
            self.has_room(&submission.client)?;
            return self.hand_over(submission, envelope).await.map(Submitted::Kept);
        };
        let key: Key = (submission.client.clone(), key);
        let reserved = loop {
            match self.reserve(&key, digest) {
                Ok(reserved) => break reserved,
                Err(pending) if pending.digest != digest => return Ok(Submitted::KeyReused),
                Err(mut pending) => {
                    if let Ok(kept) = pending.kept.wait_for(Option::is_some).await
                        && let Some(kept) = *kept
                    {
                        return Ok(Submitted::Kept(kept));
                    }
                    // The pending submission failed: this one takes its place.
                }
            }
        };
        // The key is reserved: no other request submits under it meanwhile.
        if let Some(known) = self.query.submission_of_key(key.0.clone(), key.1.clone()).await? {
            let same = known.key.is_some_and(|(_, known)| known == digest);
            let kept = Kept { id: known.id, root: known.root };
            return Ok(if same { Submitted::Kept(kept) } else { Submitted::KeyReused });
        }
        self.has_room(&key.0)?;
        let kept = self.hand_over(submission, envelope).await?;
        reserved.kept.send_replace(Some(kept));
        Ok(Submitted::Kept(kept))
    }

    /// Checks that the answer to one more message of a client can be kept for its time.
    fn has_room(&self, client: &Name) -> Result<(), SubmitError> {
        match self.room.as_ref().and_then(|room| room.exhausted(client.as_str())) {
            Some(share) => Err(SubmitError::NoRoom(share)),
            None => Ok(()),
        }
    }

    async fn hand_over(
        self: &Arc<Self>,
        submission: SubmissionRecord,
        envelope: Envelope,
    ) -> Result<Kept, SubmitError> {
        let client = self.client(&submission.client);
        let client = client.ok_or_else(|| SubmitError::Stranger(submission.client.clone()))?;
        let kept = Kept { id: submission.id, root: submission.root };
        client.hand_over(kept.root, envelope, Some(submission)).map_err(SubmitError::Unsent)?.await?;
        Ok(kept)
    }

    /// Takes a key, or gives back the submission that has it.
    fn reserve(self: &Arc<Self>, key: &Key, digest: [u8; 32]) -> Result<Reserved, Pending> {
        let mut keys = lock(&self.keys);
        if let Some(pending) = keys.get(key) {
            return Err(pending.clone());
        }
        let (kept, watched) = watch::channel(None);
        keys.insert(key.clone(), Pending { digest, kept: watched });
        Ok(Reserved { submissions: self.clone(), key: key.clone(), kept })
    }

    async fn collect(self: Arc<Self>, client: Client) {
        while let Some(unread) = client.receive_unread().await {
            self.keep(&client, unread);
        }
    }

    /// Delivers an answer, which the journal has already, to its mailbox and to the requests that wait for it.
    fn keep(&self, client: &Client, unread: Unread) {
        let answered: Option<MessageId> = unread.egress().in_reply_to.as_deref().and_then(|label| label.parse().ok());
        let mailbox = self.answer_mailboxes.get(client.name());
        if let (Some(id), Some(mailbox)) = (answered, mailbox) {
            let mail = self.answer_mail(mailbox.clone(), id, unread.egress());
            // The message is written before the answer counts as read. Where the journal takes nothing more, the answer
            // comes again.
            if self.mailboxes.act(MailboxInput::AnswerCopy(mail)).is_err() {
                return;
            }
        }
        // The journal has the answer for its sender; requests that wait now have it, too, when it comes again.
        let egress = if mailbox.is_some() { unread.read() } else { unread.read_later() };
        if let Some(watched) = answered.and_then(|id| lock(&self.watched).get(&id).cloned()) {
            lock(&watched.answers).push(SentAnswer::of(egress));
            watched.notify.notify_waiters();
        }
    }

    /// Makes an answer a message of a mailbox; it expects no answer.
    fn answer_mail(&self, mailbox: Name, answered: MessageId, egress: &Egress) -> MailRecord {
        let id = self.answer_mail_id(answered, egress.number);
        MailRecord {
            seq: UNPLACED,
            mailbox,
            id,
            thread: egress.root,
            from: egress.from.clone(),
            in_reply_to: Some(answered),
            payload: egress.payload.root().clone(),
            envelope: egress.envelope.clone(),
            at: self.mailboxes.now(),
        }
    }

    /// Id of an answer as a message of a mailbox.
    pub(super) fn answer_mail_id(&self, answered: MessageId, number: Number) -> MessageId {
        self.ids.derive(answered, number).0
    }

    /// Watches for answers to a submission, from now on.
    pub(super) fn watch(self: &Arc<Self>, id: MessageId) -> Watch {
        let watched = lock(&self.watched).entry(id).or_default().clone();
        Watch { submissions: self.clone(), id, watched }
    }
}

/// A key that is reserved until this value is dropped.
struct Reserved {
    submissions: Arc<Submissions>,
    key: Key,
    kept: watch::Sender<Option<Kept>>,
}

impl Drop for Reserved {
    fn drop(&mut self) {
        lock(&self.submissions.keys).remove(&self.key);
    }
}

/// A request that waits for an answer.
pub(super) struct Watch {
    submissions: Arc<Submissions>,
    id: MessageId,
    watched: Arc<Watched>,
}

impl Watch {
    /// The notification that an answer came.
    pub(super) fn notify(&self) -> &Arc<Notify> {
        &self.watched.notify
    }

    /// The answers since the watch began, in order of arrival.
    pub(super) fn answers(&self) -> Vec<SentAnswer> {
        lock(&self.watched.answers).clone()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let mut watched = lock(&self.submissions.watched);
        // This watch and the map have one reference each.
        if watched.get(&self.id).is_some_and(|watched| Arc::strong_count(watched) <= 2) {
            watched.remove(&self.id);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
