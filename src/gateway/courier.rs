//! What clients send, on its way into the organism, and what comes back.
//!
//! A message is kept before it is acknowledged, then handed over. Between the two the process may end: the message has
//! the id of the conversation that it opens from the start, so the next start asks the organism's journal which of them
//! it has, and hands over the others. What comes back is kept before it counts as read.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::Notify;

use super::mailboxes::Mailboxes;
use super::store::{Item, Reply, State, Store, StoreError, Submission};
use crate::core::Egress;
use crate::journal::SubmissionRecord;
use crate::shell::clock::Clock;
use crate::shell::journal::JournalReader;
use crate::shell::{Client, Organism, SendError, Unread};
use crate::vocab::{IdKey, MessageId, Name, Time};

/// How long a message waits that the organism has no room for, at first and at most.
const RETRY: (Duration, Duration) = (Duration::from_millis(10), Duration::from_secs(1));

/// Carries messages between clients and the organism.
pub(super) struct Courier {
    mailboxes: Mailboxes,
    store: Store,
    clock: Clock,
    clients: HashMap<Name, Client>,
    /// Clients whose answers are put into a mailbox, too.
    letters: HashMap<Name, Name>,
    /// Who waits for an answer to a message.
    watched: Mutex<HashMap<MessageId, Arc<Notify>>>,
}

impl Courier {
    /// A courier for all clients of an organism but those in `others`, whose answers go elsewhere.
    pub(super) fn new(
        mailboxes: Mailboxes,
        organism: &Organism,
        others: &[&str],
        letters: HashMap<Name, Name>,
    ) -> Arc<Self> {
        let names = organism.blueprint().clients().map(|(_, client)| client.name.clone());
        let names = names.filter(|name| !others.contains(&name.as_str()));
        let clients =
            names.filter_map(|name| Some((name.clone(), organism.client(name.as_str()).ok()?.over_network())));
        let (store, clients) = (mailboxes.store().clone(), clients.collect());
        Arc::new(Self { mailboxes, store, clock: Clock::real(), clients, letters, watched: Mutex::default() })
    }

    /// Whether somebody speaks through here.
    pub(super) fn knows(&self, client: &Name) -> bool {
        self.clients.contains_key(client)
    }

    /// Hands over what an earlier run accepted and the journal doesn't know, and collects what comes back.
    pub(super) async fn start(self: &Arc<Self>, journal: &Path) -> Result<(), StartError> {
        let accepted = self.store.accepted().await?;
        if !accepted.is_empty() {
            let roots: Vec<_> = accepted.iter().map(|message| message.root).collect();
            let known = JournalReader::open(journal)?.known(&roots)?;
            for message in accepted {
                if known.contains(&message.root) {
                    self.store.queued(message.id).await?;
                } else {
                    self.hand_over(message);
                }
            }
        }
        for client in self.clients.values() {
            tokio::spawn(self.clone().collect(client.clone()));
        }
        Ok(())
    }

    /// Hands over a message that is kept. If there is no room it is offered again and again; if the organism ends, the
    /// next start does it.
    pub(super) fn hand_over(self: &Arc<Self>, message: Submission) {
        let Some(client) = self.clients.get(&message.principal) else {
            let why = format!("the organism has no client '{}' any more", message.principal);
            tokio::spawn(self.store.clone().note(message.id, why));
            return;
        };
        match client.hand_over(message.root, message.envelope.clone(), message.record()) {
            Ok(taken) => {
                tokio::spawn(self.clone().confirm(message.id, taken));
            }
            Err(error) => {
                tokio::spawn(self.clone().again(client.clone(), message, error));
            }
        }
    }

    async fn confirm(self: Arc<Self>, id: MessageId, taken: impl Future<Output = Result<(), SendError>>) {
        // The organism ended: its journal says at the next start whether it has the message.
        if taken.await.is_ok()
            && let Err(error) = self.store.queued(id).await
        {
            tracing::error!(%error, "a message was handed over, but that could not be written down");
        }
    }

    async fn again(self: Arc<Self>, client: Client, message: Submission, mut error: SendError) {
        self.store.clone().note(message.id, error.to_string()).await;
        let (mut pause, most) = RETRY;
        while matches!(error, SendError::Overloaded(_) | SendError::Unread) {
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(most);
            match client.hand_over(message.root, message.envelope.clone(), message.record()) {
                Ok(taken) => return self.confirm(message.id, taken).await,
                Err(again) => error = again,
            }
        }
    }

    async fn collect(self: Arc<Self>, client: Client) {
        while let Some(unread) = client.receive_unread().await {
            let letter = self.letters.get(client.name()).cloned();
            tokio::spawn(self.clone().keep(unread, letter));
        }
    }

    /// Keeps an answer; only then it is read.
    async fn keep(self: Arc<Self>, unread: Unread, letter: Option<Name>) {
        let egress = unread.egress();
        // What answers nothing that came in here is nobody's.
        let Some(id) = egress.in_reply_to.as_deref().and_then(|label| label.parse().ok()) else {
            unread.read();
            return;
        };
        let (reply, now) = (reply(egress), self.clock.now());
        let copy = letter.clone().map(|mailbox| self.letter(mailbox, id, egress, &reply, now));
        match self.store.answered(id, reply, copy, now).await {
            Ok(()) => {
                unread.read();
                letter.iter().for_each(|mailbox| self.mailboxes.ring(mailbox));
                self.tell(id);
            }
            Err(error) => tracing::error!(%error, "an answer could not be written down: it comes again"),
        }
    }

    /// An answer as a message of a mailbox: it wants none itself.
    fn letter(&self, mailbox: Name, answered: MessageId, egress: &Egress, reply: &Reply, now: Time) -> Item {
        let (id, _) = IdKey::new(*self.store.key()).derive(answered, reply.number);
        Item {
            seq: 0,
            mailbox,
            id,
            thread: egress.root,
            from: reply.from.clone(),
            in_reply_to: Some(answered),
            payload: reply.payload.clone(),
            envelope: reply.envelope.clone(),
            at: now,
            state: State::Acked,
            deliveries: 0,
            due: Time::default(),
            error: None,
        }
    }

    /// What is notified when an answer to a message comes, from now on.
    pub(super) fn watch(&self, id: MessageId) -> Arc<Notify> {
        self.watched().entry(id).or_default().clone()
    }

    /// Somebody watches no more.
    pub(super) fn unwatch(&self, id: MessageId, notify: Arc<Notify>) {
        let mut watched = self.watched();
        drop(notify);
        if watched.get(&id).is_some_and(|notify| Arc::strong_count(notify) == 1) {
            watched.remove(&id);
        }
    }

    fn tell(&self, id: MessageId) {
        if let Some(notify) = self.watched().get(&id) {
            notify.notify_waiters();
        }
    }

    fn watched(&self) -> std::sync::MutexGuard<'_, HashMap<MessageId, Arc<Notify>>> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Why what an earlier run accepted can't be handed over.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The gateway's own file.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The organism's journal.
    #[error(transparent)]
    Journal(#[from] crate::shell::journal::StoreError),
}

impl Submission {
    fn record(&self) -> SubmissionRecord {
        let key = self.key.as_ref().map(|(key, digest)| (key.as_str().into(), *digest));
        SubmissionRecord { id: self.id, client: self.principal.clone(), root: self.root, key }
    }
}

impl Store {
    /// Writes down why a message waits.
    async fn note(self, id: MessageId, why: String) {
        if let Err(error) = self.refused(id, why).await {
            tracing::error!(%error, "what a message waits for could not be written down");
        }
    }
}

fn reply(egress: &Egress) -> Reply {
    let text = |bytes: &Bytes| String::from_utf8_lossy(bytes).into_owned();
    Reply {
        number: egress.number,
        from: egress.from.to_string(),
        payload: egress.payload.root().to_string(),
        envelope: text(&egress.envelope),
        fault: egress.fault.as_ref().map(|fault| fault.code.as_str().to_owned()),
    }
}
