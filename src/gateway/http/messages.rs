//! `/v1/messages`: what clients send and ask about, and what remote listeners answer.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Path, Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use bytes::Bytes;
use serde::Deserialize;
use serde_json::json;
use tokio::time::Instant;

use super::caller::Caller;
use super::request::{Query, body, idempotency_key, json, message_id, no_message};
use super::{Gate, view};
use crate::core::{Foreseen, Party};
use crate::gateway::problem::Problem;
use crate::gateway::push::Order;
use crate::gateway::store::{Accepted, Item, Kind, Principal, Sent, Settled, Settlement, Submission};
use crate::ladder::{Meta, write_envelope};
use crate::shell::entropy::Entropy;
use crate::vocab::{MessageId, Name, ThreadId};

/// `POST /v1/messages`
pub(super) async fn submit(
    State(gate): State<Arc<Gate>>,
    Caller(principal): Caller,
    request: Request,
) -> Result<Response, Problem> {
    may_send(&gate, &principal)?;
    let (sent, _) = send(&gate, principal.name, request).await?;
    Ok(acknowledge(sent))
}

/// Whether somebody may send messages.
pub(super) fn may_send(gate: &Gate, principal: &Principal) -> Result<(), Problem> {
    if principal.kind == Kind::Listener || !gate.courier.knows(&principal.name) {
        let detail = "only a client of the organism sends messages; a listener calls others with its replies";
        return Err(Problem::forbidden(detail));
    }
    Ok(())
}

/// Sends what a request holds, and waits for the answer as long as it says. The body comes back, too.
pub(super) async fn send(gate: &Arc<Gate>, from: Name, request: Request) -> Result<(Sent, Bytes), Problem> {
    let wait = Query::of(&request, &["wait"])?.wait()?;
    let key = idempotency_key(request.headers())?;
    let bytes = body(gate, request).await?;
    let id = take(gate, from, bytes.clone(), key).await?;
    Ok((answer_of(gate, id, wait).await?, bytes))
}

/// Keeps an envelope of a client and hands it over; `key` is what it knows it by.
pub(in crate::gateway) async fn take(
    gate: &Arc<Gate>,
    from: Name,
    bytes: Bytes,
    key: Option<String>,
) -> Result<MessageId, Problem> {
    gate.open()?;
    let key = key.map(|key| (key, *blake3::hash(&bytes).as_bytes()));
    let foreseen = judge(gate, &from, bytes).await?;
    let submission = submission(from, foreseen, key, gate);
    // The organism reads it as it is written here.
    let (written, most) = (submission.envelope.len(), gate.organism.blueprint().limits.xml.message_bytes);
    if written > most {
        return Err(Problem::too_large_as_written(written, most));
    }
    match gate.mailboxes.store().accept(submission.clone(), gate.mailboxes.caps().accepted).await? {
        Accepted::Kept => {
            let id = submission.id;
            gate.courier.hand_over(submission);
            Ok(id)
        }
        Accepted::Before(id) => Ok(id),
        Accepted::KeyReused => {
            let detail = "another message came with that Idempotency-Key: use a new key for a new message";
            Err(Problem::conflict("key_reused", detail))
        }
        Accepted::Full => {
            let detail = "as many messages wait for the organism as may: try again later";
            Err(Problem::too_many("accepted_full", detail, 1))
        }
    }
}

/// `GET /v1/messages/{id}`
pub(super) async fn look(
    State(gate): State<Arc<Gate>>,
    Caller(principal): Caller,
    Path(id): Path<String>,
    request: Request,
) -> Result<Response, Problem> {
    Query::of(&request, &[])?;
    let id = message_id(&id)?;
    let store = gate.mailboxes.store();
    let sees = |owner: &str| principal.kind == Kind::Admin || owner == principal.name.as_str();
    if let Some(sent) = store.sent(id).await?.filter(|sent| sees(&sent.principal)) {
        return Ok(view::document(StatusCode::OK, &view::sent(&sent)));
    }
    let (item, reply) = store.item(id).await?.ok_or_else(no_message)?;
    if !sees(item.mailbox.as_str()) {
        return Err(no_message());
    }
    let mut value = view::item(&gate, &item, 0);
    value["attempts"] = item.deliveries.into();
    value["reply"] = reply.map(|reply| String::from_utf8_lossy(&reply).into_owned()).into();
    Ok(view::document(StatusCode::OK, &value))
}

/// `POST /v1/messages/{id}/reply`
pub(super) async fn reply(
    State(gate): State<Arc<Gate>>,
    caller: Caller,
    Path(id): Path<String>,
    request: Request,
) -> Result<Response, Problem> {
    Query::of(&request, &[])?;
    let reply = body(&gate, request).await?;
    if reply.iter().all(u8::is_ascii_whitespace) {
        let detail = "a reply holds at least one payload; to end without one, acknowledge the message";
        return Err(Problem::unprocessable("blank", detail));
    }
    settle(&gate, &caller, &id, Settlement::Reply(reply)).await
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Failure {
    message: Option<String>,
}

/// `POST /v1/messages/{id}/fail`
pub(super) async fn fail(
    State(gate): State<Arc<Gate>>,
    caller: Caller,
    Path(id): Path<String>,
    request: Request,
) -> Result<Response, Problem> {
    Query::of(&request, &[])?;
    let Failure { message } = json(&gate, request).await?;
    let message = message.filter(|message| !message.trim().is_empty());
    let message = message.unwrap_or_else(|| "the listener failed, and gave no reason".to_owned());
    settle(&gate, &caller, &id, Settlement::Fail(message)).await
}

async fn settle(gate: &Gate, caller: &Caller, id: &str, with: Settlement) -> Result<Response, Problem> {
    let id = message_id(id)?;
    let (item, _) = gate.mailboxes.store().item(id).await?.ok_or_else(no_message)?;
    caller.may_answer(&item)?;
    conclude(gate, &item, with).await?;
    let value = json!({ "id": id.to_string(), "state": "queued" });
    Ok(view::document(StatusCode::ACCEPTED, &value))
}

/// Ends a message of a mailbox, durably. The same once more is no mistake.
pub(in crate::gateway) async fn conclude(gate: &Gate, item: &Item, with: Settlement) -> Result<(), Problem> {
    let (store, id) = (gate.mailboxes.store(), item.id);
    match store.settle(id, with.clone(), gate.mailboxes.clock().now()).await? {
        Settled::Done(_) => {
            gate.mailboxes.end(id, with);
            gate.mailboxes.order(&item.mailbox, Order::Answered(id));
        }
        Settled::Already => {}
        Settled::Over(state) => {
            let detail = format!("the message is {}: it takes no other answer", state.as_str());
            return Err(Problem::conflict("settled", detail));
        }
        Settled::Unknown | Settled::Stale => return Err(no_message()),
    }
    Ok(())
}

/// What is known of a message, once it has an answer or the time is up.
async fn answer_of(gate: &Gate, id: MessageId, wait: Duration) -> Result<Sent, Problem> {
    let until = Instant::now() + wait;
    let watch = gate.courier.watch(id);
    let sent = loop {
        let mut answered = std::pin::pin!(watch.notified());
        answered.as_mut().enable();
        let sent = gate.mailboxes.store().sent(id).await;
        let open = matches!(&sent, Ok(Some(sent)) if sent.replies.is_empty());
        if !open || tokio::time::timeout_at(until, answered).await.is_err() {
            break sent;
        }
    };
    gate.courier.unwatch(id, watch);
    sent?.ok_or_else(no_message)
}

fn acknowledge(sent: Sent) -> Response {
    let response = match sent.replies.first() {
        Some(reply) => view::envelope(reply.envelope.clone()),
        None => {
            let value = json!({ "id": sent.id.to_string(), "thread": sent.root.to_string(), "state": "queued" });
            view::document(StatusCode::ACCEPTED, &value)
        }
    };
    view::located(response, &format!("/v1/messages/{}", sent.id))
}

/// What the pump would refuse in any case is refused now.
async fn judge(gate: &Gate, client: &Name, bytes: Bytes) -> Result<Foreseen, Problem> {
    let blueprint = gate.organism.blueprint();
    let Some(Party::Client(id)) = blueprint.party(client.as_str()) else { return Err(Problem::stopping()) };
    let client = blueprint.client(id).cloned().ok_or_else(Problem::stopping)?;
    Ok(gate.judge.judge(client, bytes).await.ok_or_else(Problem::stopping)??)
}

/// The message as the organism will get it: `from` is who the token says, whatever the bytes say.
fn submission(from: Name, foreseen: Foreseen, key: Option<(String, [u8; 32])>, gate: &Gate) -> Submission {
    let Foreseen { to, claims, payload } = foreseen;
    let root: ThreadId = Entropy::Real.root();
    let id = MessageId::from_uuid(*Entropy::Real.root().as_uuid());
    let meta = Meta {
        from: from.clone(),
        to,
        thread: root,
        id,
        in_reply_to: None,
        deadline: claims.deadline,
        traceparent: claims.traceparent.map(|text| text.to_string()),
    };
    let envelope = write_envelope(&meta, &payload);
    Submission { id, principal: from, root, envelope, at: gate.mailboxes.clock().now(), key }
}
