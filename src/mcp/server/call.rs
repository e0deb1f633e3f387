//! A call from its submission to its answer: cancellation, progress, and questions to the caller on the way.

use std::collections::HashMap;
use std::future::pending;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use rmcp::model::{
    ClientResult, ErrorData, InputRequest, InputRequests, InputRequiredResult, InputResponses,
    ProgressNotificationParam, ProgressToken, ProtocolVersion, SealOptions, ServerRequest,
};
use rmcp::service::{RequestContext, RoleServer};
use serde::{Deserialize, Serialize};
use serde_json::json;
use systole_core::vocab::{MessageId, Name, ThreadId};
use tokio::time::{Instant, MissedTickBehavior, interval_at};

use super::Face;
use super::handler::Who;
use super::question::{Asking, Handled, PATIENCE, Taken};
use super::tools::Call;
use crate::drafts::{DraftNews, Drafts};
use crate::gateway::facade::{AppState, Problem, SentAnswer};

/// Pause between two signs of progress: hosts give a call up after 60 s without one.
const PROGRESS: Duration = Duration::from_secs(10);
/// Most characters of a draft in one sign of progress.
const DRAFT: usize = 4 << 10;

/// State of a call that its client hands back: it names the message, and the client can make none itself.
#[derive(Serialize, Deserialize)]
struct State {
    message: String,
    /// The question that is asked.
    asks: String,
}

/// The outcome of a call.
pub(super) enum Outcome {
    /// The answers; none if the conversation ended without one.
    Answered(Vec<SentAnswer>),
    /// The client has to answer before it goes on.
    Needs(InputRequiredResult),
    /// It was refused, and had no effect.
    Refused(Problem),
    /// It is a message now, whose answer the client fetches.
    Task(MessageId),
}

/// A request to call: the arguments, or the state of an earlier one.
pub(super) struct Wanted<'a> {
    /// The name of the tool, the prompt or the resource.
    pub(super) name: &'a str,
    pub(super) object: Bytes,
    pub(super) state: Option<String>,
    pub(super) responses: InputResponses,
    /// True if the answer is fetched later.
    pub(super) is_task: bool,
}

/// The wait for the answers to a message.
type Answering = Pin<Box<dyn Future<Output = Result<(Vec<SentAnswer>, bool), Problem>> + Send>>;

/// A message on its way.
struct Sent {
    id: MessageId,
    conversation: ThreadId,
    answering: Answering,
}

impl Face {
    /// Calls a listener, and waits for its answer.
    pub(super) async fn call(
        self: &Arc<Self>,
        who: &Who,
        call: &Call,
        wanted: Wanted<'_>,
        context: &RequestContext<RoleServer>,
    ) -> Result<Outcome, ErrorData> {
        let Wanted { name, object, state, responses, is_task } = wanted;
        let sent = match &state {
            Some(state) => self.resume(who, name, state).await?,
            None => {
                let traceparent = context.meta.0.get_traceparent();
                let object = (&call.schema, object);
                match self.app.ask(&who.client, &call.listener, object, (who.key.clone(), traceparent)).await {
                    Ok(asked) => {
                        let (id, conversation) = (asked.id(), asked.conversation());
                        if is_task {
                            return Ok(Outcome::Task(id));
                        }
                        Sent { id, conversation, answering: Box::pin(asked.answers(pending())) }
                    }
                    Err(problem) if self.app.is_stopping() => return Err(stopping(who, &problem).await),
                    Err(problem) => return Ok(Outcome::Refused(problem)),
                }
            }
        };
        let outcome = self.wait(who, (name, is_task), sent, (state.is_none(), responses), context).await?;
        match who.is_known(&self.app).await {
            true => Ok(outcome),
            false => Err(revoked()),
        }
    }

    /// Goes on with the call of a state that the client hands back.
    async fn resume(&self, who: &Who, name: &str, state: &str) -> Result<Sent, ErrorData> {
        let bound = bound(&who.client, name);
        let opened = self.codec.open_json_with::<State>(state, &bound).ok();
        let sent = match opened {
            Some(State { message, .. }) => match message.parse() {
                Ok(message) => self.app.sent(&who.client, message).await.map_err(unreadable)?,
                Err(_) => None,
            },
            None => None,
        };
        let sent = sent.ok_or_else(|| {
            let why = "requestState is not that of this call and this caller, or too old: call again without it";
            ErrorData::invalid_params(why, None)
        })?;
        let (app, id) = (self.app.clone(), sent.submission.id);
        let answering = Box::pin(async move { app.answers(id, pending()).await });
        Ok(Sent { id, conversation: sent.submission.root, answering })
    }

    async fn wait(
        self: &Arc<Self>,
        who: &Who,
        (name, is_task): (&str, bool),
        sent: Sent,
        (is_new, responses): (bool, InputResponses),
        context: &RequestContext<RoleServer>,
    ) -> Result<Outcome, ErrorData> {
        let Sent { id, conversation, mut answering } = sent;
        let able = context.client_capabilities();
        let mut told = Told::of(self, context, conversation).await;
        let (mut handled, mut wrong) = (Handled::default(), HashMap::new());
        if !responses.is_empty() {
            for asking in self.questions(conversation, &handled, &wrong).await {
                let taken = self.answer(&asking, able.as_ref(), &responses, &mut wrong).await;
                handled.note(asking, taken);
            }
        }
        if is_task && wrong.is_empty() {
            return Ok(Outcome::Task(id));
        }
        let caller = self.caller.clone().map(|caller| self.app.organism().questions(caller).changes());
        let mut changes = caller;
        let mut is_news = changes.is_some();
        // The question that a client of sessions is asked now.
        let mut asked: Option<(Asking, Asked)> = None;
        loop {
            if is_news && asked.is_none() {
                is_news = false;
                for asking in self.questions(conversation, &handled, &wrong).await {
                    let Some(requests) = asking.requests(able.as_ref()) else {
                        if self.unasked(&asking, None).await {
                            if is_stateless(context) {
                                return Err(ErrorData::missing_required_client_capability(asking.needs()));
                            }
                            handled.note(asking, Taken::Reply);
                        }
                        continue;
                    };
                    if !self.may_ask(&who.client, conversation, is_new) {
                        self.cancel(who, conversation).await;
                        return Ok(Outcome::Refused(Self::too_many(&who.client)));
                    }
                    if is_stateless(context) {
                        let options = SealOptions::new().ttl(PATIENCE);
                        let bound = bound(&who.client, name);
                        let state = self.codec.seal_json_with(
                            &State { message: id.to_string(), asks: asking.question.clone() },
                            &options.associated_data(&bound),
                        );
                        let state = state.map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
                        return Ok(Outcome::Needs(InputRequiredResult::new(Some(requests), Some(state))));
                    }
                    if !who.is_known(&self.app).await {
                        return Err(self.shut_out(who, conversation).await);
                    }
                    let asking_now = ask(context.clone(), requests);
                    asked = Some((asking, Box::pin(asking_now)));
                    break;
                }
            }
            tokio::select! {
                biased;
                answers = &mut answering => {
                    let (answers, ended) = answers.map_err(unreadable)?;
                    if answers.is_empty() && !ended {
                        return Err(stopping(who, &Problem::stopping()).await);
                    }
                    return Ok(Outcome::Answered(answers));
                }
                () = over(who, context) => {
                    self.cancel(who, conversation).await;
                    return Err(ErrorData::internal_error("the call was cancelled", None));
                }
                responses = answer_of(&mut asked) => {
                    if let Some((asking, _)) = asked.take() {
                        let taken = match responses {
                            Ok(responses) => self.answer(&asking, able.as_ref(), &responses, &mut wrong).await,
                            // Such as a client that has gone, or can't after all.
                            Err(why) if self.unasked(&asking, Some(&why)).await => Taken::Reply,
                            Err(_) => Taken::No,
                        };
                        handled.note(asking, taken);
                    }
                    is_news = true;
                }
                () = changed(&mut changes) => is_news = true,
                is_known = told.next(&self.app, who, context) => if !is_known {
                    return Err(self.shut_out(who, conversation).await);
                }
            }
        }
    }

    /// Ends the call of a client whose token was revoked: it gets nothing more.
    async fn shut_out(&self, who: &Who, conversation: ThreadId) -> ErrorData {
        self.cancel(who, conversation).await;
        revoked()
    }

    /// Cancels a conversation, unless the organism stops: then it goes on at its next start.
    pub(super) async fn cancel(&self, who: &Who, conversation: ThreadId) {
        if !self.app.is_stopping() {
            // It may have ended.
            let _ = self.app.organism().operations(who.client.clone()).cancel(conversation, conversation).await;
        }
    }
}

fn revoked() -> ErrorData {
    ErrorData::invalid_request("the token was revoked meanwhile: the answer isn't shown", None)
}

/// The client and the name that the state of a call is bound to.
fn bound(client: &Name, name: &str) -> Vec<u8> {
    format!("{client}\n{name}").into_bytes()
}

/// Returns whether a request belongs to a revision without requests to the client.
pub(super) fn is_stateless(context: &RequestContext<RoleServer>) -> bool {
    context.protocol_version().is_some_and(|version| version >= ProtocolVersion::V_2026_07_28)
}

/// Waits until the client has cancelled its call, or has left: in a session it may come back for the answer.
async fn over(who: &Who, context: &RequestContext<RoleServer>) {
    tokio::select! {
        () = context.ct.cancelled() => {}
        () = who.gone(), if is_stateless(context) => {}
    }
}

/// The error of a call that gets no answer here. Over a stream there is none: the next process of the organism answers.
async fn stopping(who: &Who, problem: &Problem) -> ErrorData {
    if who.is_resumed {
        pending::<()>().await;
    }
    let (_, detail, _) = problem.parts();
    ErrorData::internal_error(format!("{detail}: the call goes on at the next start"), None)
}

/// The error of a journal that can't be read.
pub(super) fn unreadable(problem: Problem) -> ErrorData {
    let (_, detail, _) = problem.parts();
    ErrorData::internal_error(detail.to_owned(), None)
}

/// The answers of a client that is asked.
type Asked = Pin<Box<dyn Future<Output = Result<InputResponses, String>> + Send>>;

/// Asks a client of sessions, one request after the other.
async fn ask(context: RequestContext<RoleServer>, requests: InputRequests) -> Result<InputResponses, String> {
    let mut responses = InputResponses::new();
    for (key, request) in requests {
        let request = match request {
            InputRequest::Elicitation(request) => ServerRequest::ElicitRequest(request),
            InputRequest::CreateMessage(request) => ServerRequest::CreateMessageRequest(request),
            InputRequest::ListRoots(request) => ServerRequest::ListRootsRequest(request),
            _ => return Err("no such request".to_owned()),
        };
        let result: ClientResult = context.peer.send_request(request).await.map_err(|error| error.to_string())?;
        responses.insert(key, serde_json::to_value(result).map_err(|error| error.to_string())?);
    }
    Ok(responses)
}

async fn answer_of(asked: &mut Option<(Asking, Asked)>) -> Result<InputResponses, String> {
    match asked {
        Some((_, asked)) => asked.await,
        None => pending().await,
    }
}

async fn changed(changes: &mut Option<tokio::sync::watch::Receiver<u64>>) {
    match changes {
        Some(changes) => match changes.changed().await {
            Ok(()) => {}
            // The organism is gone; the answer tells.
            Err(_) => pending().await,
        },
        None => pending().await,
    }
}

/// Signs of progress, as far as the client wants them.
struct Told {
    token: Option<ProgressToken>,
    /// True for a client of sessions without a token: it gets drafts as lines of a log.
    logs: bool,
    drafts: Option<Drafts>,
    ticks: tokio::time::Interval,
    began: Instant,
    last: f64,
}

impl Told {
    async fn of(face: &Face, context: &RequestContext<RoleServer>, conversation: ThreadId) -> Self {
        let token = context.meta.get_progress_token();
        let logs = token.is_none() && !is_stateless(context);
        let drafts = match token.is_some() || logs {
            true => Some(face.app.organism().drafts(conversation, None).await),
            false => None,
        };
        let began = Instant::now();
        let mut ticks = interval_at(began + PROGRESS, PROGRESS);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self { token, logs, drafts, ticks, began, last: 0.0 }
    }

    /// Sends the next sign, unless the token of the client was revoked; returns whether it is still good. A client that doesn't
    /// read the sign holds up nothing but its own call, which it may cancel.
    ///
    /// # Cancel safety
    /// A sign that is not sent is left out.
    async fn next(&mut self, app: &AppState, who: &Who, context: &RequestContext<RoleServer>) -> bool {
        let message = tokio::select! {
            news = next_draft(&mut self.drafts) => match news {
                Some(message) => message,
                None => return true,
            },
            _ = self.ticks.tick(), if self.token.is_some() => {
                format!("{} s", self.began.elapsed().as_secs())
            }
        };
        if !who.is_known(app).await {
            return false;
        }
        // It grows with each sign.
        self.last = (self.last + 0.001).max(self.began.elapsed().as_secs_f64());
        match &self.token {
            Some(token) => {
                let progress = ProgressNotificationParam::new(token.clone(), self.last).with_message(message);
                let _ = context.peer.notify_progress(progress).await;
            }
            None if self.logs => {
                let _ = log(context, message).await;
            }
            None => {}
        }
        true
    }
}

#[expect(deprecated, reason = "clients of sessions know it")]
async fn log(context: &RequestContext<RoleServer>, message: String) -> Result<(), rmcp::ServiceError> {
    use rmcp::model::{LoggingLevel, LoggingMessageNotificationParam};
    let line = LoggingMessageNotificationParam::new(LoggingLevel::Info, json!(message));
    context.peer.notify_logging_message(line).await
}

/// The text of the next draft that has grown; none for other news.
async fn next_draft(drafts: &mut Option<Drafts>) -> Option<String> {
    let Some(open) = drafts else { return pending().await };
    match open.next().await {
        Some(record) => match record.news {
            DraftNews::Text { mut text, .. } => {
                if let Some((end, _)) = text.char_indices().nth(DRAFT) {
                    text.truncate(end);
                    text.push('…');
                }
                Some(text)
            }
            DraftNews::Gone { .. } | DraftNews::Lost => None,
        },
        None => {
            *drafts = None;
            None
        }
    }
}

/// The arguments of a call as the bytes of a JSON object.
pub(super) fn object(arguments: Option<impl Serialize>) -> Bytes {
    let value = arguments.and_then(|arguments| serde_json::to_vec(&arguments).ok());
    value.map_or_else(|| Bytes::from_static(b"{}"), Bytes::from)
}
