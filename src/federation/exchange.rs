//! The exchange for one message: the request, the wait for its answer, and the answer as the outcome of the message.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hyper::header::{HeaderName, HeaderValue, IF_MATCH};
use serde::{Deserialize, Serialize};
use serde_json::json;
use systole_core::core::{Emission, EmissionKind, Failure, HandlerOutcome, Message};
use systole_core::protocol::{is_fault, read_fault};
use systole_core::vocab::{Amounts, Budget, Fault, FaultCode, Name, Time};
use systole_store::clock::Clock;
use systole_xml::ladder::strict::canonicalize;
use systole_xml::ladder::{Canonical, Envelope, Meta, Raw, with_metadata, write_envelope};
use systole_xml::schema::Draft;
use tokio::time::{sleep, timeout};

use super::{OrganismListener, import};
use crate::listeners::fleet::failed;
use crate::listeners::organism::Correlation;
use crate::outbound::signing::IDEMPOTENCY_KEY;
use crate::process::Subject;
use crate::remote::RemoteError;
use crate::remote::link::{Call, Link};
use crate::runtime::{RunContext, Thread};
use crate::terminal::readable;

/// The names under which the request, its acceptance, and the charge of its use stand in the journal.
const SENT: &str = "organism";
const ACCEPTED: &str = "organism-accepted";
const SETTLED: &str = "organism-settled";
/// Time for which the other organism is asked to hold a question for the answer back.
const WAIT: Duration = Duration::from_secs(60);
/// Pause before the next question, where one came back at once: the other organism is stopping, or does not wait.
const PAUSE: Duration = Duration::from_secs(1);
/// Time for the attempts to cancel a conversation: its deadline ends it, too.
const CANCEL: Duration = Duration::from_secs(60);
/// Time to learn what has changed in a contract.
const CHANGES: Duration = Duration::from_secs(10);
/// Bytes of metadata and signature that an envelope may have beside its message.
const METADATA: usize = 16 << 10;

/// A request as the journal keeps it: each attempt sends the same bytes, which the key belongs to.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Sent {
    body: String,
    /// The budget that was reserved, and is the bound of the conversation there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    bound: Option<String>,
}

/// The answer to a submission.
#[derive(Deserialize)]
struct Accepted {
    id: String,
}

/// The state of a submission.
#[derive(Deserialize)]
struct Report {
    id: String,
    state: String,
    #[serde(default)]
    replies: Vec<Reply>,
}

#[derive(Deserialize)]
struct Reply {
    envelope: String,
}

/// The exchange for a message.
pub(super) struct Exchange<'m> {
    listener: &'m OrganismListener,
    context: &'m RunContext,
    message: &'m Message,
}

/// A request, as often as it is made. Cheap to clone.
#[derive(Clone)]
struct Request {
    link: Arc<Link>,
    key: HeaderValue,
    tag: HeaderValue,
    body: Bytes,
}

/// A request in flight. Dropping it cancels the conversation there, unless the message runs again.
struct Flight<'m> {
    request: Request,
    thread: &'m Thread,
    subject: (Name, Subject),
    stage: Stage,
}

enum Stage {
    /// The other organism may have the message.
    Sent,
    /// It has the message, under that id.
    Accepted(String),
    /// There is nothing to cancel.
    Over,
}

/// An answer of the other organism.
enum Answer {
    Payload(Canonical),
    Fault(Fault),
    /// The conversation has ended without one.
    Silent,
}

impl<'m> Exchange<'m> {
    /// Hands a message to the other organism, and makes its answer the outcome.
    pub(super) async fn run(
        listener: &'m OrganismListener,
        message: &'m Message,
        context: &'m RunContext,
    ) -> Result<HandlerOutcome, Failure> {
        let exchange = Self { listener, context, message };
        let thread = context.thread();
        let link = listener.link(context.limits()).map_err(|why| failed(why, false))?;
        let before = thread.notes()?;
        let is_noted = |name: &str| before.iter().any(|(noted, _)| noted == name);
        let sent: Sent = thread.record(SENT, exchange.write()).await?;
        let bound = sent.bound.as_deref().and_then(|bound| bound.parse::<Budget>().ok());
        // What was reserved is settled once.
        let bound = bound.filter(|_| !is_noted(SETTLED));
        if let Some(bound) = bound.filter(|_| is_noted(SENT)) {
            thread.reclaim(bound.into());
        }
        let tag = HeaderValue::try_from(format!("\"{}\"", listener.settings.lock.hash));
        let tag = tag.map_err(|error| failed(error.to_string(), false))?;
        let key = HeaderValue::try_from(message.id.to_string()).map_err(|error| failed(error.to_string(), false))?;
        let request = Request { link, key, tag, body: sent.body.into() };
        let subject = (context.contract().name.clone(), Subject::of(message));
        let mut flight = Flight { request, thread, subject, stage: Stage::Sent };
        let accepted = thread.record_success(ACCEPTED, flight.submit()).await?;
        let id = match accepted {
            Ok(id) => id,
            Err(error) => {
                // It was refused, so it has no effect there.
                flight.stage = Stage::Over;
                if bound.is_some() {
                    thread.settle(SETTLED, Amounts::default()).await?;
                }
                return Err(exchange.refused(&flight.request.link, error).await);
            }
        };
        flight.stage = Stage::Accepted(id.clone());
        let report = match flight.answer(&id).await {
            Ok(report) => report,
            Err(error) if error.status() == Some(404) => {
                flight.stage = Stage::Over;
                let why = "unknown outcome: the other organism took the message, and does not know it any more: its journal was replaced, or retention has deleted the answer";
                return Err(failed(why, false));
            }
            Err(error) => return Err(exchange.refused(&flight.request.link, error).await),
        };
        let (answer, used) = exchange.read(report, &flight.request).map_err(|why| exchange.doubt(&why))?;
        flight.stage = Stage::Over;
        if let Some(bound) = bound {
            thread.settle(SETTLED, within(used, &bound)).await?;
        }
        Ok(match answer {
            // It is judged as it is: a gateway writes nothing that needs repair.
            Answer::Payload(payload) => {
                let (kind, payload) = (EmissionKind::Reply, Draft::Canonical(payload));
                HandlerOutcome::Emitted(vec![Emission { kind, to: None, thread: None, payload }])
            }
            Answer::Fault(fault) => HandlerOutcome::Failed(Failure::passing(Fault { in_reply_to: None, ..fault })),
            Answer::Silent => HandlerOutcome::Emitted(Vec::new()),
        })
    }

    /// Writes the request: its envelope has the deadline, the trace and the rest of the budget.
    async fn write(&self) -> Sent {
        let Self { listener, context, message } = self;
        let bound = context.thread().reserve_rest().await;
        let lock = &listener.settings.lock.contract;
        let payload = message.body.written();
        let called = lock.payload(payload.root()).filter(|called| called.addressed);
        let timeout = context.contract().timeout.zip(context.thread().clock().ok());
        let timeout = timeout.map(|(timeout, clock)| clock.now().after(timeout));
        let deadline = [message.deadline, timeout].into_iter().flatten().min();
        let meta = Meta {
            // The pump there stamps the name of the token's client.
            from: Name::parse(&lock.client).unwrap_or_else(|_| Name::system()),
            to: called.and_then(|called| Name::parse(&called.listener).ok()),
            thread: message.thread,
            id: message.id,
            in_reply_to: None,
            deadline: deadline.filter(|deadline| *deadline < Time::MAX),
            traceparent: message.traceparent.map(|caller| caller.to_string()),
        };
        let mut envelope = write_envelope(&meta, &payload);
        if let Some(bound) = &bound {
            envelope = with_metadata(&envelope, "budget", &bound.to_string());
        }
        if let Some(identity) = &listener.identity {
            match identity.sign(&envelope) {
                Ok(signed) => envelope = signed,
                Err(error) => {
                    let (listener, subject) = (&context.contract().name, Subject::of(message));
                    let (Subject { thread, id, .. }, trace) = (subject, subject.trace());
                    tracing::warn!(%listener, %thread, message_id = %id, trace, %error, "a message left without a signature");
                }
            }
        }
        let body = String::from_utf8_lossy(&envelope).into_owned();
        Sent { body, bound: bound.map(|bound| bound.to_string()) }
    }

    /// Reads an answer: its signature, the request that it belongs to, and what was used.
    fn read(&self, report: Report, request: &Request) -> Result<(Answer, Option<Amounts>), String> {
        let Some(reply) = report.replies.into_iter().next() else { return Ok((Answer::Silent, None)) };
        let mut limits = self.context.limits().xml.clone();
        limits.message_bytes = limits.message_bytes.saturating_add(METADATA);
        let raw = Raw::new(reply.envelope);
        let message =
            canonicalize(raw.bytes(), &limits).map_err(|error| format!("its answer is no message: {error}"))?;
        let keys = self.listener.settings.keys.as_ref();
        if let Some(keys) = keys {
            keys.verify(&raw, &message)
                .map_err(|error| format!("its answer is not signed by a key of `keys`: {error}"))?;
        }
        let envelope = Envelope::open(message).map_err(|error| format!("its answer is no envelope: {error}"))?;
        let (claims, payload) = envelope.into_parts();
        let correlation = claims.correlation.as_deref().map(str::parse::<Correlation>).transpose();
        let correlation =
            correlation.map_err(|error| format!("the correlation in its answer can't be read: {error}"))?;
        let own =
            Correlation::new(request.key.to_str().unwrap_or_default(), blake3::hash(&request.body).as_bytes(), None);
        match &correlation {
            Some(correlation) if (&correlation.key, &correlation.blake3) != (&own.key, &own.blake3) => {
                return Err("its answer belongs to another request than this one".to_owned());
            }
            None if keys.is_some() => {
                return Err("its answer is signed, and no correlation says which request it belongs to".to_owned());
            }
            Some(_) | None => {}
        }
        let used = correlation.and_then(|correlation| correlation.used);
        if is_fault(payload.root()) {
            let fault = read_fault(&payload).map_err(|error| format!("its fault can't be read: {error}"))?;
            return Ok((Answer::Fault(fault), used));
        }
        Ok((Answer::Payload(payload), used))
    }

    /// The failure of an answer that is not taken: operators learn of it, too, since it may have been made on the way.
    fn doubt(&self, why: &str) -> Failure {
        let (listener, subject) = (&self.context.contract().name, Subject::of(self.message));
        let (Subject { thread, id, .. }, trace) = (subject, subject.trace());
        let why = readable(why);
        tracing::error!(%listener, %thread, message_id = %id, trace, "an answer of another organism was refused: {why}");
        failed(format!("the other organism answered, and the answer is refused: {why}"), false)
    }

    /// The failure of a request that the other organism refused, or that it doesn't understand.
    async fn refused(&self, link: &Link, error: RemoteError) -> Failure {
        let name = &self.context.contract().name;
        let RemoteError::Refused { status, code, detail, .. } = &error else {
            tracing::error!(listener = %name, %error, "another organism does not answer as a gateway does");
            return failed(format!("the other organism does not answer as a gateway does: {error}"), false);
        };
        match (*status, FaultCode::named(code)) {
            (412, _) => {
                let why = self.changes(link).await;
                tracing::error!(listener = %name, "the contract of another organism has changed: {why}");
                failed(
                    format!(
                        "the contract of the other organism is not the one that was imported: {why}. If you trust the change, run `systole organism import` again for '{name}'"
                    ),
                    false,
                )
            }
            (401, _) => {
                self.listener.forget_token();
                tracing::error!(listener = %name, "another organism does not know the token of {}", self.listener.settings.token.display());
                failed(
                    "the other organism does not know the token: let its operator make one with `systole token new`, and write it into the token file",
                    false,
                )
            }
            (507, _) => Failure::passing(Fault {
                retryable: true,
                ..Fault::new(FaultCode::Overload, format!("the other organism has no room: {detail}"))
            }),
            (413, _) => Failure::passing(Fault::new(
                FaultCode::Limit,
                format!("the other organism refuses the message: {detail}"),
            )),
            // What the sender of the message can mend.
            (400 | 404 | 422, Some(code)) => Failure::passing(Fault {
                retryable: false,
                ..Fault::new(code, format!("the other organism refuses the message: {detail}"))
            }),
            _ => {
                tracing::error!(listener = %name, %error, "another organism refuses messages");
                failed(format!("the other organism refuses the message: {error}"), false)
            }
        }
    }

    /// The differences of the contract, in words.
    async fn changes(&self, link: &Link) -> String {
        let lock = &self.listener.settings.lock.contract;
        match timeout(CHANGES, import::contract(link)).await {
            Ok(Ok(now)) => match lock.differences(&now) {
                told if told.is_empty() => "it is as it was again".to_owned(),
                told => told.join("; "),
            },
            Ok(Err(why)) => format!("it can't be read now: {why}"),
            Err(_) => format!("it can't be read now: there was no answer for {CHANGES:?}"),
        }
    }
}

impl Request {
    /// Submits the message, as often as it takes. Returns its id there.
    async fn submit(&self, told: impl Fn(&RemoteError)) -> Result<String, RemoteError> {
        let call = Call::post(&["v1", "messages"], "application/xml", self.body.clone())
            .header(HeaderName::from_static(IDEMPOTENCY_KEY), Some(self.key.clone()))
            .header(IF_MATCH, Some(self.tag.clone()));
        let body = self.link.insist(&call, told).await?;
        let accepted: Accepted = read(&call, &body)?;
        // It becomes a part of paths.
        match uuid::Uuid::try_parse(&accepted.id) {
            Ok(id) => Ok(id.to_string()),
            Err(_) => Err(unusable(&call, "its id is none")),
        }
    }

    /// Waits until the message is answered, or never will be.
    async fn answer(&self, id: &str, told: impl Fn(&RemoteError)) -> Result<Report, RemoteError> {
        let clock = Clock::of_runtime();
        let path = ["v1", "messages", id];
        loop {
            let begun = clock.now();
            let call = Call::get(&path).with("correlation", Some(true)).with("wait", Some(WAIT.as_secs())).waits(WAIT);
            let body = self.link.insist(&call, &told).await?;
            let report: Report = read(&call, &body)?;
            if report.id != id {
                return Err(unusable(&call, "it is about another message"));
            }
            match (&*report.state, report.replies.is_empty()) {
                ("queued" | "delivered", true) => {}
                ("answered" | "faulted", false) | ("silent", true) => return Ok(report),
                (state, is_empty) => {
                    let answers = if is_empty { "without an answer" } else { "with answers" };
                    let problem = format!("no message is '{}' {answers}", readable(state));
                    return Err(unusable(&call, &problem));
                }
            }
            if clock.now().since(begun) < PAUSE {
                sleep(PAUSE).await;
            }
        }
    }

    /// Cancels the conversation of the message, whose id there may not be known: the same request tells it.
    async fn cancel(&self, id: Option<String>) -> Result<(), RemoteError> {
        let id = match id {
            Some(id) => id,
            None => self.submit(|_| ()).await?,
        };
        self.link.insist(&Call::json(&["v1", "messages", &id, "cancel"], &json!({})), |_| ()).await.map(drop)
    }
}

impl Flight<'_> {
    async fn submit(&self) -> Result<String, RemoteError> {
        self.request.submit(|error| self.thread.progress(error.to_string())).await
    }

    async fn answer(&self, id: &str) -> Result<Report, RemoteError> {
        self.request.answer(id, |error| self.thread.progress(error.to_string())).await
    }
}

impl Drop for Flight<'_> {
    fn drop(&mut self) {
        let id = match std::mem::replace(&mut self.stage, Stage::Over) {
            Stage::Over => return,
            Stage::Sent => None,
            Stage::Accepted(id) => Some(id),
        };
        if self.thread.runs_again() {
            return;
        }
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let (request, (listener, subject)) = (self.request.clone(), self.subject.clone());
        runtime.spawn(async move {
            let why = match timeout(CANCEL, request.cancel(id)).await {
                Ok(Ok(())) => return,
                Ok(Err(error)) => error.to_string(),
                Err(_) => format!("there was no answer for {CANCEL:?}"),
            };
            let (Subject { thread, id, .. }, trace) = (subject, subject.trace());
            tracing::warn!(%listener, %thread, message_id = %id, trace, "a message was cancelled, and its conversation in another organism was not: its deadline ends it: {why}");
        });
    }
}

/// What is charged for a request: no more than it was allowed, and all of that if nobody says what was used.
fn within(used: Option<Amounts>, bound: &Budget) -> Amounts {
    let Some(used) = used else { return (*bound).into() };
    Amounts {
        tokens: bound.tokens.map_or(used.tokens, |most| used.tokens.min(most)),
        cost: bound.cost.map_or(used.cost, |most| used.cost.min(most)),
        calls: bound.calls.map_or(used.calls, |most| used.calls.min(most)),
        threads: bound.threads.map_or(used.threads, |most| used.threads.min(most)),
    }
}

fn read<T: serde::de::DeserializeOwned>(call: &Call<'_>, body: &[u8]) -> Result<T, RemoteError> {
    serde_json::from_slice(body).map_err(|error| unusable(call, &readable(&error.to_string())))
}

fn unusable(call: &Call<'_>, problem: &str) -> RemoteError {
    RemoteError::Unusable { what: call.name(), problem: problem.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_is_charged_than_was_allowed() {
        let bound: Budget = "tokens=100 calls=3".parse().unwrap();
        let used = |tokens, calls, threads| Amounts { tokens, calls, threads, ..Amounts::default() };
        assert_eq!(within(Some(used(7, 2, 5)), &bound), used(7, 2, 5));
        assert_eq!(within(Some(used(700, 9, 5)), &bound), used(100, 3, 5));
        assert_eq!(within(None, &bound), used(100, 3, 0));
    }
}
