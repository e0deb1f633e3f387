//! Drafts: read by the client of a conversation and by admins, written by the agents of remote listeners.

use std::future::pending;
use std::sync::Arc;

use axum::extract::ws::WebSocketUpgrade;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::{Path, Request, State};
use axum::response::Response;
use schemars::JsonSchema;
use serde::Deserialize;
use systole_core::vocab::ThreadId;
use tokio::time::sleep;

use super::admin::admin;
use super::authenticate::Authenticated;
use super::bodies::Held;
use super::call::Call;
use super::caller::Caller;
use super::messages::own;
use super::reader::{ALIVE, Event, Reader};
use super::request::{Query, json, last_event_id, message_id, no_message};
use super::{AppState, view};
use crate::accept::RequestPermit;
use crate::drafts::{DraftCursor, DraftNews, DraftRecord, Drafts};
use crate::gateway::PrincipalKind;
use crate::gateway::problem::Problem;

/// Parameter with the cursor behind which a reader goes on.
const AFTER: &str = "after";

pub(super) fn calls() -> [Call; 3] {
    const BEHIND: &str = "The `cursor` of the last record that the reader has; without one from the beginnings of the open \
                          drafts on.";
    const EVENTS: &str = "Events `text`, `gone`, `lost` and `end` with JSON, whose ids are cursors (docs/drafts.md).";
    let streams = |call: Call| {
        call.query::<String>(AFTER, BEHIND)
            .header::<String>("Last-Event-ID", "The last event that a browser saw; as `after`.")
            .answers_text("text/event-stream", EVENTS)
    };
    [
        streams(
            Call::get("/v1/messages/{id}/draft", of_message)
                .about("messages", "The drafts of the conversation of a message that the caller sent."),
        )
        .refuses(&[404]),
        Call::post("/v1/messages/{id}/draft", write)
            .about("messages", "Add text to the draft of the reply to a message of the caller's mailbox.")
            .takes::<Written>()
            .answers_nothing("Its readers get it.")
            .refuses(&[404, 409]),
        streams(
            Call::get("/v1/admin/conversations/{id}/draft", of_conversation)
                .about("admin", "The drafts of a conversation."),
        )
        .refuses(&[403, 404]),
    ]
}

/// `GET /v1/messages/{id}/draft`
async fn of_message(
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
    State(app): State<Arc<AppState>>,
    Caller(caller): Caller,
    Path(id): Path<String>,
    request: Request,
) -> Result<Response, Problem> {
    let after = after(&request)?;
    let sees = |owner: &_| caller.kind == PrincipalKind::Admin || *owner == caller.name;
    // Of its answers only their number is of interest.
    let sent = app.query.submission(message_id(&id)?, usize::MAX, 0).await?;
    let sent = sent.filter(|sent| sees(&sent.submission.client)).ok_or_else(no_message)?;
    let drafts = app.organism.drafts(sent.submission.root, after).await;
    serve(&app, &request, upgrade.ok(), drafts)
}

/// `GET /v1/admin/conversations/{id}/draft`
async fn of_conversation(
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
    State(app): State<Arc<AppState>>,
    caller: Caller,
    Path(id): Path<String>,
    request: Request,
) -> Result<Response, Problem> {
    admin(&caller)?;
    let after = after(&request)?;
    let drafts = app.organism.drafts(conversation(&id)?, after).await;
    serve(&app, &request, upgrade.ok(), drafts)
}

/// Answers with a stream of drafts for the principal of a request.
fn serve(
    app: &Arc<AppState>,
    request: &Request,
    upgrade: Option<WebSocketUpgrade>,
    drafts: Drafts,
) -> Result<Response, Problem> {
    let (of, permit) = (Principal::of(app, request)?, request.extensions().get::<RequestPermit>().cloned());
    Ok(Reader::serve(upgrade, permit, |reader| feed(drafts, Some(of), reader)))
}

/// The conversation in a path.
pub(in crate::gateway) fn conversation(id: &str) -> Result<ThreadId, Problem> {
    id.parse().map_err(|_| Problem::not_found("that is no id of a conversation"))
}

/// The cursor in a request.
pub(in crate::gateway) fn after(request: &Request) -> Result<Option<DraftCursor>, Problem> {
    let query = Query::of(request, &[AFTER])?;
    let text = last_event_id(request.headers()).or_else(|| query.text(AFTER));
    text.map(|text| text.parse().map_err(|error| Problem::bad_request(format!("'{AFTER}': {error}")))).transpose()
}

/// Text of a draft.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "DraftText")]
struct Written {
    /// The text, behind the text before.
    text: String,
    /// True to give the text before up: this one begins another draft.
    #[serde(default)]
    anew: bool,
}

/// `POST /v1/messages/{id}/draft`
async fn write(
    State(app): State<Arc<AppState>>,
    caller: Caller,
    Path(id): Path<String>,
    request: Request,
) -> Result<Response, Problem> {
    Query::of(&request, &[])?;
    let id = own(&app, &caller, &id).await?;
    let Written { text, anew } = json(&app, request).await?;
    let is_taken = match app.mailboxes.drafter(id) {
        Some(drafter) => drafter.write(text, anew).await,
        None => false,
    };
    if is_taken {
        return Ok(view::no_content());
    }
    Err(Problem::conflict("settled", "no handler waits for the reply to that message: it takes no draft"))
}

/// The principal that reads drafts.
pub(in crate::gateway) struct Principal {
    app: Arc<AppState>,
    known: Arc<Authenticated>,
}

impl Principal {
    /// The principal of a request.
    pub(super) fn of(app: &Arc<AppState>, request: &Request) -> Result<Self, Problem> {
        let known = request.extensions().get::<Arc<Authenticated>>().cloned().ok_or_else(Problem::unauthorized)?;
        Ok(Self { app: app.clone(), known })
    }

    /// Counts what it is about to get; `None` if it may get no more. What a reader leaves unread counts as bodies of its principal.
    async fn admit(&self, bytes: usize) -> Option<Arc<Held>> {
        if self.app.mailboxes.is_stopping() || !self.known.is_valid(&self.app).await {
            return None;
        }
        let held = self.known.answer_bytes(&self.app);
        held.more(bytes).ok()?;
        Some(Arc::new(held))
    }
}

/// Sends the drafts of a conversation to its end, or until the reader leaves, its token is revoked or the organism stops.
pub(in crate::gateway) async fn feed(mut drafts: Drafts, of: Option<Principal>, mut to: Reader) {
    let stopping = of.as_ref().map(|of| of.app.mailboxes.stopping());
    let sent = async {
        send_all(&mut drafts, of.as_ref(), &mut to).await?;
        let text = r#"{"what":"end"}"#.to_owned();
        to.send(Event { cursor: None, name: "end", text, held: None }).await?;
        to.end().await
    };
    tokio::select! {
        // The reader may have left meanwhile.
        _ = sent => {}
        () = async { if let Some(stopping) = stopping { stopping.await } else { pending().await } } => {}
    }
}

/// Sends the drafts of a conversation to its end; `None` if the reader leaves before, or may get no more.
pub(super) async fn send_all(drafts: &mut Drafts, of: Option<&Principal>, to: &mut Reader) -> Option<()> {
    loop {
        let first = tokio::select! {
            first = drafts.next() => first,
            () = to.left() => return None,
            () = sleep(ALIVE) => {
                to.say_alive().await?;
                continue;
            }
        };
        let Some(first) = first else { return Some(()) };
        let records: Vec<_> = std::iter::once(first).chain(std::iter::from_fn(|| drafts.try_copied())).collect();
        let held = match of {
            Some(of) => Some(of.admit(records.iter().map(size).sum()).await?),
            None => None,
        };
        for record in records {
            to.send(event(&record, held.clone())).await?;
        }
    }
}

/// A record as an event.
pub(super) fn event(record: &DraftRecord, held: Option<Arc<Held>>) -> Event {
    let name = match &record.news {
        DraftNews::Text { .. } => "text",
        DraftNews::Gone { .. } => "gone",
        DraftNews::Lost => "lost",
    };
    Event { cursor: Some(record.cursor.to_string()), name, text: view::text(record), held }
}

fn size(record: &DraftRecord) -> usize {
    if let DraftNews::Text { text, .. } = &record.news { text.len() } else { 0 }
}
