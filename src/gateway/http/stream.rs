//! A mailbox as a stream of server-sent events (HTML Living Standard, section 9.2).

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Path, Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use bytes::Bytes;
use http_body_util::channel::{Channel, Sender};

use super::caller::Caller;
use super::request::Query;
use super::{Gate, mailbox, view};
use crate::gateway::problem::Problem;
use crate::gateway::store::Range;

/// How often a stream says that it is alive.
const ALIVE: Duration = Duration::from_secs(15);

/// Events that wait for a reader.
const AHEAD: usize = 16;

/// `GET /v1/mailboxes/{mailbox}/stream`
pub(super) async fn stream(
    State(gate): State<Arc<Gate>>,
    caller: Caller,
    Path(name): Path<String>,
    request: Request,
) -> Result<Response, Problem> {
    let name = caller.mailbox(&gate, &name)?;
    let query = Query::of(&request, &["after"])?;
    let last = request.headers().get("last-event-id").map(|id| id.to_str().unwrap_or_default().to_owned());
    let query = match &last {
        Some(id) => Query::only("after", id),
        None => query,
    };
    let (range, from) = mailbox::range(&gate, name, &query)?;
    // A place that is lost is told at once.
    mailbox::page(&gate, Range { limit: 1, ..range.clone() }, from).await?;
    let (sender, body) = Channel::<Bytes, Infallible>::new(AHEAD);
    tokio::spawn(feed(gate, range, sender));
    let mut response = view::typed(StatusCode::OK, "text/event-stream", Body::new(body));
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}

/// Sends what is there and what comes, until nobody reads or the organism stops.
async fn feed(gate: Arc<Gate>, mut range: Range, mut to: Sender<Bytes, Infallible>) {
    let Some(bell) = gate.mailboxes.bell(&range.mailbox) else { return };
    while !gate.mailboxes.is_stopping() {
        let mut rung = std::pin::pin!(bell.notified());
        rung.as_mut().enable();
        let Ok(page) = gate.mailboxes.store().page(range.clone()).await else { return };
        for item in &page.items {
            let data = view::item(&gate, item, page.position.pruned);
            let id = data["cursor"].as_str().unwrap_or_default();
            let event = format!("id: {id}\nevent: message\ndata: {data}\n\n");
            if to.send_data(event.into()).await.is_err() {
                return;
            }
            range.after = item.seq;
        }
        let waits = page.items.is_empty() && tokio::time::timeout(ALIVE, rung).await.is_err();
        if waits && to.send_data(Bytes::from_static(b":\n\n")).await.is_err() {
            return;
        }
    }
}
