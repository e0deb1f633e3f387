use std::io;
use std::path::PathBuf;

/// What is wrong with a file of ours.
#[derive(thiserror::Error)]
pub enum Problem {
    /// Somebody else writes it.
    #[error("in use by {}: end that first (SIGTERM: what waits is kept), or name another file", .holder.map_or("another process".to_owned(), |id| format!("process {id}")))]
    InUse {
        /// Its process id.
        holder: Option<u32>,
    },
    /// It is something else.
    #[error("this is no {format}, and was left as it is: name another file")]
    Foreign {
        /// What it should be.
        format: &'static str,
    },
    /// Something else than a file is there.
    #[error("{what} is there, and was left as it is: name a file, or one that can be made")]
    NoFile {
        /// The kind of file that is there.
        what: &'static str,
    },
    /// A symbolic link leads nowhere.
    #[error("a link to {} is there, where nothing is: make that file, or name another one", .target.display())]
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
    /// Another file of its kind stands beside another name of the journal.
    #[error("{} is there, too, beside another name of the journal: move away the one that is not this organism's", .other.display())]
    Twofold {
        /// The other file.
        other: PathBuf,
    },
    /// The log of the file is there without the file.
    #[error("its log is there ({}) without the file itself: restore a copy of both, or move the log away", .log.display())]
    Headless {
        /// The log.
        log: PathBuf,
    },
    /// The path leads elsewhere since the file was opened.
    #[error("it was deleted, moved or replaced while it was in use: what is written now would be lost")]
    Moved,
    /// There is nothing there.
    #[error("there is no such file: name what the organism has as `journal`")]
    Missing,
    /// A later program made it.
    #[error("its version is {found}, this program knows those up to {known}: use a later systole")]
    Newer {
        /// Its version.
        found: i64,
        /// The last one that this program knows.
        known: i64,
    },
    /// An earlier program that uses it made it.
    #[error("its version is {found}, and the program that uses it is an earlier one: end that first")]
    Older {
        /// Its version.
        found: i64,
    },
    /// A row, a page, the log or the whole is not as it was written.
    #[error("damaged: {what}. It was left as it is: restore a copy, or move it away and start anew")]
    Damaged {
        /// What was found.
        what: String,
    },
    /// The log is damaged, and finished transactions are lost with what stands behind that place.
    #[error(
        "its log is damaged at byte {at} of the file of that name with -wal, and {lost} or more finished transactions behind that are lost: restore a copy of both"
    )]
    DamagedLog {
        /// Where the damage begins in the log.
        at: u64,
        /// Finished transactions that are known to be lost.
        lost: u64,
    },
    /// No room.
    #[error("the disk is full: make room and start again; of what was not confirmed nothing was written")]
    Full,
    /// It can't be written.
    #[error("it can't be written: let this user write the file and its folder")]
    ReadOnly,
    /// It was started too often.
    #[error("started {} times, as often as it counts: move it away and start anew", i16::MAX)]
    Worn,
    /// It failed before, and takes nothing more.
    #[error("it failed before, and takes nothing more: {0}")]
    Failed(String),
    /// Anything else that SQLite says.
    #[error("{0}")]
    Sqlite(rusqlite::Error),
    /// Anything else that the system says.
    #[error("{0}")]
    Io(io::Error),
}

systole_core::vocab::debug_is_display!(Problem);

impl Problem {
    pub(crate) fn damaged(what: impl Into<String>) -> Self {
        Self::Damaged { what: what.into() }
    }
}

impl From<io::Error> for Problem {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => Self::ReadOnly,
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::Full,
            _ => Self::Io(error),
        }
    }
}

impl From<rusqlite::Error> for Problem {
    fn from(error: rusqlite::Error) -> Self {
        use rusqlite::ErrorCode as Code;
        match error.sqlite_error_code() {
            Some(Code::DiskFull) => Self::Full,
            Some(Code::ReadOnly | Code::PermissionDenied) => Self::ReadOnly,
            Some(Code::DatabaseCorrupt | Code::NotADatabase) => Self::Damaged { what: error.to_string() },
            _ => Self::Sqlite(error),
        }
    }
}
