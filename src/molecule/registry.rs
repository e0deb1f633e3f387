//! `/registry` and the state of workspaces: registration, heartbeats, peers.

use std::sync::Arc;

use axum::RequestExt;
use axum::extract::{Request, State};
use axum::http::header::AUTHORIZATION;
use axum::response::Response;
use serde::Deserialize;
use serde_json::{Value, json};

use super::notify::row;
use super::parties::Listener;
use super::workspace_request::WorkspaceRequest;
use crate::gateway::facade::{AppState, Problem, document};

/// URL of a workspace that is reached through the gateway alone: the SDK's own word for it.
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
/// The SDK sends no token here, and expects one in the answer unless it has one. It gets none: operators make tokens.
/// So a request without a token is not read and changes nothing, least of all the URL that messages are sent to.
pub(super) async fn register(State(app): State<Arc<AppState>>, request: Request) -> Result<Response, Problem> {
    if !request.headers().contains_key(AUTHORIZATION) {
        return Ok(document(&json!({ "status": "unverified" })));
    }
    let call: WorkspaceRequest = request.extract_with_state(&app).await?;
    let (speaker, facade) = (call.speaker(), call.facade.clone());
    let (_, wanted): (_, Registration) = call.body().await?;
    wanted.check()?;
    let own = speaker.filter(|own| own.is_called(&wanted.id)).ok_or_else(|| {
        Problem::forbidden(format!("'{}' is not the workspace of this token", wanted.id.escape_debug()))
    })?;
    facade.last_calls.note(&app, &own.name);
    let mode = app.sign_on(own.name.clone(), wanted.delivery_mode.as_deref(), wanted.reported()).await?;
    Ok(document(&json!({ "status": "registered", "id": own.id.to_string(), "delivery_mode": mode })))
}

impl Registration {
    fn check(&self) -> Result<(), Problem> {
        if self.id.trim().is_empty() {
            return Err(Problem::bad_request("'id' is empty: it is the workspace's name, or its UUID"));
        }
        if !(self.agent_card.is_null() || self.agent_card.is_object()) {
            return Err(Problem::bad_request("'agent_card' has to be an object"));
        }
        Ok(())
    }

    /// The URL that the workspace reports: `remote://no-inbound` and the like are none, and the URL of an agent that
    /// polls is not used.
    fn reported(&self) -> Option<&str> {
        let is_url = self.url.starts_with("http://") || self.url.starts_with("https://");
        Some(&*self.url).filter(|_| is_url && self.delivery_mode.as_deref() != Some("poll"))
    }
}

#[derive(Deserialize)]
struct Heartbeat {
    workspace_id: String,
}

/// `POST /registry/heartbeat`
pub(super) async fn heartbeat(call: WorkspaceRequest) -> Result<Response, Problem> {
    let speaker = call.speaker();
    let (parts, Heartbeat { workspace_id }) = call.body().await?;
    let own = speaker
        .filter(|own| own.is_called(&workspace_id))
        .ok_or_else(|| Problem::forbidden("'workspace_id' is not the workspace of this token"))?;
    parts.facade.last_calls.note(&parts.app, &own.name);
    let status = if parts.app.is_paused(&own.name) { "paused" } else { "ok" };
    Ok(document(&json!({ "status": status })))
}

/// Checks whether a path is that of [`state`].
pub(super) fn is_state(path: &str) -> bool {
    path.strip_prefix("/workspaces/").and_then(|rest| rest.strip_suffix("/state")).is_some_and(|id| !id.contains('/'))
}

/// `GET /workspaces/{id}/state`
///
/// The SDK ends on 404. An agent gets it if its listener or its token was removed.
pub(super) async fn state(call: WorkspaceRequest) -> Result<Response, Problem> {
    if call.is_removed() {
        return Err(Problem::removed());
    }
    let own = call.workspace()?;
    call.note_call(&own);
    let paused = call.app.is_paused(&own.name);
    let status = call.facade.last_calls.status(&call.app, &own.name);
    let id = own.id.to_string();
    Ok(document(&json!({ "workspace_id": id, "status": status, "paused": paused, "deleted": false })))
}

/// `GET /workspaces/{id}/secrets/values`: none. Secrets of agents are not kept here.
pub(super) async fn secrets(call: WorkspaceRequest) -> Result<Response, Problem> {
    call.workspace()?;
    Ok(document(&json!({})))
}

/// `GET /registry/discover/{id}`, by the id of a listener or of a row that it sent.
pub(super) async fn discover(call: WorkspaceRequest) -> Result<Response, Problem> {
    let own = call.speaker().ok_or_else(|| Problem::forbidden("only a workspace discovers others"))?;
    let parties = &call.facade.parties;
    let found = match parties.find(&call.id) {
        Some(found) => Some(found),
        None => row(&call.app, &own, &call.id).await?.and_then(|row| parties.speaker(&row.record.from)),
    };
    let found = found.filter(|found| found.takes);
    let found = found.ok_or_else(|| Problem::not_found("no listener with that id accepts text"))?;
    Ok(document(&show(&call, found)))
}

/// `GET /registry/{id}/peers`
pub(super) async fn peers(call: WorkspaceRequest) -> Result<Response, Problem> {
    let own = call.workspace()?;
    let others = call.facade.parties.all().into_iter().filter(|other| other.name != own.name);
    Ok(document(&others.map(|other| show(&call, other)).collect()))
}

fn show(call: &WorkspaceRequest, listener: &Listener) -> Value {
    let status = call.facade.last_calls.status(&call.app, &listener.name);
    let name = listener.name.as_str();
    json!({
        "id": listener.id.to_string(),
        "name": name,
        "url": NO_INBOUND,
        "role": listener.description,
        "tier": 2,
        "status": status,
        "agent_card": { "name": name, "description": listener.description },
    })
}
