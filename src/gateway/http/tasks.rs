//! `/v1/tasks`: reads and transitions of tasks.

use std::sync::Arc;

use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::{MethodRouter, post};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use systole_core::inbox::payload::{
    Accept, ArtifactPayload, Cancel, Complete, Fail, Input, InputRequired, Progress as Progressed, Reject,
};
use systole_core::inbox::{ArtifactPart, InboxChange, InboxError, InboxPrincipal, TaskInbox};
use systole_core::vocab::{TaskId, Time};
use systole_xml::schema::Payload;

use super::request::large_json;
use super::resource_request::ResourceRequest;
use super::{AppState, view};
use crate::gateway::problem::Problem;
use crate::runtime::inbox::BoardError;

/// `GET /v1/tasks/{id}`
pub(super) async fn look(resource: ResourceRequest) -> Result<Response, Problem> {
    let ResourceRequest { app, caller, name: id, .. } = resource.plain()?;
    let id = task_id(&id)?;
    let seen = app
        .organism
        .tasks()
        .task(id, |inbox, task| (caller.sees(inbox, task) && !task.is_forgotten()).then(|| view::task(task)));
    let task = match seen.await {
        // A task that the caller may not see looks like one that never was.
        Ok(None) | Err(BoardError::Refused(_)) => return Err(no_task()),
        Ok(Some(task)) => task,
        Err(lost) => return Err(lost.into()),
    };
    Ok(view::document(StatusCode::OK, &task))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Nothing {}

/// A text that may be left out.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Word {
    #[serde(default)]
    text: String,
}

/// A text.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Text {
    text: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Progress {
    percent: Option<u8>,
    #[serde(default)]
    text: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Artifact {
    name: String,
    text: String,
    #[serde(default)]
    append: bool,
    #[serde(default)]
    last: bool,
}

/// A transition of a task: its inbox, its principal, its time.
struct On<'a> {
    inbox: &'a mut TaskInbox,
    by: &'a InboxPrincipal,
    id: TaskId,
    now: Time,
}

type Done = Result<InboxChange, InboxError>;

/// `POST /v1/tasks/{id}/...`: each with the payload that does the same in the pump, which the caller must be allowed to
/// call.
pub(super) fn transitions() -> [(&'static str, MethodRouter<Arc<AppState>>); 9] {
    [
        ("/v1/tasks/{id}/accept", act::<Accept, Nothing>(|on, _| on.inbox.accept(on.by, on.id, on.now))),
        (
            "/v1/tasks/{id}/progress",
            act::<Progressed, Progress>(|on, said| on.inbox.progress(on.by, on.id, said.percent, &said.text, on.now)),
        ),
        ("/v1/tasks/{id}/artifact", act::<ArtifactPayload, Artifact>(artifact)),
        (
            "/v1/tasks/{id}/input-required",
            act::<InputRequired, Text>(|on, said| on.inbox.input_required(on.by, on.id, &said.text, on.now)),
        ),
        ("/v1/tasks/{id}/input", act::<Input, Text>(|on, said| on.inbox.answer(on.by, on.id, &said.text, on.now))),
        (
            "/v1/tasks/{id}/complete",
            act::<Complete, Word>(|on, said| on.inbox.complete(on.by, on.id, &said.text, on.now)),
        ),
        ("/v1/tasks/{id}/fail", act::<Fail, Text>(|on, said| on.inbox.fail(on.by, on.id, &said.text, on.now))),
        ("/v1/tasks/{id}/reject", act::<Reject, Text>(|on, said| on.inbox.reject(on.by, on.id, &said.text, on.now))),
        ("/v1/tasks/{id}/cancel", act::<Cancel, Word>(|on, said| on.inbox.cancel(on.by, on.id, &said.text, on.now))),
    ]
}

fn artifact(on: On<'_>, said: Artifact) -> Done {
    let Artifact { name, text, append, last } = said;
    on.inbox.artifact(on.by, on.id, ArtifactPart { name, text, append, last }, on.now)
}

fn act<P: Payload, T: DeserializeOwned + Send + 'static>(act: fn(On<'_>, T) -> Done) -> MethodRouter<Arc<AppState>> {
    post(async move |resource: ResourceRequest| {
        let ResourceRequest { app, caller, name: id, request } = resource.plain()?;
        caller.may::<P>(&app)?;
        let id = task_id(&id)?;
        let said: T = large_json(&app, request).await?;
        let (by, now) = (caller.principal(), app.mailboxes.now());
        let acted = app.organism.tasks().act(id, |inbox| {
            // A task that the caller may not see looks like one that never was.
            if !inbox.get(id).is_ok_and(|task| caller.sees(inbox, task)) {
                return Err(InboxError::Unknown { id });
            }
            act(On { inbox, by: &by, id, now }, said)
        });
        let acted = acted.await?;
        let value = json!({ "id": id.to_string(), "status": acted });
        Ok::<_, Problem>(view::document(StatusCode::OK, &value))
    })
}

/// The id of a task in a path; a text that is no id looks like an unknown one.
fn task_id(text: &str) -> Result<TaskId, Problem> {
    text.parse().map_err(|_| no_task())
}

fn no_task() -> Problem {
    Problem::not_found("there is no such task, or it is not yours, or it was forgotten")
}
