//! Recovery: reads all open rows, and checks by their total that none is missing.

use std::collections::{BTreeMap, HashSet};

use rusqlite::{Connection, Params, Row};
use systole_core::journal::{
    FanId, FanRecord, MailRecord, MailStatus, MessageRecord, Number, OpenMail, OrdinalRecord, Owner, Recovered,
    SubmissionRecord, ThreadRecord,
};
use systole_core::vocab::{Name, ThreadId};
use uuid::Uuid;

use super::fan::{FanRow, SettledRow};
use super::mail::{Gone, StatusRow};
use super::meta::Meta;
use super::pending::{Kept, Pending};
use super::records::Redrive;
use super::row::{Record, load};
use super::sum::Sums;
use super::text::parse_name;
use super::weigh::Weights;
use crate::sqlite::FileProblem;

/// Reads all open rows.
pub(super) fn recover(db: &Connection, meta: &Meta) -> Result<Recovered, FileProblem> {
    let mut open = Open::new(db);
    let threads = open.in_order_of_keys()?;
    let messages = in_order(open.rows("WHERE ended IS NULL")?);
    let fans = open.in_order_of_keys()?;
    let fans = fan_outs(fans, open.in_order_of_keys()?)?;
    let (mail, last_mail) = mailboxes(&mut open)?;
    let recovered = Recovered {
        key: meta.key,
        epoch: meta.epoch,
        crashed: meta.running,
        ordinals: ordinals(db, &threads)?,
        threads,
        budgets: open.in_order_of_keys()?,
        fans,
        messages,
        notes: open.in_order_of_keys()?,
        remembered: open.in_order_of_keys()?,
        egress: open.in_order_of_keys()?,
        letters: open.rows("ORDER BY number")?,
        redrive: open.rows("ORDER BY letter")?.into_iter().map(|Redrive(letter)| letter).collect(),
        tasks: open.rows("ORDER BY inbox, place")?,
        states: open.rows("ORDER BY listener")?,
        mail,
        last_mail,
        agents: open.rows("ORDER BY name")?,
        addressees: open.rows("ORDER BY mailbox")?,
        paused: open.rows("ORDER BY listener")?,
    };
    open.each("WHERE ended IS NULL", |_: SubmissionRecord| ())?;
    if open.total != meta.total {
        return Err(FileProblem::damaged("rows are missing, or come from another time"));
    }
    Ok(recovered)
}

/// Reads the greatest ordinals of the children of open threads, ended children included, until retention deletes them.
///
/// An index has the roots of ended threads, so that of conversations that have ended no row is read.
pub(super) fn ordinals(db: &Connection, open: &[ThreadRecord]) -> Result<Vec<OrdinalRecord>, FileProblem> {
    let numbers: HashSet<Number> = open.iter().map(|thread| thread.number).collect();
    let mut last: BTreeMap<(Number, Name), u32> = BTreeMap::new();
    let mut reserve = |parent: Option<Number>, listener: Name, ordinal: u32| {
        if let Some(parent) = parent.filter(|parent| numbers.contains(parent)) {
            let last = last.entry((parent, listener)).or_default();
            *last = ordinal.max(*last);
        }
    };
    for thread in open {
        if let Owner::Listener(listener) = &thread.owner {
            reserve(thread.parent, listener.clone(), thread.ordinal);
        }
    }
    let mut ended = db.prepare("SELECT root, number FROM thread INDEXED BY thread_ended WHERE ended IS NOT NULL")?;
    let mut child = db.prepare("SELECT parent, listener, ordinal FROM thread WHERE number = ?1")?;
    let mut rows = ended.query([])?;
    while let Some(row) = rows.next()? {
        if !numbers.contains(&row.get::<_, i64>(0)?.cast_unsigned()) {
            continue;
        }
        // The start doesn't check ended rows: a damaged one reserves nothing.
        let (parent, listener, ordinal) = child.query_row([row.get::<_, i64>(1)?], |row| {
            let parent = row.get_ref(0)?.as_i64().ok().map(i64::cast_unsigned);
            let listener = row.get_ref(1)?.as_str().ok().and_then(parse_name);
            Ok((parent, listener, row.get_ref(2)?.as_i64().ok().and_then(|ordinal| ordinal.try_into().ok())))
        })?;
        if let (Some(listener), Some(ordinal)) = (listener, ordinal) {
            reserve(parent, listener, ordinal);
        }
    }
    Ok(last.into_iter().map(|((parent, listener), last)| OrdinalRecord { parent, listener, last }).collect())
}

/// Sorts messages by their places in the mailboxes.
pub(super) fn in_order(mut messages: Vec<MessageRecord>) -> Vec<MessageRecord> {
    messages.sort_unstable_by_key(|message| (message.place, message.number));
    messages
}

/// Joins fan-outs with the answers to their awaited calls, which are in order.
pub(super) fn fan_outs(rows: Vec<FanRow>, answers: Vec<SettledRow>) -> Result<Vec<FanRecord>, FileProblem> {
    let mut settled: BTreeMap<FanId, Vec<SettledRow>> = BTreeMap::new();
    for row in answers {
        settled.entry(row.fan).or_default().push(row);
    }
    let joined = rows.into_iter().map(|row| {
        let answers = settled.remove(&row.id).unwrap_or_default();
        row.record(answers).ok_or_else(|| FileProblem::damaged("a row of table fan can't be parsed"))
    });
    joined.collect()
}

/// Reads the messages of mailboxes that have not ended, and the greatest number that was assigned.
pub(super) fn mailboxes(open: &mut Open<'_>) -> Result<(Vec<OpenMail>, Number), FileProblem> {
    // Envelopes are read to check their sums, and not kept.
    let mail = open.each(
        "WHERE seq IN (SELECT seq FROM mail_status WHERE ended IS NULL) ORDER BY seq",
        |mail: MailRecord| OpenMail {
            seq: mail.seq,
            mailbox: mail.mailbox,
            id: mail.id,
            thread: mail.thread,
            from: mail.from,
            bytes: mail.envelope.len() as u64,
            at: mail.at,
            status: MailStatus::default(),
        },
    )?;
    let statuses: Vec<StatusRow> = open.rows("WHERE ended IS NULL ORDER BY seq")?;
    let paired = mail.len() == statuses.len() && mail.iter().zip(&statuses).all(|(mail, row)| mail.seq == row.seq);
    if !paired {
        return Err(FileProblem::damaged("messages of mailboxes and their statuses do not belong together"));
    }
    let mail = mail.into_iter().zip(statuses).map(|(mail, row)| OpenMail { status: row.status, ..mail }).collect();
    let gone: Vec<Gone> = open.rows("")?;
    let last: Option<i64> = open.db.query_row("SELECT max(seq) FROM mail", [], |row| row.get(0))?;
    let last = gone.iter().map(|gone| gone.last).chain(last.map(i64::cast_unsigned)).max();
    Ok((mail, last.unwrap_or_default()))
}

/// Facts about open rows that save queries.
#[derive(Default)]
pub(super) struct Known {
    /// Messages that have notes or awaited calls. They are few, so most messages need no query.
    pub(super) noted: HashSet<Number>,
    /// Threads that have or had fan-outs or a context.
    pub(super) holding: HashSet<Number>,
    /// Threads with budgets.
    pub(super) budgeted: HashSet<Number>,
    /// Roots of conversations.
    pub(super) roots: HashSet<ThreadId>,
    /// Weights of rows, from the recovery on.
    pub(super) weights: Weights,
    /// Rows of the present transaction.
    pub(super) pending: Pending,
}

impl Known {
    /// Reads the facts from the tables.
    pub(super) fn read(db: &Connection) -> Result<Self, FileProblem> {
        let numbers = |sql: &str| -> Result<HashSet<Number>, FileProblem> {
            let number = |row: &Row<'_>| row.get(0).map(i64::cast_unsigned);
            Ok(db.prepare(sql)?.query_map([], number)?.collect::<Result<_, _>>()?)
        };
        let id = |row: &Row<'_>| Ok(ThreadId::from_uuid(Uuid::from_bytes(row.get(0)?)));
        let roots = "SELECT id FROM thread WHERE ended IS NULL AND root = number";
        Ok(Self {
            noted: numbers(
                "SELECT message FROM note WHERE ended IS NULL \
                 UNION SELECT message FROM fan WHERE ended IS NULL AND requests IS NOT NULL",
            )?,
            holding: numbers(
                "SELECT thread FROM fan WHERE ended IS NULL UNION SELECT thread FROM remembered WHERE ended IS NULL",
            )?,
            budgeted: numbers("SELECT thread FROM budget WHERE ended IS NULL")?,
            roots: db.prepare(roots)?.query_map([], id)?.collect::<Result<_, _>>()?,
            weights: Weights::default(),
            pending: Pending::default(),
        })
    }
}

/// Collects the facts after a recovery.
pub(super) fn known(recovered: &Recovered) -> Known {
    let called = recovered.fans.iter().filter(|fan| fan.call.is_some()).map(|fan| fan.id.message);
    let fanned = recovered.fans.iter().map(|fan| fan.thread);
    Known {
        holding: fanned.chain(recovered.remembered.iter().map(|entry| entry.thread)).collect(),
        budgeted: recovered.budgets.iter().map(|budget| budget.thread).collect(),
        noted: called.chain(recovered.notes.iter().map(|note| note.message)).collect(),
        roots: recovered.threads.iter().filter(|thread| thread.root == thread.number).map(|root| root.id).collect(),
        weights: Weights::default(),
        pending: Pending::default(),
    }
}

/// Reads open rows, and adds up their sums.
pub(super) struct Open<'a> {
    db: &'a Connection,
    total: i64,
    sums: Sums,
}

impl<'a> Open<'a> {
    pub(super) fn new(db: &'a Connection) -> Self {
        Self { db, total: 0, sums: Sums::default() }
    }

    /// Reads the open rows of a table, and sorts them: the index of open rows has another order, and SQLite would copy each
    /// whole row to sort them.
    fn in_order_of_keys<R: Kept>(&mut self) -> Result<Vec<R>, FileProblem> {
        let mut rows = self.rows("WHERE ended IS NULL")?;
        rows.sort_unstable_by_key(R::key);
        Ok(rows)
    }

    fn rows<R: Record>(&mut self, condition: &str) -> Result<Vec<R>, FileProblem> {
        self.each(condition, |record| record)
    }

    fn each<R: Record, T>(&mut self, condition: &str, keep: impl Fn(R) -> T) -> Result<Vec<T>, FileProblem> {
        self.select(condition, [], keep)
    }

    /// Reads the rows that match a condition.
    pub(super) fn select<R: Record, T>(
        &mut self,
        condition: &str,
        params: impl Params,
        keep: impl Fn(R) -> T,
    ) -> Result<Vec<T>, FileProblem> {
        let mut statement = self.db.prepare(&[R::SELECT, condition].concat())?;
        let mut rows = statement.query(params)?;
        let mut records = Vec::new();
        while let Some(row) = rows.next()? {
            let loaded = load::<R>(row, &mut self.sums)?;
            self.total = self.total.wrapping_add(loaded.sum);
            records.push(keep(loaded.record));
        }
        Ok(records)
    }
}
