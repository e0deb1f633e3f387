//! The image of a journal: an SQLite file with the same tables, in a folder of its own, that dies with its process.
//!
//! The organism applies its steps to the image as to any journal in a file, and answers queries from it. Triggers note
//! which rows change, so that they can be fed to the database.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use rusqlite::Connection;
use rustix::fs::{FlockOperation, flock};
use systole_core::journal::Durability;

use super::super::{JournalOptions, SqliteJournal, StoreError};
use super::problem::Problem;
use super::table::{Change, PRINCIPALS, Table};
use crate::entropy::Entropy;
use crate::sqlite::{FileProblem, Retention};

/// The begin of the names of folders with images.
const PREFIX: &str = "systole-image-";

/// The name of the file whose lock says that the process of an image is there.
const LOCK: &str = "lock";

/// The folder of an image.
#[derive(Debug)]
pub(super) struct Image {
    folder: PathBuf,
    pub(super) file: PathBuf,
    _lock: File,
}

impl Image {
    /// Makes a folder for an image, and deletes those of killed processes.
    pub(super) fn make() -> Result<Self, Problem> {
        let parent = std::env::temp_dir();
        Self::make_in(&parent)
            .map_err(|cause| Problem::Image { folder: parent.display().to_string(), cause: cause.to_string() })
    }

    fn make_in(parent: &Path) -> io::Result<Self> {
        for entry in fs::read_dir(parent)?.flatten() {
            if entry.file_name().to_str().is_some_and(|name| name.starts_with(PREFIX)) {
                forget(&entry.path());
            }
        }
        let folder = parent.join(format!("{PREFIX}{}", Entropy::Real.random()));
        // It has what the database has: nobody else may read it.
        DirBuilder::new().mode(0o700).create(&folder)?;
        // It gets its name when it is locked, so that no other process takes it for that of one that has ended.
        let new = folder.join("new");
        let lock = File::create(&new)?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
        fs::rename(new, folder.join(LOCK))?;
        Ok(Self { file: folder.join("journal"), folder, _lock: lock })
    }
}

/// Deletes the folder of an image whose process has ended.
fn forget(folder: &Path) {
    // Without its lock it is being made, or belongs to another user.
    let Ok(lock) = File::open(folder.join(LOCK)) else { return };
    if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok() {
        let _ = fs::remove_dir_all(folder);
    }
}

impl Drop for Image {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Opens the file of an image for writing.
pub(super) fn open(file: &Path, retention: Retention, secret: [u8; 32]) -> Result<SqliteJournal, StoreError> {
    let options = JournalOptions::new(secret).durability(Durability::Process).retention(retention);
    let journal = SqliteJournal::open(file, &options)?;
    let told = |error| FileProblem::from(error).of(file);
    // It need not survive the system, and the keys of changed rows not the process.
    journal.db.pragma_update(None, "synchronous", "OFF").map_err(told)?;
    journal.db.pragma_update(None, "temp_store", "MEMORY").map_err(told)?;
    // The statements of a journal, and two for each table that is fed.
    journal.db.set_prepared_statement_cache_capacity(192);
    Ok(journal)
}

/// Notes the keys of all rows that change from now on by this connection.
pub(super) fn watch(db: &Connection, tables: &[Table]) -> rusqlite::Result<()> {
    for Table { name, key, .. } in fed(tables) {
        let keys = key.join(", ");
        let of = |row: &str| key.iter().map(|key| format!("{row}.{key}")).collect::<Vec<_>>().join(", ");
        db.execute_batch(&format!(
            "CREATE TEMP TABLE changed_{name} ({keys}, PRIMARY KEY ({keys})) WITHOUT ROWID;
             CREATE TEMP TRIGGER put_{name} AFTER INSERT ON main.{name} BEGIN
                 INSERT OR IGNORE INTO changed_{name} VALUES ({new}); END;
             CREATE TEMP TRIGGER set_{name} AFTER UPDATE ON main.{name} BEGIN
                 INSERT OR IGNORE INTO changed_{name} VALUES ({new}); END;
             CREATE TEMP TRIGGER gone_{name} AFTER DELETE ON main.{name} BEGIN
                 INSERT OR IGNORE INTO changed_{name} VALUES ({old}); END;",
            new = of("new"),
            old = of("old"),
        ))?;
    }
    Ok(())
}

/// Returns all rows that have changed since the last call.
pub(super) fn changes(db: &Connection, tables: &[Table]) -> rusqlite::Result<Vec<Change>> {
    let mut changes = Vec::new();
    for table in fed(tables) {
        let Table { name, key, .. } = table;
        let first = key.first().map_or("", |key| key);
        let sql = format!(
            "SELECT {keys}, now.{first} IS NOT NULL, {columns} FROM temp.changed_{name} was LEFT JOIN main.{name} now \
             ON {same}",
            keys = key.iter().map(|key| format!("was.{key}")).collect::<Vec<_>>().join(", "),
            columns = table.columns.iter().map(|column| format!("now.{}", column.name)).collect::<Vec<_>>().join(", "),
            same = key.iter().map(|key| format!("now.{key} = was.{key}")).collect::<Vec<_>>().join(" AND "),
        );
        let mut change = Change::new(table);
        let mut select = db.prepare_cached(&sql)?;
        let mut rows = select.query([])?;
        while let Some(row) = rows.next()? {
            if row.get(key.len())? { change.put(row, key.len() + 1)? } else { change.remove(row)? }
        }
        drop(rows);
        if change.len() > 0 {
            db.prepare_cached(&format!("DELETE FROM temp.changed_{name}"))?.execute([])?;
            changes.push(change);
        }
    }
    Ok(changes)
}

/// Returns all rows of a file, for a database that has none yet.
pub(super) fn all(db: &Connection, tables: &[Table]) -> rusqlite::Result<Vec<Change>> {
    let whole = |table: &Table| {
        let mut change = Change::new(table);
        let mut select = db.prepare(&format!("SELECT {} FROM main.{}", table.names(), table.name))?;
        let mut rows = select.query([])?;
        while let Some(row) = rows.next()? {
            change.put(row, 0)?;
        }
        Ok(change)
    };
    tables.iter().map(whole).filter(|change| !matches!(change, Ok(change) if change.len() == 0)).collect()
}

fn fed(tables: &[Table]) -> impl Iterator<Item = &Table> {
    tables.iter().filter(|table| table.name != PRINCIPALS)
}
