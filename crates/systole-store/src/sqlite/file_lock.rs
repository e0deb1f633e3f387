//! The descriptor of a file, and the right to write it.
//!
//! # The lock
//! A writer has `flock` on the database file itself, by a descriptor of its own that stays open as long as SQLite has
//! the file open. So the lock holds for the file, whatever names lead to it and whatever happens to files beside it,
//! and is released with the process. SQLite locks ranges of bytes (`fcntl`), which `flock` neither sees nor disturbs,
//! and readers don't take the lock. A network file system makes one kind of lock out of the two, and can't hold
//! SQLite's log in any case (<https://www.sqlite.org/wal.html>).
//!
//! # One descriptor for each file
//! When a process closes any descriptor of a file, it loses all its `fcntl` locks on that file, including those of
//! SQLite (<https://www.sqlite.org/howtocorrupt.html>, section 2.2). So all code that reads such a file shares one
//! descriptor, which is closed after the last of SQLite's. The same holds for the index of the log, which has SQLite's locks.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs::{self, File, Metadata, OpenOptions, TryLockError};
use std::io::{self, ErrorKind};
use std::ops::Deref;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rusqlite::Connection;
use rustix::fs::OFlags;
use rustix::process::{Flock, FlockType, fcntl_getlk};

use super::checkpoint::{Checkpoints, LogFull};
use super::format::Format;
use super::open::LOG;
use super::place::{beside, judge, place};
use super::problem::FileProblem;
use super::wal::{self, Cut};
use systole_core::journal::Durability;

/// Attempts to lock: a process that checks whether a file is in use holds a lock for a moment.
const TRIES: u32 = 5;
/// Attempts if this process has the file: a thread that is ending may be about to close it.
const TRIES_HERE: u32 = 100;
const PAUSE: Duration = Duration::from_millis(10);

/// Mode of created files: only the owner reads and writes.
pub(super) const MODE: u32 = 0o600;

/// The files that this process has open.
static OPEN: Mutex<BTreeMap<Inode, Entry>> = Mutex::new(BTreeMap::new());

/// Identity of a file under any name: device and inode number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Inode(u64, u64);

struct Entry {
    file: File,
    /// Further descriptors, of the same file, opened while another process renamed files, and of the index of its log; closed
    /// with the first.
    more: Vec<File>,
    holders: usize,
    /// True if one of the holders has the lock.
    written: bool,
}

/// A file that is open in this process, with or without the lock.
#[derive(Debug)]
pub(crate) struct LockedFile {
    inode: Inode,
    path: PathBuf,
    writes: bool,
    /// True if the file was created.
    made: bool,
}

/// A connection, with the open file that it needs.
#[derive(Debug)]
pub(crate) struct Database {
    // The connection of the checkpoints must be closed before `db`.
    checkpoints: Option<Box<Checkpoints>>,
    // The connection must be closed before the file.
    db: Connection,
    file: LockedFile,
    /// Length of the file when it was last looked at.
    len: Cell<u64>,
    /// Bytes of a page.
    page: u64,
    /// The log and its index, once the file is open for writing.
    companions: Vec<Companion>,
}

/// A file beside the database that SQLite opened by its name, and has open.
#[derive(Debug)]
struct Companion {
    path: PathBuf,
    inode: Inode,
    /// Length of the file when it was last looked at.
    len: Cell<u64>,
}

impl LockedFile {
    /// Takes the lock of a file; creates an empty one if there is none.
    ///
    /// # Errors
    /// [`FileProblem::InUse`] if another writer has it, in this process or another; the errors of [`place`].
    pub(crate) fn take(path: &Path) -> Result<Self, FileProblem> {
        loop {
            let mut held = Self::open(path, true)?;
            held.lock()?;
            // Meanwhile another writer may have put a new file in its place.
            if held.is_in_place() {
                return Ok(held);
            }
        }
    }

    /// Opens an existing file, without the lock.
    ///
    /// # Errors
    /// [`FileProblem::Missing`], and the errors of [`place`].
    pub(crate) fn look(path: &Path) -> Result<Self, FileProblem> {
        match Self::open(path, false) {
            Err(FileProblem::Io(error)) if error.kind() == ErrorKind::NotFound => Err(FileProblem::Missing),
            opened => opened,
        }
    }

    fn open(path: &Path, make: bool) -> Result<Self, FileProblem> {
        let path = place(path)?;
        let mut open = files();
        if let Some((inode, entry)) = fs::metadata(&path).ok().and_then(|found| {
            let inode = Inode::of(&found);
            open.get_mut(&inode).map(|entry| (inode, entry))
        }) {
            entry.holders += 1;
            return Ok(Self { inode, path, writes: false, made: false });
        }
        let (file, made) = descriptor(&path, make)?;
        let found = file.metadata()?;
        judge(&found)?;
        let inode = Inode::of(&found);
        match open.get_mut(&inode) {
            Some(entry) => {
                entry.more.push(file);
                entry.holders += 1;
            }
            None => drop(open.insert(inode, Entry { file, more: Vec::new(), holders: 1, written: false })),
        }
        Ok(Self { inode, path, writes: false, made })
    }

    /// Returns the path of the file, without symbolic links.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns whether the file was created when it was opened.
    pub(super) fn was_made(&self) -> bool {
        self.made
    }

    /// Returns whether the path still leads to the file.
    pub(crate) fn is_in_place(&self) -> bool {
        self.inode.is_at(&self.path)
    }

    /// Finds the part of the log that the next start will drop, if any.
    pub(crate) fn inspect(&self) -> Result<Option<Cut>, FileProblem> {
        let mut index = Vec::new();
        let cut = wal::inspect(&self.path, &mut index);
        self.with(|entry| entry.more.append(&mut index));
        cut
    }

    /// Reads the first bytes of the file; returns the number of bytes read.
    pub(super) fn head(&self, bytes: &mut [u8]) -> io::Result<usize> {
        self.with(|entry| {
            let mut read = 0;
            while read < bytes.len() {
                match entry.file.read_at(&mut bytes[read..], read as u64)? {
                    0 => break,
                    more => read += more,
                }
            }
            Ok(read)
        })
    }

    fn lock(&mut self) -> Result<(), FileProblem> {
        for tried in 1.. {
            let (holder, most) = match self.try_lock()? {
                None => break,
                Some(holder) if holder == Some(std::process::id()) => (holder, TRIES_HERE),
                Some(holder) => (holder, TRIES),
            };
            if tried == most {
                return Err(FileProblem::InUse { holder });
            }
            std::thread::sleep(PAUSE);
        }
        self.writes = true;
        Ok(())
    }

    /// Tries to take the lock. Returns `None` on success, otherwise the process that has it, if known.
    fn try_lock(&self) -> Result<Option<Option<u32>>, FileProblem> {
        self.with(|entry| {
            if entry.written {
                return Ok(Some(Some(std::process::id())));
            }
            match entry.file.try_lock() {
                Ok(()) => {
                    entry.written = true;
                    Ok(None)
                }
                Err(TryLockError::WouldBlock) => Ok(Some(holder(self.inode))),
                Err(TryLockError::Error(error)) => Err(error.into()),
            }
        })
    }

    /// Releases the lock.
    pub(super) fn unlock(&mut self) {
        if std::mem::take(&mut self.writes) {
            self.with(|entry| {
                entry.written = false;
                // Closing the descriptor releases it in any case.
                let _ = entry.file.unlock();
            });
        }
    }

    /// The process that writes the file, if known; `None` if no process does.
    pub(crate) fn writer(&self) -> Result<Option<Option<u32>>, FileProblem> {
        self.with(|entry| {
            if entry.written {
                return Ok(Some(Some(std::process::id())));
            }
            match entry.file.try_lock_shared() {
                Ok(()) => {
                    entry.file.unlock()?;
                    Ok(None)
                }
                Err(TryLockError::WouldBlock) => Ok(Some(holder(self.inode))),
                Err(TryLockError::Error(error)) => Err(error.into()),
            }
        })
    }

    /// Finds another process that reads the file in a transaction, by its lock on the index of the log.
    pub(super) fn reader(&self) -> io::Result<Option<i32>> {
        /// The locks of readers, <https://www.sqlite.org/walformat.html>, section 2.3.
        const LOCKS: (u64, u64) = (123, 5);
        let index = File::open(beside(&self.path, "-shm"))?;
        let lock = Flock { start: LOCKS.0, length: LOCKS.1, ..Flock::from(FlockType::WriteLock) };
        let found = fcntl_getlk(&index, &lock);
        // Closing it would release the locks of this process.
        self.with(|entry| entry.more.push(index));
        Ok(found?.and_then(|lock| lock.pid).map(|pid| pid.as_raw_nonzero().get()))
    }

    fn with<T>(&self, work: impl FnOnce(&mut Entry) -> T) -> T {
        work(files().get_mut(&self.inode).expect("what is held is open"))
    }
}

impl Drop for LockedFile {
    fn drop(&mut self) {
        self.unlock();
        let mut open = files();
        if let Some(entry) = open.get_mut(&self.inode) {
            entry.holders -= 1;
            if entry.holders == 0 {
                // Closed under the mutex, before another thread can open the file anew.
                open.remove(&self.inode);
            }
        }
    }
}

impl Database {
    pub(super) fn new(db: Connection, file: LockedFile) -> Self {
        Self { checkpoints: None, db, file, len: Cell::default(), page: 0, companions: Vec::new() }
    }

    /// Notes the log and its index, which SQLite has open and keeps until the end of the last connection.
    ///
    /// # Errors
    /// The system's error, if one of them is missing.
    pub(super) fn keep_companions(&mut self) -> Result<(), FileProblem> {
        let companion = |ending| {
            let path = beside(self.file.path(), ending);
            let found = fs::symlink_metadata(&path)?;
            Ok(Companion { path, inode: Inode::of(&found), len: Cell::new(found.len()) })
        };
        self.companions = ["-wal", "-shm"].into_iter().map(companion).collect::<io::Result<_>>()?;
        let page: i64 = self.db.query_row("PRAGMA page_size", [], |row| row.get(0))?;
        self.page = page.cast_unsigned();
        Ok(())
    }

    /// Checks that the file, its log and its index are where SQLite opened them, and that no other program has truncated
    /// them. What is written to a file without a name ends with the process.
    ///
    /// # Errors
    /// [`FileProblem::Moved`], [`FileProblem::Parted`], [`FileProblem::Truncated`].
    pub(crate) fn judge_place(&self) -> Result<(), FileProblem> {
        let found = self.file.inode.len_at(self.file.path()).ok_or(FileProblem::Moved)?;
        if found < self.len.get() {
            return Err(FileProblem::Truncated { file: self.file.path().to_owned() });
        }
        self.len.set(found);
        for Companion { path, inode, len } in &self.companions {
            let found = inode.len_at(path).ok_or_else(|| FileProblem::Parted { gone: path.clone() })?;
            // SQLite shortens a log that starts over, but not to less than the limit.
            let is_log = path.to_string_lossy().ends_with("-wal");
            let used = if is_log { self.used_of_log() } else { 0 };
            if found < len.get().max(used).min(LOG.cast_unsigned()) {
                return Err(FileProblem::Truncated { file: path.clone() });
            }
            len.set(found);
        }
        Ok(())
    }

    /// Bytes of the log that the transactions of this connection take.
    fn used_of_log(&self) -> u64 {
        let pages = self.checkpoints.as_ref().map_or(0, |checkpoints| checkpoints.pages());
        wal::length(u64::try_from(pages).unwrap_or(0), self.page)
    }

    /// Accepts shorter files: they were rewritten.
    pub(crate) fn accept_shorter(&self) {
        self.len.set(0);
        self.checkpoints.iter().for_each(|checkpoints| checkpoints.forget());
        self.companions.iter().for_each(|companion| companion.len.set(0));
    }

    /// Starts checkpoints on a thread of their own, which [`commit`](Self::commit) triggers.
    pub(super) fn write_back_beside(&mut self, format: Format, durability: Durability) -> Result<(), FileProblem> {
        self.checkpoints = Some(Box::new(Checkpoints::of(&mut self.db, format, durability)?));
        Ok(())
    }

    /// Interrupts the statements of the connection once that is so.
    pub(super) fn interrupt_if(&mut self, is_over: impl FnMut() -> bool + Send + 'static) -> Result<(), FileProblem> {
        /// Instructions between two looks: about a millisecond.
        const LOOK: i32 = 10_000;
        Ok(self.db.progress_handler(LOOK, Some(is_over))?)
    }

    /// Ends a transaction.
    pub(crate) fn commit(&mut self) -> Result<(), FileProblem> {
        self.db.prepare_cached("COMMIT")?.execute([])?;
        if let Some(checkpoints) = &mut self.checkpoints {
            checkpoints.after_commit(&self.db, &self.file);
        }
        Ok(())
    }

    /// Returns the state that says whether the log is full; it never is for a file that is only read.
    pub(crate) fn log_full(&self) -> LogFull {
        self.checkpoints.as_ref().map_or_else(LogFull::default, |checkpoints| checkpoints.full())
    }

    #[cfg(test)]
    pub(super) fn checkpoints(&self) -> &Checkpoints {
        self.checkpoints.as_ref().expect("it was opened for writing")
    }

    /// Returns the file of the connection.
    pub(crate) fn file(&self) -> &LockedFile {
        &self.file
    }
}

impl Deref for Database {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        &self.db
    }
}

impl Inode {
    fn of(found: &Metadata) -> Self {
        Self(found.dev(), found.ino())
    }

    fn is_at(self, path: &Path) -> bool {
        self.len_at(path).is_some()
    }

    /// Length of the file, if the path leads to it.
    fn len_at(self, path: &Path) -> Option<u64> {
        fs::symlink_metadata(path).ok().filter(|found| Self::of(found) == self).map(|found| found.len())
    }
}

/// Returns whether this process has the right to write a file.
pub(crate) fn is_written_here(path: &Path) -> bool {
    let Ok(found) = fs::metadata(path) else { return false };
    files().get(&Inode::of(&found)).is_some_and(|entry| entry.written)
}

fn files() -> MutexGuard<'static, BTreeMap<Inode, Entry>> {
    OPEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Opens a descriptor for reading, which is enough for the lock; returns whether the file was created.
fn descriptor(path: &Path, make: bool) -> Result<(File, bool), FileProblem> {
    // NONBLOCK: a FIFO may have taken the place of the file just now.
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    match OpenOptions::new().read(true).custom_flags(flags).open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound && make => match create(path) {
            // Another process created it just now.
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                Ok((OpenOptions::new().read(true).custom_flags(flags).open(path)?, false))
            }
            made => Ok((made?, true)),
        },
        opened => Ok((opened?, false)),
    }
}

/// Creates a file that only its owner may read and write, regardless of the umask of the process.
pub(super) fn create(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().read(true).write(true).create_new(true).mode(MODE).open(path)?;
    file.set_permissions(fs::Permissions::from_mode(MODE))?;
    Ok(file)
}

/// Finds the process that has the lock of a file: on Linux only, and only a visible process.
fn holder(Inode(device, number): Inode) -> Option<u32> {
    let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
    let file = format!("{major:02x}:{minor:02x}:{number}");
    let locks = fs::read_to_string("/proc/locks").ok()?;
    // 7: FLOCK  ADVISORY  WRITE 21825 fe:00:5686194 0 EOF
    locks.lines().find_map(|line| {
        let mut words = line.split_whitespace().skip(1);
        let is_lock = words.next()? == "FLOCK" && words.nth(1)? == "WRITE";
        let (process, found) = (words.next()?, words.next()?);
        (is_lock && found == file).then(|| process.parse().ok())?
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("systole-held-{}-{name}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    #[test]
    fn all_who_hold_a_file_share_a_descriptor_and_one_of_them_writes() {
        let folder = folder("share");
        let file = folder.join("file");
        let writer = LockedFile::take(&file).unwrap();
        std::os::unix::fs::symlink(&file, folder.join("link")).unwrap();
        let reader = LockedFile::look(&folder.join("link")).unwrap();
        assert_eq!((reader.inode, reader.path()), (writer.inode, writer.path()));
        assert_eq!(writer.with(|entry| (entry.holders, entry.more.len())), (2, 0));
        assert!(matches!(LockedFile::take(&folder.join("link")), Err(FileProblem::InUse { holder: Some(_) })));
        assert_eq!(reader.writer().unwrap(), Some(Some(std::process::id())));
        drop(writer);
        assert_eq!(reader.writer().unwrap(), None);
        let inode = reader.inode;
        drop(reader);
        assert!(!files().contains_key(&inode));
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_lock_is_seen_by_other_descriptions_and_by_its_process() {
        let folder = folder("seen");
        let held = LockedFile::take(&folder.join("file")).unwrap();
        let other = File::open(held.path()).unwrap();
        assert!(matches!(other.try_lock_shared(), Err(TryLockError::WouldBlock)));
        if cfg!(target_os = "linux") {
            assert_eq!(holder(held.inode), Some(std::process::id()));
        }
        fs::rename(held.path(), folder.join("elsewhere")).unwrap();
        assert!(!held.is_in_place());
        drop(held);
        other.try_lock_shared().unwrap();
        fs::remove_dir_all(folder).unwrap();
    }
}
