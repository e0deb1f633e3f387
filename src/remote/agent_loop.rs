//! The loop of an agent: it sends heartbeats, handles messages, and ends when an admin or its program stops it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use super::BoxFuture;
use super::delivery::InboundDelivery;
use super::error::RemoteError;
use super::handler::{Failed, Handled, Handler, catch_panic};
use super::inbound::Inbound;
use super::presence::{AgentState, Presence};

/// Shortest wait after an error, regardless of the delivery's own.
const CALM: Duration = Duration::from_secs(1);

/// Tasks that an agent does unasked, once in each round.
pub type RoundTasks<'a> = Box<dyn Fn() -> BoxFuture<'a, Result<(), Failed>> + Send + Sync + 'a>;

/// Options of the loop of an agent.
#[non_exhaustive]
pub struct LoopOptions<'a> {
    /// Interval of heartbeats (30 s).
    pub heartbeat: Duration,
    /// Number of rounds after which the loop ends; none by default.
    pub iterations: Option<u64>,
    /// Tasks at the start of each round.
    pub tasks: Option<RoundTasks<'a>>,
    /// Ends the loop once this is true: a message that is being handled is handled to its end.
    pub stop: Option<watch::Receiver<bool>>,
}

systole_core::vocab::setters!(LoopOptions<'a> {
    heartbeat: Duration,
    iterations: Option<u64>,
    tasks: Option<RoundTasks<'a>>,
    stop: Option<watch::Receiver<bool>>,
});

impl Default for LoopOptions<'_> {
    fn default() -> Self {
        Self { heartbeat: Duration::from_secs(30), iterations: None, tasks: None, stop: None }
    }
}

impl std::fmt::Debug for LoopOptions<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LoopOptions").field("heartbeat", &self.heartbeat).finish_non_exhaustive()
    }
}

/// Reason why the loop of an agent has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoopEnd {
    /// An admin paused the agent.
    Paused,
    /// The agent was removed: its token was revoked, or its listener is no longer declared.
    Removed,
    /// The gateway refuses the mailbox: it belongs to another principal, or its messages are pushed.
    Refused,
    /// The loop had its rounds.
    MaxIterations,
    /// The program of the agent stopped it, by [`LoopOptions::stop`].
    Stopped,
}

/// Runs the loop of an agent. Each round: its tasks, a heartbeat if one is due, one batch, a check of its state, and a
/// wait for as long as the delivery says. An error in one of them is logged, and the round goes on.
///
/// However the loop ends, the delivery is stopped.
///
/// # Cancel safety
/// If the future is dropped, no message is lost, and the delivery is not stopped.
pub async fn run_agent_loop(
    delivery: &mut dyn InboundDelivery,
    handler: &dyn Handler,
    presence: &dyn Presence,
    options: LoopOptions<'_>,
) -> LoopEnd {
    let mut life = Life { presence, state: AgentState::Active, refused: false, said: None, options };
    let end = life.rounds(delivery, handler).await;
    delivery.stop().await;
    end
}

struct Life<'p, 'o> {
    presence: &'p dyn Presence,
    state: AgentState,
    /// True once the mailbox was refused.
    refused: bool,
    /// Time of the last heartbeat.
    said: Option<Instant>,
    options: LoopOptions<'o>,
}

impl Life<'_, '_> {
    async fn rounds(&mut self, delivery: &mut dyn InboundDelivery, handler: &dyn Handler) -> LoopEnd {
        let mut rounds = 0;
        loop {
            if self.options.iterations.is_some_and(|most| rounds >= most) {
                return LoopEnd::MaxIterations;
            }
            rounds += 1;
            self.tasks().await;
            self.heartbeat().await;
            if self.state == AgentState::Active && !self.is_stopped() {
                let wait = self.batch(delivery, handler).await;
                if self.state == AgentState::Active && !self.refused {
                    self.rest(wait).await;
                }
            }
            match self.state {
                AgentState::Paused => return LoopEnd::Paused,
                AgentState::Removed => return LoopEnd::Removed,
                AgentState::Active if self.refused => return LoopEnd::Refused,
                AgentState::Active if self.is_stopped() => return LoopEnd::Stopped,
                AgentState::Active => {}
            }
        }
    }

    async fn tasks(&self) {
        let Some(tasks) = &self.options.tasks else { return };
        match catch_panic(async { tasks().await }).await {
            Ok(Ok(())) => {}
            Ok(Err(failed)) => tracing::error!(error = %failed.why, "the agent's own tasks failed"),
            Err(panic) => tracing::error!(%panic, "the agent's own tasks panicked"),
        }
    }

    async fn heartbeat(&mut self) {
        if self.said.is_some_and(|said| said.elapsed() < self.options.heartbeat) {
            return;
        }
        self.said = Some(Instant::now());
        match self.presence.heartbeat().await {
            Ok(state) => self.state = state,
            Err(error) if error.is_unanswered() => tracing::debug!(%error, "no answer to the heartbeat"),
            Err(error) => tracing::warn!(%error, "the heartbeat was refused"),
        }
    }

    /// Handles a batch; returns the wait before the next one.
    async fn batch(&mut self, delivery: &mut dyn InboundDelivery, handler: &dyn Handler) -> Duration {
        let watched = Watched { handler, began: AtomicBool::new(false) };
        let done = {
            let mut batch = delivery.run_once(&watched);
            tokio::select! {
                done = &mut batch => done,
                () = stopped(self.options.stop.clone()) => match watched.began.load(Ordering::Acquire) {
                    true => batch.await,
                    // The batch waits for a message: nothing is lost.
                    false => Ok(0),
                },
            }
        };
        match done {
            Ok(_) => delivery.interval(),
            Err(error) => {
                self.heed(&error);
                delivery.interval().max(CALM)
            }
        }
    }

    fn heed(&mut self, error: &RemoteError) {
        if error.is_unauthorized() {
            self.state = AgentState::Removed;
        }
        self.refused = error.is_of_mailbox();
        match error {
            error if self.refused => tracing::error!(%error, "the gateway refuses the mailbox"),
            error if error.is_unanswered() => tracing::debug!(%error, "no answer to a batch"),
            error => tracing::warn!(%error, "a batch failed"),
        }
    }

    async fn rest(&self, wait: Duration) {
        tokio::select! {
            () = sleep(wait) => {}
            () = stopped(self.options.stop.clone()) => {}
        }
    }

    fn is_stopped(&self) -> bool {
        self.options.stop.as_ref().is_some_and(|stop| *stop.borrow())
    }
}

/// Waits until the loop has to end; for ever if nothing can end it.
async fn stopped(stop: Option<watch::Receiver<bool>>) {
    let Some(mut stop) = stop else { return std::future::pending().await };
    if stop.wait_for(|stop| *stop).await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// A handler that notes whether it was called.
struct Watched<'a> {
    handler: &'a dyn Handler,
    began: AtomicBool,
}

impl Handler for Watched<'_> {
    fn handle<'a>(&'a self, message: Inbound) -> BoxFuture<'a, Result<Handled, Failed>> {
        self.began.store(true, Ordering::Release);
        self.handler.handle(message)
    }
}
