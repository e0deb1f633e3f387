//! Lines of the protocol with a process, and their limits.

use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use systole_core::core::{JoinPosition, Message, ModelAnswer, Remembered, Usage};
use systole_core::vocab::{Fault, Limits, MessageId};
use systole_xml::ladder::Canonical;

use super::exchange::clipped;
use crate::listeners::json::{JsonPayloads, Past, Shown};

/// Bytes of a line besides the XML in it, at most.
const FRAME: usize = 4096;
/// Bytes of JSON for one byte of text, at most: `\u0000`.
const ESCAPED: usize = 6;

/// Bytes of the label of a call or of a value, at most.
const LABEL: usize = 256;

/// A line of a process.
#[derive(Debug)]
pub(super) enum Line {
    /// The answer to a heartbeat.
    Pong(u64),
    /// A call, an answer or a failure of a message.
    About(MessageId, About),
}

/// A payload, or several ones, in the form of the lines.
#[derive(Debug)]
pub(super) enum Payloads<X> {
    Xml(X),
    Json(Box<RawValue>),
}

impl From<Vec<String>> for Payloads<Vec<String>> {
    fn from(xml: Vec<String>) -> Self {
        Self::Xml(xml)
    }
}

impl From<String> for Payloads<String> {
    fn from(xml: String) -> Self {
        Self::Xml(xml)
    }
}

impl<X> From<Box<RawValue>> for Payloads<X> {
    fn from(json: Box<RawValue>) -> Self {
        Self::Json(json)
    }
}

/// Content of a line about a message.
#[derive(Debug)]
pub(super) enum About {
    Payloads(Payloads<Vec<String>>),
    /// A failure, and the label of the call whose fault it passes on.
    Error(String, Option<String>),
    Call {
        payload: Payloads<String>,
        to: Option<String>,
        label: String,
    },
    Record {
        name: String,
        value: Box<RawValue>,
        label: String,
    },
    Progress(String),
    Usage(ModelAnswer),
    /// Text of a draft, or the beginning of another one.
    Draft {
        text: String,
        anew: bool,
    },
    /// A line that is too long, with its length: its content is not known.
    Cut(usize),
}

impl About {
    /// Returns whether it only tells how far the handler is.
    pub(super) fn is_report(&self) -> bool {
        matches!(self, Self::Progress(_) | Self::Usage(_) | Self::Draft { .. })
    }
}

/// A value that the handler of a message recorded in an earlier run.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Recorded {
    pub(super) name: String,
    /// The JSON text as the worker wrote it: numbers of any size, and any depth.
    pub(super) value: Box<RawValue>,
}

/// Returns the length of the longest line that a process may write: a complete payload, however it is escaped.
pub(super) fn longest(limits: &Limits) -> usize {
    limits.xml.message_bytes.saturating_mul(ESCAPED).saturating_add(FRAME)
}

/// A line with payloads of the types `P` and calls of the type `C`.
#[derive(Deserialize)]
struct Incoming<P, C> {
    id: Option<String>,
    payloads: Option<P>,
    error: Option<String>,
    call: Option<C>,
    to: Option<String>,
    record: Option<String>,
    value: Option<Box<RawValue>>,
    progress: Option<String>,
    usage: Option<Used>,
    draft: Option<String>,
    #[serde(default)]
    anew: bool,
    #[serde(rename = "as")]
    label: Option<String>,
    pong: Option<u64>,
}

/// The use of a model by the program itself.
#[derive(Deserialize)]
struct Used {
    #[serde(default)]
    input: u64,
    #[serde(default)]
    output: u64,
    #[serde(default)]
    cached: u64,
    #[serde(default)]
    written: u64,
    #[serde(default)]
    cost: f64,
    #[serde(default)]
    ms: u64,
    model: Option<String>,
    provider: Option<String>,
}

impl Used {
    fn answer(self) -> Result<ModelAnswer, String> {
        let Self { input, output, cached, written, cost, ms, model, provider } = self;
        if cost < 0.0 {
            return Err("\"cost\" is a number from 0 on".to_owned());
        }
        let name = |name: Option<String>| name.map_or_else(|| "worker".into(), |name| clipped(&name, LABEL).into());
        Ok(ModelAnswer {
            backend: name(provider),
            model: name(model),
            usage: Usage { input, output, cached, written, cost: cost.into() },
            took: Duration::from_millis(ms),
            text: "".into(),
            fault: None,
        })
    }
}

/// Parses a line, with payloads as JSON or as XML; returns the mistake of a bad one.
pub(super) fn read(line: &[u8], is_json: bool) -> Result<Line, String> {
    if is_json { read_as::<Box<RawValue>, Box<RawValue>>(line) } else { read_as::<Vec<String>, String>(line) }
}

fn read_as<P, C>(line: &[u8]) -> Result<Line, String>
where
    P: DeserializeOwned + Into<Payloads<Vec<String>>>,
    C: DeserializeOwned + Into<Payloads<String>>,
{
    // serde would accept an array for the fields in their order.
    if line.trim_ascii_start().first() != Some(&b'{') {
        return Err("it is no JSON object".to_owned());
    }
    let Incoming { id, payloads, error, call, to, record, value, progress, usage, draft, anew, label, pong } =
        serde_json::from_slice::<Incoming<P, C>>(line).map_err(|error| error.to_string())?;
    if label.as_ref().is_some_and(|label| label.len() > LABEL) {
        return Err(format!("\"as\" has at most {LABEL} bytes"));
    }
    let needed = "a line that is answered needs \"as\", which the answer will name";
    let about = match (payloads, error, call, record, progress, usage, draft, pong) {
        (None, None, None, None, None, None, None, Some(pong)) => return Ok(Line::Pong(pong)),
        (Some(payloads), None, None, None, None, None, None, None) => About::Payloads(payloads.into()),
        (None, Some(error), None, None, None, None, None, None) => About::Error(error, label),
        (None, None, Some(call), None, None, None, None, None) => {
            About::Call { payload: call.into(), to, label: label.ok_or(needed)? }
        }
        (None, None, None, Some(name), None, None, None, None) => About::Record {
            name,
            value: value.unwrap_or_else(|| RawValue::NULL.to_owned()),
            label: label.ok_or(needed)?,
        },
        (None, None, None, None, Some(text), None, None, None) => About::Progress(text),
        (None, None, None, None, None, Some(used), None, None) => About::Usage(used.answer()?),
        (None, None, None, None, None, None, Some(text), None) => About::Draft { text, anew },
        _ => {
            let kinds = r#""payloads", "error", "call", "record", "progress", "usage", "draft" and "pong""#;
            return Err(format!("it needs exactly one of {kinds}"));
        }
    };
    let id = id.ok_or("it needs the \"id\" of the message that it is about")?;
    let id = id.parse().map_err(|_| format!("\"id\": '{}' is no id", clipped(&id, 64)))?;
    Ok(Line::About(id, about))
}

/// Parses the beginning of a line that is too long: its message, where that stands first.
pub(super) fn read_cut(beginning: &[u8], bytes: usize, most: usize) -> Result<Line, String> {
    let id = leading_id(beginning).ok_or_else(|| {
        format!("it has {bytes} bytes, a line has at most {most}, and it does not begin with the \"id\" of a message")
    })?;
    Ok(Line::About(id, About::Cut(bytes)))
}

/// The `"id"` that is the first field of an object.
fn leading_id(beginning: &[u8]) -> Option<MessageId> {
    let mut rest = beginning;
    for token in [&b"{"[..], b"\"id\"", b":", b"\""] {
        rest = rest.trim_ascii_start().strip_prefix(token)?;
    }
    let end = memchr::memchr(b'"', rest)?;
    str::from_utf8(&rest[..end]).ok()?.parse().ok()
}

#[derive(Serialize)]
struct Work<'a> {
    id: String,
    r#type: String,
    payload: Shown<'a>,
    from: &'a str,
    thread: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    in_reply_to: Option<String>,
    /// The place of the call that it answers, among the messages of the thread.
    #[serde(skip_serializing_if = "Option::is_none")]
    answers: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none", flatten)]
    join: Option<Join>,
    #[serde(skip_serializing_if = "Option::is_none")]
    deadline: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    traceparent: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    history: Option<Vec<Past<'a>>>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    recorded: &'a [Recorded],
}

#[derive(Serialize)]
struct Join {
    index: u32,
    total: u32,
    remaining: u32,
}

/// Writes the line that delivers a message, with what earlier runs of its handler recorded.
pub(super) fn work(
    message: &Message,
    history: Option<&[Remembered]>,
    recorded: &[Recorded],
    json: Option<&JsonPayloads>,
) -> Vec<u8> {
    let payload = message.body.written();
    let history = history.map(|history| history.iter().map(|past| Past::of(past, json)).collect());
    write(&Work {
        id: message.id.to_string(),
        r#type: payload.root().to_string(),
        payload: Shown::of(&payload, json),
        from: message.from.as_str(),
        thread: message.thread.to_string(),
        in_reply_to: message.in_reply_to.map(|id| id.to_string()),
        answers: message.place.answers,
        join: message.join.map(|JoinPosition { index, total, remaining }| Join { index, total, remaining }),
        deadline: message.deadline.map(|deadline| deadline.to_string()),
        traceparent: message.traceparent.map(|traceparent| traceparent.to_string()),
        history,
        recorded,
    })
}

/// Writes the line that answers a call.
pub(super) fn answer(
    id: MessageId,
    label: &str,
    outcome: Result<&Canonical, &Fault>,
    json: Option<&JsonPayloads>,
) -> Vec<u8> {
    #[derive(Serialize)]
    struct Answer<'a> {
        id: String,
        r#as: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        reply: Option<Shown<'a>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        fault: Option<Failed<'a>>,
    }
    #[derive(Serialize)]
    struct Failed<'a> {
        code: &'a str,
        message: &'a str,
        retryable: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        rule: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        example: Option<&'a str>,
    }
    let told = outcome.err().and_then(|fault| Some(json?.told(fault)));
    let failed = told.as_ref().or(outcome.err());
    let broken = failed.and_then(|fault| fault.rule.as_deref());
    let fault = failed.map(|Fault { code, message, retryable, .. }| Failed {
        code: code.as_str(),
        message,
        retryable: *retryable,
        rule: broken.map(|broken| broken.rule.as_str()),
        example: broken.and_then(|broken| broken.example.as_deref()),
    });
    write(&Answer { id: id.to_string(), r#as: label, reply: outcome.ok().map(|reply| Shown::of(reply, json)), fault })
}

/// Writes the line that tells that a value is recorded.
pub(super) fn recorded(id: MessageId, label: &str, name: &str) -> Vec<u8> {
    #[derive(Serialize)]
    struct Noted<'a> {
        id: String,
        r#as: &'a str,
        recorded: &'a str,
    }
    write(&Noted { id: id.to_string(), r#as: label, recorded: name })
}

/// Writes the line that cancels a message.
pub(super) fn cancel(id: MessageId) -> Vec<u8> {
    format!("{{\"cancel\":\"{id}\"}}\n").into_bytes()
}

/// Writes the line of a heartbeat.
pub(super) fn ping(number: u64) -> Vec<u8> {
    format!("{{\"ping\":{number}}}\n").into_bytes()
}

fn write(line: &impl Serialize) -> Vec<u8> {
    let mut text = serde_json::to_vec(line).unwrap_or_default();
    text.push(b'\n');
    text
}
