//! `/v1/tasks`: reads and transitions of tasks.

use axum::http::StatusCode;
use axum::response::Response;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use systole_core::inbox::payload::{
    Accept, ArtifactPayload, Cancel, Complete, Fail, Input, InputRequired, Progress as Progressed, Reject,
};
use systole_core::inbox::{ArtifactPart, InboxError, Status, TaskAction};
use systole_core::vocab::TaskId;
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

/// `POST /v1/tasks/{id}/...`: each with the payload that does the same in the pump, which the caller must be allowed to
/// call.
pub(super) fn transitions() -> [Call; 9] {
    [
        act::<Accept, Nothing>("/v1/tasks/{id}/accept", "Accept a pending task.", |_| TaskAction::Accept),
        act::<Progressed, Progress>("/v1/tasks/{id}/progress", "Report progress of a task.", |said| {
            TaskAction::Progress { percent: said.percent, text: said.text }
        }),
        act::<ArtifactPayload, Artifact>("/v1/tasks/{id}/artifact", "Add a piece of the result.", |said| {
            let Artifact { name, text, append, last } = said;
            TaskAction::Artifact(ArtifactPart { name, text, append, last })
        }),
        act::<InputRequired, Text>("/v1/tasks/{id}/input-required", "Ask the submitter for input.", |said| {
            TaskAction::Ask(said.text)
        }),
        act::<Input, Text>("/v1/tasks/{id}/input", "Give the input that the owner asked for.", |said| {
            TaskAction::Answer(said.text)
        }),
        act::<Complete, Word>("/v1/tasks/{id}/complete", "Complete a task.", |said| TaskAction::Complete(said.text)),
        act::<Fail, Text>("/v1/tasks/{id}/fail", "Fail a task.", |said| TaskAction::Fail(said.text)),
        act::<Reject, Text>("/v1/tasks/{id}/reject", "Reject a pending task.", |said| TaskAction::Reject(said.text)),
        act::<Cancel, Word>("/v1/tasks/{id}/cancel", "Cancel a task.", |said| TaskAction::Cancel(said.text)),
    ]
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
    action: fn(T) -> TaskAction,
) -> Call {
    let handler = async move |resource: ResourceRequest| {
        let ResourceRequest { app, caller, name: id, request } = resource.plain()?;
        caller.may::<P>(&app)?;
        let id = task_id(&id)?;
        let said: T = large_json(&app, request).await?;
        let (by, now, action) = (caller.principal(), app.mailboxes.now(), action(said));
        let board = app.organism.tasks();
        // As a message to a paused listener, the task waits; work that has begun goes on.
        let waits = matches!(action, TaskAction::Accept)
            && board.listener_of(id).is_some_and(|listener| app.organism.paused_since(listener).is_some());
        let mut refused = false;
        let acted = board.act(id, |inbox| {
            // A task that the caller may not see looks like one that never was.
            if !inbox.get(id).is_ok_and(|task| caller.sees(inbox, task)) {
                return Err(InboxError::Unknown { id });
            }
            refused = waits;
            if refused { Err(InboxError::Unknown { id }) } else { inbox.apply(&by, id, action, now) }
        });
        let acted = acted.await;
        if refused {
            return Err(Problem::conflict(
                "paused",
                "an operator has the job paused: accept the task when it is resumed",
            ));
        }
        let acted = acted?;
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
