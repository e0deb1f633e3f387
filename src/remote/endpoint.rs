//! The HTTP side of pushes: connections, bodies, signatures, envelopes.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::Response;
use bytes::{Bytes, BytesMut};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot, watch};
use tokio::time::timeout;

use super::handler::Handled;
use super::inbound::Inbound;
use super::push::{PushOptions, Pushed};
use crate::accept::{self, Admission, Bounds, Entrance, Listener, Times};
use crate::outbound::signature::{self, SignatureError};
use systole_store::clock::Clock;

const TEXT: &str = "text/plain; charset=utf-8";

/// State of the endpoint, which every request can see.
pub(super) struct Endpoint {
    options: PushOptions,
    queue: mpsc::Sender<Pushed>,
    clock: Clock,
    /// Bytes of bodies that have room.
    room: Arc<Semaphore>,
}

/// A request that is refused.
type Refused = (StatusCode, String);

impl Endpoint {
    pub(super) fn new(options: PushOptions, queue: mpsc::Sender<Pushed>, clock: Clock) -> Arc<Self> {
        let bytes = options.bodies.max(options.limits.message_bytes).min(Semaphore::MAX_PERMITS);
        Arc::new(Self { options, queue, clock, room: Arc::new(Semaphore::new(bytes)) })
    }
}

/// Serves until `end` is true; then lets the requests in flight end.
pub(super) async fn serve(listener: Listener, endpoint: Arc<Endpoint>, end: watch::Receiver<bool>) {
    let PushOptions { connections, connections_per_address, header_time, body_time, .. } = endpoint.options;
    // The gateway is known by the signature of each message alone: all connections are unauthenticated, and bounded as
    // such.
    let bounds = Bounds {
        connections: connections.max(1),
        reserve: 0,
        per_address: connections_per_address.max(1),
        per_principal: connections.max(1),
    };
    let entrance = Entrance {
        listener,
        tls: None,
        times: Times { header: header_time, stall: body_time },
        linger: Duration::ZERO,
    };
    let router = Router::new().fallback(answer).with_state(endpoint);
    accept::serve(entrance, Admission::new(bounds), router, end).await;
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
    /// Takes the message of a request, and waits for its outcome.
    async fn take(&self, request: Request) -> Result<Handled, Refused> {
        if request.uri().path() != self.options.path {
            return Err((StatusCode::NOT_FOUND, "no push is accepted at that path".to_owned()));
        }
        if request.method() != Method::POST {
            return Err((StatusCode::METHOD_NOT_ALLOWED, "a push is a POST".to_owned()));
        }
        let (head, body) = request.into_parts();
        // No body is read without a valid, recent signature.
        let signature = self.signature(&head.headers)?;
        let (body, _held) = self.body(&head.headers, body).await?;
        // No body with a wrong signature is parsed.
        self.verify(signature, &body)?;
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

    /// Reads a body; also returns the room that its bytes take.
    async fn body(&self, headers: &HeaderMap, body: Body) -> Result<(Bytes, OwnedSemaphorePermit), Refused> {
        let most = self.options.limits.message_bytes;
        let too_large = || (StatusCode::PAYLOAD_TOO_LARGE, format!("a body may have {most} bytes"));
        let announced = headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
        if announced.is_some_and(|bytes: u64| bytes > most as u64) {
            return Err(too_large());
        }
        let full = || (StatusCode::SERVICE_UNAVAILABLE, "too many bytes of bodies wait".to_owned());
        let mut held = self.room.clone().try_acquire_many_owned(0).map_err(|_| stopping())?;
        let (time, mut body) = (self.options.body_time, Limited::new(body, most));
        let all = async {
            let mut all = BytesMut::new();
            while let Some(frame) = body.frame().await {
                let frame = frame.map_err(|error| match error.is::<LengthLimitError>() {
                    true => too_large(),
                    false => (StatusCode::BAD_REQUEST, format!("the body: {error}")),
                })?;
                if let Ok(data) = frame.into_data() {
                    let bytes = u32::try_from(data.len()).map_err(|_| too_large())?;
                    held.merge(self.room.clone().try_acquire_many_owned(bytes).map_err(|_| full())?);
                    all.extend_from_slice(&data);
                }
            }
            Ok(all.freeze())
        };
        match timeout(time, all).await {
            Ok(body) => Ok((body?, held)),
            Err(_) => Err((StatusCode::REQUEST_TIMEOUT, format!("the body took longer than {time:?}"))),
        }
    }

    /// The one signature of the request, if pushes are signed; its time is checked.
    fn signature<'h>(&self, headers: &'h HeaderMap) -> Result<&'h str, Refused> {
        if self.options.secret.is_none() {
            return Ok("");
        }
        let mut shown = headers.get_all(signature::HEADER).iter();
        let (Some(signature), None) = (shown.next(), shown.next()) else {
            return Err(unsigned(format!("there has to be one {}", signature::HEADER)));
        };
        let shown = signature.to_str().unwrap_or_default();
        signature::check_time(shown, self.clock.now(), self.options.tolerance).map_err(wrongly_signed)?;
        Ok(shown)
    }

    fn verify(&self, signature: &str, body: &[u8]) -> Result<(), Refused> {
        let Some(secret) = &self.options.secret else { return Ok(()) };
        secret.verify(signature, body, self.clock.now(), self.options.tolerance).map_err(wrongly_signed)
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

fn unsigned(why: String) -> Refused {
    (StatusCode::UNAUTHORIZED, why)
}

fn wrongly_signed(error: SignatureError) -> Refused {
    unsigned(format!("{}: {error}", signature::HEADER))
}

fn stopping() -> Refused {
    (StatusCode::SERVICE_UNAVAILABLE, "the agent is stopping".to_owned())
}
