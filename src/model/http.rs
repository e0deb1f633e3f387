//! A provider behind HTTP: one request, whose answer is read as it grows.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body_util::{BodyExt, Full};
use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use hyper::{Method, StatusCode};
use systole_core::vocab::Name;
use tokio::time::timeout;
use url::Url;

use super::reply::Reply;
use super::{Again, Completion, LlmError, Prompt, Provider, Setback, anthropic, ollama, openai};
use crate::outbound::http::{Client, Request, Response};
use crate::outbound::{Failure, check_url, media_type, refusal, retry_after, unanswered};
use crate::runtime::LocalBoxFuture;
use crate::runtime::clock::Clock;
use crate::settings::{Dialect, Endpoint, KeySource};

/// Until there is a connection.
const CONNECT: Duration = Duration::from_secs(10);
/// Without a byte of an answer: a model on the machine may have to be loaded first.
const READ: Duration = Duration::from_secs(300);
/// Bytes of an answer, frames included, at most.
const MOST: usize = 64 << 20;
/// Of the body of a refusal so many bytes are read.
const REFUSAL: usize = 4 << 10;
/// Refusals that pass, beside errors of the server: all others are a mistake in the request or the settings.
const PASSING: [u16; 4] = [408, 409, 425, 429];

/// What is known of a provider before it is asked.
pub(super) struct Http {
    endpoint: Endpoint,
    url: Url,
    headers: HeaderMap,
    /// The key, to be kept out of what is told.
    key: Option<String>,
}

/// A provider with connections of its own.
struct Started {
    http: Arc<Http>,
    client: Client,
}

impl Http {
    /// Reads the key of a backend and checks its URL.
    pub(super) fn open(backend: &Name, endpoint: &Endpoint) -> Result<Arc<Self>, LlmError> {
        let refused = |problem: String| LlmError::Url { backend: backend.clone(), problem };
        let base = &endpoint.url;
        judge_url(base).map_err(refused)?;
        let mut url = Url::parse(base).map_err(|error| refused(format!("is none: {error}")))?;
        let path: &[&str] = match endpoint.dialect {
            Dialect::OpenAi => &["chat", "completions"],
            Dialect::Anthropic => &["v1", "messages"],
            Dialect::Ollama => &["api", "chat"],
        };
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().extend(path);
        }
        let key = endpoint.key.as_ref().map(|source| read_key(backend, source)).transpose()?;
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream, application/x-ndjson"));
        if endpoint.dialect == Dialect::Anthropic {
            headers.insert(anthropic::VERSION.0, HeaderValue::from_static(anthropic::VERSION.1));
        }
        if let Some(key) = &key {
            let (name, value) = match endpoint.dialect {
                Dialect::Anthropic => (HeaderName::from_static("x-api-key"), key.clone()),
                Dialect::OpenAi | Dialect::Ollama => (AUTHORIZATION, format!("Bearer {key}")),
            };
            let value = HeaderValue::from_str(&value).ok().filter(|_| !key.is_empty());
            let mut value = value.ok_or_else(|| LlmError::Key { backend: backend.clone() })?;
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        Ok(Arc::new(Self { endpoint: endpoint.clone(), url, headers, key }))
    }

    /// A provider that trusts what `trust` does.
    pub(super) fn start(self: &Arc<Self>, trust: rustls::ClientConfig) -> impl Provider + use<> {
        Started { http: self.clone(), client: Client::new(trust, None, Some(CONNECT)) }
    }

    fn body(&self, prompt: &Prompt) -> Result<String, Setback> {
        let (needed, context) = (prompt.estimate(), self.endpoint.context);
        if let Some(context) = context.filter(|context| needed > u64::from(*context)) {
            let message = format!(
                "a request of about {needed} tokens, its answer included, does not fit into the context of {context}"
            );
            return Err(Setback::new(message, Again::Never));
        }
        let body = match self.endpoint.dialect {
            Dialect::OpenAi => openai::body(&self.endpoint.model, prompt, self.url.host_str()),
            Dialect::Anthropic => anthropic::body(&self.endpoint.model, prompt),
            Dialect::Ollama => ollama::body(&self.endpoint.model, prompt, context),
        };
        Ok(body.to_string())
    }

    async fn answer(&self, client: &Client, body: String) -> Result<Completion, Setback> {
        let mut request = Request::new(Method::POST, self.url.clone());
        request.headers = self.headers.clone();
        request.body = Full::new(Bytes::from(body)).boxed_unsync();
        let mut response = match timeout(READ, client.execute(request)).await {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => return Err(failed(&unanswered(&error))),
            Err(_) => return Err(silent()),
        };
        if !response.status().is_success() {
            return Err(self.refused(response).await);
        }
        let mut reply = Reply::new(self.endpoint.dialect, MOST);
        let header = |name| response.headers().get(name).and_then(|value| value.to_str().ok());
        let media = header(CONTENT_TYPE).map(media_type).unwrap_or_default();
        if self.endpoint.dialect != Dialect::Ollama && media != "text/event-stream" {
            let message =
                format!("it answered with '{media}', where its answers should be streamed as text/event-stream");
            return Err(Setback::new(message, Again::Never));
        }
        let mut read = 0;
        while !reply.is_over() {
            match timeout(READ, response.chunk()).await {
                Ok(Ok(Some(piece))) => {
                    read += piece.len();
                    if read > MOST {
                        return Err(Setback::new(format!("its answer has more than {MOST} bytes"), Again::Never));
                    }
                    reply.push(&piece)?;
                }
                Ok(Ok(None)) => break,
                Ok(Err(error)) => return Err(failed(&unanswered(&error))),
                Err(_) => return Err(silent()),
            }
        }
        reply.end()
    }

    async fn refused(&self, mut response: Response) -> Setback {
        let status = response.status();
        let header = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok());
        let after = header.and_then(|text| retry_after(text, Clock::real().now()));
        let passes = status.is_server_error() || PASSING.contains(&status.as_u16());
        let again = if passes { Again::Later(after) } else { Again::Never };
        let message = format!("it answered {status}");
        if matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
            // What it says of a key that it refuses may hold parts of that.
            return Setback { detail: format!("{message}: is its key right?"), message, again };
        }
        let said = read_some(&mut response).await;
        Setback { message, detail: refusal(status.as_u16(), status.canonical_reason(), &said), again }
    }

    /// A setback without the key, wherever the provider repeats it.
    fn concealed(&self, setback: Setback) -> Setback {
        let Some(key) = &self.key else { return setback };
        let conceal = |text: String| if text.contains(key.as_str()) { text.replace(key.as_str(), "…") } else { text };
        Setback { message: conceal(setback.message), detail: conceal(setback.detail), ..setback }
    }
}

impl Provider for Started {
    fn ask(&self, prompt: &Prompt) -> LocalBoxFuture<Result<Completion, Setback>> {
        let (http, client, body) = (self.http.clone(), self.client.clone(), self.http.body(prompt));
        Box::pin(async move {
            let answer = http.answer(&client, body?).await;
            answer.map_err(|setback| http.concealed(setback))
        })
    }
}

/// Whether a URL can be the base of those of a provider; else what is wrong with it.
pub(crate) fn judge_url(text: &str) -> Result<(), String> {
    // The operator names it, no message does: any address will do.
    check_url(text, &crate::outbound::Guard::private())?;
    match text.contains(['?', '#']) {
        true => Err("has a query or a fragment".to_owned()),
        false => Ok(()),
    }
}

fn read_key(backend: &Name, source: &KeySource) -> Result<String, LlmError> {
    let backend = || backend.clone();
    let key = match source {
        KeySource::Env(variable) => {
            std::env::var(variable).map_err(|_| LlmError::Unset { backend: backend(), variable: variable.clone() })?
        }
        KeySource::File(file) => std::fs::read_to_string(file).map_err(|error| LlmError::KeyFile {
            backend: backend(),
            file: file.clone(),
            why: error.to_string(),
        })?,
    };
    Ok(key.trim().to_owned())
}

async fn read_some(response: &mut Response) -> Bytes {
    let mut said = BytesMut::new();
    // It may come in part, or never.
    while let Ok(Ok(Some(piece))) = timeout(CONNECT, response.chunk()).await {
        said.extend_from_slice(&piece[..piece.len().min(REFUSAL - said.len())]);
        if said.len() == REFUSAL {
            break;
        }
    }
    said.freeze()
}

fn failed(failure: &Failure) -> Setback {
    let again = if failure.kind.is_transport() { Again::Later(None) } else { Again::Never };
    Setback::new(failure.message.clone(), again)
}

fn silent() -> Setback {
    Setback::new(format!("nothing came from it for {} s", READ.as_secs()), Again::Later(None))
}
