//! `systole thread show`.

use std::collections::HashMap;
use std::process::ExitCode;

use serde_json::{Value, json};
use systole::journal::{HistoryEntry, HistoryRecord, Reader, ThreadEntry};
use systole::operations::Wanted;
use systole::runtime::block_on;
use systole_core::core::Usage;
use systole_core::journal::{BodyRecord, MessageState, NoteRecord};
use systole_core::vocab::{MessageId, Time};

use super::{Journal, conversation};
use crate::columns::date_time;
use crate::failure::Failure;
use crate::look::all;
use crate::print::{self, Page};
use crate::sought::Sought;

/// A message, answer or egress, as text.
struct Line {
    at: Time,
    path: String,
    /// The id of a message, or of an awaited answer.
    id: Option<MessageId>,
    from: String,
    /// The kind: a `message`, an answer that was `awaited`, or an egress that `left` for a client.
    kind: &'static str,
    state: String,
    /// The payload or the fault.
    text: String,
}

pub(super) fn show(of: &Journal, sought: &Sought) -> Result<ExitCode, Failure> {
    let reader = of.read()?;
    let id = sought.find(&*reader)?;
    let threads = conversation(&*reader, id)?;
    let whole = threads.iter().any(|thread| thread.record.id == id && thread.record.number == thread.record.root);
    if of.json {
        drop(reader);
        let past = of.past()?;
        let mut records = Vec::new();
        for thread in threads.iter().filter(|thread| whole || thread.record.id == id) {
            records.extend(all(Wanted::default(), |wanted| block_on(past.messages(thread.record.id, wanted)))?);
        }
        records.sort_by_key(|record| record.at.parse::<Time>().ok());
        print::json(&json!(records))?;
        return Ok(ExitCode::SUCCESS);
    }
    let by_number: HashMap<_, _> = threads.iter().map(|thread| (thread.record.number, thread)).collect();
    let mut lines = Vec::new();
    for thread in threads.iter().filter(|thread| whole || thread.record.id == id) {
        let path = thread.path(&by_number).to_string();
        let said = reader.said(&thread.record).map_err(Failure::store)?;
        lines.extend(said.into_iter().map(|entry| Line::of(entry, path.clone())));
    }
    lines.sort_by_key(|line| line.at);
    let mut page = Page::new();
    for Line { at, path, id, from, kind, state, text } in &lines {
        let id = id.map_or_else(String::new, |id| format!(" {id}"));
        page.line(format_args!("{}  {path}  {kind}{id} from {from}, {state}", date_time(*at)))?;
        page.block("  ", text)?;
    }
    page.finish()?;
    Ok(ExitCode::SUCCESS)
}

/// The ids of the messages and answers of a thread.
pub(super) fn said_ids(reader: &dyn Reader, thread: &ThreadEntry) -> Result<Vec<MessageId>, Failure> {
    let said = reader.said(&thread.record).map_err(Failure::store)?;
    Ok(said.into_iter().filter_map(|entry| Line::of(entry, String::new()).id).collect())
}

/// Parses a note on a request to a model: what the answer used, and the whole.
fn answer(note: &NoteRecord) -> Option<(Usage, Value)> {
    let mut note: Value = serde_json::from_str(&note.value).ok()?;
    let value = note.get_mut("value")?.take();
    Some((serde_json::from_value(value.get("usage")?.clone()).ok()?, value))
}

/// A request to a model and its answer, as a person reads them.
fn exchange(note: &NoteRecord) -> Option<String> {
    let (usage, value) = answer(note)?;
    let text = |field: &str| value.get(field).and_then(Value::as_str);
    let unfinished = value.get("unfinished").map_or_else(String::new, |why| format!(", unfinished: {why}"));
    let (backend, model) = (text("backend")?, text("model")?);
    Some(format!(
        "{model} at {backend}: {usage}{unfinished}\nasked:\n{}\nanswered:\n{}",
        text("asked")?,
        text("answer")?
    ))
}

impl Line {
    fn of(HistoryEntry { at, said, .. }: HistoryEntry, path: String) -> Self {
        let utf8 = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        match said {
            HistoryRecord::Message(message, ended) => Self {
                at,
                path,
                id: Some(message.id),
                from: message.from.to_string(),
                kind: "message",
                state: match (ended, message.state) {
                    (Some((ended, how)), _) => format!("{how} at {}", date_time(ended)),
                    (None, MessageState::Queued) => "waiting".to_owned(),
                    (None, MessageState::Delayed(until)) => format!("waiting until {}", date_time(until)),
                    (None, MessageState::Backlog(_)) => "waiting for the one before".to_owned(),
                },
                text: match message.body {
                    BodyRecord::Payload(payload) => utf8(&payload),
                    BodyRecord::Fault(fault) | BodyRecord::Fatal(fault) => fault.to_string(),
                },
            },
            HistoryRecord::Awaited(id, _, settled) => {
                let (from, text) = match settled.outcome {
                    Ok(answer) => (answer.from.to_string(), utf8(&answer.payload)),
                    Err(fault) => ("system".to_owned(), fault.to_string()),
                };
                Self { at, path, id: Some(id), from, kind: "awaited answer", state: "recorded".to_owned(), text }
            }
            HistoryRecord::Refused(note) => Self {
                at,
                from: path.rsplit('/').next().unwrap_or_default().to_owned(),
                path,
                id: None,
                kind: "refused output",
                state: "kept".to_owned(),
                text: note.value.to_string(),
            },
            HistoryRecord::Said(note) => Self {
                at,
                from: path.rsplit('/').next().unwrap_or_default().to_owned(),
                path,
                id: None,
                kind: "standard error",
                state: "kept".to_owned(),
                text: note.value.to_string(),
            },
            HistoryRecord::Recorded(note) => Self {
                at,
                from: path.rsplit('/').next().unwrap_or_default().to_owned(),
                path,
                id: None,
                kind: "note",
                state: note.name.to_string(),
                text: exchange(&note).unwrap_or_else(|| note.value.to_string()),
            },
            HistoryRecord::Left(egress, read) => Self {
                at,
                path,
                id: None,
                from: egress.from.to_string(),
                kind: "answer",
                state: read.map_or("unread".to_owned(), |read| format!("read at {}", date_time(read))),
                text: utf8(&egress.payload),
            },
        }
    }
}
