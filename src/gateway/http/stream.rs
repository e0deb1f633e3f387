//! A mailbox as a stream.

use std::sync::Arc;

use axum::extract::ws::WebSocketUpgrade;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::response::Response;
use tokio::time::sleep;

use super::authenticate::Authenticated;
use super::bodies::Held;
use super::mailbox_request::MailboxRequest;
use super::reader::{ALIVE, Event, Reader};
use super::request::{Query, last_event_id};
use super::view::Reading;
use super::{AppState, mailbox, view};
use crate::accept::RequestPermit;
use crate::gateway::problem::Problem;
use crate::journal::{Page, QueryError, Range, StoredMail};

/// Bytes of envelopes that are read at once.
const PAGE: usize = 1 << 20;

/// `GET /v1/mailboxes/{mailbox}/stream`
pub(super) async fn stream(
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
    mailbox_request: MailboxRequest,
) -> Result<Response, Problem> {
    let query = mailbox_request.query(&["after"])?;
    let query = match last_event_id(mailbox_request.request.headers()) {
        Some(id) => Query::only("after", id),
        None => query,
    };
    let permit = mailbox_request.request.extensions().get::<RequestPermit>().cloned();
    let known =
        mailbox_request.request.extensions().get::<Arc<Authenticated>>().cloned().ok_or_else(Problem::unauthorized)?;
    let MailboxRequest { app, mailbox, .. } = mailbox_request;
    let (range, from) = mailbox::range(&app, mailbox, &query)?;
    // A lost place is refused before the stream begins.
    mailbox::page(&app, Range { limit: 1, ..range.clone() }, from).await?;
    Ok(Reader::serve(upgrade.ok(), permit, |reader| feed(app, known, range, reader)))
}

/// Sends the messages that are there and that come, until the reader leaves, its token is revoked or the organism
/// stops. What a reader leaves unread counts as bodies of its principal: a stream that would have too much ends, and
/// the next request goes on at its place.
async fn feed(app: Arc<AppState>, known: Arc<Authenticated>, mut range: Range, mut to: Reader) {
    let Some(arrivals) = app.mailboxes.arrivals(&range.mailbox) else { return };
    range.bytes = app.edge.bodies.page(PAGE);
    while !app.mailboxes.is_stopping() {
        let mut arrived = std::pin::pin!(arrivals.notified());
        arrived.as_mut().enable();
        let held = known.answer_bytes(&app);
        let Ok(turn) = held.turn(range.bytes).await else { return };
        let Ok(page) = app.query.page(range.clone()).await else { return };
        if !known.is_valid(&app).await || held.more(page.bytes()).is_err() {
            return;
        }
        drop(turn);
        if !page.items.is_empty() {
            range.after = page.items.last().map_or(range.after, |mail| mail.record.seq);
            let Ok(events) = events(&app, page, Arc::new(held)).await else { return };
            for event in events {
                if to.send(event).await.is_none() {
                    return;
                }
            }
            continue;
        }
        let goes_on = tokio::select! {
            rang = app.mailboxes.await_news(arrived, sleep(ALIVE)) => match rang {
                true => Some(()),
                false => to.say_alive().await,
            },
            () = to.left() => None,
            () = known.left() => None,
        };
        if goes_on.is_none() {
            return;
        }
    }
}

/// The messages of a page. A message that was sent is not handled: its reader acknowledges each.
async fn events(app: &Arc<AppState>, page: Page, held: Arc<Held>) -> Result<Vec<Event>, QueryError> {
    let site = app.clone();
    let write = move || {
        let reading = Reading::skipping(page.position.pruned);
        let one = |mail: &StoredMail| Event {
            cursor: Some(view::cursor(&site, &mail.record.mailbox, reading.place(mail.record.seq))),
            name: "message",
            text: view::text(&view::mail(&site, mail, reading)),
            held: Some(held.clone()),
        };
        page.items.iter().map(one).collect()
    };
    app.query.beside(write).await
}
