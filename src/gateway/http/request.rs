//! Parses requests: query, path, body. Unknown parameters and fields are refused, never ignored.

use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use axum::body::HttpBody;
use axum::extract::Request;
use axum::http::{HeaderMap, StatusCode, header};
use bytes::{Bytes, BytesMut};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use schemars::JsonSchema;
use serde::de::{DeserializeOwned, Error};
use serde::{Deserialize, Deserializer};
use systole_core::vocab::{MessageId, Traceparent};

use super::authenticate::{Authenticated, LONG};
use super::{AppState, json_document};
use crate::gateway::problem::Problem;

/// Longest wait of a request, in seconds.
pub(super) const WAIT: u64 = 60;

/// Entries of a page, by default and at most.
pub(super) const LIMIT: (u64, u64) = (100, 500);

/// Longest `Idempotency-Key`, in bytes.
pub(super) const KEY: usize = 255;

/// Most bytes of a JSON body.
const JSON: usize = 64 << 10;

/// The parameters of a query, each once.
pub(crate) struct Query(Vec<(String, String)>);

impl Query {
    /// Parses the query of a request that may have these parameters.
    pub(crate) fn of(request: &Request, known: &[&str]) -> Result<Self, Problem> {
        let pairs = fields(request.uri().query().unwrap_or_default().as_bytes())?;
        for (at, (key, _)) in pairs.iter().enumerate() {
            if !known.contains(&key.as_str()) {
                let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
                return Err(Problem::bad_request(format!("unknown parameter '{key}': known are {known}")));
            }
            if pairs[..at].iter().any(|(earlier, _)| earlier == key) {
                return Err(Problem::bad_request(format!("the parameter '{key}' is repeated: send it once")));
            }
        }
        Ok(Self(pairs))
    }

    /// Makes a query of one parameter.
    pub(super) fn only(key: &str, value: &str) -> Self {
        Self(vec![(key.to_owned(), value.to_owned())])
    }

    pub(crate) fn text(&self, key: &str) -> Option<&str> {
        self.0.iter().find(|(found, _)| found == key).map(|(_, value)| value.as_str())
    }

    /// Parses a whole number.
    pub(super) fn number(&self, key: &str, default: u64, bounds: (u64, u64)) -> Result<u64, Problem> {
        let Some(text) = self.text(key) else { return Ok(default) };
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        digits.then(|| text.parse().ok()).flatten().map_or_else(
            || Err(Problem::bad_request(format!("'{key}' has to be a whole number from {} to {}", bounds.0, bounds.1))),
            |number| within(key, number, bounds),
        )
    }

    /// Parses a value to filter by, and returns its text.
    pub(super) fn filter<T: FromStr>(&self, key: &str, wanted: &str) -> Result<Option<String>, Problem> {
        let Some(text) = self.text(key) else { return Ok(None) };
        let problem = |_| Problem::bad_request(format!("'{key}' has to be {wanted}"));
        text.parse::<T>().map(|_| Some(text.to_owned())).map_err(problem)
    }

    /// Parses the time to wait.
    pub(super) fn wait(&self) -> Result<Duration, Problem> {
        self.number("wait", 0, (0, WAIT)).map(Duration::from_secs)
    }
}

/// The fields of a form, or of a query (URL Standard, 5.1), in their order.
///
/// # Errors
/// [`Problem`] for bytes that are no UTF-8: they would become other ones.
pub(crate) fn fields(text: &[u8]) -> Result<Vec<(String, String)>, Problem> {
    let read = |text: &[u8]| {
        let spaced: Vec<u8> = text.iter().map(|byte| if *byte == b'+' { b' ' } else { *byte }).collect();
        let decoded: Vec<u8> = percent_encoding::percent_decode(&spaced).collect();
        String::from_utf8(decoded).map_err(|error| error.utf8_error().valid_up_to() + 1)
    };
    let mut fields = Vec::new();
    for (number, pair) in (1..).zip(text.split(|byte| *byte == b'&').filter(|pair| !pair.is_empty())) {
        let at = pair.iter().position(|byte| *byte == b'=');
        let (name, value) = (&pair[..at.unwrap_or(pair.len())], at.map_or(&[][..], |at| &pair[at + 1..]));
        let wrong = |what: String, byte| Problem::bad_request(format!("{what} is no UTF-8 text: byte {byte} is wrong"));
        let name = read(name).map_err(|byte| wrong(format!("the name of field {number}"), byte))?;
        let value = read(value).map_err(|byte| wrong(format!("field '{name}'"), byte))?;
        fields.push((name, value));
    }
    Ok(fields)
}

/// A whole number in a JSON document; `60.0` is one, too, as JSON has one kind of numbers.
#[derive(Clone, Copy, JsonSchema)]
#[schemars(inline)]
pub(super) struct Whole(pub(super) u64);

impl<'de> Deserialize<'de> for Whole {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = serde_json::Number::deserialize(deserializer)?;
        let exact = |float: &f64| float.fract() == 0.0 && (0.0..=f64::from(u32::MAX)).contains(float);
        let number = number.as_u64().or_else(|| number.as_f64().filter(exact).map(|float| float as u64));
        number.map(Self).ok_or_else(|| D::Error::custom("a whole number belongs here"))
    }
}

/// Checks a number against its bounds.
pub(super) fn within(key: &str, number: u64, (least, most): (u64, u64)) -> Result<u64, Problem> {
    if (least..=most).contains(&number) {
        Ok(number)
    } else {
        Err(Problem::bad_request(format!("'{key}' can't be less than {least} or more than {most}")))
    }
}

/// The id of a message in a path; a text that is no id looks like an unknown one.
pub(super) fn message_id(text: &str) -> Result<MessageId, Problem> {
    text.parse().map_err(|_| no_message())
}

pub(super) fn no_message() -> Problem {
    Problem::not_found("there is no such message, or it was forgotten")
}

/// The idempotency key of a submission.
pub(in crate::gateway) fn idempotency_key(headers: &HeaderMap) -> Result<Option<String>, Problem> {
    let Some(key) = headers.get("idempotency-key") else { return Ok(None) };
    let key = key.to_str().ok().filter(|key| (1..=KEY).contains(&key.len()));
    let problem = || Problem::bad_request(format!("an Idempotency-Key has 1 to {KEY} visible ASCII characters"));
    key.map(|key| Some(key.to_owned())).ok_or_else(problem)
}

/// The last event that a browser saw; one that has seen none sends an empty id.
pub(super) fn last_event_id(headers: &HeaderMap) -> Option<&str> {
    headers.get("last-event-id").map(|id| id.to_str().unwrap_or("?")).filter(|id| !id.is_empty())
}

/// The caller's place in a trace, by the header `traceparent`; none if that is malformed, or there several times (W3C Trace
/// Context, section 3.2).
pub(super) fn caller(headers: &HeaderMap) -> Option<Traceparent> {
    let mut values = headers.get_all("traceparent").iter();
    let only = values.next().filter(|_| values.next().is_none())?;
    Traceparent::parse(only.to_str().ok()?)
}

/// The form of a payload at the border: in the body of a request, or of its response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Xml,
    Json,
}

/// The form that a request wants the payload of its response in, by its `Accept` (RFC 9110, section 12.5.1); one that leaves
/// the choice open gets `otherwise`.
pub(super) fn wanted_form(headers: &HeaderMap, otherwise: Form) -> Form {
    let mut best = (otherwise, 0.0);
    for accepted in headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok()) {
        for range in accepted.split(',') {
            let mut parts = range.split(';').map(str::trim);
            let name = parts.next().unwrap_or_default().to_ascii_lowercase();
            let weight = parts.find_map(|part| part.strip_prefix("q=")?.parse::<f32>().ok()).unwrap_or(1.0);
            let form = match name.as_str() {
                name if Media::Json.is_named(name) => Form::Json,
                name if Media::Xml.is_named(name) => Form::Xml,
                _ => continue,
            };
            if weight > best.1 || weight == best.1 && form == otherwise {
                best = (form, weight);
            }
        }
    }
    best.0
}

/// Media type of a body.
#[derive(Clone, Copy)]
enum Media {
    Xml,
    Json,
    /// A payload in either form.
    Payload,
}

impl Media {
    /// The names of the media type; every name with the suffix is one, too (RFC 6839).
    fn types(self) -> (&'static [&'static str], &'static [&'static str]) {
        match self {
            Self::Xml => (&["application/xml", "text/xml"], &["+xml"]),
            Self::Json => (&["application/json"], &["+json"]),
            Self::Payload => (&["application/xml", "application/json", "text/xml"], &["+xml", "+json"]),
        }
    }

    /// Returns whether a name in lower case is one of the media type.
    fn is_named(self, name: &str) -> bool {
        let (types, suffixes) = self.types();
        types.contains(&name) || suffixes.iter().any(|suffix| name.ends_with(suffix))
    }

    /// Checks the media type in the headers. `UNSAID` is the default of clients that were given none.
    fn check(self, headers: &HeaderMap) -> Result<(), Problem> {
        let (types, _) = self.types();
        let Some(said) = headers.get(header::CONTENT_TYPE).map(|said| said.to_str().unwrap_or("?")) else {
            return Ok(());
        };
        let mut parts = said.split(';').map(str::trim);
        let name = parts.next().unwrap_or_default().to_ascii_lowercase();
        if !(self.is_named(&name) || name == UNSAID) {
            let taken = if let Self::Payload = self { "application/xml or application/json" } else { types[0] };
            let detail = format!("this call takes {taken}, not {said}: say so in Content-Type");
            return Err(Problem::unsupported(detail, types));
        }
        let charset =
            parts.find_map(|part| part.split_once('=').filter(|(key, _)| key.eq_ignore_ascii_case("charset")));
        match charset.map(|(_, charset)| charset.trim_matches('"')) {
            Some(charset) if !CHARSETS.iter().any(|known| charset.eq_ignore_ascii_case(known)) => {
                let detail = format!("this call takes UTF-8, not {charset}: say so in Content-Type");
                Err(Problem::unsupported(detail, types))
            }
            _ => Ok(()),
        }
    }
}

/// The names of UTF-8, and of a part of it.
const CHARSETS: [&str; 3] = ["utf-8", "utf8", "us-ascii"];

/// The media type that curl and Python's urllib write on a body without a type.
const UNSAID: &str = "application/x-www-form-urlencoded";

/// Reads the bytes of an envelope or of payloads.
pub(crate) async fn body(app: &AppState, request: Request) -> Result<Bytes, Problem> {
    read(app, request, message_bytes(app), Media::Xml).await
}

/// Reads the bytes of an envelope or a payload as XML, or of a payload as JSON; a body without a type is XML.
pub(super) async fn payload_body(app: &AppState, request: Request) -> Result<(Bytes, Form), Problem> {
    let said = request.headers().get(header::CONTENT_TYPE).and_then(|said| said.to_str().ok()).unwrap_or_default();
    let name = said.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let form = if Media::Json.is_named(&name) { Form::Json } else { Form::Xml };
    Ok((read(app, request, message_bytes(app), Media::Payload).await?, form))
}

/// Reads the bytes of a JSON document, at most as long as a message may be.
pub(in crate::gateway) async fn json_body(app: &AppState, request: Request) -> Result<Bytes, Problem> {
    read(app, request, message_bytes(app), Media::Json).await
}

/// Reads a JSON document; an empty body is an empty object.
pub(super) async fn json<T: DeserializeOwned>(app: &AppState, request: Request) -> Result<T, Problem> {
    parsed(read(app, request, JSON, Media::Json).await?)
}

/// Reads a JSON document with contents for others, at most as long as a message may be.
pub(super) async fn large_json<T: DeserializeOwned>(app: &AppState, request: Request) -> Result<T, Problem> {
    parsed(json_body(app, request).await?)
}

fn message_bytes(app: &AppState) -> usize {
    app.organism.blueprint().limits.xml.message_bytes
}

fn parsed<T: DeserializeOwned>(bytes: Bytes) -> Result<T, Problem> {
    let bytes = if bytes.is_empty() { Bytes::from_static(b"{}") } else { bytes };
    // serde would take an array for an object, its elements for the members in order.
    if bytes.trim_ascii_start().starts_with(b"[") {
        return Err(Problem::bad_request("the body: an object belongs here, not an array"));
    }
    json_document::parse(&bytes).map_err(|error| Problem::bad_request(format!("the body: {error}")))
}

/// Reads a body of a known caller and of the right media type, within its bounds and its time.
async fn read(app: &AppState, request: Request, limit: usize, media: Media) -> Result<Bytes, Problem> {
    let known = request.extensions().get::<Arc<Authenticated>>().cloned().ok_or_else(Problem::unauthorized)?;
    if request.body().is_end_stream() {
        return Ok(Bytes::new());
    }
    media.check(request.headers())?;
    let announced = request.headers().get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
    if announced.is_some_and(|bytes: u64| bytes > limit as u64) {
        return Err(Problem::too_large(limit));
    }
    let mut body = Limited::new(request.into_body(), limit);
    let all = async {
        let mut all = BytesMut::new();
        while let Some(frame) = body.frame().await {
            let data = frame.map_err(|error| match error.is::<LengthLimitError>() {
                true => Problem::too_large(limit),
                false => Problem::bad_request(format!("the body: {error}")),
            })?;
            if let Ok(data) = data.into_data() {
                known.hold(data.len())?;
                all.extend_from_slice(&data);
            }
        }
        Ok(all.freeze())
    };
    let (time, began) = (app.settings.body_time, app.mailboxes.now());
    let all = tokio::time::timeout(time, all).await.unwrap_or_else(|_| {
        let detail = format!("the body took longer than {} s", time.as_secs_f64());
        Err(Problem::new(StatusCode::REQUEST_TIMEOUT, "slow_body", "The body is too slow", detail))
    })?;
    if app.mailboxes.now().since(began) >= LONG && !known.is_valid(app).await {
        return Err(Problem::unauthorized());
    }
    Ok(all)
}

/// Parses a field that may be left out, but not be null.
pub(super) fn given<'de, T: Deserialize<'de>, D: Deserializer<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}
