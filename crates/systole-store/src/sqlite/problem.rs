//! Problems of SQLite files.

use std::io;
use std::path::PathBuf;

use rusqlite::ffi::SQLITE_IOERR_WRITE;
use rustix::process::{Resource, getrlimit};

/// A reason why a file can't be used.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum FileProblem {
    /// Another writer has the file.
    #[error("in use by {}: end that first (an organism keeps its waiting messages at SIGTERM; a command is done soon: try again), or name another file", .holder.map_or("another process".to_owned(), |id| format!("process {id}")))]
    InUse {
        /// The id of its process.
        holder: Option<u32>,
    },
    /// Another program reads the file in a transaction.
    #[error(
        "another program reads it in one transaction, so that its log can't be emptied: end that program, then try again"
    )]
    Read,
    /// The file has another format.
    #[error("this is no {format}, and was left as it is: name another file")]
    Foreign {
        /// The expected format.
        format: &'static str,
    },
    /// The path names something other than a file.
    #[error("{what} is there, and was left as it is: name a file, or one that can be made")]
    NoFile {
        /// The kind of file that is there.
        what: &'static str,
    },
    /// A symbolic link has no target.
    #[error("a link to {} is there, but its target is missing: create that file, or name another one", .target.display())]
    Dangling {
        /// The target of the link.
        target: PathBuf,
    },
    /// The file has other names besides this one.
    #[error("it has {links} names (hard links), and its log stands beside one of them: keep that name alone")]
    Linked {
        /// The number of names.
        links: u64,
    },
    /// The journal belongs to another organism.
    #[error(
        "it belongs to the organism '{owner}', and this one is '{organism}': name another file, or run `systole journal rename {organism}` if the organism has another name now"
    )]
    NotOwned {
        /// The organism that it belongs to.
        owner: String,
        /// The organism that is starting.
        organism: String,
    },
    /// The file is missing while its log is there.
    #[error("its log is there ({}) without the file itself: restore a copy of both, or move the log away", .log.display())]
    Headless {
        /// The log.
        log: PathBuf,
    },
    /// The path has led elsewhere since the file was opened.
    #[error("it was deleted, moved or replaced while it was in use: later steps would be lost")]
    Moved,
    /// A companion of the file was deleted, moved or replaced while it was open.
    #[error("{} was deleted, moved or replaced while it was in use: later steps would be lost", .gone.display())]
    Parted {
        /// The log, or its index.
        gone: PathBuf,
    },
    /// Another program made the file, its log or its index shorter.
    #[error("{} was truncated while it was in use: later steps would be lost", .file.display())]
    Truncated {
        /// The file.
        file: PathBuf,
    },
    /// The file is missing.
    #[error("there is no such file: name the file of `journal:` in the organism's file")]
    Missing,
    /// The file is empty: another process may be about to put a new one in its place.
    #[error("it is empty: if an organism is about to start for the first time, try again; else start one with it")]
    Empty,
    /// A later program created the file.
    #[error(
        "a later systole wrote it: its version is {found}, and this program reads version {known} alone. It was left as it is: use the later systole"
    )]
    Newer {
        /// The version of the file.
        found: i64,
        /// The version that this program reads.
        known: i64,
    },
    /// An earlier program created the file.
    #[error(
        "an earlier systole wrote it: its version is {found}, and this program reads version {known} alone. It was left as it is: end its open work with the systole that wrote it (its `thread list` and `dead list` show it), then move the file away, with its -wal and -shm, and start anew"
    )]
    Older {
        /// The version of the file.
        found: i64,
        /// The version that this program reads.
        known: i64,
    },
    /// A row, a page, the log or the total differs from the written one.
    #[error("damaged: {what}. It was left as it is: restore a copy, or move it away and start anew")]
    Damaged {
        /// The damage that was found.
        what: String,
    },
    /// The log is damaged, and finished transactions behind the damage are lost.
    #[error(
        "its log is damaged at byte {at} of the file of that name with -wal, and {lost} or more finished transactions behind that are lost: restore a copy of both"
    )]
    DamagedLog {
        /// The place in the log where the damage begins.
        at: u64,
        /// Finished transactions that are known to be lost.
        lost: u64,
    },
    /// The log lacks finished transactions that were not on the disk when the power failed.
    #[error(
        "its log is incomplete from byte {at} on of the file of that name with -wal, as after a loss of power, and {lost} or more finished transactions behind that are lost: restore a copy of both"
    )]
    UnsyncedLog {
        /// The place in the log up to which it is complete.
        at: u64,
        /// Finished transactions that are known to be lost.
        lost: u64,
    },
    /// The log of a running organism has grown too long for another reader.
    #[error(
        "its log has grown beyond 128 MiB, because a program reads it while its organism writes, so this reader ends: end the program that reads it in one transaction, or read a copy (`sqlite3 NAME \".backup COPY\"`), or try again while the organism has less to do"
    )]
    Outgrown,
    /// The disk is full.
    #[error("the disk is full: make room and try again; unconfirmed steps were not written")]
    Full,
    /// The process may not write files so large.
    #[error(
        "this process may write no file beyond {limit} bytes (ulimit -f): raise that and try again; unconfirmed steps were not written"
    )]
    TooLarge {
        /// The limit of the process.
        limit: u64,
    },
    /// The file can't be written.
    #[error("it can't be written: let this user write the file and its folder")]
    ReadOnly,
    /// The file system of the file takes no writes.
    #[error("its file system is mounted read-only: mount it for writing, or name a file elsewhere")]
    ReadOnlyMount,
    /// A folder has the name of a file that is made beside the file.
    #[error("{} is a folder, and a file of that name is made beside it: move the folder away", .path.display())]
    InTheWay {
        /// The folder.
        path: PathBuf,
    },
    /// The file can't be written, and its last steps are not in its tables yet.
    #[error(
        "its process was killed before its last steps were in its tables, and it can't be written here: start its organism, or copy it and its -wal to a folder that this user may write"
    )]
    Unfed,
    /// The log ends with an unfinished transaction, and no process writes the file.
    #[error(
        "its process was killed while it wrote, and it can't be written here: start its organism, or copy it and its -wal to a folder that this user may write"
    )]
    Unended,
    /// The organism was started too often.
    #[error("started too often: its last epoch is over, so move it away and start anew")]
    Worn,
    /// The journal failed before, and takes no more steps.
    #[error("it failed before, and takes nothing more: {0}")]
    Failed(String),
    /// Another error of SQLite.
    #[error("{0}")]
    Sqlite(rusqlite::Error),
    /// Another error of the system.
    #[error("{0}")]
    Io(io::Error),
}

systole_core::vocab::debug_is_display!(FileProblem);

impl FileProblem {
    /// Makes the problem of a damaged file.
    pub fn damaged(what: impl Into<String>) -> Self {
        Self::Damaged { what: what.into() }
    }
}

impl From<io::Error> for FileProblem {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::PermissionDenied => Self::ReadOnly,
            io::ErrorKind::ReadOnlyFilesystem => Self::ReadOnlyMount,
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::Full,
            io::ErrorKind::FileTooLarge => too_large().unwrap_or(Self::Io(error)),
            _ => Self::Io(error),
        }
    }
}

impl From<rusqlite::Error> for FileProblem {
    fn from(error: rusqlite::Error) -> Self {
        use rusqlite::ErrorCode as Code;
        match error.sqlite_error_code() {
            Some(Code::DiskFull) => Self::Full,
            // Only the limit of the log interrupts a statement.
            Some(Code::OperationInterrupted) => Self::Outgrown,
            Some(Code::ReadOnly | Code::PermissionDenied) => Self::ReadOnly,
            Some(Code::DatabaseCorrupt | Code::NotADatabase) => Self::Damaged { what: error.to_string() },
            // SQLite keeps the system's error to itself.
            _ if error.sqlite_extended_error_code() == Some(SQLITE_IOERR_WRITE) => {
                too_large().unwrap_or(Self::Sqlite(error))
            }
            _ => Self::Sqlite(error),
        }
    }
}

/// The problem of a write that failed, if the process has a limit of file sizes.
fn too_large() -> Option<FileProblem> {
    getrlimit(Resource::Fsize).current.map(|limit| FileProblem::TooLarge { limit })
}
