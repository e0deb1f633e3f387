use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::problem::Problem;

/// Whoever looks whether a journal is in use holds its lock for a moment: a writer tries again.
const TRIES: u32 = 5;
const PAUSE: Duration = Duration::from_millis(10);

/// The right to write a file: a lock of the system on a file beside it, which goes with the process that has it.
///
/// It is a file of its own, because closing any handle of the database would free what SQLite has locked in it.
#[derive(Debug)]
pub(crate) struct Lock {
    _file: File,
    path: PathBuf,
}

impl Lock {
    /// Takes the lock of a file.
    ///
    /// # Errors
    /// [`Problem::InUse`] if another writer has it, in this process or another.
    pub(crate) fn take(path: &Path) -> Result<Self, Problem> {
        let path = beside(path, "-lock");
        let mut file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path)?;
        for _ in 0..TRIES {
            match file.try_lock() {
                Ok(()) => {
                    file.set_len(0)?;
                    write!(file, "{}", std::process::id())?;
                    return Ok(Self { _file: file, path });
                }
                Err(TryLockError::WouldBlock) => std::thread::sleep(PAUSE),
                Err(TryLockError::Error(error)) => return Err(error.into()),
            }
        }
        Err(Problem::InUse { holder: holder(&mut file) })
    }

    /// Takes the file away, because there is nothing to be locked.
    pub(crate) fn remove(&self) {
        // It only clutters a folder if it stays.
        let _ = fs::remove_file(&self.path);
    }
}

/// The process that writes a file; none if nobody does.
pub(crate) fn writer(path: &Path) -> Result<Option<Option<u32>>, Problem> {
    let Ok(mut file) = File::open(beside(path, "-lock")) else { return Ok(None) };
    match file.try_lock_shared() {
        Ok(()) => Ok(None),
        Err(TryLockError::WouldBlock) => Ok(Some(holder(&mut file))),
        Err(TryLockError::Error(error)) => Err(error.into()),
    }
}

fn holder(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.rewind().and_then(|()| file.read_to_string(&mut text)).ok()?;
    text.trim().parse().ok()
}

/// The name of a file that belongs to a file of ours.
pub(crate) fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}
