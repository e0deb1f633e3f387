//! Pushes: an HTTP endpoint of the agent, to which the gateway sends its messages.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;

use systole_core::vocab::{MessageId, XmlLimits};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::BoxFuture;
use super::delivery::InboundDelivery;
use super::endpoint::{self, Endpoint};
use super::error::RemoteError;
use super::handler::{Handled, Handler, handle};
use super::inbound::Inbound;
use crate::accept::Listener;
use crate::outbound::signature::{Secret, TOLERANCE};
use systole_store::clock::Clock;

/// Time for which a batch waits for a message.
const WAIT: Duration = Duration::from_secs(20);
/// Answers that are remembered: a repeated delivery gets the first answer.
const ANSWERS: usize = 256;
/// Bytes of a message, unless the limits of its organism differ.
const MESSAGE: usize = 1 << 20;
/// Bytes that an organism may write around a message: sender, receiver, ids, times.
const ENVELOPE: usize = 64 << 10;

/// Options of pushes.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct PushOptions {
    /// The path, `/` unless it is set.
    pub path: String,
    /// The secret that they are signed with. Without one, any client that can connect is trusted.
    pub secret: Option<Secret>,
    /// Oldest signature, and largest difference between the clocks of both sides (5 min).
    pub tolerance: Duration,
    /// Bounds on an envelope; its bytes are those of a body (1 MiB, as an organism's messages have, and 64 KiB for the
    /// envelope around them).
    pub limits: XmlLimits,
    /// Messages that wait for a batch (64); more are refused with 503.
    pub queue: usize,
    /// Most open connections (256). One without a request in flight is closed for a new one; with none of them, further
    /// connections wait in the queue of the system.
    pub connections: usize,
    /// Most open connections of one address (an IPv4 address or an IPv6 /64) (256).
    pub connections_per_address: usize,
    /// Most bytes of bodies in memory (16 MiB); more are refused with 503. One message always fits.
    pub bodies: usize,
    /// Time limit of the head of a request (10 s).
    pub header_time: Duration,
    /// Time limit of the body of a request (30 s).
    pub body_time: Duration,
}

systole_core::vocab::setters!(PushOptions {
    path: impl Into<String>,
    secret: Option<Secret>,
    tolerance: Duration,
    limits: XmlLimits,
    queue: usize,
    connections: usize,
    connections_per_address: usize,
    bodies: usize,
    header_time: Duration,
    body_time: Duration,
});

impl PushOptions {
    /// Makes options of pushes to `/` that are signed with that secret.
    pub fn signed(secret: Secret) -> Self {
        Self { secret: Some(secret), ..Self::unsigned() }
    }

    /// Makes options of unsigned pushes to `/`: for an address that no other client can reach.
    pub fn unsigned() -> Self {
        Self {
            path: "/".to_owned(),
            secret: None,
            tolerance: TOLERANCE,
            limits: XmlLimits::default().message_bytes(MESSAGE + ENVELOPE),
            queue: 64,
            connections: 256,
            connections_per_address: 256,
            bodies: 16 << 20,
            header_time: Duration::from_secs(10),
            body_time: Duration::from_secs(30),
        }
    }
}

/// A pushed message, and the request that waits for its answer.
#[derive(Debug)]
pub(super) struct Pushed {
    pub(super) message: Inbound,
    pub(super) tell: oneshot::Sender<Said>,
}

/// Result of a handler, for the request.
pub(super) type Said = Result<Handled, String>;

/// Receives pushed messages, and answers each with its reply.
///
/// | answer | |
/// |---|---|
/// | 200 | the result: the reply, or nothing |
/// | 202 | the handler has it, and replies later ([`Handled::Later`]) |
/// | 400 | the body is empty, or no envelope with an id |
/// | 401 | the signature is missing, too old, or wrong; a body without one is not read |
/// | 404, 405 | another path, another method |
/// | 408, 413 | the body is too slow, too large |
/// | 500 | the handler failed; the body says why |
/// | 503 | too many messages wait, or the delivery ends |
///
/// A message that comes again within the last 256 replies gets the same reply; its handler doesn't run again.
#[derive(Debug)]
pub struct PushDelivery {
    address: SocketAddr,
    pushed: mpsc::Receiver<Pushed>,
    /// Messages that were received, and not answered: they stay here while they are handled.
    batch: VecDeque<Pushed>,
    answered: VecDeque<(MessageId, String)>,
    wait: Duration,
    end: watch::Sender<bool>,
    server: Option<JoinHandle<()>>,
}

impl PushDelivery {
    /// Listens at an address; port 0 takes a free one. It runs on the current tokio runtime.
    ///
    /// # Errors
    /// [`RemoteError::Listen`] if the address can't be bound.
    pub async fn bind(address: SocketAddr, options: PushOptions) -> Result<Self, RemoteError> {
        let failed = |cause| RemoteError::Listen { address, cause };
        let listener = Listener::bind(address).await.map_err(failed)?;
        let address = listener.address().map_err(failed)?;
        let (sender, pushed) = mpsc::channel(options.queue.max(1));
        let (end, ended) = watch::channel(false);
        let server =
            tokio::spawn(endpoint::serve(listener, Endpoint::new(options, sender, Clock::of_runtime()), ended));
        let (batch, answered) = (VecDeque::new(), VecDeque::new());
        Ok(Self { address, pushed, batch, answered, wait: WAIT, end, server: Some(server) })
    }

    /// The address of the endpoint.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    async fn take(&mut self, handler: &dyn Handler) -> usize {
        if self.batch.is_empty() {
            let Ok(Some(first)) = timeout(self.wait, self.pushed.recv()).await else { return 0 };
            self.batch.push_back(first);
        }
        while let Ok(next) = self.pushed.try_recv() {
            self.batch.push_back(next);
        }
        let mut handled = 0;
        while let Some(Pushed { message, tell }) = self.batch.front() {
            // A gateway that hung up sends the message again.
            if !tell.is_closed() {
                let id = message.id;
                let said = match self.answered.iter().find(|(known, _)| *known == id) {
                    Some((_, reply)) => Ok(Handled::Reply(reply.clone())),
                    None => {
                        handled += 1;
                        handle(handler, message.clone()).await.map_err(|failed| failed.why)
                    }
                };
                self.answer(id, said);
            } else {
                self.batch.pop_front();
            }
        }
        handled
    }

    fn answer(&mut self, id: MessageId, said: Said) {
        match &said {
            Ok(Handled::Reply(reply)) if !self.answered.iter().any(|(known, _)| *known == id) => {
                self.answered.truncate(ANSWERS - 1);
                self.answered.push_front((id, reply.clone()));
            }
            Ok(_) => {}
            Err(why) => tracing::warn!(%id, error = %why, "a message failed"),
        }
        if let Some(Pushed { tell, .. }) = self.batch.pop_front() {
            // The gateway may have hung up meanwhile: it gets the answer when it sends the message again.
            let _ = tell.send(said);
        }
    }
}

impl InboundDelivery for PushDelivery {
    fn run_once<'a>(&'a mut self, handler: &'a dyn Handler) -> BoxFuture<'a, Result<usize, RemoteError>> {
        Box::pin(async move { Ok(self.take(handler).await) })
    }

    fn stop(&mut self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            // Requests that still wait get 503.
            self.pushed.close();
            self.batch.clear();
            while self.pushed.try_recv().is_ok() {}
            self.end.send_replace(true);
            if let Some(server) = self.server.take() {
                // The log has a panic of the task already.
                let _ = server.await;
            }
        })
    }

    fn interval(&self) -> Duration {
        Duration::ZERO
    }
}

impl Drop for PushDelivery {
    fn drop(&mut self) {
        if let Some(server) = &self.server {
            server.abort();
        }
    }
}
