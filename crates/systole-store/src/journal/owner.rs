//! The organism that a journal belongs to: its name, and a random id of the journal. The first start writes both; a start
//! of another organism is refused, since it would handle the messages of the first one and read its answers.

use rusqlite::Connection;
use rusqlite::types::ToSqlOutput;
use uuid::Uuid;

use super::SqliteJournal;
use super::error::StoreError;
use super::reader::JournalReader;
use super::row::{Cells, Record, blob, load, number, statements, text, write};
use super::sum::Sums;
use crate::sqlite::FileProblem;

/// The owner of a journal.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct JournalOwner {
    /// Name of the organism.
    pub organism: String,
    /// Random id of the journal, which it keeps under every name.
    pub id: Uuid,
}

impl Record for JournalOwner {
    statements!("organism", "id = ?1", "NULL", "id, name, uuid", "?, ?, ?");

    fn cells(&self, cell: &mut dyn FnMut(ToSqlOutput<'_>) -> rusqlite::Result<()>) -> rusqlite::Result<()> {
        cell(number(1))?;
        cell(text(self.organism.as_bytes()))?;
        cell(blob(self.id.as_bytes()))
    }

    fn read(cells: &mut Cells<'_>) -> Option<Self> {
        cells.number()?;
        Some(Self { organism: cells.text()?.to_owned(), id: Uuid::from_bytes(cells.blob()?) })
    }
}

impl JournalOwner {
    fn check(self, organism: &str) -> Result<(), FileProblem> {
        if self.organism == organism {
            return Ok(());
        }
        Err(FileProblem::NotOwned { owner: self.organism, organism: organism.to_owned() })
    }
}

impl SqliteJournal {
    /// Makes a journal without an owner that of an organism, under this id.
    ///
    /// # Errors
    /// [`FileProblem::NotOwned`] if the journal belongs to another organism.
    pub fn claim(&mut self, organism: &str, id: Uuid) -> Result<(), StoreError> {
        match owner(&self.db, &mut self.sums).map_err(|problem| problem.of(&self.file))? {
            Some(owner) => owner.check(organism).map_err(|problem| problem.of(&self.file)),
            None => self.write_owner(JournalOwner { organism: organism.to_owned(), id }),
        }
    }

    /// Gives the journal to the organism of another name. Returns the owner of before; a journal without one stays so, for
    /// its first start.
    ///
    /// # Errors
    /// [`StoreError`] if the change can't be written.
    pub fn rename(&mut self, organism: &str) -> Result<Option<JournalOwner>, StoreError> {
        let before = owner(&self.db, &mut self.sums).map_err(|problem| problem.of(&self.file))?;
        if let Some(owner) = &before {
            self.write_owner(JournalOwner { organism: organism.to_owned(), id: owner.id })?;
        }
        Ok(before)
    }

    fn write_owner(&mut self, owner: JournalOwner) -> Result<(), StoreError> {
        self.transaction(|journal| {
            let Self { db, sums, retain, meta, .. } = journal;
            write(&mut *db.prepare_cached(JournalOwner::REPLACE)?, &owner, retain.now(), sums)?;
            Ok(meta.clone())
        })
    }
}

impl JournalReader {
    /// Checks that the journal belongs to this organism, or to none.
    ///
    /// # Errors
    /// [`FileProblem::NotOwned`] if it belongs to another one.
    pub fn check_owner(&self, organism: &str) -> Result<(), StoreError> {
        self.owner()?.map_or(Ok(()), |owner| self.told(owner.check(organism)))
    }

    /// Reads the owner of the journal; none before the first start.
    ///
    /// # Errors
    /// [`StoreError`] if the row can't be read.
    pub fn owner(&self) -> Result<Option<JournalOwner>, StoreError> {
        self.told(owner(&self.db, &mut Sums::default()))
    }
}

pub(super) fn owner(db: &Connection, sums: &mut Sums) -> Result<Option<JournalOwner>, FileProblem> {
    let mut statement = db.prepare_cached(JournalOwner::SELECT)?;
    let mut rows = statement.query([])?;
    rows.next()?.map(|row| Ok(load::<JournalOwner>(row, sums)?.record)).transpose()
}
