//! A call to a gateway, retried within its policy until there is an answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body_util::{BodyExt, Full};
use hyper::Method;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HeaderName, HeaderValue};
use serde_json::Value;
use url::Url;

use super::backoff::Backoff;
use super::error::RemoteError;
use crate::outbound::http::{Client, Request, Response};
use crate::outbound::retry::{Decision, Ended, Policy, Tried};
use crate::outbound::{AttemptFailure, FailureKind, Guard, check_url, tls, unanswered, wait_of};
use crate::terminal::readable;
use systole_store::clock::Clock;
use systole_store::entropy::Entropy;

/// Most bytes that are read of the body of a refusal.
const REFUSAL: usize = 16 << 10;

/// Options of calls to a gateway.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct CallOptions {
    /// Policy of retries for calls without an answer. The defaults are those of [`Policy`], but for `budget` (60 s),
    /// `read` (30 s, and the time that the call asks to wait) and `retry_after`, which is followed.
    pub policy: Policy,
    /// Certificates to trust besides the roots of the system, as PEM.
    pub certificates: Vec<u8>,
    /// Most bytes of an answer (64 MiB).
    pub answer: usize,
}

systole_core::vocab::setters!(CallOptions {
    policy: Policy,
    certificates: Vec<u8>,
    answer: usize,
});

impl Default for CallOptions {
    fn default() -> Self {
        let policy = Policy {
            budget: Duration::from_secs(60),
            read: Duration::from_secs(30),
            retry_after: true,
            ..Policy::default()
        };
        Self { policy, certificates: Vec::new(), answer: 64 << 20 }
    }
}

/// The URL of a gateway, and the token for it.
#[derive(Debug)]
pub(crate) struct Link {
    http: Client,
    base: Url,
    token: HeaderValue,
    pub(super) options: CallOptions,
    /// Attempts in a row without an answer, of all that share the link.
    unanswered: AtomicU32,
}

/// A call to the gateway.
#[derive(Debug, Clone)]
pub(crate) struct Call<'a> {
    method: Method,
    path: &'a [&'a str],
    query: Vec<(&'static str, String)>,
    headers: Vec<(HeaderName, HeaderValue)>,
    body: Option<(&'static str, Bytes)>,
    /// Time for which the gateway may wait before it answers.
    wait: Duration,
}

impl<'a> Call<'a> {
    pub(crate) fn get(path: &'a [&'a str]) -> Self {
        Self { method: Method::GET, path, query: Vec::new(), headers: Vec::new(), body: None, wait: Duration::ZERO }
    }

    pub(crate) fn post(path: &'a [&'a str], kind: &'static str, body: impl Into<Bytes>) -> Self {
        Self { method: Method::POST, body: Some((kind, body.into())), ..Self::get(path) }
    }

    pub(crate) fn json(path: &'a [&'a str], body: &Value) -> Self {
        Self::post(path, "application/json", body.to_string())
    }

    pub(crate) fn with(mut self, key: &'static str, value: Option<impl ToString>) -> Self {
        self.query.extend(value.map(|value| (key, value.to_string())));
        self
    }

    pub(crate) fn header(mut self, name: HeaderName, value: Option<HeaderValue>) -> Self {
        self.headers.extend(value.map(|value| (name, value)));
        self
    }

    pub(crate) fn waits(mut self, wait: Duration) -> Self {
        self.wait = wait;
        self
    }

    /// The name of the call in errors.
    pub(crate) fn name(&self) -> String {
        format!("{} /{}", self.method, self.path.join("/"))
    }
}

impl Link {
    pub(super) fn new(url: &str, token: &str, options: CallOptions) -> Result<Arc<Self>, RemoteError> {
        Self::guarded(url, token, options, None)
    }

    /// A link to a gateway whose address the guard allows.
    pub(crate) fn guarded(
        url: &str,
        token: &str,
        options: CallOptions,
        guard: Option<Guard>,
    ) -> Result<Arc<Self>, RemoteError> {
        let refused = |problem: &str| RemoteError::Url { url: url.to_owned(), problem: problem.to_owned() };
        let base = Url::parse(url).map_err(|error| refused(&error.to_string()))?;
        if !matches!(base.scheme(), "http" | "https") {
            return Err(refused("its scheme is not http or https"));
        }
        if !base.username().is_empty() || base.password().is_some() {
            return Err(refused("it has a user or a password: the token says who it is"));
        }
        if base.query().is_some() || base.fragment().is_some() {
            return Err(refused("it has a query or a fragment"));
        }
        let token = token.trim();
        let bearer = HeaderValue::from_str(&format!("Bearer {token}")).ok().filter(|_| !token.is_empty());
        let mut token = bearer.ok_or(RemoteError::Token)?;
        token.set_sensitive(true);
        if let Some(guard) = &guard {
            check_url(url, guard).map_err(|problem| refused(&problem))?;
        }
        let http = Client::new(tls(&options.certificates)?, guard.map(Arc::new), Some(options.policy.connect));
        Ok(Arc::new(Self { http, base, token, options, unanswered: AtomicU32::new(0) }))
    }

    /// Makes a call, with retries, and reads its answer.
    pub(crate) async fn ask(&self, call: &Call<'_>) -> Result<Bytes, RemoteError> {
        let clock = Clock::of_runtime();
        let policy = &self.options.policy;
        let mut tried = Tried { attempts: 0, since: clock.now() };
        loop {
            tried.attempts += 1;
            let attempt = self.attempt(call, &clock).await;
            self.note(&attempt);
            let error = match attempt {
                Ok(body) => return Ok(body),
                Err(error) => error,
            };
            let ended = ended(&error);
            let decide = |ended| policy.decide(tried, &ended, clock.now(), Entropy::Real.fraction());
            match ended.map(decide) {
                Some(Decision::Wait(wait)) => {
                    tracing::debug!(%error, ?wait, "a call is made again");
                    tokio::time::sleep(wait).await;
                }
                Some(Decision::Done | Decision::GiveUp(_)) | None => return Err(error),
            }
        }
    }

    /// Makes a call until it has an answer that stays: the attempts have no end but that of the future. The waits between them
    /// grow, and are no shorter than the gateway asks for. `told` gets the error of each attempt that is followed by another.
    ///
    /// # Errors
    /// [`RemoteError`] if the gateway refuses the call for good, or its answer can't be used.
    pub(crate) async fn insist(&self, call: &Call<'_>, told: impl Fn(&RemoteError)) -> Result<Bytes, RemoteError> {
        let clock = Clock::of_runtime();
        let mut backoff = Backoff::new(self.options.policy.clone());
        loop {
            let attempt = self.attempt(call, &clock).await;
            self.note(&attempt);
            match backoff.note(attempt) {
                Err(error) if error.may_pass() => {
                    told(&error);
                    let wait = backoff.wait(Duration::ZERO);
                    tracing::debug!(%error, ?wait, "a call is made again");
                    tokio::time::sleep(wait).await;
                }
                ended => return ended,
            }
        }
    }

    /// Makes a call, with retries, and reads its answer as JSON.
    pub(super) async fn ask_json(&self, call: &Call<'_>) -> Result<Value, RemoteError> {
        let body = self.ask(call).await?;
        serde_json::from_slice(&body)
            .map_err(|error| RemoteError::Unusable { what: call.name(), problem: format!("it is no JSON: {error}") })
    }

    /// Logs that the gateway doesn't answer: at once, then after 2, 4, 8… attempts in a row; and that it answers again.
    fn note<T>(&self, attempt: &Result<T, RemoteError>) {
        match attempt {
            Err(error) if error.is_unanswered() => {
                let attempts = self.unanswered.fetch_add(1, Ordering::Relaxed).saturating_add(1);
                if attempts.is_power_of_two() {
                    tracing::warn!(%error, attempts, gateway = %self.base, "the gateway doesn't answer: tried again");
                }
            }
            _ if self.unanswered.swap(0, Ordering::Relaxed) > 0 => {
                tracing::info!(gateway = %self.base, "the gateway answers again");
            }
            _ => {}
        }
    }

    /// Makes a call once; the caller reads the answer, for as long as that takes.
    pub(super) async fn open(&self, call: &Call<'_>) -> Result<Response, RemoteError> {
        let opened = self.open_once(call).await;
        self.note(&opened);
        opened
    }

    async fn open_once(&self, call: &Call<'_>) -> Result<Response, RemoteError> {
        let clock = Clock::of_runtime();
        let limit = self.options.policy.read;
        let answered = async {
            let response = self.http.execute(self.request(call)).await;
            response.map_err(|error| unanswered_call(call, unanswered(&error)))
        };
        let late = |_| {
            unanswered_call(call, AttemptFailure::new(FailureKind::ReadTimeout, format!("nothing came for {limit:?}")))
        };
        let response = tokio::time::timeout(limit, answered).await.map_err(late)??;
        if response.status().is_success() {
            return Ok(response);
        }
        Err(self.refused(call, response, &clock).await)
    }

    async fn attempt(&self, call: &Call<'_>, clock: &Clock) -> Result<Bytes, RemoteError> {
        let limit = self.options.policy.read.saturating_add(call.wait);
        let answered = async {
            let mut response = match self.http.execute(self.request(call)).await {
                Ok(response) => response,
                Err(error) => return Err(unanswered_call(call, unanswered(&error))),
            };
            if !response.status().is_success() {
                return Err(self.refused(call, response, clock).await);
            }
            let most = self.options.answer;
            let body =
                read(&mut response, most.saturating_add(1)).await.map_err(|failure| unanswered_call(call, failure))?;
            if body.len() > most {
                let too_large = format!("the answer has more than {most} bytes");
                return Err(unanswered_call(call, AttemptFailure::new(FailureKind::AnswerTooLarge, too_large)));
            }
            Ok(body)
        };
        let late = || {
            unanswered_call(
                call,
                AttemptFailure::new(FailureKind::ReadTimeout, format!("there was no answer for {limit:?}")),
            )
        };
        tokio::time::timeout(limit, answered).await.unwrap_or_else(|_| Err(late()))
    }

    fn request(&self, call: &Call<'_>) -> Request {
        let mut url = self.base.clone();
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().extend(call.path);
        }
        if !call.query.is_empty() {
            url.query_pairs_mut().extend_pairs(&call.query);
        }
        let mut request = Request::new(call.method.clone(), url);
        request.headers.insert(AUTHORIZATION, self.token.clone());
        request.headers.extend(call.headers.iter().cloned());
        if let Some((kind, body)) = &call.body {
            request.headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
            request.body = Full::new(body.clone()).boxed_unsync();
        }
        request
    }

    async fn refused(&self, call: &Call<'_>, mut response: Response, clock: &Clock) -> RemoteError {
        let status = response.status();
        let retry_after = wait_of(&response, clock.now());
        // The body of a refusal is informative alone.
        let said = read(&mut response, REFUSAL).await.unwrap_or_default();
        let problem: Value = serde_json::from_slice(&said).unwrap_or_default();
        let field = |key: &str| problem.get(key).and_then(Value::as_str).map(readable);
        let code = field("code").unwrap_or_else(|| status.canonical_reason().unwrap_or("unknown").to_owned());
        let detail = field("detail").unwrap_or_else(|| readable(&String::from_utf8_lossy(&said)));
        let detail = match field("rule") {
            Some(rule) => format!("{detail} ({rule})"),
            None => detail,
        };
        let status = status.as_u16();
        RemoteError::Refused { what: call.name(), status, code, detail, retry_after }
    }
}

/// The end of an attempt, for the policy; none for errors that are not of the transport.
fn ended(error: &RemoteError) -> Option<Ended> {
    match error {
        RemoteError::Unanswered { failure, .. } => Some(Ended::Failed(failure.clone())),
        RemoteError::Refused { status, retry_after, .. } => {
            Some(Ended::Refused { status: *status, retry_after: *retry_after })
        }
        _ => None,
    }
}

fn unanswered_call(call: &Call<'_>, failure: AttemptFailure) -> RemoteError {
    RemoteError::Unanswered { what: call.name(), failure }
}

/// Reads at most `most` bytes of a body.
async fn read(response: &mut Response, most: usize) -> Result<Bytes, AttemptFailure> {
    let mut body = BytesMut::new();
    while body.len() < most {
        let Some(piece) = response.chunk().await.map_err(|error| unanswered(&error))? else { break };
        body.extend_from_slice(&piece[..piece.len().min(most - body.len())]);
    }
    Ok(body.freeze())
}
