//! Resources of that platform that are not kept here: plugins, files, and a log of agents' actions.

use axum::response::Response;
use serde_json::json;

use super::workspace_request::WorkspaceRequest;
use crate::gateway::facade::{Problem, document};

/// `GET /workspaces/{id}/plugins` and `…/files`: an empty list.
pub(super) async fn empty_list(call: WorkspaceRequest) -> Result<Response, Problem> {
    call.workspace()?;
    Ok(document(&json!([])))
}

/// `GET /workspaces/{id}/plugins/{name}/download`: 404. `POST …/plugins` and `…/activity`: nothing is recorded, and so
/// nothing is acknowledged; the SDK goes on without it.
pub(super) async fn not_found(call: WorkspaceRequest) -> Result<Response, Problem> {
    call.workspace()?;
    Err(Problem::not_found("plugins, files and a log of what agents do are not kept here"))
}
