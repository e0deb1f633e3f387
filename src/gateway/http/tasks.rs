//! `/v1/tasks`: reads and transitions of tasks.

use axum::http::StatusCode;
use axum::response::Response;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use systole_core::inbox::payload::{
    Accept, ArtifactPayload, Cancel, Complete, Fail, Input, InputRequired, Progress as Progressed, Reject,
};
use systole_core::inbox::{ArtifactPart, InboxChange, InboxError, InboxPrincipal, Status, TaskInbox};
use systole_core::vocab::{TaskId, Time};
use systole_xml::schema::Payload;

use super::call::Call;
use super::request::large_json;
use super::resource_request::ResourceRequest;
use super::view;
use crate::gateway::problem::Problem;
use crate::jobs::BoardError;

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

/// An object without members.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Nothing {}

/// A text that may be left out.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "TaskWord")]
struct Word {
    #[serde(default)]
    text: String,
}

/// A text.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "TaskText")]
struct Text {
    #[schemars(length(min = 1))]
    text: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ReportedProgress")]
struct Progress {
    #[schemars(range(max = 100))]
    percent: Option<u8>,
    #[serde(default)]
    text: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "TaskArtifact")]
struct Artifact {
    #[schemars(length(min = 1))]
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
pub(super) fn transitions() -> [Call; 9] {
    [
        act::<Accept, Nothing>("/v1/tasks/{id}/accept", "Accept a pending task.", |on, _| {
            on.inbox.accept(on.by, on.id, on.now)
        }),
        act::<Progressed, Progress>("/v1/tasks/{id}/progress", "Report progress of a task.", |on, said| {
            on.inbox.progress(on.by, on.id, said.percent, &said.text, on.now)
        }),
        act::<ArtifactPayload, Artifact>("/v1/tasks/{id}/artifact", "Add a piece of the result.", artifact),
        act::<InputRequired, Text>("/v1/tasks/{id}/input-required", "Ask the submitter for input.", |on, said| {
            on.inbox.input_required(on.by, on.id, &said.text, on.now)
        }),
        act::<Input, Text>("/v1/tasks/{id}/input", "Give the input that the owner asked for.", |on, said| {
            on.inbox.answer(on.by, on.id, &said.text, on.now)
        }),
        act::<Complete, Word>("/v1/tasks/{id}/complete", "Complete a task.", |on, said| {
            on.inbox.complete(on.by, on.id, &said.text, on.now)
        }),
        act::<Fail, Text>("/v1/tasks/{id}/fail", "Fail a task.", |on, said| {
            on.inbox.fail(on.by, on.id, &said.text, on.now)
        }),
        act::<Reject, Text>("/v1/tasks/{id}/reject", "Reject a pending task.", |on, said| {
            on.inbox.reject(on.by, on.id, &said.text, on.now)
        }),
        act::<Cancel, Word>("/v1/tasks/{id}/cancel", "Cancel a task.", |on, said| {
            on.inbox.cancel(on.by, on.id, &said.text, on.now)
        }),
    ]
}

fn artifact(on: On<'_>, said: Artifact) -> Done {
    let Artifact { name, text, append, last } = said;
    on.inbox.artifact(on.by, on.id, ArtifactPart { name, text, append, last }, on.now)
}

/// The present state of a task.
#[derive(Serialize, JsonSchema)]
struct ChangedTask {
    id: view::Id,
    #[schemars(with = "view::TaskStatus")]
    status: Status,
}

fn act<P: Payload, T: DeserializeOwned + JsonSchema + Send + 'static>(
    path: &'static str,
    summary: &'static str,
    act: fn(On<'_>, T) -> Done,
) -> Call {
    let handler = async move |resource: ResourceRequest| {
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
        Ok::<_, Problem>(view::document(StatusCode::OK, &ChangedTask { id: view::Id::of(&id), status: acted }))
    };
    Call::post(path, handler)
        .about("tasks", summary)
        .takes::<T>()
        .answers::<ChangedTask>(StatusCode::OK, "The present state of the task.")
        .refuses(&[403, 404, 409, 422])
}

/// The id of a task in a path; a text that is no id looks like an unknown one.
fn task_id(text: &str) -> Result<TaskId, Problem> {
    text.parse().map_err(|_| no_task())
}

fn no_task() -> Problem {
    Problem::not_found("there is no such task, or it is not yours, or it was forgotten")
}
