//! An attempt over HTTP: from a delivery to an answer, or a failure.
//!
//! Redirects are answers, no proxy is used, and every address is checked before the connection.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, StatusCode};
use systole_core::vocab::{Name as Target, Time};
use url::Url;

use super::address::{AddressRefused, Guard};
use super::answer::{DeliveryAnswer, media_type, refusal};
use super::delivery::{OutboundDelivery, check_literal, header_map, parse_url};
use super::error::OutboundError;
use super::failure::{AttemptFailure, FailureKind, chain};
use super::http::{self, HttpError, Request, Response};
use super::options::DeliveryOptions;
use super::progress::{Outgoing, Phase, Progress};
use super::retry::{Ended, Policy};
use super::signature::Secret;
use super::signing::{self, Signers};
use super::{retry_after, tls};
use crate::identity::Identity;
use crate::terminal::readable;

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static(signing::IDEMPOTENCY_KEY);

/// Most bytes that are read of the body of a refusal.
const REFUSAL: usize = 4 << 10;

/// Clients of all targets.
#[derive(Debug)]
pub(super) struct Client {
    way: Way,
    /// Clients of targets that have a guard of their own or no pooled connections.
    ways: HashMap<Target, Way>,
    answer: Option<usize>,
    identity: Option<Arc<Identity>>,
}

/// A client, and the guard that checks its addresses.
#[derive(Debug)]
struct Way {
    http: http::Client,
    guard: Arc<Guard>,
}

/// A failed attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Setback {
    pub(super) ended: Ended,
    pub(super) message: String,
}

impl From<AttemptFailure> for Setback {
    fn from(failure: AttemptFailure) -> Self {
        Self { message: failure.message.clone(), ended: Ended::Failed(failure) }
    }
}

impl Client {
    /// Makes a client that trusts the roots of the system, and reads answers up to their limit.
    pub(super) fn new(options: &DeliveryOptions) -> Result<Self, OutboundError> {
        let tls = tls::config(&[])?;
        let way = |guard: &Guard, reuse| Way::new(guard.clone(), tls.clone(), reuse);
        let of = |target: &Target| way(options.guard_of(target), !options.unpooled.contains(target));
        let own = options.guards.keys().chain(&options.unpooled);
        let ways = own.map(|target| (target.clone(), of(target))).collect();
        Ok(Self { way: way(&options.guard, true), ways, answer: options.answer, identity: options.identity.clone() })
    }

    /// Makes one attempt. Dropping the future ends it.
    pub(super) async fn attempt(
        &self,
        delivery: &OutboundDelivery,
        secret: Option<&Secret>,
        policy: &Policy,
        now: Time,
    ) -> Result<DeliveryAnswer, Setback> {
        let progress = Progress::new();
        let way = self.ways.get(&delivery.target).unwrap_or(&self.way);
        let signers = Signers { secret, identity: self.identity.as_deref(), peer: delivery.target.as_str() };
        let request = way.request(delivery, signers, now, &progress)?;
        let mut response = progress
            .within(policy, way.http.execute(request))
            .await?
            .map_err(|error| failure(&error, progress.phase()))?;
        progress.note(Phase::Reading);
        if !response.status().is_success() {
            // The body of a refusal is informative alone: it may come in part, or never.
            let most = self.answer.map_or(0, |_| REFUSAL);
            let said = progress.within(policy, read(&mut response, &progress, most)).await;
            let said = said.map_or(Bytes::new(), |said| said.unwrap_or_else(|(said, _)| said));
            return Err(refused(&response, &said, now));
        }
        let content_type = text(response.headers(), header::CONTENT_TYPE).map(media_type);
        let coding = text(response.headers(), header::CONTENT_ENCODING).map(str::to_owned);
        let status = response.status().as_u16();
        let body = match self.answer {
            Some(most) => progress.within(policy, body(&mut response, &progress, most)).await??,
            None => Bytes::new(),
        };
        let coding = coding.filter(|coding| !coding.eq_ignore_ascii_case("identity") && !body.is_empty());
        if let Some(coding) = coding {
            let why = format!("the answer has the content coding '{}', which was not asked for", readable(&coding));
            return Err(AttemptFailure::new(FailureKind::Unparsable, why).into());
        }
        Ok(DeliveryAnswer::read(status, content_type, body)?)
    }
}

impl Way {
    fn new(guard: Guard, tls: rustls::ClientConfig, reuse: bool) -> Self {
        let guard = Arc::new(guard);
        let judged = Some(guard.clone());
        let http = if reuse { http::Client::new(tls, judged, None) } else { http::Client::unpooled(tls, judged) };
        Self { http, guard }
    }

    fn request(
        &self,
        delivery: &OutboundDelivery,
        signers: Signers<'_>,
        now: Time,
        progress: &Progress,
    ) -> Result<Request, AttemptFailure> {
        let url = parse_url(&delivery.url)
            .map_err(|problem| AttemptFailure::new(FailureKind::Bug, format!("the URL {problem}")))?;
        check_literal(&url, &self.guard)
            .map_err(|refused| AttemptFailure::of(FailureKind::AddressRefused, &refused))?;
        let headers = headers(delivery, signers, &url, now)?;
        let mut request = Request::new(Method::POST, url);
        request.headers = headers;
        request.body = Outgoing::new(delivery.body.clone(), progress.clone()).boxed_unsync();
        Ok(request)
    }
}

/// Reads the body of an answer.
async fn body(response: &mut Response, progress: &Progress, most: usize) -> Result<Bytes, AttemptFailure> {
    let too_large =
        || AttemptFailure::new(FailureKind::AnswerTooLarge, format!("the answer has more than {most} bytes"));
    if response.content_length().is_some_and(|len| len > most as u64) {
        return Err(too_large());
    }
    match read(response, progress, most.saturating_add(1)).await {
        Ok(body) if body.len() > most => Err(too_large()),
        Ok(body) => Ok(body),
        Err((_, error)) => Err(failure(&error, Phase::Reading)),
    }
}

/// Reads at most `most` bytes of a body; an error carries the bytes before it.
async fn read(response: &mut Response, progress: &Progress, most: usize) -> Result<Bytes, (Bytes, HttpError)> {
    let mut body = BytesMut::new();
    while body.len() < most {
        match response.chunk().await {
            Ok(Some(piece)) => {
                progress.note(Phase::Reading);
                body.extend_from_slice(&piece[..piece.len().min(most - body.len())]);
            }
            Ok(None) => return Ok(body.freeze()),
            Err(error) => return Err((body.freeze(), error)),
        }
    }
    Ok(body.freeze())
}

fn headers(
    delivery: &OutboundDelivery,
    signers: Signers<'_>,
    url: &Url,
    now: Time,
) -> Result<HeaderMap, AttemptFailure> {
    let bug = |name: &str| AttemptFailure::new(FailureKind::Bug, format!("the header '{name}' can't be sent"));
    let mut headers = header_map(&delivery.headers).map_err(|(name, _)| bug(&name))?;
    headers.entry(header::CONTENT_TYPE).or_insert(HeaderValue::from_static("application/xml"));
    let id = delivery.id.to_string();
    headers.insert(IDEMPOTENCY_KEY, HeaderValue::from_str(&id).map_err(|_| bug(IDEMPOTENCY_KEY.as_str()))?);
    let secret = match (delivery.signed, signers.secret) {
        (true, None) => {
            let why = format!("there is no secret to sign with for {}", delivery.target);
            return Err(AttemptFailure::new(FailureKind::NoSecret, why));
        }
        (true, secret) => secret,
        (false, _) => None,
    };
    let signers = Signers { secret, ..signers };
    signers.sign(&mut headers, url, (&id, &delivery.body), now).map_err(|_| bug("signature"))?;
    Ok(headers)
}

fn refused(response: &Response, said: &[u8], now: Time) -> Setback {
    let status = response.status();
    Setback {
        ended: Ended::Refused { status: status.as_u16(), retry_after: wait_of(response, now) },
        message: refusal(status.as_u16(), status.canonical_reason(), said),
    }
}

/// The pause that a 429 or 503 asks for.
pub(crate) fn wait_of(response: &Response, now: Time) -> Option<Duration> {
    let waits = matches!(response.status(), StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE);
    let after = text(response.headers(), header::RETRY_AFTER).filter(|_| waits)?;
    retry_after::parse(after, now)
}

fn text(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

/// The failure that an error of the client is, once the request was sent.
pub(crate) fn unanswered(error: &HttpError) -> AttemptFailure {
    failure(error, Phase::Reading)
}

/// The failure that an error of the client is, by its innermost sources.
fn failure(error: &HttpError, phase: Phase) -> AttemptFailure {
    if let Some(refused) = chain(error).find(|cause| cause.is::<AddressRefused>()) {
        return AttemptFailure::new(FailureKind::AddressRefused, refused.to_string());
    }
    let kind = if error.is_of_request() {
        FailureKind::Bug
    } else if error.is_connect() {
        FailureKind::Connect
    } else {
        chain(error).filter_map(kind).last().unwrap_or(match phase {
            Phase::Connecting | Phase::Writing => FailureKind::Write,
            Phase::Reading => FailureKind::Read,
        })
    };
    AttemptFailure::of(kind, error)
}

fn kind(cause: &(dyn std::error::Error + 'static)) -> Option<FailureKind> {
    if let Some(error) = cause.downcast_ref::<hyper::Error>() {
        return match () {
            () if error.is_parse() => Some(FailureKind::Unparsable),
            () if error.is_user() => Some(FailureKind::Bug),
            () if error.is_incomplete_message() || error.is_canceled() || error.is_closed() => {
                Some(FailureKind::Closed)
            }
            () => None,
        };
    }
    let error = cause.downcast_ref::<io::Error>()?;
    match error.kind() {
        // Data that TLS finds damaged was damaged on its way; data that hyper finds wrong was written so by the peer.
        io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput if !of_tls(error) => Some(FailureKind::Unparsable),
        io::ErrorKind::UnexpectedEof => Some(FailureKind::Closed),
        _ => None,
    }
}

fn of_tls(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|inner| inner.is::<rustls::Error>())
}
