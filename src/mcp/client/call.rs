//! The call of a message: its arguments, its wait, its outcome.
#![expect(deprecated, reason = "servers of earlier revisions ask for completions so")]

use std::cell::Cell;
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::rc::Rc;
use std::time::Duration;

use rmcp::RoleClient;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CallToolResult, ClientRequest, CreateMessageRequestParams, ElicitRequest,
    ElicitRequestParams, ElicitResult, ElicitationAction, InputRequest, InputRequests, InputRequiredResult,
    InputResponses, ServerResult,
};
use rmcp::service::{PeerRequestOptions, RequestHandle, ServiceError};
use serde_json::Value;
use serde_json::value::RawValue;
use systole_core::core::{Failure, HandlerOutcome, Message};
use systole_core::vocab::{Fault, FaultCode};
use tokio::time::{sleep, timeout};

use super::questions::Questions;
use super::session::{News, Registered, Session, token_of, told};
use super::{Tool, http, raw, result};
use crate::listeners::fleet::{Lost, ProcessEnd, failed};
use crate::listeners::mcp::{McpListenerSettings, Repeat};
use crate::process::Subject;
use crate::process::run::LINGER;
use crate::runtime::RunContext;
use crate::terminal::readable;

/// The name under which the beginning of a call stands in the journal.
const NOTE: &str = "mcp";
/// Rounds of questions that a call may take.
const ROUNDS: usize = 16;
/// Questions that the server may ask before it has answered a message.
const QUESTIONS: usize = 32;

/// The caller of a tool, for one message.
pub(super) struct Caller<'m> {
    settings: &'m McpListenerSettings,
    tool: &'m Tool,
    /// The arguments, as JSON.
    arguments: String,
    subject: Subject,
    context: &'m RunContext,
    /// True if another call with the same arguments is harmless.
    is_repeatable: bool,
    /// True if the call is in the journal.
    is_noted: bool,
    /// Questions that were asked.
    asked: Cell<usize>,
}

/// The end of a call.
pub(super) enum Called {
    /// The message has its outcome.
    Done(HandlerOutcome),
    /// The connection has ended.
    Lost(Rc<ProcessEnd>),
}

/// The reason why no answer is awaited any more.
enum Unanswered {
    /// The server was silent for that time.
    Silent(Duration),
    Asks(TooMany),
}

/// A server that asks without end.
#[derive(Debug, thiserror::Error)]
#[error("it asked more than {QUESTIONS} questions before it answered")]
struct TooMany;

/// The reason why a call ends that waits for input: the protocol has no error in the place of an input.
#[derive(Debug, thiserror::Error)]
enum NoInput {
    #[error(transparent)]
    TooMany(#[from] TooMany),
    #[error("it asked for the completion of a text, and {0}")]
    Completion(String),
}

/// A request whose answer is awaited. Dropping it cancels the call at the server.
struct Request(Option<RequestHandle<RoleClient>>);

impl Drop for Request {
    fn drop(&mut self) {
        if let (Some(handle), Ok(runtime)) = (self.0.take(), tokio::runtime::Handle::try_current()) {
            let cancelled = handle.cancel(Some("the message was cancelled".to_owned()));
            runtime.spawn(async move { drop(cancelled.await) });
        }
    }
}

/// The outcome of a message whose connection has ended, where another request is harmless; `None` if it is made.
pub(super) fn repeated(context: &RunContext, end: &ProcessEnd, lost: Lost) -> Option<HandlerOutcome> {
    match lost {
        Lost::GivenUp(attempts) => {
            let most = context.limits().max_attempts;
            let fault = failed(format!("{}, in attempt {attempts} of {most}", end.why), true);
            Some(HandlerOutcome::Failed(fault))
        }
        Lost::Counted(attempts) => {
            context.thread().attempted(attempts);
            None
        }
        Lost::Unread | Lost::Suspected => None,
    }
}

impl<'m> Caller<'m> {
    /// Makes the caller of a message: finds its tool, and makes its arguments.
    pub(super) fn new(
        (settings, tools): (&'m McpListenerSettings, &'m BTreeMap<String, Tool>),
        message: &Message,
        context: &'m RunContext,
    ) -> Result<Self, Fault> {
        let payload = message.body.written();
        let tool = tools.get(payload.root().local()).ok_or_else(|| {
            let what = format!("an MCP server has tools alone, and <{}> is none", payload.root().local());
            Fault::new(FaultCode::Failed, what)
        })?;
        let schema = context.catalog().get(payload.root());
        let schema = schema.ok_or_else(|| Fault::new(FaultCode::Internal, "a payload without a schema"))?;
        let arguments = tool.arguments.to_tool(&schema.to_canonical_json(&payload));
        let arguments = arguments.map_err(|why| Fault::new(FaultCode::Failed, why))?;
        let is_repeatable = match settings.repeat {
            Repeat::Hints => tool.locked.facts.is_repeatable(),
            Repeat::Always => true,
            Repeat::Never => false,
        };
        let is_noted = context.thread().notes()?.iter().any(|(name, _)| name == NOTE);
        let (subject, asked) = (Subject::of(message), Cell::default());
        let caller = Self { settings, tool, arguments, subject, context, is_repeatable, is_noted, asked };
        match caller.is_noted && !is_repeatable {
            true => Err(caller.unknown("the organism ended before the answer")),
            false => Ok(caller),
        }
    }

    /// The fault of a call that may have been carried out.
    fn unknown(&self, why: &str) -> Fault {
        let name = &self.tool.locked.facts.name;
        let message = format!(
            "unknown outcome: the tool '{name}' was called, and {why}, so it may have done its work or not. It is not called again, since nothing says that another call is harmless (readOnlyHint, idempotentHint, or `repeat: always`)"
        );
        Fault { retryable: false, ..Fault::new(FaultCode::ListenerFailed, message) }
    }

    /// Writes down that the call is about to be made, where another one would not be harmless.
    async fn note(&mut self) -> Result<(), Fault> {
        if self.is_repeatable || std::mem::replace(&mut self.is_noted, true) {
            return Ok(());
        }
        let value = RawValue::from_string(Value::from(self.tool.locked.facts.name.as_str()).to_string());
        let value = value.map_err(|error| Fault::new(FaultCode::Internal, error.to_string()))?;
        let index = self.context.thread().send_note(NOTE, &value)?;
        poll_fn(|cx| self.context.thread().poll_note(index, cx)).await;
        Ok(())
    }

    /// The outcome of a message whose connection has ended in mid-call; `None` if it is to be called again.
    pub(super) fn lost(&mut self, end: &ProcessEnd, lost: Lost) -> Option<HandlerOutcome> {
        match lost {
            Lost::Unread => None,
            _ if !self.is_repeatable => Some(HandlerOutcome::Failed(Failure::passing(self.unknown(&end.why)))),
            lost => repeated(self.context, end, lost),
        }
    }

    /// Makes the call, and answers the questions of the server meanwhile. `sent` is called when the server may have got it.
    pub(super) async fn call(&mut self, session: &Rc<Session>, sent: impl Fn()) -> Called {
        if let Err(fault) = self.note().await {
            return Called::Done(HandlerOutcome::Failed(Failure::passing(fault)));
        }
        let mut input = (None, None);
        for _ in 0..ROUNDS {
            let result = match self.round(session, input, &sent).await {
                Ok(result) => result,
                Err(called) => return called,
            };
            match result {
                ServerResult::CallToolResult(result) => return Called::Done(self.done(result)),
                // A result without any content.
                ServerResult::EmptyResult(_) => return Called::Done(self.done(CallToolResult::default())),
                ServerResult::InputRequiredResult(result) => match self.inputs(result).await {
                    Ok(answers) => input = answers,
                    Err(unanswered) => return Called::Done(self.refused(&unanswered.to_string())),
                },
                other => {
                    let why = misread(&serde_json::to_value(other).unwrap_or_default());
                    return Called::Done(
                        self.refused(&format!("it answered the call with a result of another kind: {why}")),
                    );
                }
            }
        }
        Called::Done(self.refused(&format!("it asked for input more than {ROUNDS} times before it answered")))
    }

    fn done(&self, result: CallToolResult) -> HandlerOutcome {
        match result::payload(self.tool, &self.settings.lock.namespace, result, self.context) {
            Ok(raw) => HandlerOutcome::Wrote(raw),
            Err(fault) => HandlerOutcome::Failed(Failure::passing(fault)),
        }
    }

    fn refused(&self, why: &str) -> HandlerOutcome {
        let name = &self.tool.locked.facts.name;
        HandlerOutcome::Failed(failed(format!("the MCP server failed the call of '{name}': {why}"), false))
    }

    /// The outcome of a request that failed while the connection stays.
    fn unanswered(&self, why: &str) -> HandlerOutcome {
        HandlerOutcome::Failed(match self.is_repeatable {
            true => failed(format!("the MCP server gave no answer: {why}"), true),
            false => Failure::passing(self.unknown(&format!("there was no answer: {why}"))),
        })
    }

    /// One request and its answer.
    async fn round(
        &self,
        session: &Rc<Session>,
        (responses, state): (Option<InputResponses>, Option<String>),
        sent: &impl Fn(),
    ) -> Result<ServerResult, Called> {
        let Some(peer) = session.peer() else { return Err(Called::Lost(session.ended().await)) };
        let mut params = CallToolRequestParams::new(self.tool.locked.facts.name.clone());
        params.arguments = Some(raw::arguments(&self.arguments));
        (params.input_responses, params.request_state) = (responses, state);
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        let handle = match peer.send_cancellable_request(request, PeerRequestOptions::no_options()).await {
            Ok(handle) => handle,
            Err(_) => return Err(Called::Lost(session.ended().await)),
        };
        sent();
        let registered = session.register(token_of(&handle.progress_token), self.subject);
        let mut request = Request(Some(handle));
        let answered = self.wait(&mut request, &registered, session).await;
        match answered {
            Ok(Ok(result)) => Ok(result),
            Ok(Err(ServiceError::McpError(error))) => Err(Called::Done(self.refused(&readable(&error.message)))),
            Ok(Err(error)) if http::is_expired(&error) => Err(Called::Done(self.refused(
                "the server does not know the session (HTTP 404), and did nothing of the request; if that stays so, write the address of its MCP endpoint as the url",
            ))),
            // The end of the connection says why; a request over HTTP may fail without one.
            Ok(Err(error)) => Err(match timeout(LINGER, session.ended()).await {
                Ok(end) => Called::Lost(end),
                Err(_) => Called::Done(self.unanswered(&told(&error))),
            }),
            Err(Unanswered::Asks(too_many)) => Err(Called::Done(self.refused(&too_many.to_string()))),
            Err(Unanswered::Silent(silence)) => {
                drop((request, registered));
                session.doubt();
                let name = &self.tool.locked.facts.name;
                let message = format!(
                    "the MCP server neither answered the call of '{name}' nor told of progress within {silence:?}{}: the call is cancelled; where a tool takes long, write a longer `timeout`",
                    session.remark()
                );
                let fault = Fault::new(FaultCode::Timeout, message);
                Err(Called::Done(HandlerOutcome::Failed(Failure::passing(fault))))
            }
        }
    }

    /// Waits for an answer.
    async fn wait(
        &self,
        request: &mut Request,
        registered: &Registered,
        session: &Session,
    ) -> Result<Result<ServerResult, ServiceError>, Unanswered> {
        let Some(handle) = &mut request.0 else { return Ok(Err(ServiceError::TransportClosed)) };
        let mut questions = Questions::new(self.settings, self.context);
        let longest = self.settings.silence;
        let silent = |longest: Option<Duration>| async move {
            match longest {
                Some(longest) => sleep(longest).await,
                None => std::future::pending().await,
            }
        };
        let mut silence = Box::pin(silent(longest));
        let answered = loop {
            tokio::select! {
                biased;
                answer = &mut handle.rx => break Ok(answer.unwrap_or(Err(ServiceError::TransportClosed))),
                // An answer that came before the end counts.
                _ = session.ended() => break Ok(Err(ServiceError::TransportClosed)),
                news = registered.news() => match news {
                    News::Progress(text) => {
                        self.context.thread().progress(text);
                        silence = Box::pin(silent(longest));
                    }
                    News::Question(question) => match self.may_ask() {
                        Ok(()) => questions.ask(*question),
                        Err(too_many) => break Err(Unanswered::Asks(too_many)),
                    },
                    News::Declined(count) => {
                        if let Some(too_many) = (0..count).find_map(|_| self.may_ask().err()) {
                            break Err(Unanswered::Asks(too_many));
                        }
                    }
                },
                () = questions.next() => silence = Box::pin(silent(longest)),
                // A person takes all the time that there is.
                () = &mut silence, if !questions.are_open() => break Err(Unanswered::Silent(longest.unwrap_or_default())),
            }
        };
        if answered.is_ok() {
            // It has ended: there is nothing to cancel.
            request.0 = None;
        }
        answered
    }

    /// The answers to the questions that a result has instead of content.
    async fn inputs(&self, result: InputRequiredResult) -> Result<(Option<InputResponses>, Option<String>), NoInput> {
        // None is asked where not all may be: the answers would be lost, and completions cost.
        let requests = result.input_requests.as_ref().map_or(0, InputRequests::len);
        if self.asked.get() + requests > QUESTIONS {
            return Err(TooMany.into());
        }
        let mut responses = InputResponses::new();
        for (key, request) in result.input_requests.into_iter().flatten() {
            let response = match request {
                InputRequest::Elicitation(ElicitRequest { params, .. }) => {
                    self.may_ask()?;
                    let mut questions = Questions::new(self.settings, self.context);
                    let answer = questions.answer(params).await;
                    serde_json::to_value(answer)
                }
                InputRequest::CreateMessage(request) => {
                    self.may_ask()?;
                    let mut questions = Questions::new(self.settings, self.context);
                    let completed = questions.complete(request.params).await;
                    serde_json::to_value(completed.map_err(|error| NoInput::Completion(readable(&error.message)))?)
                }
                InputRequest::ListRoots(_) => Ok(serde_json::json!({ "roots": [] })),
                // It was not declared: a server that asks all the same learns that nobody answers.
                _ => serde_json::to_value(ElicitResult::new(ElicitationAction::Decline)),
            };
            responses.extend(response.ok().map(|response| (key, response)));
        }
        Ok((Some(responses).filter(|responses| !responses.is_empty()), result.request_state))
    }

    /// Counts a question.
    fn may_ask(&self) -> Result<(), TooMany> {
        self.asked.set(self.asked.get() + 1);
        if self.asked.get() > QUESTIONS { Err(TooMany) } else { Ok(()) }
    }
}

/// The reason why an answer is no result of a call: the first part that is none of the protocol.
fn misread(answer: &Value) -> String {
    let Some(requests) = answer.get("inputRequests").and_then(Value::as_object) else {
        let error = serde_json::from_value::<CallToolResult>(answer.clone()).err();
        return error.map_or_else(|| "it is none of the protocol".to_owned(), |error| readable(&error.to_string()));
    };
    for (key, request) in requests {
        let params = request.get("params").cloned().unwrap_or_default();
        let error = match request.get("method").and_then(Value::as_str) {
            Some("sampling/createMessage") => serde_json::from_value::<CreateMessageRequestParams>(params).err(),
            Some("elicitation/create") => serde_json::from_value::<ElicitRequestParams>(params).err(),
            Some("roots/list") => None,
            Some(other) => return readable(&format!("inputRequests.{key} has the method '{other}', which is none")),
            None => return readable(&format!("inputRequests.{key} has no `method`")),
        };
        if let Some(error) = error {
            return readable(&format!("the params of inputRequests.{key}: {error}"));
        }
    }
    "it is none of the protocol".to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_answer_of_another_kind_is_refused_by_its_field() {
        let asked = |params: Value| {
            let request = json!({ "method": "sampling/createMessage", "params": params });
            misread(&json!({ "resultType": "input_required", "inputRequests": { "q": request } }))
        };
        let why = asked(json!({ "messages": [] }));
        assert!(why.contains("inputRequests.q") && why.contains("maxTokens"), "{why}");
        let why = misread(&json!({ "resultType": "input_required", "inputRequests": { "q": { "params": {} } } }));
        assert!(why.contains("inputRequests.q has no `method`"), "{why}");
        let why = misread(&json!({ "contents": [] }));
        assert!(why.contains("structuredContent"), "{why}");
    }
}
