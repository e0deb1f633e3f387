//! `/v1/sessions`: calls whose responses carry the pending notices of the client.

use axum::http::StatusCode;
use axum::response::Response;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use systole_core::vocab::Name;

use super::caller::Caller;
use super::messages::{self, Posted};
use super::request::{given, json};
use super::resource_request::ResourceRequest;
use super::{AppState, view};
use crate::gateway::notices::{self, Block, NoticeBatch, NoticeToken, QueueRead, SESSIONS, SessionId};
use crate::gateway::problem::Problem;
use crate::journal::SentAnswer;

/// `POST /v1/sessions/{session}/call`
pub(super) async fn call(resource: ResourceRequest) -> Result<Response, Problem> {
    let ResourceRequest { app, caller: Caller(principal), name, request } = resource;
    let name = read_name(&name)?;
    messages::may_send(&app, &principal)?;
    let clock = app.mailboxes.clock().ok_or_else(Problem::stopping)?;
    let session = app.sessions.enter(&principal.name, &name, clock.now()).await.ok_or_else(|| {
        let detail = format!("{} has {SESSIONS} sessions, the most allowed: end one of them", principal.name);
        Problem::too_many("sessions", detail, 1)
    })?;
    let posted = messages::send(&app, principal.name.clone(), request).await?;
    // A fault is an answer, but no success: no notice rides on it. None rides at the end of the organism, either: it
    // could not be confirmed any more.
    let failed = posted.answers.first().is_some_and(|answer| answer.fault.is_some());
    let read = match failed || app.mailboxes.is_stopping() {
        true => None,
        false => app.sessions.read((&principal.name, &name), session, posted.body.clone(), clock).await,
    };
    Ok(respond(&app, &posted, read))
}

/// `POST /v1/sessions/{session}/heartbeat`
pub(super) async fn heartbeat(resource: ResourceRequest) -> Result<Response, Problem> {
    let ResourceRequest { app, caller: Caller(principal), name, .. } = resource.plain()?;
    touch(&app, &principal.name, &name)?;
    Ok(view::no_content())
}

/// Tokens of notices, of which one or the other member names them.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Confirm", extend("oneOf" = [{ "required": ["token"] }, { "required": ["text"] }]))]
pub(super) struct Said {
    /// Anything; the lower-case UUIDs in it count.
    #[serde(default, deserialize_with = "given")]
    #[schemars(with = "String")]
    text: Option<String>,
    #[serde(default, deserialize_with = "given")]
    #[schemars(with = "String")]
    token: Option<String>,
}

/// The confirmed tokens of a session, and their rows.
#[derive(Serialize, JsonSchema)]
pub(super) struct Confirmed {
    confirmed: Vec<ConfirmedNotice>,
}

#[derive(Serialize, JsonSchema)]
struct ConfirmedNotice {
    token: view::Id,
    ids: Vec<String>,
}

/// The unconfirmed notices of a session.
#[derive(Serialize, JsonSchema)]
pub(super) struct Notices {
    notices: Vec<UnconfirmedNotice>,
    /// The time at which the session expires unless it calls before.
    lapses: view::DateTime,
}

#[derive(Serialize, JsonSchema)]
struct UnconfirmedNotice {
    token: view::Id,
    at: view::DateTime,
    ids: Vec<String>,
}

/// `POST /v1/sessions/{session}/confirm`
pub(super) async fn confirm(resource: ResourceRequest) -> Result<Response, Problem> {
    let ResourceRequest { app, caller: Caller(principal), name, request } = resource.plain()?;
    let session = touch(&app, &principal.name, &name)?;
    let text = match json(&app, request).await? {
        Said { text: Some(text), token: None } | Said { text: None, token: Some(text) } => text,
        Said { .. } => return Err(Problem::bad_request("the body: either 'token', or 'text' with tokens in it")),
    };
    let tokens = notices::tokens(&text);
    let confirmed = app.sessions.confirm((&principal.name, &name), session, tokens).await;
    let confirmed = confirmed.map_err(|trouble| match app.mailboxes.is_stopping() {
        true => Problem::stopping(),
        false => trouble.into(),
    })?;
    let one = |(token, ids): (NoticeToken, Vec<String>)| ConfirmedNotice { token: view::Id::of(&token), ids };
    Ok(view::document(StatusCode::OK, &Confirmed { confirmed: confirmed.into_iter().map(one).collect() }))
}

/// `GET /v1/sessions/{session}/notices`
pub(super) async fn list(resource: ResourceRequest) -> Result<Response, Problem> {
    let ResourceRequest { app, caller: Caller(principal), name, .. } = resource.plain()?;
    touch(&app, &principal.name, &name)?;
    let (batches, lapses) = app.sessions.unconfirmed(&principal.name, &name).ok_or_else(no_session)?;
    let one = |NoticeBatch { token, at, ids, .. }: NoticeBatch| UnconfirmedNotice {
        token: view::Id::of(&token),
        at: view::DateTime::of(at),
        ids,
    };
    let notices = batches.into_iter().map(one).collect();
    Ok(view::document(StatusCode::OK, &Notices { notices, lapses: view::DateTime::of(lapses) }))
}

/// `DELETE /v1/sessions/{session}`
pub(super) async fn end(resource: ResourceRequest) -> Result<Response, Problem> {
    let ResourceRequest { app, caller: Caller(principal), name, .. } = resource.plain()?;
    let name = read_name(&name)?;
    if app.sessions.end(&principal.name, &name).await { Ok(view::no_content()) } else { Err(no_session()) }
}

/// Notes a sign of life of a session, as each of its requests does.
fn touch(app: &AppState, principal: &Name, name: &str) -> Result<SessionId, Problem> {
    let name = read_name(name)?;
    app.sessions.touch(principal, &name, app.mailboxes.now()).ok_or_else(no_session)
}

fn read_name(text: &str) -> Result<String, Problem> {
    notices::name(text).ok_or_else(|| {
        let rule = "1 to 64 ASCII letters, digits, '_', '-' and '.', the first of them a letter or a digit";
        Problem::bad_request(format!("the name of a session has {rule}"))
    })
}

/// A session of another principal looks like one that never began.
fn no_session() -> Problem {
    Problem::not_found("you have no such session: it never began, was ended, or was silent for 120 s")
}

/// The response to a call.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Response")]
pub(super) struct CallResponse {
    /// The pending notices, if there are any; then the envelopes of the replies.
    content: Vec<Block>,
    metadata: Metadata,
}

#[derive(Serialize, JsonSchema)]
#[schemars(inline)]
struct Metadata {
    id: view::Id,
    thread: view::Id,
    #[schemars(extend("enum" = ["queued", "answered", "faulted", "silent"]))]
    state: view::SubmissionState,
    /// The code of the fault, if the reply is a fault.
    fault: Option<&'static str>,
    /// Only if something is pending.
    #[serde(skip_serializing_if = "Option::is_none")]
    notices: Option<NoticeCounts>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(inline)]
struct NoticeCounts {
    token: view::Id,
    #[schemars(range(min = 1, max = 100))]
    rows: usize,
    /// The number of blocks of the content before the replies.
    #[schemars(range(min = 3))]
    blocks: usize,
}

/// The response to a call. Without notices it is the plain response, byte for byte.
fn respond(app: &AppState, posted: &Posted, read: Option<QueueRead>) -> Response {
    let text = |answer: &SentAnswer| Block::text(view::leaving(&app.organism, &answer.envelope));
    let content: Vec<_> = posted.answers.iter().map(text).collect();
    let mut metadata = Metadata {
        id: view::Id::of(&posted.kept.id),
        thread: view::Id::of(&posted.kept.root),
        state: view::state(&posted.answers, posted.ended),
        fault: posted.answers.first().and_then(|answer| answer.fault.as_ref()).map(|code| code.as_str()),
        notices: None,
    };
    let status = if content.is_empty() { StatusCode::ACCEPTED } else { StatusCode::OK };
    let content = match read {
        None => content,
        Some(read) => {
            let all = content.len();
            let spliced = notices::splice(&read, content);
            let (token, rows) = (view::Id::of(&read.token), read.rows.len());
            metadata.notices = Some(NoticeCounts { token, rows, blocks: spliced.len() - all });
            spliced
        }
    };
    let response = view::document(status, &CallResponse { content, metadata });
    view::located(response, &format!("/v1/messages/{}", posted.kept.id))
}
