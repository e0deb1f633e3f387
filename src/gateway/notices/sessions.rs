//! Open sessions, and the notices that they hold.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use systole_core::vocab::{Name, Time};
use tokio::sync::Notify;

use super::ask::{DelegateFailure, ask};
use super::delegate::{Call, NoticeLimits, NoticeToken, QueueDelegate, QueueRead, Row, SessionId};
use super::session::{NoticeBatch, SESSIONS, Session};
use systole_store::clock::Clock;

/// Limits of the notices on one response.
const LIMITS: NoticeLimits = NoticeLimits { rows: 100, bytes: 64 << 10 };

/// Owner and name of a session.
type Key = (Name, String);

/// The sessions of a gateway, for any thread. They end with the process.
pub(in crate::gateway) struct Sessions {
    delegate: Arc<dyn QueueDelegate>,
    open: Mutex<HashMap<Key, Session>>,
    /// Notification that a session began: it may be the first to expire.
    begun: Notify,
}

impl Sessions {
    pub(in crate::gateway) fn new(delegate: Arc<dyn QueueDelegate>) -> Self {
        Self { delegate, open: Mutex::default(), begun: Notify::new() }
    }

    /// Notes a sign of life of a session, and opens it if it is new; `None` if the principal has the most sessions that
    /// it may have.
    pub(in crate::gateway) async fn enter(&self, owner: &Name, name: &str, now: Time) -> Option<SessionId> {
        if let Some(id) = self.touch(owner, name, now) {
            return Some(id);
        }
        // An expired session of that name may not have been swept yet.
        self.sweep(now).await;
        let mut open = self.open();
        if open.keys().filter(|(of, _)| of == owner).count() >= SESSIONS {
            return None;
        }
        let session = open.entry((owner.clone(), name.to_owned())).or_insert_with(|| Session::begin(now));
        self.begun.notify_one();
        Some(session.id)
    }

    /// Notes a sign of life of a session; `None` if its principal has none of that name.
    pub(in crate::gateway) fn touch(&self, owner: &Name, name: &str, now: Time) -> Option<SessionId> {
        let mut open = self.open();
        let session = open.get_mut(&(owner.clone(), name.to_owned())).filter(|session| session.lapses() > now)?;
        session.touch(now);
        Some(session.id)
    }

    /// Ends a session and releases its unconfirmed notices; false if there was none.
    pub(in crate::gateway) async fn end(&self, owner: &Name, name: &str) -> bool {
        let ended = self.open().remove(&(owner.clone(), name.to_owned()));
        let Some(session) = ended else { return false };
        self.release(session.id, None).await;
        true
    }

    /// The notices for a session whose call has succeeded; `None` also after an error.
    pub(in crate::gateway) async fn read(
        &self,
        (owner, name): (&Name, &str),
        session: SessionId,
        arguments: Bytes,
        clock: &Clock,
    ) -> Option<QueueRead> {
        let key = (owner.clone(), name.to_owned());
        let rows = LIMITS.rows.min(self.with(&key, session, |session| session.free_rows())?);
        if rows == 0 {
            tracing::debug!(principal = %owner, "a session has to confirm notices before it gets more");
            return None;
        }
        let limits = NoticeLimits { rows, ..LIMITS };
        let call = Call { session, principal: owner.clone(), name: name.to_owned(), arguments, limits };
        let read = match ask(|| self.delegate.read(call)).await {
            Ok(read) => read.filter(|read| !read.rows.is_empty())?,
            Err(error) => {
                tracing::error!(%error, "notices can't be read: the response goes without them");
                return None;
            }
        };
        if let Err(error) = fits(&read, limits) {
            tracing::error!(%error, "notices can't be read: the response goes without them");
            self.release(session, Some(read.token)).await;
            return None;
        }
        let ids = read.rows.iter().map(|row| row.id.clone()).collect::<Vec<_>>();
        let now = clock.now();
        let added = self.with(&key, session, |session| {
            session.touch(now);
            (session.free_rows() >= ids.len()).then(|| session.add(read.token, ids, now))
        });
        if added.flatten().is_none() {
            // The session ended meanwhile, or another of its calls took the room.
            self.release(session, Some(read.token)).await;
            return None;
        }
        Some(read)
    }

    /// Confirms the rows of these tokens; returns the tokens that the session holds, with their rows.
    pub(in crate::gateway) async fn confirm(
        &self,
        (owner, name): (&Name, &str),
        session: SessionId,
        tokens: Vec<NoticeToken>,
    ) -> Result<Vec<(NoticeToken, Vec<String>)>, DelegateFailure> {
        let key = (owner.clone(), name.to_owned());
        let mut confirmed = Vec::new();
        for token in tokens {
            if self.with(&key, session, |session| session.knows(token)) != Some(true) {
                continue;
            }
            let ids = ask(|| self.delegate.confirm(session, token)).await?;
            self.with(&key, session, |session| session.confirm(token));
            confirmed.push((token, ids));
        }
        Ok(confirmed)
    }

    /// The unconfirmed notices of a session, and the time of its expiry; `None` if it is over.
    pub(in crate::gateway) fn unconfirmed(&self, owner: &Name, name: &str) -> Option<(Vec<NoticeBatch>, Time)> {
        let open = self.open();
        let session = open.get(&(owner.clone(), name.to_owned()))?;
        Some((session.unconfirmed().cloned().collect(), session.lapses()))
    }

    /// Ends sessions that have been silent for too long; runs until the gateway ends.
    pub(in crate::gateway) async fn lapse(self: Arc<Self>, clock: Clock) {
        loop {
            self.sweep(clock.now()).await;
            let next = self.open().values().map(Session::lapses).min();
            let until = next.map_or(Duration::MAX, |next| clock.until(next));
            let _ = tokio::time::timeout(until, self.begun.notified()).await;
        }
    }

    /// Ends the sessions that have expired by that time.
    async fn sweep(&self, now: Time) {
        let lapsed: Vec<_> = self.open().extract_if(|_, session| session.lapses() <= now).collect();
        let release = |((owner, name), session): (Key, Session)| {
            tracing::info!(principal = %owner, session = name, "a session was silent for too long");
            self.release(session.id, None)
        };
        // All releases begin before any is awaited.
        let released: Vec<_> = lapsed.into_iter().map(release).collect();
        for released in released {
            released.await;
        }
    }

    /// Lets the delegate release rows of a session.
    ///
    /// # Cancel safety
    /// Once called, the release goes on to its end.
    fn release(&self, session: SessionId, token: Option<NoticeToken>) -> impl Future<Output = ()> + use<> {
        let delegate = self.delegate.clone();
        let released = tokio::spawn(async move {
            if let Err(error) = ask(|| delegate.release(session, token)).await {
                tracing::error!(%error, "notices can't be released: they come again at the next start");
            }
        });
        // The task ends early only with its runtime.
        async move { drop(released.await) }
    }

    /// Runs `what` on a session, if it still has that id.
    fn with<T>(&self, key: &Key, id: SessionId, what: impl FnOnce(&mut Session) -> T) -> Option<T> {
        self.open().get_mut(key).filter(|session| session.id == id).map(what)
    }

    fn open(&self) -> MutexGuard<'_, HashMap<Key, Session>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Sessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sessions").field("open", &self.open().len()).finish_non_exhaustive()
    }
}

/// A delegate gave more than the limits of a response allow.
#[derive(Debug, thiserror::Error)]
#[error("the delegate gave {rows} rows of {bytes} bytes, where {most} rows and {} bytes may ride: give the rest later", LIMITS.bytes)]
struct TooMuch {
    rows: usize,
    bytes: usize,
    most: usize,
}

fn fits(read: &QueueRead, limits: NoticeLimits) -> Result<(), TooMuch> {
    let (rows, bytes) = (read.rows.len(), read.rows.iter().map(Row::bytes).sum());
    let much = rows > limits.rows || bytes > limits.bytes && rows > 1;
    if much { Err(TooMuch { rows, bytes, most: limits.rows }) } else { Ok(()) }
}

#[cfg(test)]
mod tests;
