//! The one way out: whatever is sent to a network goes through [`Outbound`], by way of a durable outbox.
//!
//! A [`Delivery`] is written to the outbox before anything is sent. Then it is sent until the peer has answered, or it
//! is given up for a [`Cause`]; a process that is killed meanwhile goes on at its next start, with the attempts already
//! made. All attempts carry the id of the message as their idempotency key, so a peer can tell that they are one.
//! Deliveries to one target are sent one after the other, those to different targets at the same time.
//!
//! `docs/outbound.md` says what is tried again and why, with all limits; [`retry`] decides it.
//!
//! Not here: who may send what to whom. Whoever has an `Outbound` may send anywhere that its [`Guard`] allows.

mod address;
mod answer;
mod cause;
mod circuit;
mod client;
mod delivery;
mod error;
mod failure;
mod handle;
pub(crate) mod http;
mod line;
mod lines;
mod options;
mod outbox;
mod outcomes;
mod progress;
pub mod retry;
mod retry_after;
pub mod signature;
mod tls;

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{Semaphore, watch};
use tokio::task::{JoinHandle, JoinSet};

pub use address::{AddressRefused, Guard};
pub use answer::{Answer, Taken};
pub use cause::{Cause, UnknownCause};
pub use circuit::{CircuitPolicy, CircuitState};
pub(crate) use delivery::check_url;
pub use delivery::{Delivery, DeliveryError, OutboundLimits};
pub use error::{OutboundError, OutboxError, Outcome, Undelivered};
pub use failure::{Failure, Kind};
pub use handle::{Handle, State};
pub use options::{Options, Secrets};
pub use outbox::{Report, Settled};
pub use outcomes::Outcomes;
pub use signature::Secret;

pub(crate) use answer::{Said, media_type, refusal};
pub(crate) use client::{unanswered, wait_of};
pub(crate) use failure::readable;
pub(crate) use tls::config as tls;

pub use crate::shell::sqlite::{Durability, Problem, Retention};

use crate::shell::clock::Clock;
use crate::vocab::{MessageId, Name, Time};
use client::Client;
use handle::Handles;
use line::{Shared, drain};
use lines::Lines;
use outbox::{Keeper, Outbox, Put};

/// What sends. Clones are the same; when the last one is dropped, everything stops where it is, as in a crash.
#[derive(Debug, Clone)]
pub struct Outbound(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    shared: Arc<Shared>,
    /// The lines; dropped with this, they end.
    lines: Mutex<JoinSet<()>>,
    keeper: Mutex<Option<JoinHandle<()>>>,
}

impl Outbound {
    /// Opens an outbox, or makes one where there is no file, and goes on with what waits in it. It runs on the tokio
    /// runtime that this is called in, which needs time and I/O.
    ///
    /// # Errors
    /// [`OutboundError`] if the outbox is in use, no outbox, a later program's, damaged, or can't be written (it is left
    /// as it was), or if TLS can't be set up.
    pub async fn start(file: &Path, options: Options) -> Result<Self, OutboundError> {
        let clock = Clock::of_runtime();
        let client = Client::new(&options)?;
        let outbox = open(file, &options, clock.clone()).await?;
        let (keeper, task) = Keeper::start(outbox);
        let targets = keeper.run(|outbox| outbox.targets()).await?;
        let shared = Arc::new(Shared {
            client,
            keeper,
            clock,
            handles: Handles::default(),
            lines: Lines::default(),
            slots: Semaphore::new(options.limits.attempts.clamp(1, Semaphore::MAX_PERMITS)),
            settled: watch::Sender::new(0),
            closing: watch::Sender::new(false),
            options,
        });
        let outbound = Self(Arc::new(Inner { shared, lines: Mutex::default(), keeper: Mutex::new(Some(task)) }));
        targets.into_iter().for_each(|target| outbound.wake(target));
        Ok(outbound)
    }

    /// Takes a delivery: it is in the outbox when this returns, and will be sent. The same delivery under the same id
    /// is taken once, however often it comes; the handle is one of the first, also if that has ended and is still kept.
    ///
    /// # Errors
    /// [`DeliveryError`] says what is wrong with it, or that the outbox is full, or can't be written.
    ///
    /// # Cancel safety
    /// If it is dropped, the delivery is taken or not; if it is, it is sent. It can be sent again under its id.
    pub async fn send(&self, delivery: Delivery) -> Result<Handle, DeliveryError> {
        let shared = &self.0.shared;
        delivery.check(&shared.options.limits, shared.options.guard(&delivery.target))?;
        let outbound = self.clone();
        whole(async move { outbound.take(delivery).await }).await
    }

    async fn take(&self, delivery: Delivery) -> Result<Handle, DeliveryError> {
        let shared = &self.0.shared;
        let (id, target) = (delivery.id, delivery.target.clone());
        let handle = shared.handles.of(id);
        let (limits, now) = (shared.options.limits, shared.clock.now());
        let put = shared.keeper.run(move |outbox| outbox.put(&delivery, &limits, now)).await;
        let taken = match put {
            Ok(Put::New) => {
                self.wake(target);
                return Ok(handle);
            }
            Ok(Put::Open) => return Ok(handle),
            Ok(Put::Over(outcome)) => Ok(Handle::settled(id, outcome)),
            Ok(Put::Taken) => Err(DeliveryError::IdTaken { id }),
            Ok(Put::Full { deliveries, bytes }) => Err(DeliveryError::Full { deliveries, bytes }),
            Err(error) => Err(error.into()),
        };
        shared.handles.release(handle);
        taken
    }

    /// Ends a delivery that isn't wanted any more, with [`Cause::Cancelled`]; an attempt that runs is broken off, but
    /// may have reached the peer. Whether the delivery was open until now.
    ///
    /// # Errors
    /// [`OutboxError`] if the outbox can't be written, or is closed.
    ///
    /// # Cancel safety
    /// If it is dropped, the delivery is cancelled all the same.
    pub async fn cancel(&self, id: MessageId) -> Result<bool, OutboxError> {
        let shared = self.0.shared.clone();
        whole(async move { shared.cancel(id).await }).await
    }

    /// Forgets a delivery that has ended, before its retention is over: its id can be taken again. Whether there was one.
    ///
    /// # Errors
    /// [`OutboxError`] if the outbox can't be written, or is closed.
    ///
    /// # Cancel safety
    /// If it is dropped, the delivery is forgotten all the same.
    pub async fn forget(&self, id: MessageId) -> Result<bool, OutboxError> {
        self.0.shared.keeper.run(move |outbox| outbox.forget(id)).await
    }

    /// Deletes what has had its retention; when the next of what is left will have had it, if anything is left.
    ///
    /// # Errors
    /// [`OutboxError`] if the outbox can't be written, or is closed.
    ///
    /// # Cancel safety
    /// It can be dropped and called again.
    pub async fn tidy(&self) -> Result<Option<Time>, OutboxError> {
        let shared = &self.0.shared;
        loop {
            // A little in each transaction: nobody waits long for it.
            let now = shared.clock.now();
            if let Some(due) = shared.keeper.run(move |outbox| outbox.tidy(now)).await? {
                return Ok(due);
            }
        }
    }

    /// The deliveries that have not ended.
    ///
    /// # Errors
    /// [`OutboxError`] if the outbox can't be read, or is closed.
    pub async fn open(&self) -> Result<Vec<MessageId>, OutboxError> {
        self.0.shared.keeper.run(|outbox| outbox.open_ids()).await
    }

    /// What is known of a delivery; nothing if it never came, or its retention is over.
    ///
    /// # Errors
    /// [`OutboxError`] if the outbox can't be read, or is closed.
    pub async fn report(&self, id: MessageId) -> Result<Option<Report>, OutboxError> {
        self.0.shared.keeper.run(move |outbox| outbox.report(id)).await
    }

    /// The deliveries that have ended and that nobody has heard of, from the oldest on.
    pub fn outcomes(&self) -> Outcomes {
        Outcomes::new(self.0.shared.keeper.clone(), self.0.shared.settled.subscribe())
    }

    /// Notes that somebody has dealt with the end of a delivery, so that it doesn't come again. Whether that is news.
    ///
    /// # Errors
    /// [`OutboxError`] if the outbox can't be written, or is closed.
    pub async fn acknowledge(&self, id: MessageId) -> Result<bool, OutboxError> {
        self.0.shared.keeper.run(move |outbox| outbox.tell(id)).await
    }

    /// The state of the circuit to a target.
    pub fn circuit(&self, target: &Name) -> CircuitState {
        let shared = &self.0.shared;
        shared.lines.circuit(target, shared.options.circuit, shared.clock.now())
    }

    /// Closes the circuit to a target, because it is somewhere else now. A delivery that waits for it already waits on;
    /// what comes next, or again after it was cancelled and forgotten, doesn't.
    pub fn close_circuit(&self, target: &Name) {
        self.0.shared.lines.answered(target);
    }

    /// Begins nothing any more, waits so long for the attempts that run, and closes the outbox. What waits goes on at
    /// the next start. Clones that are left take nothing.
    pub async fn close(&self, grace: Duration) {
        let shared = &self.0.shared;
        shared.closing.send_replace(true);
        let mut lines = std::mem::take(&mut *self.0.lines.lock().unwrap_or_else(PoisonError::into_inner));
        let ended = async { while lines.join_next().await.is_some() {} };
        // What runs for longer is counted as an attempt that failed.
        let _ = tokio::time::timeout(grace, ended).await;
        lines.shutdown().await;
        shared.keeper.close().await;
        let keeper = self.0.keeper.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(keeper) = keeper {
            // What it has to say, it has logged.
            let _ = keeper.await;
        }
        shared.handles.close();
    }

    /// Sees to it that what waits for a target is sent.
    fn wake(&self, target: Name) {
        let shared = &self.0.shared;
        if shared.lines.wake(&target, shared.options.circuit, shared.clock.now()) {
            let mut lines = self.0.lines.lock().unwrap_or_else(PoisonError::into_inner);
            while lines.try_join_next().is_some() {}
            lines.spawn(drain(shared.clone(), target));
        }
    }
}

/// Does something to its end, even if nobody waits for it any more.
async fn whole<T: Send + 'static, E: From<OutboxError> + Send + 'static>(
    work: impl Future<Output = Result<T, E>> + Send + 'static,
) -> Result<T, E> {
    // It ends early only with its runtime.
    tokio::spawn(work).await.unwrap_or_else(|_| Err(OutboxError::Closed.into()))
}

async fn open(file: &Path, options: &Options, clock: Clock) -> Result<Outbox, OutboxError> {
    let path = file.to_owned();
    let (durability, retention) = (options.durability, options.retention);
    let opening = tokio::task::spawn_blocking(move || Outbox::open(&path, durability, retention, clock.now()));
    let opened = opening.await.unwrap_or_else(|panic| Err(Problem::Failed(panic.to_string())));
    opened.map_err(|problem| OutboxError::Store { file: file.to_owned(), problem: Arc::new(problem) })
}
