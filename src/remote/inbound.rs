//! A message for an agent: an item of a mailbox, or a pushed envelope.

use bytes::Bytes;
use serde_json::Value;
use systole_core::vocab::{MessageId, QName, ThreadId, Time, Traceparent, XmlLimits};
use systole_xml::ladder::{Claim, Envelope, strict};

use super::source::Source;

/// A message for this agent, with the parts of its envelope. The organism of the gateway has judged them.
#[derive(Debug, Clone)]
pub struct Inbound {
    /// The id of the message: the same in each delivery, so it is the key by which to do a thing once.
    pub id: MessageId,
    /// The thread of the message.
    pub thread: ThreadId,
    /// The sender, as the pump stamped it.
    pub from: String,
    /// The kind and the id of the sender.
    pub source: Source,
    /// The name of the payload's root.
    pub payload_type: QName,
    /// The payload: canonical XML.
    pub payload: String,
    /// The whole envelope, as it came.
    pub envelope: String,
    /// The message that this one answers.
    pub in_reply_to: Option<MessageId>,
    /// The time past which the caller no longer waits.
    pub deadline: Option<Time>,
    /// The place in a trace that requests on behalf of the message name as their caller.
    pub traceparent: Option<Traceparent>,
    /// Number of leases of the message, this one included; 0 where it is not leased.
    pub deliveries: u32,
}

/// Problem of an item or an envelope.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BrokenInbound {
    /// The item has no id, or an invalid one.
    #[error("the message has no id")]
    NoId,
    /// The item has no text.
    #[error("the message has no text")]
    NoText,
    /// The text is no envelope.
    #[error("the message is no envelope: {0}")]
    Envelope(String),
}

systole_core::vocab::debug_is_display!(BrokenInbound);

impl Inbound {
    /// The key by which to do a thing once, however often the message comes.
    pub fn idempotency_key(&self) -> String {
        self.id.to_string()
    }

    /// Parses an envelope; `id` counts where the envelope has none.
    ///
    /// # Errors
    /// [`BrokenInbound`] if the text is no envelope, or has no id.
    pub fn read(envelope: &str, id: Option<MessageId>, limits: &XmlLimits) -> Result<Self, BrokenInbound> {
        if envelope.trim().is_empty() {
            return Err(BrokenInbound::NoText);
        }
        let broken = |error: &dyn std::fmt::Display| BrokenInbound::Envelope(error.to_string());
        let bytes = Bytes::copy_from_slice(envelope.as_bytes());
        let canonical = strict::canonicalize(&bytes, limits).map_err(|error| broken(&error))?;
        let (claims, payload) = Envelope::open(canonical).map_err(|error| broken(&error))?.into_parts();
        let id = parsed(claims.id.as_ref()).or(id).ok_or(BrokenInbound::NoId)?;
        let from = claims.from.to_string();
        Ok(Self {
            id,
            thread: parsed(claims.thread.as_ref()).unwrap_or_else(|| ThreadId::from_uuid(*id.as_uuid())),
            source: Source::normalize(None, Some(&from)),
            from,
            payload_type: payload.root().clone(),
            payload: payload.as_str().to_owned(),
            envelope: envelope.to_owned(),
            in_reply_to: parsed(claims.in_reply_to.as_ref()),
            deadline: claims.deadline,
            traceparent: claims.traceparent.as_deref().and_then(Traceparent::parse),
            deliveries: 0,
        })
    }
}

/// An item of a mailbox, as far as it can be read.
#[derive(Debug)]
pub(super) struct Item {
    pub(super) id: Option<MessageId>,
    /// The cursor behind the item.
    pub(super) cursor: Option<String>,
    /// True if the item waits for an answer, or doesn't tell.
    pub(super) waits: bool,
    pub(super) message: Result<Inbound, BrokenInbound>,
}

impl Item {
    /// Parses an item. An invalid one is an error of its message alone.
    pub(super) fn read(item: &Value) -> Self {
        let text = |key: &str| item.get(key).and_then(Value::as_str);
        let id: Option<MessageId> = text("id").and_then(|id| id.parse().ok());
        let message = match (id, text("envelope")) {
            (None, _) => Err(BrokenInbound::NoId),
            (Some(_), None) => Err(BrokenInbound::NoText),
            // The gateway has judged it by its own limits.
            (Some(id), Some(envelope)) => {
                Inbound::read(envelope, Some(id), &XmlLimits::UNLIMITED).map(|mut message| {
                    message.id = id;
                    let deliveries = item.get("deliveries").and_then(Value::as_u64).unwrap_or_default();
                    message.deliveries = u32::try_from(deliveries).unwrap_or(u32::MAX);
                    message
                })
            }
        };
        let waits = text("state").is_none_or(|state| state == "waiting");
        Self { id, cursor: text("cursor").map(str::to_owned), waits, message }
    }
}

fn parsed<T: std::str::FromStr>(claim: Option<&Claim>) -> Option<T> {
    claim?.to_string().parse().ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::source::SourceKind;
    use super::*;

    const ID: &str = "9f3a0000-0000-4000-8000-000000000001";

    fn envelope(from: &str, payload: &str) -> String {
        format!(
            "<message xmlns=\"https://xml-pipeline.org/ns/envelope/v1\"><meta><from>{from}</from>\
             <id xmlns=\"urn:systole:meta:v1\">{ID}</id></meta>{payload}</message>"
        )
    }

    #[test]
    fn an_item_is_taken_apart() {
        let item = Item::read(&json!({
            "id": ID, "cursor": "c", "state": "waiting", "deliveries": 2, "envelope": envelope("ada", "<a xmlns='urn:t'/>"),
        }));
        let message = item.message.unwrap();
        assert_eq!((message.id.to_string(), message.idempotency_key()), (ID.to_owned(), ID.to_owned()));
        assert_eq!((&*message.payload, &*message.from), ("<a xmlns=\"urn:t\"></a>", "ada"));
        assert_eq!((message.source.kind, message.deliveries), (SourceKind::Peer, 2));
        assert_eq!((item.cursor.as_deref(), item.waits), (Some("c"), true));
    }

    #[test]
    fn what_is_wrong_with_an_item_is_said_of_that_item() {
        let broken = |item: Value| Item::read(&item).message.unwrap_err();
        assert_eq!(broken(json!({ "envelope": "<a/>" })), BrokenInbound::NoId);
        assert_eq!(broken(json!({ "id": "seven", "envelope": "<a/>" })), BrokenInbound::NoId);
        assert_eq!(broken(json!({ "id": 7 })), BrokenInbound::NoId);
        assert_eq!(broken(json!(7)), BrokenInbound::NoId);
        assert_eq!(broken(json!({ "id": ID })), BrokenInbound::NoText);
        assert_eq!(broken(json!({ "id": ID, "envelope": " " })), BrokenInbound::NoText);
        assert_eq!(broken(json!({ "id": ID, "envelope": 7 })), BrokenInbound::NoText);
        for bad in ["<a/>", "hello", "<message/>"] {
            let error = broken(json!({ "id": ID, "envelope": bad }));
            assert!(matches!(error, BrokenInbound::Envelope(_)), "{bad}: {error}");
        }
        assert!(!Item::read(&json!({ "state": "replied" })).waits);
    }

    #[test]
    fn a_sender_without_a_name_is_unknown() {
        let blank = Inbound::read(&envelope(" ", "<a/>"), None, &XmlLimits::default());
        assert_eq!(blank.unwrap().source.kind, SourceKind::Unknown);
    }
}
