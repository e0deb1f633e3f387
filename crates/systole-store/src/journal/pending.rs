//! Rows that came in the present transaction, before they are written.
//!
//! A row is either pending or in its table, never both: an operation changes it where it is, and a row of a table that
//! gets other contents moves here first. At the end of the transaction each pending row is inserted once, in its final
//! form. So a row that comes, changes and ends within one transaction costs one statement.

use std::collections::{BTreeMap, HashMap};
use std::mem::take;
use std::ops::RangeInclusive;

use rusqlite::Params;
use systole_core::journal::{
    BudgetRecord, EgressRecord, MessageRecord, NoteRecord, Number, RememberedRecord, ThreadRecord,
};
use systole_core::vocab::Name;

use super::fan::{FanRow, SettledRow, call_number};
use super::row::Record;

/// A record whose rows can be pending.
pub(super) trait Kept: Record {
    /// The key of a row, as SQLite orders it.
    type Key: Copy + Ord + Params + AsRef<[i64]>;

    fn key(&self) -> Self::Key;

    /// The thread, for rows that are found by it.
    fn thread(&self) -> Option<Number>;

    /// The client, for messages that left.
    fn client(&self) -> Option<&Name>;

    /// The pending rows of this kind.
    fn rows(pending: &mut Pending) -> &mut Rows<Self>;
}

/// A pending row.
pub(super) struct Row<R> {
    pub(super) record: R,
    pub(super) at: i64,
    pub(super) ended: Option<i64>,
    /// The way in which a message ended.
    pub(super) ending: Option<&'static str>,
    /// True if the table had no row of this key when the transaction began: rows that refer to this one are pending,
    /// too, because they came later.
    pub(super) fresh: bool,
}

impl<R> Row<R> {
    pub(super) fn is_open(&self) -> bool {
        self.ended.is_none()
    }

    /// Ends the row, unless it has ended.
    pub(super) fn end(&mut self, at: i64, ending: Option<&'static str>) {
        if self.is_open() {
            (self.ended, self.ending) = (Some(at), ending);
        }
    }
}

/// All pending rows.
#[derive(Default)]
pub(super) struct Pending {
    pub(super) threads: Rows<ThreadRecord>,
    pub(super) budgets: Rows<BudgetRecord>,
    pub(super) messages: Rows<MessageRecord>,
    pub(super) fans: Rows<FanRow>,
    pub(super) settled: Rows<SettledRow>,
    pub(super) notes: Rows<NoteRecord>,
    pub(super) remembered: Rows<RememberedRecord>,
    pub(super) egress: Rows<EgressRecord>,
}

impl Pending {
    /// Returns whether a thread opened in this transaction.
    pub(super) fn has_opened(&self, thread: Number) -> bool {
        self.threads.get([thread.cast_signed()]).is_some_and(|row| row.fresh)
    }

    /// Returns whether a message came in this transaction.
    pub(super) fn has_come(&self, message: Number) -> bool {
        self.messages.get([message.cast_signed()]).is_some_and(|row| row.fresh)
    }
}

/// The pending rows of a table.
pub(super) struct Rows<R: Kept> {
    rows: BTreeMap<R::Key, Row<R>>,
    /// Keys by thread; rows may have gone, or moved to another thread.
    threads: HashMap<Number, Vec<R::Key>>,
    /// The greatest first column of a key that the table had so far; unknown at first.
    pub(super) newest: Option<i64>,
}

impl<R: Kept> Default for Rows<R> {
    fn default() -> Self {
        Self { rows: BTreeMap::new(), threads: HashMap::new(), newest: None }
    }
}

impl<R: Kept> Rows<R> {
    pub(super) fn get(&self, key: R::Key) -> Option<&Row<R>> {
        self.rows.get(&key)
    }

    pub(super) fn get_mut(&mut self, key: R::Key) -> Option<&mut Row<R>> {
        self.rows.get_mut(&key)
    }

    /// Adds a row, or replaces it.
    pub(super) fn put(&mut self, row: Row<R>) {
        let key = row.record.key();
        let before = self.rows.get(&key).and_then(|row| row.record.thread());
        if let Some(thread) = row.record.thread().filter(|thread| before != Some(*thread)) {
            self.threads.entry(thread).or_default().push(key);
        }
        self.rows.insert(key, row);
    }

    /// Removes the open rows of a range of keys.
    pub(super) fn remove_open(&mut self, keys: RangeInclusive<R::Key>) {
        let open: Vec<_> = self.rows.range(keys).filter(|(_, row)| row.is_open()).map(|(key, _)| *key).collect();
        for key in open {
            self.rows.remove(&key);
        }
    }

    /// The open rows of a range of keys.
    pub(super) fn open(&mut self, keys: RangeInclusive<R::Key>) -> impl Iterator<Item = &mut Row<R>> {
        self.rows.range_mut(keys).map(|(_, row)| row).filter(|row| row.is_open())
    }

    /// Ends the open rows of a thread that match; `each` sees them.
    pub(super) fn end_of(&mut self, thread: Number, mut each: impl FnMut(&mut Row<R>)) {
        for key in self.threads.get(&thread).into_iter().flatten() {
            let row = self.rows.get_mut(key);
            if let Some(row) = row.filter(|row| row.is_open() && row.record.thread() == Some(thread)) {
                each(row);
            }
        }
    }

    /// Takes all rows, in order of their keys.
    pub(super) fn drain(&mut self) -> BTreeMap<R::Key, Row<R>> {
        self.threads.clear();
        if let (Some(newest), Some((last, _))) = (&mut self.newest, self.rows.last_key_value()) {
            *newest = last.as_ref()[0].max(*newest);
        }
        take(&mut self.rows)
    }
}

/// Keys that begin with a message.
pub(super) fn of_message<const KEYS: usize>(message: Number) -> RangeInclusive<[i64; KEYS]> {
    of([message.cast_signed()])
}

/// Keys that begin with these columns.
pub(super) fn of<const FIRST: usize, const KEYS: usize>(first: [i64; FIRST]) -> RangeInclusive<[i64; KEYS]> {
    let bound = |rest| std::array::from_fn(|column| first.get(column).copied().unwrap_or(rest));
    bound(i64::MIN)..=bound(i64::MAX)
}

macro_rules! kept {
    ($($record:ident in $rows:ident: $row:ident => $key:expr; $columns:literal, $thread:expr, $client:expr;)+) => {
        $(impl Kept for $record {
            type Key = [i64; $columns];

            fn key(&self) -> Self::Key {
                let $row = self;
                $key
            }

            fn thread(&self) -> Option<Number> {
                let $row = self;
                let _ = $row;
                $thread
            }

            fn client(&self) -> Option<&Name> {
                let $row = self;
                let _ = $row;
                $client
            }

            fn rows(pending: &mut Pending) -> &mut Rows<Self> {
                &mut pending.$rows
            }
        })+
    };
}

kept! {
    ThreadRecord in threads: row => [row.number.cast_signed()]; 1, None, None;
    BudgetRecord in budgets: row => [row.thread.cast_signed()]; 1, None, None;
    MessageRecord in messages: row => [row.number.cast_signed()]; 1, Some(row.thread), None;
    FanRow in fans: row => [row.id.message.cast_signed(), call_number(row.id.call)]; 2, Some(row.thread), None;
    SettledRow in settled:
        row => [row.fan.message.cast_signed(), call_number(row.fan.call), row.place.into()]; 3, None, None;
    NoteRecord in notes: row => [row.message.cast_signed(), row.index.into()]; 2, None, None;
    RememberedRecord in remembered: row => [row.number.cast_signed()]; 1, Some(row.thread), None;
    EgressRecord in egress: row => [row.number.cast_signed()]; 1, None, Some(&row.client);
}
