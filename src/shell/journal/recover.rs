//! Reads what is not over, and adds up whether that is all of it.

use std::collections::{BTreeMap, HashSet};

use rusqlite::Connection;

use super::fan::{FanRow, SettledRow};
use super::meta::Meta;
use super::records::Requeue;
use super::row::{Record, load};
use crate::journal::{FanId, Number, Recovered};
use crate::shell::sqlite::Problem;

/// What is not over.
pub(super) fn recover(db: &Connection, meta: &Meta) -> Result<Recovered, Problem> {
    let mut open = Open { db, total: 0, buffer: Vec::new() };
    let threads = open.rows("WHERE ended IS NULL ORDER BY number")?;
    let mut messages: Vec<crate::journal::MessageRecord> = open.rows("WHERE ended IS NULL")?;
    messages.sort_unstable_by_key(|message| (message.place, message.number));
    let rows: Vec<FanRow> = open.rows("WHERE ended IS NULL ORDER BY message, call")?;
    let mut settled: BTreeMap<FanId, Vec<SettledRow>> = BTreeMap::new();
    for row in open.rows::<SettledRow>("WHERE ended IS NULL ORDER BY message, call, place")? {
        settled.entry(row.fan).or_default().push(row);
    }
    let mut fans = Vec::with_capacity(rows.len());
    for row in rows {
        let answers = settled.remove(&row.id).unwrap_or_default();
        fans.push(row.record(answers).ok_or_else(|| Problem::damaged("a fan-out says nothing"))?);
    }
    let recovered = Recovered {
        key: meta.key,
        epoch: meta.epoch,
        crashed: meta.running,
        threads,
        fans,
        messages,
        notes: open.rows("WHERE ended IS NULL ORDER BY message, place")?,
        remembered: open.rows("WHERE ended IS NULL ORDER BY number")?,
        egress: open.rows("WHERE ended IS NULL ORDER BY number")?,
        letters: open.rows("ORDER BY number")?,
        requeue: open.rows("ORDER BY letter")?.into_iter().map(|Requeue(letter)| letter).collect(),
        tasks: open.rows("ORDER BY inbox, place")?,
        states: open.rows("ORDER BY listener")?,
        mail: Vec::new(),
        last_mail: 0,
        agents: Vec::new(),
    };
    if open.total != meta.total {
        return Err(Problem::damaged("rows are missing, or come from another time"));
    }
    Ok(recovered)
}

/// The messages that have notes or awaited calls.
pub(super) fn noted(recovered: &Recovered) -> HashSet<Number> {
    let called = recovered.fans.iter().filter(|fan| fan.call.is_some()).map(|fan| fan.id.message);
    called.chain(recovered.notes.iter().map(|note| note.message)).collect()
}

struct Open<'a> {
    db: &'a Connection,
    total: i64,
    buffer: Vec<u8>,
}

impl Open<'_> {
    fn rows<R: Record>(&mut self, condition: &str) -> Result<Vec<R>, Problem> {
        let mut statement = self.db.prepare(&[R::SELECT, condition].concat())?;
        let mut rows = statement.query([])?;
        let mut records = Vec::new();
        while let Some(row) = rows.next()? {
            let loaded = load::<R>(row, &mut self.buffer)?;
            self.total = self.total.wrapping_add(loaded.sum);
            records.push(loaded.record);
        }
        Ok(records)
    }
}
