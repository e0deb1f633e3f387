//! A mailbox as a stream: server-sent events (HTML Living Standard, section 9.2), or a WebSocket (RFC 6455).

use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use bytes::Bytes;
use futures_sink::Sink;
use http_body_util::channel::{Channel, Sender};
use tokio::time::sleep;

use super::authenticate::Authenticated;
use super::bodies::Held;
use super::mailbox_request::MailboxRequest;
use super::request::Query;
use super::view::Reading;
use super::{AppState, mailbox, view};
use crate::accept::RequestPermit;
use crate::gateway::problem::Problem;
use crate::journal::{Page, QueryError, Range, StoredMail};

/// Interval of the signs of life of a stream.
const ALIVE: Duration = Duration::from_secs(15);

/// Events ahead of a reader.
const AHEAD: usize = 1;

/// Bytes of envelopes that are read at once.
const PAGE: usize = 1 << 20;

/// Most bytes of a frame that a WebSocket accepts from its reader, which has nothing to send.
const HEARD: usize = 4096;

/// `GET /v1/mailboxes/{mailbox}/stream`
pub(super) async fn stream(
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
    mailbox_request: MailboxRequest,
) -> Result<Response, Problem> {
    let query = mailbox_request.query(&["after"])?;
    let last = mailbox_request.request.headers().get("last-event-id").map(|id| id.to_str().unwrap_or("?").to_owned());
    // A browser that has seen no event sends an empty id.
    let last = last.filter(|id| !id.is_empty());
    let query = match &last {
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
    if let Ok(upgrade) = upgrade {
        // The connection is no longer one of HTTP, but the same call goes on.
        let upgrade = upgrade.max_message_size(HEARD).max_frame_size(HEARD);
        return Ok(upgrade.on_upgrade(async move |socket| {
            feed(app, known, range, Reader::Socket(Box::new(socket))).await;
            drop(permit);
        }));
    }
    let (sender, body) = Channel::<Bytes, Infallible>::new(AHEAD);
    tokio::spawn(feed(app, known, range, Reader::Events(sender)));
    let mut response = view::typed(StatusCode::OK, "text/event-stream", Body::new(body));
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
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

/// A message on its way to the reader of a stream.
struct Event {
    cursor: String,
    /// JSON.
    text: String,
    /// The bytes of its page, which count until the last event of it is written.
    held: Arc<Held>,
}

/// An event in the write buffer of a connection.
struct Written {
    text: String,
    _held: Arc<Held>,
}

impl AsRef<[u8]> for Written {
    fn as_ref(&self) -> &[u8] {
        self.text.as_bytes()
    }
}

/// The messages of a page. A message that was sent is not handled: its reader acknowledges each.
async fn events(app: &Arc<AppState>, page: Page, held: Arc<Held>) -> Result<Vec<Event>, QueryError> {
    let site = app.clone();
    let write = move || {
        let reading = Reading::skipping(page.position.pruned);
        let one = |mail: &StoredMail| Event {
            cursor: view::cursor(&site, &mail.record.mailbox, reading.place(mail.record.seq)),
            text: view::text(&view::mail(&site, mail, reading)),
            held: held.clone(),
        };
        page.items.iter().map(one).collect()
    };
    app.query.beside(write).await
}

/// The reader of a stream.
enum Reader {
    Events(Sender<Bytes, Infallible>),
    Socket(Box<WebSocket>),
}

impl Reader {
    /// Sends an event; `None` if the reader has left.
    async fn send(&mut self, Event { cursor, text, held }: Event) -> Option<()> {
        match self {
            Self::Events(events) => {
                let text = format!("id: {cursor}\nevent: message\ndata: {text}\n\n");
                events.send_data(Bytes::from_owner(Written { text, _held: held })).await.ok()
            }
            // It waits until the system has the event.
            Self::Socket(socket) => socket.send(Message::Text(text.into())).await.ok(),
        }
    }

    async fn say_alive(&mut self) -> Option<()> {
        match self {
            Self::Events(events) => events.send_data(Bytes::from_static(b":\n\n")).await.ok(),
            Self::Socket(socket) => socket.send(Message::Ping(Bytes::new())).await.ok(),
        }
    }

    /// Waits until the reader has left, as far as the connection tells.
    ///
    /// A frame is read only once the pong to the one before is written: a reader that sends pings and reads nothing is
    /// not read either, so the write buffer never has more than one pong.
    async fn left(&mut self) {
        match self {
            Self::Events(_) => std::future::pending().await,
            Self::Socket(socket) => loop {
                let flushed = poll_fn(|context| Pin::new(&mut **socket).poll_flush(context)).await;
                if flushed.is_err() || !matches!(socket.recv().await, Some(Ok(_))) {
                    return;
                }
            },
        }
    }
}
