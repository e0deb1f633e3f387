//! Operations over HTTP, for admins: one call for all acts, and one for each look.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Path, Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use bytes::Bytes;
use schemars::JsonSchema;
use serde::Serialize;
use systole_core::core::Event as OrganismEvent;
use systole_core::vocab::{MessageId, Name, ThreadId};
use tokio::time::{Instant, sleep_until};

use super::authenticate::Authenticated;
use super::call::{Call, schema};
use super::caller::Caller;
use super::drafts::{Principal, event, send_all};
use super::reader::{Event, Reader};
use super::request::{LIMIT, Query, body, json};
use super::{AppState, metrics, view};
use crate::accept::RequestPermit;
use crate::gateway::PrincipalKind;
use crate::gateway::problem::Problem;
use crate::operations::{
    Act, ActError, ActRecord, Asked, ConversationRecord, LetterRecord, ListenerRecord, LookError, MailboxRecord,
    MessageRecord, Operations, Outcome, Page, QuestionRecord, ScheduleRecord, TaskRecord, ThreadRecord, Wanted,
};
use crate::runtime::{Events, Observed, Organism};

pub(super) fn calls() -> [Call; 14] {
    let page = |call: Call| {
        call.query::<String>("after", "The `next` of the page before.").limit("Entries of a page.").refuses(&[403])
    };
    [
        Call::post("/v1/admin/acts", act)
            .about("admin", "Act on the organism.")
            .takes::<Act>()
            .answers::<Acted>(StatusCode::OK, "The outcome for each thing that the act was about.")
            .refuses(&[403, 404]),
        Call::post("/v1/admin/ask", ask)
            .about("admin", "Send a message as a client, and wait for the answer. Hanging up cancels the conversation.")
            .query::<String>("client", "The client.")
            .query::<PeopleWait>(
                "people",
                "Whether to wait for people, which is the default, or to leave their questions to them.",
            )
            .query::<bool>(
                "drafts",
                "True for a stream of server-sent events: those of the drafts, and `answer` with the answer.",
            )
            .takes_xml("One envelope, or one payload that the client may call; dirty or not.")
            .answers::<Answered>(StatusCode::OK, "The answer.")
            .answers_text("text/event-stream", "The answer.")
            .refuses(&[403, 404]),
        page(
            Call::get("/v1/admin/conversations", |State(app), caller, request| {
                look(app, caller, Look::Conversations, request)
            })
            .about(
                "admin",
                "The conversations, newest first: those of the journal, open and ended; without one, open ones.",
            )
            .query::<String>("listener", "Only those with a thread of that listener; `-a -b` leaves out these two.")
            .query::<ConversationState>("state", "Only open ones, or only ended ones.")
            .query::<String>(
                "payload",
                "Only those that began with that payload, {namespace}local; `-a -b` leaves out these two.",
            )
            .query::<String>(
                "fault",
                "Only those with a fault of that code among their answers; `-a -b` leaves out these two.",
            )
            .query::<String>("text", "Only those with that text in a message, an answer or a fault.")
            .query::<view::DateTime>("since", "Only those that opened then or later.")
            .query::<view::DateTime>("until", "Only those that opened before.")
            .refuses(&[422])
            .answers::<Page<ConversationRecord>>(StatusCode::OK, "A page."),
        ),
        page(
            Call::get("/v1/admin/conversations/{id}/threads", |State(app), caller, Path(id), request| {
                look(app, caller, Look::Threads(id), request)
            })
            .about("admin", "The threads of a conversation, in the order in which they opened.")
            .answers::<Page<ThreadRecord>>(StatusCode::OK, "A page.")
            .refuses(&[404, 422]),
        ),
        page(
            Call::get("/v1/admin/threads/{id}/messages", |State(app), caller, Path(id), request| {
                look(app, caller, Look::Messages(id), request)
            })
            .about("admin", "The history of a thread, in order of time.")
            .answers::<Page<MessageRecord>>(StatusCode::OK, "A page.")
            .refuses(&[404, 422]),
        ),
        Call::get("/v1/admin/messages/{id}", |State(app), caller, Path(id), request| {
            look(app, caller, Look::Message(id), request)
        })
        .about("admin", "A message in the mailbox of a thread, and what its handler did.")
        .answers::<Page<MessageRecord>>(StatusCode::OK, "Its records; none if it isn't kept.")
        .refuses(&[403, 404, 422]),
        page(
            Call::get("/v1/admin/dead-letters", |State(app), caller, request| {
                look(app, caller, Look::DeadLetters, request)
            })
            .about("admin", "The dead letters: those of the pump, oldest first, then those of mailboxes.")
            .query::<String>("from", "Only those of that sender.")
            .query::<String>("listener", "Only those for that listener; `-a -b` leaves out these two.")
            .query::<String>("payload", "Only those with that payload, {namespace}local; `-a -b` leaves out these two.")
            .query::<String>(
                "fault",
                "Only those for the reason of that code; `failed` in a mailbox; `-a -b` leaves out these two.",
            )
            .query::<String>("text", "Only those with that text in their payload or their reason.")
            .query::<view::DateTime>("since", "Only those that died then or later; in a mailbox: that came then.")
            .query::<view::DateTime>("until", "Only those that died before.")
            .answers::<Page<LetterRecord>>(StatusCode::OK, "A page.")
            .refuses(&[422]),
        ),
        page(
            Call::get("/v1/admin/mailboxes", |State(app), caller, request| look(app, caller, Look::Mailboxes, request))
                .about("admin", "The mailboxes of remote listeners, in order of name.")
                .answers::<Page<MailboxRecord>>(StatusCode::OK, "A page."),
        ),
        page(
            Call::get("/v1/admin/tasks", |State(app), caller, request| look(app, caller, Look::Tasks, request))
                .about("admin", "The tasks of jobs, in order of job, then of arrival.")
                .query::<String>("job", "Only those of that job.")
                .query::<view::TaskStatus>("state", "Only those in that state.")
                .query::<String>("text", "Only those with that text.")
                .answers::<Page<TaskRecord>>(StatusCode::OK, "A page.")
                .refuses(&[422]),
        ),
        page(
            Call::get("/v1/admin/acts", |State(app), caller, request| look(app, caller, Look::Acts, request))
                .about("admin", "The acts of operators, newest first, as long as retention keeps them.")
                .answers::<Page<ActRecord>>(StatusCode::OK, "A page.")
                .refuses(&[422]),
        ),
        page(
            Call::get("/v1/admin/listeners", |State(app), caller, request| look(app, caller, Look::Listeners, request))
                .about("admin", "The listeners, in order of name.")
                .answers::<Page<ListenerRecord>>(StatusCode::OK, "A page."),
        ),
        page(
            Call::get("/v1/admin/schedules", |State(app), caller, request| look(app, caller, Look::Schedules, request))
                .about("admin", "The schedules, in order of name, with their last and next ticks.")
                .answers::<Page<ScheduleRecord>>(StatusCode::OK, "A page."),
        ),
        Call::get("/v1/admin/metrics", metrics::metrics_by_name)
            .about("admin", "The figures of /metrics, and those of each listener.")
            .answers_text("text/plain", "The figures.")
            .refuses(&[403]),
        Call::get("/v1/admin/events", |State(app), caller, request| look(app, caller, Look::Events, request))
            .about("admin", "The events behind a number, as far as they are kept.")
            .number::<u64>("after", "The number of the last event that the caller has.")
            .number::<u32>("run", "The `run` of the answer that had it: each start numbers its events anew.")
            .limit("Events at most.")
            .waits()
            .answers_json("Events (docs/events.md), and the number of those that are kept no more.", |_| {
                schema(serde_json::json!({ "type": "object" }))
            })
            .refuses(&[403, 404]),
    ]
}

/// The name of the admin who calls.
pub(super) fn admin(caller: &Caller) -> Result<Name, Problem> {
    match caller.0.kind {
        PrincipalKind::Admin => Ok(caller.0.name.clone()),
        _ => Err(Problem::forbidden("that is for admins: make a token with `systole token new`")),
    }
}

/// The outcomes of an act.
#[derive(Serialize, JsonSchema)]
pub(in crate::gateway) struct Acted {
    outcomes: Vec<Outcome>,
}

/// `POST /v1/admin/acts`
async fn act(State(app): State<Arc<AppState>>, caller: Caller, request: Request) -> Result<Response, Problem> {
    Query::of(&request, &[])?;
    let by = admin(&caller)?;
    let act: Act = json(&app, request).await?;
    perform(&app.organism.operations(by), &act).await
}

/// Does an act.
pub(in crate::gateway) async fn perform(operations: &Operations<'_>, act: &Act) -> Result<Response, Problem> {
    let outcomes = operations.act(act).await?;
    Ok(view::document(StatusCode::OK, &Acted { outcomes }))
}

/// Something to look at.
pub(in crate::gateway) enum Look {
    Conversations,
    /// The threads of a conversation.
    Threads(String),
    /// The history of a thread.
    Messages(String),
    Message(String),
    DeadLetters,
    Mailboxes,
    Tasks,
    Acts,
    Listeners,
    Schedules,
    Events,
}

/// The answer to a message.
#[derive(Serialize, JsonSchema)]
pub(in crate::gateway) struct Answered {
    /// The conversation.
    conversation: String,
    /// True if the organism ended before an answer: a durable one goes on with the conversation at its next start.
    ended: bool,
    /// The questions to people for which the wait ended; the conversation goes on.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    people: Vec<QuestionRecord>,
    /// The canonical envelope; left out if the conversation closed without an answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    envelope: Option<String>,
    /// The payload in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    payload: Option<String>,
    /// The code, if it is a fault.
    #[serde(skip_serializing_if = "Option::is_none")]
    fault: Option<String>,
}

/// `POST /v1/admin/ask`
async fn ask(State(app): State<Arc<AppState>>, caller: Caller, request: Request) -> Result<Response, Problem> {
    let by = admin(&caller)?;
    let question = Question::of(&request)?;
    let permit = request.extensions().get::<RequestPermit>().cloned();
    let of = Principal::of(&app, &request)?;
    let body = body(&app, request).await?;
    question.ask(app.organism.clone(), by, body, Some(of), permit).await
}

/// A question that an operator asks as a client.
pub(in crate::gateway) struct Question {
    client: String,
    /// True to leave questions to people to them.
    leave: bool,
    /// True for a stream of the drafts, and of the answer.
    drafts: bool,
}

impl Question {
    /// Parses the query of a request.
    pub(in crate::gateway) fn of(request: &Request) -> Result<Self, Problem> {
        let query = Query::of(request, &["client", "people", "drafts"])?;
        let leave = match query.text("people") {
            None | Some("wait") => false,
            Some("leave") => true,
            Some(_) => return Err(Problem::bad_request("people: write wait or leave")),
        };
        let drafts = match query.text("drafts") {
            None | Some("false") => false,
            Some("true") => true,
            Some(_) => return Err(Problem::bad_request("drafts: write true or false")),
        };
        let client = query.text("client").map(str::to_owned);
        let client = client.ok_or_else(|| Problem::bad_request("client: name the client as which to ask"))?;
        Ok(Self { client, leave, drafts })
    }

    /// Asks.
    pub(in crate::gateway) async fn ask(
        self,
        organism: Arc<Organism>,
        by: Name,
        envelope: Bytes,
        of: Option<Principal>,
        permit: Option<RequestPermit>,
    ) -> Result<Response, Problem> {
        let Self { client, leave, drafts } = self;
        if !drafts {
            let asked = organism.operations(by).ask(&client, envelope, leave).await?;
            return Ok(view::document(StatusCode::OK, &Answered::of(&organism, asked)));
        }
        let conversation = organism.operations(by.clone()).send(&client, envelope).await?;
        let mut drafts = conversation.drafts();
        let stream = async move |mut to: Reader| {
            let operations = organism.operations(by);
            let asked = tokio::select! {
                biased;
                asked = operations.answer(conversation, leave) => asked,
                // The reader has left, which cancels the conversation, or may get no more.
                () = async {
                    if send_all(&mut drafts, of.as_ref(), &mut to).await.is_some() {
                        to.left().await;
                    }
                } => return,
            };
            // How they ended; the answer follows.
            while let Some(record) = drafts.try_next() {
                if to.send(event(&record, None)).await.is_none() {
                    return;
                }
            }
            let text = view::text(&Answered::of(&organism, asked));
            // The reader may have left meanwhile.
            let _ = to.send(Event { cursor: None, name: "answer", text, held: None }).await;
        };
        Ok(Reader::serve(None, permit, stream))
    }
}

impl Answered {
    fn of(organism: &Organism, asked: Asked) -> Self {
        let Asked { conversation, answer, ended, people } = asked;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Self {
            conversation: conversation.to_string(),
            ended,
            people,
            envelope: answer.as_ref().map(|answer| view::leaving(organism, &answer.envelope)),
            payload: answer.as_ref().map(|answer| text(answer.payload.bytes())),
            fault: answer.and_then(|answer| answer.fault).map(|fault| fault.code.to_string()),
        }
    }
}

/// Looks for an admin.
async fn look(app: Arc<AppState>, caller: Caller, at: Look, request: Request) -> Result<Response, Problem> {
    let by = admin(&caller)?;
    let known = request.extensions().get::<Arc<Authenticated>>().cloned().ok_or_else(Problem::unauthorized)?;
    let over = async {
        tokio::select! {
            () = app.mailboxes.stopping() => {}
            () = known.left() => {}
        }
    };
    at.at(&request)?.look(&app.organism, by, over).await
}

/// A look, and the records that are wanted.
pub(in crate::gateway) struct Glance {
    at: Look,
    wanted: Wanted,
    most: usize,
    /// For events: the number behind which they are wanted, and the time to wait for one.
    after: u64,
    /// The start that numbered it.
    run: Option<u64>,
    wait: Duration,
}

impl Look {
    /// Parses the query of a request to look.
    pub(in crate::gateway) fn at(self, request: &Request) -> Result<Glance, Problem> {
        let known: &[&str] = match self {
            Self::Conversations => {
                &["after", "limit", "listener", "state", "payload", "fault", "text", "since", "until"]
            }
            Self::DeadLetters => &["after", "limit", "from", "listener", "payload", "fault", "text", "since", "until"],
            Self::Tasks => &["after", "limit", "job", "state", "text"],
            Self::Threads(_) | Self::Messages(_) | Self::Mailboxes | Self::Acts | Self::Listeners | Self::Schedules => {
                &["after", "limit"]
            }
            Self::Message(_) => &[],
            Self::Events => &["after", "run", "limit", "wait"],
        };
        let query = Query::of(request, known)?;
        let most = query.number("limit", LIMIT.0, (1, LIMIT.1))? as usize;
        let text = |name: &str| query.text(name).map(str::to_owned);
        let wanted = Wanted {
            after: query.text("after").map(str::to_owned),
            limit: Some(most),
            listener: text("listener"),
            open: match (&self, query.text("state")) {
                (Self::Conversations, Some("open")) => Some(true),
                (Self::Conversations, Some("ended")) => Some(false),
                (Self::Conversations, Some(_)) => return Err(Problem::bad_request("state: write open or ended")),
                _ => None,
            },
            from: text("from"),
            job: text("job"),
            state: if matches!(self, Self::Tasks) { text("state") } else { None },
            payload: text("payload"),
            fault: text("fault"),
            text: text("text"),
            since: text("since"),
            until: text("until"),
        };
        let is_number = matches!(self, Self::Events);
        let after = if is_number { query.number("after", 0, (0, u64::MAX))? } else { 0 };
        let run = if query.text("run").is_some() { Some(query.number("run", 0, (0, u32::MAX.into()))?) } else { None };
        Ok(Glance { at: self, wanted, most, after, run, wait: query.wait()? })
    }
}

impl Glance {
    /// Looks. A look that waits for events ends with `stopping`.
    pub(in crate::gateway) async fn look(
        self,
        organism: &Organism,
        by: Name,
        stopping: impl Future<Output = ()>,
    ) -> Result<Response, Problem> {
        let Self { at, wanted, most, after, run, wait } = self;
        let operations = organism.operations(by);
        Ok(match at {
            Look::Conversations => view::document(StatusCode::OK, &operations.conversations(&wanted).await?),
            Look::Threads(id) => {
                let none = |_| Problem::not_found("that is no id of a conversation");
                let conversation: ThreadId = id.parse().map_err(none)?;
                view::document(StatusCode::OK, &operations.threads(conversation, &wanted).await?)
            }
            Look::Messages(id) => {
                let thread: ThreadId = id.parse().map_err(|_| Problem::not_found("that is no id of a thread"))?;
                view::document(StatusCode::OK, &operations.messages(thread, &wanted).await?)
            }
            Look::Message(id) => {
                let id: MessageId = id.parse().map_err(|_| Problem::not_found("that is no id of a message"))?;
                view::document(StatusCode::OK, &Page { items: operations.message(id).await?, next: None })
            }
            Look::DeadLetters => view::document(StatusCode::OK, &operations.dead_letters(&wanted).await?),
            Look::Mailboxes => view::document(StatusCode::OK, &operations.mailboxes(&wanted).await?),
            Look::Tasks => view::document(StatusCode::OK, &operations.tasks(&wanted).await?),
            Look::Acts => view::document(StatusCode::OK, &operations.acts(&wanted).await?),
            Look::Listeners => view::document(StatusCode::OK, &operations.listeners(&wanted).await),
            Look::Schedules => view::document(StatusCode::OK, &operations.schedules(&wanted).await?),
            Look::Events => {
                let until = Instant::now() + wait;
                let off = || Problem::not_found("this organism makes no events");
                let epoch = organism.epoch();
                // What an earlier start numbered tells nothing here.
                let after = if run.is_none_or(|run| run == u64::from(epoch)) { after } else { 0 };
                let events = organism.events_after(after).ok_or_else(off)?;
                view::document(StatusCode::OK, &seen(epoch, events, most, until, stopping).await)
            }
        })
    }
}

/// The end of a wait for an answer that depends on people.
#[derive(JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "PeopleWait")]
#[expect(dead_code, reason = "it describes a query")]
enum PeopleWait {
    Wait,
    Leave,
}

/// The conversations that a look shows.
#[derive(JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[expect(dead_code, reason = "it describes a query")]
enum ConversationState {
    Open,
    Ended,
}

impl From<ActError> for Problem {
    fn from(error: ActError) -> Self {
        match error {
            ActError::NoListener { .. } | ActError::NoSchedule { .. } | ActError::NoClient(_) => {
                Self::not_found(error.to_string())
            }
            ActError::Invalid(why) => Self::bad_request(why),
            ActError::NotSent(error) => error.into(),
            _ => Self::stopping(),
        }
    }
}

impl From<LookError> for Problem {
    fn from(error: LookError) -> Self {
        match error {
            LookError::Invalid(why) => Self::new(StatusCode::UNPROCESSABLE_ENTITY, "look", "No such look", why),
            LookError::Journal(error) => error.into(),
            LookError::Store(error) => {
                Self::new(StatusCode::INTERNAL_SERVER_ERROR, "journal", "No journal", error.to_string())
            }
        }
    }
}

/// Events of an organism.
#[derive(Serialize)]
struct Seen {
    /// The start that numbered them.
    run: u32,
    events: Vec<OrganismEvent>,
    /// Events that are kept no more.
    missed: u64,
}

async fn seen(run: u32, mut events: Events, most: usize, until: Instant, stopping: impl Future<Output = ()>) -> Seen {
    let mut seen = Seen { run, events: Vec::new(), missed: 0 };
    let mut next = events.try_next();
    if next.is_none() {
        next = tokio::select! {
            biased;
            next = events.next() => next,
            () = stopping => None,
            () = sleep_until(until) => None,
        };
    }
    while let Some(observed) = next {
        match observed {
            Observed::Event(event) => seen.events.push(Arc::unwrap_or_clone(event)),
            Observed::Missed(count) => seen.missed += count,
        }
        next = if seen.events.len() < most { events.try_next() } else { None };
    }
    seen
}
