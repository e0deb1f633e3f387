//! Text to a listener: `POST /workspaces/{id}/a2a`.

use std::sync::Arc;
use std::time::Duration;

use axum::response::Response;
use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Value, json};
use systole_core::protocol::read_fault;
use systole_core::vocab::{MessageId, Name, ns};

use super::Facade;
use super::ids::parse;
use super::notify::{answer, row};
use super::people::Listener;
use super::room::{self, Room};
use super::rpc::{METHOD, Send};
use super::said;
use super::said::Said;
use crate::gateway::seam::{AppState, Problem, SentAnswer, StoredMail, document};

/// Code of an internal error (JSON-RPC 2.0, section 5.1).
const INTERNAL_ERROR: i32 = -32603;

/// Time for which a request waits for a listener that may answer at once: one in the organism, or one that is pushed
/// to.
const AT_ONCE: Duration = Duration::from_secs(1);

/// Longest idempotency key, in bytes.
const KEY: usize = 128;

/// `POST /workspaces/{id}/a2a`
///
/// Sent to the id of a row of the workspace, the text answers that row; sent to a listener, it opens a conversation.
pub(super) async fn send(room: Room) -> Result<Response, Problem> {
    let (to, target) = (room.id.clone(), room.facade.people.find(&room.id).cloned());
    let (speaker, person) = (room.speaker(), room.person());
    match &speaker {
        Some(own) => room.is_claimed(own)?,
        None if person.is_none() => return Err(Problem::forbidden("only workspaces and clients send text")),
        None => {}
    }
    let (said, request) = room.asked().await?;
    let send = Send::read(&request)?;
    let opened = match (speaker, person) {
        (Some(own), _) => say(&said, &own, (&to, target), (send, &request)).await?,
        (None, Some(person)) => {
            let target = target.ok_or_else(nobody)?;
            let speaker = ("canvas_user", person.as_str());
            Some((open(&said.app, &person, speaker, &target, keyed(send)).await?, target))
        }
        (None, None) => None,
    };
    if let Some((id, target)) = opened
        && !said.app.is_pulled(&target.name)
        && let Some((row, answer)) = said.app.answer(id, AT_ONCE).await?
        && said.known.is_known(&said.app)
    {
        return Ok(document(&result(&request, row, &answer)));
    }
    Ok(document(&json!({ "status": "queued", "delivery_mode": "poll", "method": METHOD })))
}

#[derive(Deserialize)]
struct Delegation {
    task: String,
    idempotency_key: Option<String>,
}

/// `POST /workspaces/{id}/delegate`: a workspace gives a peer a task, as a text to the peer.
pub(super) async fn delegate(room: Room) -> Result<Response, Problem> {
    let own = room.speaker().ok_or_else(|| Problem::forbidden("only workspaces delegate"))?;
    room.is_claimed(&own)?;
    let target = room.facade.people.find(&room.id).cloned().ok_or_else(nobody)?;
    let (said, Delegation { task, idempotency_key }) = room.said::<Delegation>().await?;
    let voice = own.voice.as_ref().ok_or_else(|| mute(&own))?;
    if idempotency_key.as_ref().is_some_and(|key| key.is_empty() || key.len() > KEY) {
        return Err(Problem::bad_request(format!("'idempotency_key' has 1 to {KEY} bytes")));
    }
    // The SDK makes the key of the task alone: the same task for another peer is another delegation.
    let key = idempotency_key.map(|key| format!("delegate:{}:{key}", target.name));
    let speaker = ("peer_agent", own.name.as_str());
    let id = open(&said.app, voice, speaker, &target, (task, key)).await?.to_string();
    Ok(document(&json!({ "status": "queued", "delegation_id": id, "target_id": target.id.to_string() })))
}

/// Answers a row, or opens a conversation: then it returns the message that opened it.
async fn say(
    said: &room::Said,
    own: &Listener,
    (to, target): (&str, Option<Listener>),
    (send, request): (Send, &Value),
) -> Result<Option<(MessageId, Listener)>, Problem> {
    let (app, facade) = (&said.app, &said.facade);
    let item = match (&send.in_reply_to, &target) {
        (Some(id), _) => row(app, own, id).await?.ok_or_else(|| no_row(to)).map(Some)?,
        (None, None) => row(app, own, to).await?,
        (None, Some(_)) => None,
    };
    match (item, target) {
        (Some(item), target) if is_between(facade, &item, to, target.as_ref()) => {
            answer(app, facade, own, &item, (send.text, request)).await.map(|()| None)
        }
        (Some(_), _) => Err(no_row(to)),
        (None, Some(target)) => {
            let voice = own.voice.as_ref().ok_or_else(|| mute(own))?;
            let id = open(app, voice, ("peer_agent", own.name.as_str()), &target, keyed(send)).await?;
            Ok(Some((id, target)))
        }
        (None, None) => Err(nobody()),
    }
}

/// Response of JSON-RPC to a request that its listener answered at once. The answer is a row, too.
fn result(request: &Value, row: MessageId, answer: &SentAnswer) -> Value {
    let id = request.get("id");
    match Said::read(&answer.envelope) {
        Some(said) => {
            let part = json!({ "kind": "text", "text": said.text });
            let result = json!({ "kind": "message", "role": "agent", "messageId": row.to_string(), "parts": [part] });
            json!({ "jsonrpc": "2.0", "id": id, "result": result })
        }
        None => {
            let fault = said::payload(&answer.envelope).and_then(|payload| read_fault(&payload).ok());
            let why = fault
                .map_or_else(|| "the listener answered with no text".to_owned(), |fault| fault.message.to_string());
            json!({ "jsonrpc": "2.0", "id": id, "error": { "code": INTERNAL_ERROR, "message": why } })
        }
    }
}

/// Checks the receiver of an answer to a row: the row's own id, or the listener that sent the row.
fn is_between(facade: &Facade, item: &StoredMail, to: &str, target: Option<&Listener>) -> bool {
    match target {
        Some(target) => facade.people.speaker(&item.record.from).is_some_and(|sender| sender.name == target.name),
        None => parse(to).is_some_and(|id| id == *item.record.id.as_uuid()),
    }
}

fn no_row(to: &str) -> Problem {
    Problem::not_found(format!("'in_reply_to' is no row that came from '{}'", to.escape_debug()))
}

fn nobody() -> Problem {
    Problem::not_found("no listener with that id accepts text")
}

fn mute(own: &Listener) -> Problem {
    let detail = format!("'{}' may not begin with {}: add it to its 'calls' in organism.yaml", own.name, said());
    Problem::forbidden(detail)
}

fn keyed(send: Send) -> (String, Option<String>) {
    (send.text, send.id.map(|id| format!("a2a:{id}")))
}

/// Opens a conversation, once for each id that its sender gives it.
async fn open(
    app: &Arc<AppState>,
    from: &Name,
    (kind, id): (&str, &str),
    to: &Listener,
    (text, key): (String, Option<String>),
) -> Result<MessageId, Problem> {
    if !to.takes {
        return Err(nobody());
    }
    let payload = Said::by(kind, id, spoken(text)?).write()?;
    let (envelope, to, payload) = (ns::ENVELOPE, &to.name, payload.as_str());
    let envelope =
        format!("<message xmlns=\"{envelope}\"><meta><from>{from}</from><to>{to}</to></meta>{payload}</message>");
    app.send(from.clone(), Bytes::from(envelope), key).await
}

/// Checks that a text is not blank.
pub(super) fn spoken(text: String) -> Result<String, Problem> {
    if text.trim().is_empty() {
        return Err(Problem::bad_request("'message' is blank: send a text"));
    }
    Ok(text)
}
