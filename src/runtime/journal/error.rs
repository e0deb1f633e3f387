//! Errors of the journal on disk.

use std::path::{Path, PathBuf};

use rusqlite::Row;
use rusqlite::types::ValueRef;
use systole_core::journal::JournalError;

use super::row::Record;
use crate::runtime::sqlite::Problem;

/// Failure to open, write or read a journal on disk.
#[derive(thiserror::Error)]
#[error("journal {}: {}", .file.display(), .problem.advised())]
pub struct StoreError {
    /// The file.
    pub file: PathBuf,
    /// The problem, and the way out of it.
    pub problem: Problem,
}

systole_core::vocab::debug_is_display!(StoreError);

impl Problem {
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
            _ => "",
        };
        format!("{self}{more}")
    }

    pub(super) fn of(self, file: &Path) -> StoreError {
        StoreError { file: file.to_owned(), problem: self }
    }
}

impl From<StoreError> for JournalError {
    fn from(error: StoreError) -> Self {
        Self { message: error.to_string() }
    }
}
