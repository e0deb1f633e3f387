use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use tokio::sync::watch;
use tokio::time::Instant;

use super::failure::{Failure, Kind};
use super::retry::Policy;

/// The body is given to the connection in pieces of that many bytes, so that it is seen whether it takes them.
const PIECE: usize = 16 << 10;

/// Where an attempt is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// Until the connection asks for the body.
    Connecting,
    /// Until it has all of it.
    Writing,
    /// Until the answer is whole.
    Reading,
}

/// How an attempt gets on: its phase, and when something last happened in it.
#[derive(Debug, Clone)]
pub(super) struct Progress(watch::Sender<(Phase, Instant)>);

impl Progress {
    pub(super) fn new() -> Self {
        Self(watch::Sender::new((Phase::Connecting, Instant::now())))
    }

    pub(super) fn phase(&self) -> Phase {
        self.0.borrow().0
    }

    /// Something has happened.
    pub(super) fn note(&self, phase: Phase) {
        self.0.send_replace((phase, Instant::now()));
    }

    /// What comes of a future, unless nothing happens for as long as the phase allows.
    pub(super) async fn within<T>(&self, policy: &Policy, future: impl Future<Output = T>) -> Result<T, Failure> {
        tokio::select! {
            done = future => Ok(done),
            failure = self.stalled(policy) => Err(failure),
        }
    }

    async fn stalled(&self, policy: &Policy) -> Failure {
        let mut news = self.0.subscribe();
        loop {
            let (phase, since) = *news.borrow_and_update();
            let (kind, what, limit) = phase.limit(policy);
            tokio::select! {
                // Its sender is here.
                _ = news.changed() => {}
                () = tokio::time::sleep_until(since + limit) => return Failure::new(kind, format!("{what} for {limit:?}")),
            }
        }
    }
}

impl Phase {
    fn limit(self, policy: &Policy) -> (Kind, &'static str, Duration) {
        match self {
            Self::Connecting => (Kind::ConnectTimeout, "there was no connection", policy.connect),
            Self::Writing => (Kind::WriteTimeout, "the peer took nothing of the body", policy.write),
            Self::Reading => (Kind::ReadTimeout, "nothing came from the peer", policy.read),
        }
    }
}

/// The body of a request, which says how far it was taken.
pub(super) struct Outgoing {
    rest: Bytes,
    progress: Progress,
}

impl Outgoing {
    pub(super) fn new(body: Bytes, progress: Progress) -> Self {
        Self { rest: body, progress }
    }
}

impl Body for Outgoing {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.rest.is_empty() {
            return Poll::Ready(None);
        }
        let len = self.rest.len().min(PIECE);
        let piece = self.rest.split_to(len);
        self.progress.note(if self.rest.is_empty() { Phase::Reading } else { Phase::Writing });
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.rest.len() as u64)
    }
}
