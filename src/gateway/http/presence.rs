//! Presence of the agent of a remote listener: it asks whether to work, an admin pauses and resumes it. An agent whose
//! token was revoked gets 401.

use std::sync::Arc;

use axum::extract::{Path, Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};
use systole_core::vocab::Name;

use super::admin::perform;
use super::caller::Caller;
use super::request::{Query, json};
use super::{AppState, view};
use crate::gateway::PrincipalKind;
use crate::gateway::problem::Problem;
use crate::operations::Act;

/// `POST /v1/listeners/{name}/heartbeat`
pub(super) async fn heartbeat(
    State(app): State<Arc<AppState>>,
    caller: Caller,
    Path(name): Path<String>,
    request: Request,
) -> Result<Response, Problem> {
    let name = caller.mailbox(&app, &name)?;
    require_empty(&app, request).await?;
    Ok(state(&app, &name))
}

/// `POST /v1/listeners/{name}/pause`
pub(super) async fn pause(
    State(app): State<Arc<AppState>>,
    caller: Caller,
    Path(name): Path<String>,
    request: Request,
) -> Result<Response, Problem> {
    set(&app, &caller, &name, request, true).await
}

/// `POST /v1/listeners/{name}/resume`
pub(super) async fn resume(
    State(app): State<Arc<AppState>>,
    caller: Caller,
    Path(name): Path<String>,
    request: Request,
) -> Result<Response, Problem> {
    set(&app, &caller, &name, request, false).await
}

async fn set(app: &AppState, caller: &Caller, name: &str, request: Request, paused: bool) -> Result<Response, Problem> {
    if caller.0.kind != PrincipalKind::Admin {
        return Err(Problem::forbidden("only an admin pauses and resumes agents"));
    }
    let name = caller.mailbox(app, name)?;
    require_empty(app, request).await?;
    let listener = name.to_string();
    let act = if paused { Act::Pause { listener } } else { Act::Resume { listener } };
    let by = caller.0.name.clone();
    perform(&app.organism.operations(by), &act).await?;
    Ok(state(app, &name))
}

/// Checks that a request has neither query nor body.
pub(super) async fn require_empty(app: &AppState, request: Request) -> Result<(), Problem> {
    Query::of(&request, &[])?;
    let body: Map<String, Value> = json(app, request).await?;
    match body.keys().next() {
        Some(key) => Err(Problem::bad_request(format!("unknown field '{key}': send no body, or {{}}"))),
        None => Ok(()),
    }
}

/// The state of a remote listener.
#[derive(Serialize, JsonSchema)]
pub(super) struct Presence {
    name: String,
    state: PresenceState,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
enum PresenceState {
    Active,
    Paused,
}

fn state(app: &AppState, name: &Name) -> Response {
    let paused = app.mailboxes.look(|machine| machine.is_paused(name));
    let state = if paused { PresenceState::Paused } else { PresenceState::Active };
    view::document(StatusCode::OK, &Presence { name: name.to_string(), state })
}
