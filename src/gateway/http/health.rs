//! Whether it lives, whether it takes messages, and figures. No name of anybody is in them: they need no token.

use std::fmt::Write;
use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use serde_json::json;

use super::{Gate, view};
use crate::gateway::problem::Problem;

pub(super) async fn livez(State(gate): State<Arc<Gate>>) -> Result<Response, Problem> {
    match gate.organism.breakdown() {
        None => Ok(view::document(StatusCode::OK, &json!({ "status": "ok" }))),
        Some(_) => Err(Problem::stopping()),
    }
}

pub(super) async fn readyz(State(gate): State<Arc<Gate>>) -> Result<Response, Problem> {
    gate.open()?;
    gate.organism.ready().map_err(|error| Problem::busy(error.to_string()))?;
    // Whoever can't keep a message is not ready for one.
    gate.mailboxes.store().check().await?;
    Ok(view::document(StatusCode::OK, &json!({ "status": "ok" })))
}

/// The text format of Prometheus, version 0.0.4.
pub(super) async fn metrics(State(gate): State<Arc<Gate>>) -> Response {
    let counts = gate.organism.counts().await;
    let figures = [
        ("injected", counts.injected),
        ("emitted", counts.emitted),
        ("made", counts.made),
        ("delivered", counts.delivered),
        ("faulted", counts.faulted),
        ("dead", counts.dead),
        ("cancelled", counts.cancelled),
    ];
    let mut text = String::from("# TYPE systole_messages_total counter\n");
    for (fate, count) in figures {
        let _ = writeln!(text, "systole_messages_total{{fate=\"{fate}\"}} {count}");
    }
    text += "# TYPE systole_gateway_waiting gauge\n";
    let _ = writeln!(text, "systole_gateway_waiting {}", gate.mailboxes.waiting_messages());
    view::typed(StatusCode::OK, "text/plain; version=0.0.4", text)
}
