//! Where the messages of each listener go, and how.

use std::collections::HashMap;
use std::path::PathBuf;

use bytes::Bytes;

use crate::gateway::service::MailboxService;
use crate::journal::Registration;
use crate::outbound::retry::Policy;
use crate::outbound::{Delivery, Guard, Options, OutboundError, OutboundLimits, Secret, check_url};
use crate::shell::config::{Journaled, Mode, Push, read_secret};
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
}

/// Where the messages of each listener go.
#[derive(Debug)]
pub(in crate::gateway) struct Places(HashMap<Name, Place>);

#[derive(Debug)]
struct Place {
    declared: Push,
    secret: Option<Secret>,
}

/// Which addresses a listener may be at.
pub(in crate::gateway) fn guard(push: &Push) -> Guard {
    if push.allow_private { Guard::private() } else { Guard::new() }
}

impl Places {
    /// Those of all listeners that are pushed to, with their secrets; `None` if there are no such.
    pub(in crate::gateway) fn declared(mailboxes: &MailboxService) -> Result<Option<Self>, PushError> {
        let mut places = HashMap::new();
        for (name, mode) in mailboxes.modes() {
            let Mode::Push(push) = mode else { continue };
            let read = |file: &PathBuf| {
                let refused = |why| PushError::Secret { listener: name.clone(), file: file.clone(), why };
                read_secret(file).map(|secret| Secret::new(&secret)).map_err(refused)
            };
            let secret = push.secret.as_ref().map(read).transpose()?;
            places.insert(name.clone(), Place { declared: push.clone(), secret });
        }
        Ok((!places.is_empty()).then_some(Self(places)))
    }

    /// The delivery of a message to a listener, where that is now: at the URL that it has registered since what is
    /// declared for it was, or at that.
    pub(super) fn delivery(
        &self,
        name: &Name,
        registered: Option<&Registration>,
        id: MessageId,
        envelope: Bytes,
    ) -> Option<Delivery> {
        let Place { declared, secret } = self.0.get(name)?;
        let known = registered.filter(|known| known.declared.as_deref() == Some(&*declared.url));
        // Where a listener may be can have changed since.
        let url = known.and_then(|known| known.url.as_deref()).filter(|url| check_url(url, &guard(declared)).is_ok());
        let url = url.unwrap_or(&declared.url).to_owned();
        Some(Delivery { signed: secret.is_some(), ..Delivery::new(id, name.clone(), url, envelope) })
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
