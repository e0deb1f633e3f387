//! Reads of a mailbox in order, and its dead letters. A read changes nothing, unless `ack` says that the reader has
//! handled the messages up to a cursor.

use std::sync::Arc;

use axum::http::StatusCode;
use axum::response::Response;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use systole_core::journal::ActRecord;
use systole_core::mailbox::MailboxInput;
use systole_core::vocab::{MessageId, Name, QName};
use tokio::time::Instant;

use super::bodies::Held;
use super::mailbox_request::MailboxRequest;
use super::request::{LIMIT, Query, message_id, no_message};
use super::view::Reading;
use super::{AppState, view};
use crate::gateway::cursor::{self, Place};
use crate::gateway::problem::Problem;
use crate::journal::{Page, Position, Range};

/// `GET /v1/mailboxes/{mailbox}/messages`
pub(super) async fn list(mailbox_request: MailboxRequest) -> Result<Response, Problem> {
    let query = mailbox_request.query(&["after", "ack", "limit", "wait", "type", "peer", "before"])?;
    let MailboxRequest { app, mailbox, known, reader, .. } = mailbox_request;
    let held = known.answer_bytes(&app);
    let before = query.text("before").map(|text| {
        view::date_time(text).ok_or_else(|| Problem::bad_request("'before' has to be a date and time (RFC 3339)"))
    });
    let (mut range, from) = range(&app, mailbox, &query)?;
    range.payload = query.filter::<QName>("type", "the name of a payload, {namespace}local")?;
    range.peer = query.filter::<Name>("peer", "the name of a sender")?;
    range.before = before.transpose()?;
    // A page without a filter leaves nothing out: its cursors say so to the listener, which alone acknowledges by them.
    let is_whole = reader && range.payload.is_none() && range.peer.is_none() && range.before.is_none();
    // Nor may the way to it.
    let order = is_whole && !matches!(from, From::Behind(place) if !place.order);
    let passed = match from {
        _ if query.text("ack").is_none() => None,
        From::Behind(place) if order => Some(place.seq),
        From::Lost => None,
        From::Behind(_) | From::Start => {
            let detail = "'ack' is for the listener itself, in a request without 'type', 'peer' and 'before', and has to be \
                          'next' or the cursor of a message of such a page: with 'after' messages are read and stay";
            return Err(Problem::bad_request(detail));
        }
    };
    let until = Instant::now() + query.wait()?;
    let arrivals = app.mailboxes.arrivals(&range.mailbox).ok_or_else(Problem::stopping)?;
    let (page, turn) = loop {
        let mut arrived = std::pin::pin!(arrivals.notified());
        arrived.as_mut().enable();
        // Passes also the messages that come back while the reader waits and would block others: their lease ended, or
        // the pump runs them again.
        if let Some(through) = passed {
            app.mailboxes.act(MailboxInput::Passed { mailbox: range.mailbox.clone(), through })?.durable().await?;
        }
        let turn = held.turn(range.bytes).await?;
        let page = page(&app, range.clone(), from).await?;
        if !page.items.is_empty() {
            break (page, Some(turn));
        }
        drop(turn);
        if !app.mailboxes.await_news(arrived, known.over(until)).await {
            break (page, None);
        }
    };
    let response = show(app, range, page, order, held).await;
    drop(turn);
    response
}

/// `GET /v1/mailboxes/{mailbox}/dead`
pub(super) async fn dead(mailbox_request: MailboxRequest) -> Result<Response, Problem> {
    let query = mailbox_request.query(&["after", "limit"])?;
    let MailboxRequest { app, mailbox, known, .. } = mailbox_request;
    let (range, from) = range(&app, mailbox, &query)?;
    let range = Range { dead: true, ..range };
    let held = known.answer_bytes(&app);
    let _turn = held.turn(range.bytes).await?;
    let page = page(&app, range.clone(), from).await?;
    show(app, range, page, false, held).await
}

/// Names one of the dead letters.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct One {
    id: Option<String>,
}

/// `POST /v1/mailboxes/{mailbox}/dead/redrive`
pub(super) async fn redrive(mailbox_request: MailboxRequest) -> Result<Response, Problem> {
    let operator = mailbox_request.operator();
    let (app, mailbox, One { id }) = mailbox_request.said().await?;
    let id = id.map(|id| message_id(&id)).transpose()?;
    let record = operator.map(|by| record(by, "redrive", &mailbox, id));
    let mut acted = app.mailboxes.operate(MailboxInput::Redrive { mailbox, id }, record)?;
    acted.durable().await?;
    let redriven = counted(id, acted.change.count)?;
    Ok(view::document(StatusCode::OK, &Redriven { redriven }))
}

/// `DELETE /v1/mailboxes/{mailbox}/dead`
pub(super) async fn discard(mailbox_request: MailboxRequest) -> Result<Response, Problem> {
    let id = mailbox_request.query(&["id"])?.text("id").map(message_id).transpose()?;
    let record = mailbox_request.operator().map(|by| record(by, "discard", &mailbox_request.mailbox, id));
    let input = MailboxInput::Discard { mailbox: mailbox_request.mailbox, id };
    let mut acted = mailbox_request.app.mailboxes.operate(input, record)?;
    acted.durable().await?;
    let deleted = counted(id, acted.change.count)?;
    Ok(view::document(StatusCode::OK, &Deleted { deleted }))
}

/// The record of an admin's act on one dead letter of a mailbox, or on all.
fn record(by: Name, act: &str, mailbox: &Name, one: Option<MessageId>) -> ActRecord {
    let of = one.map_or_else(|| mailbox.to_string(), |id| id.to_string());
    ActRecord { by, act: act.into(), of: of.into(), error: None, opened: None }
}

/// The number of redriven dead letters.
#[derive(Serialize, JsonSchema)]
pub(super) struct Redriven {
    redriven: usize,
}

/// The number of deleted dead letters.
#[derive(Serialize, JsonSchema)]
pub(super) struct Deleted {
    deleted: usize,
}

fn counted(one: Option<MessageId>, count: usize) -> Result<usize, Problem> {
    if one.is_some() && count == 0 { Err(no_message()) } else { Ok(count) }
}

/// Bytes of a page; further messages come with the next one.
pub(super) const PAGE: usize = 8 << 20;

/// The range that a query asks for: by default from the oldest message on.
pub(super) fn range(app: &AppState, mailbox: Name, query: &Query) -> Result<(Range, From), Problem> {
    let limit = query.number("limit", LIMIT.0, (1, LIMIT.1))? as usize;
    let place = match (query.text("after"), query.text("ack")) {
        (Some(_), Some(_)) => {
            let detail =
                "'after' reads behind a cursor, 'ack' also acknowledges the messages before it: name one of them";
            return Err(Problem::bad_request(detail));
        }
        (after, ack) => after.or(ack),
    };
    let from = match place {
        None => From::Start,
        Some(text) => cursor::read(&app.cursors, &mailbox, text).map_or(From::Lost, From::Behind),
    };
    let after = if let From::Behind(place) = from { place.seq } else { 0 };
    let bytes = app.edge.bodies.page(PAGE);
    Ok((Range { mailbox, after, limit, bytes, payload: None, peer: None, before: None, dead: false }, from))
}

/// Place at which a reader begins.
#[derive(Debug, Clone, Copy)]
pub(super) enum From {
    /// The oldest message.
    Start,
    /// Behind the place of a cursor.
    Behind(Place),
    /// Behind a place that no cursor of this mailbox has.
    Lost,
}

/// Reads messages, unless the place that was asked for is lost.
pub(super) async fn page(app: &AppState, range: Range, from: From) -> Result<Page, Problem> {
    let mailbox = range.mailbox.clone();
    let page = app.query.page(range).await?;
    let lost = match from {
        From::Start => false,
        From::Behind(place) => place.is_lost(page.position.pruned),
        From::Lost => true,
    };
    if lost {
        let detail = "the messages behind that cursor are forgotten: go on from 'oldest', or without a cursor";
        let title = "The cursor is lost";
        let problem = Problem::new(StatusCode::GONE, "cursor_lost", title, detail);
        return Err(problem.with("oldest", oldest(app, &mailbox, page.position)));
    }
    Ok(page)
}

/// A page of a mailbox.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Page")]
pub(super) struct MailPage {
    items: Vec<view::Item>,
    /// The cursor behind the page.
    next: String,
    /// The cursor before the oldest message.
    oldest: String,
    has_more: bool,
    /// Messages of the mailbox that have not ended.
    waiting: usize,
}

async fn show(app: Arc<AppState>, range: Range, page: Page, order: bool, held: Held) -> Result<Response, Problem> {
    let (bytes, site) = (page.bytes(), app.clone());
    let value = move || {
        let reading = Reading { mark: page.position.pruned, order };
        let items: Vec<_> = page.items.iter().map(|mail| view::mail(&site, mail, reading)).collect();
        let seq = page.items.last().map_or(range.after, |mail| mail.record.seq);
        MailPage {
            items,
            next: view::cursor(&site, &range.mailbox, reading.place(seq)),
            oldest: oldest(&site, &range.mailbox, page.position),
            has_more: page.has_more,
            waiting: site.mailboxes.look(|machine| machine.waiting_in(&range.mailbox)),
        }
    };
    held.weigh(bytes, view::long_document(&app, value).await?)
}

/// Cursor of the place before the oldest message that is left.
fn oldest(app: &AppState, mailbox: &Name, position: Position) -> String {
    let Position { pruned: mark, oldest } = position;
    let seq = oldest.map_or(mark, |oldest| oldest.saturating_sub(1));
    view::cursor(app, mailbox, Reading::skipping(mark).place(seq))
}
