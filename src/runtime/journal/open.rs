//! Opening of a journal: as any SQLite file of the organism, plus the row of `meta`.

use std::path::Path;

use rusqlite::Connection;
use systole_core::journal::{
    AddresseeRecord, AgentRecord, EgressRecord, LetterRecord, MailRecord, MessageRecord, NoteRecord, RememberedRecord,
    StateRecord, SubmissionRecord, TaskRecord, ThreadRecord,
};

use super::Options;
use super::error::StoreError;
use super::fan::{FanRow, SettledRow};
use super::mail::{Gone, StatusRow, TakenOver};
use super::meta::{Horizon, Meta};
use super::records::Requeue;
use super::retain::horizon;
use super::row::{Loaded, Record, load, write};
use super::schema::{FORMAT, ORDERED, TIMED};
use super::sum::Sums;
use super::text::parse_name;
use crate::runtime::sqlite::{Opened, Opening, Problem, place};

/// Tables whose rows are summed up in `meta`, and the expression that tells when a row ended.
const ADDED_UP: [(&str, &str); 17] = [
    (ThreadRecord::TABLE, ThreadRecord::ENDED),
    (MessageRecord::TABLE, MessageRecord::ENDED),
    (FanRow::TABLE, FanRow::ENDED),
    (SettledRow::TABLE, SettledRow::ENDED),
    (NoteRecord::TABLE, NoteRecord::ENDED),
    (RememberedRecord::TABLE, RememberedRecord::ENDED),
    (EgressRecord::TABLE, EgressRecord::ENDED),
    (LetterRecord::TABLE, LetterRecord::ENDED),
    (Requeue::TABLE, Requeue::ENDED),
    (TaskRecord::TABLE, TaskRecord::ENDED),
    (StateRecord::TABLE, StateRecord::ENDED),
    (MailRecord::TABLE, MailRecord::ENDED),
    (StatusRow::TABLE, StatusRow::ENDED),
    (Gone::TABLE, Gone::ENDED),
    (AgentRecord::TABLE, AgentRecord::ENDED),
    (SubmissionRecord::TABLE, SubmissionRecord::ENDED),
    (TakenOver::TABLE, TakenOver::ENDED),
];

/// Checks that a journal could be at a path; nothing is opened or created.
///
/// # Errors
/// [`StoreError`] if something other than a file is there, or no file could be created.
pub fn check_place(file: &Path) -> Result<(), StoreError> {
    place(file).map(drop).map_err(|problem| problem.of(file))
}

/// Opens a journal for writing.
pub(super) fn open(file: &Path, options: &Options) -> Result<Opened<Loaded<Meta>>, Problem> {
    let fill = |db: &Connection| {
        let meta = Meta { key: options.key, epoch: 0, running: false, total: 0 };
        write(&mut db.prepare(Meta::INSERT)?, &meta, 0, &mut Sums::default())?;
        Ok(())
    };
    let read = |db: &Connection, version| {
        if version >= ORDERED {
            horizon(db, &mut Sums::of(version))?;
        }
        meta(db, &mut Sums::of(version))
    };
    let renew = |db: &Connection, version, mut meta: Loaded<Meta>| {
        let mut sums = Sums::default();
        if version < ORDERED {
            // The last step may have the same time as those before it.
            let all = Horizon(meta.at + 1);
            write(&mut db.prepare(Horizon::INSERT)?, &all, meta.at, &mut sums)?;
        }
        if version < TIMED {
            let total = &mut meta.record.total;
            *total = total.wrapping_add(timed(db)?).wrapping_add(unknown_addressees(db, meta.at)?);
            meta.sum = write(&mut db.prepare(Meta::REPLACE)?, &meta.record, meta.at, &mut sums)?;
        }
        Ok(meta)
    };
    let Options { durability, cut, .. } = *options;
    Opening { format: FORMAT, durability, cut, fill: &fill, read: &read, renew: &renew }.open(file)
}

/// Computes the change of the total of `meta` when sums came to cover `at`: an error in the total stays as large.
fn timed(db: &Connection) -> Result<i64, Problem> {
    let mut change = 0i64;
    for (table, ended) in ADDED_UP {
        let mut statement = db.prepare(&format!("SELECT sum, at FROM {table} WHERE {ended} IS NULL"))?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let (sum, at) = (row.get::<_, i64>(0)?, row.get::<_, i64>(1)?);
            change = change.wrapping_add(sum).wrapping_sub(sum ^ at);
        }
    }
    Ok(change)
}

/// Records that the addressee of each listener with mail of an earlier version is unknown; returns the sum of the rows.
fn unknown_addressees(db: &Connection, at: i64) -> Result<i64, Problem> {
    let mut mailboxes = db.prepare("SELECT mailbox FROM mail UNION SELECT mailbox FROM mail_gone")?;
    let mut rows = mailboxes.query([])?;
    let mut sum = 0i64;
    while let Some(row) = rows.next()? {
        let name = row.get::<_, String>(0)?;
        let mailbox = parse_name(&name).ok_or_else(|| Problem::damaged(format!("'{name}' is no name of a mailbox")))?;
        let nobody = AddresseeRecord { mailbox, person: None };
        sum = sum.wrapping_add(write(&mut db.prepare(AddresseeRecord::INSERT)?, &nobody, at, &mut Sums::default())?);
    }
    Ok(sum)
}

/// Reads the row of `meta`.
pub(super) fn meta(db: &Connection, sums: &mut Sums) -> Result<Loaded<Meta>, Problem> {
    let mut statement = db.prepare(Meta::SELECT)?;
    let mut rows = statement.query([])?;
    let row = rows.next()?.ok_or_else(|| Problem::damaged("the row of table meta is missing"))?;
    load(row, sums)
}
