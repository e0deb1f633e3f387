//! Looks of operators into the past: conversations, their threads and messages, in pages of bounded work.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use rusqlite::{OptionalExtension, Params, named_params};
use systole_core::core::Usage;
use systole_core::journal::{BudgetRecord, MessageRecord, Number, Owner, ThreadRecord};
use systole_core::vocab::{FaultCode, MessageId, Name, QName, ThreadId, ThreadPath, Time};
use systole_xml::ladder::root_of;

use super::reader::{HistoryEntry, JournalReader, ThreadEntry, time};
use super::retain::horizon;
use super::sum::Sums;
use crate::sqlite::FileProblem;

/// Most conversations that one page examines; with a filter a page may have few entries, and another one behind it.
const EXAMINED: usize = 2_000;
/// Most bytes of messages that one page searches, in which a last conversation may be longer.
const SEARCHED: u64 = 64 << 20;

/// Most notes of which the use by day is summed.
const SUMMED: usize = 50_000;

/// Most bytes of the entries of a page; a first entry that is longer is read alone.
const BYTES: usize = 16 << 20;

/// Condition on names: the one that is wanted, and those that are left out.
///
/// As text, words with spaces between them: at most one alone, and at most 32 behind a `-`, which are left out, as in
/// `-parrot -judge`. A name that begins with a `-` itself can be left out only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition<T> {
    /// Only what has this name.
    pub only: Option<T>,
    /// Nothing that has one of these names.
    pub without: Vec<T>,
}

/// Most names that a condition leaves out.
const LEFT_OUT: usize = 32;

impl<T> Default for Condition<T> {
    fn default() -> Self {
        Self { only: None, without: Vec::new() }
    }
}

impl<T: PartialEq> Condition<T> {
    /// Returns whether something with these names meets the condition.
    pub fn takes(&self, names: &[T]) -> bool {
        self.only.as_ref().is_none_or(|only| names.contains(only))
            && !self.without.iter().any(|without| names.contains(without))
    }
}

impl<T: fmt::Display> Condition<T> {
    /// The name that is wanted, and those that are left out, as a list in JSON, as parameters of a statement.
    pub(super) fn params(&self) -> (Option<String>, String) {
        let without: Vec<_> = self.without.iter().map(ToString::to_string).collect();
        (self.only.as_ref().map(ToString::to_string), serde_json::json!(without).to_string())
    }
}

impl<T: fmt::Display> fmt::Display for Condition<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let only = self.only.iter().map(ToString::to_string);
        let words: Vec<_> = only.chain(self.without.iter().map(|without| format!("-{without}"))).collect();
        f.write_str(&words.join(" "))
    }
}

impl<T: FromStr<Err: fmt::Display>> FromStr for Condition<T> {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut condition = Self::default();
        // A space in {namespace} belongs to it.
        let mut is_in_braces = false;
        let ends = |c: char| {
            is_in_braces = c == '{' || is_in_braces && c != '}';
            c.is_whitespace() && !is_in_braces
        };
        for word in text.split(ends).filter(|word| !word.is_empty()) {
            let parse = |name: &str| name.parse::<T>().map_err(|error| error.to_string());
            match word.strip_prefix('-') {
                Some(name) => condition.without.push(parse(name)?),
                None if condition.only.is_none() => condition.only = Some(parse(word)?),
                None => return Err(format!("'{word}' is a second one that is wanted: write -{word} to leave it out")),
            }
        }
        match condition.without.len() {
            0 if condition.only.is_none() => Err("write a name, or -NAME to leave it out".to_owned()),
            0..=LEFT_OUT => Ok(condition),
            many => Err(format!("{many} are left out, and {LEFT_OUT} can be")),
        }
    }
}

/// The conversations that are wanted: those that meet all conditions.
#[derive(Debug, Clone, Default)]
pub struct ConversationFilter {
    /// Only those that opened before the one of this number.
    pub before: Option<Number>,
    /// Only those that opened at this time or later.
    pub since: Option<Time>,
    /// Only those that opened before this time.
    pub until: Option<Time>,
    /// Only open ones, or only ended ones.
    pub open: Option<bool>,
    /// Only those in which these listeners have a thread.
    pub listener: Condition<Name>,
    /// Only those that began with these payloads.
    pub payload: Condition<QName>,
    /// Only those with faults of these codes among their answers.
    pub fault: Condition<FaultCode>,
    /// Only those with this text in a message, an answer or a fault.
    pub text: Option<Arc<str>>,
    /// The most.
    pub limit: usize,
}

/// A conversation as the journal has it.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct KeptConversation {
    /// The root.
    pub root: ThreadEntry,
    /// Threads that are kept, including the root.
    pub threads: u64,
    /// Open threads.
    pub open_threads: u64,
    /// Messages that are not done.
    pub waiting: u64,
    /// The listeners of its threads, in order of name.
    pub listeners: Vec<Name>,
    /// The payload that it began with, if that is kept.
    pub payload: Option<QName>,
    /// The code of the first fault among its answers.
    pub fault: Option<FaultCode>,
}

/// A thread as the journal has it.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct KeptThread {
    /// The thread.
    pub entry: ThreadEntry,
    /// The id of the thread above it, if that is kept.
    pub parent: Option<ThreadId>,
    /// The listeners from the root to it, as far as they are kept.
    pub path: ThreadPath,
    /// Messages that are not done.
    pub waiting: u64,
    /// The budget, if it has one, and the amounts that were spent of it.
    pub budget: Option<BudgetRecord>,
    /// The use of models by its own handler, as far as it is kept.
    pub usage: Usage,
}

/// The use of models by a listener on a day.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct UsedDay {
    /// The begin of the day, in UTC.
    pub day: Time,
    /// The listener.
    pub listener: Name,
    /// Requests that were answered.
    pub requests: u64,
    /// Messages for which it asked. A model is asked again for one whose answer is refused.
    pub messages: u64,
    /// Tokens and cost.
    pub usage: Usage,
}

/// The use of models by day.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct UsedDays {
    /// The days and listeners on which there was some, newest day first, then in order of name.
    pub days: Vec<UsedDay>,
    /// The time from which on all use is in the sums: later than the one that was wanted where that would be too much to read,
    /// [`Time::MAX`] where so many messages are not done.
    pub since: Time,
    /// The time up to which retention may have deleted requests, if it has deleted something.
    pub deleted: Option<Time>,
}

impl UsedDays {
    /// The length of a day; UTC as computers have it is without leap seconds.
    pub const DAY: Duration = Duration::from_secs(86_400);

    /// Returns the begin of the day of a time, in UTC.
    pub fn day_of(at: Time) -> Time {
        let day = Self::DAY.as_nanos() as u64;
        Time::from_nanos(at.as_nanos() / day * day)
    }
}

/// An entry of a conversation's history.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct KeptMessage {
    /// The entry.
    pub entry: HistoryEntry,
    /// The thread.
    pub thread: ThreadId,
    /// The conversation.
    pub root: ThreadId,
    /// The path of the thread.
    pub path: ThreadPath,
}

/// A place in the history of a thread: behind the first `skip` entries of a message, or of an answer that left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HistoryPosition {
    /// The number of the message, or of the answer.
    number: Number,
    /// Entries of it before the place.
    skip: usize,
}

impl fmt::Display for HistoryPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.number, self.skip)
    }
}

impl FromStr for HistoryPosition {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        position(text).map(|(number, skip)| Self { number, skip })
    }
}

/// Parses the two parts of a position, which its text joins by a hyphen.
pub(super) fn position<A: FromStr, B: FromStr>(text: &str) -> Result<(A, B), String> {
    let parsed = text.split_once('-').and_then(|(first, second)| Some((first.parse().ok()?, second.parse().ok()?)));
    parsed.ok_or_else(|| "write the `next` of a page".to_owned())
}

/// The room that is left on a page, in entries and in bytes; a first entry that is longer is read alone.
pub(super) struct PageRoom {
    limit: usize,
    count: usize,
    bytes: usize,
    /// True once an entry had no room: there is another page.
    pub(super) is_cut: bool,
}

impl PageRoom {
    pub(super) fn new(limit: usize) -> Self {
        Self { limit, count: 0, bytes: 0, is_cut: false }
    }

    /// Takes the room of an entry; `false` if it has none.
    pub(super) fn takes(&mut self, bytes: usize) -> bool {
        self.bytes += bytes;
        self.is_cut = self.count == self.limit || self.count > 0 && self.bytes > BYTES;
        self.count += 1;
        !self.is_cut
    }
}

pub(super) fn history_of(
    reader: &JournalReader,
    thread: ThreadId,
    after: HistoryPosition,
    limit: usize,
) -> Result<(Vec<KeptMessage>, Option<HistoryPosition>), FileProblem> {
    let Some(ThreadEntry { record: thread, .. }) = thread_of(reader, thread)? else { return Ok((Vec::new(), None)) };
    let place = Place::of(reader, &thread)?;
    // Numbers are given in order of time, to messages as to answers that leave.
    let next = |reader: &JournalReader, from: Number| -> Result<Option<(Number, bool)>, FileProblem> {
        let message = "SELECT min(number) FROM message WHERE thread = ?1 AND number >= ?2";
        let egress = "SELECT min(number) FROM egress WHERE root = ?1 AND number >= ?2";
        let from = from.cast_signed();
        let message: Option<i64> =
            reader.db.prepare_cached(message)?.query_row([thread.number.cast_signed(), from], |row| row.get(0))?;
        let egress: Option<i64> = match thread.root == thread.number {
            true => reader
                .db
                .prepare_cached(egress)?
                .query_row((thread.id.as_uuid().as_bytes().as_slice(), from), |row| row.get(0))?,
            false => None,
        };
        let either = [message.map(|number| (number, false)), egress.map(|number| (number, true))];
        Ok(either.into_iter().flatten().min().map(|(number, left)| (number.cast_unsigned(), left)))
    };
    let (mut found, mut room) = (Vec::new(), PageRoom::new(limit));
    let HistoryPosition { number: mut from, mut skip } = after;
    while let Some((number, has_left)) = next(reader, from)? {
        if number != after.number {
            skip = 0;
        }
        let entries = if has_left { reader.left(number)? } else { reader.of_message(number)? };
        for entry in entries.into_iter().skip(skip) {
            if !room.takes(entry.said.bytes()) {
                return Ok((found, Some(HistoryPosition { number, skip })));
            }
            skip += 1;
            found.push(place.of_entry(entry));
        }
        from = number + 1;
    }
    Ok((found, None))
}

pub(super) fn message(reader: &JournalReader, id: MessageId) -> Result<Vec<KeptMessage>, FileProblem> {
    let read = |condition| {
        let read = |_: &_, message: MessageRecord, _, _| Ok(message);
        Ok::<_, FileProblem>(reader.rows(condition, [id.as_uuid().as_bytes()], read)?.into_iter().next())
    };
    // Ids have no index, but the open messages have one, and are few beside those that are kept.
    let open = read("WHERE ended IS NULL AND id = ?1")?;
    let found = if open.is_none() { read("WHERE id = ?1")? } else { open };
    let Some(message) = found else { return Ok(Vec::new()) };
    let thread = reader.entries("WHERE number = ?1", [message.thread.cast_signed()])?.pop();
    let Some(thread) = thread else { return Ok(Vec::new()) };
    let place = Place::of(reader, &thread.record)?;
    Ok(reader.of_message(message.number)?.into_iter().map(|entry| place.of_entry(entry)).collect())
}

/// The place of the entries of a thread.
struct Place {
    thread: ThreadId,
    root: ThreadId,
    path: ThreadPath,
}

impl Place {
    fn of(reader: &JournalReader, thread: &ThreadRecord) -> Result<Self, FileProblem> {
        let above = above(reader, thread, &mut Known::new())?;
        let root = above.last().map_or(thread.id, |root| root.id);
        Ok(Self { thread: thread.id, root, path: path(thread, &above) })
    }

    fn of_entry(&self, entry: HistoryEntry) -> KeptMessage {
        KeptMessage { entry, thread: self.thread, root: self.root, path: self.path.clone() }
    }
}

fn thread_of(reader: &JournalReader, id: ThreadId) -> Result<Option<ThreadEntry>, FileProblem> {
    Ok(reader.entries("WHERE id = ?1", [id.as_uuid().as_bytes().as_slice()])?.pop())
}

/// Threads by number, each read once for a page; none where it is no longer kept.
pub(super) type Known = HashMap<Number, Option<ThreadRecord>>;

/// The threads above one, from its parent to the root, as far as they are kept.
pub(super) fn above(
    reader: &JournalReader,
    thread: &ThreadRecord,
    known: &mut Known,
) -> Result<Vec<ThreadRecord>, FileProblem> {
    let mut above: Vec<ThreadRecord> = Vec::new();
    let mut next = thread.parent;
    while let Some(number) = next {
        let parent = match known.entry(number) {
            Entry::Occupied(parent) => parent.into_mut(),
            Entry::Vacant(place) => {
                let found = reader.entries("WHERE number = ?1", [number.cast_signed()])?.pop();
                place.insert(found.map(|entry| entry.record))
            }
        };
        let Some(parent) = parent.clone() else { break };
        // A parent opened before its children, so a damaged journal can't make this run for ever.
        next = parent.parent.filter(|&parent| parent < number);
        above.push(parent);
    }
    Ok(above)
}

pub(super) fn path(thread: &ThreadRecord, above: &[ThreadRecord]) -> ThreadPath {
    let segment = |thread: &ThreadRecord| match &thread.owner {
        Owner::Listener(name) => Some((name.clone(), thread.ordinal)),
        Owner::Client(_) | Owner::Boot | Owner::None => None,
    };
    ThreadPath::new(above.iter().rev().chain([thread]).filter_map(segment).collect())
}

pub(super) fn conversations(
    reader: &JournalReader,
    wanted: &ConversationFilter,
) -> Result<(Vec<KeptConversation>, Option<Number>), FileProblem> {
    let (mut found, mut examined, mut searched, mut last) = (Vec::new(), 0, 0, None);
    let state = match wanted.open {
        None => "",
        Some(true) => "AND ended IS NULL",
        Some(false) => "AND ended IS NOT NULL",
    };
    let condition = format!(
        "WHERE root = number AND number < :before AND (:since IS NULL OR at >= :since) \
         AND (:until IS NULL OR at < :until) {state} ORDER BY number DESC"
    );
    let nanos = |time: Option<Time>| time.map(|time| time.as_nanos().cast_signed());
    let params = named_params! {
        ":before": wanted.before.map_or(i64::MAX, Number::cast_signed),
        ":since": nanos(wanted.since),
        ":until": nanos(wanted.until),
    };
    reader.rows_while(&condition, params, |reader, record: ThreadRecord, at, ended| {
        if found.len() == wanted.limit || examined == EXAMINED || searched > SEARCHED {
            return Ok(None);
        }
        examined += 1;
        last = Some(record.number);
        let root = ThreadEntry { record, opened: time(at), closed: ended.map(time) };
        if let Some(text) = &wanted.text {
            let (is_in_it, bytes) = holds(reader, &root.record, text)?;
            searched += bytes;
            if !is_in_it {
                return Ok(Some(()));
            }
        }
        if let Some(kept) = conversation(reader, root, wanted)? {
            found.push(kept);
        }
        Ok(Some(()))
    })?;
    let is_cut = found.len() == wanted.limit || examined == EXAMINED || searched > SEARCHED;
    Ok((found, last.filter(|_| is_cut)))
}

/// Reads what there is of a conversation; nothing if it doesn't meet the conditions.
fn conversation(
    reader: &JournalReader,
    root: ThreadEntry,
    wanted: &ConversationFilter,
) -> Result<Option<KeptConversation>, FileProblem> {
    let number = root.record.number.cast_signed();
    let (code, without) = wanted.fault.params();
    let fault = first_fault(reader, &root.record, code.as_deref())?;
    if code.is_some() && fault.is_none() || fault.is_some() && has_fault_of(reader, &root.record, &without)? {
        return Ok(None);
    }
    let mut statement = reader.db.prepare_cached(
        "SELECT listener, count(*), count(*) - count(ended) FROM thread WHERE root = ?1 GROUP BY listener ORDER BY listener",
    )?;
    let mut rows = statement.query([number])?;
    let (mut listeners, mut threads, mut open_threads) = (Vec::new(), 0, 0);
    while let Some(row) = rows.next()? {
        let listener: Option<String> = row.get(0)?;
        threads += row.get::<_, i64>(1)?.cast_unsigned();
        open_threads += row.get::<_, i64>(2)?.cast_unsigned();
        listeners.extend(listener.and_then(|name| name.parse::<Name>().ok()));
    }
    if !wanted.listener.takes(&listeners) {
        return Ok(None);
    }
    let first = "SELECT CAST(substr(body, 1, 4096) AS BLOB) FROM message WHERE kind = 'payload' AND thread IN \
                 (SELECT number FROM thread WHERE root = ?1 AND parent = ?1 ORDER BY number LIMIT 1) ORDER BY number LIMIT 1";
    let first: Option<Vec<u8>> = reader.db.prepare_cached(first)?.query_row([number], |row| row.get(0)).optional()?;
    let payload = first.and_then(|start| root_of(&start));
    if !wanted.payload.takes(payload.as_slice()) {
        return Ok(None);
    }
    let waiting =
        "SELECT count(*) FROM message WHERE ended IS NULL AND thread IN (SELECT number FROM thread WHERE root = ?1)";
    let waiting: i64 = match open_threads {
        0 => 0,
        _ => reader.db.prepare_cached(waiting)?.query_row([number], |row| row.get(0))?,
    };
    Ok(Some(KeptConversation {
        root,
        threads,
        open_threads,
        waiting: waiting.cast_unsigned(),
        listeners,
        payload,
        fault,
    }))
}

/// The first fault among the answers of a conversation, of a code if one is wanted.
fn first_fault(
    reader: &JournalReader,
    root: &ThreadRecord,
    code: Option<&str>,
) -> Result<Option<FaultCode>, FileProblem> {
    let first = "SELECT json_extract(fault, '$.code') FROM egress WHERE root = ?1 AND fault IS NOT NULL \
                 AND (?2 IS NULL OR json_extract(fault, '$.code') = ?2) ORDER BY number LIMIT 1";
    let params = (root.id.as_uuid().as_bytes(), code);
    let found: Option<String> = reader.db.prepare_cached(first)?.query_row(params, |row| row.get(0)).optional()?;
    Ok(found.and_then(|code| FaultCode::named(&code)))
}

/// Returns whether a fault among the answers of a conversation has one of the codes, a list in JSON.
fn has_fault_of(reader: &JournalReader, root: &ThreadRecord, codes: &str) -> Result<bool, FileProblem> {
    let any = "SELECT 1 FROM egress WHERE root = ?1 AND fault IS NOT NULL \
               AND json_extract(fault, '$.code') IN (SELECT value FROM json_each(?2))";
    Ok(reader.db.prepare_cached(any)?.exists((root.id.as_uuid().as_bytes(), codes))?)
}

/// Searches the messages, answers and faults of a conversation for a text; returns the bytes that were read, too.
fn holds(reader: &JournalReader, root: &ThreadRecord, text: &str) -> Result<(bool, u64), FileProblem> {
    let number = root.number.cast_signed();
    let of_threads = "thread IN (SELECT number FROM thread WHERE root = ?1)";
    let of_messages = format!("message IN (SELECT number FROM message WHERE {of_threads})");
    let look = |table: &str, column: &str, of: &str| {
        let sql = format!(
            "SELECT max(instr({column}, ?2) > 0), total(length({column})) FROM {table} WHERE {of} AND {column} IS NOT NULL"
        );
        let mut statement = reader.db.prepare_cached(&sql)?;
        let (found, bytes): (Option<bool>, f64) =
            statement.query_row((number, text), |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok::<_, FileProblem>((found.unwrap_or(false), bytes as u64))
    };
    let of_root = "root = (SELECT id FROM thread WHERE number = ?1)";
    let mut read = 0;
    for (table, column, of) in [
        ("message", "body", of_threads),
        ("egress", "payload", of_root),
        ("egress", "fault", of_root),
        ("settled", "payload", &of_messages),
        ("settled", "fault", &of_messages),
        ("note", "value", &of_messages),
    ] {
        let (found, bytes) = look(table, column, of)?;
        read += bytes;
        if found {
            return Ok((true, read));
        }
    }
    Ok((false, read))
}

/// Sums what the answers of models in a conversation used, as far as it is kept.
pub(super) fn usage(reader: &JournalReader, of: ThreadId) -> Result<Usage, FileProblem> {
    let of_conversation = "JOIN thread ON message.thread = thread.number \
                           WHERE thread.root = (SELECT root FROM thread WHERE id = ?1)";
    used(reader, of_conversation, [of.as_uuid().as_bytes()])
}

/// Finds messages by their numbers, with the times at which they came, and what was used in their conversations.
pub(super) fn waits(reader: &JournalReader, messages: &[Number]) -> Result<Vec<(Number, Time, Usage)>, FileProblem> {
    let came = "SELECT message.at, thread.root FROM message JOIN thread ON message.thread = thread.number \
                WHERE message.number = ?1";
    let mut came = reader.db.prepare_cached(came)?;
    let (mut found, mut known) = (Vec::with_capacity(messages.len()), HashMap::new());
    for number in messages {
        let row = came.query_row([number.cast_signed()], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?)));
        let Some((at, root)) = row.optional()? else { continue };
        let usage = match known.get(&root) {
            Some(usage) => *usage,
            None => {
                let usage =
                    used(reader, "JOIN thread ON message.thread = thread.number WHERE thread.root = ?1", [root])?;
                known.insert(root, usage);
                usage
            }
        };
        found.push((*number, time(at), usage));
    }
    Ok(found)
}

/// The use of an answer of a model, as a note on its request has it. Other notes may be no JSON, or have something else there.
const USED: &str = "CASE WHEN json_valid(note.value) THEN CASE json_type(note.value, '$.value.usage') \
                    WHEN 'object' THEN json_extract(note.value, '$.value.usage') END END";

/// Sums what answers of models used.
fn used(reader: &JournalReader, of: &str, params: impl Params) -> Result<Usage, FileProblem> {
    let sql = format!(
        "SELECT {USED} \
         FROM note JOIN message ON note.message = message.number {of}"
    );
    let mut statement = reader.db.prepare_cached(&sql)?;
    let mut rows = statement.query(params)?;
    let mut sum = Usage::default();
    while let Some(row) = rows.next()? {
        let usage: Option<String> = row.get(0)?;
        // A note of another kind may have a field of that name.
        sum = usage.and_then(|usage| serde_json::from_str(&usage).ok()).map_or(sum, |usage| sum.plus(usage));
    }
    Ok(sum)
}

/// Sums what answers of models used since a time, by day and listener. Reads 50,000 notes and 64 MiB of them at most, the
/// newest first.
pub(super) fn used_by_day(reader: &JournalReader, since: Time) -> Result<UsedDays, FileProblem> {
    // A note ends with its message, so it came before; those of open messages are few. The index has both apart.
    let notes = |of: &str| {
        format!(
            "SELECT note.at, note.ended, note.message, thread.listener, length(note.value), {USED} \
             FROM note INDEXED BY note_ended CROSS JOIN message ON note.message = message.number \
             CROSS JOIN thread ON message.thread = thread.number WHERE note.{of} AND note.at >= ?1 ORDER BY note.ended DESC"
        )
    };
    let (mut days, mut messages) = (BTreeMap::<_, UsedDay>::new(), HashSet::new());
    let (mut summed, mut bytes, mut from) = (0, 0, since);
    'read: for of in ["ended IS NULL", "ended >= ?1"] {
        let mut statement = reader.db.prepare_cached(&notes(of))?;
        let mut rows = statement.query([since.as_nanos().cast_signed()])?;
        while let Some(row) = rows.next()? {
            if summed == SUMMED || bytes > SEARCHED {
                // All that ended later was read, and so all that came later.
                from = row.get::<_, Option<i64>>(1)?.map_or(Time::MAX, time);
                break 'read;
            }
            summed += 1;
            bytes += row.get::<_, i64>(4)?.cast_unsigned();
            let (listener, usage): (Option<String>, Option<String>) = (row.get(3)?, row.get(5)?);
            let listener = listener.and_then(|name| name.parse::<Name>().ok());
            // A note of another kind may have a field of that name.
            let usage = usage.and_then(|usage| serde_json::from_str::<Usage>(&usage).ok());
            let (Some(listener), Some(usage)) = (listener, usage) else { continue };
            let day = UsedDays::day_of(time(row.get(0)?));
            let is_first = messages.insert((day, row.get::<_, i64>(2)?));
            let sum = days.entry((std::cmp::Reverse(day), listener.clone())).or_insert_with(|| UsedDay {
                day,
                listener,
                requests: 0,
                messages: 0,
                usage: Usage::default(),
            });
            sum.requests += 1;
            sum.messages += u64::from(is_first);
            sum.usage = sum.usage.plus(usage);
        }
    }
    let deleted = horizon(&reader.db, &mut Sums::default())?;
    let deleted = Some(time(deleted)).filter(|_| deleted > 0);
    Ok(UsedDays { days: days.into_values().collect(), since: from, deleted })
}

pub(super) fn threads(
    reader: &JournalReader,
    of: ThreadId,
    after: Number,
    limit: usize,
) -> Result<(Vec<KeptThread>, Option<Number>), FileProblem> {
    let Some(thread) = thread_of(reader, of)? else { return Ok((Vec::new(), None)) };
    let most = i64::try_from(limit).unwrap_or(i64::MAX).saturating_add(1);
    let page = "WHERE root = ?1 AND number > ?2 ORDER BY number LIMIT ?3";
    let mut entries = reader.entries(page, (thread.record.root.cast_signed(), after.cast_signed(), most))?;
    let has_more = entries.len() > limit;
    entries.truncate(limit);
    let (mut found, mut known) = (Vec::with_capacity(entries.len()), Known::new());
    for entry in entries {
        let above = above(reader, &entry.record, &mut known)?;
        let (parent, path) = (above.first().map(|parent| parent.id), path(&entry.record, &above));
        let waiting = "SELECT count(*) FROM message WHERE ended IS NULL AND thread = ?1";
        let number = entry.record.number.cast_signed();
        let waiting: i64 = reader.db.prepare_cached(waiting)?.query_row([number], |row| row.get(0))?;
        let budget = reader.budget_rows("WHERE thread = ?1", [number])?.pop();
        let usage = used(reader, "WHERE message.thread = ?1", [number])?;
        found.push(KeptThread { entry, parent, path, waiting: waiting.cast_unsigned(), budget, usage });
    }
    let next = found.last().map(|kept| kept.entry.record.number).filter(|_| has_more);
    Ok((found, next))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_is_read_and_written_word_by_word() {
        let read = |text: &str| text.parse::<Condition<QName>>();
        let condition = read(" -{urn:a b}x  {urn:t}say -y ").unwrap();
        assert_eq!(condition.to_string(), "{urn:t}say -{urn:a b}x -y");
        assert_eq!(read(&condition.to_string()), Ok(condition.clone()));
        let names = ["{urn:t}say", "{urn:a b}x", "y", "z"].map(|name| name.parse::<QName>().unwrap());
        assert!(condition.takes(&names[..1]) && condition.takes(&[names[0].clone(), names[3].clone()]));
        assert!(!condition.takes(&names[..2]) && !condition.takes(&names[3..]) && !condition.takes(&[]));
        assert!(Condition::default().takes(&names));
        let many = |count: usize| read(&"-a ".repeat(count));
        assert_eq!(many(LEFT_OUT).unwrap().without.len(), LEFT_OUT);
        assert_eq!(many(LEFT_OUT + 1), Err("33 are left out, and 32 can be".to_owned()));
        assert_eq!(read(" "), Err("write a name, or -NAME to leave it out".to_owned()));
        assert!(read("a b").unwrap_err().contains("write -b to leave it out"));
    }
}
