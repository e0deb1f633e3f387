//! The sessions that are there, and what their clients are told.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use systole_core::vocab::{Name, Time};
use tokio::sync::Notify;

use super::ask::{Trouble, ask};
use super::delegate::{Call, NoticeToken, QueueDelegate, QueueRead, Room, Row, SessionId};
use super::session::{SESSIONS, Session, Told};
use crate::shell::clock::Clock;

/// What rides on one response.
const ROOM: Room = Room { rows: 100, bytes: 64 << 10 };

/// Whose session, and what it is called.
type Key = (Name, String);

/// The sessions of a gateway, for any thread. They end with the process.
pub(in crate::gateway) struct Sessions {
    delegate: Arc<dyn QueueDelegate>,
    open: Mutex<HashMap<Key, Session>>,
    /// One began: it may be the first to lapse.
    begun: Notify,
}

impl Sessions {
    pub(in crate::gateway) fn new(delegate: Arc<dyn QueueDelegate>) -> Self {
        Self { delegate, open: Mutex::default(), begun: Notify::new() }
    }

    /// Hears of a session, which begins if it is not there; `None` if the principal has as many as it may.
    pub(in crate::gateway) async fn enter(&self, owner: &Name, name: &str, now: Time) -> Option<SessionId> {
        if let Some(id) = self.hear(owner, name, now) {
            return Some(id);
        }
        // One of that name may be over, and nobody has seen to it yet.
        self.sweep(now).await;
        let mut open = self.open();
        if open.keys().filter(|(of, _)| of == owner).count() >= SESSIONS {
            return None;
        }
        let session = open.entry((owner.clone(), name.to_owned())).or_insert_with(|| Session::begin(now));
        self.begun.notify_one();
        Some(session.id)
    }

    /// Hears of a session; `None` if its principal has none of that name.
    pub(in crate::gateway) fn hear(&self, owner: &Name, name: &str, now: Time) -> Option<SessionId> {
        let mut open = self.open();
        let session = open.get_mut(&(owner.clone(), name.to_owned())).filter(|session| session.lapses() > now)?;
        session.hear(now);
        Some(session.id)
    }

    /// Ends a session: what it did not confirm is told to others. Whether it was there.
    pub(in crate::gateway) async fn end(&self, owner: &Name, name: &str) -> bool {
        let ended = self.open().remove(&(owner.clone(), name.to_owned()));
        let Some(session) = ended else { return false };
        self.release(session.id, None).await;
        true
    }

    /// What is pending for a session whose call has succeeded; whatever goes wrong, nothing is.
    pub(in crate::gateway) async fn read(
        &self,
        (owner, name): (&Name, &str),
        session: SessionId,
        arguments: Bytes,
        clock: &Clock,
    ) -> Option<QueueRead> {
        let key = (owner.clone(), name.to_owned());
        let rows = ROOM.rows.min(self.with(&key, session, |session| session.room())?);
        if rows == 0 {
            tracing::debug!(principal = %owner, "a session has to confirm before it is told more");
            return None;
        }
        let room = Room { rows, ..ROOM };
        let call = Call { session, principal: owner.clone(), name: name.to_owned(), arguments, room };
        let read = match ask(|| self.delegate.read(call)).await {
            Ok(read) => read.filter(|read| !read.rows.is_empty())?,
            Err(error) => {
                tracing::error!(%error, "what is pending can't be told: the response goes without it");
                return None;
            }
        };
        if let Err(error) = fits(&read, room) {
            tracing::error!(%error, "what is pending can't be told: the response goes without it");
            self.release(session, Some(read.token)).await;
            return None;
        }
        let ids = read.rows.iter().map(|row| row.id.clone()).collect::<Vec<_>>();
        let now = clock.now();
        let told = self.with(&key, session, |session| {
            session.hear(now);
            (session.room() >= ids.len()).then(|| session.tell(read.token, ids, now))
        });
        if told.flatten().is_none() {
            // It ended meanwhile, or another call of it was told as much as it may be.
            self.release(session, Some(read.token)).await;
            return None;
        }
        Some(read)
    }

    /// The client has what came under these tokens. Those that the session has, and their rows.
    pub(in crate::gateway) async fn confirm(
        &self,
        (owner, name): (&Name, &str),
        session: SessionId,
        tokens: Vec<NoticeToken>,
    ) -> Result<Vec<(NoticeToken, Vec<String>)>, Trouble> {
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

    /// What a session was told and did not confirm, and when it is over; `None` if it is.
    pub(in crate::gateway) fn unconfirmed(&self, owner: &Name, name: &str) -> Option<(Vec<Told>, Time)> {
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

    /// Ends the sessions that are over at that time.
    async fn sweep(&self, now: Time) {
        let lapsed: Vec<_> = self.open().extract_if(|_, session| session.lapses() <= now).collect();
        let release = |((owner, name), session): (Key, Session)| {
            tracing::info!(principal = %owner, session = name, "a session was silent for too long");
            self.release(session.id, None)
        };
        // All of them begin before any is awaited.
        let released: Vec<_> = lapsed.into_iter().map(release).collect();
        for released in released {
            released.await;
        }
    }

    /// Has the delegate release what a session has.
    ///
    /// # Cancel safety
    /// Once called, it goes on to its end.
    fn release(&self, session: SessionId, token: Option<NoticeToken>) -> impl Future<Output = ()> + use<> {
        let delegate = self.delegate.clone();
        let released = tokio::spawn(async move {
            if let Err(error) = ask(|| delegate.release(session, token)).await {
                tracing::error!(%error, "what a session did not confirm comes again at the next start");
            }
        });
        // It ends early only with its runtime.
        async move { drop(released.await) }
    }

    /// Does something with a session, if it is still that one.
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

/// A delegate gave more than there was room for.
#[derive(Debug, thiserror::Error)]
#[error("the delegate gave {rows} rows of {bytes} bytes, where {most} rows and {} bytes may ride: give the rest later", ROOM.bytes)]
struct TooMuch {
    rows: usize,
    bytes: usize,
    most: usize,
}

fn fits(read: &QueueRead, room: Room) -> Result<(), TooMuch> {
    let (rows, bytes) = (read.rows.len(), read.rows.iter().map(Row::bytes).sum());
    let much = rows > room.rows || bytes > room.bytes && rows > 1;
    if much { Err(TooMuch { rows, bytes, most: room.rows }) } else { Ok(()) }
}

#[cfg(test)]
mod tests;
