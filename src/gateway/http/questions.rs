//! `/v1/questions`: questions to people, for the people that they are addressed to, and for admins.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use bytes::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use systole_core::question::{QuestionRefusal, QuestionState};
use systole_xml::schema::{Catalog, Validator};

use super::call::Call;
use super::caller::Caller;
use super::request::{Form, LIMIT, Query, json as parse, payload_body};
use super::resource_request::ResourceRequest;
use super::tasks::Nothing;
use super::{AppState, view};
use crate::gateway::problem::Problem;
use crate::operations::{QuestionError, QuestionPage, QuestionRecord, QuestionStateRecord, Questions, Wanted};

pub(super) fn calls() -> [Call; 7] {
    let acts = |call: Call| {
        call.answers::<QuestionStateRecord>(StatusCode::OK, "The state of the question, which is durable.")
            .refuses(&[403, 404, 409])
    };
    [
        Call::get("/v1/questions", list)
            .about("questions", "The open questions that the caller may answer, oldest first; for an admin all.")
            .query::<String>("after", "The `next` of the page before.")
            .limit("Entries of a page.")
            .query::<String>("listener", "Only those to that listener; `-a -b` leaves out these two.")
            .answers::<QuestionPage>(StatusCode::OK, "A page.")
            .refuses(&[403, 422]),
        Call::get("/v1/questions/{id}", look)
            .about(
                "questions",
                "A question, with the message, and the payloads that answer it. It counts as shown then.",
            )
            .answers::<QuestionRecord>(StatusCode::OK, "The question.")
            .refuses(&[403, 404, 409]),
        acts(
            Call::post("/v1/questions/{id}/claim", claim)
                .about("questions", "Take a question on: nobody else answers it until it is released or taken over.")
                .takes::<Taking>(),
        ),
        acts(
            Call::post("/v1/questions/{id}/release", release)
                .about("questions", "Give a question back; an admin also for another party.")
                .takes::<Nothing>(),
        ),
        acts(
            Call::post("/v1/questions/{id}/answer", answer)
                .about("questions", "Answer a question: the first valid answer counts. Calls are made, and claim it.")
                .takes_payload("Payloads, dirty or not: a reply, or calls to make before one.")
                .refuses_because(422, "The answer breaks a rule: `rule`, `place` and `example` say which."),
        ),
        Call::post("/v1/questions/{id}/preview", preview)
            .about("questions", "Judge an answer without an effect, and return what would be sent.")
            .takes_payload("Payloads, dirty or not.")
            .answers::<Preview>(StatusCode::OK, "The payloads.")
            .refuses(&[403, 404, 409])
            .refuses_because(422, "The answer breaks a rule: `rule`, `place` and `example` say which."),
        acts(
            Call::post("/v1/questions/{id}/decline", decline)
                .about("questions", "Decline to answer: the caller gets a fault with the reason.")
                .takes::<Declining>(),
        ),
    ]
}

/// The way to take a question on.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "QuestionClaim")]
pub(in crate::gateway) struct Taking {
    /// True to take it also from another party that has claimed it.
    #[serde(default)]
    take_over: bool,
}

/// A reason.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "QuestionDecline")]
pub(in crate::gateway) struct Declining {
    #[serde(default)]
    #[schemars(length(max = 1000))]
    reason: String,
}

/// The payloads that would be sent.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "QuestionPreview")]
struct Preview {
    /// The repairs, and the canonical payloads.
    preview: String,
}

async fn list(State(app): State<Arc<AppState>>, caller: Caller, request: Request) -> Result<Response, Problem> {
    let wanted = wanted(&request, &[])?;
    let page = app.organism.questions(caller.answerer()?).list(&wanted).await?;
    Ok(view::document(StatusCode::OK, &page))
}

/// The questions that a request wants; `others` are parameters that the caller reads by itself.
pub(in crate::gateway) fn wanted(request: &Request, others: &[&str]) -> Result<Wanted, Problem> {
    let known: Vec<_> = ["after", "limit", "listener"].iter().chain(others).copied().collect();
    let query = Query::of(request, &known)?;
    let text = |name: &str| query.text(name).map(str::to_owned);
    let limit = query.number("limit", LIMIT.0, (1, LIMIT.1))? as usize;
    Ok(Wanted { after: text("after"), limit: Some(limit), listener: text("listener"), ..Wanted::default() })
}

async fn look(resource: ResourceRequest) -> Result<Response, Problem> {
    let ResourceRequest { app, caller, name, .. } = resource.plain()?;
    Ok(view::document(StatusCode::OK, &app.organism.questions(caller.answerer()?).look(&name).await?))
}

async fn claim(resource: ResourceRequest) -> Result<Response, Problem> {
    let ResourceRequest { app, caller, name, request } = resource.plain()?;
    let taking: Taking = parse(&app, request).await?;
    act(&app.organism.questions(caller.answerer()?), &name, Deed::Claim(taking)).await
}

async fn release(resource: ResourceRequest) -> Result<Response, Problem> {
    let ResourceRequest { app, caller, name, request } = resource.plain()?;
    let Nothing {} = parse(&app, request).await?;
    act(&app.organism.questions(caller.answerer()?), &name, Deed::Release).await
}

async fn answer(resource: ResourceRequest) -> Result<Response, Problem> {
    let ResourceRequest { app, caller, name, request } = resource.plain()?;
    let questions = app.organism.questions(caller.answerer()?);
    let entry = entry(&app, &questions, &name, request).await?;
    act(&questions, &name, Deed::Answer(entry)).await
}

async fn preview(resource: ResourceRequest) -> Result<Response, Problem> {
    let ResourceRequest { app, caller, name, request } = resource.plain()?;
    let questions = app.organism.questions(caller.answerer()?);
    let entry = entry(&app, &questions, &name, request).await?;
    act(&questions, &name, Deed::Preview(entry)).await
}

/// The entry in a request, as XML.
async fn entry(app: &AppState, questions: &Questions<'_>, id: &str, request: Request) -> Result<Bytes, Problem> {
    match payload_body(app, request).await? {
        (entry, Form::Xml) => Ok(entry),
        (entry, Form::Json) => as_xml(questions, id, &entry).await,
    }
}

/// The XML of a payload with which a person answers a question as JSON.
pub(in crate::gateway) async fn as_xml(questions: &Questions<'_>, id: &str, json: &[u8]) -> Result<Bytes, Problem> {
    let offers = questions.offers(id).await?;
    let mut validator = Validator::new(Arc::new(Catalog::only(offers.iter().cloned())));
    let payload = validator.payload_of_json(json, |_| true, &questions.limits())?;
    Ok(payload.payload().bytes().clone())
}

async fn decline(resource: ResourceRequest) -> Result<Response, Problem> {
    let ResourceRequest { app, caller, name, request } = resource.plain()?;
    let declining: Declining = parse(&app, request).await?;
    act(&app.organism.questions(caller.answerer()?), &name, Deed::Decline(declining)).await
}

/// An act on a question.
pub(in crate::gateway) enum Deed {
    Claim(Taking),
    Release,
    Answer(Bytes),
    Preview(Bytes),
    Decline(Declining),
}

/// Acts on a question.
pub(in crate::gateway) async fn act(questions: &Questions<'_>, id: &str, deed: Deed) -> Result<Response, Problem> {
    let state = match deed {
        Deed::Claim(Taking { take_over }) => questions.claim(id, take_over).await?,
        Deed::Release => questions.release(id).await?,
        Deed::Preview(entry) => {
            let preview = questions.preview(id, entry).await?;
            return Ok(view::document(StatusCode::OK, &Preview { preview }));
        }
        Deed::Answer(entry) => questions.answer(id, entry).await?,
        Deed::Decline(Declining { reason }) => questions.decline(id, &reason).await?,
    };
    Ok(view::document(StatusCode::OK, &state))
}

impl From<QuestionError> for Problem {
    fn from(error: QuestionError) -> Self {
        let detail = error.to_string();
        match error {
            QuestionError::Unknown => Self::not_found(detail),
            QuestionError::Refused(refused) => {
                let (code, party) = match &refused {
                    QuestionRefusal::NotAddressed => return Self::forbidden(detail),
                    QuestionRefusal::Claimed { by, at } => ("claimed", Some((by, *at))),
                    QuestionRefusal::NotClaimed => ("not_claimed", None),
                    QuestionRefusal::TooOften => ("too_often", None),
                    QuestionRefusal::Over(state @ QuestionState::Answered { .. }) => ("answered", state.party()),
                    QuestionRefusal::Over(state @ QuestionState::Declined { .. }) => ("declined", state.party()),
                    QuestionRefusal::Over(_) => ("withdrawn", None),
                    _ => ("refused", None),
                };
                let problem = Self::conflict(code, detail);
                match party {
                    Some((by, at)) => problem.with("by", by.as_str()).with("at", json!(at)),
                    None => problem,
                }
            }
            QuestionError::Wrong(fault) => Self::of_entry(*fault),
            QuestionError::NotYet => Self::starting(detail),
            QuestionError::Lost => Self::stopping(),
            QuestionError::Invalid(why) => Self::bad_request(why),
            QuestionError::Look(error) => error.into(),
        }
    }
}
