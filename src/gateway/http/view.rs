//! What answers look like.

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use serde_json::{Value, json};

use super::Gate;
use crate::gateway::cursor::{self, Place};
use crate::gateway::store::{Item, Leased, Reply, Sent};
use crate::inbox::{JobCard, Task};
use crate::vocab::{Name, Time};

/// A JSON document.
pub(in crate::gateway) fn document(status: StatusCode, value: &Value) -> Response {
    typed(status, "application/json", value.to_string())
}

/// An envelope.
pub(super) fn envelope(text: String) -> Response {
    typed(StatusCode::OK, "application/xml", text)
}

pub(super) fn typed(status: StatusCode, kind: &'static str, body: impl Into<Body>) -> Response {
    let mut response = Response::new(body.into());
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

pub(super) fn nothing() -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    response
}

/// A place in a mailbox.
pub(super) fn cursor(gate: &Gate, mailbox: &Name, place: Place) -> String {
    cursor::write(gate.mailboxes.store().key(), mailbox, place)
}

/// A message of a mailbox of which something is forgotten up to `mark`.
pub(super) fn item(gate: &Gate, item: &Item, mark: u64) -> Value {
    json!({
        "id": item.id.to_string(),
        "cursor": cursor(gate, &item.mailbox, Place { seq: item.seq, mark }),
        "thread": item.thread.to_string(),
        "from": item.from,
        "type": item.payload,
        "in_reply_to": item.in_reply_to.map(|id| id.to_string()),
        "at": item.at.to_string(),
        "state": item.state.as_str(),
        "deliveries": item.deliveries,
        "last_error": item.error,
        "envelope": item.envelope,
    })
}

/// A message that was leased.
pub(super) fn leased(gate: &Gate, leased: &Leased) -> Value {
    let mut value = item(gate, &leased.item, 0);
    value["receipt"] = hex(leased.receipt).into();
    value["until"] = leased.item.due.to_string().into();
    value
}

/// A job that is there.
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

/// All of a task that is not between its job and the pump.
pub(super) fn task(task: &Task) -> Value {
    let mut value = json!(task);
    if let Some(fields) = value.as_object_mut() {
        fields.retain(|key, _| !["outbox", "routed", "events"].contains(&key.as_str()));
    }
    value
}

/// An answer that says where more of it is.
pub(super) fn located(mut response: Response, path: &str) -> Response {
    if let Ok(location) = HeaderValue::from_str(path) {
        response.headers_mut().insert(header::LOCATION, location);
    }
    response
}

/// What a client sent.
pub(super) fn sent(sent: &Sent) -> Value {
    let replies: Vec<_> = sent.replies.iter().map(reply).collect();
    json!({
        "id": sent.id.to_string(),
        "thread": sent.root.to_string(),
        "at": sent.at.to_string(),
        "state": state(sent),
        "attempts": sent.attempts,
        "last_error": sent.error,
        "reply": replies.first(),
        "replies": replies,
    })
}

/// `queued` is what the caller may rely on: it is kept, whether the organism has taken it yet or not.
pub(super) fn state(sent: &Sent) -> &'static str {
    match sent.replies.first() {
        None if sent.queued => "delivered",
        None => "queued",
        Some(Reply { fault: Some(_), .. }) => "faulted",
        Some(_) => "answered",
    }
}

fn reply(reply: &Reply) -> Value {
    json!({ "from": reply.from, "type": reply.payload, "fault": reply.fault, "envelope": reply.envelope })
}

pub(super) fn hex(bytes: [u8; 16]) -> String {
    uuid::Uuid::from_bytes(bytes).simple().to_string()
}

pub(super) fn moment(text: &str) -> Option<Time> {
    text.parse().ok()
}
