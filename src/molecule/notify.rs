//! Answers of a workspace to rows: `POST /workspaces/{id}/notify` for the row that is shown as a person's.

use axum::response::Response;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use systole_core::vocab::MessageId;

use super::Facade;
use super::parties::Listener;
use super::said::Said;
use super::workspace_request::WorkspaceRequest;
use super::{a2a, row_references, said};
use crate::gateway::facade::{AppState, MailState, Problem, StoredMail, document};

#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "MoleculeNotice")]
pub(super) struct Notice {
    message: String,
    /// The row that it answers; the SDK leaves it out.
    in_reply_to: Option<String>,
}

/// `POST /workspaces/{id}/notify`
pub(super) async fn notify(call: WorkspaceRequest) -> Result<Response, Problem> {
    let own = call.acting()?;
    let (parts, body) = call.body::<Value>().await?;
    let notice = Notice::deserialize(&body).map_err(|error| Problem::bad_request(format!("the body: {error}")))?;
    let Notice { message, in_reply_to } = notice;
    let (app, facade) = (&parts.app, &parts.facade);
    let text = a2a::not_blank(message)?;
    let item = match in_reply_to {
        Some(id) => named_row(app, &own, &id).await?,
        None => {
            let shown = facade.shown_rows.shown(&own.name).ok_or_else(unnamed)?;
            // A row that was passed over takes no answer.
            let item = app.mail(&own.name, shown).await?.filter(|item| item.status.state != MailState::Acked);
            item.ok_or_else(unnamed)?
        }
    };
    answer(app, facade, &own, &item, (text, &body)).await?;
    Ok(document(&Notified { status: "sent" }))
}

/// An answer that was sent.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "MoleculeNotified")]
pub(super) struct Notified {
    status: &'static str,
}

fn unnamed() -> Problem {
    let detail = "no single row waits that this can answer: name the row by 'in_reply_to', or answer a row at its \
                  'source_id' with message/send";
    Problem::conflict("nobody_waits", detail)
}

/// The row that an answer names.
async fn named_row(app: &AppState, own: &Listener, id: &str) -> Result<StoredMail, Problem> {
    row(app, own, id).await?.ok_or_else(|| Problem::not_found("'in_reply_to' is no row of this workspace"))
}

/// A row of a workspace, by its id.
pub(super) async fn row(app: &AppState, own: &Listener, id: &str) -> Result<Option<StoredMail>, Problem> {
    match id.parse::<MessageId>() {
        Ok(id) => app.mail(&own.name, id).await,
        Err(_) => Ok(None),
    }
}

/// Answers a row with a text of that request.
pub(super) async fn answer(
    app: &AppState,
    facade: &Facade,
    own: &Listener,
    item: &StoredMail,
    (text, request): (String, &Value),
) -> Result<(), Problem> {
    if let Some(other) = app.mail_among(&own.name, row_references::others(request, item.record.id)).await? {
        return Err(row_references::ambiguous(other));
    }
    if !own.replies {
        let detail = format!("'{}' may not answer with {}: add it to its 'replies' in organism.yaml", own.name, said());
        return Err(Problem::forbidden(detail));
    }
    if item.status.state == MailState::Acked {
        let detail = "that row takes no answer: it is one itself, or was passed over; to begin a conversation, send \
                      to the id of a peer";
        return Err(Problem::conflict("settled", detail));
    }
    let payload = Said::by("peer_agent", own.name.as_str(), text).write()?;
    app.reply(item.record.id, payload.bytes().clone()).await?;
    facade.shown_rows.answered(&own.name, item.record.id);
    Ok(())
}
