//! Errors of the journal on disk.

use std::path::{Path, PathBuf};

use rusqlite::Row;
use rusqlite::types::ValueRef;
use systole_core::journal::{JournalError, JournalErrorKind};

use super::row::Record;
use crate::sqlite::FileProblem;

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

    /// Names the file that has the problem.
    pub fn of(self, file: &Path) -> StoreError {
        StoreError { file: file.to_owned(), problem: self }
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
            | FileProblem::NotOwned { .. }
            | FileProblem::Missing
            | FileProblem::Worn => JournalErrorKind::Unusable,
            FileProblem::Moved | FileProblem::Parted { .. } | FileProblem::Truncated { .. } => JournalErrorKind::Moved,
            FileProblem::Newer { .. } | FileProblem::Older { .. } => JournalErrorKind::Version,
            FileProblem::Damaged { .. } | FileProblem::DamagedLog { .. } | FileProblem::UnsyncedLog { .. } => {
                JournalErrorKind::Damaged
            }
            FileProblem::Full | FileProblem::TooLarge { .. } => JournalErrorKind::Full,
            FileProblem::ReadOnly | FileProblem::Unfed | FileProblem::Unended => JournalErrorKind::ReadOnly,
            FileProblem::Failed(_) => JournalErrorKind::Closed,
            FileProblem::Sqlite(_) | FileProblem::Io(_) => JournalErrorKind::Other,
        };
        Self::new(kind, error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[test]
    fn a_file_that_may_not_be_written_is_read_only() {
        // Permissions are no bar to a test that runs as root.
        let problem = FileProblem::from(io::Error::from(io::ErrorKind::PermissionDenied));
        let error = JournalError::from(problem.of(Path::new("organism.journal")));
        assert_eq!(error.kind(), JournalErrorKind::ReadOnly);
    }
}
