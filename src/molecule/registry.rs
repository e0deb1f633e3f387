//! Who is there: a workspace says that it is, asks how it stands, and who its peers are.

use std::sync::Arc;

use axum::RequestExt;
use axum::extract::{Request, State};
use axum::http::header::AUTHORIZATION;
use axum::response::Response;
use serde::Deserialize;
use serde_json::{Value, json};

use super::people::Listener;
use super::room::Room;
use crate::gateway::seam::{Gate, Problem, document};

/// Where nobody can be reached but by way of here: the SDK's own word for it.
const NO_INBOUND: &str = "remote://no-inbound";

#[derive(Deserialize)]
struct Registration {
    id: String,
    #[serde(default)]
    url: String,
    #[serde(default)]
    agent_card: Value,
    delivery_mode: Option<String>,
}

/// `POST /registry/register`
///
/// The SDK shows no token here, and expects one in the answer unless it has one. It gets none: tokens are made by
/// operators. So of a request without one nothing is read, and it changes nothing.
pub(super) async fn register(State(gate): State<Arc<Gate>>, request: Request) -> Result<Response, Problem> {
    if !request.headers().contains_key(AUTHORIZATION) {
        return Ok(document(&json!({ "status": "unverified", "delivery_mode": "poll" })));
    }
    let room: Room = request.extract_with_state(&gate).await?;
    let speaker = room.speaker();
    let (_, wanted): (_, Registration) = room.said().await?;
    check(&wanted)?;
    let own = speaker.filter(|own| own.is_called(&wanted.id)).ok_or_else(|| {
        Problem::forbidden(format!("'{}' is not the workspace of this token", wanted.id.escape_debug()))
    })?;
    gate.sign_on(own.name.clone()).await?;
    let value = json!({ "status": "registered", "id": own.id.to_string(), "delivery_mode": "poll" });
    Ok(document(&value))
}

fn check(wanted: &Registration) -> Result<(), Problem> {
    if wanted.id.trim().is_empty() {
        return Err(Problem::bad_request("'id' is empty: it is the workspace's name, or its UUID"));
    }
    if !(wanted.agent_card.is_null() || wanted.agent_card.is_object()) {
        return Err(Problem::bad_request("'agent_card' has to be an object"));
    }
    let pushed = wanted.url.starts_with("http://") || wanted.url.starts_with("https://");
    match wanted.delivery_mode.as_deref() {
        Some("poll") => Ok(()),
        None if !pushed => Ok(()),
        _ => Err(Problem::bad_request("workspaces poll here: leave 'url' out, and 'delivery_mode' is poll")),
    }
}

#[derive(Deserialize)]
struct Heartbeat {
    workspace_id: String,
}

/// `POST /registry/heartbeat`
pub(super) async fn heartbeat(room: Room) -> Result<Response, Problem> {
    let speaker = room.speaker();
    let (said, Heartbeat { workspace_id }) = room.said().await?;
    let own = speaker
        .filter(|own| own.is_called(&workspace_id))
        .ok_or_else(|| Problem::forbidden("'workspace_id' is not the workspace of this token"))?;
    let status = if said.gate.is_paused(&own.name) { "paused" } else { "ok" };
    Ok(document(&json!({ "status": status })))
}

/// `GET /workspaces/{id}/state`
pub(super) async fn state(room: Room) -> Result<Response, Problem> {
    let own = room.workspace()?;
    let paused = room.gate.is_paused(&own.name);
    let status = if paused { "paused" } else { "online" };
    let id = own.id.to_string();
    Ok(document(&json!({ "workspace_id": id, "status": status, "paused": paused, "deleted": false })))
}

/// `GET /registry/discover/{id}`
pub(super) async fn discover(room: Room) -> Result<Response, Problem> {
    if room.speaker().is_none() {
        return Err(Problem::forbidden("only a workspace looks for others"));
    }
    let found = room.facade.people.find(&room.id).filter(|found| found.takes);
    let found = found.ok_or_else(|| Problem::not_found("nobody of that id takes what is said"))?;
    Ok(document(&show(&room.gate, found).await?))
}

/// `GET /registry/{id}/peers`
pub(super) async fn peers(room: Room) -> Result<Response, Problem> {
    let own = room.workspace()?;
    let mut others = Vec::new();
    for other in room.facade.people.all().into_iter().filter(|other| other.name != own.name) {
        others.push(show(&room.gate, other).await?);
    }
    Ok(document(&others.into()))
}

async fn show(gate: &Gate, listener: &Listener) -> Result<Value, Problem> {
    let status = if gate.is_paused(&listener.name) { "paused" } else { "online" };
    let name = listener.name.as_str();
    Ok(json!({
        "id": listener.id.to_string(),
        "name": name,
        "url": NO_INBOUND,
        "role": listener.description,
        "tier": 2,
        "status": status,
        "agent_card": { "name": name, "description": listener.description },
    }))
}
