//! `/v1/messages`: submissions of clients, their state, and the answers of remote listeners.

use std::borrow::Cow;
use std::pin::Pin;
use std::sync::Arc;

use axum::Extension;
use axum::extract::{Path, Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use bytes::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use systole_core::core::{Answered, ClientId, OperationError, Party, ReadAnswer, ReadMessage};
use systole_core::journal::{MailState, SubmissionRecord};
use systole_core::mailbox::{MailboxInput, Refused, Repeated, Settlement};
use systole_core::vocab::{Amounts, MessageId, Name, ThreadId, Time, Traceparent};
use systole_xml::ladder::{Meta, write_envelope};
use tokio::time::Instant;

use super::authenticate::Authenticated;
use super::caller::Caller;
use super::contract::HeldTo;
use super::presence::require_empty;
use super::request::{Form, Query, caller, idempotency_key, json, message_id, no_message, payload_body, wanted_form};
use super::view::{KeptItem, Reading, SubmissionState};
use super::{AppState, view};
use crate::gateway::problem::Problem;
use crate::gateway::service::{ActError, Acted};
use crate::gateway::submissions::{Envelope, Kept, Submitted, Watch};
use crate::gateway::{Principal, PrincipalKind};
use crate::journal::{Sent, SentAnswer};
use crate::listeners::organism::Correlation;
use crate::operations;
use crate::runtime::WatchedEnd;
use systole_store::entropy::Entropy;
#[cfg(feature = "mcp")]
use systole_xml::schema::PayloadSchema;
use tokio::sync::futures::OwnedNotified;

/// Threads that a message opens, at most, whose budgets its correlation tells.
const OWN_THREADS: usize = 100;

/// `POST /v1/messages`
pub(super) async fn submit(
    State(app): State<Arc<AppState>>,
    Caller(principal): Caller,
    request: Request,
) -> Result<Response, Problem> {
    may_send(&app, &principal)?;
    let headers = request.headers().clone();
    let posted = send(&app, principal.name, request).await?;
    acknowledge(&app, &posted, wanted_form(&headers, posted.form)).await
}

/// Checks whether a principal may send messages.
pub(super) fn may_send(app: &AppState, principal: &Principal) -> Result<(), Problem> {
    if principal.kind == PrincipalKind::Listener || !app.submissions.knows(&principal.name) {
        let detail = "only a client of the organism sends messages; a listener calls others with its replies";
        return Err(Problem::forbidden(detail));
    }
    Ok(())
}

/// A message that a request has submitted.
pub(super) struct Posted {
    pub(super) kept: Kept,
    /// The answers that came while the request waited. A request that doesn't wait has none, also where some are there
    /// already: so its response never depends on a race.
    pub(super) answers: Vec<SentAnswer>,
    /// True if its conversation ended while the request waited.
    pub(super) ended: bool,
    /// The message as XML, or as it came, if it is known by its key alone.
    pub(super) body: Bytes,
    /// The form of the message in the request.
    form: Form,
}

/// Submits the envelope or the payload in the body of `request` and waits for the answer as long as the request says.
pub(super) async fn send(app: &Arc<AppState>, from: Name, request: Request) -> Result<Posted, Problem> {
    let wait = Query::of(&request, &["wait"])?.wait()?;
    let key = idempotency_key(request.headers())?;
    let caller = caller(request.headers());
    let known = request.extensions().get::<Arc<Authenticated>>().cloned().ok_or_else(Problem::unauthorized)?;
    let held_to = HeldTo::of(request.headers())?;
    let (body, form) = payload_body(app, request).await?;
    app.open()?;
    let judged = match held_to.map_or(Ok(()), |held_to| held_to.check(app, &from)) {
        Ok(()) => judge_form(app, &from, &body, form).await,
        Err(problem) => Err(problem),
    };
    let (read, xml) = match judged {
        Ok(judged) => judged,
        Err(problem) => {
            // It may have been accepted before its contract, or its schema, changed.
            let kept = repeated(app, &from, key.as_deref(), &identity(&body, form)).await?.ok_or(problem)?;
            let (answers, ended) = match wait.is_zero() {
                true => (Vec::new(), false),
                false => answers_of(app, kept.id, known.over_for_answer(Instant::now() + wait)).await?,
            };
            return Ok(Posted { kept, answers, ended, body, form });
        }
    };
    // The key belongs to the body as it came: how that is read may change.
    let (submission, envelope) = submission(app, from, (read, &identity(&body, form)), key, caller)?;
    if wait.is_zero() {
        let kept = hand_over(app, submission, envelope).await?;
        return Ok(Posted { kept, answers: Vec::new(), ended: false, body: xml, form });
    }
    let asked = Asked::hand_over(app, submission, envelope).await?;
    let (kept, until) = (asked.kept, Instant::now() + wait);
    // The message is durable: where the journal can't be read any more, only its answer is not shown.
    let (mut answers, mut ended) = asked.answers(known.over_for_answer(until)).await.unwrap_or_default();
    if !known.is_valid(app).await {
        // The message is submitted, and its answer not shown.
        (answers, ended) = (Vec::new(), false);
    }
    Ok(Posted { kept, answers, ended, body: xml, form })
}

/// The bytes by which a body is the same as an earlier one: JSON without the white space between its tokens.
fn identity(body: &[u8], form: Form) -> Cow<'_, [u8]> {
    if form == Form::Xml {
        return Cow::Borrowed(body);
    }
    let (mut is_text, mut is_escaped) = (false, false);
    let is_kept = |byte: &u8| {
        let is_quote = *byte == b'"' && !is_escaped;
        is_escaped = is_text && *byte == b'\\' && !is_escaped;
        is_text ^= is_quote;
        is_text || !byte.is_ascii_whitespace()
    };
    Cow::Owned(body.iter().copied().filter(is_kept).collect())
}

/// Judges a body of a client, and returns it as XML.
async fn judge_form(app: &AppState, from: &Name, body: &Bytes, form: Form) -> Result<(ReadMessage, Bytes), Problem> {
    match form {
        Form::Xml => Ok((judge(app, from, body.clone()).await?, body.clone())),
        Form::Json => {
            let read = judge_json(app, from, body.clone()).await?;
            let xml = read.payload.bytes().clone();
            Ok((read, xml))
        }
    }
}

/// The message that a client has sent before with the same key and the same body.
async fn repeated(app: &AppState, from: &Name, key: Option<&str>, body: &[u8]) -> Result<Option<Kept>, Problem> {
    let Some(key) = key else { return Ok(None) };
    let known = app.query.submission_of_key(from.clone(), key.into()).await?;
    let digest = *blake3::hash(body).as_bytes();
    let same = known.filter(|known| known.key.as_ref().is_some_and(|(_, of)| *of == digest));
    Ok(same.map(|known| Kept { id: known.id, root: known.root }))
}

/// A message that was submitted, and is durable. The wait for its answers has begun.
pub struct Asked {
    app: Arc<AppState>,
    kept: Kept,
    /// True for a message that no earlier one with its key stands for.
    is_new: bool,
    watch: Watch,
    arrived: Pin<Box<OwnedNotified>>,
    end: WatchedEnd,
}

impl Asked {
    async fn hand_over(app: &Arc<AppState>, submission: SubmissionRecord, envelope: Envelope) -> Result<Self, Problem> {
        let (id, root) = (submission.id, submission.root);
        let watch = app.submissions.watch(id);
        let arrived = Box::pin(watch.notify().clone().notified_owned());
        // Its end is news, too.
        let end = app.organism.watch_end(root, watch.notify());
        let kept = hand_over(app, submission, envelope).await?;
        Ok(Self { app: app.clone(), kept, is_new: kept.id == id, watch, arrived, end })
    }

    /// The id of the message: that of the earlier one with the same key, if there is one.
    pub fn id(&self) -> MessageId {
        self.kept.id
    }

    /// The conversation of the message.
    pub fn conversation(&self) -> ThreadId {
        self.kept.root
    }

    /// The answers, once there is one, the conversation has ended, the organism stops or `over` is; and whether the conversation
    /// has ended.
    ///
    /// # Errors
    /// [`Problem`] if the journal can't be read.
    pub async fn answers(self, over: impl Future<Output = ()>) -> Result<(Vec<SentAnswer>, bool), Problem> {
        let Self { app, kept, is_new, watch, arrived, end } = self;
        let mut over = std::pin::pin!(over);
        // A watch sees all answers to a new message; the journal has those to an earlier one.
        let news = is_new && app.mailboxes.await_news(arrived, over.as_mut()).await;
        drop(end);
        let answers = watch.answers();
        if news && !answers.is_empty() {
            return Ok((answers, false));
        }
        let rest = async {
            if news || !is_new {
                over.await;
            }
        };
        answers_of(&app, kept.id, rest).await
    }
}

/// Submits a payload of a client to a listener, as the JSON object behind its name.
#[cfg(feature = "mcp")]
pub(in crate::gateway) async fn ask_object(
    app: &Arc<AppState>,
    from: &Name,
    to: &Name,
    (schema, object): (&PayloadSchema, Bytes),
    (key, caller): (Option<String>, Option<Traceparent>),
) -> Result<Asked, Problem> {
    app.open()?;
    let read =
        app.judge.object(id_of(app, from)?, to, schema, object.clone()).await.ok_or_else(Problem::stopping)???;
    // With that key another object, or the same one for another listener, is another message.
    let bytes = [to.as_str().as_bytes(), schema.qname().to_string().as_bytes(), &object].join(&b' ');
    let (submission, envelope) = submission(app, from.clone(), (read, &bytes), key, caller)?;
    Asked::hand_over(app, submission, envelope).await
}

/// Judges an envelope of a client and submits it; `key` is its idempotency key.
pub(in crate::gateway) async fn take(
    app: &Arc<AppState>,
    from: Name,
    bytes: Bytes,
    key: Option<String>,
) -> Result<Kept, Problem> {
    app.open()?;
    let read = judge(app, &from, bytes.clone()).await?;
    let (submission, envelope) = submission(app, from, (read, &bytes), key, None)?;
    hand_over(app, submission, envelope).await
}

/// The submission of a message that was judged, and its envelope as re-encoded; `bytes` tell it from others of the same key.
fn submission(
    app: &AppState,
    from: Name,
    (mut read, bytes): (ReadMessage, &[u8]),
    key: Option<String>,
    caller: Option<Traceparent>,
) -> Result<(SubmissionRecord, Envelope), Problem> {
    let key = key.map(|key| (key.into(), *blake3::hash(bytes).as_bytes()));
    // Proxies on the way write the header, so it is nearer than the envelope.
    let caller = caller.or_else(|| Traceparent::parse(read.claims.traceparent.as_deref()?));
    read.claims.traceparent = caller.map(|caller| caller.to_string().into());
    let (submission, envelope) = re_encoded(from, read, key, app.mailboxes.now());
    // Check the size as re-encoded.
    let (written, most) = (envelope.0.len(), app.organism.blueprint().limits.xml.message_bytes);
    if written > most {
        return Err(Problem::too_large_as_written(written, most));
    }
    Ok((submission, envelope))
}

async fn hand_over(app: &AppState, submission: SubmissionRecord, envelope: Envelope) -> Result<Kept, Problem> {
    match app.submissions.submit(submission, envelope).await? {
        Submitted::Kept(kept) => Ok(kept),
        Submitted::KeyReused => {
            let detail = "another message came with that Idempotency-Key: use a new key for a new message";
            Err(Problem::conflict("key_reused", detail))
        }
    }
}

/// A message that a client sent, or that is in a mailbox.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
pub(super) enum Found {
    Sent(view::SentMessage),
    Item(KeptItem),
}

/// `GET /v1/messages/{id}`
pub(super) async fn look(
    State(app): State<Arc<AppState>>,
    Caller(principal): Caller,
    Extension(known): Extension<Arc<Authenticated>>,
    Path(id): Path<String>,
    request: Request,
) -> Result<Response, Problem> {
    let query = Query::of(&request, &["skip", "payloads", "correlation", "wait"])?;
    let skip = query.number("skip", 0, (0, u32::MAX.into()))? as usize;
    let as_json = match query.text("payloads") {
        None | Some("xml") => false,
        Some("json") => true,
        Some(_) => return Err(Problem::bad_request("'payloads' is xml or json")),
    };
    let is_correlated = match query.text("correlation") {
        None | Some("false") => false,
        Some("true") => true,
        Some(_) => return Err(Problem::bad_request("'correlation' is true or false")),
    };
    let (id, wait) = (message_id(&id)?, query.wait()?);
    let (held, most) = (known.answer_bytes(&app), app.organism.blueprint().limits.xml.message_bytes);
    let sees = |owner: &Name| principal.kind == PrincipalKind::Admin || *owner == principal.name;
    if !wait.is_zero()
        && let Some(sent) = app.query.submission(id, 0, 0).await?
        && sees(&sent.submission.client)
        && sent.answers.is_empty()
    {
        answers_of(&app, id, known.over_for_answer(Instant::now() + wait)).await?;
    }
    let _turn = held.turn(most).await?;
    if let Some(sent) = app.query.submission(id, skip, most).await?.filter(|sent| sees(&sent.submission.client)) {
        let bytes = sent.answers.iter().map(|answer| answer.envelope.len()).sum();
        let correlation = if is_correlated { correlation(&app, &sent).await? } else { None };
        let site = app.clone();
        let value = move || Found::Sent(view::sent(&site, &sent, skip == 0, (as_json, correlation.as_ref())));
        return held.weigh(bytes, view::long_document(&app, value).await?);
    }
    let mail = app.query.mail(id).await?.filter(|mail| sees(&mail.record.mailbox)).ok_or_else(no_message)?;
    let reply = mail.status.answer.clone().filter(|_| mail.status.state == MailState::Replied);
    let bytes = mail.record.envelope.len() + reply.as_ref().map_or(0, |reply| reply.len());
    let site = app.clone();
    let value = move || {
        let item = view::mail(&site, &mail, Reading::skipping(0));
        let reply = reply.map(|reply| String::from_utf8_lossy(&reply).into_owned());
        Found::Item(KeptItem { item, attempts: mail.status.deliveries, reply })
    };
    held.weigh(bytes, view::long_document(&app, value).await?)
}

/// The correlation of the answers to a client's message; none of a message without a key.
async fn correlation(app: &AppState, sent: &Sent) -> Result<Option<Correlation>, Problem> {
    let Some((key, digest)) = &sent.submission.key else { return Ok(None) };
    let root = sent.submission.root;
    // Those of the message are open in the step that opens its conversation.
    let (threads, _) = app.query.threads(root, 0, OWN_THREADS).await?;
    let own = threads.into_iter().filter(|thread| thread.parent == Some(root));
    let spent = own.filter_map(|thread| thread.budget).map(|budget| budget.spent);
    Ok(Some(Correlation::new(key, digest, spent.reduce(Amounts::plus))))
}

/// `POST /v1/messages/{id}/cancel`
pub(super) async fn cancel(
    State(app): State<Arc<AppState>>,
    Caller(principal): Caller,
    Path(id): Path<String>,
    request: Request,
) -> Result<Response, Problem> {
    require_empty(&app, request).await?;
    let sent = app.query.submission(message_id(&id)?, 0, 0).await?;
    let sent = sent.filter(|sent| sent.submission.client == principal.name).ok_or_else(no_message)?;
    app.open()?;
    let root = sent.submission.root;
    match app.organism.operations(principal.name).cancel(root, root).await {
        // It has ended.
        Ok(()) | Err(operations::ActError::Refused(OperationError::NotOpen(_))) => Ok(view::no_content()),
        Err(error) => Err(error.into()),
    }
}

/// `POST /v1/messages/{id}/reply`
pub(super) async fn reply(
    State(app): State<Arc<AppState>>,
    caller: Caller,
    Path(id): Path<String>,
    request: Request,
) -> Result<Response, Problem> {
    Query::of(&request, &[])?;
    let (mut reply, form) = payload_body(&app, request).await?;
    let mut read = None;
    if form == Form::Json {
        let of_json;
        (reply, of_json) = judge_json_reply(&app, &caller, &id, reply).await?;
        read = Some(of_json);
    }
    if reply.iter().all(u8::is_ascii_whitespace) {
        let detail = "a reply holds at least one payload; to end without one, acknowledge the message";
        return Err(Problem::unprocessable("blank", detail));
    }
    settle(&app, &caller, &id, (Settlement::Reply(reply), read)).await
}

/// The XML of payloads that a listener sends as JSON in answer to a message of the caller's mailbox, and the verdict of the pump
/// on them.
async fn judge_json_reply(
    app: &AppState,
    caller: &Caller,
    id: &str,
    json: Bytes,
) -> Result<(Bytes, ReadAnswer), Problem> {
    let id = own(app, caller, id).await?;
    let (mailbox, thread) = app.place_of(id).await?.ok_or_else(no_message)?;
    let listener = app.judge.listener(&app.mailboxes, id, &mailbox).ok_or_else(no_message)?;
    let to = Answered { message: id, thread };
    let verdict = app.judge.answer_json(listener, to, json).await.ok_or_else(Problem::stopping)?;
    let read = verdict?.map_err(Problem::of_answer)?;
    Ok((read.raw.bytes().clone(), read))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Failure {
    /// The reason, for the sender.
    message: Option<String>,
}

/// An answer that was taken.
#[derive(Serialize, JsonSchema)]
pub(super) struct Taken {
    id: view::Id,
    #[schemars(extend("enum" = ["queued"]))]
    state: SubmissionState,
}

/// `POST /v1/messages/{id}/fail`
pub(super) async fn fail(
    State(app): State<Arc<AppState>>,
    caller: Caller,
    Path(id): Path<String>,
    request: Request,
) -> Result<Response, Problem> {
    Query::of(&request, &[])?;
    let Failure { message } = json(&app, request).await?;
    let message = message.filter(|message| !message.trim().is_empty());
    let message = message.unwrap_or_else(|| "the listener failed, and gave no reason".to_owned());
    settle(&app, &caller, &id, (Settlement::Fail(message.into()), None)).await
}

/// The message in a path, which is in a mailbox that the caller sees to.
///
/// # Errors
/// 404: a message of another mailbox looks like one that never was.
pub(super) async fn own(app: &AppState, caller: &Caller, id: &str) -> Result<MessageId, Problem> {
    let id = message_id(id)?;
    let mailbox = app.mailbox_of(id).await?;
    mailbox.filter(|mailbox| caller.sees_to(mailbox)).ok_or_else(no_message)?;
    Ok(id)
}

async fn settle(
    app: &AppState,
    caller: &Caller,
    id: &str,
    (with, read): (Settlement, Option<ReadAnswer>),
) -> Result<Response, Problem> {
    let id = own(app, caller, id).await?;
    match read {
        None => conclude(app, id, with).await?,
        judged => {
            let acted = app.mailboxes.settle(id, with.clone(), judged);
            ended(app, id, acted, &with, None).await?;
        }
    }
    let value = Taken { id: view::Id::of(&id), state: SubmissionState::Queued };
    Ok(view::document(StatusCode::ACCEPTED, &value))
}

/// Ends a message of a mailbox, durably. A repeated end is no mistake.
///
/// # Errors
/// 422 for a reply that the pump would refuse: nothing has ended then.
pub(in crate::gateway) async fn conclude(app: &AppState, id: MessageId, with: Settlement) -> Result<(), Problem> {
    let mut read = None;
    if let Settlement::Reply(reply) = &with {
        let (mailbox, thread) = app.place_of(id).await?.ok_or_else(no_message)?;
        if let Some(listener) = app.judge.listener(&app.mailboxes, id, &mailbox) {
            let to = Answered { message: id, thread };
            let verdict = app.judge.answer(listener, to, reply.clone()).await.ok_or_else(Problem::stopping)?;
            read = Some(verdict.map_err(Problem::of_answer)?);
        }
    }
    let acted = app.mailboxes.settle(id, with.clone(), read);
    ended(app, id, acted, &with, None).await
}

/// Ends a message of a mailbox without a reply, durably, for a caller that shows no receipt.
pub(super) async fn end_silently(app: &AppState, mailbox: Name, id: MessageId) -> Result<(), Problem> {
    let acted = app.mailboxes.act(MailboxInput::Acknowledge { mailbox: mailbox.clone(), id });
    ended(app, id, acted, &Settlement::Silent, Some(&mailbox)).await
}

/// Waits until an input that settles a message so is durable; with a mailbox, only a message of that one.
async fn ended(
    app: &AppState,
    id: MessageId,
    acted: Result<Acted, ActError>,
    with: &Settlement,
    of: Option<&Name>,
) -> Result<(), Problem> {
    let refused = match acted {
        Ok(mut acted) => return Ok(acted.durable().await?),
        Err(ActError::Ending) => return Err(Problem::stopping()),
        Err(ActError::Refused(refused)) => refused,
    };
    let state = match refused {
        Refused::Early => return Err(Problem::early()),
        Refused::Stale => {
            let detail = "a reader has leased the message: 'receipt' has to be that of its lease";
            return Err(Problem::conflict("stale_receipt", detail));
        }
        Refused::Over(state) => state,
        // The message ended before: the journal has its end.
        Refused::Unknown | Refused::Full(_) => {
            let mail = app.query.mail(id).await?.filter(|mail| of.is_none_or(|of| mail.record.mailbox == *of));
            let mail = mail.ok_or_else(no_message)?;
            match Repeated::settlement(&mail.status, with) {
                Repeated::Same => return Ok(()),
                Repeated::Other => mail.status.state,
            }
        }
    };
    let detail = format!("the message is {}: it takes no other answer", state.as_str());
    Err(Problem::conflict("settled", detail))
}

/// The answers to a submission, once there is one, its conversation has ended or the time is up; and whether it has
/// ended.
pub(in crate::gateway) async fn answers_of(
    app: &AppState,
    id: MessageId,
    over: impl Future<Output = ()>,
) -> Result<(Vec<SentAnswer>, bool), Problem> {
    let mut over = std::pin::pin!(over);
    let watch = app.submissions.watch(id);
    let mut end = None;
    loop {
        let mut news = std::pin::pin!(watch.notify().notified());
        news.as_mut().enable();
        let most = app.organism.blueprint().limits.xml.message_bytes;
        let sent = app.query.submission(id, 0, most).await?.ok_or_else(no_message)?;
        if !sent.answers.is_empty() || sent.ended {
            return Ok((sent.answers, sent.ended));
        }
        if end.is_none() {
            // It may have ended before it was watched: the next look tells.
            end = Some(app.organism.watch_end(sent.submission.root, watch.notify()));
        } else if !app.mailboxes.await_news(news, over.as_mut()).await {
            return Ok((sent.answers, false));
        }
    }
}

/// A message that was submitted, and has no answer yet.
#[derive(Serialize, JsonSchema)]
pub(super) struct Queued {
    id: view::Id,
    thread: view::Id,
    #[schemars(extend("enum" = ["queued", "silent"]))]
    state: SubmissionState,
}

/// An answer with its payload as JSON.
#[derive(Serialize, JsonSchema)]
pub(super) struct JsonAnswer {
    id: view::Id,
    thread: view::Id,
    #[schemars(extend("enum" = ["answered", "faulted"]))]
    state: SubmissionState,
    from: String,
    /// The payload, as an object of one property: its name.
    #[schemars(with = "Map<String, Value>")]
    payload: Box<RawValue>,
}

async fn acknowledge(app: &Arc<AppState>, posted: &Posted, form: Form) -> Result<Response, Problem> {
    let Kept { id, root } = posted.kept;
    let response = match posted.answers.first() {
        Some(answer) if form == Form::Json => {
            let (answer, site) = (answer.clone(), app.clone());
            let state = view::state(&posted.answers, posted.ended);
            let (id, thread) = (view::Id::of(&id), view::Id::of(&root));
            let value = move || {
                let payload = view::payload_json(&answer.envelope, &site.organism);
                JsonAnswer { id, thread, state, from: answer.from.to_string(), payload }
            };
            view::long_document(app, value).await?
        }
        Some(answer) => view::envelope(app.organism.sign(&answer.envelope)),
        None => {
            let (id, thread) = (view::Id::of(&id), view::Id::of(&root));
            let value = Queued { id, thread, state: view::state(&[], posted.ended) };
            view::document(StatusCode::ACCEPTED, &value)
        }
    };
    Ok(view::located(response, &format!("/v1/messages/{id}")))
}

/// Refuses a message now that the pump would refuse later.
async fn judge(app: &AppState, client: &Name, bytes: Bytes) -> Result<ReadMessage, Problem> {
    Ok(app.judge.message(id_of(app, client)?, bytes).await.ok_or_else(Problem::stopping)??)
}

/// The same for a payload as JSON.
async fn judge_json(app: &AppState, client: &Name, json: Bytes) -> Result<ReadMessage, Problem> {
    let verdict = app.judge.json(id_of(app, client)?, json).await.ok_or_else(Problem::stopping)?;
    Ok(verdict??)
}

fn id_of(app: &AppState, client: &Name) -> Result<ClientId, Problem> {
    match app.organism.blueprint().party(client.as_str()) {
        Some(Party::Client(id)) => Ok(id),
        Some(Party::Listener(_)) | None => Err(Problem::stopping()),
    }
}

/// Makes the submission and the re-encoded envelope: `from` is the principal of the token, regardless of the bytes.
fn re_encoded(
    from: Name,
    mut read: ReadMessage,
    key: Option<(Arc<str>, [u8; 32])>,
    now: Time,
) -> (SubmissionRecord, Envelope) {
    let claims = &mut read.claims;
    let root = ThreadId::from_uuid(Entropy::Real.id(now));
    let id = MessageId::from_uuid(Entropy::Real.id(now));
    let meta = Meta {
        from: from.clone(),
        to: claims.to.as_deref().and_then(|to| Name::parse(to).ok()),
        thread: root,
        id,
        in_reply_to: None,
        deadline: claims.deadline,
        traceparent: claims.traceparent.as_deref().map(str::to_owned),
    };
    let envelope = write_envelope(&meta, &read.payload);
    // The claims of that envelope.
    claims.from = from.to_string().into();
    claims.thread = Some(root.to_string().into());
    claims.id = Some(id.to_string().into());
    claims.in_reply_to = None;
    (SubmissionRecord { id, client: from, root, key }, (envelope, Some(read)))
}
