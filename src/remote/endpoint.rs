//! The HTTP side of pushes: connections, bodies, signatures, envelopes.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::Response;
use bytes::Bytes;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{Semaphore, mpsc, oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::{Duration, sleep, timeout};

use super::handler::Handled;
use super::inbound::Inbound;
use super::push::{PushOptions, Pushed};
use crate::outbound::signature;
use crate::shell::clock::Clock;

/// Bytes of the head of a request.
const HEAD: usize = 64 << 10;
/// How long requests that are under way may take once it ends.
const GRACE: Duration = Duration::from_secs(2);
/// How long nobody is let in after the system could not: it may be out of files.
const PAUSE: Duration = Duration::from_millis(50);

const TEXT: &str = "text/plain; charset=utf-8";

/// What every request can see.
pub(super) struct Endpoint {
    options: PushOptions,
    queue: mpsc::Sender<Pushed>,
    clock: Clock,
}

/// A request that is refused.
type Refused = (StatusCode, String);

impl Endpoint {
    pub(super) fn new(options: PushOptions, queue: mpsc::Sender<Pushed>, clock: Clock) -> Arc<Self> {
        Arc::new(Self { options, queue, clock })
    }
}

/// Serves until told to end; then lets requests that are under way end.
pub(super) async fn serve(listener: TcpListener, endpoint: Arc<Endpoint>, mut end: watch::Receiver<bool>) {
    let room = Arc::new(Semaphore::new(endpoint.options.connections.max(1)));
    let mut connections = JoinSet::new();
    loop {
        let entered = async {
            let permit = room.clone().acquire_owned().await;
            (listener.accept().await, permit)
        };
        let entered = tokio::select! {
            _ = end.wait_for(|end| *end) => break,
            entered = entered => entered,
        };
        let (Ok((stream, _)), Ok(permit)) = entered else {
            sleep(PAUSE).await;
            continue;
        };
        let (endpoint, end) = (endpoint.clone(), end.clone());
        connections.spawn(async move {
            connection(stream, endpoint, end).await;
            drop(permit);
        });
        // What has ended is forgotten.
        while connections.try_join_next().is_some() {}
    }
    drop(listener);
    let _ = timeout(GRACE, async { while connections.join_next().await.is_some() {} }).await;
}

async fn connection(stream: TcpStream, endpoint: Arc<Endpoint>, mut end: watch::Receiver<bool>) {
    // It only makes small answers wait for others.
    let _ = stream.set_nodelay(true);
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(endpoint.options.header_time).max_buf_size(HEAD);
    let router = Router::new().fallback(answer).with_state(endpoint);
    let service = TowerToHyperService::new(router);
    let mut connection = std::pin::pin!(builder.serve_connection(TokioIo::new(stream), service));
    let ended = async { drop(end.wait_for(|end| *end).await) };
    // Whoever leaves in the middle is nobody's mistake.
    tokio::select! {
        _ = connection.as_mut() => {}
        () = ended => {
            connection.as_mut().graceful_shutdown();
            let _ = connection.await;
        }
    }
}

async fn answer(State(endpoint): State<Arc<Endpoint>>, request: Request) -> Response {
    let (status, kind, text) = match endpoint.take(request).await {
        Ok(Handled::Reply(reply)) => (StatusCode::OK, "application/xml", reply),
        Ok(Handled::Later) => (StatusCode::ACCEPTED, TEXT, String::new()),
        Err((status, why)) => (status, TEXT, why),
    };
    let mut response = Response::new(Body::from(text));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    if status == StatusCode::SERVICE_UNAVAILABLE {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    }
    response
}

impl Endpoint {
    /// From a request to what came of its message.
    async fn take(&self, request: Request) -> Result<Handled, Refused> {
        if request.uri().path() != self.options.path {
            return Err((StatusCode::NOT_FOUND, "nothing is pushed to that path".to_owned()));
        }
        if request.method() != Method::POST {
            return Err((StatusCode::METHOD_NOT_ALLOWED, "a push is a POST".to_owned()));
        }
        let (head, body) = request.into_parts();
        let body = self.body(&head.headers, body).await?;
        // Nothing of a body that somebody else wrote is looked at.
        self.verify(&head.headers, &body)?;
        let message = self.message(&head.headers, &body)?;
        let (tell, told) = oneshot::channel();
        self.queue.try_send(Pushed { message, tell }).map_err(|error| match error {
            TrySendError::Full(_) => (StatusCode::SERVICE_UNAVAILABLE, "too many messages wait".to_owned()),
            TrySendError::Closed(_) => stopping(),
        })?;
        match told.await {
            Ok(said) => said.map_err(|why| (StatusCode::INTERNAL_SERVER_ERROR, why)),
            Err(_) => Err(stopping()),
        }
    }

    async fn body(&self, headers: &HeaderMap, body: Body) -> Result<Bytes, Refused> {
        let most = self.options.limits.message_bytes;
        let too_large = || (StatusCode::PAYLOAD_TOO_LARGE, format!("a body may have {most} bytes"));
        let announced = headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
        if announced.is_some_and(|bytes: u64| bytes > most as u64) {
            return Err(too_large());
        }
        let time = self.options.body_time;
        match timeout(time, Limited::new(body, most).collect()).await {
            Ok(Ok(body)) => Ok(body.to_bytes()),
            Ok(Err(error)) if error.is::<LengthLimitError>() => Err(too_large()),
            Ok(Err(error)) => Err((StatusCode::BAD_REQUEST, format!("the body: {error}"))),
            Err(_) => Err((StatusCode::REQUEST_TIMEOUT, format!("the body took longer than {time:?}"))),
        }
    }

    fn verify(&self, headers: &HeaderMap, body: &[u8]) -> Result<(), Refused> {
        let Some(secret) = &self.options.secret else { return Ok(()) };
        let refused = |why: String| (StatusCode::UNAUTHORIZED, why);
        let mut shown = headers.get_all(signature::HEADER).iter();
        let (Some(signature), None) = (shown.next(), shown.next()) else {
            return Err(refused(format!("there has to be one {}", signature::HEADER)));
        };
        let signature = signature.to_str().unwrap_or_default();
        secret
            .verify(signature, body, self.clock.now(), self.options.tolerance)
            .map_err(|error| refused(format!("{}: {error}", signature::HEADER)))
    }

    fn message(&self, headers: &HeaderMap, body: &Bytes) -> Result<Inbound, Refused> {
        let refused = |why: String| (StatusCode::BAD_REQUEST, why);
        let text = std::str::from_utf8(body).map_err(|_| refused("the body is no UTF-8".to_owned()))?;
        let key = headers.get("idempotency-key").and_then(|key| key.to_str().ok()?.parse().ok());
        let message = Inbound::read(text, key, &self.options.limits).map_err(|broken| refused(broken.to_string()))?;
        message.source.transport().map_err(|unknown| refused(unknown.to_string()))?;
        Ok(message)
    }
}

fn stopping() -> Refused {
    (StatusCode::SERVICE_UNAVAILABLE, "the agent is stopping".to_owned())
}
