//! A request on its way to the active node, and its answer on the way back.
//!
//! Heads lose their hop-by-hop fields (RFC 9110, section 7.6.1), bodies are passed on as they come, also an upgrade to
//! another protocol. A request carries the name of the node that forwards it, and is never forwarded twice.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, HttpBody};
use axum::http::header::{
    CONNECTION, EXPECT, HeaderMap, HeaderName, HeaderValue, TE, TRAILER, TRANSFER_ENCODING, UPGRADE,
};
use axum::http::request::Parts;
use axum::http::{Extensions, Method, StatusCode};
use axum::response::Response;
use bytes::Bytes;
use http_body::{Frame, SizeHint};
use http_body_util::BodyExt;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use systole_core::lease::Holder;
use tokio::io::copy_bidirectional;
use tokio::time::sleep;
use url::Url;

use super::kept::{KeptBody, Replay};
use super::view::View;
use crate::outbound::http::{Client, HttpError, Request};

/// The field with the name of the node that forwards a request.
pub(super) const HOP: HeaderName = HeaderName::from_static("systole-forwarded-by");

/// The field of an answer to a forwarded request that had no effect, since the node is not the active one.
pub(super) const UNTOUCHED: HeaderName = HeaderName::from_static("systole-untouched");

/// Fields that are about one connection.
const OF_HOP: [HeaderName; 9] = [
    CONNECTION,
    EXPECT,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-authorization"),
    HeaderName::from_static("proxy-connection"),
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
];

/// Time for an answer that is on its way when another node takes the organism over.
const LATE: Duration = Duration::from_secs(1);

/// What came of a request that was forwarded.
pub(super) enum Forwarded {
    /// The answer of the active node.
    Answer(Response),
    /// The active node has certainly not served it, or it may be repeated.
    Again,
    /// It is unknown whether the active node has served it.
    Unknown(String),
    /// The client has broken off.
    Broken,
}

/// Sends a request to the node that has the lease.
pub(super) async fn forward(
    client: &Client,
    view: &Arc<View>,
    holder: &Arc<Holder>,
    head: &Parts,
    (body, kept): (Replay, &KeptBody),
) -> Forwarded {
    let target = head.uri.path_and_query().map_or("/", |target| target.as_str());
    let Ok(url) = Url::parse(&format!("{}{target}", holder.url)) else {
        return Forwarded::Unknown(format!("the URL of the node '{}' can't be used", holder.node));
    };
    let upgrade = head.headers.get(UPGRADE).filter(|_| names(&head.headers, &UPGRADE)).cloned();
    let mut request = Request::new(head.method.clone(), url);
    request.headers = end_to_end(&head.headers);
    request.headers.insert(HOP, view.card.name.parse().unwrap_or_else(|_| HeaderValue::from_static("?")));
    if let Some(protocol) = &upgrade {
        request.headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
        request.headers.insert(UPGRADE, protocol.clone());
    }
    request.body = body.boxed_unsync();
    let is_safe = matches!(head.method, Method::GET | Method::HEAD);
    let again = |why: String| if is_safe { Forwarded::Again } else { Forwarded::Unknown(why) };
    let moved = moved(view.clone(), holder.clone());
    let answer = tokio::select! {
        biased;
        answer = client.execute(request) => answer,
        () = kept.broken() => return Forwarded::Broken,
        () = moved => return again(format!("the node '{}' has lost the organism before it answered", holder.node)),
    };
    match answer {
        Ok(response) if response.headers().contains_key(UNTOUCHED) => Forwarded::Again,
        Ok(response) => Forwarded::Answer(answered(response.into_hyper(), view, holder, &head.extensions)),
        Err(error) if error.is_connect() => Forwarded::Again,
        Err(error) => again(told(&error, holder)),
    }
}

fn told(error: &HttpError, holder: &Holder) -> String {
    format!("the node '{}' has not answered: {}", holder.node, chain(error))
}

/// An error with its causes.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text = format!("{text}: {cause}");
        next = cause.source();
    }
    text
}

/// Waits until a lease has moved, and what was on its way from its node would be here.
async fn moved(view: Arc<View>, holder: Arc<Holder>) {
    view.until_moved(&holder).await;
    sleep(LATE).await;
}

/// The answer for the client.
fn answered(
    response: hyper::Response<hyper::body::Incoming>,
    view: &Arc<View>,
    holder: &Arc<Holder>,
    asked: &Extensions,
) -> Response {
    let moved = moved(view.clone(), holder.clone());
    if response.status() == StatusCode::SWITCHING_PROTOCOLS {
        let protocol = response.headers().get(UPGRADE).cloned();
        let mut answer = Response::new(Body::empty());
        *answer.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
        *answer.headers_mut() = end_to_end(response.headers());
        answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("upgrade"));
        protocol.map(|protocol| answer.headers_mut().insert(UPGRADE, protocol));
        if let Some(here) = asked.get::<OnUpgrade>().cloned() {
            tokio::spawn(async move {
                let (Ok(here), Ok(there)) = tokio::join!(here, hyper::upgrade::on(response)) else { return };
                let (mut here, mut there) = (TokioIo::new(here), TokioIo::new(there));
                tokio::select! {
                    // Either side may break off.
                    _ = copy_bidirectional(&mut here, &mut there) => {}
                    () = moved => {}
                }
            });
        }
        return answer;
    }
    let (head, body) = response.into_parts();
    let mut answer = Response::new(Body::new(Until { body, over: Box::pin(moved) }));
    *answer.status_mut() = head.status;
    *answer.headers_mut() = end_to_end(&head.headers);
    answer
}

/// Returns whether `Connection` names a field.
fn names(headers: &HeaderMap, field: &HeaderName) -> bool {
    let named = headers.get_all(CONNECTION).iter().filter_map(|value| value.to_str().ok());
    named.flat_map(|value| value.split(',')).any(|name| name.trim().eq_ignore_ascii_case(field.as_str()))
}

/// The fields that are not about one connection.
fn end_to_end(headers: &HeaderMap) -> HeaderMap {
    let is_kept = |name: &HeaderName| !OF_HOP.contains(name) && *name != UNTOUCHED && !names(headers, name);
    headers.iter().filter(|(name, _)| is_kept(name)).map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// The body of an answer, which breaks off when another node has taken the organism over: a node that was stopped would never
/// end it.
struct Until<B> {
    body: B,
    over: Pin<Box<dyn Future<Output = ()> + Send>>,
}

/// The active node has lost the organism.
#[derive(Debug, thiserror::Error)]
#[error("another node has taken the organism over")]
struct Moved;

impl<B: HttpBody<Data = Bytes, Error: std::error::Error + Send + Sync + 'static> + Unpin> HttpBody for Until<B> {
    type Data = Bytes;
    type Error = Box<dyn std::error::Error + Send + Sync>;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        match Pin::new(&mut self.body).poll_frame(context) {
            Poll::Ready(frame) => Poll::Ready(frame.map(|frame| frame.map_err(Into::into))),
            Poll::Pending => self.over.as_mut().poll(context).map(|()| Some(Err(Moved.into()))),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_one_connection_are_dropped_and_those_that_it_names() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("connection", "close, X-Own"),
            ("x-own", "1"),
            ("te", "trailers"),
            ("upgrade", "websocket"),
            ("systole-untouched", "1"),
            ("authorization", "Bearer token"),
            ("content-length", "4"),
        ] {
            headers.append(name, HeaderValue::from_static(value));
        }
        let left = end_to_end(&headers);
        let names: Vec<_> = left.keys().map(HeaderName::as_str).collect();
        assert_eq!(names.len(), 2, "{names:?}");
        assert!(left.contains_key("authorization") && left.contains_key("content-length"));
    }
}
