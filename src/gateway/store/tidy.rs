//! What is over is kept for a while, to be looked at and paged through: by age and by size, the oldest goes first.

use std::time::Duration;

use rusqlite::Connection;

use crate::shell::clock::Clock;
use crate::shell::journal::Retention;

/// Rows that go at once, of each table: no transaction waits long for it.
const STEP: i64 = 256;

/// What never ended is kept so many times longer: a conversation may close without a word, a handler may be cancelled
/// while the organism ends.
const SILENT: u64 = 4;

/// Deletes a little with each transaction.
pub(super) struct Tidy {
    retention: Retention,
    clock: Clock,
}

impl Tidy {
    pub(super) fn new(retention: Retention) -> Self {
        Self { retention, clock: Clock::real() }
    }

    /// Deletes some of what has had its time.
    pub(super) fn some(&mut self, db: &Connection) -> rusqlite::Result<()> {
        let now = self.clock.now().as_nanos();
        let age = u64::try_from(self.retention.age.as_nanos()).unwrap_or(u64::MAX);
        let until = if used(db)? > self.retention.bytes { now } else { now.saturating_sub(age) }.cast_signed();
        let silent = now.saturating_sub(age.saturating_mul(SILENT)).cast_signed();
        items(db, until)?;
        sent(db, "ended <= ?1 ORDER BY ended", until)?;
        sent(db, "ended IS NULL AND state = 'queued' AND at <= ?1 ORDER BY at", silent)?;
        db.prepare_cached("DELETE FROM item WHERE state = 'waiting' AND live = 0 AND at <= ?1")?.execute([silent])?;
        Ok(())
    }
}

/// Bytes of the file that hold something.
fn used(db: &Connection) -> rusqlite::Result<u64> {
    let figure = |name| db.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let (pages, free, size) = (figure("page_count")?, figure("freelist_count")?, figure("page_size")?);
    Ok(((pages - free) * size).cast_unsigned())
}

fn items(db: &Connection, until: i64) -> rusqlite::Result<()> {
    let old = "SELECT seq, mailbox FROM item WHERE ended <= ?1 ORDER BY ended LIMIT ?2";
    let mut old = db.prepare_cached(old)?;
    let old: Vec<(i64, String)> =
        old.query_map((until, STEP), |row| Ok((row.get(0)?, row.get(1)?)))?.collect::<rusqlite::Result<_>>()?;
    for (seq, mailbox) in old {
        db.prepare_cached("DELETE FROM item WHERE seq = ?1")?.execute([seq])?;
        let mark = "INSERT INTO pruned VALUES (?1, ?2) ON CONFLICT DO UPDATE SET seq = max(seq, ?2)";
        db.prepare_cached(mark)?.execute((mailbox, seq))?;
    }
    Ok(())
}

fn sent(db: &Connection, which: &str, until: i64) -> rusqlite::Result<()> {
    let mut old = db.prepare_cached(&format!("SELECT id FROM sent WHERE {which} LIMIT ?2"))?;
    let old: Vec<[u8; 16]> = old.query_map((until, STEP), |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
    for id in old {
        db.prepare_cached("DELETE FROM answer WHERE message = ?1")?.execute([id])?;
        db.prepare_cached("DELETE FROM idempotency WHERE message = ?1")?.execute([id])?;
        db.prepare_cached("DELETE FROM sent WHERE id = ?1")?.execute([id])?;
    }
    Ok(())
}

/// What may wait in a gateway, each with an error of its own.
#[derive(Debug, Clone)]
pub(crate) struct Caps {
    /// Messages of a client that the organism has not taken.
    pub(crate) accepted: usize,
    /// Bytes that wait in one mailbox.
    pub(crate) mailbox_bytes: usize,
    /// How often a message is given out.
    pub(crate) deliveries: u32,
    /// How long a reader has it, unless it says otherwise.
    pub(crate) visibility: Duration,
}

impl Default for Caps {
    fn default() -> Self {
        Self { accepted: 10_000, mailbox_bytes: 256 << 20, deliveries: 5, visibility: Duration::from_secs(30) }
    }
}
