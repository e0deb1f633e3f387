//! Traces of conversations that a journal keeps, by the same spans as those of a running organism.
//!
//! The journal's records become the events from which spans are made. It keeps less than there was: a run of a handler begins
//! with the arrival of its message or the end of the run before, and a run that was cancelled, and a request to a model without an
//! answer, have no span.

use std::collections::{HashMap, HashSet};

use serde_json::Value;
use systole_core::core::HandlerEnd;
use systole_core::journal::{BodyRecord, NoteRecord, Number, Owner};
use systole_core::vocab::{Fault, ThreadPath};
use systole_xml::ladder::root_of;

use super::*;
use crate::journal::{HistoryRecord, JournalError, Reader, ThreadEntry};

/// An export of conversations that a journal keeps.
#[derive(Debug)]
pub struct PastTraces {
    runtime: tokio::runtime::Runtime,
    spans: Spans,
    sender: Sender,
}

/// Reason why conversations of a journal are not exported.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum PastError {
    /// The journal can't be read.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The collector did not take spans.
    #[error("the collector did not take {count} spans: {why}")]
    Lost {
        /// The number of spans.
        count: u64,
        /// The reason.
        why: String,
    },
}

systole_core::vocab::debug_is_display!(PastError);

impl Traces {
    /// Begins an export of conversations of an organism's journal, whether the organism runs or not. Listeners that may call others
    /// by its blueprint, if there is one, count as agents; others where they called. The sampler has no part in it.
    ///
    /// # Errors
    /// [`TelemetryError`] if the system refuses its means.
    pub fn past(mut self, organism: &str, blueprint: Option<&Blueprint>) -> Result<PastTraces, TelemetryError> {
        self.name_resource(organism);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let callers = blueprint.map(callers).unwrap_or_default();
        let spans = Spans::new(organism.to_owned(), callers, Sampler::new(1.0, false));
        Ok(PastTraces { runtime, spans, sender: self.sender(Arc::default()) })
    }
}

impl PastTraces {
    /// Sends the spans of the threads of a conversation that have ended; returns their number.
    ///
    /// # Errors
    /// [`PastError`] if the journal can't be read, or the collector doesn't take them.
    pub fn send(&mut self, reader: &dyn Reader, conversation: ThreadId) -> Result<u64, PastError> {
        let threads = reader.conversation(conversation)?;
        let callers = threads.iter().filter_map(|thread| thread.record.parent).collect::<HashSet<_>>();
        for thread in threads.iter().filter(|thread| callers.contains(&thread.record.number)) {
            if let Owner::Listener(name) = &thread.record.owner
                && !self.spans.callers.contains(name)
            {
                self.spans.callers.push(name.clone());
            }
        }
        for event in events(reader, &threads)? {
            self.spans.take(&event);
        }
        // Those of threads that are open are of no use to the next conversation.
        self.spans.open.clear();
        let mut sent = 0;
        while !self.spans.made.is_empty() {
            let rest = self.spans.made.split_off(self.spans.made.len().min(BATCH));
            let batch = std::mem::replace(&mut self.spans.made, rest);
            let count = batch.len() as u64;
            self.runtime.block_on(self.sender.export(batch)).map_err(|why| PastError::Lost { count, why })?;
            sent += count;
        }
        Ok(sent)
    }
}

/// The events of the threads of a conversation, as far as its records tell them.
fn events(reader: &dyn Reader, threads: &[ThreadEntry]) -> Result<Vec<Event>, JournalError> {
    let (mut opened, mut ended): (Vec<Event>, Vec<Vec<Event>>) = (Vec::new(), Vec::new());
    let Some(root) = threads.iter().find(|thread| thread.record.number == thread.record.root) else {
        return Ok(opened);
    };
    let by_call: HashMap<_, _> = threads.iter().map(|thread| (thread.record.opened_by, thread)).collect();
    let mut known: HashMap<Number, (ThreadId, ThreadPath)> = HashMap::new();
    let mut failed: HashMap<Number, (Time, Fault)> = HashMap::new();
    // Threads stand behind those that opened them.
    for thread in threads {
        let record = &thread.record;
        let above = record.parent.and_then(|parent| known.get(&parent));
        let (parent, mut segments) =
            above.map_or((None, Vec::new()), |(id, path)| (Some(*id), path.segments().to_vec()));
        let listener = match &record.owner {
            Owner::Listener(name) => Some(name.clone()),
            Owner::Client(_) | Owner::Boot | Owner::None => None,
        };
        segments.extend(listener.iter().map(|name| (name.clone(), record.ordinal)));
        let path = ThreadPath::new(segments);
        known.insert(record.number, (record.id, path.clone()));
        let caller = record.traceparent.as_deref().and_then(Traceparent::parse);
        let event = |at, kind| Event::new((root.record.id, record.id), path.clone(), at, kind).traceparent(caller);
        opened.push(event(thread.opened, EventKind::Opened { parent }));
        let mut events = Vec::new();
        let (mut ids, mut free) = (HashMap::new(), thread.opened);
        for entry in reader.said(record)? {
            match entry.said {
                HistoryRecord::Message(message, ended) => {
                    ids.insert(message.number, message.id);
                    let payload = match &message.body {
                        BodyRecord::Payload(payload) => root_of(payload),
                        BodyRecord::Fault(fault) | BodyRecord::Fatal(fault) => {
                            let of = message.in_reply_to.and_then(|call| by_call.get(&call));
                            failed.extend(of.map(|of| (of.record.number, (entry.at, fault.clone()))));
                            None
                        }
                    };
                    let Some((until, _)) = ended.filter(|(_, ending)| ending == "done") else { continue };
                    let (since, id) = (free.max(entry.at), message.id);
                    free = until.max(since);
                    let (from, in_reply_to) = (message.from, message.in_reply_to);
                    let attempts = u8::try_from(message.attempts).ok().filter(|&attempts| attempts > 0);
                    events
                        .push(event(since, EventKind::Delivered { message: id, from, in_reply_to, payload, attempts }));
                    events.push(event(free, EventKind::Handled { message: id, outcome: HandlerEnd::Returned }));
                }
                HistoryRecord::Awaited(_, _, settled) => {
                    if let Err(fault) = settled.outcome
                        && let Some(of) = fault.in_reply_to.and_then(|call| by_call.get(&call))
                    {
                        failed.insert(of.record.number, (entry.at, fault));
                    }
                }
                HistoryRecord::Left(egress, _) => {
                    let mut children = threads.iter().filter(|child| child.record.parent == Some(record.number));
                    // Of several children the answer names the client's label alone.
                    if let (Some(fault), Some(only), None) = (egress.fault, children.next(), children.next()) {
                        failed.insert(only.record.number, (entry.at, fault));
                    }
                }
                HistoryRecord::Recorded(note) => {
                    let asked = ids.get(&note.message).zip(listener.clone()).zip(answer(&note));
                    events.extend(asked.map(|((message, by), (backend, model, usage, took))| {
                        let (message, note) = (*message, Some(note.index));
                        let kind = EventKind::ModelAnswered {
                            by,
                            message,
                            note,
                            backend,
                            model,
                            usage,
                            took,
                            text: "".into(),
                        };
                        event(entry.at, kind)
                    }));
                }
                HistoryRecord::Refused(_) | HistoryRecord::Said(_) => {}
            }
        }
        events.extend(thread.closed.map(|closed| event(closed, EventKind::Closed { cancelled: 0 })));
        ended.push(events);
    }
    for (thread, events) in threads.iter().zip(&mut ended) {
        let Some((at, fault)) = failed.remove(&thread.record.number) else { continue };
        // The run that failed is the last one.
        let last = events.iter().rposition(|event| matches!(event.kind, EventKind::Handled { .. })).unwrap_or(0);
        let Some(event) = events.get(last) else { continue };
        let kind = EventKind::Faulted { fault, misroute: None };
        let mut failure = event.clone();
        (failure.at, failure.kind) = (event.at.min(at), kind);
        events.insert(last, failure);
    }
    // Threads end before those that opened them.
    Ok(opened.into_iter().chain(ended.into_iter().rev().flatten()).collect())
}

/// A model's answer that a note keeps: backend, model, use, and the time that it took.
fn answer(note: &NoteRecord) -> Option<(Arc<str>, Arc<str>, Usage, Duration)> {
    let note: Value = serde_json::from_str(&note.value).ok()?;
    let value = note.get("value")?;
    let text = |field: &str| Some(Arc::from(value.get(field)?.as_str()?));
    let usage = serde_json::from_value(value.get("usage")?.clone()).ok()?;
    let took = Duration::from_millis(value.get("ms").and_then(Value::as_u64).unwrap_or_default());
    Some((text("backend")?, text("model")?, usage, took))
}
