//! Liveness and readiness, without a token.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use schemars::JsonSchema;
use serde::Serialize;
use systole_core::core::Gauge;

use super::{AppState, view};
use crate::gateway::problem::Problem;
use crate::gateway::submissions::SubmitError;

#[derive(Serialize, JsonSchema)]
pub(super) struct Health {
    #[schemars(extend("const" = "ok"))]
    status: &'static str,
}

pub(super) async fn livez(State(app): State<Arc<AppState>>) -> Result<Response, Problem> {
    match app.organism.breakdown() {
        None => Ok(view::document(StatusCode::OK, &Health { status: "ok" })),
        Some(_) => Err(Problem::stopping()),
    }
}

/// Refuses with the problem for which a small message of any client would be refused.
pub(super) async fn readyz(State(app): State<Arc<AppState>>) -> Result<Response, Problem> {
    app.open()?;
    app.organism.ready().map_err(SubmitError::Send)?;
    app.edge.admission.vacant().map_err(|full| Problem::full(&full))?;
    app.edge.bodies.room(Gauge::SMALL)?;
    // Without the journal no token is known.
    app.query.answers().await?;
    Ok(view::document(StatusCode::OK, &Health { status: "ok" }))
}
