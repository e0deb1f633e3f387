//! Weights of rows: how many bytes ended rows take, and how many the promises to each client do.
//!
//! Two things are kept for the age of retention, and each has a bound of its own, so that neither takes the room of the
//! other:
//! - *history*: rows of ended work. Past `Retention::bytes` the oldest goes before its age;
//! - *promises* to a client that submits messages over a network: its submissions with their idempotency keys, and the
//!   answers to them. They go with their age alone. A client whose promises take `Retention::bytes` is refused before
//!   its next message is accepted (see [`Room`]).
//!
//! Open rows and dead letters are in neither: they never push ended rows out.
//!
//! A weight is an estimate of the room in the file: the long columns of a row, and a constant for the rest and the
//! indexes. The sums are counted from the tables when the journal is recovered, and followed from then on.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::Connection;

use crate::sqlite::FileProblem;

/// Weight of a row without long columns.
pub(super) const ROW: i64 = 128;

/// The weight of a row of a table, as an expression. [`Record::HEAVY`](super::row::Record::HEAVY) names the same columns.
macro_rules! weight {
    ("message") => {
        "128 + octet_length(body)"
    };
    ("fan") => {
        "128 + ifnull(octet_length(requests), 0) + ifnull(octet_length(result), 0)"
    };
    ("settled") => {
        "128 + ifnull(octet_length(payload), 0)"
    };
    ("note") => {
        "128 + octet_length(value)"
    };
    ("remembered") => {
        "128 + octet_length(payload)"
    };
    ("egress") => {
        "128 + octet_length(envelope) + octet_length(payload)"
    };
    // A message of a mailbox ends with its status.
    ("mail_status") => {
        "256 + ifnull(octet_length(answer), 0) \
         + ifnull((SELECT octet_length(envelope) FROM mail WHERE mail.seq = mail_status.seq), 0)"
    };
    ("act") => {
        "128 + ifnull(octet_length(error), 0)"
    };
    ("submission") => {
        "128 + ifnull(octet_length(key), 0)"
    };
    ($other:tt) => {
        "128"
    };
}
pub(super) use weight;

/// Tables of history with the keys of their rows, except for mailboxes.
pub(super) const HISTORY: [(&str, &str, &str); 9] = [
    ("thread", "number", weight!("thread")),
    ("budget", "thread", weight!("budget")),
    ("message", "number", weight!("message")),
    ("fan", "(message, call)", weight!("fan")),
    ("settled", "(message, call, place)", weight!("settled")),
    ("note", "(message, place)", weight!("note")),
    ("remembered", "number", weight!("remembered")),
    ("act", "(at, place)", weight!("act")),
    MAIL,
];

/// The table of the statuses of messages in mailboxes.
pub(super) const MAIL: (&str, &str, &str) = ("mail_status", "seq", weight!("mail_status"));

/// Room for the promises to clients.
#[derive(Debug)]
pub struct Room {
    /// Bytes for each client.
    share: u64,
    taken: Mutex<BTreeMap<Box<str>, Arc<AtomicI64>>>,
}

impl Room {
    pub(super) fn new(share: u64) -> Arc<Self> {
        Arc::new(Self { share, taken: Mutex::default() })
    }

    /// Returns the bytes that a client may have, if its promises take as many.
    pub fn exhausted(&self, client: &str) -> Option<u64> {
        let taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = taken.get(client).map_or(0, |taken| taken.load(Ordering::Relaxed));
        (taken > 0 && taken.cast_unsigned() >= self.share).then_some(self.share)
    }

    fn counter(&self, client: &str) -> Arc<AtomicI64> {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        taken.entry(client.into()).or_default().clone()
    }
}

/// Weights of a journal.
#[derive(Debug, Default)]
pub(super) struct Weights {
    /// `None` until the tables were counted.
    counted: Option<Counted>,
}

#[derive(Debug)]
struct Counted {
    room: Arc<Room>,
    /// Ended rows of the tables of history.
    history: i64,
    clients: BTreeMap<Box<str>, ClientWeight>,
}

/// What left for a client, and what it submitted.
#[derive(Debug)]
struct ClientWeight {
    /// All answers.
    answers: i64,
    /// Those that it has read.
    read: i64,
    /// Its submissions over a network.
    submissions: i64,
    /// The sum, for [`Room`].
    taken: Arc<AtomicI64>,
}

impl ClientWeight {
    /// Returns whether answers to the client are promises: it submits messages over a network.
    fn has_promises(&self) -> bool {
        self.submissions > 0
    }
}

impl Weights {
    /// Counts the rows of the tables.
    pub(super) fn count(&mut self, db: &Connection, room: &Arc<Room>) -> Result<(), FileProblem> {
        let mut history = 0;
        for (table, _, weight) in HISTORY {
            let sql = format!("SELECT ifnull(sum({weight}), 0) FROM {table} WHERE ended IS NOT NULL");
            history += db.query_row(&sql, [], |row| row.get::<_, i64>(0))?;
        }
        self.counted = Some(Counted { room: room.clone(), history, clients: BTreeMap::new() });
        let sql = concat!(
            "SELECT client, sum(",
            weight!("egress"),
            "), sum(iif(ended IS NULL, 0, ",
            weight!("egress"),
            ")) FROM egress GROUP BY client"
        );
        let mut statement = db.prepare(sql)?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let (client, answers, read): (Box<str>, i64, i64) = (row.get(0)?, row.get(1)?, row.get(2)?);
            self.answer(&client, answers, read);
        }
        let sql = concat!("SELECT client, sum(", weight!("submission"), ") FROM submission GROUP BY client");
        let mut statement = db.prepare(sql)?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            self.submission(&row.get::<_, Box<str>>(0)?, row.get(1)?);
        }
        Ok(())
    }

    /// Asserts that the sums are those of the tables.
    #[cfg(debug_assertions)]
    pub(super) fn check(&self, db: &Connection) -> Result<(), FileProblem> {
        let Some(counted) = &self.counted else { return Ok(()) };
        let mut found = Self::default();
        found.count(db, &Room::new(0))?;
        let sums = |of: &Counted| {
            let clients = of
                .clients
                .iter()
                .map(|(name, client)| (name.clone(), [client.answers, client.read, client.submissions]));
            (of.history, clients.filter(|(_, sums)| *sums != [0; 3]).collect::<Vec<_>>())
        };
        assert_eq!(Some(sums(counted)), found.counted.as_ref().map(sums), "the weights of rows are followed");
        Ok(())
    }

    /// The bytes of history; none before the rows were counted.
    pub(super) fn history(&self) -> Option<u64> {
        let counted = self.counted.as_ref()?;
        let read: i64 =
            counted.clients.values().filter(|client| !client.has_promises()).map(|client| client.read).sum();
        Some((counted.history + read).max(0).cast_unsigned())
    }

    /// Forgets the sums, until the tables are counted again.
    pub(super) fn lose_count(&mut self) {
        self.counted = None;
    }

    /// Clients whose answers are promises.
    pub(super) fn promised(&self) -> impl Iterator<Item = &str> {
        let clients = self.counted.iter().flat_map(|counted| &counted.clients);
        clients.filter(|(_, client)| client.has_promises()).map(|(name, _)| &**name)
    }

    /// Counts rows of history that ended; negative for those that are deleted.
    pub(super) fn ended(&mut self, weight: i64) {
        if let Some(counted) = &mut self.counted {
            counted.history += weight;
        }
    }

    /// Counts answers to a client, and those of them that it has read.
    pub(super) fn answer(&mut self, client: &str, answers: i64, read: i64) {
        self.change(client, |client| {
            client.answers += answers;
            client.read += read;
        });
    }

    /// Counts submissions of a client.
    pub(super) fn submission(&mut self, client: &str, weight: i64) {
        self.change(client, |client| client.submissions += weight);
    }

    fn change(&mut self, client: &str, change: impl FnOnce(&mut ClientWeight)) {
        let Some(Counted { room, clients, .. }) = &mut self.counted else { return };
        if !clients.contains_key(client) {
            let new = ClientWeight { answers: 0, read: 0, submissions: 0, taken: room.counter(client) };
            clients.insert(client.into(), new);
        }
        if let Some(client) = clients.get_mut(client) {
            change(client);
            client.taken.store((client.answers + client.submissions).max(0), Ordering::Relaxed);
        }
    }
}
