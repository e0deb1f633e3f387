//! The HTTP side: routes, and the checks before each of them.

mod authenticate;
mod bodies;
mod caller;
mod failures;
mod health;
mod jobs;
mod json_document;
mod lease;
mod listeners;
mod mailbox;
mod mailbox_request;
mod messages;
mod openapi;
mod presence;
mod protocol;
mod rate;
mod request;
mod resource_request;
mod sessions;
mod stream;
mod tasks;
mod unauthenticated;
mod view;

use std::sync::Arc;

use axum::Router;
use axum::http::header::CONTENT_TYPE;
use axum::http::{Method, StatusCode};
use axum::middleware::{from_fn_with_state, map_response};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, any, delete, get, post, put};

use super::judge::Judge;
use super::notices::Sessions;
use super::problem::{PROBLEM, Problem};
use super::service::MailboxService;
use super::submissions::Submissions;
use crate::accept::{Admission, Bounds};
use crate::journal::JournalQuery;
use crate::runtime::{Organism, SendError};
use crate::settings::GatewaySettings;
#[cfg(feature = "facade")]
pub(crate) use authenticate::Authenticated;
use bodies::Bodies;
#[cfg(feature = "facade")]
pub(crate) use caller::Caller;
use failures::Failures;
pub(super) use openapi::Description;
use rate::Rate;
use systole_core::vocab::{MessageId, Name, ThreadId};
use unauthenticated::UnauthenticatedTurns;
#[cfg(feature = "facade")]
pub(super) use {
    json_document::parse as parse_json,
    listeners::place,
    messages::{answers_of, conclude, take},
    request::json_body as body,
    view::{document, long_document},
};

/// Routes of a façade above the gateway.
pub(crate) type Routes = Router<Arc<AppState>>;

/// The resources that clients may use of the gateway, and do use.
pub(crate) struct Edge {
    pub(super) rate: Rate,
    /// The connections.
    pub(super) admission: Arc<Admission>,
    bodies: Arc<Bodies>,
    failures: Failures,
    unauthenticated: UnauthenticatedTurns,
}

impl Edge {
    /// The resources under these settings; a message has at most `message_bytes` bytes.
    pub(super) fn new(settings: &GatewaySettings, message_bytes: usize) -> Self {
        let GatewaySettings { connections, reserve, .. } = *settings;
        let (per_address, per_principal) = (settings.connections_per_address, settings.connections_per_principal);
        let (all, one) = (settings.bodies.max(message_bytes), settings.bodies_per_principal.max(message_bytes));
        Self {
            rate: Rate::new(settings.requests),
            admission: Admission::new(Bounds { connections, reserve, per_address, per_principal }),
            bodies: Bodies::new(all, one),
            failures: Failures::default(),
            unauthenticated: UnauthenticatedTurns::default(),
        }
    }
}

/// State of the application, which every request can see.
pub(crate) struct AppState {
    pub(super) settings: GatewaySettings,
    /// True for a path that answers 404 for an unknown token.
    pub(super) removal_notice: fn(&str) -> bool,
    pub(super) organism: Arc<Organism>,
    pub(super) mailboxes: MailboxService,
    /// Queries of the journal.
    pub(super) query: JournalQuery,
    /// Secret of cursors.
    pub(super) cursors: [u8; 32],
    pub(super) sessions: Arc<Sessions>,
    pub(super) submissions: Arc<Submissions>,
    pub(super) judge: Arc<Judge>,
    pub(super) edge: Edge,
    /// The description of all calls that are served.
    pub(super) description: Description,
}

impl AppState {
    /// Mailbox of a message.
    pub(super) async fn mailbox_of(&self, id: MessageId) -> Result<Option<Name>, Problem> {
        Ok(self.place_of(id).await?.map(|(mailbox, _)| mailbox))
    }

    /// Mailbox of a message, and its thread.
    async fn place_of(&self, id: MessageId) -> Result<Option<(Name, ThreadId)>, Problem> {
        match self.mailboxes.place_of(id) {
            Some(place) => Ok(Some(place)),
            None => Ok(self.query.mail(id).await?.map(|mail| (mail.record.mailbox, mail.record.thread))),
        }
    }
}

impl AppState {
    /// Checks that messages are accepted: neither the gateway nor the organism ends.
    ///
    /// # Errors
    /// 503 if one of them does.
    pub(super) fn open(&self) -> Result<(), Problem> {
        let closed = matches!(self.organism.ready(), Err(SendError::Closed));
        if closed || self.mailboxes.is_stopping() { Err(Problem::stopping()) } else { Ok(()) }
    }
}

/// A route: path, method, handler.
type Route = (&'static str, Method, MethodRouter<Arc<AppState>>);

/// Every route. The description in `openapi.json` names these and no others; a test compares them.
fn routes() -> Vec<Route> {
    let mut routes = vec![
        ("/livez", Method::GET, get(health::livez)),
        ("/readyz", Method::GET, get(health::readyz)),
        ("/metrics", Method::GET, get(health::metrics)),
        ("/openapi.json", Method::GET, get(openapi::document)),
        ("/v1/listeners", Method::POST, post(listeners::register)),
        ("/v1/listeners/{name}/heartbeat", Method::POST, post(presence::heartbeat)),
        ("/v1/listeners/{name}/pause", Method::POST, post(presence::pause)),
        ("/v1/listeners/{name}/resume", Method::POST, post(presence::resume)),
        ("/v1/messages", Method::POST, post(messages::submit)),
        ("/v1/messages/{id}", Method::GET, get(messages::look)),
        ("/v1/messages/{id}/reply", Method::POST, post(messages::reply)),
        ("/v1/messages/{id}/fail", Method::POST, post(messages::fail)),
        ("/v1/mailboxes/{mailbox}/messages", Method::GET, get(mailbox::list)),
        ("/v1/mailboxes/{mailbox}/lease", Method::POST, post(lease::lease)),
        ("/v1/mailboxes/{mailbox}/messages/{id}/ack", Method::POST, post(lease::ack)),
        ("/v1/mailboxes/{mailbox}/messages/{id}/nack", Method::POST, post(lease::nack)),
        ("/v1/mailboxes/{mailbox}/messages/{id}/extend", Method::POST, post(lease::extend)),
        ("/v1/mailboxes/{mailbox}/messages/{id}/hold", Method::POST, post(lease::hold)),
        ("/v1/mailboxes/{mailbox}/messages/{id}/term", Method::POST, post(lease::term)),
        ("/v1/mailboxes/{mailbox}/stream", Method::GET, get(stream::stream)),
        ("/v1/mailboxes/{mailbox}/dead", Method::GET, get(mailbox::dead)),
        ("/v1/mailboxes/{mailbox}/dead", Method::DELETE, delete(mailbox::discard)),
        ("/v1/mailboxes/{mailbox}/dead/redrive", Method::POST, post(mailbox::redrive)),
        ("/v1/sessions/{session}", Method::DELETE, delete(sessions::end)),
        ("/v1/sessions/{session}/call", Method::POST, post(sessions::call)),
        ("/v1/sessions/{session}/confirm", Method::POST, post(sessions::confirm)),
        ("/v1/sessions/{session}/heartbeat", Method::POST, post(sessions::heartbeat)),
        ("/v1/sessions/{session}/notices", Method::GET, get(sessions::list)),
        ("/v1/jobs", Method::GET, get(jobs::find)),
        ("/v1/jobs/{job}", Method::PUT, put(jobs::register)),
        ("/v1/jobs/{job}", Method::DELETE, delete(jobs::remove)),
        ("/v1/jobs/{job}/tasks", Method::POST, post(jobs::submit)),
        ("/v1/jobs/{job}/tasks", Method::GET, get(jobs::list)),
        ("/v1/jobs/{job}/inbox.md", Method::GET, get(jobs::markdown)),
        ("/v1/tasks/{id}", Method::GET, get(tasks::look)),
    ];
    routes.extend(tasks::transitions().map(|(path, act)| (path, Method::POST, act)));
    routes
}

/// All calls, behind the checks of heads and tokens.
pub(super) fn router(app: Arc<AppState>, more: Routes) -> Router {
    let router = routes().into_iter().fold(Router::new(), |router, (path, _, method)| router.route(path, method));
    let nowhere = || async { Problem::not_found("there is no such path: see /openapi.json") };
    let not_so = || async {
        let detail = "that path is there, but not with that method: see /openapi.json";
        Problem::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", "Not that way", detail)
    };
    let router = router.merge(more).fallback(any(nowhere)).method_not_allowed_fallback(not_so);
    router.layer(map_response(one_shape)).layer(from_fn_with_state(app.clone(), authenticate::enter)).with_state(app)
}

/// Gives refusals of the framework the shape of any other problem.
async fn one_shape(response: Response) -> Response {
    let status = response.status();
    let ours = response.headers().get(CONTENT_TYPE).is_some_and(|kind| kind == PROBLEM);
    if ours || !(status.is_client_error() || status.is_server_error()) {
        return response;
    }
    let reason = status.canonical_reason().unwrap_or("The request can't be served");
    Problem::new(status, "http", reason, "the path, the head or the body can't be read").into_response()
}
