//! How a journal is opened: as any file of ours, with a row in which it knows of itself.

use std::path::Path;

use rusqlite::Connection;

use super::Options;
use super::error::StoreError;
use super::meta::{Horizon, Meta};
use super::retain::horizon;
use super::row::{Loaded, Record, load, write};
use super::schema::{FORMAT, ORDERED};
use crate::shell::sqlite::{Opened, Opening, Problem, place};

/// Looks whether a journal could be at a path; nothing is opened or made.
///
/// # Errors
/// [`StoreError`] if something else than a file is there, or no file could be.
pub fn check_place(file: &Path) -> Result<(), StoreError> {
    place(file).map(drop).map_err(|problem| problem.of(file))
}

/// Opens a journal for writing.
pub(super) fn open(file: &Path, options: &Options) -> Result<Opened<Loaded<Meta>>, Problem> {
    let fill = |db: &Connection| {
        let meta = Meta { key: options.key, epoch: 0, running: false, total: 0 };
        write(&mut db.prepare(Meta::INSERT)?, &meta, 0, &mut Vec::new())?;
        Ok(())
    };
    let read = |db: &Connection, version| {
        if version >= ORDERED {
            horizon(db)?;
        }
        meta(db)
    };
    let renew = |db: &Connection, version, meta: &Loaded<Meta>| {
        if version < ORDERED {
            // The last step may have the same moment as those before it.
            let all = Horizon(meta.at + 1);
            write(&mut db.prepare(Horizon::INSERT)?, &all, meta.at, &mut Vec::new())?;
        }
        Ok(())
    };
    let Options { durability, cut, .. } = *options;
    Opening { format: FORMAT, durability, cut, fill: &fill, read: &read, renew: &renew }.open(file)
}

/// What the journal knows of itself.
pub(super) fn meta(db: &Connection) -> Result<Loaded<Meta>, Problem> {
    let mut statement = db.prepare(Meta::SELECT)?;
    let mut rows = statement.query([])?;
    let row = rows.next()?.ok_or_else(|| Problem::damaged("it says nothing of itself"))?;
    load(row, &mut Vec::new())
}
