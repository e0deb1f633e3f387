//! Opening of a journal: as any SQLite file of the organism, plus the row of `meta`.

use std::path::Path;

use rusqlite::Connection;
use systole_core::journal::AddresseeRecord;

use super::JournalOptions;
use super::batch::Batches;
use super::error::StoreError;
use super::meta::{Horizon, Meta};
use super::resum::resum;
use super::retain::horizon;
use super::row::{Loaded, Record, load, write};
use super::schema::{BATCHED, FORMAT, ORDERED, PARTED, TIMED};
use super::sum::Sums;
use super::text::parse_name;
use crate::runtime::sqlite::{FileProblem, Opened, Opening, place};

/// Checks that a journal could be at a path; nothing is opened or created.
///
/// # Errors
/// [`StoreError`] if something other than a file is there, or no file could be created.
pub fn check_place(file: &Path) -> Result<(), StoreError> {
    place(file).map(drop).map_err(|problem| problem.of(file))
}

/// Contents of a journal that is in order.
pub(super) struct Read {
    pub(super) meta: Loaded<Meta>,
    pub(super) batches: Batches,
}

/// Opens a journal for writing.
pub(super) fn open(file: &Path, options: &JournalOptions) -> Result<Opened<Read>, FileProblem> {
    let fill = |db: &Connection| {
        let meta = Meta { key: options.key, epoch: 0, running: false, batches: 0, total: 0 };
        write(&mut db.prepare(Meta::INSERT)?, &meta, 0, &mut Sums::default())?;
        Ok(())
    };
    let read = |db: &Connection, version| {
        if version >= ORDERED {
            horizon(db, &mut Sums::of(version))?;
        }
        let meta = meta(db, &mut Sums::of(version))?;
        let batches = if version >= BATCHED { Batches::check(db, &meta.record, version)? } else { Batches::default() };
        Ok(Read { meta, batches })
    };
    let renew = |db: &Connection, version, mut read: Read| {
        let meta = &mut read.meta;
        let mut sums = Sums::default();
        if version < PARTED {
            let Meta { total, epoch, .. } = &mut meta.record;
            *total = total.wrapping_add(resum(db, version)?);
            // An epoch of 48 bits is 512 of today: all of the last one counts as begun.
            *epoch = (*epoch << (48 - 39)) | 511;
        }
        if version < ORDERED {
            // The last step may have the same time as those before it.
            let all = Horizon(meta.at + 1);
            write(&mut db.prepare(Horizon::INSERT)?, &all, meta.at, &mut sums)?;
        }
        if version < TIMED {
            meta.record.total = meta.record.total.wrapping_add(unknown_addressees(db, meta.at)?);
        }
        meta.record.batches = read.batches.rows();
        meta.sum = write(&mut db.prepare(Meta::REPLACE)?, &meta.record, meta.at, &mut sums)?;
        Ok(read)
    };
    let JournalOptions { durability, cut, .. } = *options;
    Opening { format: FORMAT, durability, cut, fill: &fill, read: &read, renew: &renew }.open(file)
}

/// Records that the addressee of each listener with mail of an earlier version is unknown; returns the sum of the rows.
fn unknown_addressees(db: &Connection, at: i64) -> Result<i64, FileProblem> {
    let mut mailboxes = db.prepare("SELECT mailbox FROM mail UNION SELECT mailbox FROM mail_gone")?;
    let mut rows = mailboxes.query([])?;
    let mut sum = 0i64;
    while let Some(row) = rows.next()? {
        let name = row.get::<_, String>(0)?;
        let mailbox =
            parse_name(&name).ok_or_else(|| FileProblem::damaged(format!("'{name}' is no name of a mailbox")))?;
        let nobody = AddresseeRecord { mailbox, person: None };
        sum = sum.wrapping_add(write(&mut db.prepare(AddresseeRecord::INSERT)?, &nobody, at, &mut Sums::default())?);
    }
    Ok(sum)
}

/// Reads the row of `meta`.
pub(super) fn meta(db: &Connection, sums: &mut Sums) -> Result<Loaded<Meta>, FileProblem> {
    let mut statement = db.prepare(Meta::SELECT)?;
    let mut rows = statement.query([])?;
    let row = rows.next()?.ok_or_else(|| FileProblem::damaged("the row of table meta is missing"))?;
    load(row, sums)
}
