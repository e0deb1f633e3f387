//! Leases: a reader has a message for a while, and says what became of it.

use std::time::Duration;

use axum::http::StatusCode;
use axum::response::Response;
use serde::Deserialize;
use serde_json::json;
use tokio::time::Instant;

use super::desk::Desk;
use super::request::{WAIT, Whole, no_message, within};
use super::{Gate, view};
use crate::gateway::problem::Problem;
use crate::gateway::store::{Handle, Lease, Settled};
use crate::vocab::Time;

/// The most messages that are leased at once.
const MAX: u64 = 100;
/// The longest lease, in seconds.
const VISIBILITY: u64 = 12 * 3600;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wanted {
    max: Option<Whole>,
    wait: Option<Whole>,
    visibility: Option<Whole>,
}

/// `POST /v1/mailboxes/{mailbox}/lease`
pub(super) async fn lease(desk: Desk) -> Result<Response, Problem> {
    let (gate, mailbox, wanted) = desk.said::<Wanted>().await?;
    if gate.mailboxes.is_pushed(&mailbox) {
        return Err(Problem::conflict("pushed", "the messages of this listener are pushed to it: nobody leases them"));
    }
    let max = within("max", wanted.max.map_or(1, |max| max.0), (1, MAX))? as usize;
    let until = Instant::now() + Duration::from_secs(within("wait", wanted.wait.map_or(0, |wait| wait.0), (0, WAIT))?);
    let visibility = visibility(&gate, wanted.visibility)?;
    let bell = gate.mailboxes.bell(&mailbox).ok_or_else(Problem::stopping)?;
    let leases = loop {
        let mut rung = std::pin::pin!(bell.notified());
        rung.as_mut().enable();
        let now = gate.mailboxes.clock().now();
        let deliveries = gate.mailboxes.caps().deliveries;
        let lease = Lease { mailbox: mailbox.clone(), max, now, until: now.after(visibility), deliveries };
        let leases = gate.mailboxes.store().lease(lease).await?;
        if !leases.leased.is_empty() || Instant::now() >= until || gate.mailboxes.is_stopping() {
            break leases;
        }
        // What somebody has now may be free before anything new comes.
        let lapse = leases.next.map(|next| Instant::now() + gate.mailboxes.clock().until(next));
        let _ = tokio::time::timeout_at(lapse.map_or(until, |lapse| lapse.min(until)), rung).await;
    };
    if !leases.leased.is_empty() {
        gate.mailboxes.leased().notify_one();
    }
    let items: Vec<_> = leases.leased.iter().map(|leased| view::leased(&gate, leased)).collect();
    Ok(view::document(StatusCode::OK, &json!({ "items": items })))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Said {
    receipt: String,
    error: Option<String>,
    delay: Option<Whole>,
    visibility: Option<Whole>,
}

/// `POST /v1/mailboxes/{mailbox}/messages/{id}/ack`
pub(super) async fn ack(desk: Desk) -> Result<Response, Problem> {
    handle(desk, |_, _, _| Ok(Handle::Ack)).await
}

/// `POST /v1/mailboxes/{mailbox}/messages/{id}/nack`
pub(super) async fn nack(desk: Desk) -> Result<Response, Problem> {
    handle(desk, |_, said, now| {
        let delay = within("delay", said.delay.map_or(0, |delay| delay.0), (0, VISIBILITY))?;
        Ok(Handle::Nack { error: said.error, due: now.after(Duration::from_secs(delay)) })
    })
    .await
}

/// `POST /v1/mailboxes/{mailbox}/messages/{id}/extend`
pub(super) async fn extend(desk: Desk) -> Result<Response, Problem> {
    handle(desk, |gate, said, now| Ok(Handle::Extend { due: now.after(visibility(gate, said.visibility)?) })).await
}

/// `POST /v1/mailboxes/{mailbox}/messages/{id}/hold`
pub(super) async fn hold(desk: Desk) -> Result<Response, Problem> {
    handle(desk, |_, _, _| Ok(Handle::Hold)).await
}

/// `POST /v1/mailboxes/{mailbox}/messages/{id}/term`
pub(super) async fn term(desk: Desk) -> Result<Response, Problem> {
    handle(desk, |_, said, _| Ok(Handle::Term { error: said.error })).await
}

async fn handle(
    desk: Desk,
    with: impl FnOnce(&Gate, Said, Time) -> Result<Handle, Problem>,
) -> Result<Response, Problem> {
    let id = desk.message()?;
    let (gate, mailbox, said) = desk.said::<Said>().await?;
    let receipt = uuid::Uuid::try_parse(&said.receipt).map_err(|_| stale())?.into_bytes();
    let now = gate.mailboxes.clock().now();
    let with = with(&gate, said, now)?;
    let limits = (now, gate.mailboxes.caps().deliveries);
    match gate.mailboxes.store().handle(mailbox.clone(), id, receipt, with, limits).await? {
        Settled::Done(Some(end)) => gate.mailboxes.end(id, end),
        Settled::Done(None) => {
            gate.mailboxes.leased().notify_one();
            gate.mailboxes.ring(&mailbox);
        }
        Settled::Already => {}
        Settled::Stale => return Err(stale()),
        Settled::Over(state) => {
            let detail = format!("the message is {} by now", state.as_str());
            return Err(Problem::conflict("settled", detail));
        }
        Settled::Unknown => return Err(no_message()),
    }
    Ok(view::nothing())
}

fn stale() -> Problem {
    Problem::conflict("stale_receipt", "that lease has ended: lease the message again")
}

fn visibility(gate: &Gate, wanted: Option<Whole>) -> Result<Duration, Problem> {
    match wanted {
        None => Ok(gate.mailboxes.caps().visibility),
        Some(Whole(seconds)) => within("visibility", seconds, (1, VISIBILITY)).map(Duration::from_secs),
    }
}
