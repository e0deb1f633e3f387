//! Meaning of a peer's answer, by its status, its media type and its bytes alone.

use bytes::Bytes;
use serde_json::Value;

use super::failure::{AttemptFailure, FailureKind};
use crate::terminal::readable;

/// The answer of a peer that accepted a delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DeliveryAnswer {
    /// State of the delivery at the peer: answered, or only queued.
    pub(crate) taken: Taken,
    /// The status of HTTP, 200 to 299.
    pub(crate) status: u16,
    /// The media type of the body, without parameters, in lower case.
    pub(crate) content_type: Option<String>,
    /// The body, at most 1 MiB unless the limits differ.
    pub(crate) body: Bytes,
}

/// Effect of a delivery on the peer that accepted it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Taken {
    /// The peer has handled it; the body is its result.
    Answered,
    /// The peer will handle it: it answered 202, or `{"status":"queued"}`.
    Queued,
}

/// Meaning of an answer for the message that it answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Said {
    /// The reply.
    Reply(Bytes),
    /// The message is handled, and there is no reply.
    Nothing,
    /// The peer has the message, and answers by itself later.
    Later,
}

/// Checks for JSON among media types: RFC 8259, section 11, and RFC 6839, section 3.1.
fn is_json(content_type: Option<&str>) -> bool {
    content_type.is_some_and(|media| media == "application/json" || media.ends_with("+json"))
}

/// Parses the media type of a `Content-Type`, without parameters, in lower case.
pub(crate) fn media_type(header: &str) -> String {
    header.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

impl DeliveryAnswer {
    /// Parses an answer whose status is 200 to 299. Only JSON is parsed further: any other body is left to the caller.
    ///
    /// # Errors
    /// [`FailureKind::Unparsable`] if its type is JSON and its body is not, [`FailureKind::PeerError`] if it has an
    /// `error`, or a `status` of `error` or `failed`.
    pub(crate) fn read(status: u16, content_type: Option<String>, body: Bytes) -> Result<Self, AttemptFailure> {
        let said = if is_json(content_type.as_deref()) && !body.is_empty() { json(&body)? } else { Value::Null };
        let state = said.get("status").and_then(Value::as_str).unwrap_or_default();
        let error = said.get("error").filter(|error| !error.is_null());
        if error.is_some() || matches!(state, "error" | "failed") {
            return Err(AttemptFailure::new(FailureKind::PeerError, message(error, &said)));
        }
        let taken = if status == 202 || state == "queued" { Taken::Queued } else { Taken::Answered };
        Ok(Self { taken, status, content_type, body })
    }

    /// Meaning of the answer where a message was sent to a listener: pushed by a gateway, or forwarded by an agent.
    pub(crate) fn said(self) -> Said {
        match self.taken {
            Taken::Queued => Said::Later,
            Taken::Answered if self.body.iter().all(u8::is_ascii_whitespace) => Said::Nothing,
            Taken::Answered => Said::Reply(self.body),
        }
    }
}

fn json(body: &[u8]) -> Result<Value, AttemptFailure> {
    serde_json::from_slice(body).map_err(|error| {
        AttemptFailure::new(FailureKind::Unparsable, format!("the answer says that it is JSON, and is not: {error}"))
    })
}

fn message(error: Option<&Value>, said: &Value) -> String {
    let text = |value: &Value| match value {
        Value::String(text) => Some(text.clone()),
        _ => value.get("message").and_then(Value::as_str).map(ToOwned::to_owned),
    };
    error.and_then(text).or_else(|| text(said)).unwrap_or_default()
}

/// Describes a refusal: its status, and the beginning of its body if that is text.
pub(crate) fn refusal(status: u16, reason: Option<&str>, body: &[u8]) -> String {
    let reason = reason.map(|reason| format!(" {reason}")).unwrap_or_default();
    let said = std::str::from_utf8(body).map(readable).unwrap_or_default();
    let said = if said.is_empty() { said } else { format!(": {said}") };
    format!("the peer answered {status}{reason}{said}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(status: u16, media: &str, body: &'static str) -> Result<Taken, AttemptFailure> {
        DeliveryAnswer::read(status, Some(media.to_owned()), Bytes::from_static(body.as_bytes()))
            .map(|answer| answer.taken)
    }

    #[test]
    fn queued_is_a_success_of_its_own_kind() {
        assert_eq!(read(200, "application/xml", "<a/>"), Ok(Taken::Answered));
        assert_eq!(read(204, "application/json", ""), Ok(Taken::Answered));
        assert_eq!(read(202, "text/plain", "later"), Ok(Taken::Queued));
        assert_eq!(read(200, "application/json", r#"{"status":"queued"}"#), Ok(Taken::Queued));
        assert_eq!(read(200, "application/vnd.a+json", r#"{"status":"queued"}"#), Ok(Taken::Queued));
        assert_eq!(read(200, "text/plain", r#"{"status":"queued"}"#), Ok(Taken::Answered), "that is no JSON");
    }

    #[test]
    fn an_answer_is_a_reply_or_nothing_or_comes_later() {
        let said = |status, media: &str, body: &'static str| {
            DeliveryAnswer::read(status, Some(media.to_owned()), body.into()).unwrap().said()
        };
        assert_eq!(said(200, "application/xml", "<a/>"), Said::Reply("<a/>".into()));
        assert_eq!(said(200, "application/xml", " \r\n"), Said::Nothing);
        assert_eq!(said(204, "text/plain", ""), Said::Nothing);
        assert_eq!(said(202, "text/plain", ""), Said::Later);
        assert_eq!(said(202, "application/xml", "<a/>"), Said::Later, "what comes later is the answer");
        assert_eq!(said(200, "application/json", r#"{"status":"queued"}"#), Said::Later);
    }

    #[test]
    fn an_error_of_the_peers_runtime_is_told() {
        let told = |body| read(200, "application/json", body).unwrap_err();
        assert_eq!(told(r#"{"error":"out of memory"}"#), AttemptFailure::new(FailureKind::PeerError, "out of memory"));
        assert_eq!(told(r#"{"error":{"code":-32000,"message":"no tool"}}"#).message, "no tool");
        assert_eq!(told(r#"{"status":"failed","message":"worn"}"#).message, "worn");
        assert_eq!(told(r#"{"error":true}"#), AttemptFailure::new(FailureKind::PeerError, ""));
        assert_eq!(read(200, "application/json", r#"{"error":null}"#), Ok(Taken::Answered));
        assert_eq!(read(200, "application/json", "[1]"), Ok(Taken::Answered));
    }

    #[test]
    fn a_body_that_is_not_what_it_says_is_unparsable() {
        for body in ["{", "<a/>", "{\"a\":1}x"] {
            assert_eq!(read(200, "application/json", body).unwrap_err().kind, FailureKind::Unparsable, "{body}");
        }
        // serde_json has a limit of its own for the depth.
        let deep = "[".repeat(100_000);
        let error = DeliveryAnswer::read(200, Some("application/json".into()), deep.into()).unwrap_err();
        assert_eq!(error.kind, FailureKind::Unparsable);
    }

    #[test]
    fn a_refusal_says_what_the_peer_said() {
        assert_eq!(
            refusal(503, Some("Service Unavailable"), b" busy\x1b "),
            "the peer answered 503 Service Unavailable: busy\\u{1b}"
        );
        assert_eq!(refusal(599, None, b"\xff"), "the peer answered 599");
    }
}
