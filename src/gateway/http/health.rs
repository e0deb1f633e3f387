//! Liveness, readiness and figures, without a token: they hold no name of any principal.

use std::fmt::Write;
use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use schemars::JsonSchema;
use serde::Serialize;
use systole_core::core::Gauge;

use super::failures::Reason;
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

/// The text format of Prometheus, version 0.0.4.
pub(super) async fn metrics(State(app): State<Arc<AppState>>) -> Response {
    let counts = app.organism.counts().await;
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
    let (connections, calls) = app.edge.admission.figures();
    let (waiting, dead_letters) = app.mailboxes.look(|machine| (machine.waiting(), machine.dead_letters()));
    let (letters, dropped) = app.organism.dead_letter_figures().await;
    let _ = writeln!(text, "# TYPE systole_dropped_dead_letters_total counter");
    let _ = writeln!(text, "systole_dropped_dead_letters_total {dropped}");
    let gauges = [
        ("messages_waiting", app.organism.waiting().await),
        ("dead_letters", letters),
        ("gateway_waiting", waiting),
        ("gateway_dead_letters", dead_letters),
        ("gateway_waiters", app.mailboxes.waiters() + app.submissions.waiters()),
        ("gateway_connections", connections),
        ("gateway_calls", calls),
        ("gateway_body_bytes", app.edge.bodies.bytes()),
    ];
    for (name, figure) in gauges {
        let _ = writeln!(text, "# TYPE systole_{name} gauge\nsystole_{name} {figure}");
    }
    text += "# TYPE systole_gateway_rate_limited_total counter\n";
    for (of, count) in [("principal", app.edge.rate.refused()), ("stranger", app.edge.unauthenticated.refused())] {
        let _ = writeln!(text, "systole_gateway_rate_limited_total{{of=\"{of}\"}} {count}");
    }
    text += "# TYPE systole_gateway_unauthorized_total counter\n";
    for reason in Reason::ALL {
        let (reason, count) = (reason.as_str(), app.edge.failures.counted(reason));
        let _ = writeln!(text, "systole_gateway_unauthorized_total{{reason=\"{reason}\"}} {count}");
    }
    text += "# TYPE systole_gateway_rejected_total counter\n";
    for ((status, code), count) in app.edge.rejections.all() {
        let _ = writeln!(text, "systole_gateway_rejected_total{{status=\"{status}\",code=\"{code}\"}} {count}");
    }
    view::typed(StatusCode::OK, "text/plain; version=0.0.4", text)
}
