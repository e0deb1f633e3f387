//! A thread that has a connection to itself: what writes goes through it in batches, one transaction each.

use std::sync::mpsc::{Receiver, Sender, channel};

use rusqlite::Connection;
use tokio::sync::oneshot;

use crate::shell::sqlite::Database;

/// Pieces of work in one transaction.
const BATCH: usize = 64;

/// Why something could not be kept or looked up.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// What SQLite says.
    #[error("the gateway's file can't be used: {0}")]
    Sqlite(String),
    /// It takes nothing at the moment.
    #[error("the gateway's file takes nothing: another process holds it, or the gateway has ended")]
    Ended,
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error.to_string())
    }
}

type Work = Box<dyn FnOnce(&Connection) -> Done + Send>;

/// What is left to do once it is known whether it is kept.
struct Done {
    /// Whether there is something to keep.
    ok: bool,
    tell: Box<dyn FnOnce(Result<(), StoreError>)>,
}

/// Hands work to the thread.
#[derive(Clone)]
pub(super) struct Worker(Sender<Work>);

impl Worker {
    /// A thread that writes; `tidy` is done within each transaction.
    pub(super) fn writer(
        db: Database,
        tidy: impl FnMut(&Connection) -> rusqlite::Result<()> + Send + 'static,
    ) -> std::io::Result<Self> {
        Self::spawn("gateway-write", move |work| write(&db, &work, tidy))
    }

    /// A thread that reads.
    pub(super) fn reader(db: Database) -> std::io::Result<Self> {
        Self::spawn("gateway-read", move |work| {
            while let Ok(next) = work.recv() {
                (next(&db).tell)(Ok(()));
            }
        })
    }

    fn spawn(name: &str, run: impl FnOnce(Receiver<Work>) + Send + 'static) -> std::io::Result<Self> {
        let (sender, receiver) = channel();
        std::thread::Builder::new().name(name.to_owned()).spawn(move || run(receiver))?;
        Ok(Self(sender))
    }

    /// Does work there; it is kept when this comes back.
    ///
    /// # Cancel safety
    /// Once called, it happens without being awaited.
    pub(super) fn run<T, W>(&self, work: W) -> impl Future<Output = Result<T, StoreError>> + Send + use<T, W>
    where
        T: Send + 'static,
        W: FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    {
        let (tell, told) = oneshot::channel();
        let work = move |db: &Connection| {
            let result = work(db);
            let ok = result.is_ok();
            let tell = move |kept: Result<(), StoreError>| {
                // Whoever asked may have gone.
                let _ = tell.send(kept.and(result.map_err(StoreError::from)));
            };
            Done { ok, tell: Box::new(tell) }
        };
        let sent = self.0.send(Box::new(work));
        async move {
            sent.map_err(|_| StoreError::Ended)?;
            told.await.map_err(|_| StoreError::Ended)?
        }
    }
}

fn write(db: &Connection, work: &Receiver<Work>, mut tidy: impl FnMut(&Connection) -> rusqlite::Result<()>) {
    while let Ok(first) = work.recv() {
        let more = std::iter::from_fn(|| work.try_recv().ok());
        let batch: Vec<Work> = std::iter::once(first).chain(more).take(BATCH).collect();
        if let Err(error) = db.execute_batch("BEGIN IMMEDIATE") {
            // Each is told by what its own first statement says, or by the end of its channel.
            tracing::error!(%error, "the gateway's file can't be written");
            continue;
        }
        let done: Vec<Done> = batch.into_iter().map(|next| apart(db, next)).collect();
        let kept = tidy(db).and_then(|()| db.execute_batch("COMMIT")).map_err(StoreError::from);
        if let Err(error) = &kept {
            tracing::error!(%error, "the gateway's file can't be written");
            // Some errors have rolled it back already.
            let _ = db.execute_batch("ROLLBACK");
        }
        done.into_iter().for_each(|done| (done.tell)(kept.clone()));
    }
}

/// Does one piece of work so that nothing of it stays if it fails.
fn apart(db: &Connection, work: Work) -> Done {
    let begun = db.prepare_cached("SAVEPOINT piece").and_then(|mut begin| begin.execute([]));
    let mut done = work(db);
    let end = if done.ok { "RELEASE piece" } else { "ROLLBACK TO piece; RELEASE piece" };
    if let Err(error) = begun.and_then(|_| db.execute_batch(end)) {
        let error = StoreError::from(error);
        let tell = std::mem::replace(&mut done.tell, Box::new(|_| {}));
        done.tell = Box::new(move |_| tell(Err(error)));
    }
    done
}
