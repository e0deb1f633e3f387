//! The queue of one target: its deliveries one after the other, each until it has ended.

use std::sync::Arc;
use std::time::Duration;

use systole_core::vocab::{Name, Time};
use tokio::sync::{Notify, watch};

use super::answer::DeliveryAnswer;
use super::cause::Cause;
use super::circuit::CircuitState;
use super::client::{Client, Setback};
use super::delivery::{OutboundDelivery, shown};
use super::error::{DeliveryOutcome, Undelivered};
use super::options::DeliveryOptions;
use super::retry::{Decision, Ended, Tried};
use super::store::{Begun, DeliveryStore, Job, StoreClosed};
use super::target_queues::TargetQueues;
use systole_store::clock::Clock;
use systole_store::entropy::Entropy;

/// State that the queues of all targets share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) options: DeliveryOptions,
    pub(super) client: Client,
    pub(super) store: Arc<dyn DeliveryStore>,
    pub(super) clock: Clock,
    /// The clock of waits, circuits and the time that a delivery may take.
    pub(super) steady: Clock,
    pub(super) queues: TargetQueues,
    /// True once no further attempt may begin.
    pub(super) closing: watch::Sender<bool>,
}

/// Reason why a delivery is not sent any further.
pub(super) enum Stopped {
    /// No further attempt may begin.
    Closing,
    /// Another party has ended the delivery.
    Ended,
    /// The store takes no more notes.
    Store,
}

impl From<StoreClosed> for Stopped {
    fn from(_: StoreClosed) -> Self {
        Self::Store
    }
}

/// Sends the deliveries to a target until none waits.
pub(super) async fn drain(shared: Arc<Shared>, target: Name) {
    loop {
        shared.queues.look(&target);
        match shared.store.head(target.clone()).await {
            Ok(Some(job)) => match shared.serve(&target, job).await {
                Ok(()) | Err(Stopped::Ended) => {}
                Err(Stopped::Closing | Stopped::Store) => return,
            },
            Ok(None) if shared.queues.leave(&target) => return,
            Ok(None) => {}
            Err(StoreClosed) => return,
        }
    }
}

impl Shared {
    /// Sends a delivery until it has ended, here or elsewhere.
    async fn serve(&self, target: &Name, job: Job) -> Result<(), Stopped> {
        let (stop, enough) = self.queues.run(target, job.delivery.id);
        tokio::select! {
            done = InFlight::of(self, job, enough).run() => done,
            () = stop.notified() => Ok(()),
        }
    }

    async fn sleep(&self, duration: Duration, enough: &Notify) -> Result<(), Stopped> {
        let mut closing = self.closing.subscribe();
        tokio::select! {
            biased;
            _ = closing.wait_for(|closing| *closing) => Err(Stopped::Closing),
            () = enough.notified() => Err(Stopped::Ended),
            () = tokio::time::sleep(duration) => Ok(()),
        }
    }
}

/// A delivery in flight.
struct InFlight<'a> {
    shared: &'a Shared,
    delivery: OutboundDelivery,
    tried: Tried,
    due: Option<Time>,
    last_error: Option<String>,
    /// Notified when no further attempt may begin.
    enough: Arc<Notify>,
    /// The attempt whose outcome is not stored yet.
    begun: Option<Begun>,
}

impl<'a> InFlight<'a> {
    /// Goes on with a delivery: the time in which no process sent it doesn't count.
    fn of(shared: &'a Shared, job: Job, enough: Arc<Notify>) -> Self {
        let since = shared.steady.now().as_nanos().saturating_sub(job.spent.as_nanos().try_into().unwrap_or(u64::MAX));
        let tried = Tried { attempts: job.attempts, since: Time::from_nanos(since) };
        Self { shared, delivery: job.delivery, tried, due: job.next, last_error: job.last_error, enough, begun: None }
    }

    async fn run(mut self) -> Result<(), Stopped> {
        if let Some(due) = self.due.take() {
            // A clock that was set back must not lengthen the wait.
            self.shared.sleep(self.shared.clock.until(due).min(self.left()), &self.enough).await?;
        }
        loop {
            let ended = match self.ready().await? {
                Ok(()) => self.attempt().await?,
                Err(cause) => Some(Err(cause)),
            };
            match ended {
                None => {}
                Some(Ok(answer)) => return self.settle(Ok(answer)).await,
                Some(Err(cause)) => {
                    let undelivered = self.undelivered(cause);
                    return self.settle(Err(undelivered)).await;
                }
            }
        }
    }

    /// Waits until an attempt may begin; the inner error is the cause why none will.
    async fn ready(&mut self) -> Result<Result<(), Cause>, Stopped> {
        loop {
            let now = self.shared.steady.now();
            if let Err(cause) = self.shared.options.policy.may_try(self.tried, now) {
                return Ok(Err(cause));
            }
            match self.shared.queues.circuit(&self.delivery.target, self.shared.options.circuit, now) {
                CircuitState::Open(until) if until.since(now) >= self.left() => return Ok(Err(Cause::CircuitOpen)),
                CircuitState::Open(until) => self.shared.sleep(until.since(now), &self.enough).await?,
                CircuitState::Closed | CircuitState::HalfOpen => return Ok(Ok(())),
            }
        }
    }

    /// Makes an attempt; returns the end of the delivery, or none if another attempt follows.
    async fn attempt(&mut self) -> Result<Option<Result<DeliveryAnswer, Cause>>, Stopped> {
        let shared = self.shared;
        if *shared.closing.borrow() {
            return Err(Stopped::Closing);
        }
        self.tried.attempts += 1;
        let (id, attempts, spent) = (self.delivery.id, self.tried.attempts, self.spent());
        self.begun = Some(shared.store.begin(id, attempts, spent).await?.ok_or(Stopped::Ended)?);
        let result = self.send().await;
        self.judge(result).await
    }

    async fn send(&self) -> Result<DeliveryAnswer, Setback> {
        let Shared { options, client, clock, .. } = self.shared;
        let secret = options.secrets.get(&self.delivery.target);
        let attempt = client.attempt(&self.delivery, secret, &options.policy, clock.now());
        match tokio::time::timeout(self.left(), attempt).await {
            Ok(result) => result,
            Err(_) => {
                let message = format!("the attempt was ended after {:.1?} in all", options.policy.budget);
                Err(Setback { ended: Ended::OutOfTime, message })
            }
        }
    }

    async fn judge(
        &mut self,
        result: Result<DeliveryAnswer, Setback>,
    ) -> Result<Option<Result<DeliveryAnswer, Cause>>, Stopped> {
        let shared = self.shared;
        let target = &self.delivery.target;
        let setback = match result {
            Ok(answer) => {
                shared.queues.answered(target);
                return Ok(Some(Ok(answer)));
            }
            Err(setback) => setback,
        };
        let now = shared.steady.now();
        match &setback.ended {
            Ended::Failed(failure) if failure.kind.is_transport() => {
                if shared.queues.failed(target, shared.options.circuit, now) {
                    tracing::warn!(%target, "the circuit is open: nothing is sent for a while");
                }
            }
            Ended::Failed(failure) if !failure.kind.is_of_peer() => {}
            Ended::OutOfTime => {}
            Ended::Failed(_) | Ended::Refused { .. } | Ended::Accepted => shared.queues.answered(target),
        }
        self.last_error = Some(setback.message);
        match shared.options.policy.decide(self.tried, &setback.ended, now, Entropy::Real.fraction()) {
            Decision::GiveUp(cause) => Ok(Some(Err(cause))),
            Decision::Wait(wait) => self.back_off(wait).await.map(|()| None),
            // An accepted attempt returned above.
            Decision::Done => Ok(Some(Err(Cause::Bug))),
        }
    }

    async fn back_off(&mut self, wait: Duration) -> Result<(), Stopped> {
        let shared = self.shared;
        let (id, spent, until) = (self.delivery.id, self.spent(), shared.clock.now().after(wait));
        let error = self.last_error.clone().unwrap_or_default();
        tracing::debug!(delivery = %id, target = %self.delivery.target, attempts = self.tried.attempts, ?wait, error,
            "an attempt failed");
        if !shared.store.back_off(id, until, error, spent).await? {
            return Err(Stopped::Ended);
        }
        self.begun = None;
        shared.sleep(wait, &self.enough).await
    }

    async fn settle(self, outcome: DeliveryOutcome) -> Result<(), Stopped> {
        Ok(self.shared.store.settle(self.delivery.id, outcome).await?)
    }

    fn undelivered(&self, cause: Cause) -> Undelivered {
        let unsaid = || match (cause, self.tried.attempts) {
            (Cause::CircuitOpen, _) => format!("earlier attempts to {} failed", self.delivery.target),
            (_, 0) => "its turn came too late".to_owned(),
            (_, attempts) => format!("the process ended during attempt {attempts}"),
        };
        Undelivered {
            id: self.delivery.id,
            target: self.delivery.target.clone(),
            url: shown(&self.delivery.url),
            cause,
            message: self.last_error.clone().unwrap_or_else(unsaid),
            attempts: self.tried.attempts,
            limit: self.shared.options.policy.attempts.max(1),
            elapsed: self.spent(),
        }
    }

    fn left(&self) -> Duration {
        self.shared.options.policy.left(self.tried, self.shared.steady.now())
    }

    fn spent(&self) -> Duration {
        self.shared.steady.now().since(self.tried.since)
    }
}
