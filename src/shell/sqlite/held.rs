//! The descriptor of a file of ours, and the right to write the file.
//!
//! # The lock
//! A writer has `flock` on the database file itself, by a descriptor of its own that stays open as long as SQLite has
//! the file open. So it holds for the file, whatever names lead to it and whatever happens to files beside it, and goes
//! with the process that has it. SQLite locks ranges of bytes (`fcntl`), which `flock` neither sees nor disturbs, and
//! readers take no part in it. A file system over a network makes one kind of lock out of the two, and is no place for
//! SQLite's log in any case (<https://www.sqlite.org/wal.html>).
//!
//! # One descriptor for each file
//! When a process closes any descriptor of a file, it loses all its `fcntl` locks on that file, those of SQLite among
//! them (<https://www.sqlite.org/howtocorrupt.html>, section 2.2). So all code that looks into a file of ours shares
//! the descriptor that is there, which is closed behind the last of SQLite's.

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

use super::Durability;
use super::checkpoint::Checkpoints;
use super::format::Format;
use super::place::{judge, place};
use super::problem::Problem;

/// A process that looks whether a file is in use has a lock on it for a moment: a writer tries again.
const TRIES: u32 = 5;
/// The same where this process has the file: a thread that has been told to end may be about to close it.
const TRIES_HERE: u32 = 100;
const PAUSE: Duration = Duration::from_millis(10);

/// Mode of the files that we make: only the owner reads and writes.
pub(super) const MODE: u32 = 0o600;

/// The files that this process has open.
static OPEN: Mutex<BTreeMap<Inode, Entry>> = Mutex::new(BTreeMap::new());

/// Identity of a file, by whatever name: device and number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Inode(u64, u64);

struct Entry {
    file: File,
    /// Descriptors that were made of the same file while another process renamed files: closed with the first.
    more: Vec<File>,
    holders: usize,
    /// Whether one of the holders has the lock.
    written: bool,
}

/// A file that is open in this process, with the lock or without.
#[derive(Debug)]
pub(crate) struct Held {
    inode: Inode,
    path: PathBuf,
    writes: bool,
    /// Whether there was no such file.
    made: bool,
}

/// A connection to a file that is held as long.
#[derive(Debug)]
pub(crate) struct Database {
    // Its connection is closed before this one.
    checkpoints: Option<Box<Checkpoints>>,
    // Before the file, so that it is closed first.
    db: Connection,
    file: Held,
}

impl Held {
    /// Takes the lock of a file. Where there is no file, an empty one is made.
    ///
    /// # Errors
    /// [`Problem::InUse`] if another writer has it, in this process or another; those of [`place`].
    pub(crate) fn take(path: &Path) -> Result<Self, Problem> {
        loop {
            let mut held = Self::open(path, true)?;
            held.lock()?;
            // While this waited, another writer may have put a new file into its place.
            if held.is_in_place() {
                return Ok(held);
            }
        }
    }

    /// Opens a file that is there, without the lock.
    ///
    /// # Errors
    /// [`Problem::Missing`], and those of [`place`].
    pub(crate) fn look(path: &Path) -> Result<Self, Problem> {
        match Self::open(path, false) {
            Err(Problem::Io(error)) if error.kind() == ErrorKind::NotFound => Err(Problem::Missing),
            opened => opened,
        }
    }

    fn open(path: &Path, make: bool) -> Result<Self, Problem> {
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

    /// The path of the file, without symbolic links.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether there was no such file before it was opened.
    pub(super) fn was_made(&self) -> bool {
        self.made
    }

    /// Whether its path still leads to it.
    pub(crate) fn is_in_place(&self) -> bool {
        fs::symlink_metadata(&self.path).is_ok_and(|found| Inode::of(&found) == self.inode)
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

    fn lock(&mut self) -> Result<(), Problem> {
        for tried in 1.. {
            let (holder, most) = match self.try_lock()? {
                None => break,
                Some(holder) if holder == Some(std::process::id()) => (holder, TRIES_HERE),
                Some(holder) => (holder, TRIES),
            };
            if tried == most {
                return Err(Problem::InUse { holder });
            }
            std::thread::sleep(PAUSE);
        }
        self.writes = true;
        Ok(())
    }

    /// The process that has the lock, as far as it is known; none if it is ours now.
    fn try_lock(&self) -> Result<Option<Option<u32>>, Problem> {
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

    /// Gives the lock back.
    pub(super) fn unlock(&mut self) {
        if std::mem::take(&mut self.writes) {
            self.with(|entry| {
                entry.written = false;
                // It goes with the descriptor in any case.
                let _ = entry.file.unlock();
            });
        }
    }

    /// The process that writes the file, as far as it is known; none if no process does.
    pub(crate) fn writer(&self) -> Result<Option<Option<u32>>, Problem> {
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

    fn with<T>(&self, work: impl FnOnce(&mut Entry) -> T) -> T {
        work(files().get_mut(&self.inode).expect("what is held is open"))
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.unlock();
        let mut open = files();
        if let Some(entry) = open.get_mut(&self.inode) {
            entry.holders -= 1;
            if entry.holders == 0 {
                // Closed before another thread can open the file anew.
                open.remove(&self.inode);
            }
        }
    }
}

impl Database {
    pub(super) fn new(db: Connection, file: Held) -> Self {
        Self { checkpoints: None, db, file }
    }

    /// Has the log written back by a thread from now on, which [`commit`](Self::commit) tells when.
    pub(super) fn write_back_beside(&mut self, format: Format, durability: Durability) -> Result<(), Problem> {
        self.checkpoints = Some(Box::new(Checkpoints::of(&mut self.db, format, durability)?));
        Ok(())
    }

    /// Ends a transaction.
    pub(crate) fn commit(&mut self) -> Result<(), Problem> {
        self.db.prepare_cached("COMMIT")?.execute([])?;
        if let Some(checkpoints) = &mut self.checkpoints {
            checkpoints.after_commit(&self.db, &self.file);
        }
        Ok(())
    }

    #[cfg(test)]
    pub(super) fn checkpoints(&self) -> &Checkpoints {
        self.checkpoints.as_ref().expect("it was opened for writing")
    }

    /// The file that it is connected to.
    pub(crate) fn file(&self) -> &Held {
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
}

fn files() -> MutexGuard<'static, BTreeMap<Inode, Entry>> {
    OPEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A descriptor for reading, which is enough for the lock; whether the file was made for it.
fn descriptor(path: &Path, make: bool) -> Result<(File, bool), Problem> {
    // Nothing waits for the other end of a FIFO that took the place of the file just now.
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    match OpenOptions::new().read(true).custom_flags(flags).open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound && make => match create(path) {
            // Another process made it just now.
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                Ok((OpenOptions::new().read(true).custom_flags(flags).open(path)?, false))
            }
            made => Ok((made?, true)),
        },
        opened => Ok((opened?, false)),
    }
}

/// Makes a file that its owner alone may read and write, whatever the mask of the process.
pub(super) fn create(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().read(true).write(true).create_new(true).mode(MODE).open(path)?;
    file.set_permissions(fs::Permissions::from_mode(MODE))?;
    Ok(file)
}

/// The process that has the lock of a file, where the system tells: on Linux, if the process is one that can be seen.
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
        let writer = Held::take(&file).unwrap();
        std::os::unix::fs::symlink(&file, folder.join("link")).unwrap();
        let reader = Held::look(&folder.join("link")).unwrap();
        assert_eq!((reader.inode, reader.path()), (writer.inode, writer.path()));
        assert_eq!(writer.with(|entry| (entry.holders, entry.more.len())), (2, 0));
        assert!(matches!(Held::take(&folder.join("link")), Err(Problem::InUse { holder: Some(_) })));
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
        let held = Held::take(&folder.join("file")).unwrap();
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
