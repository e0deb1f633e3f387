//! Bodies of answers.

use std::borrow::Cow;

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use bytes::Bytes;
use schemars::generate::SchemaGenerator;
use schemars::{JsonSchema, Schema, json_schema};
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use systole_core::inbox::{self, Artifact, Exchange, JobCard, Status, Submitter, TaskContext, TaskProgress};
use systole_core::journal::MailState;
use systole_core::vocab::{Name, Time, XmlLimits};
use systole_xml::ladder::{Canonical, Envelope, strict, with_metadata};

use super::AppState;
use crate::gateway::cursor::{self, Place};
use crate::gateway::problem::Problem;
use crate::journal::{Sent, SentAnswer, StoredMail};
use crate::listeners::organism::Correlation;
use crate::runtime::Organism;

/// A JSON document.
pub(in crate::gateway) fn document(status: StatusCode, value: &impl Serialize) -> Response {
    typed(status, "application/json", text(value))
}

/// A JSON document with messages in it. It is written on another thread: that takes as long as many calls.
pub(in crate::gateway) async fn long_document<T: Serialize>(
    app: &AppState,
    value: impl FnOnce() -> T + Send + 'static,
) -> Result<Response, Problem> {
    let text = app.query.beside(move || text(&value())).await?;
    Ok(typed(StatusCode::OK, "application/json", text))
}

/// The text of a JSON document.
pub(super) fn text(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("the keys of all answers are texts")
}

/// An envelope.
pub(super) fn envelope(text: Bytes) -> Response {
    typed(StatusCode::OK, "application/xml", text)
}

pub(crate) fn typed(status: StatusCode, kind: &'static str, body: impl Into<Body>) -> Response {
    let mut response = Response::new(body.into());
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

pub(super) fn no_content() -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    response
}

/// A place in a mailbox, as a cursor.
pub(super) fn cursor(app: &AppState, mailbox: &Name, place: Place) -> String {
    cursor::write(&app.cursors, mailbox, place)
}

/// State of a reader, as its cursors carry it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reading {
    /// Sequence number up to which messages were forgotten.
    pub(super) mark: u64,
    /// True for a reader that leaves nothing out.
    pub(super) order: bool,
}

impl Reading {
    /// A reader that may leave messages out.
    pub(super) fn skipping(mark: u64) -> Self {
        Self { mark, order: false }
    }

    pub(super) fn place(self, seq: u64) -> Place {
        Place { seq, mark: self.mark, order: self.order }
    }
}

/// An id of a message, a thread or a task.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline, extend("format" = "uuid"))]
pub(super) struct Id(String);

impl Id {
    pub(super) fn of(id: &impl ToString) -> Self {
        Self(id.to_string())
    }
}

/// A date and time (RFC 3339).
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline, extend("format" = "date-time"))]
pub(super) struct DateTime(String);

impl DateTime {
    pub(super) fn of(time: Time) -> Self {
        Self(time.to_string())
    }
}

/// The name of a payload: {namespace}local.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(inline)]
pub(super) struct PayloadName(String);

/// A message of a mailbox.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Item {
    id: Id,
    /// The place of the message in its mailbox.
    cursor: String,
    thread: Id,
    from: String,
    #[serde(rename = "type")]
    payload: PayloadName,
    in_reply_to: Option<Id>,
    at: DateTime,
    #[schemars(schema_with = "mail_states")]
    state: &'static str,
    deliveries: u32,
    last_error: Option<String>,
    envelope: String,
}

/// Makes the view of a message of a mailbox.
pub(super) fn mail(app: &AppState, mail: &StoredMail, reading: Reading) -> Item {
    let StoredMail { record, status } = mail;
    Item {
        id: Id::of(&record.id),
        cursor: cursor(app, &record.mailbox, reading.place(record.seq)),
        thread: Id::of(&record.thread),
        from: record.from.to_string(),
        payload: PayloadName(record.payload.to_string()),
        in_reply_to: record.in_reply_to.as_ref().map(Id::of),
        at: DateTime::of(record.at),
        state: state_of(status.state),
        deliveries: status.deliveries,
        last_error: status.error.as_deref().map(str::to_owned),
        envelope: leaving(&app.organism, &record.envelope),
    }
}

/// The text of an envelope as it leaves the organism.
pub(super) fn leaving(organism: &Organism, envelope: &Bytes) -> String {
    String::from_utf8_lossy(&organism.sign(envelope)).into_owned()
}

/// The state for readers: a redriven message waits like any other.
fn state_of(state: MailState) -> &'static str {
    match state {
        MailState::Redriven => MailState::Waiting.as_str(),
        other => other.as_str(),
    }
}

fn mail_states(_: &mut SchemaGenerator) -> Schema {
    let mut states: Vec<_> = MailState::ALL.map(state_of).into();
    states.sort_unstable();
    states.dedup();
    json_schema!({ "type": "string", "enum": states })
}

/// A message of a mailbox, for the listener that answers it.
#[derive(Serialize, JsonSchema)]
pub(super) struct KeptItem {
    #[serde(flatten)]
    pub(super) item: Item,
    pub(super) attempts: u32,
    /// The reply of the listener.
    pub(super) reply: Option<String>,
}

/// A message of a mailbox with the receipt of its lease.
#[derive(Serialize, JsonSchema)]
pub(super) struct Leased {
    #[serde(flatten)]
    item: Item,
    receipt: Receipt,
    /// The end of the lease.
    until: DateTime,
    /// The payload as JSON, if the request asked for it: an object of one property, its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Map<String, Value>", skip_serializing_if = "Option::is_none")]
    json: Option<Box<RawValue>>,
}

/// A receipt of a lease or a hold.
#[derive(Serialize, JsonSchema)]
#[schemars(inline, extend("pattern" = "^[0-9a-f]{32}$"))]
pub(super) struct Receipt(String);

impl Receipt {
    pub(super) fn of(receipt: [u8; 16]) -> Self {
        Self(uuid::Uuid::from_bytes(receipt).simple().to_string())
    }
}

pub(super) fn leased(app: &AppState, leased: &StoredMail, receipt: [u8; 16], as_json: bool) -> Leased {
    let item = mail(app, leased, Reading::skipping(0));
    let json = as_json.then(|| match app.mailboxes.listener_of(leased.record.id) {
        // Its version judges the answer, too.
        Some(listener) => {
            let catalog = app.organism.shared.version_of(listener).catalog;
            named_json(payload(&leased.record.envelope).and_then(|payload| catalog.to_named_json(&payload)))
        }
        None => payload_json(&leased.record.envelope, &app.organism),
    });
    Leased { item, receipt: Receipt::of(receipt), until: DateTime::of(leased.status.due), json }
}

/// A registered job.
#[derive(Serialize, JsonSchema)]
pub(super) struct Job {
    name: String,
    description: String,
    skills: Vec<String>,
}

pub(super) fn job(card: &JobCard) -> Job {
    Job {
        name: card.name.to_string(),
        description: card.description.clone(),
        skills: card.skills.iter().cloned().collect(),
    }
}

/// The schema of the status of a task: an enumeration, of which generators make one type.
pub(super) struct TaskStatus;

impl JsonSchema for TaskStatus {
    fn schema_name() -> Cow<'static, str> {
        "TaskStatus".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "enum": Status::ALL.map(Status::as_str) })
    }
}

/// A task in short.
#[derive(Serialize, JsonSchema)]
pub(super) struct BriefTask {
    id: Id,
    place: u64,
    #[schemars(with = "TaskStatus")]
    status: Status,
    agent: String,
    job: String,
    description: String,
    created: DateTime,
    attempts: u32,
}

pub(super) fn brief(task: &inbox::Task) -> BriefTask {
    BriefTask {
        id: Id::of(&task.id),
        place: task.place,
        status: task.status,
        agent: task.source.agent.to_string(),
        job: task.source.job.to_string(),
        description: task.description.clone(),
        created: DateTime::of(task.created),
        attempts: task.attempts,
    }
}

/// A task without the fields that concern its job and the pump alone.
#[derive(Serialize, JsonSchema)]
pub(super) struct Task {
    id: Id,
    place: u64,
    source: Submitter,
    target: String,
    description: String,
    context: TaskContext,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    deadline: Option<DateTime>,
    detached: bool,
    watched: bool,
    #[schemars(with = "TaskStatus")]
    status: Status,
    created: DateTime,
    changed: DateTime,
    attempts: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    progress: Option<TaskProgress>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    artifacts: Vec<Artifact>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    questions: Vec<Exchange>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    undelivered: Option<String>,
}

pub(super) fn task(task: &inbox::Task) -> Task {
    let task = task.clone();
    Task {
        id: Id::of(&task.id),
        place: task.place,
        source: task.source,
        target: task.target.to_string(),
        description: task.description,
        context: task.context,
        key: task.key,
        deadline: task.deadline.map(DateTime::of),
        detached: task.detached,
        watched: task.watched,
        status: task.status,
        created: DateTime::of(task.created),
        changed: DateTime::of(task.changed),
        attempts: task.attempts,
        progress: task.progress,
        artifacts: task.artifacts,
        questions: task.questions,
        result: task.result,
        reason: task.reason,
        undelivered: task.undelivered,
    }
}

/// An answer with the path of its resource, in `Location`.
pub(super) fn located(mut response: Response, path: &str) -> Response {
    if let Ok(location) = HeaderValue::from_str(path) {
        response.headers_mut().insert(header::LOCATION, location);
    }
    response
}

/// A submission of a client, with some of its answers.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Sent")]
pub(super) struct SentMessage {
    id: Id,
    thread: Id,
    at: DateTime,
    state: SubmissionState,
    attempts: u32,
    last_error: Option<String>,
    /// The first reply.
    reply: Option<Reply>,
    replies: Vec<Reply>,
    has_more: bool,
}

/// State of a submission. `silent`: its conversation has ended without an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(super) enum SubmissionState {
    Queued,
    Delivered,
    Answered,
    Faulted,
    Silent,
}

/// An answer to a message of a client.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(super) struct Reply {
    from: String,
    #[serde(rename = "type")]
    payload: PayloadName,
    /// The code of the fault, if the answer is one.
    fault: Option<&'static str>,
    envelope: String,
    /// The payload as JSON, if the request asked for it: an object of one property, its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Map<String, Value>", skip_serializing_if = "Option::is_none")]
    json: Option<Box<RawValue>>,
}

/// The payload of an envelope of the pump.
pub(in crate::gateway) fn payload(envelope: &Bytes) -> Option<Canonical> {
    // The pump wrote the envelope: no limits apply.
    let canonical = strict::canonicalize(envelope, &XmlLimits::UNLIMITED).ok()?;
    Some(Envelope::open(canonical).ok()?.into_parts().1)
}

/// The payload of an envelope of the pump, as JSON that names it, by the schemas that fit it; null for one that has none any
/// more.
pub(super) fn payload_json(envelope: &Bytes, organism: &Organism) -> Box<RawValue> {
    let fitting = payload(envelope).and_then(|payload| Some((organism.shared.catalog_for(&payload)?, payload)));
    named_json(fitting.and_then(|(catalog, payload)| catalog.to_named_json(&payload)))
}

fn named_json(json: Option<String>) -> Box<RawValue> {
    json.and_then(|json| RawValue::from_string(json).ok()).unwrap_or_else(|| RawValue::NULL.to_owned())
}

/// Makes the view of a submission; `first` is true if no other answer came before its answers. The payloads are there as JSON,
/// too, and a correlation is in each envelope, if so asked.
pub(super) fn sent(app: &AppState, sent: &Sent, first: bool, with: (bool, Option<&Correlation>)) -> SentMessage {
    let replies: Vec<_> = sent.answers.iter().map(|sent| answer(&app.organism, sent, with)).collect();
    let without = if sent.ended { SubmissionState::Silent } else { SubmissionState::Delivered };
    SentMessage {
        id: Id::of(&sent.submission.id),
        thread: Id::of(&sent.submission.root),
        at: DateTime::of(sent.at),
        // The message is in the organism from the start.
        state: sent.faulted.map_or(without, answered),
        attempts: 1,
        last_error: None,
        reply: replies.first().filter(|_| first).cloned(),
        replies,
        has_more: sent.has_more,
    }
}

/// State of a submission as a request that waited knows it: its answers, and whether its conversation has ended.
pub(super) fn state(answers: &[SentAnswer], ended: bool) -> SubmissionState {
    let without = if ended { SubmissionState::Silent } else { SubmissionState::Queued };
    answers.first().map_or(without, |first| answered(first.fault.is_some()))
}

const fn answered(by_fault: bool) -> SubmissionState {
    if by_fault { SubmissionState::Faulted } else { SubmissionState::Answered }
}

fn answer(organism: &Organism, answer: &SentAnswer, (as_json, correlation): (bool, Option<&Correlation>)) -> Reply {
    let envelope = match correlation {
        Some(correlation) => &with_metadata(&answer.envelope, "correlation", &correlation.to_string()),
        None => &answer.envelope,
    };
    Reply {
        from: answer.from.to_string(),
        payload: PayloadName(answer.payload.to_string()),
        fault: answer.fault.as_ref().map(|code| code.as_str()),
        envelope: leaving(organism, envelope),
        json: as_json.then(|| payload_json(&answer.envelope, organism)),
    }
}

pub(super) fn date_time(text: &str) -> Option<Time> {
    text.parse().ok()
}
