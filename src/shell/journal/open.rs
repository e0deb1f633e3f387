//! How a journal is opened: as any file of ours, with a row in which it knows of itself.

use std::path::Path;

use rusqlite::Connection;

use super::Options;
use super::meta::Meta;
use super::row::{Loaded, Record, load, write};
use super::schema::FORMAT;
use crate::shell::sqlite::{Opened, Opening, Problem};

/// Opens a journal for writing; the caller has its lock.
pub(super) fn open(file: &Path, options: &Options) -> Result<Opened<Loaded<Meta>>, Problem> {
    let fill = |db: &Connection| {
        let meta = Meta { key: options.key, epoch: 0, running: false, total: 0 };
        write(&mut db.prepare(Meta::INSERT)?, &meta, 0, &mut Vec::new())?;
        Ok(())
    };
    let opening =
        Opening { format: FORMAT, durability: options.durability, cut: options.cut, fill: &fill, read: &meta };
    opening.open(file)
}

/// What the journal knows of itself.
pub(super) fn meta(db: &Connection) -> Result<Loaded<Meta>, Problem> {
    let mut statement = db.prepare(Meta::SELECT)?;
    let mut rows = statement.query([])?;
    let row = rows.next()?.ok_or_else(|| Problem::damaged("it says nothing of itself"))?;
    load(row, &mut Vec::new())
}
