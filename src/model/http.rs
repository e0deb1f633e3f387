//! A provider behind HTTP: one request, whose answer is read as it grows.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body_util::{BodyExt, Full};
use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use hyper::{Method, StatusCode};
use systole_core::vocab::Name;
use tokio::time::timeout;
use url::Url;

use super::conceal::conceal;
use super::reply::Reply;
use super::{Again, Completion, Finish, Growth, LlmError, ModelPrompt, Provider, Setback, anthropic, ollama, openai};
use crate::outbound::http::{Client, Request, Response};
use crate::outbound::{AttemptFailure, check_url, media_type, readable, refusal, retry_after, unanswered};
use crate::runtime::LocalBoxFuture;
use crate::settings::{Dialect, Endpoint, KeySource};

/// Time to look up a name and to connect.
const CONNECT: Duration = Duration::from_secs(10);
/// Time without a byte of an answer: a model on the machine may have to be loaded first.
const READ: Duration = Duration::from_secs(300);
/// Time after which an answer counts as ended, although its stream does not end, once the provider has said how it
/// ended: the usage may follow.
const GRACE: Duration = Duration::from_secs(5);
/// Bytes of an answer, frames included, at most.
const MOST: usize = 64 << 20;
/// Bytes of the body of a refusal, at most.
const REFUSAL: usize = 4 << 10;
/// Refusals that pass, beside errors of the server: all others are a mistake in the request or the settings.
const PASSING: [u16; 4] = [408, 409, 425, 429];

/// A provider's endpoint with its headers, shared by all listeners.
pub(super) struct Http {
    endpoint: Endpoint,
    url: Url,
    headers: HeaderMap,
    /// The keys of all backends, to be cut out of what this one says.
    keys: Keys,
}

/// The keys of the backends of one router.
pub(super) type Keys = Arc<Mutex<Vec<String>>>;

/// A provider with connections of its own.
struct Started {
    http: Arc<Http>,
    client: Client,
}

impl Http {
    /// Reads the key of a backend and checks its URL.
    pub(super) fn open(backend: &Name, endpoint: &Endpoint, keys: &Keys) -> Result<Arc<Self>, LlmError> {
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
            lock(keys).push(key.clone());
        }
        Ok(Arc::new(Self { endpoint: endpoint.clone(), url, headers, keys: keys.clone() }))
    }

    /// Starts a provider that trusts the certificates of `trust`.
    pub(super) fn start(self: &Arc<Self>, trust: rustls::ClientConfig) -> impl Provider + use<> {
        Started { http: self.clone(), client: Client::new(trust, None, Some(CONNECT)) }
    }

    fn body(&self, prompt: &ModelPrompt) -> Result<String, Setback> {
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

    async fn answer(&self, client: &Client, body: String, growth: &Growth) -> Result<Completion, Setback> {
        let mut request = Request::new(Method::POST, self.url.clone());
        request.headers = self.headers.clone();
        request.body = Full::new(Bytes::from(body)).boxed_unsync();
        let mut response = match timeout(READ, client.execute(request)).await {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => return Err(failed(&unanswered(&error))),
            Err(_) => return Err(silent()),
        };
        if !response.status().is_success() {
            return Err(self.refused(response, growth).await);
        }
        let mut reply = Reply::new(self.endpoint.dialect, MOST);
        let header = |name| response.headers().get(name).and_then(|value| value.to_str().ok());
        let media = header(CONTENT_TYPE).map(media_type).unwrap_or_default();
        if self.endpoint.dialect != Dialect::Ollama && media != "text/event-stream" {
            let media = readable(&media);
            let message =
                format!("it answered with '{media}', where its answers should be streamed as text/event-stream");
            return Err(Setback::new(message, Again::Never));
        }
        let mut read = 0;
        while !reply.is_finished() && !reply.is_over() {
            match timeout(READ, response.chunk()).await {
                Ok(Ok(Some(piece))) => take(&mut reply, &piece, &mut read, growth)?,
                Ok(Ok(None)) => break,
                Ok(Err(error)) => return Err(failed(&unanswered(&error))),
                Err(_) => return Err(silent()),
            }
        }
        let rest = async {
            while !reply.is_over()
                && let Ok(Some(piece)) = response.chunk().await
            {
                take(&mut reply, &piece, &mut read, growth)?;
            }
            Ok(())
        };
        // A provider may keep its stream open, or go on with comments.
        timeout(GRACE, rest).await.unwrap_or(Ok(()))?;
        let mut completion = reply.end()?;
        if completion.model.is_empty() {
            completion.model.clone_from(&self.endpoint.model);
        }
        Ok(completion)
    }

    async fn refused(&self, mut response: Response, growth: &Growth) -> Setback {
        let status = response.status();
        let header = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok());
        let after = header.and_then(|text| retry_after(text, growth.now()?));
        let passes = status.is_server_error() || PASSING.contains(&status.as_u16());
        let again = if passes { Again::Later(after) } else { Again::Never };
        let message = format!("it answered {status}");
        if matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
            // A provider may repeat parts of a key that it refuses.
            return Setback { detail: format!("{message}: is its key right?"), message, again };
        }
        let said = read_some(&mut response).await;
        Setback { message, detail: refusal(status.as_u16(), status.canonical_reason(), &said), again }
    }

    /// A setback without keys, wherever the provider repeats a part of one.
    fn concealed(&self, setback: Setback) -> Setback {
        Setback { message: self.conceal(setback.message), detail: self.conceal(setback.detail), ..setback }
    }

    /// An answer without keys in the words of the provider; the text is the model's.
    fn without_key(&self, completion: Completion) -> Completion {
        let finish = match completion.finish {
            Finish::Withheld(why) => Finish::Withheld(self.conceal(why)),
            finish => finish,
        };
        Completion { model: self.conceal(completion.model), finish, ..completion }
    }

    fn conceal(&self, text: String) -> String {
        lock(&self.keys).iter().fold(text, |text, key| conceal(&text, key))
    }
}

impl Provider for Started {
    fn ask(&self, prompt: &ModelPrompt, growth: &Growth) -> LocalBoxFuture<Result<Completion, Setback>> {
        let (http, client, body) = (self.http.clone(), self.client.clone(), self.http.body(prompt));
        let growth = growth.clone();
        Box::pin(async move {
            let answer = http.answer(&client, body?, &growth).await;
            answer.map(|completion| http.without_key(completion)).map_err(|setback| http.concealed(setback))
        })
    }
}

fn lock(keys: &Keys) -> MutexGuard<'_, Vec<String>> {
    keys.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Checks the base of the URLs of a provider; the error is the end of a sentence about it.
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

/// Takes a piece of an answer.
fn take(reply: &mut Reply, piece: &[u8], read: &mut usize, growth: &Growth) -> Result<(), Setback> {
    *read += piece.len();
    if *read > MOST {
        return Err(Setback::new(format!("its answer has more than {MOST} bytes"), Again::Never));
    }
    reply.push(piece)?;
    growth.show(reply.text());
    Ok(())
}

async fn read_some(response: &mut Response) -> Bytes {
    let mut said = BytesMut::new();
    let read = async {
        while let Ok(Some(piece)) = response.chunk().await {
            said.extend_from_slice(&piece[..piece.len().min(REFUSAL - said.len())]);
            if said.len() == REFUSAL {
                break;
            }
        }
    };
    // The body may break off, never come, or come so slowly that other backends would wait for it.
    let _ = timeout(CONNECT, read).await;
    said.freeze()
}

fn failed(failure: &AttemptFailure) -> Setback {
    let again = if failure.kind.is_transport() { Again::Later(None) } else { Again::Never };
    Setback::new(failure.message.clone(), again)
}

fn silent() -> Setback {
    Setback::new(format!("nothing came from it for {} s", READ.as_secs()), Again::Later(None))
}

#[cfg(test)]
mod tests {
    use systole_core::core::Millionths;

    use super::*;
    use crate::model::{Role, Turn};

    fn endpoint(dialect: Dialect, url: &str) -> Endpoint {
        Endpoint { dialect, model: "m".to_owned(), url: url.to_owned(), key: None, context: None }
    }

    fn open(endpoint: &Endpoint) -> Result<Arc<Http>, LlmError> {
        Http::open(&Name::parse("main").unwrap(), endpoint, &Keys::default())
    }

    fn prompt() -> ModelPrompt {
        ModelPrompt {
            listener: Name::parse("planner").unwrap(),
            system: "s".repeat(400),
            turns: vec![Turn { role: Role::User, text: "u".to_owned() }],
            temperature: Some(Millionths(700_000)),
            max_tokens: 50,
        }
    }

    #[test]
    fn a_base_may_end_with_a_slash() {
        for (dialect, base, url) in [
            (Dialect::OpenAi, "https://a.example/v1/", "https://a.example/v1/chat/completions"),
            (Dialect::OpenAi, "http://127.0.0.1:8000/v1", "http://127.0.0.1:8000/v1/chat/completions"),
            (Dialect::Anthropic, "https://a.example", "https://a.example/v1/messages"),
            (Dialect::Ollama, "http://[::1]:11434/", "http://[::1]:11434/api/chat"),
        ] {
            assert_eq!(open(&endpoint(dialect, base)).unwrap().url.as_str(), url);
        }
        for (base, problem) in [
            ("a.example", "malformed"),
            ("ftp://a.example", "scheme 'ftp'"),
            ("https://me:secret@a.example", "a user or a password"),
            ("https://a.example/?key=secret", "a query"),
        ] {
            let error = open(&endpoint(Dialect::OpenAi, base)).err().unwrap().to_string();
            assert!(error.contains(problem) && !error.contains("secret"), "{error}");
        }
    }

    #[test]
    fn a_key_that_no_header_holds_is_refused() {
        let file = std::env::temp_dir().join(format!("systole-test-{}-model-key", std::process::id()));
        let with = |key: &[u8]| {
            std::fs::write(&file, key).unwrap();
            let key = Some(KeySource::File(file.clone()));
            open(&Endpoint { key, ..endpoint(Dialect::Anthropic, "https://a.example") })
        };
        let http = with(b" the-key\r\n").unwrap();
        assert_eq!(http.headers["x-api-key"], "the-key");
        assert!(http.headers["x-api-key"].is_sensitive());
        let setback = Setback::new("bad: the-key, the-key!", Again::Never);
        assert_eq!(http.concealed(setback).detail, "bad: …, …!");
        for key in [&b""[..], b"a\nb", b" \n"] {
            let error = with(key).err().unwrap().to_string();
            assert!(error.contains("the key of the backend 'main' is empty, or has characters"), "{error}");
        }
        std::fs::remove_file(&file).unwrap();
        let error = with_missing(file);
        assert!(error.contains("can't be read from"), "{error}");
    }

    fn with_missing(file: std::path::PathBuf) -> String {
        let key = Some(KeySource::File(file));
        open(&Endpoint { key, ..endpoint(Dialect::OpenAi, "https://a.example") }).err().unwrap().to_string()
    }

    #[test]
    fn what_does_not_fit_is_not_sent() {
        let fits = |context| {
            let endpoint = Endpoint { context: Some(context), ..endpoint(Dialect::Ollama, "http://a.example") };
            open(&endpoint).unwrap().body(&prompt())
        };
        let setback = fits(150).unwrap_err();
        assert!(setback.message.contains("about 151 tokens") && setback.again == Again::Never, "{setback:?}");
        assert!(fits(151).unwrap().contains("\"num_ctx\":151"));
    }

    #[test]
    fn openai_itself_has_another_name_for_the_limit() {
        let body = |base: &str| open(&endpoint(Dialect::OpenAi, base)).unwrap().body(&prompt()).unwrap();
        for (base, has, lacks) in [
            ("https://api.openai.com/v1", "\"max_completion_tokens\":50", "max_tokens"),
            ("https://notopenai.com/v1", "\"max_tokens\":50", "max_completion_tokens"),
        ] {
            let body = body(base);
            assert!(body.contains(has) && !body.contains(lacks) && body.contains("\"temperature\":0.7"), "{body}");
        }
    }
}
