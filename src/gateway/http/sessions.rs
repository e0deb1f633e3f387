//! `/v1/sessions`: calls whose responses carry the pending notices of the client.

use axum::http::StatusCode;
use axum::response::Response;
use serde::Deserialize;
use serde_json::json;
use systole_core::vocab::Name;

use super::caller::Caller;
use super::messages::{self, Posted};
use super::request::json;
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
    Ok(respond(&posted, read))
}

/// `POST /v1/sessions/{session}/heartbeat`
pub(super) async fn heartbeat(resource: ResourceRequest) -> Result<Response, Problem> {
    let ResourceRequest { app, caller: Caller(principal), name, .. } = resource.plain()?;
    touch(&app, &principal.name, &name)?;
    Ok(view::no_content())
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Said {
    text: Option<String>,
    token: Option<String>,
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
    let one = |(token, ids): (NoticeToken, Vec<String>)| json!({ "token": token.to_string(), "ids": ids });
    let confirmed: Vec<_> = confirmed.into_iter().map(one).collect();
    Ok(view::document(StatusCode::OK, &json!({ "confirmed": confirmed })))
}

/// `GET /v1/sessions/{session}/notices`
pub(super) async fn list(resource: ResourceRequest) -> Result<Response, Problem> {
    let ResourceRequest { app, caller: Caller(principal), name, .. } = resource.plain()?;
    touch(&app, &principal.name, &name)?;
    let (batches, lapses) = app.sessions.unconfirmed(&principal.name, &name).ok_or_else(no_session)?;
    let one =
        |batch: &NoticeBatch| json!({ "token": batch.token.to_string(), "at": batch.at.to_string(), "ids": batch.ids });
    let notices: Vec<_> = batches.iter().map(one).collect();
    Ok(view::document(StatusCode::OK, &json!({ "notices": notices, "lapses": lapses.to_string() })))
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

/// The response to a call. Without notices it is the plain response, byte for byte.
fn respond(posted: &Posted, read: Option<QueueRead>) -> Response {
    let text = |answer: &SentAnswer| Block::text(String::from_utf8_lossy(&answer.envelope));
    let content: Vec<_> = posted.answers.iter().map(text).collect();
    let mut metadata = json!({
        "id": posted.kept.id.to_string(),
        "thread": posted.kept.root.to_string(),
        "state": view::state(&posted.answers, posted.ended),
        "fault": posted.answers.first().and_then(|answer| answer.fault.as_ref()).map(|code| code.as_str()),
    });
    let status = if content.is_empty() { StatusCode::ACCEPTED } else { StatusCode::OK };
    let content = match read {
        None => content,
        Some(read) => {
            let all = content.len();
            let spliced = notices::splice(&read, content);
            metadata["notices"] = json!({
                "token": read.token.to_string(), "rows": read.rows.len(), "blocks": spliced.len() - all,
            });
            spliced
        }
    };
    let response = view::document(status, &json!({ "content": content, "metadata": metadata }));
    view::located(response, &format!("/v1/messages/{}", posted.kept.id))
}
