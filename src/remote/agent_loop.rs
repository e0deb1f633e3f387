//! The life of an agent: it says that it is there, takes what comes, and ends when it is told to.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use super::BoxFuture;
use super::delivery::InboundDelivery;
use super::error::RemoteError;
use super::handler::{Failed, Handled, Handler, contained};
use super::inbound::Inbound;
use super::presence::{AgentState, Presence};

/// The shortest wait after an error, whatever a delivery says.
const CALM: Duration = Duration::from_secs(1);

/// Something that an agent does of itself, once in each round.
pub type Tasks<'a> = Box<dyn Fn() -> BoxFuture<'a, Result<(), Failed>> + Send + Sync + 'a>;

/// How an agent lives.
pub struct LoopOptions<'a> {
    /// How often it says that it is there: every 30 s.
    pub heartbeat: Duration,
    /// After how many rounds it ends; never, unless it is set.
    pub iterations: Option<u64>,
    /// What it does of itself at the start of each round.
    pub tasks: Option<Tasks<'a>>,
    /// Ends it once this is true: a message that is being handled is handled to its end.
    pub stop: Option<watch::Receiver<bool>>,
}

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

/// Why the loop of an agent has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoopEnd {
    /// The gateway told it to rest.
    Paused,
    /// It is let in no more: its token was revoked, or its listener is declared no longer.
    Removed,
    /// The mailbox is none for it: it is another's, or its messages are pushed.
    Refused,
    /// It had as many rounds as it was to have.
    MaxIterations,
    /// Its own program told it to, by [`LoopOptions::stop`].
    Stopped,
}

/// Lives the life of an agent. Each round: its own tasks, a heartbeat if one is due, one batch, a look at its state, and
/// a wait for as long as the delivery says. An error in one of them is logged, and the round goes on.
///
/// However it ends, the delivery is stopped.
///
/// # Cancel safety
/// If it is dropped, no message is lost, and the delivery is not stopped.
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
    /// Whether the mailbox was refused.
    refused: bool,
    /// When it last said that it is there.
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
        match contained(async { tasks().await }).await {
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

    /// Takes a batch; gives back how long to wait for the next one.
    async fn batch(&mut self, delivery: &mut dyn InboundDelivery, handler: &dyn Handler) -> Duration {
        let watched = Watched { handler, began: AtomicBool::new(false) };
        let done = {
            let mut batch = delivery.run_once(&watched);
            tokio::select! {
                done = &mut batch => done,
                () = stopped(self.options.stop.clone()) => match watched.began.load(Ordering::Acquire) {
                    true => batch.await,
                    // It waits for something to come: nothing is lost.
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

/// Comes back when it is to end; never, if nobody can say so.
async fn stopped(stop: Option<watch::Receiver<bool>>) {
    let Some(mut stop) = stop else { return std::future::pending().await };
    if stop.wait_for(|stop| *stop).await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// A handler that says whether it was asked.
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
