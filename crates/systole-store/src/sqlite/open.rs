//! Opening of files: nothing is written to a file before it is known to be in order.

use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use super::file_lock::{Database, LockedFile, create};
use super::format::Format;
use super::place::{beside, is_mounted_read_only, writable};
use super::problem::FileProblem;
use super::wal::Cut;
use systole_core::journal::Durability;

/// Time limit for a reader that waits for access to the file.
const BUSY: Duration = Duration::from_secs(5);

/// Memory for pages of the file, in KiB.
const CACHE: i64 = 32 * 1024;

/// Length in pages at which the log is written back. A busy organism fills it in about a second, so pages that change
/// all the time are written back once.
pub(super) const CHECKPOINT: i32 = 4096;

/// Size of the log's file after it starts over, in bytes.
pub(super) const LOG: i64 = 64 << 20;

/// Size of the log of a running organism in bytes beyond which commands of other processes read no longer.
const PINNED: u64 = 2 * LOG.cast_unsigned();

/// An opened file that is in order.
pub(crate) struct Opened<T> {
    pub(crate) db: Database,
    /// Contents that were read before anything was written.
    pub(crate) read: T,
    pub(crate) cut: Option<Cut>,
}

/// Parameters for opening a file for writing.
pub(crate) struct Opening<'a, T> {
    pub(crate) format: Format,
    pub(crate) durability: Durability,
    /// True if the part of the log behind a damaged place may be cut off.
    pub(crate) cut: bool,
    /// Writes the initial rows of a new file.
    pub(crate) fill: &'a dyn Fn(&Connection) -> Result<(), FileProblem>,
    /// Reads the contents of a file, which shows that it is in order.
    pub(crate) read: &'a dyn Fn(&Connection) -> Result<T, FileProblem>,
}

impl<T> Opening<'_, T> {
    /// Opens a file, or creates one where there is none or an empty one.
    ///
    /// # Errors
    /// [`FileProblem::InUse`] if another writer has the file, or the [`FileProblem`] that it has. It is left unchanged.
    pub(crate) fn open(&self, file: &Path) -> Result<Opened<T>, FileProblem> {
        let mut held = LockedFile::take(file)?;
        if fs::metadata(held.path())?.len() == 0 {
            held = self.create(held)?;
        }
        recognize(&held, self.format)?;
        let cut = held.inspect()?;
        let given_up = |cut: &Cut| self.cut || cut.is_due(self.durability);
        if let Some(problem) = cut.filter(|cut| !given_up(cut)).and_then(|cut| cut.problem()) {
            return Err(problem);
        }
        let mut db = open_to_write(held, self.durability)?;
        self.format.check(&db)?;
        check(&db)?;
        let read = (self.read)(&db)?;
        if cut.is_some() {
            // Frames that were cut off must not stand behind new ones.
            truncate_log(&db)?;
        }
        db.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false)?;
        db.write_back_beside(self.format, self.durability)?;
        db.keep_companions()?;
        Ok(Opened { db, read, cut })
    }

    /// Creates the file that replaces an empty one, which stays locked meanwhile.
    fn create(&self, empty: LockedFile) -> Result<LockedFile, FileProblem> {
        let path = empty.path();
        let made = self.make(path);
        if made.is_err() && empty.was_made() {
            // An empty file would only clutter the folder.
            let _ = fs::remove_file(path);
        }
        made?;
        LockedFile::take(path)
    }

    /// Creates the file under another name first, so that it is complete or not there.
    fn make(&self, file: &Path) -> Result<(), FileProblem> {
        writable(file)?;
        let log = beside(file, "-wal");
        if fs::metadata(&log).is_ok_and(|found| found.len() > 0) {
            // SQLite would take it for the log of the new file.
            return Err(FileProblem::Headless { log });
        }
        let new = beside(file, "-new");
        for ending in ["", "-wal", "-shm", "-journal"] {
            match fs::remove_file(beside(&new, ending)) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
                Ok(()) | Err(_) => {}
            }
        }
        // SQLite gives the files beside this one the same mode.
        drop(create(&new)?);
        let db = Connection::open(&new)?;
        db.execute_batch("BEGIN IMMEDIATE")?;
        self.format.make(&db)?;
        (self.fill)(&db)?;
        db.execute_batch("COMMIT")?;
        db.pragma_update(None, "journal_mode", "WAL")?;
        db.close().map_err(|(_, error)| error)?;
        File::open(&new)?.sync_all()?;
        fs::rename(&new, file)?;
        File::open(file.parent().unwrap_or(Path::new("/")))?.sync_all()?;
        Ok(())
    }
}

/// Opens a file for writing that another connection has opened and checked, and writes, too.
///
/// Only SQLite opens it: closing another descriptor would release the locks of this process.
pub(crate) fn join(file: &Path, format: Format, durability: Durability) -> Result<Database, FileProblem> {
    let held = LockedFile::look(file)?;
    recognize(&held, format)?;
    let db = open_to_write(held, durability)?;
    format.check(&db)?;
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false)?;
    Ok(db)
}

/// Opens a file for reading that this process has opened and checked.
pub(crate) fn join_to_read(file: &Path, format: Format) -> Result<Database, FileProblem> {
    let held = LockedFile::look(file)?;
    recognize(&held, format)?;
    read(held, format)
}

fn read(held: LockedFile, format: Format) -> Result<Database, FileProblem> {
    let db = connect(held, OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    settle(&db)?;
    format.check(&db)?;
    Ok(db)
}

fn open_to_write(held: LockedFile, durability: Durability) -> Result<Database, FileProblem> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let db = connect(held, flags)?;
    if db.is_readonly("main")? {
        return Err(FileProblem::ReadOnly);
    }
    settle(&db)?;
    db.pragma_update(None, "cache_size", -CACHE)?;
    db.pragma_update(None, "wal_autocheckpoint", CHECKPOINT)?;
    db.pragma_update(None, "journal_size_limit", LOG)?;
    set_durability(&db, durability)?;
    db.set_prepared_statement_cache_capacity(128);
    Ok(db)
}

/// Opens a file for reading, whether it is in use or not.
///
/// # Errors
/// [`FileProblem::Unended`] if the log of a file that no process writes has an unfinished transaction at its end: SQLite
/// would rebuild the log's index, and only the index tells that end from a damaged transaction. [`Opening::open`] cuts it
/// off; with `unended` the file is read all the same.
pub(crate) fn open_to_read(file: &Path, format: Format, unended: bool) -> Result<Database, FileProblem> {
    let held = LockedFile::look(file)?;
    recognize(&held, format)?;
    if held.writer()?.is_none()
        && let Some(cut) = held.inspect()?
    {
        if let Some(problem) = cut.problem() {
            return Err(problem);
        }
        if !unended {
            return Err(FileProblem::Unended);
        }
    }
    if is_unchangeable(&held)? {
        return read_unchangeable(held, format);
    }
    let mut db = read(held, format)?;
    spare_the_log(&mut db)?;
    Ok(db)
}

/// Returns whether a file is on a file system that can't be written, and complete without its log.
///
/// # Errors
/// [`FileProblem::Unfed`] if it needs its log: SQLite can't make the index of that there.
fn is_unchangeable(held: &LockedFile) -> Result<bool, FileProblem> {
    if !is_mounted_read_only(held.path())? {
        return Ok(false);
    }
    let len = |ending| fs::metadata(beside(held.path(), ending)).map_or(0, |found| found.len());
    match (len("-wal"), len("-shm")) {
        (0, _) => Ok(true),
        (_, 0) => Err(FileProblem::Unfed),
        _ => Ok(false),
    }
}

/// Opens a file that can't change: SQLite needs neither its log nor a lock.
fn read_unchangeable(held: LockedFile, format: Format) -> Result<Database, FileProblem> {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"/._-".contains(byte);
    let path = held.path().as_os_str().as_bytes().iter().map(|byte| match plain(byte) {
        true => char::from(*byte).to_string(),
        false => format!("%{byte:02x}"),
    });
    let uri = format!("file:{}?immutable=1", path.collect::<String>());
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_URI;
    let db = Database::new(Connection::open_with_flags(uri, flags)?, held);
    settle(&db)?;
    format.check(&db)?;
    Ok(db)
}

/// Ends the statements of a reader once the log of a running organism has grown to [`PINNED`]: it can't start over while
/// a transaction reads.
fn spare_the_log(db: &mut Database) -> Result<(), FileProblem> {
    let log = beside(db.file().path(), "-wal");
    let file = LockedFile::look(db.file().path())?;
    let is_pinned = move || {
        let len = fs::metadata(&log).map_or(0, |found| found.len());
        len > PINNED && file.writer().is_ok_and(|writer| writer.is_some())
    };
    db.interrupt_if(is_pinned)
}

/// Connects to exactly the file that is held.
fn connect(held: LockedFile, flags: OpenFlags) -> Result<Database, FileProblem> {
    let db = Connection::open_with_flags(held.path(), flags)?;
    db.busy_timeout(BUSY)?;
    // A refused file stays unchanged, including its log.
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    // SQLite opens the file with its first statement.
    db.query_row("PRAGMA schema_version", [], |_| Ok(()))?;
    let db = Database::new(db, held);
    if db.file().is_in_place() { Ok(db) } else { Err(FileProblem::Moved) }
}

/// Makes transactions survive what they should.
fn set_durability(db: &Connection, durability: Durability) -> Result<(), FileProblem> {
    match durability {
        Durability::Process => db.pragma_update(None, "synchronous", "NORMAL")?,
        Durability::Power => {
            db.pragma_update(None, "synchronous", "FULL")?;
            // On macOS only this reaches the disk; elsewhere fsync does.
            db.pragma_update(None, "fullfsync", true)?;
            db.pragma_update(None, "checkpoint_fullfsync", true)?;
        }
    }
    Ok(())
}

/// Settings for readers and writers.
fn settle(db: &Connection) -> Result<(), FileProblem> {
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    // Otherwise SQLite plans `x = ?1 … ORDER BY` and `LIMIT ?1` by value, and prepares the statement again for each.
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    db.pragma_update(None, "trusted_schema", false)?;
    db.pragma_update(None, "cell_size_check", true)?;
    db.pragma_update(None, "temp_store", "MEMORY")?;
    Ok(())
}

/// Runs work in a transaction that starts with `begin`. After an error, including that of its end, it is rolled back.
pub(crate) fn transaction<T, E: From<rusqlite::Error>>(
    db: &Connection,
    begin: &str,
    work: impl FnOnce() -> Result<T, E>,
) -> Result<T, E> {
    let say = |sql| db.prepare_cached(sql)?.execute([]);
    say(begin)?;
    let done = work().and_then(|done| say("COMMIT").map(|_| done).map_err(E::from));
    if done.is_err() {
        // Some errors have rolled it back already.
        let _ = db.execute_batch("ROLLBACK");
    }
    done
}

/// Checks the header alone (SQLite's file format, section 1.3), without a lock or a trace. SQLite would refuse a file
/// without its log if its process was killed while the log was written back.
fn recognize(file: &LockedFile, format: Format) -> Result<(), FileProblem> {
    const MAGIC: &[u8] = b"SQLite format 3\0";
    let mut header = [0; 100];
    let read = file.head(&mut header)?;
    if read == 0 {
        return Err(FileProblem::Empty);
    }
    let whole = read == header.len();
    let number = |at: usize| i32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
    let (version, id) = (number(60), number(68));
    if !whole || !header.starts_with(MAGIC) || id != format.id {
        return Err(FileProblem::Foreign { format: format.name });
    }
    format.judge(version.into())
}

fn check(db: &Connection) -> Result<(), FileProblem> {
    let found: String = db.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0))?;
    if found == "ok" { Ok(()) } else { Err(FileProblem::damaged(found.replace('\n', " "))) }
}

/// Writes the log back and empties it.
///
/// # Errors
/// [`FileProblem::Read`] if a program has read the file for as long as this waits.
pub(crate) fn truncate_log(db: &Connection) -> Result<(), FileProblem> {
    let busy: bool = db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))?;
    if busy { Err(FileProblem::Read) } else { Ok(()) }
}

/// Bytes of the file that are in use.
pub(crate) fn used(db: &Connection) -> Result<u64, FileProblem> {
    let number = |name: &str| db.prepare_cached(&format!("PRAGMA {name}"))?.query_row([], |row| row.get::<_, i64>(0));
    let pages = number("page_count")? - number("freelist_count")?;
    Ok(u64::try_from(pages * number("page_size")?).unwrap_or_default())
}
