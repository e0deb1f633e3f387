//! Text to a listener: `POST /workspaces/{id}/a2a`.

use std::sync::Arc;
use std::time::Duration;

use axum::response::Response;
use bytes::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use systole_core::protocol::read_fault;
use systole_core::vocab::{MessageId, Name, ns};

use super::Facade;
use super::ids::parse;
use super::notify::{answer, row};
use super::parties::Listener;
use super::rpc::{METHOD, Send};
use super::said;
use super::said::Said;
use super::workspace_request::{RequestParts, WorkspaceRequest};
use crate::gateway::facade::{AppState, Problem, SentAnswer, StoredMail, document};

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
pub(super) async fn send(call: WorkspaceRequest) -> Result<Response, Problem> {
    let (to, target) = (call.id.clone(), call.facade.parties.find(&call.id).cloned());
    let (speaker, person) = (call.speaker(), call.person());
    match &speaker {
        Some(own) => call.is_claimed(own)?,
        None if person.is_none() => return Err(Problem::forbidden("only workspaces and clients send text")),
        None => {}
    }
    let (parts, request) = call.json_rpc_body().await?;
    let send = Send::read(&request)?;
    let opened = match (speaker, person) {
        (Some(own), _) => send_as_workspace(&parts, &own, (&to, target), (send, &request)).await?,
        (None, Some(person)) => {
            let target = target.ok_or_else(no_listener)?;
            let speaker = ("canvas_user", person.as_str());
            Some((open(&parts.app, &person, speaker, &target, keyed(send)).await?, target))
        }
        (None, None) => None,
    };
    if let Some((id, target)) = opened
        && !parts.app.is_pulled(&target.name)
        && let Some((row, answer)) = parts.app.answer(id, AT_ONCE).await?
        && parts.known.is_valid(&parts.app).await
    {
        return Ok(document(&result(&request, row, &answer)));
    }
    Ok(document(&json!({ "status": "queued", "delivery_mode": "poll", "method": METHOD })))
}

/// A task for a peer.
#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "MoleculeDelegation")]
pub(super) struct Delegation {
    task: String,
    #[schemars(length(min = 1, max = KEY))]
    idempotency_key: Option<String>,
}

/// A delegation that was taken.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "MoleculeDelegated")]
pub(super) struct Delegated {
    #[schemars(extend("const" = "queued"))]
    status: &'static str,
    delegation_id: String,
    target_id: String,
}

/// `POST /workspaces/{id}/delegate`: a workspace gives a peer a task, as a text to the peer.
pub(super) async fn delegate(call: WorkspaceRequest) -> Result<Response, Problem> {
    let own = call.speaker().ok_or_else(|| Problem::forbidden("only workspaces delegate"))?;
    call.is_claimed(&own)?;
    let target = call.facade.parties.find(&call.id).cloned().ok_or_else(no_listener)?;
    let (parts, Delegation { task, idempotency_key }) = call.body::<Delegation>().await?;
    let voice = own.voice.as_ref().ok_or_else(|| may_not_begin(&own))?;
    if idempotency_key.as_ref().is_some_and(|key| key.is_empty() || key.len() > KEY) {
        return Err(Problem::bad_request(format!("'idempotency_key' has 1 to {KEY} bytes")));
    }
    // The SDK makes the key of the task alone: the same task for another peer is another delegation.
    let key = idempotency_key.map(|key| format!("delegate:{}:{key}", target.name));
    let speaker = ("peer_agent", own.name.as_str());
    let delegation_id = open(&parts.app, voice, speaker, &target, (task, key)).await?.to_string();
    Ok(document(&Delegated { status: "queued", delegation_id, target_id: target.id.to_string() }))
}

/// Answers a row, or opens a conversation: then it returns the message that opened it.
async fn send_as_workspace(
    parts: &RequestParts,
    own: &Listener,
    (to, target): (&str, Option<Listener>),
    (send, request): (Send, &Value),
) -> Result<Option<(MessageId, Listener)>, Problem> {
    let (app, facade) = (&parts.app, &parts.facade);
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
            let voice = own.voice.as_ref().ok_or_else(|| may_not_begin(own))?;
            let id = open(app, voice, ("peer_agent", own.name.as_str()), &target, keyed(send)).await?;
            Ok(Some((id, target)))
        }
        (None, None) => Err(no_listener()),
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
            let fault = crate::gateway::facade::payload(&answer.envelope).and_then(|payload| read_fault(&payload).ok());
            let why = fault
                .map_or_else(|| "the listener answered with no text".to_owned(), |fault| fault.message.to_string());
            json!({ "jsonrpc": "2.0", "id": id, "error": { "code": INTERNAL_ERROR, "message": why } })
        }
    }
}

/// Checks the receiver of an answer to a row: the row's own id, or the listener that sent the row.
fn is_between(facade: &Facade, item: &StoredMail, to: &str, target: Option<&Listener>) -> bool {
    match target {
        Some(target) => facade.parties.speaker(&item.record.from).is_some_and(|sender| sender.name == target.name),
        None => parse(to).is_some_and(|id| id == *item.record.id.as_uuid()),
    }
}

fn no_row(to: &str) -> Problem {
    Problem::not_found(format!("'in_reply_to' is no row that came from '{}'", to.escape_debug()))
}

fn no_listener() -> Problem {
    Problem::not_found("no listener with that id accepts text")
}

fn may_not_begin(own: &Listener) -> Problem {
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
        return Err(no_listener());
    }
    let payload = Said::by(kind, id, not_blank(text)?).write()?;
    let (envelope, to, payload) = (ns::ENVELOPE, &to.name, payload.as_str());
    let envelope =
        format!("<message xmlns=\"{envelope}\"><meta><from>{from}</from><to>{to}</to></meta>{payload}</message>");
    app.send(from.clone(), Bytes::from(envelope), key).await
}

/// Checks that a text is not blank.
pub(super) fn not_blank(text: String) -> Result<String, Problem> {
    if text.trim().is_empty() {
        return Err(Problem::bad_request("'message' is blank: send a text"));
    }
    Ok(text)
}
