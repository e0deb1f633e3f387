//! Principals as rows that `systole token` writes, whether the organism runs or not.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::Connection;
use systole_core::vocab::{Name, Time};

use super::open::FORMAT;
use super::principal::PrincipalRow;
use super::row::{Record, load, write};
use super::sum::Sums;
use super::{JournalOptions, SqliteJournal, StoreError};
use crate::principal::{Principal, PrincipalKind};
use crate::sqlite::{Database, FileProblem, is_written_here, join, transaction};
use crate::token::Token;

/// Attempts to open a journal that another process may be creating.
const TRIES: u32 = 50;
const PAUSE: Duration = Duration::from_millis(20);

/// Principals of an organism, to be admitted and dismissed while it runs or not.
///
/// While the organism runs, each change is a short transaction beside its own, effective at once. Otherwise the
/// journal is in use until this value is dropped.
pub struct Principals {
    journal: Opened,
    file: PathBuf,
}

enum Opened {
    Alone(Box<SqliteJournal>),
    Beside(Database),
}

impl Principals {
    /// Opens a journal, or creates it.
    ///
    /// # Errors
    /// [`StoreError`] if the file is no journal, damaged, of another version, or can't be
    /// written. It is left unchanged.
    pub fn open(file: &Path, options: &JournalOptions) -> Result<Self, StoreError> {
        for _ in 1..TRIES {
            match Self::try_open(file, options) {
                Err(StoreError {
                    problem: FileProblem::Missing | FileProblem::Empty | FileProblem::InUse { .. },
                    ..
                }) => std::thread::sleep(PAUSE),
                opened => return opened,
            }
        }
        Self::try_open(file, options)
    }

    fn try_open(file: &Path, options: &JournalOptions) -> Result<Self, StoreError> {
        // An organism of this process keeps the journal: to wait for it would be in vain.
        if is_written_here(file)
            && let Ok(db) = join(file, FORMAT, options.durability)
        {
            return Ok(Self { journal: Opened::Beside(db), file: file.to_owned() });
        }
        let journal = match SqliteJournal::open(file, options) {
            Err(StoreError { problem: FileProblem::InUse { .. }, .. }) if !file.exists() => {
                Err(FileProblem::Missing.of(file))
            }
            Err(StoreError { problem: FileProblem::InUse { .. }, .. }) => {
                join(file, FORMAT, options.durability).map(Opened::Beside).map_err(|problem| problem.of(file))
            }
            opened => opened.map(|journal| Opened::Alone(Box::new(journal))),
        };
        Ok(Self { journal: journal?, file: file.to_owned() })
    }

    /// Admits a principal with a new token; an older token of that name becomes invalid.
    ///
    /// # Errors
    /// [`StoreError`]; then nothing has changed.
    pub fn admit(&mut self, name: Name, kind: PrincipalKind, now: Time) -> Result<Token, StoreError> {
        let token = Token::draw();
        let row = PrincipalRow { principal: Principal { name, kind, created: now }, token: token.hash() };
        self.change(|db| {
            write(&mut db.prepare(PrincipalRow::REPLACE)?, &row, now.as_nanos().cast_signed(), &mut Sums::default())
        })?;
        Ok(token)
    }

    /// Revokes the token of a principal; returns whether it had one.
    ///
    /// # Errors
    /// [`StoreError`]; then nothing has changed.
    pub fn dismiss(&mut self, name: &Name) -> Result<bool, StoreError> {
        Ok(self.change(|db| db.execute("DELETE FROM principal WHERE name = ?1", [name.as_str()]))? > 0)
    }

    /// All principals, by name.
    ///
    /// # Errors
    /// [`StoreError`] if the principals can't be read.
    pub fn list(&self) -> Result<Vec<Principal>, StoreError> {
        let read = || {
            let mut statement = self.db().prepare(&[PrincipalRow::SELECT, "ORDER BY name"].concat())?;
            let mut rows = statement.query([])?;
            let mut found = Vec::new();
            while let Some(row) = rows.next()? {
                found.push(load::<PrincipalRow>(row, &mut Sums::default())?.record.principal);
            }
            Ok(found)
        };
        read().map_err(|problem: FileProblem| problem.of(&self.file))
    }

    fn db(&self) -> &Connection {
        match &self.journal {
            Opened::Alone(journal) => &journal.db,
            Opened::Beside(db) => db,
        }
    }

    fn change<T>(&self, change: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T, StoreError> {
        let db = self.db();
        transaction(db, "BEGIN IMMEDIATE", || change(db)).map_err(|error| FileProblem::from(error).of(&self.file))
    }
}

impl fmt::Debug for Principals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Principals").field("file", &self.file).finish_non_exhaustive()
    }
}
