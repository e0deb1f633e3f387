//! A server as a handler: each message is a request to the server, as a push would be.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body_util::{BodyExt, Full};
use hyper::Method;
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use url::Url;

use super::BoxFuture;
use super::error::RemoteError;
use super::handler::{Failed, Handled, Handler};
use super::inbound::Inbound;
use crate::outbound::http::{Client, HttpError, Request, Response, traceparent};
use crate::outbound::signature::Secret;
use crate::outbound::signing::Signers;
use crate::outbound::{DeliveryAnswer, Said, media_type, refusal, tls, unanswered};
use systole_store::clock::Clock;

/// Most bytes of an answer.
const ANSWER: usize = 1 << 20;

/// Forwards each message to a server, as a gateway would push it: `POST` with the envelope, `Idempotency-Key`, and the
/// signatures of a push if there is a secret. An answer with 200 is the reply; with 202 the server has the message, and
/// replies by itself ([`Handled::Later`]).
///
/// A server that can't be reached, or answers 429 or 503, gets the message again: a lease gives it back. Every other
/// answer is final, and a refusal fails the message.
#[derive(Debug)]
pub struct ForwardHandler {
    http: Client,
    url: Url,
    secret: Option<Secret>,
    timeout: Duration,
}

impl ForwardHandler {
    /// Makes a handler that sends to a URL; `timeout` is the time limit of the server.
    ///
    /// # Errors
    /// [`RemoteError`] if the URL can't be sent to, or HTTP can't be set up.
    pub fn new(url: &str, secret: Option<Secret>, timeout: Duration) -> Result<Self, RemoteError> {
        let refused = |problem: String| RemoteError::Url { url: url.to_owned(), problem };
        let url = Url::parse(url).map_err(|error| refused(error.to_string()))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(refused("its scheme is not http or https".to_owned()));
        }
        Ok(Self { http: Client::unpooled(tls(&[])?, None), url, secret, timeout })
    }

    async fn forward(&self, message: Inbound) -> Result<Handled, Failed> {
        let limit = self.timeout;
        let answered = async {
            let mut request = Request::new(Method::POST, self.url.clone());
            request.headers = self.headers(&message)?;
            request.body = Full::from(message.envelope).boxed_unsync();
            let mut response = self.http.execute(request).await.map_err(|error| away(&error))?;
            let body = read(&mut response).await?;
            answer(&response, body)
        };
        let late = |_| Failed::for_now(format!("the server did not answer for {limit:?}"));
        tokio::time::timeout(limit, answered).await.map_err(late)?
    }

    fn headers(&self, message: &Inbound) -> Result<HeaderMap, Failed> {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/xml"));
        let id = message.idempotency_key();
        headers.insert(HeaderName::from_static("idempotency-key"), id.parse()?);
        headers.extend(message.traceparent.map(traceparent));
        let signers = Signers { secret: self.secret.as_ref(), identity: None, peer: "listen" };
        signers.sign(&mut headers, &self.url, (&id, message.envelope.as_bytes()), Clock::of_runtime().now())?;
        Ok(headers)
    }
}

fn answer(response: &Response, body: Bytes) -> Result<Handled, Failed> {
    let status = response.status();
    if !status.is_success() {
        let said = refusal(status.as_u16(), status.canonical_reason(), &body);
        return Err(if matches!(status.as_u16(), 429 | 503) { Failed::for_now(said) } else { Failed::new(said) });
    }
    let content_type = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).map(media_type);
    let answer =
        DeliveryAnswer::read(status.as_u16(), content_type, body).map_err(|failure| Failed::new(failure.message))?;
    match answer.said() {
        Said::Reply(reply) => String::from_utf8(reply.into())
            .map(Handled::Reply)
            .map_err(|_| Failed::new("the server answered with no UTF-8")),
        Said::Nothing => Ok(Handled::Reply(String::new())),
        Said::Later => Ok(Handled::Later),
    }
}

async fn read(response: &mut Response) -> Result<Bytes, Failed> {
    let mut body = BytesMut::new();
    while let Some(piece) = response.chunk().await.map_err(|error| away(&error))? {
        if body.len() + piece.len() > ANSWER {
            return Err(Failed::new(format!("the server answered with more than {ANSWER} bytes")));
        }
        body.extend_from_slice(&piece);
    }
    Ok(body.freeze())
}

/// A failure of the transport, which may not happen the next time.
fn away(error: &HttpError) -> Failed {
    let failure = unanswered(error);
    let why = format!("the server gave no answer: {failure}");
    if failure.kind.is_transport() { Failed::for_now(why) } else { Failed::new(why) }
}

impl Handler for ForwardHandler {
    fn handle<'a>(&'a self, message: Inbound) -> BoxFuture<'a, Result<Handled, Failed>> {
        Box::pin(self.forward(message))
    }
}
