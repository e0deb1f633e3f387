//! Whether the agent of a remote listener is to work: it asks, an admin says. One who is let in no more hears 401.

use std::sync::Arc;

use axum::extract::{Path, Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde_json::{Map, Value, json};

use super::caller::Caller;
use super::request::{Query, json};
use super::{Gate, view};
use crate::gateway::problem::Problem;
use crate::gateway::push::Order;
use crate::gateway::store::Kind;
use crate::vocab::Name;

/// `POST /v1/listeners/{name}/heartbeat`
pub(super) async fn heartbeat(
    State(gate): State<Arc<Gate>>,
    caller: Caller,
    Path(name): Path<String>,
    request: Request,
) -> Result<Response, Problem> {
    let name = caller.mailbox(&gate, &name)?;
    nothing(&gate, request).await?;
    state(&gate, name).await
}

/// `POST /v1/listeners/{name}/pause`
pub(super) async fn pause(
    State(gate): State<Arc<Gate>>,
    caller: Caller,
    Path(name): Path<String>,
    request: Request,
) -> Result<Response, Problem> {
    set(&gate, &caller, &name, request, true).await
}

/// `POST /v1/listeners/{name}/resume`
pub(super) async fn resume(
    State(gate): State<Arc<Gate>>,
    caller: Caller,
    Path(name): Path<String>,
    request: Request,
) -> Result<Response, Problem> {
    set(&gate, &caller, &name, request, false).await
}

async fn set(gate: &Gate, caller: &Caller, name: &str, request: Request, paused: bool) -> Result<Response, Problem> {
    if caller.0.kind != Kind::Admin {
        return Err(Problem::forbidden("only an admin lets agents rest or work"));
    }
    let name = caller.mailbox(gate, name)?;
    nothing(gate, request).await?;
    let store = gate.mailboxes.store();
    match paused {
        true => store.pause(name.clone(), gate.mailboxes.clock().now()).await?,
        false => store.resume(name.clone()).await?,
    }
    gate.mailboxes.order(&name, Order::Presence(name.clone()));
    state(gate, name).await
}

/// The request says nothing besides its path.
async fn nothing(gate: &Gate, request: Request) -> Result<(), Problem> {
    Query::of(&request, &[])?;
    let body: Map<String, Value> = json(gate, request).await?;
    match body.keys().next() {
        Some(key) => Err(Problem::bad_request(format!("unknown field '{key}': send no body, or {{}}"))),
        None => Ok(()),
    }
}

async fn state(gate: &Gate, name: Name) -> Result<Response, Problem> {
    let paused = gate.mailboxes.store().is_paused(name.clone()).await?;
    let state = if paused { "paused" } else { "active" };
    Ok(view::document(StatusCode::OK, &json!({ "name": name.as_str(), "state": state })))
}
