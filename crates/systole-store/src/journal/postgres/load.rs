//! Loading: an image from the tables and the log, as of one moment.

use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};

use rusqlite::params_from_iter;
use rusqlite::types::Value;
use std::future::poll_fn;
use std::time::Duration;

use futures_core::Stream;
use systole_core::journal::JournalError;
use tokio_postgres::types::{ToSql, Type};

use super::super::SqliteJournal;
use super::super::meta::Meta;
use super::super::recover::Known;
use super::address::Address;
use super::entry::{Entry, Kind};
use super::image::Image;
use super::problem::{Problem, Trouble};
use super::server::{Server, connect};
use super::table::{Table, tables, values};
use super::{image, layout, log, server};
use crate::sqlite::{FileProblem, Retention};

/// The most rows in a piece on its way.
const PIECE: usize = 1024;

/// The most attempts to load a journal, one a second, while the connection is lost again and again.
const ATTEMPTS: u32 = 60;
const PAUSE: Duration = Duration::from_secs(1);

/// Something of a journal on its way into its image.
enum Loaded {
    /// Rows of the table of that index.
    Rows(usize, Vec<Vec<Value>>),
    /// The log behind the last entry that the tables have.
    Log(Fed, Vec<Entry>),
}

/// The state of the tables.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fed {
    /// The last entry that they have.
    pub(super) seq: i64,
    /// The connection of the owner, if it is there.
    pub(super) owner: Option<i32>,
}

/// An image with all that was read.
pub(super) struct LoadedImage {
    pub(super) journal: SqliteJournal,
    pub(super) tables: Vec<Table>,
    pub(super) fed: Fed,
    /// Damage of the log; behind it nothing was read.
    pub(super) damage: Option<Problem>,
}

/// Loads a journal into a new image, again if the connection is lost meanwhile. `before`: only what was appended before
/// this entry. `is_writer`: changes are to be fed.
///
/// # Errors
/// [`JournalError`] if the database can't be read, or the image can't be written.
pub(super) fn load_image(
    server: &Server,
    retention: Retention,
    before: Option<i64>,
    is_writer: bool,
) -> Result<(Image, LoadedImage), JournalError> {
    let mut attempts = 0;
    loop {
        let image = Image::make().map_err(|problem| problem.of(&server.address))?;
        match load(server, &image.file, retention, before, is_writer) {
            Ok(loaded) => return Ok((image, loaded)),
            Err(Unloaded::Lost(error)) if attempts == ATTEMPTS => return Err(error),
            Err(Unloaded::Lost(error)) => {
                tracing::warn!(%error, "the journal could not be loaded; trying again");
                attempts += 1;
                server.wait(move || async move {
                    tokio::time::sleep(PAUSE).await;
                    Ok(())
                })?;
            }
            Err(Unloaded::Failed(error)) => return Err(error),
        }
    }
}

/// The reason why nothing was loaded.
#[derive(Debug)]
pub(super) enum Unloaded {
    /// The connection was lost.
    Lost(JournalError),
    Failed(JournalError),
}

impl<E: Into<JournalError>> From<E> for Unloaded {
    fn from(error: E) -> Self {
        Self::Failed(error.into())
    }
}

/// Loads a journal into a new file, in one attempt.
pub(super) fn load(
    server: &Server,
    file: &Path,
    retention: Retention,
    before: Option<i64>,
    is_writer: bool,
) -> Result<LoadedImage, Unloaded> {
    let journal = image::open(file, retention, [0; 32])?;
    let told = |error: rusqlite::Error| JournalError::from(FileProblem::from(error).of(file));
    let tables = tables(&journal.db).map_err(told)?;
    let (pieces, coming) = sync_channel(4);
    let reading = server.begin({
        let (address, tables) = (server.address.clone(), tables.clone());
        move || read(address, tables, pieces)
    });
    let mut end = None;
    journal.db.execute_batch("BEGIN; DELETE FROM meta").map_err(told)?;
    for loaded in coming {
        match loaded {
            Loaded::Rows(table, rows) => insert(&journal, &tables[table], rows).map_err(told)?,
            Loaded::Log(fed, entries) => end = Some((fed, entries)),
        }
    }
    // Why it has broken off.
    match reading.wait(server)? {
        Ok(()) => {}
        Err(cause) => return Err(Unloaded::Lost(Problem::Unreachable { seconds: 60, cause }.of(&server.address))),
    }
    let (fed, entries) = end.ok_or_else(|| Problem::Ended.of(&server.address))?;
    journal.db.execute_batch("COMMIT").map_err(told)?;
    drop(journal);
    let mut journal = image::open(file, retention, [0; 32])?;
    if is_writer {
        image::watch(&journal.db, &tables).map_err(told)?;
    }
    let damage = replay(&mut journal, fed.seq, entries, before)?.err();
    journal.feed_all()?;
    Ok(LoadedImage { journal, tables, fed, damage })
}

fn insert(journal: &SqliteJournal, table: &Table, rows: Vec<Vec<Value>>) -> rusqlite::Result<()> {
    let marks = vec!["?"; table.columns.len()].join(", ");
    let sql = format!("INSERT INTO {} ({}) VALUES ({marks})", table.name, table.names());
    let mut insert = journal.db.prepare_cached(&sql)?;
    rows.into_iter().try_for_each(|row| insert.execute(params_from_iter(row)).map(drop))
}

/// Applies the entries of the log to the tables, in order. The inner error is damage of the log.
fn replay(
    journal: &mut SqliteJournal,
    mut last: i64,
    entries: Vec<Entry>,
    before: Option<i64>,
) -> Result<Result<(), Problem>, JournalError> {
    journal.known = Known::read(&journal.db).map_err(|problem| problem.of(&journal.file))?;
    for entry in entries {
        if entry.seq != last + 1 {
            return Ok(Err(Problem::Damaged { what: format!("the log: entry {} is missing, which", last + 1) }));
        }
        last = entry.seq;
        if before.is_some_and(|before| entry.seq >= before) {
            break;
        }
        let (kind, epoch) = match entry.kind().map(|kind| (kind, u32::try_from(entry.epoch))) {
            Ok((kind, Ok(epoch))) => (kind, epoch),
            Ok((_, Err(_))) => return Ok(Err(Problem::Damaged { what: format!("entry {} of the log", entry.seq) })),
            Err(problem) => return Ok(Err(problem)),
        };
        match kind {
            Kind::Steps => match entry.steps() {
                Ok(steps) => journal.write_steps(&steps)?,
                Err(problem) => return Ok(Err(problem)),
            },
            Kind::Start => note(journal, Some(epoch), Some(true))?,
            Kind::Epoch => note(journal, Some(epoch), None)?,
            Kind::End => note(journal, None, Some(false))?,
        }
    }
    Ok(Ok(()))
}

/// Writes into an image in which epoch it is, and whether its organism runs or has crashed.
pub(super) fn note(journal: &mut SqliteJournal, epoch: Option<u32>, running: Option<bool>) -> Result<(), JournalError> {
    Ok(journal.transaction(|journal| {
        let meta = journal.meta.clone();
        Ok(Meta { epoch: epoch.unwrap_or(meta.epoch), running: running.unwrap_or(meta.running), ..meta })
    })?)
}

/// Reads tables and log in one transaction, over a connection of its own, and sends them in pieces. The inner error is
/// that of a lost connection: what was sent can't be taken back.
async fn read(
    address: Arc<Address>,
    tables: Vec<Table>,
    pieces: SyncSender<Loaded>,
) -> Result<Result<(), String>, Problem> {
    let read = async || -> Result<(), Trouble> {
        let client = connect(&address).await?;
        layout::check(&client).await?;
        client.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY").await?;
        let rows = client.query_typed("SELECT seq FROM systole.fed WHERE part = 0", &[]).await?;
        let Some(seq) = rows.first().map(|row| row.get(0)) else { return Err(Problem::Missing.into()) };
        let owner = server::owner(&client).await?;
        for (index, table) in tables.iter().enumerate() {
            let sql = format!("SELECT {} FROM systole.{} WHERE log = 0", table.names(), table.name);
            let none: [(&(dyn ToSql + Sync), Type); 0] = [];
            let mut stream = pin!(client.query_typed_raw(&sql, none).await?);
            let mut piece = Vec::new();
            while let Some(row) = poll_fn(|cx| stream.as_mut().poll_next(cx)).await {
                piece.push(values(table, &row?)?);
                if piece.len() == PIECE && pieces.send(Loaded::Rows(index, std::mem::take(&mut piece))).is_err() {
                    return Ok(());
                }
            }
            if pieces.send(Loaded::Rows(index, piece)).is_err() {
                return Ok(());
            }
        }
        let entries = log::entries(&client, seq).await?;
        client.batch_execute("COMMIT").await?;
        // Who waits for it may have given up.
        let _ = pieces.send(Loaded::Log(Fed { seq, owner }, entries));
        Ok(())
    };
    match read().await {
        Ok(()) => Ok(Ok(())),
        Err(Trouble::Passing(cause)) => Ok(Err(cause)),
        Err(Trouble::Lasting(problem)) => Err(problem),
    }
}
