//! How the file is opened or made: nothing is written to a file before it is known to be one of ours.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use super::worker::StoreError;
use crate::shell::entropy::Entropy;
use crate::shell::sqlite::{Durability, Problem};

/// `SyG1`: what says in the header of a file that it is one of ours.
const APPLICATION_ID: i32 = 0x5379_4731;
const VERSION: i64 = 2;

/// From version 1 to 2; a new file is made as version 1, and upgraded.
const UPGRADE_2: &str = include_str!("upgrade-2.sql");

/// How long one process waits for another that writes: `systole token` does while the organism runs.
const BUSY: Duration = Duration::from_secs(5);

/// Why the file of a gateway can't be used.
#[derive(Debug, thiserror::Error)]
#[error("{}: {problem}", .file.display())]
pub struct OpenError {
    /// The file.
    pub file: PathBuf,
    /// What is wrong with it.
    pub problem: OpenProblem,
}

/// What is wrong with the file of a gateway.
#[derive(Debug, thiserror::Error)]
pub enum OpenProblem {
    /// It is something else.
    #[error("this is not what a gateway keeps beside a journal, and was left as it is: move it away")]
    Other,
    /// A later program made it.
    #[error("its version is {0}, this program knows version {VERSION}: use a later systole")]
    Newer(i64),
    /// Its pages are not in order.
    #[error("damaged: {0}. Restore a copy, or move it away and make new tokens")]
    Damaged(String),
    /// It can't be had: another process serves it.
    #[error(transparent)]
    Journal(Problem),
    /// It can't be written.
    #[error(transparent)]
    Store(StoreError),
    /// Anything else that SQLite says.
    #[error(transparent)]
    Sqlite(#[from] rusqlite::Error),
}

/// The file of the gateway of an organism with that journal.
pub fn beside(journal: &Path) -> PathBuf {
    let mut name = journal.as_os_str().to_owned();
    name.push(".gateway");
    name.into()
}

/// Opens the file for writing, or makes it.
pub(super) fn open(file: &Path, durability: Durability) -> Result<Connection, OpenError> {
    let opened = try_open(file, durability);
    opened.map_err(|problem| OpenError { file: file.to_owned(), problem })
}

/// Opens a file that is there for reading.
pub(super) fn open_to_read(file: &Path) -> rusqlite::Result<Connection> {
    let db = Connection::open_with_flags(file, OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    settle(&db)?;
    Ok(db)
}

fn try_open(file: &Path, durability: Durability) -> Result<Connection, OpenProblem> {
    let found = std::fs::metadata(file).map_or(0, |found| found.len());
    if found > 0 {
        let db = open_to_read(file).map_err(not_ours)?;
        let id: i32 = db.pragma_query_value(None, "application_id", |row| row.get(0)).map_err(not_ours)?;
        if id != APPLICATION_ID {
            return Err(OpenProblem::Other);
        }
    }
    let mut db = Connection::open(file)?;
    settle(&db)?;
    db.pragma_update(None, "journal_mode", "WAL")?;
    durability.set(&db).map_err(OpenProblem::Journal)?;
    let made = db.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
    match made.pragma_query_value(None, "user_version", |row| row.get(0))? {
        0 => make(&made)?,
        1 => made.execute_batch(UPGRADE_2)?,
        VERSION => {}
        newer => return Err(OpenProblem::Newer(newer)),
    }
    made.commit()?;
    match db.query_row("PRAGMA integrity_check(1)", [], |row| row.get::<_, String>(0))? {
        ok if ok == "ok" => Ok(db),
        what => Err(OpenProblem::Damaged(what.replace('\n', " "))),
    }
}

fn make(db: &Connection) -> rusqlite::Result<()> {
    db.execute_batch(include_str!("schema.sql"))?;
    db.execute("INSERT INTO meta VALUES (1, ?1)", [Entropy::Real.secret()])?;
    db.pragma_update(None, "application_id", APPLICATION_ID)?;
    db.execute_batch(UPGRADE_2)
}

fn not_ours(error: rusqlite::Error) -> OpenProblem {
    match error.sqlite_error_code() {
        Some(rusqlite::ErrorCode::NotADatabase) => OpenProblem::Other,
        _ => error.into(),
    }
}

fn settle(db: &Connection) -> rusqlite::Result<()> {
    db.busy_timeout(BUSY)?;
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    db.pragma_update(None, "trusted_schema", false)?;
    db.pragma_update(None, "temp_store", "MEMORY")?;
    db.set_prepared_statement_cache_capacity(64);
    Ok(())
}
