//! The entrance of a node: requests go to the organism here, to the active node, or wait for the one that takes over.
//!
//! A request is sent once more only if it had certainly no effect: the active node could not be connected to, or has said
//! that it is not the active one; and if its method is GET or HEAD.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use systole_core::lease::Holder;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep, timeout_at};
use tower_service::Service;

use super::ClusterError;
use super::driver::Command;
use super::forward::{Forwarded, HOP, UNTOUCHED, forward};
use super::kept::KeptBody;
use super::view::{Place, View};
use crate::gateway::{NodeEntrance, Problem, Untouched};
use crate::outbound::http::Client;
use crate::outbound::tls;

/// Time for which a request waits for an active node.
const WAIT: Duration = Duration::from_secs(15);

/// Pause between two looks for the active node, while a request waits for it.
const PAUSE: Duration = Duration::from_millis(150);

/// Time for a connection to another node.
const CONNECT: Duration = Duration::from_secs(2);

/// Most bytes of the figures of the organism here.
const FIGURES: usize = 16 << 20;

/// What requests need on their way.
#[derive(Debug)]
pub(super) struct Front {
    view: Arc<View>,
    commands: mpsc::UnboundedSender<Command>,
    client: Client,
    /// The bytes of bodies that are kept to be sent once more, and the most of them.
    kept: Arc<AtomicUsize>,
    most: usize,
}

/// Starts the thread of the entrance.
pub(super) fn start(
    entrance: NodeEntrance,
    front: Front,
    end: watch::Receiver<bool>,
    patience: Duration,
) -> io::Result<std::thread::JoinHandle<()>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let router = Router::new().fallback(serve).with_state(Arc::new(front));
    std::thread::Builder::new().name("front".to_owned()).spawn(move || {
        if let Err(error) = runtime.block_on(entrance.run(router, end, patience)) {
            tracing::error!(%error, "the entrance of this node has ended");
        }
        runtime.shutdown_background();
    })
}

/// A client of other nodes. Its connections belong to the runtime on which they are made, and end with that.
pub(super) fn client(certificates: &[u8]) -> Result<Client, ClusterError> {
    Ok(Client::new(tls(certificates)?, None, Some(CONNECT)))
}

async fn serve(State(front): State<Arc<Front>>, request: Request) -> Response {
    match request.uri().path() {
        "/livez" => front.livez(request).await,
        "/readyz" => front.readyz(request).await,
        "/metrics" => front.metrics(request).await,
        _ => front.pass(request).await,
    }
}

impl Front {
    /// A front that trusts these certificates of other nodes, in PEM, beside those of the system.
    pub(super) fn new(
        view: Arc<View>,
        commands: mpsc::UnboundedSender<Command>,
        certificates: &[u8],
        most: usize,
    ) -> Result<Self, ClusterError> {
        let client = client(certificates)?;
        Ok(Self { view, commands, client, kept: Arc::default(), most })
    }

    /// Has the lease looked at soon.
    fn poke(&self) {
        // The thread of the lease ends with the node.
        let _ = self.commands.send(Command::Poke);
    }

    async fn pass(self: Arc<Self>, request: Request) -> Response {
        let (head, body) = request.into_parts();
        let kept = KeptBody::new(body, &self.kept, self.most);
        let is_forwarded = head.headers.contains_key(HOP);
        let until = Instant::now() + WAIT;
        let mut changes = self.view.changes();
        let mut held = None;
        loop {
            changes.mark_unchanged();
            let Some(body) = kept.replay() else {
                let detail = "the request had no effect, and is too long to be kept for another node: send it again";
                return Problem::node(StatusCode::SERVICE_UNAVAILABLE, "node", detail).into_response();
            };
            match self.view.place() {
                Place::Here(mut router) => {
                    let mut request = Request::new(Body::new(body));
                    *request.method_mut() = head.method.clone();
                    *request.uri_mut() = head.uri.clone();
                    *request.version_mut() = head.version;
                    *request.headers_mut() = head.headers.clone();
                    *request.extensions_mut() = head.extensions.clone();
                    drop(held.take());
                    let answered = router.call(request).await;
                    let response = answered.unwrap_or_else(|never| match never {});
                    if response.extensions().get::<Untouched>().is_none() {
                        return response;
                    }
                }
                Place::There(_) if is_forwarded => {
                    self.poke();
                    return untouched(&self.view);
                }
                Place::There(holder) => {
                    drop(held.take());
                    self.view.forwarded.fetch_add(1, Ordering::Relaxed);
                    match forward(&self.client, &self.view, &holder, &head, (body, &kept)).await {
                        Forwarded::Answer(response) => return response,
                        Forwarded::Again => self.poke(),
                        Forwarded::Unknown(why) => return unknown(&why),
                        Forwarded::Broken => {
                            return Problem::bad_request("the body of the request broke off").into_response();
                        }
                    }
                }
                Place::Nowhere if is_forwarded => {
                    self.poke();
                    return untouched(&self.view);
                }
                Place::Changing => {}
                Place::Nowhere => self.poke(),
            }
            // The client may have left meanwhile: then this future is dropped.
            held.get_or_insert_with(|| self.view.hold_request());
            let pause = async {
                tokio::select! {
                    _ = changes.changed() => {}
                    () = sleep(PAUSE) => {}
                }
            };
            if timeout_at(until, pause).await.is_err() {
                return self.nowhere(&head);
            }
        }
    }

    /// The refusal of a request that has waited long enough.
    fn nowhere(&self, head: &Parts) -> Response {
        let seconds = WAIT.as_secs();
        let detail = format!("no node has run the organism for {seconds} s: the request had no effect; send it again");
        let mut response = Problem::node(StatusCode::SERVICE_UNAVAILABLE, "node", detail).into_response();
        if head.headers.contains_key(HOP) {
            response.headers_mut().insert(UNTOUCHED, HeaderValue::from_static("1"));
        }
        response
    }

    /// The calls of the organism here, if it runs here.
    async fn ask_here(&self, request: Request) -> Option<Response> {
        let Place::Here(mut router) = self.view.place() else { return None };
        Some(router.call(request).await.unwrap_or_else(|never| match never {}))
    }

    async fn livez(&self, request: Request) -> Response {
        if request.headers().contains_key(HOP) {
            // The node before has given its lease up.
            self.poke();
        }
        match self.ask_here(request).await {
            Some(response) => response,
            None => document(&json!({ "status": "ok" })),
        }
    }

    async fn readyz(&self, request: Request) -> Response {
        if self.view.is_ending() {
            return Problem::node(StatusCode::SERVICE_UNAVAILABLE, "stopping", "the node is stopping").into_response();
        }
        let name = &*self.view.card.name;
        let (role, active): (_, Option<Arc<Holder>>) = match self.view.place() {
            Place::Here(_) => match self.ask_here(request).await {
                Some(response) if response.status() != StatusCode::OK => return response,
                Some(_) | None => ("active", None),
            },
            Place::Changing => ("changing", None),
            Place::There(holder) => ("standby", Some(holder)),
            Place::Nowhere => ("standby", None),
        };
        let is_answered = self.view.since_answer().is_some_and(|since| since < self.view.card.lease);
        if role == "standby" && !is_answered {
            let detail = "the database has not answered for the length of a lease";
            return Problem::node(StatusCode::SERVICE_UNAVAILABLE, "node", detail).into_response();
        }
        let active = match &active {
            Some(holder) => Some(&*holder.node),
            None => (role == "active").then_some(name),
        };
        document(&json!({ "status": "ok", "node": name, "role": role, "active": active }))
    }

    async fn metrics(&self, request: Request) -> Response {
        let own = self.figures();
        let Some(response) = self.ask_here(request).await else {
            return ([(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], own).into_response();
        };
        let (mut head, body) = response.into_parts();
        if head.status != StatusCode::OK {
            return Response::from_parts(head, body);
        }
        let Ok(figures) = to_bytes(body, FIGURES).await else {
            let detail = "the figures of the organism can't be read";
            return Problem::node(StatusCode::SERVICE_UNAVAILABLE, "node", detail).into_response();
        };
        head.headers.remove(CONTENT_LENGTH);
        Response::from_parts(head, Body::from([&figures, own.as_bytes()].concat()))
    }

    /// The figures of the node, in the text format of Prometheus.
    fn figures(&self) -> String {
        let active = u8::from(matches!(self.view.place(), Place::Here(_)));
        let left = self.view.left().as_secs_f64();
        let takeovers = self.view.takeovers.load(Ordering::Relaxed);
        let forwarded = self.view.forwarded.load(Ordering::Relaxed);
        let held = self.view.held();
        let figure = |name: &str, kind: &str, help: &str, value: &dyn std::fmt::Display| {
            format!("# HELP systole_{name} {help}.\n# TYPE systole_{name} {kind}\nsystole_{name} {value}\n")
        };
        [
            figure("node_active", "gauge", "1 if the organism runs on this node", &active),
            figure(
                "node_lease_seconds",
                "gauge",
                "Time that this node may go on without a new answer of the database",
                &left,
            ),
            figure("node_takeovers_total", "counter", "Leases of this node since its start", &takeovers),
            figure(
                "node_forwarded_total",
                "counter",
                "Requests that were sent to the active node, again included",
                &forwarded,
            ),
            figure("node_held", "gauge", "Requests that wait for an active node", &held),
        ]
        .concat()
    }
}

/// A document of JSON.
fn document(value: &Value) -> Response {
    ([(CONTENT_TYPE, "application/json")], value.to_string()).into_response()
}

/// The answer to a forwarded request of a node that is not the active one.
fn untouched(view: &View) -> Response {
    let detail = format!("the node '{}' does not run the organism: the request had no effect", view.card.name);
    let mut response = Problem::node(StatusCode::MISDIRECTED_REQUEST, "node", detail).into_response();
    response.headers_mut().insert(UNTOUCHED, HeaderValue::from_static("1"));
    response
}

/// The answer to a request of which nobody knows whether it had its effect.
fn unknown(why: &str) -> Response {
    let detail =
        format!("{why}: it is unknown whether the request had an effect; send it again under the same Idempotency-Key");
    Problem::node(StatusCode::BAD_GATEWAY, "node_lost", detail).into_response()
}
