//! The kit: an organism that a test drives.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use systole_core::core::{Answer, Counts, DeadLetter, Event, OpenThread, Snapshot};
use systole_core::journal::JournalError;
use systole_core::protocol::Request;
use systole_core::vocab::{Name, Partition, Partitions, Time};
use tokio::task::yield_now;
use tokio::time::sleep;

use super::simulation::{self, Simulation};
use super::world::World;
use crate::runtime::{AskError, Client, Drained, Events, IntoRequest, Observed, Organism, OrganismBuilder, StartError};

/// Number of idle rounds in a row after which the kit regards the organism as settled.
const STILL: usize = 64;

/// An organism on one thread and a simulated clock, driven by a test.
///
/// The organism runs only inside of the kit's methods. The kit has a runtime of its own: use it in a plain `#[test]`,
/// not inside of another runtime.
pub struct Kit {
    organism: Arc<Organism>,
    simulation: Simulation,
    events: Events,
    /// Ends the work of the gateway when it is dropped.
    #[cfg(feature = "gateway")]
    served: Option<crate::gateway::Simulated>,
    world: World,
}

impl Kit {
    /// Starts an organism and settles it: boot handlers have run up to their first wait.
    ///
    /// # Errors
    /// As [`OrganismBuilder::start`].
    ///
    /// # Panics
    /// Panics inside of a tokio runtime.
    pub fn start(builder: OrganismBuilder) -> Result<Self, StartError> {
        Self::start_in(World::new(), builder)
    }

    /// Starts an organism as [`start`](Self::start) does, at a time: that at which an earlier one ended, whose journal it
    /// goes on with.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    ///
    /// # Panics
    /// As [`start`](Self::start).
    pub fn start_at(builder: OrganismBuilder, now: Time) -> Result<Self, StartError> {
        Self::start_in(World::at(now), builder)
    }

    pub(super) fn start_in(world: World, mut builder: OrganismBuilder) -> Result<Self, StartError> {
        let (events, now) = (builder.events(), world.now());
        let (organism, simulation) = world.block_on(async { simulation::start(builder, now) })?;
        let organism = Arc::new(organism);
        let kit = Self {
            organism,
            simulation,
            events,
            #[cfg(feature = "gateway")]
            served: None,
            world,
        };
        kit.settle();
        Ok(kit)
    }

    /// Returns the world that the organism is in.
    pub fn world(&self) -> &World {
        &self.world
    }

    /// Returns the organism.
    pub fn organism(&self) -> &Organism {
        &self.organism
    }

    /// Adds a gateway to the organism, in process and on the same clock: the router answers requests as the gateway
    /// does over a network. Pass requests to it by `tower::ServiceExt::oneshot` in [`block_on`](Self::block_on), or connect
    /// to its address in the [network](World::network) of the kit's world, where it listens, too, without TLS.
    ///
    /// The organism must be durable in a file, and have the gateway [installed](crate::gateway::Gateway::install).
    ///
    /// # Errors
    /// [`GatewayError`](crate::gateway::GatewayError) if the journal can't be read.
    #[cfg(feature = "gateway")]
    pub fn serve(
        &mut self,
        gateway: crate::gateway::Gateway,
        others: &[&str],
    ) -> Result<axum::Router, crate::gateway::GatewayError> {
        let organism = &self.organism;
        let served = self.world.block_on(gateway.simulate(organism, others))?;
        let router = served.router.clone();
        self.served = Some(served);
        self.settle();
        Ok(router)
    }

    /// Returns the address of the gateway that was added, in the network of the world.
    #[cfg(feature = "gateway")]
    pub fn address(&self) -> Option<std::net::SocketAddr> {
        self.served.as_ref().map(|served| served.address)
    }

    /// Returns a handle of a client.
    ///
    /// # Panics
    /// Panics if no client has that name.
    pub fn client(&self, name: &str) -> Client {
        self.organism.client(name).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Returns the simulated time.
    pub fn now(&self) -> Time {
        self.world.block_on(async { self.simulation.now() })
    }

    /// Runs until nothing more happens without time passing.
    pub fn settle(&self) {
        self.world.block_on(async {
            let mut still = 0;
            while still < STILL {
                let before = self.simulation.activity();
                yield_now().await;
                still = if self.simulation.activity() == before { still + 1 } else { 0 };
            }
        });
    }

    /// Lets time pass, and runs everything that is due.
    pub fn advance(&self, duration: Duration) {
        self.settle();
        self.world.block_on(async { sleep(duration).await });
        self.settle();
    }

    /// Lets time pass until no message is queued and no handler runs or is parked. Delayed continues and boot handlers
    /// don't count.
    pub fn run_until_idle(&self) {
        self.settle();
        self.world.block_on(self.organism.run_until_idle());
        self.settle();
    }

    /// Waits for a future; time passes when nothing else can happen.
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        let output = self.world.block_on(future);
        self.settle();
        output
    }

    /// Lets the core that serves a partition give up all that it serves: its handlers are cancelled without effects, as at
    /// an end of the organism. Returns these partitions, which no core serves until one [takes them over](Self::adopt).
    ///
    /// # Errors
    /// [`JournalError`] if the organism has no journal, or no core serves the partition.
    pub fn release(&self, partition: Partition) -> Result<Partitions, JournalError> {
        self.block_on(self.organism.release(partition))
    }

    /// Makes a core that takes partitions over, with what the journal holds of them.
    ///
    /// # Errors
    /// As [`release`](Self::release), if a core serves one of the partitions, if the organism ends, and if the journal
    /// can't be read, which breaks the organism down.
    pub fn adopt(&self, partitions: Partitions) -> Result<(), JournalError> {
        self.block_on(self.organism.adopt(partitions, 0))
    }

    /// Sends a request as a client and waits for the answer; time passes as necessary.
    ///
    /// # Errors
    /// As [`Client::ask`].
    ///
    /// # Panics
    /// Panics if no client has that name.
    pub fn ask<R: Request>(&self, client: &str, request: R) -> Result<R::Reply, AskError> {
        self.block_on(self.client(client).ask(request))
    }

    /// Asks a question as a client and waits for the answer, of any type; time passes as it must.
    ///
    /// # Errors
    /// As [`Client::ask_any`].
    ///
    /// # Panics
    /// If there is no client of that name.
    pub fn ask_any(&self, client: &str, request: impl IntoRequest) -> Result<Answer, AskError> {
        self.block_on(self.client(client).ask_any(request))
    }

    /// Returns the open threads.
    pub fn snapshot(&self) -> Snapshot {
        self.world.block_on(self.organism.snapshot())
    }

    /// Draws the tree of open threads: a line for each, indented by its depth, in order of opening, without roots that
    /// have no thread below them.
    pub fn tree(&self) -> String {
        let threads = self.snapshot().threads;
        let mut tree = String::new();
        for root in threads.iter().filter(|thread| thread.path.segments().is_empty()) {
            let below = |thread: &&OpenThread| thread.root == root.id && !thread.path.segments().is_empty();
            let below: Vec<_> = threads.iter().filter(below).collect();
            if !below.is_empty() {
                tree.push_str("root\n");
                draw(&mut tree, &below);
            }
        }
        tree
    }

    /// Returns the events since the last call of this method.
    pub fn events(&mut self) -> Vec<Event> {
        let next = || match self.events.try_next() {
            Some(Observed::Event(event)) => Some(Some(Arc::unwrap_or_clone(event))),
            Some(Observed::Missed(_)) => Some(None),
            None => None,
        };
        std::iter::from_fn(next).flatten().collect()
    }

    /// Counts the ends of all messages so far.
    pub fn counts(&self) -> Counts {
        self.world.block_on(self.organism.counts())
    }

    /// Lists the dead letters, oldest first.
    pub fn dead_letters(&self) -> Vec<DeadLetter> {
        self.world.block_on(self.organism.dead_letters())
    }

    /// Drains the organism, after its gateway has announced the end; the deadline is on the simulated clock.
    pub fn drain(&mut self, deadline: Duration) -> Drained {
        #[cfg(feature = "gateway")]
        self.served.iter().for_each(crate::gateway::Simulated::stop);
        let Self { organism, simulation, world, .. } = self;
        world.block_on(async { tokio::join!(organism.drain(deadline), simulation.end()).0 })
    }
}

/// Draws the lines of one conversation: parents before children, children of one parent in order of opening.
fn draw(tree: &mut String, threads: &[&OpenThread]) {
    let place = |prefix: &[(Name, u32)]| threads.iter().position(|thread| thread.path.segments() == prefix);
    let key = |thread: &OpenThread| -> Vec<_> {
        let segments = thread.path.segments();
        (1..=segments.len()).map(|depth| place(&segments[..depth])).collect()
    };
    let mut lines: Vec<_> = threads.iter().map(|thread| (key(thread), thread.path.segments())).collect();
    lines.sort();
    for (_, segments) in lines {
        let Some((name, ordinal)) = segments.last() else { continue };
        let ordinal = if *ordinal > 1 { format!("#{ordinal}") } else { String::new() };
        tree.push_str(&format!("{:indent$}{name}{ordinal}\n", "", indent = 2 * segments.len()));
    }
}

impl Drop for Kit {
    fn drop(&mut self) {
        if std::thread::panicking() {
            // Handlers that run while they are dropped would hide the reason of the test's failure.
            return std::mem::forget(self.world.clone());
        }
        self.organism.stop();
        self.world.block_on(self.simulation.end());
        #[cfg(feature = "gateway")]
        drop(self.served.take());
        // What else it left in the world ends, and its address is free.
        self.world.block_on(async {
            for _ in 0..STILL {
                yield_now().await;
            }
        });
    }
}

impl fmt::Debug for Kit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kit").field("organism", &self.organism).finish_non_exhaustive()
    }
}
