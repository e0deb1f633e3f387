//! A provider behind HTTP: one request, whose answer is read as it grows.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body_util::{BodyExt, Full};
use hyper::header::{
    ACCEPT, AUTHORIZATION, CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, LOCATION, RETRY_AFTER,
};
use hyper::{Method, StatusCode, Uri};
use serde_json::{Map, Value};
use systole_core::core::Usage;
use systole_core::vocab::{Name, Traceparent};
use tokio::task::yield_now;
use tokio::time::{Sleep, sleep, timeout};
use url::Url;

use super::conceal::conceal;
use super::error::{error_in, passes, said};
use super::reply::Reply;
use super::{Again, Billed, Completion, Finish, Growth, LlmError, ModelPrompt, Provider, Setback};
use super::{anthropic, ollama, openai};
use crate::outbound::http::{Client, HttpError, Request, Response, traceparent};
use crate::outbound::{AttemptFailure, FailureKind, check_url, retry_after, tls, unanswered};
use crate::runtime::LocalBoxFuture;
use crate::settings::{Dialect, Endpoint, HeaderText, KeySource, read_regular, read_secret_text};
use crate::terminal::readable;

/// Bytes of a file with certificates.
const MOST_ROOTS: u64 = 16 << 20;
/// Time to look up a name and to connect.
const CONNECT: Duration = Duration::from_secs(10);
/// Time that a stream has to end behind the last word of its protocol, for its connection, which is used again if its
/// answer has been read.
const AFTERWORD: Duration = Duration::from_millis(250);
/// Turns of other tasks in which bytes that have come behind the last word are taken up.
const TURNS: usize = 8;
/// Time after which an answer has ended although its stream has not, once the provider has counted all of its tokens: it
/// may keep the stream open, or go on with comments.
const GRACE: Duration = Duration::from_secs(5);
/// Bytes of an answer, frames included, at most.
const MOST: usize = 64 << 20;
/// Bytes of the body of a refusal, at most.
const REFUSAL: usize = 4 << 10;
/// The end of a sentence about a header.
const UNSENDABLE: &str = "is empty, or has characters that an HTTP header can't hold";
/// The wait that OpenAI and Azure ask for, in milliseconds.
const RETRY_AFTER_MS: HeaderName = HeaderName::from_static("retry-after-ms");
/// The word of OpenAI and Anthropic on whether another attempt has a chance.
const SHOULD_RETRY: HeaderName = HeaderName::from_static("x-should-retry");

/// A provider's endpoint with its headers, shared by all listeners.
pub(super) struct Http {
    endpoint: Endpoint,
    url: Url,
    headers: HeaderMap,
    /// The keys of all backends, to be cut out of what this one says.
    keys: Keys,
    proxy: Option<Uri>,
    trust: rustls::ClientConfig,
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
        for (name, value) in &endpoint.query {
            url.query_pairs_mut().append_pair(name, value);
        }
        let key = endpoint.key.as_ref().map(|source| read_key(backend, source)).transpose()?;
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream, application/x-ndjson, application/json"));
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
        for (name, text) in &endpoint.headers {
            let refused = |problem| LlmError::Header { backend: backend.clone(), name: name.clone(), problem };
            let (text, is_secret) = match text {
                HeaderText::Plain(text) => (text.clone(), false),
                HeaderText::Secret(source) => (read_key(backend, source)?, true),
            };
            judge_header(name, Some(text.as_str()).filter(|_| !is_secret)).map_err(refused)?;
            let value = HeaderValue::from_str(&text).ok().filter(|_| !text.is_empty());
            let parsed = value.zip(HeaderName::from_bytes(name.as_bytes()).ok());
            let (mut value, name) = parsed.ok_or_else(|| refused(UNSENDABLE.to_owned()))?;
            value.set_sensitive(is_secret);
            headers.insert(name, value);
            lock(keys).extend(is_secret.then_some(text));
        }
        let proxy = endpoint.proxy.as_deref().map(|proxy| judge_proxy(proxy).and_then(|()| read_uri(proxy)));
        let proxy = proxy.transpose().map_err(|problem| refused(format!("has a proxy whose URL {problem}")))?;
        let roots = match &endpoint.ca_file {
            Some(file) => read_regular(file, MOST_ROOTS).map_err(|error| error.to_string()),
            None => Ok(Vec::new()),
        };
        let trust = roots.and_then(|roots| tls(&roots).map_err(|error| error.to_string()));
        let trust = trust.map_err(|why| LlmError::Certificates {
            backend: backend.clone(),
            file: endpoint.ca_file.clone().unwrap_or_default(),
            why,
        });
        Ok(Arc::new(Self { endpoint: endpoint.clone(), url, headers, keys: keys.clone(), proxy, trust: trust? }))
    }

    /// Starts a provider.
    pub(super) fn start(self: &Arc<Self>) -> impl Provider + use<> {
        Started { http: self.clone(), client: Client::by_proxy(self.trust.clone(), self.proxy.clone(), CONNECT) }
    }

    fn body(&self, prompt: &ModelPrompt) -> Result<String, Setback> {
        let (needed, context) = (prompt.estimate(), self.endpoint.context);
        if let Some(context) = context.filter(|context| needed > u64::from(*context)) {
            let message = format!(
                "a request of about {needed} tokens, its answer included, does not fit into the context of {context}"
            );
            return Err(Setback::new(message, Again::Never).unbilled());
        }
        let mut body = match self.endpoint.dialect {
            Dialect::OpenAi => openai::body(&self.endpoint.model, prompt),
            Dialect::Anthropic => anthropic::body(&self.endpoint.model, prompt),
            Dialect::Ollama => ollama::body(&self.endpoint.model, prompt, context),
        };
        self.fit(&mut body);
        Ok(body.to_string())
    }

    /// Makes the body what this provider takes.
    fn fit(&self, body: &mut Value) {
        let Endpoint { dialect, body: own, omit, rename, stream, .. } = &self.endpoint;
        let Some(fields) = body.as_object_mut() else { return };
        if !stream {
            fields.insert("stream".to_owned(), false.into());
            fields.remove("stream_options");
        }
        for name in omit {
            // Ollama has some of them one level below.
            if fields.remove(name).is_none()
                && let Some(Value::Object(options)) = fields.get_mut("options")
            {
                options.remove(name);
            }
        }
        // All at once: a field may get the name that another one had.
        let renamed = rename.iter().filter_map(|(name, to)| Some((to.clone(), fields.remove(name)?)));
        let renamed: Vec<_> = renamed.collect();
        fields.extend(renamed);
        // OpenAI's newer models refuse the name that all others have kept.
        let is_theirs = |host: &str| host == "openai.com" || host.ends_with(".openai.com");
        if *dialect == Dialect::OpenAi
            && self.url.host_str().is_some_and(is_theirs)
            && let Some(most) = fields.remove("max_tokens")
        {
            fields.insert("max_completion_tokens".to_owned(), most);
        }
        merge(fields, own);
    }

    async fn answer(
        &self,
        client: &Client,
        body: String,
        caller: Option<Traceparent>,
        growth: &Growth,
    ) -> Result<Completion, Setback> {
        let mut request = Request::new(Method::POST, self.url.clone());
        request.headers = self.headers.clone();
        request.headers.extend(caller.map(traceparent));
        request.body = Full::new(Bytes::from(body)).boxed_unsync();
        let mut response = client.execute(request).await.map_err(|error| failed(&error))?;
        if !response.status().is_success() {
            return Err(self.refused(response, growth).await);
        }
        let header = |name| response.headers().get(name).and_then(|value| value.to_str().ok());
        if let Some(coding) = header(CONTENT_ENCODING).filter(|coding| !coding.eq_ignore_ascii_case("identity")) {
            let message = format!("its answer has the content coding '{}', which was not asked for", readable(coding));
            return Err(Setback::new(message, Again::Never));
        }
        let mut reply = Reply::new(self.endpoint.dialect, MOST);
        let mut read = 0;
        let mut grace: Option<Pin<Box<Sleep>>> = None;
        loop {
            grace = grace.filter(|_| reply.is_counted());
            if reply.is_over() {
                // Nothing is waited for. What came with the last word is judged.
                let piece = tokio::select! {
                    biased;
                    piece = response.chunk() => piece,
                    () = turns(TURNS) => {
                        tokio::spawn(timeout(AFTERWORD, drain(response)));
                        break;
                    }
                };
                match piece {
                    Ok(Some(piece)) => reply.push(&piece)?,
                    Ok(None) | Err(_) => break,
                }
                continue;
            }
            let end = reply.is_counted().then(|| grace.get_or_insert_with(|| Box::pin(sleep(GRACE))));
            let piece = match end {
                Some(end) => tokio::select! {
                    piece = response.chunk() => piece,
                    () = end => break,
                },
                None => response.chunk().await,
            };
            let piece = piece.map_err(|error| {
                let billed =
                    if reply.usage() == Usage::default() { Billed::Unknown } else { Billed::Used(reply.usage()) };
                Setback { billed, ..failed(&error) }
            })?;
            let Some(piece) = piece else { break };
            read += piece.len();
            if read > MOST {
                return Err(Setback::new(format!("its answer has more than {MOST} bytes"), Again::Never));
            }
            let parts = reply.parts();
            reply.push(&piece)?;
            growth.counts(reply.usage());
            if reply.parts() > parts {
                growth.thinks();
                growth.show(reply.text());
            }
        }
        let mut completion = reply.end()?;
        if completion.model.is_empty() {
            completion.model.clone_from(&self.endpoint.model);
        }
        Ok(completion)
    }

    async fn refused(&self, mut response: Response, growth: &Growth) -> Setback {
        let status = response.status();
        let header = |name| response.headers().get(name).and_then(|value| value.to_str().ok());
        let millis = header(RETRY_AFTER_MS).and_then(|text| Some(Duration::from_millis(text.trim().parse().ok()?)));
        let after = millis.or_else(|| header(RETRY_AFTER).and_then(|text| retry_after(text, growth.now()?)));
        let (should, location) = (header(SHOULD_RETRY).map(|word| word == "true"), header(LOCATION).map(readable));
        let reason = status.canonical_reason().map(|reason| format!(" {reason}")).unwrap_or_default();
        let message = format!("it answered {}{reason}", status.as_u16());
        let passes = |error: &Value| should.or(passes(Some(status.as_u16()), error)).unwrap_or_default();
        let again = |passes| if passes { Again::Later(after) } else { Again::Never };
        if matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
            // A provider may repeat parts of a key that it refuses.
            let (detail, again) = (format!("{message}: is its key right?"), again(passes(&Value::Null)));
            return Setback { detail, ..Setback::new(message, again).unbilled() };
        }
        let body = read_some(&mut response).await;
        let json = serde_json::from_slice::<Value>(&body).unwrap_or_default();
        let words = match (location, said(&body)) {
            (Some(location), _) if status.is_redirection() => format!(": is its url {location}?"),
            (_, words) if words.is_empty() => words,
            (_, words) => format!(": {words}"),
        };
        let again = again(passes(error_in(&json).unwrap_or(&json)));
        Setback { detail: format!("{message}{words}"), ..Setback::new(message, again).unbilled() }
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
        let (growth, caller) = (growth.clone(), prompt.traceparent);
        Box::pin(async move {
            let answer = http.answer(&client, body?, caller, &growth).await;
            answer.map(|completion| http.without_key(completion)).map_err(|setback| http.concealed(setback))
        })
    }
}

fn lock(keys: &Keys) -> MutexGuard<'_, Vec<String>> {
    keys.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Puts fields in place of those of the same name; objects are merged.
fn merge(fields: &mut Map<String, Value>, own: &Map<String, Value>) {
    for (name, value) in own {
        match (fields.get_mut(name), value) {
            (Some(Value::Object(inner)), Value::Object(own)) => merge(inner, own),
            _ => {
                fields.insert(name.clone(), value.clone());
            }
        }
    }
}

/// Checks a header of an operator, and its value unless it is a secret; the error is the end of a sentence about it.
pub(crate) fn judge_header(name: &str, text: Option<&str>) -> Result<(), String> {
    const OWN: [&str; 7] =
        ["host", "content-type", "content-length", "transfer-encoding", "connection", "accept-encoding", "accept"];
    const SECRET: [&str; 5] = ["authorization", "proxy-authorization", "api-key", "x-api-key", "cookie"];
    let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| "has a name that HTTP does not allow".to_owned())?;
    match text {
        _ if OWN.contains(&name.as_str()) => Err("is set by the program".to_owned()),
        Some(_) if SECRET.contains(&name.as_str()) => {
            Err("holds a secret, which does not belong into a file of settings".to_owned())
        }
        Some(text) if text.is_empty() || HeaderValue::from_str(text).is_err() => Err(UNSENDABLE.to_owned()),
        Some(_) | None => Ok(()),
    }
}

/// Checks the URL of a proxy; the error is the end of a sentence about it.
pub(crate) fn judge_proxy(text: &str) -> Result<(), String> {
    judge_url(text)?;
    read_uri(text)?;
    match text.split_once("://") {
        Some(("http", rest)) if !rest.trim_end_matches('/').contains('/') => Ok(()),
        Some(("http", _)) => Err("has a path".to_owned()),
        _ => Err("has another scheme than http".to_owned()),
    }
}

/// Checks a file of certificates; the error is the reason why it can't be used.
#[cfg(feature = "yaml")]
pub(crate) fn judge_certificates(file: &std::path::Path) -> Result<(), String> {
    let roots = read_regular(file, MOST_ROOTS).map_err(|error| error.to_string())?;
    if roots.is_empty() {
        return Err("it is empty".to_owned());
    }
    tls(&roots).map(drop).map_err(|error| error.to_string())
}

fn read_uri(text: &str) -> Result<Uri, String> {
    text.parse().map_err(|error| format!("is malformed: {error}"))
}

/// Checks the base of the URLs of a provider; the error is the end of a sentence about it.
pub(crate) fn judge_url(text: &str) -> Result<(), String> {
    // The operator names it, no message does: any address will do.
    check_url(text, &crate::outbound::Guard::private())?;
    match text.contains(['?', '#']) {
        true => Err("has a query or a fragment: a query is a key of its own, 'query'".to_owned()),
        false => Ok(()),
    }
}

fn read_key(backend: &Name, source: &KeySource) -> Result<String, LlmError> {
    let backend = || backend.clone();
    let key = match source {
        KeySource::Env(variable) => {
            std::env::var(variable).map_err(|_| LlmError::Unset { backend: backend(), variable: variable.clone() })?
        }
        KeySource::File(file) => read_secret_text(file).map_err(|error| LlmError::KeyFile {
            backend: backend(),
            file: file.clone(),
            why: error.to_string(),
        })?,
    };
    Ok(key.trim().to_owned())
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

/// Reads an answer to its end, for the sake of its connection.
async fn drain(mut response: Response) {
    while let Ok(Some(_)) = response.chunk().await {}
}

/// Lets other tasks have so many turns.
async fn turns(turns: usize) {
    for _ in 0..turns {
        yield_now().await;
    }
}

/// The setback of a request without an answer, or with a part of one. Certificates that are refused stay so, and a request
/// that was not sent is not billed.
fn failed(error: &HttpError) -> Setback {
    let AttemptFailure { kind, message } = unanswered(error);
    let passes = kind.is_transport() && !error.is_untrusted();
    let setback = Setback::new(message, if passes { Again::Later(None) } else { Again::Never });
    let was_sent = !matches!(kind, FailureKind::Connect | FailureKind::ConnectTimeout | FailureKind::Bug);
    if was_sent { setback } else { setback.unbilled() }
}

#[cfg(test)]
mod tests {
    use systole_core::core::Millionths;

    use super::*;
    use crate::model::{Role, Turn};

    fn endpoint(dialect: Dialect, url: &str) -> Endpoint {
        Endpoint::new(dialect, "m").url(url)
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
            answer_schema: None,
            is_summary: false,
            traceparent: None,
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
    fn a_request_is_what_its_provider_takes() {
        let own = r#"{ "reasoning_effort": "low", "options": { "num_thread": 4 } }"#;
        let of = |dialect: Dialect| {
            let endpoint =
                endpoint(dialect, "https://a.example/v1").query(vec![("api-version".into(), "2024 10".into())]);
            let endpoint = endpoint.headers(vec![("X-Team".into(), HeaderText::Plain("search".into()))]);
            let endpoint = endpoint.body(serde_json::from_str(own).unwrap()).omit(vec!["temperature".into()]);
            let endpoint = endpoint.rename(vec![("max_tokens".into(), "max_new_tokens".into())]).stream(false);
            let http = open(&endpoint).unwrap();
            (
                http.url.to_string(),
                http.headers["x-team"].clone(),
                serde_json::from_str::<Value>(&http.body(&prompt()).unwrap()).unwrap(),
            )
        };
        let (url, team, body) = of(Dialect::OpenAi);
        assert_eq!(
            (&*url, team.as_bytes()),
            ("https://a.example/v1/chat/completions?api-version=2024+10", &b"search"[..])
        );
        assert_eq!(
            (&body["max_new_tokens"], &body["stream"], &body["reasoning_effort"]),
            (&50.into(), &false.into(), &"low".into())
        );
        for field in ["max_tokens", "temperature", "stream_options"] {
            assert_eq!(body.get(field), None, "{body}");
        }
        let (.., body) = of(Dialect::Ollama);
        assert_eq!(body["options"], serde_json::json!({ "num_predict": 50, "num_ctx": 8192, "num_thread": 4 }));
    }

    #[test]
    fn headers_of_an_operator_are_judged() {
        for (name, text, problem) in [
            ("x-team", Some("a"), None),
            ("api-key", None, None),
            ("api-key", Some("a"), Some("holds a secret")),
            ("Content-Type", Some("a"), Some("is set by the program")),
            ("a b", Some("a"), Some("has a name")),
            ("x-team", Some("a\nb"), Some("has characters")),
            ("x-team", Some(""), Some("is empty")),
        ] {
            let judged = judge_header(name, text);
            assert!(
                judged.as_ref().err().map(String::as_str).is_none_or(|told| told.contains(problem.unwrap())),
                "{judged:?}"
            );
            assert_eq!(judged.is_err(), problem.is_some(), "{name}");
        }
        for (url, is_good) in [
            ("http://127.0.0.1:3128", true),
            ("http://p:1/", true),
            ("https://p", false),
            ("http://p/a", false),
            ("http://u:p@p", false),
            ("p:1", false),
        ] {
            assert_eq!(judge_proxy(url).is_ok(), is_good, "{url}");
        }
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
