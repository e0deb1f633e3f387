//! How a journal is opened: nothing is written to a file before it is known to be a journal in order.

use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use super::error::Problem;
use super::lock::beside;
use super::meta::{Horizon, Meta};
use super::retain::horizon;
use super::row::{Loaded, Record, load, write};
use super::schema::{self, APPLICATION_ID, VERSION};
use super::wal::{self, Cut};
use super::{Durability, Options};

/// How long a reader waits for a moment in which the file can be read.
const BUSY: Duration = Duration::from_secs(5);

/// Memory for pages of the file, in KiB.
const CACHE: i64 = 32 * 1024;

/// The log is written back at so many pages, which a busy organism fills in a second or so: the pages that change all
/// the time are written back once.
const CHECKPOINT: i64 = 4096;

/// What stays of the log's file when it starts over, in bytes.
const LOG: i64 = 64 << 20;

/// A journal that was found in order, or made.
pub(super) struct Opened {
    pub(super) db: Connection,
    pub(super) meta: Loaded<Meta>,
    pub(super) cut: Option<Cut>,
}

/// Opens a journal for writing; the caller has its lock.
pub(super) fn open(file: &Path, options: &Options) -> Result<Opened, Problem> {
    match fs::metadata(file) {
        Ok(found) if found.len() > 0 => {}
        Ok(_) => create(file, options)?,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => create(file, options)?,
        Err(error) => return Err(error.into()),
    }
    recognize(file)?;
    let cut = wal::inspect(file)?;
    if let Some(cut) = cut.filter(|cut| cut.finished && !options.cut) {
        return Err(Problem::DamagedLog { at: cut.at });
    }
    let db = Connection::open_with_flags(file, OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    // What is refused below stays as it is, its log included.
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    if db.is_readonly("main")? {
        return Err(Problem::ReadOnly);
    }
    settle(&db)?;
    db.pragma_update(None, "cache_size", -CACHE)?;
    db.pragma_update(None, "wal_autocheckpoint", CHECKPOINT)?;
    db.pragma_update(None, "journal_size_limit", LOG)?;
    options.durability.set(&db)?;
    db.set_prepared_statement_cache_capacity(64);
    let version = version(&db)?;
    schema::compare(&db, version)?;
    check(&db)?;
    let meta = meta(&db)?;
    if version >= schema::ORDERED {
        horizon(&db)?;
    }
    truncate_log(&db)?;
    if version < VERSION {
        db.execute_batch("BEGIN IMMEDIATE")?;
        schema::migrate(&db, version)?;
        if version < schema::ORDERED {
            // The last step may have the same moment as those before it.
            let all = Horizon(meta.at + 1);
            write(&mut db.prepare(Horizon::INSERT)?, &all, meta.at, &mut Vec::new())?;
        }
        db.execute_batch("COMMIT")?;
    }
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false)?;
    Ok(Opened { db, meta, cut })
}

/// Opens a journal for reading, in use or not.
pub(super) fn open_to_read(file: &Path) -> Result<Connection, Problem> {
    if !file.try_exists()? {
        return Err(Problem::Missing);
    }
    recognize(file)?;
    let db = Connection::open_with_flags(file, OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    settle(&db)?;
    let version = version(&db)?;
    schema::compare(&db, version)?;
    Ok(db)
}

/// What the journal knows of itself.
pub(super) fn meta(db: &Connection) -> Result<Loaded<Meta>, Problem> {
    let mut statement = db.prepare(Meta::SELECT)?;
    let mut rows = statement.query([])?;
    let row = rows.next()?.ok_or_else(|| Problem::damaged("it says nothing of itself"))?;
    load(row, &mut Vec::new())
}

impl Durability {
    fn set(self, db: &Connection) -> Result<(), Problem> {
        match self {
            Self::Process => db.pragma_update(None, "synchronous", "NORMAL")?,
            Self::Power => {
                db.pragma_update(None, "synchronous", "FULL")?;
                // On macOS only this reaches the disk; elsewhere fsync does.
                db.pragma_update(None, "fullfsync", true)?;
                db.pragma_update(None, "checkpoint_fullfsync", true)?;
            }
        }
        Ok(())
    }
}

/// What holds for readers and writers.
fn settle(db: &Connection) -> Result<(), Problem> {
    db.busy_timeout(BUSY)?;
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    db.pragma_update(None, "trusted_schema", false)?;
    db.pragma_update(None, "cell_size_check", true)?;
    db.pragma_update(None, "temp_store", "MEMORY")?;
    Ok(())
}

/// Makes an empty journal: elsewhere, so that there is a whole one or none.
fn create(file: &Path, options: &Options) -> Result<(), Problem> {
    let new = beside(file, "-new");
    for ending in ["", "-wal", "-shm", "-journal"] {
        match fs::remove_file(beside(&new, ending)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
            Ok(()) | Err(_) => {}
        }
    }
    let db = Connection::open(&new)?;
    db.execute_batch("BEGIN IMMEDIATE")?;
    db.pragma_update(None, "application_id", APPLICATION_ID)?;
    schema::migrate(&db, 0)?;
    let meta = Meta { key: options.key, epoch: 0, running: false, total: 0 };
    write(&mut db.prepare(Meta::INSERT)?, &meta, 0, &mut Vec::new())?;
    db.execute_batch("COMMIT")?;
    db.pragma_update(None, "journal_mode", "WAL")?;
    db.close().map_err(|(_, error)| error)?;
    File::open(&new)?.sync_all()?;
    fs::rename(&new, file)?;
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(folder)?.sync_all()?;
    Ok(())
}

/// Looks at the header alone, without a lock or a trace.
fn recognize(file: &Path) -> Result<(), Problem> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let db = Connection::open_with_flags(immutable(file)?, flags)?;
    let id: i32 = db.pragma_query_value(None, "application_id", |row| row.get(0))?;
    if id != APPLICATION_ID {
        return Err(Problem::NotAJournal);
    }
    version(&db).map(drop)
}

fn version(db: &Connection) -> Result<i64, Problem> {
    match db.pragma_query_value(None, "user_version", |row| row.get(0))? {
        found @ 1..=VERSION => Ok(found),
        found if found > VERSION => Err(Problem::Newer { found, known: VERSION }),
        found => Err(Problem::damaged(format!("its version is {found}"))),
    }
}

/// The address of a file that SQLite takes for one that nobody writes.
fn immutable(file: &Path) -> Result<PathBuf, Problem> {
    let mut address = "file:".to_owned();
    for byte in std::path::absolute(file)?.as_os_str().as_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'_' | b'.' => address.push(char::from(*byte)),
            _ => address += &format!("%{byte:02x}"),
        }
    }
    Ok((address + "?immutable=1").into())
}

fn check(db: &Connection) -> Result<(), Problem> {
    let found: String = db.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0))?;
    if found == "ok" { Ok(()) } else { Err(Problem::damaged(found.replace('\n', " "))) }
}

/// Writes the log back and empties it: what was cut off must not follow what comes now.
pub(super) fn truncate_log(db: &Connection) -> Result<(), Problem> {
    let busy: bool = db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))?;
    if busy { Err(Problem::InUse { holder: None }) } else { Ok(()) }
}
