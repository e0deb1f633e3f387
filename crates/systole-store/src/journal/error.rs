//! Errors of the journal on disk.

use std::io;
use std::path::{Path, PathBuf};

use rusqlite::types::ValueRef;
use rusqlite::{ErrorCode, Row};
use systole_core::journal::{JournalError, JournalErrorKind};

use super::row::Record;
use crate::sqlite::{FileProblem, place, writable};

/// Failure to open, write or read a journal on disk.
#[derive(thiserror::Error)]
#[error("journal {}: {}", .file.display(), .problem.advised())]
#[non_exhaustive]
pub struct StoreError {
    /// The file.
    pub file: PathBuf,
    /// The problem, and the way out of it.
    pub problem: FileProblem,
}

systole_core::vocab::debug_is_display!(StoreError);

impl FileProblem {
    /// Reports a row that differs from the written one.
    pub(super) fn row<R: Record>(row: &Row<'_>) -> Self {
        let key = match row.get_ref(0) {
            Ok(ValueRef::Integer(key)) => key.to_string(),
            Ok(_) | Err(_) => "?".to_owned(),
        };
        Self::Damaged { what: format!("{} {key} is not as it was written", R::TABLE) }
    }

    /// Describes the problem and, for a journal, the way out of it.
    pub fn advised(&self) -> String {
        let more = match self {
            Self::Damaged { .. } => "; `systole journal verify` says more",
            Self::DamagedLog { .. } => {
                ", or run `systole journal compact --cut` to give up what was written behind that place"
            }
            Self::UnsyncedLog { .. } => {
                ", or run `systole journal compact --cut` to go on without them, as a start with `durability: process` does"
            }
            _ => "",
        };
        format!("{self}{more}")
    }

    /// Names the file that has the problem. SQLite and the system don't say which file beside it they mean, or why it can't be
    /// written.
    pub fn of(self, file: &Path) -> StoreError {
        let is_unsaid = match &self {
            Self::ReadOnly => true,
            Self::Io(error) => error.kind() == io::ErrorKind::IsADirectory,
            Self::Sqlite(error) => {
                matches!(error.sqlite_error_code(), Some(ErrorCode::CannotOpen | ErrorCode::SystemIoFailure))
            }
            _ => false,
        };
        let found = is_unsaid.then(|| place(file).and_then(|real| writable(&real)).err());
        StoreError { file: file.to_owned(), problem: found.flatten().unwrap_or(self) }
    }
}

impl StoreError {
    /// Returns whether the file can't be written.
    pub(super) fn is_read_only(&self) -> bool {
        matches!(self.problem, FileProblem::ReadOnly | FileProblem::ReadOnlyMount)
    }
}

impl From<StoreError> for JournalError {
    fn from(error: StoreError) -> Self {
        let kind = match error.problem {
            FileProblem::InUse { .. } | FileProblem::Read | FileProblem::Outgrown => JournalErrorKind::InUse,
            FileProblem::Foreign { .. }
            | FileProblem::NoFile { .. }
            | FileProblem::Dangling { .. }
            | FileProblem::Linked { .. }
            | FileProblem::Headless { .. }
            | FileProblem::InTheWay { .. }
            | FileProblem::NotOwned { .. }
            | FileProblem::Worn => JournalErrorKind::Unusable,
            FileProblem::Missing | FileProblem::Empty => JournalErrorKind::Missing,
            FileProblem::Moved | FileProblem::Parted { .. } | FileProblem::Truncated { .. } => JournalErrorKind::Moved,
            FileProblem::Newer { .. } | FileProblem::Older { .. } => JournalErrorKind::Version,
            FileProblem::Damaged { .. } | FileProblem::DamagedLog { .. } | FileProblem::UnsyncedLog { .. } => {
                JournalErrorKind::Damaged
            }
            FileProblem::Full | FileProblem::TooLarge { .. } => JournalErrorKind::Full,
            FileProblem::ReadOnly | FileProblem::ReadOnlyMount | FileProblem::Unfed | FileProblem::Unended => {
                JournalErrorKind::ReadOnly
            }
            FileProblem::Failed(_) => JournalErrorKind::Closed,
            FileProblem::Sqlite(_) | FileProblem::Io(_) => JournalErrorKind::Other,
        };
        Self::new(kind, error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use systole_core::journal::Journal;

    use crate::journal::{JournalOptions, SqliteJournal};

    #[test]
    fn a_file_that_may_not_be_written_is_read_only() {
        // Permissions are no bar to a test that runs as root.
        let problem = FileProblem::from(io::Error::from(io::ErrorKind::PermissionDenied));
        let error = JournalError::from(problem.of(Path::new("organism.journal")));
        assert_eq!(error.kind(), JournalErrorKind::ReadOnly);
    }

    #[test]
    fn a_folder_in_the_place_of_a_file_beside_is_named() {
        let folder = std::env::temp_dir().join(format!("systole-test-{}-in-the-way", std::process::id()));
        let file = folder.join("j");
        let open = || SqliteJournal::open(&file, &JournalOptions::new([0; 32]));
        let beside_all = ["-wal", "-shm", "-journal"].map(|ending| [(ending, true), (ending, false)]);
        let beside_new = ["-new", "-new-wal", "-new-shm", "-new-journal"].map(|ending| [(ending, true)]);
        for (ending, is_new) in beside_all.into_iter().flatten().chain(beside_new.into_iter().flatten()) {
            fs::create_dir_all(&folder).unwrap();
            if !is_new {
                open().unwrap().close().unwrap();
            }
            let name = format!("j{ending}");
            fs::create_dir(folder.join(&name)).unwrap();
            let Err(found) = open() else { panic!("{name} is in the way") };
            let is_named = matches!(&found.problem, FileProblem::InTheWay { path } if path.ends_with(&name));
            assert!(is_named, "{name}, new: {is_new}: {found}");
            fs::remove_dir_all(&folder).unwrap();
        }
    }
}
