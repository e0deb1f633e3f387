//! The HTTP side: routes, and the checks before each of them.

pub(super) mod admin;
pub(super) mod authenticate;
mod bodies;
pub(super) mod browser;
mod call;
mod caller;
pub(super) mod contract;
pub(super) mod drafts;
pub(super) mod failures;
mod health;
mod jobs;
mod json_document;
mod lease;
mod listeners;
mod mailbox;
mod mailbox_request;
mod messages;
mod metrics;
mod presence;
mod protocol;
pub(super) mod questions;
mod rate;
pub(super) mod reader;
mod rejections;
pub(super) mod request;
mod resource_request;
mod sessions;
mod stream;
mod tasks;
mod unauthenticated;
pub(super) mod view;

use std::sync::Arc;

use axum::Router;
use axum::http::StatusCode;
use axum::http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use axum::middleware::{from_fn_with_state, map_response};
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use serde_json::json;

use super::judge::Judge;
use super::notices::Sessions;
use super::problem::{PROBLEM, Problem};
use super::service::MailboxService;
use super::submissions::Submissions;
use crate::accept::{Admission, Bounds};
use crate::journal::Query;
use crate::listeners::organism::OrganismContract;
use crate::runtime::{Organism, SendError};
use crate::settings::GatewaySettings;
pub use authenticate::Authenticated;
use bodies::Bodies;
pub use call::{Call, schema};
pub(super) use call::{Description, split};
pub use caller::Caller;
use failures::Failures;
use health::Health;
pub use messages::Asked;
#[cfg(feature = "mcp")]
pub(super) use messages::ask_object;
pub(crate) use metrics::Tally;
use presence::Presence;
#[cfg(feature = "mcp")]
pub(super) use questions::as_xml as answer_as_xml;
use rate::Rate;
use rejections::Rejections;
#[cfg(feature = "mcp")]
pub(super) use request::idempotency_key;
use systole_core::vocab::{MessageId, Name, ThreadId};
use tasks::Nothing;
use unauthenticated::UnauthenticatedTurns;
pub(super) use {
    json_document::parse as parse_json,
    listeners::place,
    messages::{answers_of, conclude, take},
    request::json_body as body,
    view::{document, long_document, payload},
};

/// Routes of calls.
pub(crate) type Routes = Router<Arc<AppState>>;

/// The resources that clients may use of the gateway, and do use.
pub(crate) struct Edge {
    pub(super) rate: Rate,
    /// The connections.
    pub(super) admission: Arc<Admission>,
    bodies: Arc<Bodies>,
    failures: Failures,
    rejections: Rejections,
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
            rejections: Rejections::default(),
            unauthenticated: UnauthenticatedTurns::default(),
        }
    }
}

/// State of the application, which every request can see.
pub struct AppState {
    pub(super) settings: GatewaySettings,
    /// True for a path that answers 404 for an unknown token.
    pub(super) removal_notice: fn(&str) -> bool,
    pub(super) organism: Arc<Organism>,
    pub(super) mailboxes: MailboxService,
    /// Queries of the journal.
    pub(super) query: Arc<dyn Query>,
    /// Secret of cursors.
    pub(super) cursors: [u8; 32],
    pub(super) sessions: Arc<Sessions>,
    pub(super) submissions: Arc<Submissions>,
    pub(super) judge: Arc<Judge>,
    pub(super) edge: Edge,
    pub(super) tally: Arc<Tally>,
    /// The paths of pages for browsers, if there are any.
    pub(super) is_page: Option<fn(&str) -> bool>,
    /// Browsers that are signed in, and links that sign one in.
    pub(super) link: Arc<browser::Link>,
    /// The contracts of clients.
    pub(super) contracts: contract::Contracts,
    /// The description of all calls that are served.
    pub(super) description: Description,
}

impl std::fmt::Debug for AppState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AppState").field("settings", &self.settings).finish_non_exhaustive()
    }
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
        if closed || self.mailboxes.is_stopping() { Err(Problem::closed()) } else { Ok(()) }
    }
}

/// All calls of the gateway, with their descriptions.
pub(super) fn calls() -> Vec<Call> {
    const MESSAGE: &str = "One envelope, whose `<meta>` and `<from>` may be left out, or one payload that the client may \
                           call; dirty or not. `from` is the principal of the token, regardless of the sender in the \
                           document.";
    const BROKEN: &str =
        "The content breaks a rule: `rule`, `place` and `example` say which; of JSON, `pointer` says where.";
    const TAKEN: &str = "The step of the pump that takes it is durable.";
    const ONCE: &str = "The same key with the same body sends once.";
    const AFTER: &str = "A cursor of this mailbox; without one from the oldest message on.";
    let handled = |call: Call| call.takes::<lease::Said>().answers_nothing("Done.").refuses(&[403, 404, 409]);
    let mut calls = vec![
        Call::get("/livez", health::livez)
            .about("health", "Checks that the process lives.")
            .public()
            .answers::<Health>(StatusCode::OK, "Yes.")
            .refuses_because(503, "The organism can't go on: the process is about to end."),
        Call::get("/readyz", health::readyz)
            .about("health", "Checks that the organism accepts messages.")
            .public()
            .answers::<Health>(StatusCode::OK, "Yes.")
            .refuses(&[503]),
        Call::get("/metrics", metrics::metrics)
            .about("health", "Figures, in the text format of Prometheus.")
            .public()
            .answers_text("text/plain", "The figures."),
        Call::get("/openapi.json", call::description)
            .about("health", "This document.")
            .public()
            .answers_json("This document.", |_| call::schema(json!({ "type": "object" }))),
        Call::get("/.well-known/jwks.json", call::keys)
            .about("health", "The public keys of the organism's identity, those that are retired included: a JSON Web Key Set.")
            .public()
            .answers_text("application/jwk-set+json", "The keys.")
            .refuses(&[404]),
        Call::post("/v1/listeners", listeners::register)
            .about("listeners", "Register a remote listener.")
            .takes::<listeners::Registration>()
            .answers::<listeners::RegisteredListener>(
                StatusCode::CREATED,
                "Registered; the same token replaces the registration.",
            )
            .refuses(&[403, 404, 409]),
        Call::post("/v1/listeners/{name}/heartbeat", presence::heartbeat)
            .about("listeners", "Report that an agent lives, and learn whether it is paused.")
            .takes::<Nothing>()
            .answers::<Presence>(StatusCode::OK, "The state.")
            .refuses(&[403, 404]),
        Call::post("/v1/listeners/{name}/pause", presence::pause)
            .about("listeners", "Pause an agent until it is resumed, also through restarts (for an admin).")
            .takes::<Nothing>()
            .answers::<Presence>(StatusCode::OK, "The present state.")
            .refuses(&[403, 404]),
        Call::post("/v1/listeners/{name}/resume", presence::resume)
            .about("listeners", "Resume an agent (for an admin).")
            .takes::<Nothing>()
            .answers::<Presence>(StatusCode::OK, "The present state.")
            .refuses(&[403, 404]),
        Call::post("/v1/messages", messages::submit)
            .about("messages", "Send a message.")
            .waits()
            .keyed(ONCE)
            .header::<String>("If-Match", "The `ETag` of the contract that the caller holds to (`GET /v1/contract`).")
            .takes_payload(MESSAGE)
            .answers_text("application/xml", "The reply came in time.")
            .answers::<messages::JsonAnswer>(StatusCode::OK, "The reply came in time.")
            .answers::<messages::Queued>(StatusCode::ACCEPTED, TAKEN)
            .located()
            .refuses(&[403, 404, 409, 507])
            .refuses_because(412, "The contract of the client is not the one that `If-Match` names: nothing was accepted.")
            .refuses_because(422, BROKEN),
        Call::get("/v1/contract", contract::show)
            .about("messages", "The contract of the client: what it may call, the replies, and their schemas. `ETag` is its hash.")
            .answers::<OrganismContract>(StatusCode::OK, "The contract.")
            .refuses(&[403]),
        Call::get("/v1/messages/{id}", messages::look)
            .about("messages", "The state of a message that the caller sent, or that is in its mailbox.")
            .number::<u32>("skip", "Replies to leave out: the first so many.")
            .query::<String>("payloads", "`json` adds the payload of each reply as JSON.")
            .query::<bool>(
                "correlation",
                "`true` adds `<correlation>` to the `<meta>` of each reply to a message with an Idempotency-Key: the request, and \
                 what was used of the message's budget.",
            )
            .waits()
            .answers::<messages::Found>(StatusCode::OK, "The state of the message.")
            .refuses(&[404]),
        Call::post("/v1/messages/{id}/cancel", messages::cancel)
            .about("messages", "Cancel the conversation of a message that the caller sent.")
            .takes::<Nothing>()
            .answers_nothing("The conversation has ended.")
            .refuses(&[404]),
        Call::post("/v1/messages/{id}/reply", messages::reply)
            .about("messages", "Reply to a message of the caller's mailbox.")
            .takes_payload("0..n payloads, dirty or not.")
            .answers::<messages::Taken>(
                StatusCode::ACCEPTED,
                "The answer is durable, and will be judged like any emission of a listener.",
            )
            .refuses(&[404, 409])
            .refuses_because(422, BROKEN),
        Call::post("/v1/messages/{id}/fail", messages::fail)
            .about("messages", "Answer the sender of a message with an agent-error.")
            .takes::<messages::Failure>()
            .answers::<messages::Taken>(StatusCode::ACCEPTED, "The failure is durable.")
            .refuses(&[404, 409]),
        Call::get("/v1/mailboxes/{mailbox}/messages", mailbox::list)
            .about("mailboxes", "Read a mailbox, oldest first.")
            .query::<String>("after", AFTER)
            .query::<String>(
                "ack",
                "As `after`, and acknowledges the messages up to that cursor, which end without a reply unless they have \
                 one: `next`, or the cursor of a message, of a page without a filter that the listener read.",
            )
            .limit("Messages at most.")
            .waits()
            .query::<String>("type", "Only of that payload: {namespace}local.")
            .query::<String>("peer", "Only from that sender.")
            .query::<view::DateTime>("before", "Only messages that came earlier.")
            .answers::<mailbox::MailPage>(StatusCode::OK, "A page.")
            .refuses(&[403, 404, 410]),
        Call::post("/v1/mailboxes/{mailbox}/lease", lease::lease)
            .about("mailboxes", "Lease messages.")
            .takes::<lease::Wanted>()
            .answers::<lease::Leases>(StatusCode::OK, "The leased messages; maybe none.")
            .refuses(&[403, 404])
            .refuses_because(409, "Its messages are pushed."),
        handled(
            Call::post("/v1/mailboxes/{mailbox}/messages/{id}/ack", lease::ack)
                .about("mailboxes", "Acknowledge a message: it ends without a reply."),
        ),
        handled(
            Call::post("/v1/mailboxes/{mailbox}/messages/{id}/nack", lease::nack)
                .about("mailboxes", "Give a message back: it can be leased again."),
        ),
        handled(
            Call::post("/v1/mailboxes/{mailbox}/messages/{id}/extend", lease::extend)
                .about("mailboxes", "Extend a lease."),
        ),
        handled(
            Call::post("/v1/mailboxes/{mailbox}/messages/{id}/hold", lease::hold)
                .about(
                    "mailboxes",
                    "Hold a message without a time limit: the reader answers later, with reply or fail, and it can't be \
                     leased again.",
                )
                .answers::<lease::Held>(
                    StatusCode::OK,
                    "Held, without a lease before: the receipt is good for nack.",
                ),
        ),
        handled(
            Call::post("/v1/mailboxes/{mailbox}/messages/{id}/term", lease::term)
                .about("mailboxes", "Terminate a message: it ends without a reply, and is never delivered again."),
        ),
        Call::get("/v1/mailboxes/{mailbox}/stream", stream::stream)
            .about("mailboxes", "A mailbox as server-sent events.")
            .query::<String>("after", AFTER)
            .header::<String>("Last-Event-ID", "The last event that a browser saw; as `after`.")
            .answers_text("text/event-stream", "Events `message`, whose id is a cursor and whose data is an item.")
            .refuses(&[403, 404, 410]),
        Call::get("/v1/mailboxes/{mailbox}/dead", mailbox::dead)
            .about("mailboxes", "Dead letters.")
            .query::<String>("after", AFTER)
            .limit("Messages at most.")
            .answers::<mailbox::MailPage>(StatusCode::OK, "A page.")
            .refuses(&[403, 404, 410]),
        Call::delete("/v1/mailboxes/{mailbox}/dead", mailbox::discard)
            .about("mailboxes", "Forget dead letters: all, or one.")
            .query::<String>("id", "One of them.")
            .answers::<mailbox::Deleted>(StatusCode::OK, "The number.")
            .refuses(&[403, 404]),
        Call::post("/v1/mailboxes/{mailbox}/dead/redrive", mailbox::redrive)
            .about(
                "mailboxes",
                "Redrive dead letters, all or one: they can be leased again. Their senders have had an answer.",
            )
            .takes::<mailbox::One>()
            .answers::<mailbox::Redriven>(StatusCode::OK, "The number.")
            .refuses(&[403, 404]),
        Call::delete("/v1/sessions/{session}", sessions::end)
            .about("sessions", "End a session: its unconfirmed notices come again.")
            .answers_nothing("Ended.")
            .refuses(&[404]),
        Call::post("/v1/sessions/{session}/call", sessions::call)
            .about("sessions", "Send a message; pending notices ride on the response.")
            .waits()
            .keyed(ONCE)
            .takes_payload(MESSAGE)
            .answers::<sessions::CallResponse>(StatusCode::OK, "The reply came in time.")
            .answers::<sessions::CallResponse>(StatusCode::ACCEPTED, TAKEN)
            .located()
            .refuses(&[403, 404, 409, 507])
            .refuses_because(422, BROKEN),
        Call::post("/v1/sessions/{session}/confirm", sessions::confirm)
            .about("sessions", "Confirm notices.")
            .takes::<sessions::Said>()
            .answers::<sessions::Confirmed>(StatusCode::OK, "The confirmed tokens of the session, and their rows.")
            .refuses(&[404]),
        Call::post("/v1/sessions/{session}/heartbeat", sessions::heartbeat)
            .about("sessions", "Keep a session alive, as any of its requests does.")
            .answers_nothing("The session goes on.")
            .refuses(&[404]),
        Call::get("/v1/sessions/{session}/notices", sessions::list)
            .about("sessions", "The unconfirmed notices of a session.")
            .answers::<sessions::Notices>(StatusCode::OK, "Oldest first.")
            .refuses(&[404]),
        Call::get("/v1/jobs", jobs::find)
            .about("jobs", "The registered jobs, in order of name.")
            .query::<String>("skill", "Only jobs with that skill.")
            .query::<String>("after", "Only jobs behind that name.")
            .limit("Entries of a page.")
            .answers::<jobs::JobPage>(StatusCode::OK, "A page.")
            .refuses(&[403]),
        Call::put("/v1/jobs/{job}", jobs::register)
            .about("jobs", "Register a job of the caller, or replace it.")
            .takes::<jobs::Card>()
            .answers::<view::Job>(StatusCode::OK, "Registered for the caller.")
            .refuses(&[403, 404, 409, 422]),
        Call::delete("/v1/jobs/{job}", jobs::remove)
            .about("jobs", "Remove a job.")
            .answers_nothing("Removed; its owner keeps the tasks that wait.")
            .refuses(&[403, 404, 409]),
        Call::post("/v1/jobs/{job}/tasks", jobs::submit)
            .about("jobs", "Submit a task.")
            .keyed("The same key with the same body submits once.")
            .takes::<jobs::Wanted>()
            .answers::<jobs::SubmittedTask>(StatusCode::CREATED, "The task is durable.")
            .answers::<jobs::SubmittedTask>(StatusCode::OK, "The key was used for this task before.")
            .located()
            .refuses(&[403, 404, 409, 422]),
        Call::get("/v1/jobs/{job}/tasks", jobs::list)
            .about("jobs", "The tasks that the caller owns or submitted, in order of arrival.")
            .query::<view::TaskStatus>("status", "Only tasks of that status; left out: all that have not ended.")
            .number::<u64>("after", "Only tasks behind this cursor.")
            .limit("Entries of a page.")
            .answers::<jobs::TaskPage>(StatusCode::OK, "A page.")
            .refuses(&[403, 404]),
        Call::get("/v1/jobs/{job}/inbox.md", jobs::markdown)
            .about("jobs", "The pending tasks, as Markdown for a model.")
            .answers_text("text/markdown", "Markdown; nothing if nothing is pending.")
            .refuses(&[403, 404]),
        Call::get("/v1/tasks/{id}", tasks::look)
            .about("tasks", "A task that the caller owns or submitted, in full.")
            .answers::<view::Task>(StatusCode::OK, "The task.")
            .refuses(&[403, 404]),
    ];
    calls.extend(tasks::transitions());
    calls.extend(drafts::calls());
    calls.extend(questions::calls());
    calls.extend(admin::calls());
    calls
}

/// All calls, behind the checks of heads and tokens.
pub(super) fn router(app: Arc<AppState>, routes: Routes) -> Router {
    let nowhere = || async { Problem::not_found("there is no such path: see /openapi.json") };
    let not_so = || async {
        let detail = "that path is there, but not with that method: see /openapi.json";
        Problem::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", "Not that way", detail)
    };
    let router = routes.fallback(any(nowhere)).method_not_allowed_fallback(not_so);
    router
        .layer(map_response(one_shape))
        .layer(from_fn_with_state(app.clone(), authenticate::enter))
        .layer(from_fn_with_state(app.clone(), rejections::tell))
        .with_state(app)
}

/// A refusal in the shape of another protocol, among the extensions of its response.
#[derive(Clone)]
#[cfg_attr(not(feature = "mcp"), allow(dead_code, reason = "the façades that make one have a feature"))]
pub(super) struct ForeignError;

/// Gives refusals of the framework the shape of any other problem.
async fn one_shape(response: Response) -> Response {
    let status = response.status();
    // A page tells of a problem to a person.
    let is_page = response.headers().contains_key(CONTENT_SECURITY_POLICY);
    let is_facades = response.extensions().get::<ForeignError>().is_some();
    let ours = is_page || is_facades || response.headers().get(CONTENT_TYPE).is_some_and(|kind| kind == PROBLEM);
    if ours || !(status.is_client_error() || status.is_server_error()) {
        return response;
    }
    let reason = status.canonical_reason().unwrap_or("The request can't be served");
    Problem::new(status, "http", reason, "the path, the head or the body can't be read").into_response()
}
