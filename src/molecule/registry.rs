//! `/registry` and the state of workspaces: registration, heartbeats, peers.

use std::sync::Arc;

use axum::RequestExt;
use axum::extract::{Request, State};
use axum::http::header::AUTHORIZATION;
use axum::response::Response;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::notify::row;
use super::parties::Listener;
use super::workspace_request::WorkspaceRequest;
use crate::gateway::facade::{AppState, Problem, document};

/// URL of a workspace that is reached through the gateway alone: the SDK's own word for it.
const NO_INBOUND: &str = "remote://no-inbound";

#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "MoleculeRegistration")]
pub(super) struct Registration {
    id: String,
    /// The URL of a workspace that is pushed to: below one that its operator allows.
    #[serde(default)]
    url: String,
    #[serde(default)]
    #[schemars(with = "Option<Map<String, Value>>")]
    agent_card: Value,
    delivery_mode: Option<String>,
}

/// `POST /registry/register`
///
/// The SDK sends no token here, and expects one in the answer unless it has one. It gets none: operators make tokens.
/// So a request without a token is not read and changes nothing, least of all the URL that messages are sent to.
pub(super) async fn register(State(app): State<Arc<AppState>>, request: Request) -> Result<Response, Problem> {
    if !request.headers().contains_key(AUTHORIZATION) {
        return Ok(document(&Registered { status: RegisteredStatus::Unverified, id: None, delivery_mode: None }));
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
    let (id, delivery_mode) = (Some(own.id.to_string()), Some(mode));
    Ok(document(&Registered { status: RegisteredStatus::Registered, id, delivery_mode }))
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

#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "MoleculeHeartbeat")]
pub(super) struct Heartbeat {
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
    let status = if parts.app.is_paused(&own.name) { AliveStatus::Paused } else { AliveStatus::Ok };
    Ok(document(&Alive { status }))
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
    let workspace_id = own.id.to_string();
    Ok(document(&WorkspaceState { workspace_id, status, paused, deleted: false }))
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
    Ok(document(&others.map(|other| show(&call, other)).collect::<Vec<_>>()))
}

fn show(call: &WorkspaceRequest, listener: &Listener) -> Peer {
    let (name, description) = (listener.name.to_string(), listener.description.clone());
    Peer {
        id: listener.id.to_string(),
        name: name.clone(),
        url: NO_INBOUND,
        role: description.clone(),
        tier: 2,
        status: call.facade.last_calls.status(&call.app, &listener.name),
        agent_card: AgentCard { name, description },
    }
}

/// Result of a registration.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "MoleculeRegistered")]
pub(super) struct Registered {
    status: RegisteredStatus,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["poll", "push"]))]
    delivery_mode: Option<String>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
enum RegisteredStatus {
    Registered,
    Unverified,
}

/// The answer to a heartbeat.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "MoleculeAlive")]
pub(super) struct Alive {
    status: AliveStatus,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
enum AliveStatus {
    Ok,
    Paused,
}

/// State of a workspace.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "MoleculeState")]
pub(super) struct WorkspaceState {
    workspace_id: String,
    status: &'static str,
    paused: bool,
    deleted: bool,
}

/// A listener that takes text.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "MoleculePeer")]
pub(super) struct Peer {
    id: String,
    name: String,
    url: &'static str,
    role: String,
    tier: u8,
    status: &'static str,
    agent_card: AgentCard,
}

#[derive(Serialize, JsonSchema)]
#[schemars(inline)]
struct AgentCard {
    name: String,
    description: String,
}
