//! The reader of a stream: server-sent events (HTML Living Standard, section 9.2), or a WebSocket (RFC 6455).

use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::ws::{CloseFrame, Message, Utf8Bytes, WebSocket, WebSocketUpgrade, close_code};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use bytes::Bytes;
use futures_sink::Sink;
use http_body_util::channel::{Channel, Sender};
use tokio::sync::oneshot;

use super::bodies::Held;
use super::view;
use crate::accept::{GuardedBody, RequestPermit};

/// Interval of the signs of life of a stream.
pub(super) const ALIVE: Duration = Duration::from_secs(15);

/// Events ahead of a reader.
const AHEAD: usize = 1;

/// Most bytes of a frame that a WebSocket accepts from its reader, which has nothing to send.
const HEARD: usize = 4096;

/// The reader of a stream.
pub(in crate::gateway) enum Reader {
    /// The body of an answer, and the news that it is dropped.
    Events(Sender<Bytes, Infallible>, oneshot::Receiver<()>),
    Socket(Box<WebSocket>),
}

/// An event on its way to the reader of a stream.
pub(super) struct Event {
    /// The place behind it, if it has one.
    pub(super) cursor: Option<String>,
    pub(super) name: &'static str,
    /// JSON.
    pub(super) text: String,
    /// The bytes that count until the event is written.
    pub(super) held: Option<Arc<Held>>,
}

/// An event in the write buffer of a connection.
struct Written {
    text: String,
    _held: Option<Arc<Held>>,
}

impl AsRef<[u8]> for Written {
    fn as_ref(&self) -> &[u8] {
        self.text.as_bytes()
    }
}

impl Reader {
    /// Answers with a stream, which `feed` feeds: a WebSocket if the request asks for one. It counts as a call in flight as
    /// long as it lasts.
    pub(in crate::gateway) fn serve<F>(
        upgrade: Option<WebSocketUpgrade>,
        permit: Option<RequestPermit>,
        feed: impl FnOnce(Self) -> F + Send + 'static,
    ) -> Response
    where
        F: Future<Output = ()> + Send + 'static,
    {
        if let Some(upgrade) = upgrade {
            // The connection is no longer one of HTTP, but the same call goes on.
            let upgrade = upgrade.max_message_size(HEARD).max_frame_size(HEARD);
            return upgrade.on_upgrade(async move |socket| {
                feed(Self::Socket(Box::new(socket))).await;
                drop(permit);
            });
        }
        let (sender, body) = Channel::<Bytes, Infallible>::new(AHEAD);
        let (here, gone) = oneshot::channel::<()>();
        tokio::spawn(feed(Self::Events(sender, gone)));
        let body = Body::new(GuardedBody::new(Body::new(body), here));
        let mut response = view::typed(StatusCode::OK, "text/event-stream", body);
        response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        response
    }

    /// Sends an event; `None` if the reader has left.
    pub(super) async fn send(&mut self, Event { cursor, name, text, held }: Event) -> Option<()> {
        match self {
            Self::Events(events, _) => {
                let id = cursor.map(|cursor| format!("id: {cursor}\n")).unwrap_or_default();
                let text = format!("{id}event: {name}\ndata: {text}\n\n");
                events.send_data(Bytes::from_owner(Written { text, _held: held })).await.ok()
            }
            // It waits until the system has the event.
            Self::Socket(socket) => socket.send(Message::Text(text.into())).await.ok(),
        }
    }

    /// Says that nothing more comes: a WebSocket ends with a close frame (RFC 6455, section 7.4.1).
    pub(super) async fn end(&mut self) -> Option<()> {
        match self {
            Self::Events(..) => Some(()),
            Self::Socket(socket) => {
                let frame = CloseFrame { code: close_code::NORMAL, reason: Utf8Bytes::default() };
                socket.send(Message::Close(Some(frame))).await.ok()
            }
        }
    }

    pub(super) async fn say_alive(&mut self) -> Option<()> {
        match self {
            Self::Events(events, _) => events.send_data(Bytes::from_static(b":\n\n")).await.ok(),
            Self::Socket(socket) => socket.send(Message::Ping(Bytes::new())).await.ok(),
        }
    }

    /// Waits until the reader has left, as far as the connection tells.
    ///
    /// A frame is read only once the pong to the one before is written: a reader that sends pings and reads nothing is
    /// not read either, so the write buffer never has more than one pong.
    pub(super) async fn left(&mut self) {
        match self {
            // The body sends nothing by this: it is dropped.
            Self::Events(_, gone) => drop(gone.await),
            Self::Socket(socket) => loop {
                let flushed = poll_fn(|context| Pin::new(&mut **socket).poll_flush(context)).await;
                if flushed.is_err() || !matches!(socket.recv().await, Some(Ok(_))) {
                    return;
                }
            },
        }
    }
}
