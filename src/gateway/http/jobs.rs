//! Jobs, and the tasks in their inboxes.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use systole_core::inbox::payload::{Find, Register, Remove, Submit};
use systole_core::inbox::{JobCard, JobError, Status, Submission, Task, TaskContext, TaskInbox, page};
use systole_core::vocab::{Name, TaskId, Time};

use super::caller::Caller;
use super::request::{LIMIT, Query, given, idempotency_key, json, large_json};
use super::resource_request::ResourceRequest;
use super::{AppState, view};
use crate::gateway::PrincipalKind;
use crate::gateway::problem::Problem;
use systole_store::entropy::Entropy;

/// Bytes of descriptions in a page, which has at least one entry.
const BYTES: usize = 1 << 20;

/// A page of jobs.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Jobs")]
pub(super) struct JobPage {
    items: Vec<view::Job>,
    has_more: bool,
}

/// `GET /v1/jobs`
pub(super) async fn find(
    State(app): State<Arc<AppState>>,
    caller: Caller,
    request: Request,
) -> Result<Response, Problem> {
    let query = Query::of(&request, &["skill", "after", "limit"])?;
    caller.may::<Find>(&app)?;
    let limit = query.number("limit", LIMIT.0, (1, LIMIT.1))? as usize;
    let wanted = |card: &JobCard| {
        query.text("skill").is_none_or(|skill| card.skills.contains(skill))
            && query.text("after").is_none_or(|after| card.name.as_str() > after)
    };
    let mut cards = app.organism.tasks().cards().await?.into_iter().filter(wanted).peekable();
    let items: Vec<_> = cards.by_ref().take(limit).map(|card| view::job(&card)).collect();
    Ok(view::document(StatusCode::OK, &JobPage { items, has_more: cards.peek().is_some() }))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "JobCard")]
pub(super) struct Card {
    description: String,
    #[serde(default)]
    #[schemars(with = "Vec<String>", length(max = 64), inner(length(min = 1)))]
    skills: BTreeSet<String>,
}

/// `PUT /v1/jobs/{job}`: registers a job of the caller.
pub(super) async fn register(resource: ResourceRequest) -> Result<Response, Problem> {
    let ResourceRequest { app, caller, name: job, request } = resource.plain()?;
    caller.may::<Register>(&app)?;
    let (name, Card { description, skills }) = (named(&job)?, json(&app, request).await?);
    let card = JobCard { name: name.clone(), description, skills };
    let (owner, now, value) = (caller.principal(), app.mailboxes.now(), view::job(&card));
    app.organism.tasks().enrol(&name, |jobs| jobs.register(&owner, card, now)).await?;
    Ok(view::document(StatusCode::OK, &value))
}

/// `DELETE /v1/jobs/{job}`: removes a job; its owner keeps the tasks that wait.
pub(super) async fn remove(resource: ResourceRequest) -> Result<Response, Problem> {
    let ResourceRequest { app, caller, name: job, .. } = resource.plain()?;
    caller.may::<Remove>(&app)?;
    let (name, owner, now) = (named(&job)?, caller.principal(), app.mailboxes.now());
    app.organism.tasks().enrol(&name, |jobs| jobs.remove(&owner, &name, now)).await?;
    Ok(view::no_content())
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "TaskSubmission")]
pub(super) struct Wanted {
    #[schemars(length(min = 1))]
    description: String,
    /// The job on whose behalf the task is submitted; left out: the name of the submitter.
    #[serde(default, deserialize_with = "given")]
    #[schemars(with = "String", regex(pattern = r"^[A-Za-z0-9_.\-]{1,128}$"))]
    job: Option<String>,
    #[serde(default)]
    context: TaskContext,
    #[serde(default, deserialize_with = "given")]
    #[schemars(with = "String", extend("format" = "date-time"))]
    deadline: Option<String>,
    #[serde(default)]
    watched: bool,
}

/// A task that was submitted.
#[derive(Serialize, JsonSchema)]
pub(super) struct SubmittedTask {
    id: view::Id,
    #[schemars(with = "view::TaskStatus")]
    status: Status,
    /// False if the key was used for this task before.
    new: bool,
}

/// `POST /v1/jobs/{job}/tasks`
pub(super) async fn submit(resource: ResourceRequest) -> Result<Response, Problem> {
    let ResourceRequest { app, caller, name: job, request } = resource.plain()?;
    caller.may::<Submit>(&app)?;
    let name = named(&job)?;
    let key = idempotency_key(request.headers())?;
    let wanted: Wanted = large_json(&app, request).await?;
    app.open()?;
    let actor = caller.principal();
    let deadline = wanted.deadline.map(|text| text.parse::<Time>()).transpose();
    let submission = Submission {
        job: wanted.job.unwrap_or_else(|| actor.name().to_string()),
        description: wanted.description,
        context: wanted.context,
        deadline: deadline.map_err(|_| Problem::bad_request("'deadline' has to be a date and time (RFC 3339)"))?,
        key,
        // No caller in the pump waits for the task.
        detached: true,
        watched: wanted.watched,
    };
    let now = app.mailboxes.now();
    let id = TaskId::from_uuid(Entropy::Real.id(now));
    let taken = app.organism.tasks().submit(&actor, &name, submission, id, now).await?;
    let value = SubmittedTask { id: view::Id::of(&taken.id), status: taken.status, new: taken.new };
    let status = if taken.new { StatusCode::CREATED } else { StatusCode::OK };
    Ok(view::located(view::document(status, &value), &format!("/v1/tasks/{}", taken.id)))
}

/// A page of tasks.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Tasks")]
pub(super) struct TaskPage {
    items: Vec<view::BriefTask>,
    /// The cursor of the next page.
    next: Option<u64>,
    has_more: bool,
}

/// `GET /v1/jobs/{job}/tasks`: the tasks that the caller owns or submitted.
pub(super) async fn list(resource: ResourceRequest) -> Result<Response, Problem> {
    let ResourceRequest { app, caller, name: job, request } = resource;
    let query = Query::of(&request, &["status", "after", "limit"])?;
    let limit = query.number("limit", LIMIT.0, (1, LIMIT.1))? as usize;
    let after = query.number("after", 0, (0, u64::MAX))?;
    let status = query.text("status").map(status).transpose()?;
    let listed = |inbox: &TaskInbox| {
        let wanted = |task: &&Task| {
            status.map_or(!task.status.is_ended(), |status| task.status == status)
                && task.place > after
                && caller.sees(inbox, task)
        };
        let (tasks, mut behind) = page(inbox.tasks().filter(wanted), limit, BYTES, |task| task.description.len());
        let items: Vec<_> = tasks.iter().map(|task| view::brief(task)).collect();
        let next = tasks.last().map(|task| task.place);
        TaskPage { items, next, has_more: behind.peek().is_some() }
    };
    let job = named(&job)?;
    // Only a principal that may find or submit learns which jobs there are without having anything to do with them.
    let sees = |inbox: &TaskInbox| {
        caller.may::<Submit>(&app).is_ok() || caller.may::<Find>(&app).is_ok() || concerns(&caller, inbox)
    };
    let page = app.organism.tasks().inbox(&job, |inbox| sees(inbox).then(|| listed(inbox))).await?;
    Ok(view::document(StatusCode::OK, &page.ok_or_else(|| unknown(&job))?))
}

/// `GET /v1/jobs/{job}/inbox.md`: the pending tasks, as Markdown for a model.
pub(super) async fn markdown(resource: ResourceRequest) -> Result<Response, Problem> {
    let ResourceRequest { app, caller, name: job, .. } = resource.plain()?;
    let job = named(&job)?;
    let read = |inbox: &TaskInbox| owns(&caller, inbox).then(|| inbox.render_pending_context());
    let text = app.organism.tasks().inbox(&job, read).await?.ok_or_else(|| unknown(&job))?;
    Ok(view::typed(StatusCode::OK, "text/markdown; charset=utf-8", text))
}

fn owns(caller: &Caller, inbox: &TaskInbox) -> bool {
    let is_owner = inbox.owner().is_some_and(|owner| *owner.name() == caller.0.name);
    caller.0.kind == PrincipalKind::Admin || is_owner
}

/// Returns whether a principal owns a job, or has a task there.
fn concerns(caller: &Caller, inbox: &TaskInbox) -> bool {
    owns(caller, inbox) || inbox.tasks().any(|task| caller.sees(inbox, task))
}

/// A job that is not the caller's looks like one that never was.
fn unknown(job: &Name) -> Problem {
    JobError::Unknown { job: job.clone() }.into()
}

fn named(job: &str) -> Result<Name, Problem> {
    Name::parse(job).map_err(|error| Problem::not_found(error.to_string()))
}

fn status(text: &str) -> Result<Status, Problem> {
    let known = serde_json::from_value(Value::from(text));
    known.map_err(|error| Problem::bad_request(format!("'status': {error}")))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_submission_may_be_null_where_its_schema_says_so_and_nowhere_else() {
        let schema = schemars::schema_for!(Wanted);
        let properties = schema.get("properties").and_then(Value::as_object).unwrap();
        assert!(properties.contains_key("deadline") && properties.contains_key("job"));
        for (field, schema) in properties {
            let mut submission = json!({ "description": "x" });
            submission[field] = Value::Null;
            let taken = serde_json::from_value::<Wanted>(submission).is_ok();
            assert_eq!(taken, schema.to_string().contains("\"null\""), "{field}");
        }
    }
}
