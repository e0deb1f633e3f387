//! Leases: a reader holds a message for a time, and reports how it ended.

use std::time::Duration;

use axum::http::StatusCode;
use axum::response::Response;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use systole_core::journal::MailState;
use systole_core::mailbox::{Action, MailboxInput, Refused, Repeated};
use systole_core::vocab::{MessageId, Name, Time};
use tokio::time::Instant;

use super::mailbox::PAGE;
use super::mailbox_request::MailboxRequest;
use super::messages::end_silently;
use super::request::{WAIT, Whole, no_message, within};
use super::{AppState, view};
use crate::gateway::problem::Problem;
use crate::gateway::service::ActError;
use systole_store::entropy::Entropy;

/// Most messages of one lease call.
const MAX: u64 = 100;
/// Longest lease, in seconds.
const VISIBILITY: u64 = 12 * 3600;

/// A request for leases.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Lease")]
pub(super) struct Wanted {
    /// Messages at most.
    #[schemars(range(min = 1, max = MAX), extend("default" = 1))]
    max: Option<Whole>,
    /// Seconds to wait for a message.
    #[schemars(range(max = WAIT), extend("default" = 0))]
    wait: Option<Whole>,
    /// Seconds of the lease.
    #[schemars(range(min = 1, max = VISIBILITY), extend("default" = 30))]
    visibility: Option<Whole>,
    /// The form of payloads beside the envelopes: `json` adds each as JSON.
    #[serde(default)]
    payloads: Payloads,
}

/// The form of the payloads of leased messages.
#[derive(Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
enum Payloads {
    #[default]
    Xml,
    Json,
}

/// The leased messages; maybe none.
#[derive(Serialize, JsonSchema)]
pub(super) struct Leases {
    items: Vec<view::Leased>,
}

/// `POST /v1/mailboxes/{mailbox}/lease`
pub(super) async fn lease(mailbox_request: MailboxRequest) -> Result<Response, Problem> {
    let known = mailbox_request.known.clone();
    let (app, mailbox, wanted) = mailbox_request.said::<Wanted>().await?;
    if app.mailboxes.is_pushed(&mailbox) {
        return Err(Problem::conflict("pushed", "the messages of this listener are pushed to it, and can't be leased"));
    }
    let max = within("max", wanted.max.map_or(1, |max| max.0), (1, MAX))? as usize;
    let until = Instant::now() + Duration::from_secs(within("wait", wanted.wait.map_or(0, |wait| wait.0), (0, WAIT))?);
    let visibility = visibility(&app, wanted.visibility)?;
    let arrivals = app.mailboxes.arrivals(&mailbox).ok_or_else(Problem::stopping)?;
    let held = known.answer_bytes(&app);
    // Bound of a lease: one page, and the messages that it wants.
    let bytes = app.edge.bodies.page(PAGE.min(max.saturating_mul(app.organism.blueprint().limits.xml.message_bytes)));
    let (mut acted, _turn) = loop {
        let mut arrived = std::pin::pin!(arrivals.notified());
        arrived.as_mut().enable();
        let is_free = app.mailboxes.look(|machine| machine.has_free(&mailbox));
        let turn = if is_free { Some(held.turn(bytes).await?) } else { None };
        let receipts = (0..if is_free { max } else { 0 }).map(|_| draw()).collect();
        let acted = app.mailboxes.act(MailboxInput::Lease { mailbox: mailbox.clone(), visibility, receipts })?;
        if !acted.change.given.is_empty() || Instant::now() >= until || app.mailboxes.is_stopping() {
            break (acted, turn);
        }
        drop(turn);
        // Who has left leases nothing more.
        if !app.mailboxes.await_news(arrived, known.over(until)).await && Instant::now() < until {
            break (acted, None);
        }
        if !known.is_valid(&app).await {
            return Err(Problem::unauthorized());
        }
    };
    acted.durable().await?;
    let mail = app.query.mail_at(acted.change.given.iter().map(|given| given.seq).collect()).await?;
    let bytes = mail.iter().map(|mail| mail.record.envelope.len()).sum();
    let (site, given) = (app.clone(), acted.change.given);
    let as_json = wanted.payloads == Payloads::Json;
    let value = move || {
        let leased = mail.iter().zip(&given).map(|(mail, given)| view::leased(&site, mail, given.receipt, as_json));
        Leases { items: leased.collect() }
    };
    Ok(held.count(bytes, view::long_document(&app, value).await?))
}

/// Draws a receipt that can't be guessed.
fn draw() -> [u8; 16] {
    Entropy::Real.random().into_bytes()
}

/// Use that a reader makes of a message.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Handle")]
pub(super) struct Said {
    /// Of the lease or hold. Without it ack, term and hold are about a message that is not leased; nack and extend need it.
    #[schemars(regex(pattern = "^[0-9a-f]{32}$"))]
    receipt: Option<String>,
    /// The reason of a nack or term.
    error: Option<String>,
    /// Seconds until a message that is given back can be leased.
    #[schemars(range(max = VISIBILITY), extend("default" = 0))]
    delay: Option<Whole>,
    /// Seconds of the longer lease.
    #[schemars(range(min = 1, max = VISIBILITY), extend("default" = 30))]
    visibility: Option<Whole>,
}

/// A held message; its receipt is good for nack.
#[derive(Serialize, JsonSchema)]
pub(super) struct Held {
    id: view::Id,
    #[schemars(with = "view::Receipt")]
    receipt: Option<view::Receipt>,
}

/// `POST /v1/mailboxes/{mailbox}/messages/{id}/ack`
pub(super) async fn ack(mailbox_request: MailboxRequest) -> Result<Response, Problem> {
    handle(mailbox_request, |_, _, _| Ok(Action::Ack)).await
}

/// `POST /v1/mailboxes/{mailbox}/messages/{id}/nack`
pub(super) async fn nack(mailbox_request: MailboxRequest) -> Result<Response, Problem> {
    handle(mailbox_request, |_, said, now| {
        let delay = within("delay", said.delay.map_or(0, |delay| delay.0), (0, VISIBILITY))?;
        Ok(Action::Nack { error: said.error.map(Into::into), due: now.after(Duration::from_secs(delay)) })
    })
    .await
}

/// `POST /v1/mailboxes/{mailbox}/messages/{id}/extend`
pub(super) async fn extend(mailbox_request: MailboxRequest) -> Result<Response, Problem> {
    handle(mailbox_request, |app, said, now| Ok(Action::Extend { due: now.after(visibility(app, said.visibility)?) }))
        .await
}

/// `POST /v1/mailboxes/{mailbox}/messages/{id}/hold`
pub(super) async fn hold(mailbox_request: MailboxRequest) -> Result<Response, Problem> {
    handle(mailbox_request, |_, _, _| Ok(Action::Hold)).await
}

/// `POST /v1/mailboxes/{mailbox}/messages/{id}/term`
pub(super) async fn term(mailbox_request: MailboxRequest) -> Result<Response, Problem> {
    handle(mailbox_request, |_, said, _| Ok(Action::Term { error: said.error.map(Into::into) })).await
}

async fn handle(
    mailbox_request: MailboxRequest,
    with: impl FnOnce(&AppState, Said, Time) -> Result<Action, Problem>,
) -> Result<Response, Problem> {
    let id = mailbox_request.message()?;
    let (app, mailbox, said) = mailbox_request.said::<Said>().await?;
    let receipt = said.receipt.as_deref().map(|text| uuid::Uuid::try_parse(text).map_err(|_| stale()));
    let receipt = receipt.transpose()?.map(uuid::Uuid::into_bytes);
    let action = with(&app, said, app.mailboxes.now())?;
    let Some(receipt) = receipt else { return unleased(&app, mailbox, id, action).await };
    let refused =
        match app.mailboxes.act(MailboxInput::Handle { mailbox: mailbox.clone(), id, receipt, action: action.clone() })
        {
            Ok(mut acted) => {
                acted.durable().await?;
                return Ok(view::no_content());
            }
            Err(ActError::Ending) => return Err(Problem::stopping()),
            Err(ActError::Refused(refused)) => refused,
        };
    match refused {
        Refused::Stale | Refused::Full(_) => Err(stale()),
        Refused::Over(state) => Err(over(state)),
        Refused::Early => Err(Problem::early()),
        // The message ended before: the journal has its end.
        Refused::Unknown => {
            let mail = app.query.mail(id).await?.filter(|mail| mail.record.mailbox == mailbox);
            let status = mail.ok_or_else(no_message)?.status;
            match Repeated::action(&status, &action) {
                _ if status.receipt != Some(receipt) => Err(stale()),
                Repeated::Same => Ok(view::no_content()),
                Repeated::Other => Err(over(status.state)),
            }
        }
    }
}

/// Applies an action without a receipt: of a reader in order, or of a stream.
async fn unleased(app: &AppState, mailbox: Name, id: MessageId, action: Action) -> Result<Response, Problem> {
    match action {
        Action::Ack | Action::Term { .. } => {
            end_silently(app, mailbox, id).await?;
            Ok(view::no_content())
        }
        Action::Hold => {
            let acted = app.mailboxes.act(MailboxInput::Keep { mailbox, id, receipt: draw() });
            let mut acted = match acted {
                Err(ActError::Refused(Refused::Unknown)) => return Err(no_message()),
                Err(ActError::Refused(Refused::Over(state))) => return Err(over(state)),
                acted => acted?,
            };
            acted.durable().await?;
            let receipt = acted.change.given.first().map(|given| view::Receipt::of(given.receipt));
            Ok(view::document(StatusCode::OK, &Held { id: view::Id::of(&id), receipt }))
        }
        Action::Nack { .. } | Action::Extend { .. } => {
            Err(Problem::bad_request("'receipt' is missing: it comes with a lease or a hold"))
        }
    }
}

fn stale() -> Problem {
    Problem::conflict("stale_receipt", "that lease has ended: lease the message again")
}

fn over(state: MailState) -> Problem {
    Problem::conflict("settled", format!("the message is already {}", state.as_str()))
}

fn visibility(app: &AppState, wanted: Option<Whole>) -> Result<Duration, Problem> {
    match wanted {
        None => Ok(app.mailboxes.look(|machine| machine.limits().visibility)),
        Some(Whole(seconds)) => within("visibility", seconds, (1, VISIBILITY)).map(Duration::from_secs),
    }
}
