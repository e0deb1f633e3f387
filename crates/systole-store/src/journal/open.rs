//! Opening of a journal: as any SQLite file of the organism, plus the row of `meta`.

use std::path::Path;

use rusqlite::Connection;

use super::JournalOptions;
use super::batch::Batches;
use super::error::StoreError;
use super::meta::Meta;
use super::retain::horizon;
use super::row::{Loaded, Record, load, write};
use super::sum::Sums;
use crate::sqlite::{FileProblem, Format, Opened, Opening, place, writable};

/// The format of a journal's file: the application id `SyJ1`, and the tables.
pub(super) const FORMAT: Format =
    Format { name: "journal", id: 0x5379_4a31, version: 16, schema: include_str!("schema.sql") };

/// Checks that a journal could be at a path, and be written; nothing is opened or created.
///
/// # Errors
/// [`StoreError`] if something other than a file is there, or no file could be created or written.
pub(super) fn check_place(file: &Path) -> Result<(), StoreError> {
    place(file).and_then(|real| writable(&real)).map_err(|problem| problem.of(file))
}

/// Contents of a journal that is in order.
pub(super) struct Read {
    pub(super) meta: Loaded<Meta>,
    pub(super) batches: Batches,
}

/// Opens a journal for writing.
pub(super) fn open(file: &Path, options: &JournalOptions) -> Result<Opened<Read>, FileProblem> {
    let fill = |db: &Connection| {
        let meta = Meta { key: options.key, epoch: 0, running: false, batches: 0, total: 0, trusted: 0 };
        write(&mut db.prepare(Meta::INSERT)?, &meta, 0, &mut Sums::default())?;
        Ok(())
    };
    let read = |db: &Connection| {
        let mut sums = Sums::default();
        horizon(db, &mut sums)?;
        let meta = meta(db, &mut sums)?;
        let batches = Batches::check(db, &meta.record)?;
        Ok(Read { meta, batches })
    };
    let JournalOptions { durability, cut, .. } = *options;
    Opening { format: FORMAT, durability, cut, fill: &fill, read: &read }.open(file)
}

/// Reads the row of `meta`.
pub(super) fn meta(db: &Connection, sums: &mut Sums) -> Result<Loaded<Meta>, FileProblem> {
    let mut statement = db.prepare(Meta::SELECT)?;
    let mut rows = statement.query([])?;
    let row = rows.next()?.ok_or_else(|| FileProblem::damaged("the row of table meta is missing"))?;
    load(row, sums)
}
