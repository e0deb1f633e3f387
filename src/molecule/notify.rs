//! A workspace answers a person: `POST /workspaces/{id}/notify`.

use axum::response::Response;
use serde::Deserialize;
use serde_json::json;

use super::Facade;
use super::people::Listener;
use super::room::Room;
use super::rows::rows;
use super::said::Said;
use super::turns::Whose;
use super::{a2a, said};
use crate::gateway::seam::{Gate, History, Of, Problem, StoredMail, document};
use crate::vocab::MessageId;

#[derive(Deserialize)]
struct Notice {
    message: String,
    /// The row that it answers; the SDK doesn't say.
    in_reply_to: Option<String>,
}

/// `POST /workspaces/{id}/notify`
pub(super) async fn notify(room: Room) -> Result<Response, Problem> {
    let own = room.workspace()?;
    let (said, Notice { message, in_reply_to }) = room.said::<Notice>().await?;
    let (gate, facade) = (&said.gate, &said.facade);
    let text = a2a::spoken(message)?;
    let item = match in_reply_to {
        Some(id) => Some(named(gate, &own, &id).await?),
        None => waiting(gate, facade, &own, &Whose::Person).await?,
    };
    let item = item.ok_or_else(|| Problem::conflict("nobody_waits", "no person waits for an answer"))?;
    answer(gate, facade, &own, &item, text, None).await?;
    Ok(document(&json!({ "status": "sent" })))
}

/// The row that an answer names.
pub(super) async fn named(gate: &Gate, own: &Listener, id: &str) -> Result<StoredMail, Problem> {
    let found = match id.parse::<MessageId>() {
        Ok(id) => gate.mail(&own.name, id).await?,
        Err(_) => None,
    };
    found.ok_or_else(|| Problem::not_found("'in_reply_to' is no row of this workspace"))
}

/// The row that an answer without a name is for.
pub(super) async fn waiting(
    gate: &Gate,
    facade: &Facade,
    own: &Listener,
    whose: &Whose,
) -> Result<Option<StoredMail>, Problem> {
    if let Some(next) = facade.turns.next(&own.name, whose)
        && let Some(item) = gate.mail(&own.name, next).await?
    {
        return Ok(Some(item));
    }
    let (mailbox, of) = (own.name.clone(), Of::Payload(said()));
    let oldest = History { mailbox, after: 0, limit: 1, of, senders: None, since: None, before: None, waiting: true };
    Ok(rows(gate, &facade.people, oldest, |row| whose.owns(row)).await?.pop().map(|row| row.item))
}

/// Answers a row; `under` is what the agent knows the answer by.
pub(super) async fn answer(
    gate: &Gate,
    facade: &Facade,
    own: &Listener,
    item: &StoredMail,
    text: String,
    under: Option<String>,
) -> Result<(), Problem> {
    if !own.replies {
        let detail = format!("'{}' may not answer with {}: add it to its 'replies' in organism.yaml", own.name, said());
        return Err(Problem::forbidden(detail));
    }
    let payload = Said::by("peer_agent", own.name.as_str(), text).write()?;
    gate.reply(item.record.id, payload.bytes().clone()).await?;
    facade.turns.answered(&own.name, item.record.id, under);
    Ok(())
}
