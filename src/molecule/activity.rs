//! Rows for a workspace: `GET /workspaces/{id}/activity`.

use std::collections::HashMap;
use std::time::Duration;

use axum::http::StatusCode;
use axum::response::Response;
use serde_json::json;
use systole_core::vocab::{MessageId, Name, Time, ns};
use uuid::Uuid;

use super::Facade;
use super::ids::parse;
use super::notify::row;
use super::parties::Listener;
use super::rows::{BYTES, ERROR, RECEIVED, Row, rows};
use super::said;
use super::workspace_request::WorkspaceRequest;
use crate::gateway::facade::{AppState, History, Of, Problem, document, long_document};

/// Rows of a page, by default and at most.
const LIMIT: (u64, u64) = (100, 500);

/// Parameters that leave rows out: a request with one is a search, not a read in order.
const FILTERS: [&str; 3] = ["peer_id", "before_ts", "since_secs"];

/// Longest time that `since_secs` looks back: 30 days.
const SINCE: u64 = 30 * 24 * 60 * 60;

/// `GET /workspaces/{id}/activity`: strictly behind the cursor, oldest first.
///
/// A workspace that asks without a filter reads in order: it has handled the rows up to its cursor, answered or not.
pub(super) async fn list(call: WorkspaceRequest) -> Result<Response, Problem> {
    let (own, query) = (call.workspace()?, call.query()?);
    let (app, facade) = (&call.app, &call.facade);
    call.note_call(&own);
    let is_own = call.speaker().is_some_and(|speaker| speaker.name == own.name);
    // Pushed messages are not read in order, by the rows.
    let is_reader = is_own && app.is_pulled(&own.name);
    let Some(of) = history(app, facade, &own, &query).await? else { return Ok(document(&json!([]))) };
    let held = call.known.answer_bytes(app);
    let _turn = held.turn(BYTES).await?;
    let in_order = matches!(of.of, Of::Payload(_)) && FILTERS.iter().all(|filter| !query.contains_key(*filter));
    let from_peers = of.senders.is_some();
    let (shown, page) = if is_reader && in_order {
        read_on(app, facade, &own.name, of).await?
    } else {
        (None, rows(app, &facade.parties, of, |row: &Row| !from_peers || !row.is_persons()).await?)
    };
    let bytes = page.iter().map(|row| row.text.len()).sum();
    let of = facade.clone();
    let value = move || {
        let rows = page.iter().map(|row| row.show(&of.parties, shown == Some(row.item.record.id)));
        rows.collect::<Vec<_>>()
    };
    held.weigh(bytes, long_document(app, value).await?)
}

/// The next rows for a workspace; also the rows that `notify` answers.
async fn read_on(
    app: &AppState,
    facade: &Facade,
    own: &Name,
    of: History,
) -> Result<(Option<MessageId>, Vec<Row>), Problem> {
    if of.after > 0 {
        let mut waiting = History { after: 0, waiting: true, limit: LIMIT.1 as usize, ..of.clone() };
        loop {
            let (mut passed, has_more) = app.history(waiting.clone()).await?;
            let all = passed.len();
            passed.retain(|mail| mail.record.seq <= of.after);
            let Some(last) = passed.last().map(|mail| mail.record.seq) else { break };
            app.skip(own.clone(), passed.iter().map(|mail| mail.record.id).collect()).await?;
            if !has_more || passed.len() < all {
                break;
            }
            waiting.after = last;
        }
    }
    let mut page = rows(app, &facade.parties, of, |_| true).await?;
    // The first person whose row is shown, and never another one: a copy of the agent may work on it for long.
    let mut people = page.iter().filter(|row| row.is_open()).map(|row| &row.item.record.from);
    let first = people.find(|name| facade.parties.is_person(name)).cloned();
    let person = app.addressee(own).unwrap_or(first).filter(|person| facade.parties.is_person(person));
    let Some(person) = person else { return Ok((None, page)) };
    let is_persons = |row: &Row| row.is_open() && row.item.record.from == person;
    let mut of_person =
        page.iter().enumerate().filter(|(_, row)| is_persons(row)).map(|(at, row)| (at, row.item.record.id));
    let (shown, second) = (of_person.next(), of_person.next());
    if let Some((at, _)) = second {
        page.truncate(at);
    }
    let Some((_, id)) = shown else { return Ok((None, page)) };
    let shown = app.show(own, id, person).await?.then_some(id);
    facade.shown_rows.set(own, shown);
    Ok((shown, page))
}

/// The history that a query asks for; none if there is nothing of that type.
async fn history(
    app: &AppState,
    facade: &Facade,
    own: &Listener,
    query: &HashMap<String, String>,
) -> Result<Option<History>, Problem> {
    let limit = number(query, "limit")?.unwrap_or(LIMIT.0).min(LIMIT.1) as usize;
    let since = number(query, "since_secs")?.map(|seconds| ago(app.now(), seconds.min(SINCE)));
    let peer = query.get("peer_id").map(|text| {
        parse(text).ok_or_else(|| Problem::bad_request("'peer_id' has to be a UUID: that of 'source_id' in a row"))
    });
    let before = query.get("before_ts").map(|text| {
        text.parse::<Time>().map_err(|_| Problem::bad_request("'before_ts' has to be a date and time (RFC 3339)"))
    });
    let (peer, before) = (peer.transpose()?, before.transpose()?);
    let after = match query.get("since_id") {
        Some(id) => behind(app, &own.name, id).await?,
        None => 0,
    };
    let of = match query.get("type").map_or(RECEIVED, String::as_str) {
        RECEIVED => Of::Payload(said()),
        ERROR => Of::Namespace(ns::CORE),
        _ => return Ok(None),
    };
    let senders = match peer {
        Some(peer) => Some(senders(app, facade, own, peer).await?),
        None => None,
    };
    let mailbox = own.name.clone();
    Ok(Some(History { mailbox, after, limit, bytes: BYTES, of, senders, since, before, waiting: false }))
}

/// Names of the clients or listeners that a peer may have sent by. The peer is given by its id, or by the `source_id`
/// of a row.
async fn senders(app: &AppState, facade: &Facade, own: &Listener, peer: Uuid) -> Result<Vec<Name>, Problem> {
    let known = facade.parties.senders(peer);
    if !known.is_empty() {
        return Ok(known);
    }
    let sender = row(app, own, &peer.to_string()).await?.map(|mail| mail.record.from);
    let peer = sender.and_then(|name| facade.parties.speaker(&name));
    Ok(peer.map(|peer| facade.parties.senders(peer.id)).unwrap_or_default())
}

/// The place of a row. An unknown row and one of another workspace look alike.
async fn behind(app: &AppState, own: &Name, id: &str) -> Result<u64, Problem> {
    let item = match id.parse() {
        Ok(id) => app.mail(own, id).await?,
        Err(_) => None,
    };
    item.map(|mail| mail.record.seq).ok_or_else(|| {
        let detail = "no row of this workspace has that 'since_id', or it was forgotten: go on without one";
        Problem::new(StatusCode::GONE, "cursor_lost", "The cursor is lost", detail)
    })
}

/// Parses a whole number from 1 on.
fn number(query: &HashMap<String, String>, key: &str) -> Result<Option<u64>, Problem> {
    let Some(text) = query.get(key) else { return Ok(None) };
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    // A number that is too large for its type is above every limit, too.
    let number = digits.then(|| text.parse().unwrap_or(u64::MAX)).filter(|number| *number > 0);
    number.map(Some).ok_or_else(|| Problem::bad_request(format!("'{key}' has to be a whole number of at least 1")))
}

fn ago(now: Time, seconds: u64) -> Time {
    let nanos = u64::try_from(Duration::from_secs(seconds).as_nanos()).unwrap_or(u64::MAX);
    Time::from_nanos(now.as_nanos().saturating_sub(nanos))
}
