//! Where the messages of each listener go, and how.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use bytes::Bytes;

use crate::gateway::mailboxes::Mailboxes;
use crate::gateway::store::StoreError;
use crate::outbound::retry::Policy;
use crate::outbound::{Delivery, Guard, Options, OutboundError, OutboundLimits, OutboxError, Secret};
use crate::shell::config::{Journaled, Mode, Push, read_secret};
use crate::shell::sqlite::beside;
use crate::vocab::{MessageId, Name};

/// Why nothing can be pushed.
#[derive(Debug, thiserror::Error)]
pub enum PushError {
    /// The secret of a listener.
    #[error("the secret of {listener}, {}: {why}", .file.display())]
    Secret {
        /// Whose.
        listener: Name,
        /// Its file.
        file: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// What sends.
    #[error(transparent)]
    Outbound(#[from] OutboundError),
    /// The outbox.
    #[error(transparent)]
    Outbox(#[from] OutboxError),
    /// The gateway's file.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Where the messages of each listener go.
pub(in crate::gateway) struct Places(HashMap<Name, Place>);

struct Place {
    url: String,
    declared: Push,
    secret: Option<Secret>,
}

/// Which addresses a listener may be at.
pub(in crate::gateway) fn guard(push: &Push) -> Guard {
    if push.allow_private { Guard::private() } else { Guard::new() }
}

impl Places {
    /// Those of all listeners that are pushed to, with their secrets; `None` if there are no such.
    pub(in crate::gateway) fn declared(mailboxes: &Mailboxes) -> Result<Option<Self>, PushError> {
        let mut places = HashMap::new();
        for (name, mode) in mailboxes.modes() {
            let Mode::Push(push) = mode else { continue };
            let read = |file: &PathBuf| {
                let refused = |why| PushError::Secret { listener: name.clone(), file: file.clone(), why };
                read_secret(file).map(|secret| Secret::new(&secret)).map_err(refused)
            };
            let secret = push.secret.as_ref().map(read).transpose()?;
            places.insert(name.clone(), Place { url: push.url.clone(), declared: push.clone(), secret });
        }
        Ok((!places.is_empty()).then_some(Self(places)))
    }

    /// Takes over what listeners have registered, each since what is declared for it was.
    pub(super) async fn registered(&mut self, mailboxes: &Mailboxes) -> Result<(), StoreError> {
        for (name, place) in &mut self.0 {
            let known = mailboxes.store().registered_url(name.clone(), place.declared.url.clone()).await?;
            // What a listener may be at can have changed since.
            let good = |url: &String| crate::outbound::check_url(url, &guard(&place.declared)).is_ok();
            place.url = known.filter(good).unwrap_or_else(|| place.declared.url.clone());
        }
        Ok(())
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &Name> {
        self.0.keys()
    }

    /// A listener wants its messages elsewhere. Whether that is news.
    pub(super) fn go(&mut self, name: &Name, url: String) -> bool {
        self.0.get_mut(name).is_some_and(|place| std::mem::replace(&mut place.url, url.clone()) != url)
    }

    /// The delivery of a message, as it is now.
    pub(super) fn delivery(&self, name: &Name, id: MessageId, envelope: impl Into<Bytes>) -> Option<Delivery> {
        let place = self.0.get(name)?;
        let delivery = Delivery::new(id, name.clone(), place.url.clone(), envelope);
        Some(Delivery { signed: place.secret.is_some(), ..delivery })
    }

    /// How deliveries are sent and kept: as durable as the journal, and as long. An answer may have that many bytes.
    pub(super) fn options(&self, journal: &Journaled, answer: usize) -> Options {
        let secrets: HashMap<Name, Secret> =
            self.0.iter().filter_map(|(name, place)| Some((name.clone(), place.secret.clone()?))).collect();
        let guards = self.0.iter().map(|(name, place)| (name.clone(), guard(&place.declared)));
        Options {
            // The envelope was judged by the organism's own limits.
            limits: OutboundLimits { answer, body: usize::MAX, ..OutboundLimits::default() },
            // A listener that is full or ends says so, and means what it says.
            policy: Policy { retry_after: true, ..Policy::default() },
            guards: guards.filter(|(name, _)| self.0[name].declared.allow_private).collect(),
            durability: journal.durability,
            retention: journal.retention,
            secrets: std::sync::Arc::new(move |name| secrets.get(name).cloned()),
            ..Options::default()
        }
    }
}

/// The outbox of an organism with that journal.
pub(super) fn outbox(journal: &Path) -> PathBuf {
    beside(journal, ".outbox")
}
