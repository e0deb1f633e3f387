//! Simulation for tests: an organism on one thread and a simulated clock.

use std::rc::Rc;

use systole_core::vocab::Time;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::runtime::{Organism, OrganismBuilder, ShardContext, StartError};
use systole_store::clock::Clock;
use systole_store::entropy::Entropy;

/// The part of a simulated organism that its test drives.
pub(super) struct Simulation {
    pump: JoinHandle<()>,
    shard_context: Rc<ShardContext>,
    /// Reports to a drain, when dropped, that the shard has ended.
    alive: Option<mpsc::Sender<()>>,
}

/// Starts an organism inside the present, paused tokio runtime.
pub(super) fn start(builder: OrganismBuilder, epoch: Time) -> Result<(Organism, Simulation), StartError> {
    let plan = builder.shards(1).plan()?;
    let (organism, seeds, alive) = Organism::prepare(plan, Clock::simulated(epoch), Entropy::counted())?;
    let (pump, shard_context) = seeds.into_iter().next().ok_or(StartError::Shard)?.plant();
    organism.boot();
    Ok((organism, Simulation { pump, shard_context, alive: Some(alive) }))
}

impl Simulation {
    /// Returns the time.
    pub(super) fn now(&self) -> Time {
        self.shard_context.clock.now()
    }

    /// Returns the count of everything that ran.
    pub(super) fn activity(&self) -> u64 {
        self.shard_context.activity()
    }

    /// Waits for the end of the shard.
    pub(super) async fn end(&mut self) {
        if self.alive.take().is_some() {
            // A shard that panicked has reported that itself.
            let _ = (&mut self.pump).await;
        }
    }
}
