//! What a gateway keeps: principals, mailboxes of remote listeners, what clients sent, in an SQLite file beside the
//! journal.
//!
//! One thread writes: what waits is one transaction, 64 pieces at most, and nobody is told of a piece before that is
//! committed, as durably as the journal is. Another one reads. A process that is killed leaves the whole of a
//! transaction or nothing. A file with damaged pages, or of another program, is refused and left as it is.

#[cfg(feature = "facade")]
mod history;
mod items;
mod lease;
mod letters;
mod notices;
mod open;
mod pauses;
mod principals;
mod pushed;
mod sent;
mod settle;
mod tidy;
mod worker;

use std::path::Path;

#[cfg(feature = "facade")]
pub(crate) use history::{History, Of};
pub(crate) use items::{Item, Page, Position, Put, Range, State};
pub(crate) use lease::{Lease, Leased};
pub(crate) use notices::Reserve;
pub use open::{OpenError, beside};
pub use principals::{Kind, Principal};
pub(crate) use pushed::{Registered, TAKEN};
pub(crate) use sent::{Accepted, Reply, Sent, Submission};
pub(crate) use settle::{Handle, Settled, Settlement, too_often};
pub(crate) use tidy::Caps;
pub use worker::StoreError;

use crate::shell::sqlite::{Database, Durability, Problem, Retention, open_to_read};
use open::FORMAT;
use rusqlite::Connection;
use worker::Worker;

/// The file of a gateway, for any thread. One process serves it; `systole token` may write to it besides.
#[derive(Clone)]
pub struct Store {
    writer: Worker,
    reader: Worker,
    key: [u8; 32],
}

impl Store {
    /// Opens the file of a gateway, or makes it.
    ///
    /// # Errors
    /// [`OpenError`] if it is something else, damaged, or can't be written. It is left as it was.
    pub fn open(file: &Path, durability: Durability, retention: Retention) -> Result<Self, OpenError> {
        let opened = || {
            let db = open::open(file, durability)?;
            // Whoever waited in an earlier run doesn't any more.
            db.execute("UPDATE item SET live = 0 WHERE live = 1", [])?;
            notices::release_all(&db)?;
            Self::over(file, db, retention)
        };
        opened().map_err(|problem| OpenError { file: file.to_owned(), problem })
    }

    /// Opens it as [`open`](Self::open) does, while the organism may run.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_beside(file: &Path, durability: Durability, retention: Retention) -> Result<Self, OpenError> {
        let opened = open::open_beside(file, durability).and_then(|db| Self::over(file, db, retention));
        opened.map_err(|problem| OpenError { file: file.to_owned(), problem })
    }

    fn over(file: &Path, db: Database, retention: Retention) -> Result<Self, Problem> {
        let key = db.query_row("SELECT key FROM meta", [], |row| row.get(0))?;
        let reader = Worker::reader(open_to_read(file, FORMAT)?)?;
        let mut tidy = tidy::Tidy::new(retention);
        let writer = Worker::writer(db, move |db| tidy.some(db))?;
        Ok(Self { writer, reader, key })
    }

    /// Whether something can be kept.
    pub(crate) async fn check(&self) -> Result<(), StoreError> {
        self.write(|_| Ok(())).await
    }

    /// The secret of its cursors.
    pub(crate) fn key(&self) -> &[u8; 32] {
        &self.key
    }

    /// Does something that changes the file, and comes back when it is kept.
    fn write<T, W>(&self, work: W) -> impl Future<Output = Result<T, StoreError>> + Send + use<T, W>
    where
        T: Send + 'static,
        W: FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    {
        self.writer.run(work)
    }

    /// Looks something up.
    fn read<T, W>(&self, work: W) -> impl Future<Output = Result<T, StoreError>> + Send + use<T, W>
    where
        T: Send + 'static,
        W: FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    {
        self.reader.run(work)
    }
}
