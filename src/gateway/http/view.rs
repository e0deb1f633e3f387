//! Bodies of answers.

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use bytes::Bytes;
use serde_json::{Value, json};
use systole_core::inbox::{JobCard, Task};
use systole_core::journal::MailState;
use systole_core::vocab::{Name, Time};

use super::AppState;
use crate::gateway::cursor::{self, Place};
use crate::gateway::problem::Problem;
use crate::journal::{Sent, SentAnswer, StoredMail};

/// A JSON document.
pub(in crate::gateway) fn document(status: StatusCode, value: &Value) -> Response {
    typed(status, "application/json", value.to_string())
}

/// A JSON document with messages in it. It is written on another thread: that takes as long as many calls.
pub(in crate::gateway) async fn long_document(
    app: &AppState,
    value: impl FnOnce() -> Value + Send + 'static,
) -> Result<Response, Problem> {
    let text = app.query.beside(move || value().to_string()).await?;
    Ok(typed(StatusCode::OK, "application/json", text))
}

/// An envelope.
pub(super) fn envelope(text: Bytes) -> Response {
    typed(StatusCode::OK, "application/xml", text)
}

pub(super) fn typed(status: StatusCode, kind: &'static str, body: impl Into<Body>) -> Response {
    let mut response = Response::new(body.into());
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

pub(super) fn no_content() -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    response
}

/// A place in a mailbox, as a cursor.
pub(super) fn cursor(app: &AppState, mailbox: &Name, place: Place) -> String {
    cursor::write(&app.cursors, mailbox, place)
}

/// State of a reader, as its cursors carry it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reading {
    /// Sequence number up to which messages were forgotten.
    pub(super) mark: u64,
    /// True for a reader that leaves nothing out.
    pub(super) order: bool,
}

impl Reading {
    /// A reader that may leave messages out.
    pub(super) fn skipping(mark: u64) -> Self {
        Self { mark, order: false }
    }

    pub(super) fn place(self, seq: u64) -> Place {
        Place { seq, mark: self.mark, order: self.order }
    }
}

/// A message of a mailbox.
pub(super) fn mail(app: &AppState, mail: &StoredMail, reading: Reading) -> Value {
    let StoredMail { record, status } = mail;
    json!({
        "id": record.id.to_string(),
        "cursor": cursor(app, &record.mailbox, reading.place(record.seq)),
        "thread": record.thread.to_string(),
        "from": record.from.as_str(),
        "type": record.payload.to_string(),
        "in_reply_to": record.in_reply_to.map(|id| id.to_string()),
        "at": record.at.to_string(),
        "state": state_of(status.state),
        "deliveries": status.deliveries,
        "last_error": status.error,
        "envelope": String::from_utf8_lossy(&record.envelope),
    })
}

/// The state for readers: a redriven message waits like any other.
fn state_of(state: MailState) -> &'static str {
    match state {
        MailState::Redriven => MailState::Waiting.as_str(),
        other => other.as_str(),
    }
}

/// A message of a mailbox with the receipt of its lease.
pub(super) fn leased(app: &AppState, leased: &StoredMail, receipt: [u8; 16]) -> Value {
    let mut value = mail(app, leased, Reading::skipping(0));
    value["receipt"] = hex(receipt).into();
    value["until"] = leased.status.due.to_string().into();
    value
}

/// A registered job.
pub(super) fn job(card: &JobCard) -> Value {
    json!({ "name": card.name.as_str(), "description": card.description, "skills": card.skills })
}

/// A task in short.
pub(super) fn brief(task: &Task) -> Value {
    json!({
        "id": task.id.to_string(),
        "place": task.place,
        "status": task.status,
        "agent": task.source.agent.as_str(),
        "job": task.source.job.as_str(),
        "description": task.description,
        "created": task.created.to_string(),
        "attempts": task.attempts,
    })
}

/// A task without the fields that concern its job and the pump alone.
pub(super) fn task(task: &Task) -> Value {
    let mut value = json!(task);
    if let Some(fields) = value.as_object_mut() {
        fields.retain(|key, _| !["outbox", "routed", "events"].contains(&key.as_str()));
    }
    value
}

/// An answer with the path of its resource, in `Location`.
pub(super) fn located(mut response: Response, path: &str) -> Response {
    if let Ok(location) = HeaderValue::from_str(path) {
        response.headers_mut().insert(header::LOCATION, location);
    }
    response
}

/// A submission of a client, with some of its answers; `first` is true if no other answer came before them.
pub(super) fn sent(sent: &Sent, first: bool) -> Value {
    let replies: Vec<_> = sent.answers.iter().map(answer).collect();
    json!({
        "id": sent.submission.id.to_string(),
        "thread": sent.submission.root.to_string(),
        "at": sent.at.to_string(),
        // The message is in the organism from the start.
        "state": sent.faulted.map_or(if sent.ended { SILENT } else { "delivered" }, answered),
        "attempts": 1,
        "last_error": null,
        "reply": replies.first().filter(|_| first),
        "replies": replies,
        "has_more": sent.has_more,
    })
}

/// State of a submission whose conversation has ended without an answer.
const SILENT: &str = "silent";

/// State of a submission as a request that waited knows it: its answers, and whether its conversation has ended.
pub(super) fn state(answers: &[SentAnswer], ended: bool) -> &'static str {
    let without = if ended { SILENT } else { "queued" };
    answers.first().map_or(without, |first| answered(first.fault.is_some()))
}

const fn answered(by_fault: bool) -> &'static str {
    if by_fault { "faulted" } else { "answered" }
}

fn answer(answer: &SentAnswer) -> Value {
    json!({
        "from": answer.from.as_str(),
        "type": answer.payload.to_string(),
        "fault": answer.fault.as_ref().map(|code| code.as_str()),
        "envelope": String::from_utf8_lossy(&answer.envelope),
    })
}

pub(super) fn hex(bytes: [u8; 16]) -> String {
    uuid::Uuid::from_bytes(bytes).simple().to_string()
}

pub(super) fn date_time(text: &str) -> Option<Time> {
    text.parse().ok()
}
