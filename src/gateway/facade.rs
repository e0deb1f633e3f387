//! The interface for façades over the gateway: routes of their own, which judge, store and deliver as the gateway's do.
//!
//! A façade hands its calls over with [`Gateway::with_calls`]; its handlers see the [`AppState`], whose operations are
//! here. A façade can't admit a caller, nor reach a mailbox otherwise than the calls of the gateway do. Each call but
//! those with [`Call::token_optional`] has a caller with a token, before its handler runs.
//!
//! `systole::molecule` is such a façade, of this module's names alone.
//!
//! ```
//! use std::sync::Arc;
//!
//! use systole::gateway::Gateway;
//! use systole::gateway::facade::axum::extract::State;
//! use systole::gateway::facade::axum::http::StatusCode;
//! use systole::gateway::facade::axum::response::Response;
//! use systole::gateway::facade::{AppState, Call, Caller, Problem, document};
//! # use systole::settings::GatewaySettings;
//!
//! async fn who_am_i(State(app): State<Arc<AppState>>, caller: Caller) -> Result<Response, Problem> {
//!     let name = &caller.who().name;
//!     match app.is_remote(name) {
//!         true => Ok(document(&name.to_string())),
//!         false => Err(Problem::forbidden(format!("{name} is no agent elsewhere"))),
//!     }
//! }
//!
//! # let settings = GatewaySettings::default().listen(([127, 0, 0, 1], 0).into());
//! let gateway = Gateway::new(&settings, [])?;
//! let call = Call::get("/agent", who_am_i)
//!     .about("agents", "The name of the agent that asks.")
//!     .answers::<String>(StatusCode::OK, "Its name.")
//!     .refuses(&[403]);
//! let gateway = gateway.with_calls(vec![call], ());
//! # drop(gateway);
//! # Ok::<(), systole::gateway::GatewayError>(())
//! ```

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

pub use axum;
use axum::Extension;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::response::Response;
use bytes::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::http;
pub use super::http::{AppState, Asked, Authenticated, Call, Caller, schema};
pub use super::problem::Problem;
pub use super::push::PushFormat;
use super::service::ActError;
use super::{Gateway, Principal};
pub use crate::journal::{History, Of, SentAnswer, StoredMail};
use crate::settings::Mode;
pub use systole_core::journal::MailState;
use systole_core::mailbox::{MailboxInput, Settlement};
#[cfg(feature = "mcp")]
use systole_core::question::Answerer;
#[cfg(feature = "mcp")]
use systole_core::vocab::Traceparent;
use systole_core::vocab::{MessageId, Name, Time};
use systole_xml::ladder::Canonical;
#[cfg(feature = "mcp")]
use systole_xml::schema::PayloadSchema;

#[cfg(feature = "mcp")]
use crate::journal::Sent;

impl Gateway {
    /// Serves these calls, too, with an extension of their own.
    pub fn with_calls<T: Clone + Send + Sync + 'static>(mut self, calls: Vec<Call>, extension: T) -> Self {
        let (routes, description) = http::split(calls);
        self.description.append(description);
        Self { routes: self.routes.merge(routes.layer(Extension(extension))), ..self }
    }

    /// Answers 404 with `deleted: true` at these paths where a token is unknown: agents that ask there stop at that
    /// answer.
    pub fn with_removal_notice(self, is_checked: fn(&str) -> bool) -> Self {
        Self { removal_notice: is_checked, ..self }
    }

    /// Sets the format of pushes to the listeners that are declared with a façade's format.
    pub fn with_format(self, format: Arc<dyn PushFormat>) -> Self {
        Self { format: Some(format), ..self }
    }

    /// Puts the answers to these clients also into mailboxes, as messages that expect no answer; the map has the
    /// mailbox of each client.
    pub fn with_answer_mailboxes(mut self, mailboxes: HashMap<Name, Name>) -> Self {
        self.answer_mailboxes.extend(mailboxes);
        self
    }
}

/// Parses a JSON document, each key of an object once.
///
/// # Errors
/// The mistake and its place.
pub fn parse_json<T: DeserializeOwned>(bytes: &[u8]) -> serde_json::Result<T> {
    http::parse_json(bytes)
}

/// A JSON document.
pub fn document(value: &impl Serialize) -> Response {
    http::document(StatusCode::OK, value)
}

/// A refusal in the shape of another protocol, which the client gets as it is; operators see it as any other, with its reason.
#[cfg(feature = "mcp")]
pub fn refusal(mut response: Response, reason: &str) -> Response {
    let rejection = super::problem::Rejection { code: "mcp", detail: reason.into() };
    response.extensions_mut().insert(http::ForeignError);
    response.extensions_mut().insert(rejection);
    response
}

/// A JSON document with messages in it, written beside the calls.
pub async fn long_document<T: Serialize>(
    app: &AppState,
    value: impl FnOnce() -> T + Send + 'static,
) -> Result<Response, Problem> {
    http::long_document(app, value).await
}

impl Caller {
    /// The principal that calls.
    pub fn who(&self) -> &Principal {
        &self.0
    }
}

impl AppState {
    /// The time of the organism.
    pub fn now(&self) -> Time {
        self.mailboxes.now()
    }

    /// Checks whether a listener fetches its messages; otherwise they are pushed, or it is not remote.
    pub fn is_pulled(&self, name: &Name) -> bool {
        matches!(self.mailboxes.mode(name), Some(Mode::Poll | Mode::Stream))
    }

    /// Checks whether an agent is paused.
    pub fn is_paused(&self, name: &Name) -> bool {
        self.mailboxes.look(|machine| machine.is_paused(name))
    }

    /// Checks whether a listener of the organism is remote.
    pub fn is_remote(&self, name: &Name) -> bool {
        self.mailboxes.mode(name).is_some()
    }

    /// Reads the body of a request, at most as long as a message may be.
    pub async fn body(&self, request: Request) -> Result<Bytes, Problem> {
        http::body(self, request).await
    }

    /// Registers an agent, with the mode in which it wants its messages and its URL, if it names them. Returns the mode in
    /// which it gets its messages.
    pub async fn sign_on(&self, name: Name, mode: Option<&str>, url: Option<&str>) -> Result<String, Problem> {
        let declared = self.mailboxes.mode(&name).ok_or_else(|| Problem::not_found("no such remote listener"))?;
        let usual = if self.is_pulled(&name) { "poll" } else { "push" };
        let registration = http::place(declared, mode.unwrap_or(usual), url, self.now())?;
        let mode = registration.mode.to_string();
        self.mailboxes.act(MailboxInput::Register { name, registration })?.durable().await?;
        Ok(mode)
    }

    /// Reads a page of a mailbox; true if more messages follow it.
    pub async fn history(&self, of: History) -> Result<(Vec<StoredMail>, bool), Problem> {
        Ok(self.query.history(of).await?)
    }

    /// The addressee of a listener's answers that name none, once that is fixed: a person, or none for good.
    pub fn addressee(&self, mailbox: &Name) -> Option<Option<Name>> {
        self.mailboxes.look(|machine| machine.addressee(mailbox).cloned())
    }

    /// Notes, durably, that a message of a person is shown to its listener as the one that answers without an addressee
    /// are for. Returns whether they can be for it alone.
    pub async fn show(&self, mailbox: &Name, id: MessageId, person: Name) -> Result<bool, Problem> {
        let acted = self.mailboxes.act(MailboxInput::Show { mailbox: mailbox.clone(), id, person });
        let mut acted = match acted {
            // It has ended.
            Err(ActError::Refused(_)) => return Ok(false),
            acted => acted?,
        };
        acted.durable().await?;
        Ok(acted.change.shown)
    }

    /// A message of a mailbox.
    pub async fn mail(&self, mailbox: &Name, id: MessageId) -> Result<Option<StoredMail>, Problem> {
        Ok(self.query.mail(id).await?.filter(|mail| mail.record.mailbox == *mailbox))
    }

    /// The one of these messages that is in a mailbox, ended or not.
    pub async fn mail_among(&self, mailbox: &Name, ids: Vec<MessageId>) -> Result<Option<MessageId>, Problem> {
        match ids.is_empty() {
            true => Ok(None),
            false => Ok(self.query.mail_among(mailbox.clone(), ids).await?),
        }
    }

    /// Ends messages, durably, that their listener has read and leaves without an answer.
    pub async fn skip(&self, mailbox: Name, ids: Vec<MessageId>) -> Result<(), Problem> {
        Ok(self.mailboxes.act(MailboxInput::Skipped { mailbox, ids })?.durable().await?)
    }

    /// Replies to a message of a mailbox, durably.
    pub async fn reply(&self, id: MessageId, payload: Bytes) -> Result<(), Problem> {
        http::conclude(self, id, Settlement::Reply(payload)).await
    }

    /// The first answer to a client's message, if it comes within `wait`, with its id as a message of a mailbox.
    pub async fn answer(&self, id: MessageId, wait: Duration) -> Result<Option<(MessageId, SentAnswer)>, Problem> {
        let first = http::answers_of(self, id, tokio::time::sleep(wait)).await?.0.into_iter().next();
        Ok(first.map(|answer| (self.submissions.answer_mail_id(id, answer.number), answer)))
    }

    /// Judges and submits an envelope of a client, durably, once for each key.
    pub async fn send(
        self: &Arc<Self>,
        from: Name,
        envelope: Bytes,
        key: Option<String>,
    ) -> Result<MessageId, Problem> {
        if !self.submissions.knows(&from) {
            return Err(Problem::forbidden(format!("'{from}' sends nothing through the gateway")));
        }
        Ok(http::take(self, from, envelope, key).await?.id)
    }
}

#[cfg(feature = "mcp")]
impl AppState {
    /// Derives a secret of a façade, which restarts keep, from that of the journal.
    pub fn secret(&self, purpose: &'static str) -> [u8; 32] {
        blake3::derive_key(purpose, self.query.secret())
    }

    /// Checks the `Idempotency-Key` of a request, if there is one.
    ///
    /// # Errors
    /// [`Problem`] that says what a key may be.
    pub fn check_idempotency_key(&self, headers: &axum::http::HeaderMap) -> Result<(), Problem> {
        http::idempotency_key(headers).map(drop)
    }

    /// The address that the gateway listens at, if it does, and is to.
    pub fn listens_at(&self) -> std::net::SocketAddr {
        self.settings.listen
    }

    /// Checks whether a client sends messages through the gateway.
    pub fn serves(&self, client: &Name) -> bool {
        self.submissions.knows(client)
    }

    /// Judges and submits a payload of a client to a listener, durably, once for each key. The payload is the JSON object
    /// behind its name.
    ///
    /// # Errors
    /// [`Problem`]; of a payload that breaks its schema with rule, pointer and example.
    pub async fn ask(
        self: &Arc<Self>,
        from: &Name,
        to: &Name,
        object: (&PayloadSchema, Bytes),
        (key, traceparent): (Option<String>, Option<&str>),
    ) -> Result<Asked, Problem> {
        let caller = traceparent.and_then(Traceparent::parse);
        http::ask_object(self, from, to, object, (key, caller)).await
    }

    /// A message that a client has sent, and its answers so far.
    ///
    /// # Errors
    /// [`Problem`] if the journal can't be read.
    pub async fn sent(&self, from: &Name, id: MessageId) -> Result<Option<Sent>, Problem> {
        let most = self.organism.blueprint().limits.xml.message_bytes;
        Ok(self.query.submission(id, 0, most).await?.filter(|sent| sent.submission.client == *from))
    }

    /// The answers to a client's message, as [`Asked::answers`].
    ///
    /// # Errors
    /// [`Problem`] if the journal can't be read.
    pub async fn answers(
        &self,
        id: MessageId,
        over: impl Future<Output = ()>,
    ) -> Result<(Vec<SentAnswer>, bool), Problem> {
        http::answers_of(self, id, over).await
    }

    /// The XML of a payload with which a party answers a question as JSON.
    ///
    /// # Errors
    /// [`Problem`] with rule, pointer and example.
    pub async fn answer_as_xml(&self, by: &Answerer, question: &str, json: &[u8]) -> Result<Bytes, Problem> {
        http::answer_as_xml(&self.organism.questions(by.clone()), question, json).await
    }

    /// The texts of the notices that wait for a client, in front of a response of a session, between their marks. Nothing if
    /// there are none, or the client has too many sessions.
    pub async fn notices(&self, of: &Name, session: &str, arguments: Bytes) -> Vec<String> {
        let Some(clock) = self.mailboxes.clock() else { return Vec::new() };
        let Some(id) = self.sessions.enter(of, session, clock.now()).await else { return Vec::new() };
        let read = self.sessions.read((of, session), id, arguments, clock).await;
        let blocks = read.map(|read| super::notices::splice(&read, Vec::new())).unwrap_or_default();
        blocks.into_iter().map(|super::Block::Text { text }| text).collect()
    }

    /// Confirms the notices of a session whose tokens stand in a text; returns their number.
    ///
    /// # Errors
    /// [`Problem`] if the confirmation can't be kept.
    pub async fn confirm_notices(&self, of: &Name, session: &str, text: &str) -> Result<usize, Problem> {
        let Some(id) = self.sessions.touch(of, session, self.now()) else { return Ok(0) };
        let confirmed = self.sessions.confirm((of, session), id, super::notices::tokens(text)).await?;
        Ok(confirmed.iter().map(|(_, rows)| rows.len()).sum())
    }

    /// Checks whether notices may wait for a client: a mailbox is its own.
    pub fn has_notices(&self, of: &Name) -> bool {
        self.settings.mailboxes.contains_key(of)
    }
}

/// The payload of an envelope of the pump; none of other bytes.
pub fn payload(envelope: &Bytes) -> Option<Canonical> {
    http::payload(envelope)
}
