//! How a file is opened: nothing is written to it before it is known to be in order.

use std::fs::{self, File};
use std::io::Read;
use std::path::Path;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use super::Durability;
use super::format::Format;
use super::lock::beside;
use super::problem::Problem;
use super::wal::{self, Cut};

/// How long a reader waits for a moment in which the file can be read.
const BUSY: Duration = Duration::from_secs(5);

/// Memory for pages of the file, in KiB.
const CACHE: i64 = 32 * 1024;

/// The log is written back at so many pages, which a busy organism fills in a second or so: the pages that change all
/// the time are written back once.
const CHECKPOINT: i64 = 4096;

/// What stays of the log's file when it starts over, in bytes.
const LOG: i64 = 64 << 20;

/// A file that was found in order, or made.
pub(crate) struct Opened<T> {
    pub(crate) db: Connection,
    /// What was read in it before anything was written.
    pub(crate) read: T,
    pub(crate) cut: Option<Cut>,
}

/// How a file is opened for writing.
pub(crate) struct Opening<'a, T> {
    pub(crate) format: Format,
    pub(crate) durability: Durability,
    /// Whether what stands behind a damaged place in the log may be given up.
    pub(crate) cut: bool,
    /// What a new file has from the start.
    pub(crate) fill: &'a dyn Fn(&Connection) -> Result<(), Problem>,
    /// What is to be read before the file, of that version, is taken for one in order.
    pub(crate) read: &'a dyn Fn(&Connection, i64) -> Result<T, Problem>,
    /// What else a file of an earlier version needs.
    pub(crate) renew: &'a dyn Fn(&Connection, i64, &T) -> Result<(), Problem>,
}

impl<T> Opening<'_, T> {
    /// Opens a file, or makes one where there is none or an empty one; the caller has its lock.
    pub(crate) fn open(&self, file: &Path) -> Result<Opened<T>, Problem> {
        match fs::metadata(file) {
            Ok(found) if found.len() > 0 => {}
            Ok(_) => self.create(file)?,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => self.create(file)?,
            Err(error) => return Err(error.into()),
        }
        recognize(file, self.format)?;
        let cut = wal::inspect(file)?;
        if let Some(cut) = cut.filter(|cut| cut.finished && !self.cut) {
            return Err(Problem::DamagedLog { at: cut.at });
        }
        let db = open_to_write(file, self.durability)?;
        // What is refused below stays as it is, its log included.
        db.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
        let version = self.format.version_of(&db)?;
        self.format.compare(&db, version)?;
        check(&db)?;
        let read = (self.read)(&db, version)?;
        truncate_log(&db)?;
        if version < self.format.version() {
            db.execute_batch("BEGIN IMMEDIATE")?;
            self.format.migrate(&db, version)?;
            (self.renew)(&db, version, &read)?;
            db.execute_batch("COMMIT")?;
        }
        db.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false)?;
        Ok(Opened { db, read, cut })
    }

    /// Makes an empty file: elsewhere, so that there is a whole one or none.
    fn create(&self, file: &Path) -> Result<(), Problem> {
        let new = beside(file, "-new");
        for ending in ["", "-wal", "-shm", "-journal"] {
            match fs::remove_file(beside(&new, ending)) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
                Ok(()) | Err(_) => {}
            }
        }
        let db = Connection::open(&new)?;
        db.execute_batch("BEGIN IMMEDIATE")?;
        db.pragma_update(None, "application_id", self.format.id)?;
        self.format.migrate(&db, 0)?;
        (self.fill)(&db)?;
        db.execute_batch("COMMIT")?;
        db.pragma_update(None, "journal_mode", "WAL")?;
        db.close().map_err(|(_, error)| error)?;
        File::open(&new)?.sync_all()?;
        fs::rename(&new, file)?;
        let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        File::open(folder)?.sync_all()?;
        Ok(())
    }
}

/// Opens a file for writing that somebody else has opened, and found in order, and writes too.
///
/// SQLite alone opens it: closing any other handle would free what this process has locked in it.
#[cfg(feature = "gateway")]
pub(crate) fn join(file: &Path, format: Format, durability: Durability) -> Result<Connection, Problem> {
    let db = open_to_write(file, durability)?;
    let version = judge(&db, format)?;
    if version < format.version() {
        return Err(Problem::Older { found: version });
    }
    Ok(db)
}

/// Opens a file for reading that this process has opened, and found in order. SQLite alone opens it, as above.
pub(crate) fn join_to_read(file: &Path, format: Format) -> Result<Connection, Problem> {
    let db = Connection::open_with_flags(file, OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    settle(&db)?;
    judge(&db, format)?;
    Ok(db)
}

/// The version of a file, if it is of that format.
fn judge(db: &Connection, format: Format) -> Result<i64, Problem> {
    let id: i32 = db.pragma_query_value(None, "application_id", |row| row.get(0))?;
    if id != format.id {
        return Err(Problem::Foreign { format: format.name });
    }
    let version = format.version_of(db)?;
    format.compare(db, version)?;
    Ok(version)
}

fn open_to_write(file: &Path, durability: Durability) -> Result<Connection, Problem> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let db = Connection::open_with_flags(file, flags)?;
    if db.is_readonly("main")? {
        return Err(Problem::ReadOnly);
    }
    settle(&db)?;
    db.pragma_update(None, "cache_size", -CACHE)?;
    db.pragma_update(None, "wal_autocheckpoint", CHECKPOINT)?;
    db.pragma_update(None, "journal_size_limit", LOG)?;
    durability.set(&db)?;
    db.set_prepared_statement_cache_capacity(64);
    Ok(db)
}

/// Opens a file for reading, in use or not.
pub(crate) fn open_to_read(file: &Path, format: Format) -> Result<Connection, Problem> {
    if !file.try_exists()? {
        return Err(Problem::Missing);
    }
    recognize(file, format)?;
    join_to_read(file, format)
}

impl Durability {
    pub(crate) fn set(self, db: &Connection) -> Result<(), Problem> {
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

/// Looks at the header alone (SQLite's file format, section 1.3), without a lock or a trace. SQLite itself is not asked:
/// without its log, a file whose log was being written back when its process was killed is none to it.
fn recognize(file: &Path, format: Format) -> Result<(), Problem> {
    const MAGIC: &[u8] = b"SQLite format 3\0";
    let mut header = [0; 100];
    let foreign = Problem::Foreign { format: format.name };
    match File::open(file)?.read_exact(&mut header) {
        Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => return Err(foreign),
        read => read?,
    }
    let number = |at: usize| i32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
    let (version, id) = (number(60), number(68));
    if !header.starts_with(MAGIC) || id != format.id {
        return Err(foreign);
    }
    format.judge(version.into()).map(drop)
}

fn check(db: &Connection) -> Result<(), Problem> {
    let found: String = db.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0))?;
    if found == "ok" { Ok(()) } else { Err(Problem::damaged(found.replace('\n', " "))) }
}

/// Writes the log back and empties it: what was cut off must not follow what comes now.
pub(crate) fn truncate_log(db: &Connection) -> Result<(), Problem> {
    let busy: bool = db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))?;
    if busy { Err(Problem::InUse { holder: None }) } else { Ok(()) }
}

/// Bytes of the file that hold something.
pub(crate) fn used(db: &Connection) -> Result<u64, Problem> {
    let number = |name: &str| db.prepare_cached(&format!("PRAGMA {name}"))?.query_row([], |row| row.get::<_, i64>(0));
    let pages = number("page_count")? - number("freelist_count")?;
    Ok(u64::try_from(pages * number("page_size")?).unwrap_or_default())
}
