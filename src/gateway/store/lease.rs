//! Leases: messages that one reader has for a while.

use rusqlite::{OptionalExtension, named_params};

use super::items::{COLUMNS, Item, item};
use super::{Store, StoreError};
use crate::shell::entropy::Entropy;
use crate::vocab::{Name, Time};

/// What is asked for.
#[derive(Debug, Clone)]
pub(crate) struct Lease {
    pub(crate) mailbox: Name,
    pub(crate) max: usize,
    pub(crate) now: Time,
    /// Until when the reader has it.
    pub(crate) until: Time,
    /// How often a message is given out.
    pub(crate) deliveries: u32,
}

/// A message and the receipt of its lease.
#[derive(Debug)]
pub(crate) struct Leased {
    pub(crate) item: Item,
    pub(crate) receipt: [u8; 16],
}

/// What can be had of a mailbox.
#[derive(Debug)]
pub(crate) struct Leases {
    pub(crate) leased: Vec<Leased>,
    /// When the next one can be had that somebody has now.
    pub(crate) next: Option<Time>,
}

impl Store {
    /// Leases the oldest messages that nobody has.
    pub(crate) async fn lease(&self, lease: Lease) -> Result<Leases, StoreError> {
        self.write(move |db| {
            let (mailbox, now) = (lease.mailbox.as_str(), lease.now.as_nanos().cast_signed());
            let sql = format!(
                "SELECT {COLUMNS} FROM item WHERE mailbox = :mailbox AND state = 'waiting' AND live > 0 AND due <= :now \
                 AND deliveries < :deliveries ORDER BY seq LIMIT :max"
            );
            let mut free = db.prepare_cached(&sql)?;
            let free = free.query_map(
                named_params! {
                    ":mailbox": mailbox, ":now": now, ":deliveries": lease.deliveries, ":max": lease.max as i64,
                },
                item,
            )?;
            let free = free.collect::<rusqlite::Result<Vec<_>>>()?;
            let mut take = db.prepare_cached(
                "UPDATE item SET due = ?2, receipt = ?3, deliveries = deliveries + 1 WHERE seq = ?1",
            )?;
            let mut leased = Vec::with_capacity(free.len());
            for mut item in free {
                let receipt = *Entropy::Real.root().as_uuid().as_bytes();
                take.execute((item.seq.cast_signed(), lease.until.as_nanos().cast_signed(), receipt))?;
                item.deliveries += 1;
                item.due = lease.until;
                leased.push(Leased { item, receipt });
            }
            let sql = "SELECT min(due) FROM item WHERE mailbox = ?1 AND state = 'waiting' AND live > 0 AND due > ?2";
            let next: Option<Option<i64>> =
                db.prepare_cached(sql)?.query_row((mailbox, now), |row| row.get(0)).optional()?;
            Ok(Leases { leased, next: next.flatten().map(|next| Time::from_nanos(next.cast_unsigned())) })
        })
        .await
    }
}
