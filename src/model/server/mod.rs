//! A server of models whose answers a script has, by the protocols of OpenAI (`/v1/chat/completions`, `/v1/responses`) and
//! Anthropic (`/v1/messages`): hosts and official clients run against it without a key.
//!
//! - A request is read once into [`Asked`], whatever its protocol; the first rule of the script that fits answers it.
//! - A protocol is a [`Protocol`]: the request, the answer as a whole, and the answer as events.
//! - Bodies, connections and the time of a body are bounded.
//!
//! Not here: authentication (each key is accepted), and texts of models.

mod answer;
mod anthropic;
mod chat;
mod request;
mod responses;

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Path, Request, State};
use axum::http::{HeaderValue, Method, StatusCode, Uri, header};
use axum::response::Response;
use axum::routing::{get, post};
use bytes::Bytes;
use http_body_util::channel::{Channel, Sender};
use http_body_util::{BodyExt, Collected, LengthLimitError, Limited};
use serde_json::{Value, json};
use systole_store::clock::Clock;
use tokio::sync::{Semaphore, watch};
use tokio::time::{sleep, timeout};

use super::scripted::{MODEL, Sought};
use crate::accept::{self, Admission, Bounds, Entrance, Listener, Times};
use crate::settings::{Rule, Script};
use crate::terminal::readable;
use answer::Answer;
use request::Asked;

/// Most bytes of the body of a request.
const BODY: usize = 16 << 20;
/// Bodies that are read at once; further ones wait.
const BODIES: usize = 4;
/// Most open connections.
const CONNECTIONS: usize = 256;
/// Time for the head of a request, and for its body.
const TIMES: (Duration, Duration) = (Duration::from_secs(10), Duration::from_secs(30));
/// Events that wait for a slow client.
const AHEAD: usize = 16;
/// The time at which all models were made, in seconds since 1970, and as text.
const MADE: (u64, &str) = (1_767_225_600, "2026-01-01T00:00:00Z");

/// The calls, for a client that misses one.
const CALLS: &str =
    "POST /v1/chat/completions, /v1/responses, /v1/messages and /v1/messages/count_tokens, GET /v1/models";

/// A server that listens.
#[allow(missing_debug_implementations, reason = "a socket")]
pub struct ModelServer {
    listener: Listener,
    shared: Arc<Shared>,
}

/// State that every request can see.
struct Shared {
    script: Script,
    /// Requests that were answered: ids of answers are made of it.
    count: AtomicU64,
    reading: Semaphore,
    clock: Clock,
}

/// A request that is refused.
type Refused = (StatusCode, String);

/// A protocol of a provider.
trait Protocol: 'static {
    /// Reads a request.
    ///
    /// # Errors
    /// The member that is wrong, and what to write.
    fn asked(body: &Value) -> Result<Asked, String>;

    /// The answer to a request without `stream`.
    fn whole(answer: &Answer) -> Value;

    /// The events before the text of an answer.
    fn begin(answer: &Answer) -> Vec<Value>;

    /// The event of a piece of the text.
    fn piece(answer: &Answer, text: &str) -> Value;

    /// The events behind the text.
    fn end(answer: &Answer) -> Vec<Value>;

    /// An event on the wire, the `number`th of its answer.
    fn frame(number: u64, event: Value) -> String;

    /// The last line of a stream, if there is one.
    const LAST: &'static str = "";
}

impl ModelServer {
    /// Listens at an address.
    ///
    /// # Errors
    /// The error of the system, such as that of an address in use.
    pub async fn bind(script: Script, address: SocketAddr) -> io::Result<Self> {
        let shared = Shared { script, count: AtomicU64::new(0), reading: Semaphore::new(BODIES), clock: Clock::real() };
        Ok(Self { listener: Listener::bind(address).await?, shared: Arc::new(shared) })
    }

    /// The address at which it listens.
    ///
    /// # Errors
    /// The error of the system.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.address()
    }

    /// Serves until `end` is ready; then answers under way have 2 s.
    pub async fn serve(self, end: impl Future<Output = ()>) {
        let router = Router::new()
            .route("/v1/chat/completions", post(ask::<chat::Chat>))
            .route("/v1/responses", post(ask::<responses::Responses>))
            .route("/v1/messages", post(ask::<anthropic::Messages>))
            .route("/v1/messages/count_tokens", post(count))
            .route("/v1/models", get(models))
            .route("/v1/models/{*name}", get(model))
            .fallback(missing)
            .method_not_allowed_fallback(missing)
            .with_state(self.shared);
        let bounds =
            Bounds { connections: CONNECTIONS, reserve: 0, per_address: CONNECTIONS, per_principal: CONNECTIONS };
        let times = Times { header: TIMES.0, stall: TIMES.1 };
        let entrance = Entrance { listener: self.listener, tls: None, times, linger: Duration::ZERO };
        let (stop, stopped) = watch::channel(false);
        let served = accept::serve(entrance, Admission::new(bounds), router, stopped);
        tokio::pin!(served);
        tokio::select! {
            () = &mut served => {}
            () = end => {
                stop.send_replace(true);
                served.await;
            }
        }
    }
}

async fn missing(method: Method, uri: Uri) -> Response {
    let why = format!("there is no {method} {}: the calls are {CALLS}", readable(uri.path()));
    refusal(&(StatusCode::NOT_FOUND, why))
}

/// A model, as the clients of both providers read it.
fn listed(name: &str) -> Value {
    json!({
        "id": name, "object": "model", "created": MADE.0, "owned_by": "systole",
        "type": "model", "display_name": name, "created_at": MADE.1,
    })
}

async fn models(State(shared): State<Arc<Shared>>) -> Response {
    let mut names = vec![MODEL];
    for name in shared.script.rules.iter().filter_map(|rule| rule.listener.as_ref()) {
        if !names.contains(&name.as_str()) {
            names.push(name.as_str());
        }
    }
    let all: Vec<Value> = names.iter().map(|name| listed(name)).collect();
    let list = json!({
        "object": "list", "data": all, "has_more": false, "first_id": names.first(), "last_id": names.last(),
    });
    typed(StatusCode::OK, "application/json", list.to_string().into())
}

async fn model(Path(name): Path<String>) -> Response {
    typed(StatusCode::OK, "application/json", listed(&name).to_string().into())
}

async fn count(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    let counted = async {
        let body = shared.body(request).await?;
        let asked = anthropic::counted(&body).map_err(bad)?;
        Ok(json!({ "input_tokens": asked.input }))
    };
    match counted.await {
        Ok(count) => typed(StatusCode::OK, "application/json", count.to_string().into()),
        Err(refused) => refusal(&refused),
    }
}

async fn ask<P: Protocol>(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    let path = request.uri().path().to_owned();
    let answered = async {
        let body = shared.body(request).await?;
        let asked = P::asked(&body).map_err(bad)?;
        let (number, rule) = shared.rule(&asked)?;
        tracing::info!(path, model = readable(&asked.model), rule = number, "answered");
        let answer = shared.answer(asked, rule);
        Ok::<_, Refused>(match answer.streams {
            true => streamed::<P>(answer, rule.clone()),
            false => {
                let pieces = u32::try_from(answer.pieces(rule).count()).unwrap_or(u32::MAX);
                sleep(rule.after.saturating_add(rule.pace.saturating_mul(pieces))).await;
                typed(StatusCode::OK, "application/json", P::whole(&answer).to_string().into())
            }
        })
    };
    match answered.await {
        Ok(response) => response,
        Err(refused) => {
            tracing::warn!(path, status = refused.0.as_u16(), "refused: {}", refused.1);
            refusal(&refused)
        }
    }
}

impl Shared {
    /// Reads the body of a request.
    async fn body(&self, request: Request) -> Result<Value, Refused> {
        // It is never closed.
        let _turn = self.reading.acquire().await;
        let body = Limited::new(request.into_body(), BODY).collect();
        let body = match timeout(TIMES.1, body).await {
            Ok(read) => read.map(Collected::to_bytes).map_err(|error| match error.is::<LengthLimitError>() {
                true => (StatusCode::PAYLOAD_TOO_LARGE, format!("the body has more than {BODY} bytes: send less")),
                false => bad(format!("the body can't be read: {error}")),
            })?,
            Err(_) => {
                let why = format!("the body took longer than {} s", TIMES.1.as_secs());
                return Err((StatusCode::REQUEST_TIMEOUT, why));
            }
        };
        serde_json::from_slice(&body).map_err(|error| bad(format!("the body is no JSON: {error}")))
    }

    /// The rule that answers a request, with its number in the script.
    fn rule(&self, asked: &Asked) -> Result<(usize, &Rule), Refused> {
        let sought = Sought { asker: &asked.model, last: &asked.last, is_summary: false, tools: &asked.tools };
        self.script.rule(&sought).ok_or_else(|| {
            let tools = match asked.tools.is_empty() {
                true => "no tools".to_owned(),
                false => format!("the tools {}", asked.tools.join(", ")),
            };
            bad(format!(
                "no rule of {} fits the request for the model '{}', which offers {tools}, and whose last turn says: {}",
                self.script.name(),
                readable(&asked.model),
                readable(&asked.last)
            ))
        })
    }

    fn answer(&self, asked: Asked, rule: &Rule) -> Answer {
        let number = self.count.fetch_add(1, Ordering::Relaxed) + 1;
        Answer::new(number, self.clock.now().as_nanos() / 1_000_000_000, asked, rule)
    }
}

fn bad(why: String) -> Refused {
    (StatusCode::BAD_REQUEST, why)
}

/// An error, as the clients of both providers read it.
fn refusal((status, why): &Refused) -> Response {
    let kind = match *status {
        StatusCode::NOT_FOUND => "not_found_error",
        StatusCode::PAYLOAD_TOO_LARGE => "request_too_large",
        StatusCode::REQUEST_TIMEOUT => "timeout_error",
        _ => "invalid_request_error",
    };
    let error = json!({ "type": "error", "error": { "type": kind, "message": why, "param": null, "code": null } });
    typed(*status, "application/json", error.to_string().into())
}

fn typed(status: StatusCode, kind: &'static str, body: Body) -> Response {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

/// The answer as server-sent events, which a task writes until the client leaves.
fn streamed<P: Protocol>(answer: Answer, rule: Rule) -> Response {
    let (sender, body) = Channel::<Bytes, Infallible>::new(AHEAD);
    tokio::spawn(async move {
        // A client that has left reads nothing more.
        let _ = speak::<P>(&answer, &rule, sender).await;
    });
    let mut response = typed(StatusCode::OK, "text/event-stream", Body::new(body));
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// Writes the events of an answer; none if its client has left.
async fn speak<P: Protocol>(answer: &Answer, rule: &Rule, mut to: Sender<Bytes>) -> Option<()> {
    sleep(rule.after).await;
    let mut number = 0;
    let mut framed = |events: Vec<Value>| {
        let frame = |event| {
            number += 1;
            P::frame(number - 1, event)
        };
        Bytes::from(events.into_iter().map(frame).collect::<String>())
    };
    to.send_data(framed(P::begin(answer))).await.ok()?;
    for piece in answer.pieces(rule) {
        to.send_data(framed(vec![P::piece(answer, piece)])).await.ok()?;
        sleep(rule.pace).await;
    }
    let mut end = framed(P::end(answer)).to_vec();
    end.extend_from_slice(P::LAST.as_bytes());
    to.send_data(end.into()).await.ok()
}

/// An event with a name, which its member `type` has.
fn named(event: &Value) -> String {
    format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap_or_default())
}
