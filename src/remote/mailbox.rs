//! The mailbox of a remote listener, and the calls of its agent: those of `docs/gateway.md`.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hyper::header::{HeaderName, HeaderValue};
use serde_json::{Value, json};
use systole_core::vocab::{MessageId, Name};

use super::BoxFuture;
use super::error::RemoteError;
use super::inbound::Item;
use super::link::{Call, CallOptions, Link};
use super::presence::{AgentState, Presence};
use crate::outbound::http::Response;

/// Longest time for which the gateway waits for a message: 60 s.
pub const LONGEST_WAIT: Duration = Duration::from_secs(60);

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// The mailbox of a remote listener at its gateway. Clones share it.
///
/// Each call counts once for a message: a repeated call changes nothing, so each may be repeated after a failure. A
/// call that gets no answer is repeated by the policy of its [`CallOptions`].
#[derive(Debug, Clone)]
pub struct Mailbox {
    link: Arc<Link>,
    name: Name,
}

/// A message that this reader has leased.
#[derive(Debug)]
pub(super) struct Leased {
    pub(super) item: Item,
    pub(super) receipt: String,
}

/// Messages, oldest first.
#[derive(Debug)]
pub(super) struct Page {
    pub(super) items: Vec<Value>,
    /// The cursor behind the last of them.
    pub(super) next: Option<String>,
}

impl Mailbox {
    /// Makes the mailbox of that listener at the gateway of that URL; nothing is sent yet.
    ///
    /// # Errors
    /// [`RemoteError`] if the URL, the token or the certificates can't be used.
    pub fn new(url: &str, name: Name, token: &str, options: CallOptions) -> Result<Self, RemoteError> {
        Ok(Self { link: Link::new(url, token, options)?, name })
    }

    /// The name of the listener.
    pub fn name(&self) -> &Name {
        &self.name
    }

    pub(super) fn options(&self) -> &CallOptions {
        &self.link.options
    }

    /// Registers the agent; `mode` is `poll` or `stream`, for pushes call [`register_push`](Self::register_push).
    ///
    /// # Errors
    /// [`RemoteError`]: 401 for an unknown token, 404 if the organism declares no such listener, 409 if the token
    /// belongs to another principal.
    pub async fn register(&self, mode: &str) -> Result<(), RemoteError> {
        let body = json!({ "name": self.name.as_str(), "mode": mode });
        self.link.ask(&Call::json(&["v1", "listeners"], &body)).await.map(drop)
    }

    /// Registers the agent for pushes to the URL of its [`PushDelivery`](super::PushDelivery), as its gateway reaches
    /// it. Messages that were not delivered yet go there, too.
    ///
    /// # Errors
    /// As [`register`](Self::register); 400 if the listener isn't declared with `mode: push`, or the URL is not
    /// allowed.
    pub async fn register_push(&self, url: &str) -> Result<(), RemoteError> {
        let body = json!({ "name": self.name.as_str(), "mode": "push", "url": url });
        self.link.ask(&Call::json(&["v1", "listeners"], &body)).await.map(drop)
    }

    /// Answers a message: `payloads` is one or several, dirty or not. The pump judges them and takes them to the
    /// sender: a person or a client is notified, a peer finds the reply in its own mailbox.
    ///
    /// # Errors
    /// [`RemoteError`]: 409 if it has another answer or its caller no longer waits, 413, 422 if it is blank.
    pub async fn reply(&self, id: MessageId, payloads: impl Into<Bytes>) -> Result<(), RemoteError> {
        let id = id.to_string();
        self.link.ask(&Call::post(&["v1", "messages", &id, "reply"], "application/xml", payloads)).await.map(drop)
    }

    /// Fails a message: its caller gets an `agent-error`, and it is a dead letter.
    ///
    /// # Errors
    /// As [`reply`](Self::reply).
    pub async fn fail(&self, id: MessageId, why: &str) -> Result<(), RemoteError> {
        let id = id.to_string();
        let body = json!({ "message": shortened(why) });
        self.link.ask(&Call::json(&["v1", "messages", &id, "fail"], &body)).await.map(drop)
    }

    /// Shows what the agent has written so far of the reply to a message: adds text to its [draft](crate::drafts). With `anew`
    /// the text before is given up. A text is at most 60 KiB, in JSON.
    ///
    /// # Errors
    /// [`RemoteError`]: 409 if no caller waits for the reply any more. The reply counts all the same.
    pub async fn draft(&self, id: MessageId, text: &str, anew: bool) -> Result<(), RemoteError> {
        let id = id.to_string();
        let body = json!({ "text": text, "anew": anew });
        self.link.ask(&Call::json(&["v1", "messages", &id, "draft"], &body)).await.map(drop)
    }

    /// The messages behind a cursor, oldest first; waits for one. Those up to the cursor, whose outcomes are reported, are
    /// acknowledged.
    pub(super) async fn page(&self, handled: Option<&str>, limit: u32, wait: Duration) -> Result<Page, RemoteError> {
        let path = ["v1", "mailboxes", self.name.as_str(), "messages"];
        let call = Call::get(&path).with("ack", handled).with("limit", Some(limit)).with("wait", Some(wait.as_secs()));
        let call = call.waits(wait);
        let answer = self.link.ask_json(&call).await?;
        let next = answer.get("next").and_then(Value::as_str).map(str::to_owned);
        Ok(Page { items: array(&call, answer)?, next })
    }

    /// Leases the oldest free message; waits for one.
    pub(super) async fn lease(&self, visibility: Duration, wait: Duration) -> Result<Option<Leased>, RemoteError> {
        let path = ["v1", "mailboxes", self.name.as_str(), "lease"];
        let body = json!({ "max": 1, "wait": wait.as_secs(), "visibility": visibility.as_secs().max(1) });
        let call = Call::json(&path, &body).waits(wait);
        let items = array(&call, self.link.ask_json(&call).await?)?;
        let Some(item) = items.first() else { return Ok(None) };
        let receipt = item.get("receipt").and_then(Value::as_str).map(str::to_owned);
        let no_receipt = || RemoteError::Unusable { what: call.name(), problem: "a lease has no receipt".to_owned() };
        Ok(Some(Leased { item: Item::read(item), receipt: receipt.ok_or_else(no_receipt)? }))
    }

    /// Extends a lease.
    pub(super) async fn extend(&self, id: MessageId, receipt: &str, by: Duration) -> Result<(), RemoteError> {
        self.handle(id, "extend", &json!({ "receipt": receipt, "visibility": by.as_secs().max(1) })).await
    }

    /// Acknowledges a leased message, without a reply.
    pub(super) async fn ack(&self, id: MessageId, receipt: &str) -> Result<(), RemoteError> {
        self.handle(id, "ack", &json!({ "receipt": receipt })).await
    }

    /// Holds a leased message, to answer it later: no other reader gets it.
    pub(super) async fn hold(&self, id: MessageId, receipt: &str) -> Result<(), RemoteError> {
        self.handle(id, "hold", &json!({ "receipt": receipt })).await
    }

    /// Ends a message that is not leased, without a reply.
    pub(super) async fn done(&self, id: MessageId) -> Result<(), RemoteError> {
        self.handle(id, "ack", &json!({})).await
    }

    /// Holds a message that is not leased, to answer it later: until then no reader skips it.
    pub(super) async fn keep(&self, id: MessageId) -> Result<(), RemoteError> {
        self.handle(id, "hold", &json!({})).await
    }

    /// Gives a leased message back: it can be leased again after a delay.
    pub(super) async fn nack(
        &self,
        id: MessageId,
        receipt: &str,
        why: &str,
        delay: Duration,
    ) -> Result<(), RemoteError> {
        let body = json!({ "receipt": receipt, "error": shortened(why), "delay": delay.as_secs() });
        self.handle(id, "nack", &body).await
    }

    async fn handle(&self, id: MessageId, verb: &str, body: &Value) -> Result<(), RemoteError> {
        let id = id.to_string();
        let path = ["v1", "mailboxes", self.name.as_str(), "messages", &id, verb];
        self.link.ask(&Call::json(&path, body)).await.map(drop)
    }

    /// Opens the stream of the messages behind a cursor.
    pub(super) async fn stream(&self, after: Option<&str>) -> Result<Response, RemoteError> {
        let path = ["v1", "mailboxes", self.name.as_str(), "stream"];
        let last = after.and_then(|place| HeaderValue::from_str(place).ok());
        self.link.open(&Call::get(&path).header(LAST_EVENT_ID, last)).await
    }
}

impl Presence for Mailbox {
    fn heartbeat(&self) -> BoxFuture<'_, Result<AgentState, RemoteError>> {
        Box::pin(async move {
            let path = ["v1", "listeners", self.name.as_str(), "heartbeat"];
            let call = Call::json(&path, &json!({}));
            let answer = match self.link.ask_json(&call).await {
                // The token is unknown, or the organism no longer declares the listener.
                Err(error) if matches!(error.status(), Some(401 | 404)) => return Ok(AgentState::Removed),
                answer => answer?,
            };
            let state = answer.get("state").and_then(Value::as_str).unwrap_or_default();
            let strange = || RemoteError::Unusable { what: call.name(), problem: format!("'{state}' is no state") };
            AgentState::parse(state).ok_or_else(strange)
        })
    }
}

fn array(call: &Call<'_>, mut answer: Value) -> Result<Vec<Value>, RemoteError> {
    match answer.get_mut("items").map(Value::take) {
        Some(Value::Array(items)) => Ok(items),
        _ => Err(RemoteError::Unusable { what: call.name(), problem: "it has no 'items'".to_owned() }),
    }
}

/// Shortens the text of a failure to at most 4 KiB.
fn shortened(why: &str) -> &str {
    const MOST: usize = 4096;
    let end = (0..=MOST.min(why.len())).rev().find(|&at| why.is_char_boundary(at)).unwrap_or(0);
    &why[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_gateways_are_talked_to() {
        let new = |url: &str, token: &str| Mailbox::new(url, Name::parse("a").unwrap(), token, CallOptions::default());
        new("http://127.0.0.1:8420", "t").unwrap();
        new("https://example.org/systole/", " t\n").unwrap();
        for url in ["", "x", "ftp://x", "http://a@x", "http://:b@x", "http://x?a", "http://x#a", "file:///etc/passwd"] {
            assert!(matches!(new(url, "t"), Err(RemoteError::Url { .. })), "{url}");
        }
        for token in ["", " ", "a\nb", "\u{7f}"] {
            assert!(matches!(new("http://x", token), Err(RemoteError::Token)), "{token:?}");
        }
        assert!(!format!("{:?}", new("http://x", "hunter2").unwrap()).contains("hunter2"));
    }

    #[test]
    fn what_is_said_of_a_failure_is_cut_between_characters() {
        assert_eq!(shortened("short"), "short");
        assert_eq!(shortened(&"é".repeat(4000)).len(), 4096);
        assert_eq!(shortened(&format!("a{}", "é".repeat(4000))).len(), 4095);
    }
}
