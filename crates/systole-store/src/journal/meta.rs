//! The row in which the journal describes itself, and the horizon of retention.

use rusqlite::types::ToSqlOutput;
use systole_core::journal::LAST_EPOCH;

use super::retain::Swept;
use super::row::{Cells, Record, blob, number, statements};
use crate::sqlite::FileProblem;

/// Description of the journal: one row.
#[derive(Clone)]
pub(super) struct Meta {
    /// The secret of derived ids.
    pub(super) key: [u8; 32],
    /// The last epoch: that of the last start, of the last partitions that were taken over, or of the last number.
    pub(super) epoch: u32,
    /// True if the last start is running or has crashed.
    pub(super) running: bool,
    /// Number of batches.
    pub(super) batches: u64,
    /// The sum of the sums of all open rows.
    pub(super) total: i64,
    /// The last date of the clock by which ages were judged; 0 before the first one.
    pub(super) trusted: i64,
}

impl Meta {
    /// Adds the change of a sweep to the total.
    pub(super) fn after(&self, swept: &Swept) -> Self {
        Self { total: self.total.wrapping_add(swept.sum), ..self.clone() }
    }

    /// Returns the next epoch.
    pub(super) fn next_epoch(&self) -> Result<u32, FileProblem> {
        Some(self.epoch + 1).filter(|epoch| *epoch <= LAST_EPOCH).ok_or(FileProblem::Worn)
    }
}

impl Record for Meta {
    statements!("meta", "id = ?1", "NULL", "id, key, epoch, running, total, trusted", "?, ?, ?, ?, ?, ?");

    fn cells(&self, cell: &mut dyn FnMut(ToSqlOutput<'_>) -> rusqlite::Result<()>) -> rusqlite::Result<()> {
        cell(number(1))?;
        cell(blob(&self.key))?;
        cell(number(self.epoch.into()))?;
        cell(number(u64::from(self.running) | (self.batches << 1)))?;
        cell(self.total.into())?;
        cell(self.trusted.into())
    }

    fn read(cells: &mut Cells<'_>) -> Option<Self> {
        cells.number()?;
        let (key, epoch, running) = (cells.blob()?, cells.small()?, cells.number()?);
        Some(Self {
            key,
            epoch,
            running: running & 1 == 1,
            batches: running >> 1,
            total: cells.value()?.as_i64().ok()?,
            trusted: cells.value()?.as_i64().ok()?,
        })
    }
}

/// The time up to which ended rows may be missing: one row, written by the first sweep that deletes something.
pub(super) struct Horizon(pub(super) i64);

impl Record for Horizon {
    statements!("horizon", "id = ?1", "NULL", "id, ended", "?, ?");

    fn cells(&self, cell: &mut dyn FnMut(ToSqlOutput<'_>) -> rusqlite::Result<()>) -> rusqlite::Result<()> {
        cell(number(1))?;
        cell(self.0.into())
    }

    fn read(cells: &mut Cells<'_>) -> Option<Self> {
        cells.number()?;
        Some(Self(cells.value()?.as_i64().ok()?))
    }
}
