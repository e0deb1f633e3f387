//! Looks of operators at what is beside conversations: dead letters, mailboxes, tasks and acts, in pages of bounded work.

use std::collections::BTreeMap;
use std::fmt;
use std::num::ParseIntError;
use std::str::FromStr;
use std::sync::Arc;

use rusqlite::{Params, named_params};
use systole_core::journal::{ActRecord, LetterRecord, Number, TaskRecord};
use systole_core::vocab::{FaultCode, MessageId, Name, QName, Time};

use super::look::{Condition, PageRoom, position};
use super::mail::Gone;
use super::query::{DEAD, StoredMail, stored};
use super::reader::{JournalReader, time};
use super::records::{ActRow, Redrive};
use crate::sqlite::FileProblem;
use systole_core::journal::{AgentRecord, MailRecord};

/// The dead letters that are wanted: those that meet all conditions.
#[derive(Debug, Clone, Default)]
pub struct LetterFilter {
    /// Only those behind this place.
    pub after: Option<LetterPosition>,
    /// Only those of these numbers, and these messages of mailboxes.
    pub ids: Option<(Vec<Number>, Vec<MessageId>)>,
    /// Only those of this sender.
    pub from: Option<Name>,
    /// Only those for these listeners.
    pub listener: Condition<Name>,
    /// Only those with these payloads.
    pub payload: Condition<QName>,
    /// Only those whose reason has these codes; that of a mailbox is `failed`.
    pub fault: Condition<FaultCode>,
    /// Only those with this text in their payload or their reason.
    pub text: Option<Arc<str>>,
    /// Only those that died at this time or later; those of a mailbox came there then.
    pub since: Option<Time>,
    /// Only those that died before this time.
    pub until: Option<Time>,
    /// The most.
    pub limit: usize,
}

/// The place of a dead letter in the list of all: those of the pump come first, then those of mailboxes, each in order of
/// number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LetterPosition {
    /// One of the pump, by its number.
    Pump(Number),
    /// One of a mailbox, by its place there.
    Mailbox(Number),
}

impl fmt::Display for LetterPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pump(number) => number.fmt(f),
            Self::Mailbox(seq) => write!(f, "m{seq}"),
        }
    }
}

impl FromStr for LetterPosition {
    type Err = ParseIntError;

    fn from_str(text: &str) -> Result<Self, ParseIntError> {
        match text.strip_prefix('m') {
            Some(seq) => seq.parse().map(Self::Mailbox),
            None => text.parse().map(Self::Pump),
        }
    }
}

/// A dead letter as the journal has it.
#[derive(Debug, Clone, PartialEq)]
pub enum KeptLetter {
    /// One of the pump, and whether the next start redrives it.
    Pump(LetterRecord, bool),
    /// One of a mailbox.
    Mailbox(StoredMail),
}

impl KeptLetter {
    /// The code of the reason why a message of a mailbox is dead: its listener has failed.
    pub const MAILBOX: FaultCode = FaultCode::Failed;

    /// Returns its place.
    pub fn position(&self) -> LetterPosition {
        match self {
            Self::Pump(letter, _) => LetterPosition::Pump(letter.number),
            Self::Mailbox(mail) => LetterPosition::Mailbox(mail.record.seq),
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Self::Pump(letter, _) => letter.payload.as_ref().map_or(0, |(_, payload)| payload.len()),
            Self::Mailbox(mail) => mail.record.envelope.len(),
        }
    }
}

/// The mailbox of a remote listener as the journal has it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct KeptMailbox {
    /// The listener.
    pub mailbox: Name,
    /// Messages that have not ended.
    pub waiting: u64,
    /// Those of them that a reader has leased or holds.
    pub leased: u64,
    /// Dead letters.
    pub dead: u64,
    /// The time at which the oldest message that has not ended came.
    pub oldest: Option<Time>,
    /// Time since which an operator has it paused.
    pub paused: Option<Time>,
}

impl KeptMailbox {
    /// An empty mailbox.
    pub fn empty(mailbox: Name) -> Self {
        Self { mailbox, waiting: 0, leased: 0, dead: 0, oldest: None, paused: None }
    }
}

/// The tasks that are wanted: those that meet all conditions.
#[derive(Debug, Clone, Default)]
pub struct TaskFilter {
    /// Only those behind this one.
    pub after: Option<TaskPosition>,
    /// Only those of this job.
    pub job: Option<Name>,
    /// Only those in this state: `pending`, `accepted` and so on.
    pub state: Option<Arc<str>>,
    /// Only those with this text in their record.
    pub text: Option<Arc<str>>,
    /// The most.
    pub limit: usize,
}

/// The place of a task in the list of all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskPosition {
    /// The job.
    pub job: Name,
    /// The place there.
    pub place: u64,
}

impl fmt::Display for TaskPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.place, self.job)
    }
}

impl FromStr for TaskPosition {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        position(text).map(|(place, job)| Self { job, place })
    }
}

/// An act of an operator as the journal has it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct KeptAct {
    /// The time of the act; no two have the same.
    pub at: Time,
    /// The act.
    pub record: ActRecord,
}

pub(super) fn letters(
    reader: &JournalReader,
    wanted: &LetterFilter,
) -> Result<(Vec<KeptLetter>, Option<LetterPosition>), FileProblem> {
    let mut page = LetterPage { found: Vec::new(), room: PageRoom::new(wanted.limit) };
    let of_pump = match wanted.after {
        None => Some(0),
        Some(LetterPosition::Pump(number)) => Some(number),
        Some(LetterPosition::Mailbox(_)) => None,
    };
    if let Some(after) = of_pump {
        pump_letters(reader, wanted, after, &mut page)?;
    }
    if !page.room.is_cut && wanted.fault.takes(&[KeptLetter::MAILBOX]) {
        let after = if let Some(LetterPosition::Mailbox(seq)) = wanted.after { seq } else { 0 };
        mailbox_letters(reader, wanted, after, &mut page)?;
    }
    let next = page.found.last().map(KeptLetter::position).filter(|_| page.room.is_cut);
    Ok((page.found, next))
}

/// A page that fills.
struct LetterPage {
    found: Vec<KeptLetter>,
    room: PageRoom,
}

impl LetterPage {
    /// Adds a letter; nothing if it doesn't fit any more.
    fn add(&mut self, letter: KeptLetter) -> Option<()> {
        self.room.takes(letter.bytes()).then(|| self.found.push(letter))
    }
}

fn nanos(time: Option<Time>) -> Option<i64> {
    time.map(|time| time.as_nanos().cast_signed())
}

fn pump_letters(
    reader: &JournalReader,
    wanted: &LetterFilter,
    after: Number,
    page: &mut LetterPage,
) -> Result<(), FileProblem> {
    let condition = "WHERE number > :after AND (:numbers IS NULL OR number IN (SELECT value FROM json_each(:numbers))) \
         AND (:from IS NULL OR sender = :from) AND (:listener IS NULL OR target = :listener) \
         AND (target IS NULL OR target NOT IN (SELECT value FROM json_each(:listeners))) \
         AND (:payload IS NULL OR qname = :payload) \
         AND (qname IS NULL OR qname NOT IN (SELECT value FROM json_each(:payloads))) \
         AND (:fault IS NULL OR json_extract(reason, '$.code') = :fault) \
         AND json_extract(reason, '$.code') NOT IN (SELECT value FROM json_each(:faults)) \
         AND (:text IS NULL OR instr(payload, :text) > 0 OR instr(reason, :text) > 0) \
         AND (:since IS NULL OR buried >= :since) AND (:until IS NULL OR buried < :until) ORDER BY number";
    let [(listener, listeners), (payload, payloads), (fault, faults)] =
        [wanted.listener.params(), wanted.payload.params(), wanted.fault.params()];
    let numbers = wanted.ids.as_ref().map(|(numbers, _)| serde_json::json!(numbers).to_string());
    let params = named_params! {
        ":after": after.cast_signed(),
        ":numbers": numbers,
        ":from": wanted.from.as_ref().map(Name::as_str),
        ":listener": listener,
        ":listeners": listeners,
        ":payload": payload,
        ":payloads": payloads,
        ":fault": fault,
        ":faults": faults,
        ":text": wanted.text.as_deref(),
        ":since": nanos(wanted.since),
        ":until": nanos(wanted.until),
    };
    let marked = reader.rows("", [], |_, Redrive(letter), _, _| Ok(letter))?;
    reader.rows_while(condition, params, |_, letter: LetterRecord, _, _| {
        let redrives = marked.contains(&letter.number);
        Ok(page.add(KeptLetter::Pump(letter, redrives)))
    })?;
    Ok(())
}

fn mailbox_letters(
    reader: &JournalReader,
    wanted: &LetterFilter,
    after: Number,
    page: &mut LetterPage,
) -> Result<(), FileProblem> {
    let condition = format!(
        "WHERE seq IN ({DEAD}) AND seq > :after \
         AND (:ids IS NULL OR hex(id) IN (SELECT value FROM json_each(:ids))) \
         AND (:from IS NULL OR sender = :from) AND (:listener IS NULL OR +mailbox = :listener) \
         AND mailbox NOT IN (SELECT value FROM json_each(:listeners)) \
         AND (:payload IS NULL OR payload = :payload) \
         AND payload NOT IN (SELECT value FROM json_each(:payloads)) \
         AND (:text IS NULL OR instr(envelope, :text) > 0 \
             OR (SELECT instr(error, :text) > 0 FROM mail_status WHERE mail_status.seq = mail.seq)) \
         AND (:since IS NULL OR came >= :since) AND (:until IS NULL OR came < :until) ORDER BY seq"
    );
    let [(listener, listeners), (payload, payloads)] = [wanted.listener.params(), wanted.payload.params()];
    let hex = |id: &MessageId| id.as_uuid().simple().to_string().to_ascii_uppercase();
    let ids =
        wanted.ids.as_ref().map(|(_, ids)| serde_json::json!(ids.iter().map(hex).collect::<Vec<_>>()).to_string());
    let params = named_params! {
        ":after": after.cast_signed(),
        ":ids": ids,
        ":from": wanted.from.as_ref().map(Name::as_str),
        ":listener": listener,
        ":listeners": listeners,
        ":payload": payload,
        ":payloads": payloads,
        ":text": wanted.text.as_deref(),
        ":since": nanos(wanted.since),
        ":until": nanos(wanted.until),
    };
    reader.rows_while(&condition, params, |reader, record: MailRecord, _, _| {
        Ok(page.add(KeptLetter::Mailbox(stored(reader, record)?)))
    })?;
    Ok(())
}

/// Lists all mailboxes of which the journal has something, in order of name. The rows are not checked by their sums.
pub(super) fn mailboxes(reader: &JournalReader, now: Time) -> Result<Vec<KeptMailbox>, FileProblem> {
    let mut found = BTreeMap::<Name, KeptMailbox>::new();
    let mut named = |name: Name| {
        found.entry(name.clone()).or_insert_with(|| KeptMailbox::empty(name));
    };
    reader.rows("", [], |_, gone: Gone, _, _| Ok(gone.mailbox))?.into_iter().for_each(&mut named);
    let agents = reader.rows("", [], |_, agent: AgentRecord, _, _| Ok((agent.name, agent.paused)))?;
    agents.iter().for_each(|(name, _)| named(name.clone()));
    // Each mailbox is one step in the index.
    let each = "WITH RECURSIVE each(name) AS (SELECT min(mailbox) FROM mail UNION ALL \
                SELECT (SELECT min(mailbox) FROM mail WHERE mailbox > name) FROM each WHERE name IS NOT NULL) \
                SELECT name FROM each WHERE name IS NOT NULL";
    names(reader, each, [])?.into_iter().for_each(&mut named);
    for (name, paused) in agents {
        found.entry(name).and_modify(|mailbox| mailbox.paused = paused);
    }
    let counts = "SELECT mailbox, sum(state <> 'dead'), \
                  sum(state <> 'dead' AND receipt IS NOT NULL AND (due IS NULL OR due > ?1)), sum(state = 'dead'), \
                  min(iif(state <> 'dead', came, NULL)) \
                  FROM mail_status INDEXED BY mail_status_ended JOIN mail USING (seq) \
                  WHERE mail_status.ended IS NULL GROUP BY mailbox";
    let mut statement = reader.db.prepare_cached(counts)?;
    let mut rows = statement.query([now.as_nanos().cast_signed()])?;
    while let Some(row) = rows.next()? {
        let count = |column: usize| row.get::<_, i64>(column).map(i64::cast_unsigned);
        let name: String = row.get(0)?;
        let Ok(name) = name.parse::<Name>() else { continue };
        let mailbox = found.entry(name.clone()).or_insert_with(|| KeptMailbox::empty(name));
        (mailbox.waiting, mailbox.leased, mailbox.dead) = (count(1)?, count(2)?, count(3)?);
        mailbox.oldest = row.get::<_, Option<i64>>(4)?.map(time);
    }
    Ok(found.into_values().collect())
}

fn names(reader: &JournalReader, sql: &str, params: impl Params) -> Result<Vec<Name>, FileProblem> {
    let mut statement = reader.db.prepare_cached(sql)?;
    let names = statement.query_map(params, |row| row.get::<_, String>(0))?.collect::<rusqlite::Result<Vec<_>>>()?;
    Ok(names.into_iter().filter_map(|name| name.parse().ok()).collect())
}

pub(super) fn tasks(
    reader: &JournalReader,
    wanted: &TaskFilter,
) -> Result<(Vec<TaskRecord>, Option<TaskPosition>), FileProblem> {
    let condition = "WHERE (:job IS NULL OR inbox = :job) AND (:state IS NULL OR state = :state) \
         AND (:text IS NULL OR instr(body, :text) > 0) AND (:inbox IS NULL OR (inbox, place) > (:inbox, :place)) \
         ORDER BY inbox, place";
    let params = named_params! {
        ":job": wanted.job.as_ref().map(Name::as_str),
        ":state": wanted.state.as_deref(),
        ":text": wanted.text.as_deref(),
        ":inbox": wanted.after.as_ref().map(|after| after.job.as_str()),
        ":place": wanted.after.as_ref().map(|after| after.place.cast_signed()),
    };
    let mut room = PageRoom::new(wanted.limit);
    let found = reader
        .rows_while(condition, params, |_, task: TaskRecord, _, _| Ok(room.takes(task.body.len()).then_some(task)))?;
    let next =
        found.last().filter(|_| room.is_cut).map(|task| TaskPosition { job: task.inbox.clone(), place: task.place });
    Ok((found, next))
}

/// Lists acts, newest first, those before a time, and whether there are more.
pub(super) fn acts(
    reader: &JournalReader,
    before: Option<Time>,
    limit: usize,
) -> Result<(Vec<KeptAct>, bool), FileProblem> {
    let page = "WHERE ended < ?1 ORDER BY ended DESC LIMIT ?2";
    let most = i64::try_from(limit).unwrap_or(i64::MAX).saturating_add(1);
    let before = before.map_or(i64::MAX, |before| before.as_nanos().cast_signed());
    let mut found =
        reader.rows(page, [before, most], |_, row: ActRow, at, _| Ok(KeptAct { at: time(at), record: row.act }))?;
    let has_more = found.len() > limit;
    found.truncate(limit);
    Ok((found, has_more))
}
