//! Compound values of records as text, readable in the `sqlite3` shell.

use std::sync::Arc;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use systole_core::journal::{FanId, LetterPlace, Link, Number, RememberedRecord, ReplyTo, RequestRecord};
use systole_core::vocab::{BrokenRule, Fault, FaultCode, Name, Position, ThreadPath};

/// Writes the destination of an answer: `single`, `MESSAGE#INDEX` or `MESSAGE/CALL#INDEX`; `None` for none.
pub(super) fn reply_to(reply_to: ReplyTo) -> Option<String> {
    match reply_to {
        ReplyTo::None => None,
        ReplyTo::Single => Some("single".to_owned()),
        ReplyTo::Fan(FanId { message, call: None }, index) => Some(format!("{message}#{index}")),
        ReplyTo::Fan(FanId { message, call: Some(call) }, index) => Some(format!("{message}/{call}#{index}")),
    }
}

/// Parses a destination that [`reply_to`] wrote.
pub(super) fn parse_reply_to(text: Option<&str>) -> Option<ReplyTo> {
    let Some(text) = text else { return Some(ReplyTo::None) };
    if text == "single" {
        return Some(ReplyTo::Single);
    }
    let (fan, index) = text.split_once('#')?;
    let id = match fan.split_once('/') {
        None => FanId { message: fan.parse().ok()?, call: None },
        Some((message, call)) => FanId { message: message.parse().ok()?, call: Some(call.parse().ok()?) },
    };
    Some(ReplyTo::Fan(id, index.parse().ok()?))
}

/// Writes a payload of a context, and before it its place: `PLACE`, `PLACE:CALL` for the answer to a call, or
/// `PLACE=ID,ID` for calls; nothing where the place is not known.
pub(super) fn remembered(entry: &RememberedRecord) -> Vec<u8> {
    let RememberedRecord { place, link, payload, .. } = entry;
    let mark = match link {
        _ if *place == 0 => String::new(),
        Link::None => place.to_string(),
        Link::Answers(call) => format!("{place}:{call}"),
        Link::Calls(calls) => {
            let calls: Vec<String> = calls.iter().map(ToString::to_string).collect();
            format!("{place}={}", calls.join(","))
        }
    };
    [mark.as_bytes(), payload].concat()
}

/// Parses a payload that [`remembered`] wrote.
pub(super) fn parse_remembered(
    (number, thread): (Number, Number),
    from: Name,
    text: &Bytes,
) -> Option<RememberedRecord> {
    let at = text.iter().position(|byte| *byte == b'<')?;
    let mark = std::str::from_utf8(&text[..at]).ok()?;
    let (place, link) = match mark.split_once([':', '=']) {
        None if mark.is_empty() => (0, Link::None),
        None => (mark.parse().ok()?, Link::None),
        Some((place, calls)) if mark.contains('=') => {
            let calls: Option<Vec<_>> = calls.split(',').map(|id| id.parse().ok()).collect();
            (place.parse().ok()?, Link::Calls(calls?))
        }
        Some((place, call)) => (place.parse().ok()?, Link::Answers(call.parse().ok()?)),
    };
    Some(RememberedRecord { number, thread, place, link, from, payload: text.slice(at..) })
}

/// Parses any name, including the pump's own.
pub(super) fn parse_name(text: &str) -> Option<Name> {
    match text {
        "core" => Some(Name::core()),
        "root" => Some(Name::root()),
        "system" => Some(Name::system()),
        _ => Name::parse(text).ok(),
    }
}

/// Writes the place of a dead letter: its path, and the conversation behind a space.
pub(super) fn letter_place(LetterPlace { conversation, path }: &LetterPlace) -> String {
    match conversation {
        Some(conversation) => format!("{path} {conversation}"),
        None => path.to_string(),
    }
}

/// Parses a place that [`letter_place`] wrote.
pub(super) fn parse_letter_place(text: &str) -> Option<LetterPlace> {
    let (path, conversation) = match text.split_once(' ') {
        Some((path, conversation)) => (path, Some(conversation.parse().ok()?)),
        None => (text, None),
    };
    let place = LetterPlace { conversation, path: parse_path(path)? };
    // An id can be written in several ways, of which a damaged text must not be one.
    Some(place).filter(|place| letter_place(place) == text)
}

/// Parses a path as it is displayed.
fn parse_path(text: &str) -> Option<ThreadPath> {
    let mut segments = text.split('/');
    segments.next().filter(|root| *root == "root")?;
    let segment = |text: &str| match text.split_once('#') {
        None => Some((parse_name(text)?, 1)),
        Some((name, ordinal)) => Some((parse_name(name)?, ordinal.parse().ok()?)),
    };
    segments.map(segment).collect::<Option<_>>().map(ThreadPath::new)
}

/// Writes a fault as JSON.
pub(super) fn fault(fault: &Fault) -> String {
    json(&FaultText::of(fault))
}

/// Parses a fault that [`fault`] wrote.
pub(super) fn parse_fault(text: &str) -> Option<Fault> {
    serde_json::from_str::<FaultText>(text).ok()?.fault()
}

/// Writes requests as JSON.
pub(super) fn requests(requests: &[RequestRecord]) -> String {
    let text = |request: &RequestRecord| RequestText {
        to: request.to.as_ref().map(|name| name.as_str().to_owned()),
        thread: request.thread.map(|thread| thread.to_string()),
        text: request.text.clone(),
        digest: blake3::Hash::from_bytes(request.digest).to_hex().to_string(),
    };
    json(&requests.iter().map(text).collect::<Vec<_>>())
}

/// Parses requests that [`requests`] wrote.
pub(super) fn parse_requests(text: &str) -> Option<Vec<RequestRecord>> {
    let request = |text: RequestText| {
        Some(RequestRecord {
            to: text.to.as_deref().map(parse_name).map_or(Some(None), |name| name.map(Some))?,
            thread: text.thread.map(|id| id.parse()).transpose().ok()?,
            text: text.text,
            digest: *blake3::Hash::from_hex(text.digest).ok()?.as_bytes(),
        })
    };
    serde_json::from_str::<Vec<RequestText>>(text).ok()?.into_iter().map(request).collect()
}

/// Result of a group of awaited calls: the positions of its answers among the stored ones, or a fault.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum ResultText {
    Settled(Vec<u32>),
    Fault(FaultText),
}

impl ResultText {
    pub(super) fn write(&self) -> String {
        json(self)
    }

    pub(super) fn parse(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }
}

#[derive(Serialize, Deserialize)]
pub(super) struct FaultText {
    code: String,
    message: Arc<str>,
    retryable: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    in_reply_to: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rule: Option<RuleText>,
}

#[derive(Serialize, Deserialize)]
struct RuleText {
    rule: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    at: Option<(u32, u32)>,
    #[serde(skip_serializing_if = "Option::is_none")]
    example: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct RequestText {
    #[serde(skip_serializing_if = "Option::is_none")]
    to: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thread: Option<String>,
    text: String,
    digest: String,
}

impl FaultText {
    pub(super) fn of(fault: &Fault) -> Self {
        Self {
            code: fault.code.as_str().to_owned(),
            message: fault.message.clone(),
            retryable: fault.retryable,
            in_reply_to: fault.in_reply_to.map(|id| id.to_string()),
            rule: fault.rule.as_deref().map(|rule| RuleText {
                rule: rule.rule.clone(),
                at: rule.at.map(|at| (at.line, at.column)),
                example: rule.example.clone(),
            }),
        }
    }

    pub(super) fn fault(self) -> Option<Fault> {
        let rule = |text: RuleText| {
            let at = text.at.map(|(line, column)| Position { line, column });
            Box::new(BrokenRule { rule: text.rule, at, example: text.example })
        };
        Some(Fault {
            code: FaultCode::named(&self.code)?,
            message: self.message,
            retryable: self.retryable,
            in_reply_to: self.in_reply_to.map(|id| id.parse()).transpose().ok()?,
            rule: self.rule.map(rule),
        })
    }
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("texts, numbers and lists of them can be written")
}
