//! The one way to other machines: all deliveries go through [`Outbound`], by way of a durable outbox.
//!
//! An [`OutboundDelivery`] is written to the outbox before it is sent. Then it is sent until the peer has answered, or
//! it is given up for a [`Cause`]; after a crash the next start goes on, with the attempts counted that were made. All
//! attempts carry the id of the message as their idempotency key, so that a peer can recognize them as one. Deliveries
//! to one target are sent one after the other, those to different targets at the same time.
//!
//! `docs/outbound.md` has the rules of retries, with all limits; [`retry`] implements them.
//!
//! Not here: permissions. A program with an `Outbound` may send anywhere that its [`Guard`] allows.

mod address;
mod answer;
mod cause;
mod circuit;
mod client;
mod delivery;
mod engine;
mod error;
mod failure;
mod handle;
pub(crate) mod http;
mod options;
mod outbox;
mod outcomes;
mod progress;
pub mod retry;
mod retry_after;
pub mod signature;
mod store;
mod target_queue;
mod target_queues;
mod tls;

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::task::JoinHandle;

pub use address::{AddressRefused, Guard};
pub use answer::{DeliveryAnswer, Taken};
pub use cause::{Cause, UnknownCause};
pub use circuit::{CircuitPolicy, CircuitState};
pub use delivery::{DeliveryError, OutboundDelivery, OutboundLimits};
pub(crate) use delivery::{check_url, is_below};
pub use error::{DeliveryOutcome, OutboundError, OutboxError, Undelivered};
pub use failure::{AttemptFailure, FailureKind};
pub use handle::{Handle, State};
pub use options::{DeliveryOptions, Secrets};
pub use outbox::{DeliveryReport, SettledDelivery};
pub use outcomes::Outcomes;
pub use signature::Secret;

pub(crate) use answer::{Said, media_type, refusal};
pub(crate) use client::{unanswered, wait_of};
pub(crate) use engine::Engine;
pub(crate) use failure::readable;
pub(crate) use retry_after::parse as retry_after;
pub(crate) use store::{Begun, DeliveryStore, Job, Stored};
pub(crate) use tls::config as tls;

pub use crate::runtime::sqlite::{Durability, FileProblem, Retention};

use crate::runtime::clock::Clock;
use client::Client;
use outbox::{Outbox, OutboxWriter, PutResult};
use systole_core::vocab::{MessageId, Name, Time};
use target_queue::Shared;

/// The sender. Clones share it; when the last one is dropped, all sending stops at once, as in a crash.
#[derive(Debug, Clone)]
pub struct Outbound(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    engine: Engine,
    writer: OutboxWriter,
    /// Task of the outbox writer.
    keeping: Mutex<Option<JoinHandle<()>>>,
}

impl Outbound {
    /// Opens an outbox, or creates its file, and goes on with the deliveries that wait in it. It runs on the current
    /// tokio runtime, which needs time and I/O.
    ///
    /// # Errors
    /// [`OutboundError`] if the outbox is in use, of another format or a later version, damaged, or can't be written
    /// (it is left as it was), or if TLS can't be set up.
    pub async fn start(file: &Path, options: DeliveryOptions) -> Result<Self, OutboundError> {
        let clock = Clock::of_runtime();
        let client = Client::new(&options)?;
        let outbox = open(file, &options, clock.clone()).await?;
        let (writer, task) = OutboxWriter::start(outbox);
        let targets = writer.run(|outbox| outbox.targets()).await?;
        let engine = Engine::over(Arc::new(writer.clone()), client, options, clock);
        targets.into_iter().for_each(|target| engine.wake(target));
        Ok(Self(Arc::new(Inner { engine, writer, keeping: Mutex::new(Some(task)) })))
    }

    fn shared(&self) -> &Arc<Shared> {
        self.0.engine.shared()
    }

    /// Accepts a delivery: it is in the outbox when this returns, and will be sent. A repeated delivery with the same
    /// id and content is accepted once; the handle is one of the first, also if that has ended and is still kept.
    ///
    /// # Errors
    /// [`DeliveryError`] if the delivery is invalid, or the outbox is full or can't be written.
    ///
    /// # Cancel safety
    /// If the future is dropped, the delivery may have been accepted or not; if it was, it is sent. It can be sent
    /// again under its id.
    pub async fn send(&self, delivery: OutboundDelivery) -> Result<Handle, DeliveryError> {
        let shared = self.shared();
        delivery.check(&shared.options.limits, shared.options.guard_of(&delivery.target))?;
        let outbound = self.clone();
        whole(async move { outbound.take(delivery).await }).await
    }

    async fn take(&self, delivery: OutboundDelivery) -> Result<Handle, DeliveryError> {
        let shared = self.shared();
        let (id, target) = (delivery.id, delivery.target.clone());
        let handle = shared.handles.of(id);
        let (limits, now) = (shared.options.limits, shared.clock.now());
        let put = self.0.writer.run(move |outbox| outbox.put(&delivery, &limits, now)).await;
        let taken = match put {
            Ok(PutResult::New) => {
                self.0.engine.wake(target);
                return Ok(handle);
            }
            Ok(PutResult::Open) => return Ok(handle),
            Ok(PutResult::Over(outcome)) => Ok(Handle::settled(id, outcome)),
            Ok(PutResult::Taken) => Err(DeliveryError::IdTaken { id }),
            Ok(PutResult::Full { deliveries, bytes }) => Err(DeliveryError::Full { deliveries, bytes }),
            Err(error) => Err(error.into()),
        };
        shared.handles.release(handle);
        taken
    }

    /// Ends an open delivery with [`Cause::Cancelled`]; an attempt in flight is cut off, but may have reached the peer.
    /// Returns false if the delivery was not open.
    ///
    /// # Errors
    /// [`OutboxError`] if the outbox can't be written, or is closed.
    ///
    /// # Cancel safety
    /// If the future is dropped, the delivery is cancelled all the same.
    pub async fn cancel(&self, id: MessageId) -> Result<bool, OutboxError> {
        let outbound = self.clone();
        whole(async move { outbound.try_cancel(id).await }).await
    }

    async fn try_cancel(&self, id: MessageId) -> Result<bool, OutboxError> {
        let shared = self.shared();
        let (limit, now) = (shared.options.policy.attempts.max(1), shared.clock.now());
        let cancelled = self.0.writer.run(move |outbox| outbox.cancel(id, limit, now)).await?;
        let Some(undelivered) = cancelled else { return Ok(false) };
        shared.queues.stop(&undelivered.target, id);
        shared.tell_settled(id, Err(undelivered));
        Ok(true)
    }

    /// Forgets an ended delivery before its retention is over: its id can be used again. Returns false if there was
    /// none.
    ///
    /// # Errors
    /// [`OutboxError`] if the outbox can't be written, or is closed.
    ///
    /// # Cancel safety
    /// If the future is dropped, the delivery is forgotten all the same.
    pub async fn forget(&self, id: MessageId) -> Result<bool, OutboxError> {
        self.0.writer.run(move |outbox| outbox.forget(id)).await
    }

    /// Deletes deliveries past their retention; returns the time at which the next one will be, if any is left.
    ///
    /// # Errors
    /// [`OutboxError`] if the outbox can't be written, or is closed.
    ///
    /// # Cancel safety
    /// The future can be dropped, and the method called again.
    pub async fn tidy(&self) -> Result<Option<Time>, OutboxError> {
        let shared = self.shared();
        loop {
            // Few in each transaction: no other caller waits long for it.
            let now = shared.clock.now();
            if let Some(due) = self.0.writer.run(move |outbox| outbox.tidy(now)).await? {
                return Ok(due);
            }
        }
    }

    /// The deliveries that have not ended.
    ///
    /// # Errors
    /// [`OutboxError`] if the outbox can't be read, or is closed.
    pub async fn open(&self) -> Result<Vec<MessageId>, OutboxError> {
        self.0.writer.run(|outbox| outbox.open_ids()).await
    }

    /// The report on a delivery; none if it never came, or its retention is over.
    ///
    /// # Errors
    /// [`OutboxError`] if the outbox can't be read, or is closed.
    pub async fn report(&self, id: MessageId) -> Result<Option<DeliveryReport>, OutboxError> {
        self.0.writer.run(move |outbox| outbox.report(id)).await
    }

    /// The ended deliveries that no handle has seen, from the oldest on.
    pub fn outcomes(&self) -> Outcomes {
        Outcomes::new(self.0.writer.clone(), self.shared().settled.subscribe())
    }

    /// Notes that the caller has handled the end of a delivery, so that it doesn't come again. Returns false for a
    /// repeated note.
    ///
    /// # Errors
    /// [`OutboxError`] if the outbox can't be written, or is closed.
    pub async fn acknowledge(&self, id: MessageId) -> Result<bool, OutboxError> {
        self.0.writer.run(move |outbox| outbox.tell(id)).await
    }

    /// The state of the circuit to a target.
    pub fn circuit(&self, target: &Name) -> CircuitState {
        let shared = self.shared();
        shared.queues.circuit(target, shared.options.circuit, shared.clock.now())
    }

    /// Closes the circuit to a target whose endpoint has changed. A delivery that already waits for the circuit waits
    /// on; one that comes next, or again after it was cancelled and forgotten, doesn't.
    pub fn close_circuit(&self, target: &Name) {
        self.shared().queues.answered(target);
    }

    /// Starts no further attempt, waits at most `grace` for those in flight, and closes the outbox. Deliveries that
    /// wait go on at the next start. Clones that are left accept nothing.
    pub async fn close(&self, grace: Duration) {
        self.0.engine.close(grace).await;
        self.0.writer.close().await;
        let keeping = self.0.keeping.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(keeping) = keeping {
            // The log has a panic of the task already.
            let _ = keeping.await;
        }
        self.shared().handles.close();
    }
}

/// Runs work to its end, even if its caller is dropped.
async fn whole<T: Send + 'static, E: From<OutboxError> + Send + 'static>(
    work: impl Future<Output = Result<T, E>> + Send + 'static,
) -> Result<T, E> {
    // The task ends early only with its runtime.
    tokio::spawn(work).await.unwrap_or_else(|_| Err(OutboxError::Closed.into()))
}

async fn open(file: &Path, options: &DeliveryOptions, clock: Clock) -> Result<Outbox, OutboxError> {
    let path = file.to_owned();
    let (durability, retention) = (options.durability, options.retention);
    let opening = tokio::task::spawn_blocking(move || Outbox::open(&path, durability, retention, clock.now()));
    let opened = opening.await.unwrap_or_else(|panic| Err(FileProblem::Failed(panic.to_string())));
    opened.map_err(|problem| OutboxError::Store { file: file.to_owned(), problem: Arc::new(problem) })
}
