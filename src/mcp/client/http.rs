//! A server that speaks streamable HTTP, over the HTTP client of `outbound`: its TLS, its pool, its check of addresses.
//!
//! Bodies are bounded: a JSON body as a whole, a stream by each of its events. Redirects are no answers, so the token goes to
//! the URL of the file alone.
//!
//! A stream for a request brings its answer alone to the library, which ends a stream at the first answer. An answer with another
//! id, and what is no message, is dropped with a warning. A status that refuses a request is its answer: nothing was done.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::io;
use std::path::Path;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body::{Body, Frame};
use http_body_util::{BodyExt, Full};
use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, LOCATION};
use hyper::{Method, StatusCode};
use rmcp::model::{ClientJsonRpcMessage, ErrorCode, ErrorData, JsonRpcMessage, RequestId, ServerJsonRpcMessage};
use rmcp::service::ServiceError;
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::{
    SseError, StreamableHttpClient, StreamableHttpClientTransportConfig, StreamableHttpError,
    StreamableHttpPostResponse,
};
use sse_stream::{Sse, SseStream};
use systole_core::vocab::Limits;
use url::Url;

use super::raw;
use super::session::{self, Listed, Session, Talk};
use super::stdio::{self, Line};
use crate::listeners::fleet::Over;
use crate::listeners::mcp::McpAsks;
use crate::outbound::http::{Client, HttpError, Request, Response};
use crate::outbound::{Guard, check_url, media_type, tls};
use crate::settings::read_secret_text;
use crate::terminal::readable;

/// Time to look up a name and to connect.
const CONNECT: Duration = Duration::from_secs(10);
/// Bytes of the body of a refusal that are shown.
const REFUSAL: usize = 2 << 10;
/// Requests whose streams can be resumed.
const RESUMABLE: usize = 1024;
const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");

type Failure = StreamableHttpError<HttpError>;
type Events = Pin<Box<dyn futures_core::Stream<Item = Result<Sse, SseError>> + Send>>;

/// The endpoint of a server.
#[derive(Clone)]
pub(super) struct Endpoint {
    client: Client,
    url: Url,
    token: Option<HeaderValue>,
    /// Bytes of a JSON body, and of an event.
    most: usize,
    heard: Arc<Heard>,
}

/// Facts about the messages of a server.
struct Heard {
    /// The host of the server, for the log.
    host: String,
    /// Messages that were dropped.
    dropped: AtomicUsize,
    /// The last events of streams, by their requests: a stream that is resumed behind an event is for the same request.
    events: Mutex<BTreeMap<String, (RequestId, String)>>,
}

impl Heard {
    /// Logs a message that is dropped; a server that sends such without end fills no log.
    fn drop(&self, why: &str, message: &str) {
        let dropped = self.dropped.fetch_add(1, Ordering::Relaxed) + 1;
        if dropped.is_power_of_two() {
            let shown = message.char_indices().nth(REFUSAL).map_or(message, |(end, _)| &message[..end]);
            let shown = readable(shown);
            tracing::warn!(server = %self.host, dropped, "a message of the MCP server is dropped, since it is {why}: {shown}");
        }
    }

    /// Notes the last event of a stream.
    fn note(&self, of: &RequestId, event: &str) {
        let mut events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        events.insert(stdio::key(of), (of.clone(), event.to_owned()));
        if events.len() > RESUMABLE {
            events.pop_first();
        }
    }

    /// The request whose stream is resumed behind an event.
    fn resumed(&self, event: &str) -> Option<RequestId> {
        let events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        events.values().find(|(_, last)| last == event).map(|(of, _)| of.clone())
    }

    /// The text of an event for the library; `None` if it is dropped.
    fn kept(&self, of: &RequestId, text: String) -> Option<String> {
        let why = match stdio::judge_for(of, text.as_bytes()) {
            // One that this client made of the message, or that had no id.
            Line::Message(message) if matches!(*message, JsonRpcMessage::Error(_)) => {
                return serde_json::to_string(&*message).ok();
            }
            Line::Message(_) => return Some(wrapped(text)),
            Line::Nothing => return None,
            // The library refuses it.
            Line::Refused { .. } if serde_json::from_str::<ServerJsonRpcMessage>(&text).is_ok() => return Some(text),
            Line::Refused { .. } | Line::Noise => "none of the protocol".to_owned(),
            Line::Dropped(why) => why.to_owned(),
            Line::Fatal(why) => why,
        };
        self.drop(&why, &text);
        None
    }

    /// The answer to a request that is the whole body of a response.
    fn answer(&self, of: &RequestId, body: &[u8]) -> Option<ServerJsonRpcMessage> {
        match stdio::judge_for(of, body) {
            Line::Message(message) => Some(*message)
                .filter(|message| matches!(message, JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_))),
            Line::Dropped(why) => {
                self.drop(why, &String::from_utf8_lossy(body));
                None
            }
            Line::Refused { .. } | Line::Nothing | Line::Noise | Line::Fatal(_) => None,
        }
    }
}

impl Endpoint {
    /// Opens an endpoint: checks its URL, and reads its token.
    ///
    /// # Errors
    /// The reason why it can't be used.
    pub(super) fn open(url: &str, token: Option<&Path>, limits: &Limits) -> Result<Self, String> {
        // The file's author has chosen the address: private networks are allowed, and link-local ones are not.
        let guard = Guard::private();
        check_url(url, &guard).map_err(|problem| format!("the URL {problem}"))?;
        let url = Url::parse(url).map_err(|error| format!("the URL is none: {error}"))?;
        let token = token.map(|file| {
            let read = read_secret_text(file).map_err(|error| error.to_string());
            let value = read.and_then(|token| {
                HeaderValue::try_from(format!("Bearer {token}")).map_err(|_| "it holds no token".to_owned())
            });
            let mut value = value.map_err(|why| format!("the token file {} can't be used: {why}", file.display()))?;
            value.set_sensitive(true);
            Ok::<_, String>(value)
        });
        let tls = tls(&[]).map_err(|error| error.to_string())?;
        let client = Client::new(tls, Some(Arc::new(guard)), Some(CONNECT));
        let most = limits.xml.message_bytes.saturating_mul(2).saturating_add(64 * 1024);
        let host = url.host_str().unwrap_or_default().to_owned();
        let heard = Arc::new(Heard { host, dropped: AtomicUsize::new(0), events: Mutex::default() });
        Ok(Self { client, url, token: token.transpose()?, most, heard })
    }

    fn transport(self) -> StreamableHttpClientTransport<Self> {
        let config = StreamableHttpClientTransportConfig::with_uri(self.url.as_str());
        StreamableHttpClientTransport::with_client(self, config)
    }

    fn request(
        &self,
        method: Method,
        session: Option<Arc<str>>,
        accept: &'static str,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<Request, Failure> {
        let mut request = Request::new(method, self.url.clone());
        let all: &mut HeaderMap = &mut request.headers;
        all.extend(headers);
        all.insert(ACCEPT, HeaderValue::from_static(accept));
        all.extend(self.token.clone().map(|token| (AUTHORIZATION, token)));
        if let Some(session) = session {
            let value = HeaderValue::try_from(&*session);
            let value = value.map_err(|_| unexpected("the id of the session is none".to_owned()))?;
            all.insert(SESSION, value);
        }
        Ok(request)
    }

    async fn send(&self, request: Request) -> Result<Response, Failure> {
        self.client.execute(request).await.map_err(StreamableHttpError::Client)
    }

    async fn post(
        &self,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        let has_session = session.is_some();
        let of = match &message {
            JsonRpcMessage::Request(request) => Some(request.id.clone()),
            _ => None,
        };
        let mut request = self.request(Method::POST, session, "application/json, text/event-stream", headers)?;
        request.headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        request.body = Full::new(Bytes::from(raw::unwrap(serde_json::to_vec(&message)?))).boxed_unsync();
        let mut response = self.send(request).await?;
        let status = response.status();
        let kind = header(&response, &CONTENT_TYPE).map(|kind| media_type(&kind));
        let session = header(&response, &SESSION);
        match status {
            StatusCode::ACCEPTED | StatusCode::NO_CONTENT => return Ok(StreamableHttpPostResponse::Accepted),
            StatusCode::NOT_FOUND if has_session => return Err(StreamableHttpError::SessionExpired),
            status if !status.is_success() => {
                let body = read(&mut response, self.most).await.unwrap_or_default();
                let error = match &of {
                    Some(id) => self.heard.answer(id, &body),
                    None => serde_json::from_slice::<ServerJsonRpcMessage>(&body).ok(),
                };
                let error = error.filter(|message| matches!(message, JsonRpcMessage::Error(_)));
                let told = error.or_else(|| {
                    let remedy = remedy(status, header(&response, &LOCATION))?;
                    let why = format!("{}: it did nothing of the request; {remedy}", said(status, &body));
                    let error = ErrorData::new(ErrorCode::INVALID_REQUEST, why, None);
                    Some(ServerJsonRpcMessage::error(error, Some(of?)))
                });
                return match told {
                    Some(error) => Ok(StreamableHttpPostResponse::Json(error, session)),
                    None => Err(refused(status, &body)),
                };
            }
            _ => {}
        }
        let Some(of) = of else { return Ok(StreamableHttpPostResponse::Accepted) };
        match kind.as_deref() {
            Some("text/event-stream") => Ok(StreamableHttpPostResponse::Sse(self.events(response, Some(of)), session)),
            Some("application/json") => {
                let body = read(&mut response, self.most).await?;
                let answer = self.heard.answer(&of, &body);
                let answer = answer.ok_or_else(|| unexpected("its answer is none to the request".to_owned()))?;
                Ok(StreamableHttpPostResponse::Json(answer, session))
            }
            _ => Err(StreamableHttpError::UnexpectedContentType(kind)),
        }
    }

    /// The events of a response, which is for one request or for none.
    fn events(&self, response: Response, of: Option<RequestId>) -> Events {
        let body = Bounded { body: response.into_body(), most: self.most, event: 0, is_line: false };
        Box::pin(Wrapped { events: SseStream::new(body), of, heard: self.heard.clone() })
    }
}

/// A stream of events whose messages keep the digits of their numbers, and that has no answer but the awaited one.
struct Wrapped<S> {
    events: S,
    /// The request that the stream is for.
    of: Option<RequestId>,
    heard: Arc<Heard>,
}

/// A message as the library gets it.
fn wrapped(text: String) -> String {
    let changed = match raw::wrap(text.as_bytes()) {
        Cow::Owned(wrapped) => Some(String::from_utf8_lossy(&wrapped).into_owned()),
        Cow::Borrowed(_) => None,
    };
    changed.unwrap_or(text)
}

impl<S: futures_core::Stream<Item = Result<Sse, SseError>> + Unpin> futures_core::Stream for Wrapped<S> {
    type Item = Result<Sse, SseError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let event = std::task::ready!(Pin::new(&mut self.events).poll_next(cx));
        Poll::Ready(event.map(|event| {
            let mut event = event?;
            if let (Some(of), Some(id)) = (&self.of, &event.id) {
                self.heard.note(of, id);
            }
            event.data = event.data.take().and_then(|data| match &self.of {
                Some(of) => self.heard.kept(of, data),
                None => Some(wrapped(data)),
            });
            Ok(event)
        }))
    }
}

impl StreamableHttpClient for Endpoint {
    type Error = HttpError;

    async fn post_message(
        &self,
        _uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        _auth: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        self.post(message, session, headers).await
    }

    async fn delete_session(
        &self,
        _uri: Arc<str>,
        session: Arc<str>,
        _auth: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), Failure> {
        let response = self.send(self.request(Method::DELETE, Some(session), "*/*", headers)?).await?;
        match response.status() {
            StatusCode::METHOD_NOT_ALLOWED => Err(StreamableHttpError::ServerDoesNotSupportDeleteSession),
            _ => Ok(()),
        }
    }

    async fn get_stream(
        &self,
        _uri: Arc<str>,
        session: Option<Arc<str>>,
        last_event: Option<String>,
        _auth: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<Events, Failure> {
        let of = last_event.as_deref().and_then(|event| self.heard.resumed(event));
        let mut request = self.request(Method::GET, session, "text/event-stream", headers)?;
        if let Some(value) = last_event.and_then(|id| HeaderValue::try_from(id).ok()) {
            request.headers.insert(LAST_EVENT, value);
        }
        let mut response = self.send(request).await?;
        match response.status() {
            StatusCode::METHOD_NOT_ALLOWED => Err(StreamableHttpError::ServerDoesNotSupportSse),
            StatusCode::NOT_FOUND => Err(StreamableHttpError::SessionExpired),
            status if !status.is_success() => {
                Err(refused(status, &read(&mut response, REFUSAL).await.unwrap_or_default()))
            }
            _ => match header(&response, &CONTENT_TYPE).map(|kind| media_type(&kind)) {
                Some(kind) if kind == "text/event-stream" => Ok(self.events(response, of)),
                kind => Err(StreamableHttpError::UnexpectedContentType(kind)),
            },
        }
    }
}

fn header(response: &Response, name: &HeaderName) -> Option<String> {
    response.headers().get(name)?.to_str().ok().map(str::to_owned)
}

fn refused(status: StatusCode, body: &[u8]) -> Failure {
    unexpected(said(status, body))
}

/// A status in words, with the begin of its body.
fn said(status: StatusCode, body: &[u8]) -> String {
    let said = readable(&String::from_utf8_lossy(&body[..body.len().min(REFUSAL)]));
    if said.is_empty() {
        format!("the server answered HTTP {status}")
    } else {
        format!("the server answered HTTP {status}: {said}")
    }
}

/// The remedy for a status by which a server refuses a request before it does anything; `None` for other ones.
fn remedy(status: StatusCode, location: Option<String>) -> Option<String> {
    Some(match status.as_u16() {
        300..=399 => match location {
            Some(location) => format!("write its new address, {}, as the url", readable(&location)),
            None => "write its new address as the url".to_owned(),
        },
        401 | 403 => "write a token that it takes to the file of token_file".to_owned(),
        404 | 405 | 410 | 501 => "write the address of its MCP endpoint as the url".to_owned(),
        429 => "call it less often".to_owned(),
        400 | 406 | 411 | 413 | 414 | 415 | 421 | 426 | 431 => "its operator knows which requests it takes".to_owned(),
        _ => return None,
    })
}

/// Returns whether a request failed since the server has forgotten the session, and gave no new one that it knows.
pub(super) fn is_expired(error: &ServiceError) -> bool {
    let ServiceError::TransportSend(error) = error else { return false };
    let failure = error.error.downcast_ref::<Failure>();
    matches!(failure, Some(StreamableHttpError::SessionExpired | StreamableHttpError::ReinitializationFailed(_)))
}

fn unexpected(why: String) -> Failure {
    StreamableHttpError::UnexpectedServerResponse(Cow::Owned(why))
}

/// Reads a whole body of at most `most` bytes.
async fn read(response: &mut Response, most: usize) -> Result<Bytes, Failure> {
    let mut body = BytesMut::new();
    while let Some(piece) = response.chunk().await.map_err(StreamableHttpError::Client)? {
        if body.len() + piece.len() > most {
            return Err(StreamableHttpError::ResponseBodyTooLarge { max_size: most });
        }
        body.extend_from_slice(&piece);
    }
    Ok(body.freeze())
}

/// A body of events, each of which has at most so many bytes.
struct Bounded<B> {
    body: B,
    most: usize,
    /// Bytes of the event so far.
    event: usize,
    /// True at the beginning of a line.
    is_line: bool,
}

impl<B: Body<Data = Bytes> + Unpin> Body for Bounded<B>
where
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let Some(frame) = std::task::ready!(Pin::new(&mut self.body).poll_frame(cx)) else { return Poll::Ready(None) };
        let frame = frame.map_err(io::Error::other)?;
        for &byte in frame.data_ref().into_iter().flatten() {
            match byte {
                b'\n' if self.is_line => self.event = 0,
                b'\n' => self.is_line = true,
                b'\r' => {}
                _ => self.is_line = false,
            }
            self.event += 1;
            if self.event > self.most {
                let most = self.most;
                let why = format!("an event has more than {most} bytes: ask for less, or raise limits.message_bytes");
                return Poll::Ready(Some(Err(io::Error::other(why))));
            }
        }
        Poll::Ready(Some(Ok(frame)))
    }
}

/// Talks to a server until that can't go on.
pub(super) async fn serve(endpoint: Result<Endpoint, String>, session: &Rc<Session>, talk: &Talk) -> Over {
    let why = match endpoint {
        Ok(endpoint) => talk.run(session, endpoint.transport()).await,
        Err(why) => why,
    };
    Over { detail: why.clone(), why, said: String::new(), is_success: false }
}

/// Connects to a server, and lists its tools. One that refuses the handshake of the newest revision gets that of the others.
pub(super) async fn look(endpoint: Endpoint, asks: McpAsks) -> Result<Listed, String> {
    match session::look(endpoint.clone().transport(), "", asks).await {
        Ok(listed) => Ok(listed),
        Err(_) => session::look(endpoint.transport(), super::LEGACY, asks).await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn each_event_has_a_bound_and_the_stream_has_none() {
        let events = "data: 12345\n\n".repeat(100);
        let bounded =
            |text: String, most| Bounded { body: Full::new(Bytes::from(text)), most, event: 0, is_line: false };
        assert_eq!(bounded(events.clone(), 20).collect().await.unwrap().to_bytes(), events);
        assert!(bounded(events.replace("\n\n", "\n"), 20).collect().await.is_err());
    }
}
