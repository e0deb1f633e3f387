//! Errors of the gateway, all in one shape: problem details (RFC 9457).

use std::sync::Arc;

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value, json};
use systole_core::inbox::{InboxError, InboxProblem, JobError};
use systole_core::mailbox::Refused;
use systole_core::vocab::{BrokenRule, Fault, FaultCode};
use systole_xml::schema::{JsonMistake, JsonProblem, JsonRefusal};

use super::notices::DelegateFailure;
use super::service::{ActError, Ending};
use super::submissions::SubmitError;
use crate::accept::Full;
use crate::jobs::BoardError;
use crate::journal::QueryError;
use crate::runtime::SendError;

/// The media type of problem details.
pub(super) const PROBLEM: &str = "application/problem+json";

/// The code of a body that is encoded.
const ENCODING: &str = "content_encoding";

/// A refusal of a request, as problem details.
#[derive(Debug)]
pub struct Problem {
    status: StatusCode,
    /// Short code for machines: the last part of `type`.
    code: &'static str,
    title: &'static str,
    detail: String,
    more: Box<Map<String, Value>>,
    retry_after: Option<u64>,
    /// True if the request was refused before it could have an effect, because the organism ends.
    untouched: bool,
}

/// The mark of a request that had no effect since the organism ends, among the extensions of its response: another node may
/// serve it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Untouched;

/// A problem, among the extensions of its response.
#[derive(Clone)]
pub(crate) struct Rejection {
    /// The short code for machines.
    pub(crate) code: &'static str,
    /// The reason.
    pub(crate) detail: Arc<str>,
}

/// Problem details: RFC 9457.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Problem")]
pub(super) struct Details {
    #[serde(rename = "type")]
    kind: String,
    title: &'static str,
    status: u16,
    detail: String,
    /// A short code for machines: the last part of `type`.
    code: &'static str,
    #[serde(flatten)]
    #[schemars(with = "More")]
    more: Map<String, Value>,
}

/// Members that problems of some codes have.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its schema is used")]
struct More {
    /// The broken rule.
    #[schemars(skip_serializing_if = "Option::is_none")]
    rule: Option<String>,
    /// The place of the mistake.
    #[schemars(skip_serializing_if = "Option::is_none")]
    place: Option<Value>,
    /// The place of the mistake in a body of JSON, as a JSON pointer (RFC 6901).
    #[schemars(skip_serializing_if = "Option::is_none")]
    pointer: Option<String>,
    /// A valid payload, in the form of the body.
    #[schemars(skip_serializing_if = "Option::is_none")]
    example: Option<String>,
    /// The cursor to go on from.
    #[schemars(skip_serializing_if = "Option::is_none")]
    oldest: Option<String>,
    /// The declared names: {namespace}local.
    #[schemars(skip_serializing_if = "Option::is_none")]
    declared: Option<Vec<String>>,
    #[serde(flatten)]
    others: Map<String, Value>,
}

impl Problem {
    /// A refusal with that status, a short code for machines, a title and its reason.
    pub fn new(status: StatusCode, code: &'static str, title: &'static str, detail: impl Into<String>) -> Self {
        Self { status, code, title, detail: detail.into(), more: Box::default(), retry_after: None, untouched: false }
    }

    /// A request that can't be read.
    pub fn bad_request(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "bad_request", "The request can't be read", detail)
    }

    pub(crate) fn unauthorized() -> Self {
        let detail = "send 'Authorization: Bearer TOKEN' with a token of 'systole token new'";
        Self::new(StatusCode::UNAUTHORIZED, "unauthorized", "The token is unknown", detail)
    }

    /// The agent that asks was removed, or its token was.
    pub fn removed() -> Self {
        Self::not_found("the agent of that token was removed").with("deleted", true)
    }

    /// A request that its principal may not make.
    pub fn forbidden(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, "forbidden", "Not allowed", detail)
    }

    /// A resource that does not exist.
    pub fn not_found(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not_found", "Not found", detail)
    }

    /// A conflict with an earlier change.
    pub fn conflict(code: &'static str, detail: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, code, "Conflict with an earlier change", detail)
    }

    pub(crate) fn too_large(limit: usize) -> Self {
        Self::over(format!("a body may have {limit} bytes"))
    }

    /// A message that is too large as re-encoded: canonical, with an id and a thread.
    pub(crate) fn too_large_as_written(bytes: usize, limit: usize) -> Self {
        Self::over(format!("the message has {bytes} bytes as re-encoded, and may have {limit}: send a shorter one"))
    }

    fn over(detail: String) -> Self {
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", "The body is too large", detail)
    }

    /// Content that breaks a rule.
    pub fn unprocessable(code: &'static str, detail: impl Into<String>) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, code, "The content breaks a rule", detail)
    }

    pub(crate) fn too_many(code: &'static str, detail: impl Into<String>, seconds: u64) -> Self {
        let problem = Self::new(StatusCode::TOO_MANY_REQUESTS, code, "Too much at once", detail);
        Self { retry_after: Some(seconds), ..problem }
    }

    /// A body of a media type that a call doesn't take.
    pub(crate) fn unsupported(detail: impl Into<String>, taken: &[&str]) -> Self {
        let title = "The body is of another media type";
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "media_type", title, detail).with("takes", taken.to_vec())
    }

    /// A body in an encoding that is not decoded here.
    pub(crate) fn encoded(detail: impl Into<String>) -> Self {
        let title = "The body is encoded";
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, ENCODING, title, detail)
    }

    /// No room for a call.
    pub(crate) fn full(full: &Full) -> Self {
        let problem = Self::new(full.status(), "connections", "Too much at once", full.to_string());
        Self { retry_after: Some(1), ..problem }
    }

    /// Too many bytes of bodies are in memory.
    pub(crate) fn bodies(status: StatusCode, detail: impl Into<String>) -> Self {
        Self { retry_after: Some(1), ..Self::new(status, "bodies", "Too much at once", detail) }
    }

    /// An organism that is stopping.
    pub fn stopping() -> Self {
        let detail = "the organism is stopping";
        let problem = Self::new(StatusCode::SERVICE_UNAVAILABLE, "stopping", "Temporarily unavailable", detail);
        Self { retry_after: Some(1), ..problem }
    }

    /// An organism that was stopping before the request could have an effect.
    pub(crate) fn closed() -> Self {
        Self { untouched: true, ..Self::stopping() }
    }

    /// No node serves the request: nothing was done, or it is unknown.
    pub(crate) fn node(status: StatusCode, code: &'static str, detail: impl Into<String>) -> Self {
        Self { retry_after: Some(1), ..Self::new(status, code, "No node serves the request", detail) }
    }

    /// An end of a message that the pump has not run again yet after its start.
    pub(crate) fn early() -> Self {
        Self::starting(
            "the organism has started again, or its conversation moves, and its listener does not wait for it yet: repeat the call",
        )
    }

    /// The journal has it, but it is not back yet after a start.
    pub(crate) fn starting(detail: impl Into<String>) -> Self {
        let problem = Self::new(StatusCode::SERVICE_UNAVAILABLE, "starting", "Temporarily unavailable", detail);
        Self { retry_after: Some(1), ..problem }
    }

    /// Adds a member to the problem.
    pub fn with(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.more.insert(key.to_owned(), value.into());
        self
    }
}

impl From<QueryError> for Problem {
    fn from(error: QueryError) -> Self {
        let title = "The journal can't be read";
        let problem = Self::new(StatusCode::SERVICE_UNAVAILABLE, "store", title, error.problem().to_owned());
        Self { retry_after: Some(1), ..problem }
    }
}

impl From<Ending> for Problem {
    fn from(_: Ending) -> Self {
        Self::stopping()
    }
}

impl From<ActError> for Problem {
    fn from(error: ActError) -> Self {
        match error {
            ActError::Ending => Self::closed(),
            ActError::Refused(Refused::Over(state)) => {
                Self::conflict("settled", format!("the message is already {}", state.as_str()))
            }
            ActError::Refused(Refused::Stale) => {
                Self::conflict("stale_receipt", "that lease has ended: lease the message again")
            }
            ActError::Refused(Refused::Unknown) => Self::not_found("there is no such message, or it was forgotten"),
            ActError::Refused(Refused::Early) => Self::early(),
            ActError::Refused(Refused::Full(cap)) => {
                Self::too_many("full", format!("{cap} bytes wait in that mailbox"), 1)
            }
        }
    }
}

impl From<SubmitError> for Problem {
    fn from(error: SubmitError) -> Self {
        match error {
            SubmitError::Query(error) => error.into(),
            SubmitError::NoRoom(_) => {
                let detail = format!(
                    "{error} (retention.bytes): the message was not accepted; there is room again when the oldest are \
                     past retention.age, or once the operator raises retention.bytes or lowers retention.age"
                );
                Self::new(StatusCode::INSUFFICIENT_STORAGE, "no_room", "No room for the answer", detail)
            }
            SubmitError::Stranger(_) => Self::forbidden(error.to_string()),
            SubmitError::Unsent(SendError::Closed) => Self::closed(),
            SubmitError::Unsent(error) | SubmitError::Send(error) => error.into(),
        }
    }
}

/// A message that the organism did not take.
impl From<SendError> for Problem {
    fn from(error: SendError) -> Self {
        match error {
            SendError::Closed => Self::stopping(),
            SendError::Overloaded(_) | SendError::LogFull => {
                let title = "The organism is full";
                let detail = format!("{error}: send the message again later");
                let problem = Self::new(StatusCode::SERVICE_UNAVAILABLE, "overload", title, detail);
                Self { retry_after: Some(1), ..problem }
            }
            SendError::Unread => Self::too_many("unread", error.to_string(), 1),
            SendError::Unwritable { .. } => Self::unprocessable("unwritable", error.to_string()),
        }
    }
}

/// A failed confirmation: its notices may come again.
impl From<DelegateFailure> for Problem {
    fn from(error: DelegateFailure) -> Self {
        let title = "The confirmation can't be kept";
        let problem = Self::new(StatusCode::SERVICE_UNAVAILABLE, "store", title, error.to_string());
        Self { retry_after: Some(1), ..problem }
    }
}

/// Faults of the pump as problems.
impl Problem {
    /// Reason why an answer is refused. A payload that no listener accepts is a mistake in the answer, not in the path.
    pub(super) fn of_answer(fault: Fault) -> Self {
        match fault.code {
            FaultCode::Route => Self::unprocessable("route", &*fault.message),
            _ => fault.into(),
        }
    }
}

impl From<Fault> for Problem {
    fn from(fault: Fault) -> Self {
        match fault.code {
            FaultCode::Route => {
                let problem = Self::new(StatusCode::NOT_FOUND, "route", "No receiver", &*fault.message);
                problem.with_rule(fault.rule)
            }
            _ => Self::of_entry(fault),
        }
    }
}

impl Problem {
    /// A wrong answer of a person, always with its rule.
    pub(super) fn of_entry(fault: Fault) -> Self {
        Self::unprocessable(fault.code.as_str(), &*fault.message).with_rule(fault.rule)
    }

    fn with_rule(self, rule: Option<Box<BrokenRule>>) -> Self {
        let mut problem = self;
        let Some(rule) = rule else { return problem };
        problem = problem.with("rule", rule.rule);
        if let Some(at) = rule.at {
            problem = problem.with("place", json!({ "line": at.line, "column": at.column }));
        }
        if let Some(example) = rule.example {
            problem = problem.with("example", example);
        }
        problem
    }
}

/// JSON that is no valid payload.
impl From<JsonRefusal> for Problem {
    fn from(refusal: JsonRefusal) -> Self {
        match refusal {
            JsonRefusal::Encoding(error) => Self::bad_request(format!("the body is not UTF-8: {error}")),
            JsonRefusal::Xml(error) => Self::unprocessable("payload", error.to_string()).with("pointer", ""),
            JsonRefusal::Form(error) => {
                let detail = error.to_string();
                let code = match error.problem {
                    JsonProblem::TooLarge { .. } => return Self::over(detail),
                    JsonProblem::Syntax { .. } | JsonProblem::Repeated { .. } | JsonProblem::TooDeep { .. } => {
                        "malformed"
                    }
                    _ => "payload",
                };
                let problem = Self::unprocessable(code, detail).with("pointer", error.pointer);
                match error.at {
                    Some((line, column)) => problem.with("place", json!({ "line": line, "column": column })),
                    None => problem.with("rule", error.problem.to_string()),
                }
            }
            JsonRefusal::Rules { mistakes, example } => {
                let told =
                    |JsonMistake { rule, pointer, .. }: &JsonMistake| json!({ "rule": rule, "pointer": pointer });
                let more: Vec<Value> = mistakes.iter().skip(1).map(told).collect();
                let first = mistakes.into_iter().next();
                let detail = first.as_ref().map(JsonMistake::to_string).unwrap_or_default();
                let mut problem = Self::unprocessable("payload", detail);
                if let Some(JsonMistake { rule, pointer, .. }) = first {
                    problem = problem.with("rule", rule).with("pointer", pointer);
                }
                let problem = if more.is_empty() { problem } else { problem.with("more", more) };
                match example {
                    Some(example) => problem.with("example", example),
                    None => problem,
                }
            }
            _ => Self::unprocessable("payload", refusal.to_string()),
        }
    }
}

/// Errors of the inbox of a job.
impl From<JobError> for Problem {
    fn from(error: JobError) -> Self {
        let detail = error.to_string();
        match error {
            JobError::Unknown { .. } | JobError::Unnamed => Self::not_found(detail),
            // Whoever has the name, and for a job or as a listener, is nothing to tell.
            JobError::Taken { .. } | JobError::Reserved { .. } => {
                Self::conflict("taken", "the name is not free: choose another one")
            }
            JobError::Full { .. } => Self::too_many("full", detail, 1),
            JobError::Inbox(error) => match error {
                InboxError::Unknown { .. } => Self::not_found(detail),
                InboxError::NotOwner { .. } | InboxError::NotSubmitter { .. } => Self::forbidden(detail),
                InboxError::Transition { .. } => Self::conflict("transition", detail),
                InboxError::KeyTaken { .. } | InboxError::IdTaken { .. } => Self::conflict("key_taken", detail),
                InboxError::Full { .. } | InboxError::Problem(InboxProblem::Outbox { .. }) => {
                    Self::too_many("full", detail, 1)
                }
                _ => Self::unprocessable("task", detail),
            },
        }
    }
}

impl From<BoardError> for Problem {
    fn from(error: BoardError) -> Self {
        match error {
            BoardError::Refused(error) => error.into(),
            BoardError::Lost(_) => Self::stopping(),
        }
    }
}

impl Problem {
    /// The code, the reason, and the members beside them, such as the broken rule, its place and an example.
    pub fn parts(&self) -> (&'static str, &str, &Map<String, Value>) {
        (self.code, &self.detail, &self.more)
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let details = Details {
            kind: format!("urn:systole:problem:{}", self.code),
            title: self.title,
            status: self.status.as_u16(),
            detail: self.detail,
            code: self.code,
            more: *self.more,
        };
        let rejection = Rejection { code: self.code, detail: details.detail.as_str().into() };
        let text = serde_json::to_string(&details).expect("the keys of a problem are texts");
        let mut response = Response::new(Body::from(text));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(PROBLEM));
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if self.code == ENCODING {
            headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        }
        if let Some(seconds) = self.retry_after {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        response.extensions_mut().insert(rejection);
        if self.untouched {
            response.extensions_mut().insert(Untouched);
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::FileProblem;

    #[test]
    fn no_client_learns_where_the_journal_is() {
        let error = FileProblem::damaged("a page").of("/srv/organism.journal".as_ref());
        assert!(error.to_string().contains("/srv/"), "the log has it");
        let problem = Problem::from(QueryError::from(error));
        assert!(
            problem.detail.starts_with("damaged: a page") && !problem.detail.contains("/srv"),
            "{}",
            problem.detail
        );
    }
}
