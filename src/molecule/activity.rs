//! What came for a workspace: `GET /workspaces/{id}/activity`.

use std::collections::HashMap;
use std::time::Duration;

use axum::http::StatusCode;
use axum::response::Response;

use super::Facade;
use super::ids::parse;
use super::room::Room;
use super::rows::{ERROR, RECEIVED, Row, rows};
use super::said;
use crate::gateway::seam::{Gate, History, Of, Problem, document};
use crate::vocab::{Name, Time, ns};

/// Rows of a page, unless something else is asked for, and at most.
const LIMIT: (u64, u64) = (100, 500);

/// How far back `since_secs` looks at most: 30 days.
const SINCE: u64 = 30 * 24 * 60 * 60;

/// `GET /workspaces/{id}/activity`: strictly behind the cursor, oldest first.
pub(super) async fn list(room: Room) -> Result<Response, Problem> {
    let (own, query) = (room.workspace()?, room.query()?);
    let (gate, facade) = (&room.gate, &room.facade);
    let of = history(gate, facade, &own.name, &query).await?;
    let received = query.get("type").is_none_or(|kind| kind == RECEIVED);
    let shown = match of {
        Some(of) => {
            let from_peers = of.senders.is_some();
            let page = rows(gate, &facade.people, of, |row: &Row| !from_peers || !row.is_persons()).await?;
            // Whoever looks back answers nothing.
            if received && !query.contains_key("before_ts") {
                facade.turns.show(&own.name, &page);
            }
            page.iter().map(Row::show).collect()
        }
        None => Vec::new(),
    };
    Ok(document(&shown.into()))
}

/// What a query asks for; none if there is nothing of that type.
async fn history(
    gate: &Gate,
    facade: &Facade,
    own: &Name,
    query: &HashMap<String, String>,
) -> Result<Option<History>, Problem> {
    let limit = number(query, "limit")?.unwrap_or(LIMIT.0).min(LIMIT.1) as usize;
    let since = number(query, "since_secs")?.map(|seconds| ago(gate.now(), seconds.min(SINCE)));
    let peer = query.get("peer_id").map(|text| {
        parse(text).ok_or_else(|| Problem::bad_request("'peer_id' has to be a UUID: that of 'source_id' in a row"))
    });
    let before = query.get("before_ts").map(|text| {
        text.parse::<Time>().map_err(|_| Problem::bad_request("'before_ts' has to be a date and time (RFC 3339)"))
    });
    let (peer, before) = (peer.transpose()?, before.transpose()?);
    let after = match query.get("since_id") {
        Some(id) => behind(gate, own, id).await?,
        None => 0,
    };
    let of = match query.get("type").map_or(RECEIVED, String::as_str) {
        RECEIVED => Of::Payload(said()),
        ERROR => Of::Namespace(ns::CORE),
        _ => return Ok(None),
    };
    let (mailbox, senders) = (own.clone(), peer.map(|peer| facade.people.senders(peer)));
    Ok(Some(History { mailbox, after, limit, of, senders, since, before, waiting: false }))
}

/// The place of a row. What is nowhere and what is somebody else's are told alike.
async fn behind(gate: &Gate, own: &Name, id: &str) -> Result<u64, Problem> {
    let item = match id.parse() {
        Ok(id) => gate.mail(own, id).await?,
        Err(_) => None,
    };
    item.map(|mail| mail.record.seq).ok_or_else(|| {
        let detail = "no row of this workspace has that 'since_id', or it was forgotten: go on without one";
        Problem::new(StatusCode::GONE, "cursor_lost", "That place is lost", detail)
    })
}

/// A whole number from 1 on.
fn number(query: &HashMap<String, String>, key: &str) -> Result<Option<u64>, Problem> {
    let Some(text) = query.get(key) else { return Ok(None) };
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    // What is too large for a number is more than may be asked for, like others.
    let number = digits.then(|| text.parse().unwrap_or(u64::MAX)).filter(|number| *number > 0);
    number.map(Some).ok_or_else(|| Problem::bad_request(format!("'{key}' has to be a whole number of at least 1")))
}

fn ago(now: Time, seconds: u64) -> Time {
    let nanos = u64::try_from(Duration::from_secs(seconds).as_nanos()).unwrap_or(u64::MAX);
    Time::from_nanos(now.as_nanos().saturating_sub(nanos))
}
