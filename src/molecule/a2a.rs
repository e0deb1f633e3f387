//! Somebody says something to a listener: `POST /workspaces/{id}/a2a`.

use std::sync::Arc;

use axum::response::Response;
use bytes::Bytes;
use serde_json::json;

use super::notify::{answer, named, waiting};
use super::people::Listener;
use super::room::{self, Room};
use super::rpc::{METHOD, Send};
use super::said;
use super::said::Said;
use super::turns::Whose;
use crate::gateway::seam::{Gate, Problem, document};
use crate::vocab::{Name, ns};

/// `POST /workspaces/{id}/a2a`
///
/// From a workspace it answers what the target said to it and waits for; if nothing waits, it opens a conversation.
pub(super) async fn send(room: Room) -> Result<Response, Problem> {
    let target = room.facade.people.find(&room.id).cloned();
    let (speaker, person) = (room.speaker(), room.person());
    match &speaker {
        Some(own) => room.is_claimed(own)?,
        None if person.is_none() => return Err(Problem::forbidden("only workspaces and clients say something")),
        None => {}
    }
    let target = target.ok_or_else(nobody)?;
    let (said, request) = room.asked().await?;
    let send = Send::read(&request)?;
    match (speaker, person) {
        (Some(own), _) => say(&said, &own, &target, send).await?,
        (None, Some(person)) => open(&said.gate, &person, ("canvas_user", person.as_str()), &target, send).await?,
        (None, None) => {}
    }
    Ok(document(&json!({ "status": "queued", "delivery_mode": "poll", "method": METHOD })))
}

async fn say(said: &room::Said, own: &Listener, target: &Listener, send: Send) -> Result<(), Problem> {
    let (gate, facade) = (&said.gate, &said.facade);
    let before = send.id.as_deref().and_then(|id| facade.turns.before(&own.name, id));
    let item = match (before, &send.in_reply_to) {
        (Some(row), _) => gate.mail(&own.name, row).await?,
        (None, Some(id)) => Some(named(gate, own, id).await?),
        (None, None) => waiting(gate, facade, own, &Whose::Peer(target.name.clone())).await?,
    };
    match item {
        Some(item) => answer(gate, facade, own, &item, send.text, send.id).await,
        None => {
            let voice = own.voice.as_ref().ok_or_else(|| mute(own))?;
            open(gate, voice, ("peer_agent", own.name.as_str()), target, send).await
        }
    }
}

fn nobody() -> Problem {
    Problem::not_found("nobody of that id takes what is said")
}

fn mute(own: &Listener) -> Problem {
    let detail = format!("'{}' may not begin with {}: add it to its 'calls' in organism.yaml", own.name, said());
    Problem::forbidden(detail)
}

/// Opens a conversation. What its sender knows by the same id opens it once.
async fn open(
    gate: &Arc<Gate>,
    from: &Name,
    (kind, id): (&str, &str),
    to: &Listener,
    send: Send,
) -> Result<(), Problem> {
    if !to.takes {
        return Err(nobody());
    }
    let payload = Said::by(kind, id, spoken(send.text)?).write()?;
    let (envelope, to, payload) = (ns::ENVELOPE, &to.name, payload.as_str());
    let envelope =
        format!("<message xmlns=\"{envelope}\"><meta><from>{from}</from><to>{to}</to></meta>{payload}</message>");
    gate.send(from.clone(), Bytes::from(envelope), send.id.map(|id| format!("a2a:{id}"))).await.map(drop)
}

/// A text that says something.
pub(super) fn spoken(text: String) -> Result<String, Problem> {
    if text.trim().is_empty() {
        return Err(Problem::bad_request("'message' is blank: say something"));
    }
    Ok(text)
}
