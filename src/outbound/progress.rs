//! The time limits of an attempt, by its phase.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use tokio::sync::watch;
use tokio::time::Instant;

use super::failure::{AttemptFailure, FailureKind};
use super::retry::Policy;

/// Bytes of the pieces in which a body is given to the connection, so that its progress is seen.
const PIECE: usize = 16 << 10;

/// Phase of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// The phase until the connection asks for the body.
    Connecting,
    /// The phase until the connection has all of the body.
    Writing,
    /// The phase until the answer is whole.
    Reading,
}

/// Progress of an attempt: its phase, and the time of the last event in it.
#[derive(Debug, Clone)]
pub(super) struct Progress(watch::Sender<(Phase, Instant)>);

impl Progress {
    pub(super) fn new() -> Self {
        Self(watch::Sender::new((Phase::Connecting, Instant::now())))
    }

    pub(super) fn phase(&self) -> Phase {
        self.0.borrow().0
    }

    /// Notes an event.
    pub(super) fn note(&self, phase: Phase) {
        self.0.send_replace((phase, Instant::now()));
    }

    /// Awaits a future, which fails if no event comes within the limit of the phase.
    pub(super) async fn within<T>(
        &self,
        policy: &Policy,
        future: impl Future<Output = T>,
    ) -> Result<T, AttemptFailure> {
        tokio::select! {
            done = future => Ok(done),
            failure = self.stalled(policy) => Err(failure),
        }
    }

    async fn stalled(&self, policy: &Policy) -> AttemptFailure {
        let mut news = self.0.subscribe();
        loop {
            let (phase, since) = *news.borrow_and_update();
            let (kind, what, limit) = phase.limit(policy);
            tokio::select! {
                // The sender of the channel is `self`.
                _ = news.changed() => {}
                () = tokio::time::sleep_until(since + limit) => {
                    return AttemptFailure::new(kind, format!("{what} for {limit:?}"));
                }
            }
        }
    }
}

impl Phase {
    fn limit(self, policy: &Policy) -> (FailureKind, &'static str, Duration) {
        match self {
            Self::Connecting => (FailureKind::ConnectTimeout, "there was no connection", policy.connect),
            Self::Writing => (FailureKind::WriteTimeout, "the peer accepted no byte of the body", policy.write),
            Self::Reading => (FailureKind::ReadTimeout, "no byte came from the peer", policy.read),
        }
    }
}

/// The body of a request, which notes how far the connection took it.
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
