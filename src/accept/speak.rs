//! HTTP/1.1 on one connection, by hyper.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use axum::Router;
use axum::body::{Body, HttpBody};
use axum::extract::Request;
use axum::http::StatusCode;
use axum::response::Response;
use bytes::Bytes;
use http_body::{Frame, SizeHint};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;

use super::Times;
use super::refusal::HEAD;
use super::room::{Stay, Visit};
use super::wire::{Progress, Wire};

/// Speaks HTTP until the other side leaves, or this one ends.
pub(super) async fn speak(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    stay: Arc<Stay>,
    times: Times,
    router: Router,
    mut end: watch::Receiver<bool>,
) {
    let (progress, router) = (Progress::new(), TowerToHyperService::new(router));
    let wire = Wire::new(stream, progress.clone(), times.stall);
    let service = service_fn(move |request: hyper::Request<Incoming>| {
        let visit = Visit::begin(&stay);
        progress.begin(!request.body().is_end_stream());
        let mut request: Request = request.map(|body| Body::new(Heard { body, progress: progress.clone() }));
        request.extensions_mut().insert(visit.clone());
        let (answer, progress) = (router.call(request), progress.clone());
        async move { answer.await.map(|response| tell(response, visit, progress)) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(times.header)
        .max_header_size(HEAD)
        .max_buf_size(HEAD)
        .serve_connection(TokioIo::new(wire), service)
        .with_upgrades();
    let mut connection = std::pin::pin!(connection);
    let ended = async { drop(end.wait_for(|end| *end).await) };
    // A client that leaves in the middle is nobody's mistake.
    tokio::select! {
        _ = connection.as_mut() => {}
        () = ended => {
            connection.as_mut().graceful_shutdown();
            let _ = connection.await;
        }
    }
}

/// The answer to a visit, which ends with it.
fn tell(response: Response, visit: Visit, progress: Arc<Progress>) -> Response {
    if response.status() == StatusCode::SWITCHING_PROTOCOLS {
        progress.upgrade();
        return response;
    }
    response.map(|body| Body::new(Told { body, _end: End { progress, _visit: visit } }))
}

/// The body of a request.
struct Heard {
    body: Incoming,
    progress: Arc<Progress>,
}

impl HttpBody for Heard {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        if frame.is_none() || self.body.is_end_stream() {
            self.progress.read();
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// The body of an answer.
struct Told {
    body: Body,
    _end: End,
}

/// The end of an answer, when it is dropped.
struct End {
    progress: Arc<Progress>,
    _visit: Visit,
}

impl Drop for End {
    fn drop(&mut self) {
        self.progress.end();
    }
}

impl HttpBody for Told {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
