//! What a gateway keeps: principals, mailboxes of remote listeners, what clients sent, in an SQLite file beside the
//! journal.
//!
//! One thread writes: what waits is one transaction, 64 pieces at most, and nobody is told of a piece before that is
//! committed, as durably as the journal is. Another one reads. A process that is killed leaves the whole of a
//! transaction or nothing. A file with damaged pages, or of another program, is refused and left as it is.

mod items;
mod lease;
mod notices;
mod open;
mod principals;
mod sent;
mod settle;
mod tidy;
mod worker;

use std::path::Path;
use std::sync::Arc;

pub(crate) use items::{Item, Page, Position, Put, Range, State};
pub(crate) use lease::{Lease, Leased};
pub(crate) use notices::Reserve;
pub use open::{OpenError, OpenProblem, beside};
pub use principals::{Kind, Principal};
pub(crate) use sent::{Accepted, Reply, Sent, Submission};
pub(crate) use settle::{Handle, Settled, Settlement, too_often};
pub(crate) use tidy::Caps;
pub use worker::StoreError;

use crate::shell::block_on;
use crate::shell::sqlite::{Durability, Lock, Retention};
use rusqlite::Connection;
use worker::Worker;

/// The file of a gateway, for any thread. One process serves it; `systole token` may write to it besides.
#[derive(Clone)]
pub struct Store {
    writer: Worker,
    reader: Worker,
    key: [u8; 32],
    /// Of whoever serves it, until the last handle is gone.
    lock: Option<Arc<Lock>>,
}

impl Store {
    /// Opens the file of a gateway, or makes it.
    ///
    /// # Errors
    /// [`OpenError`] if it is something else, damaged, or can't be written. It is left as it was.
    pub fn open(file: &Path, durability: Durability, retention: Retention) -> Result<Self, OpenError> {
        let refused = |problem| OpenError { file: file.to_owned(), problem: OpenProblem::Journal(problem) };
        let lock = Lock::take(file).map_err(refused)?;
        let mut store = Self::open_beside(file, durability, retention)?;
        store.lock = Some(Arc::new(lock));
        // Whoever waited in an earlier run doesn't any more.
        let reset = store.write(|db| {
            db.execute("UPDATE item SET live = 0 WHERE live = 1", [])?;
            notices::release_all(db)
        });
        block_on(reset).map_err(|error| OpenError { file: file.to_owned(), problem: OpenProblem::Store(error) })?;
        Ok(store)
    }

    /// Opens it as [`open`](Self::open) does, while the organism may run.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_beside(file: &Path, durability: Durability, retention: Retention) -> Result<Self, OpenError> {
        let db = open::open(file, durability)?;
        let failed = |error: rusqlite::Error| OpenError { file: file.to_owned(), problem: error.into() };
        let thread = |_| failed(rusqlite::Error::InvalidPath(file.to_owned()));
        let key = db.query_row("SELECT key FROM meta", [], |row| row.get(0)).map_err(failed)?;
        let reader = Worker::reader(open::open_to_read(file).map_err(failed)?).map_err(thread)?;
        let mut tidy = tidy::Tidy::new(retention);
        let writer = Worker::writer(db, move |db| tidy.some(db)).map_err(thread)?;
        Ok(Self { writer, reader, key, lock: None })
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
