//! The world of a test: what surrounds its organisms.

use std::fmt;
use std::rc::Rc;

use actix::{System, SystemRunner};
use systole_core::vocab::Time;
use tokio::runtime::Builder;

use super::kit::Kit;
use crate::network::Network;
use crate::runtime::{OrganismBuilder, StartError};
use systole_store::clock::Clock;

/// Start of simulated time: 2031-05-07T12:00:00Z.
const EPOCH: Time = Time::from_nanos(1_935_921_600_000_000_000);

/// A thread, a simulated clock and a network in memory, for organisms and their agents elsewhere. Clones are the same world.
///
/// Tasks of a test that are spawned inside of [`block_on`](Self::block_on) by `tokio::task::spawn_local` live in the world:
/// they run whenever it does, and outlive each organism of it. An organism that another one goes on from has the same
/// clock. A party of HTTP in it, an agent of `systole::remote` for example, has connections over the
/// [network](Self::network) alone, and the time of the clock.
#[derive(Clone)]
pub struct World(Rc<Inner>);

struct Inner {
    system: SystemRunner,
    clock: Clock,
    network: Network,
}

impl World {
    /// Makes a world.
    ///
    /// # Panics
    /// Panics inside of a tokio runtime.
    pub fn new() -> Self {
        Self::at(EPOCH)
    }

    /// Makes a world whose clock begins at a time.
    ///
    /// # Panics
    /// As [`new`](Self::new).
    pub fn at(now: Time) -> Self {
        let runtime = || Builder::new_current_thread().enable_all().start_paused(true).build();
        let system = System::with_tokio_rt(|| runtime().expect("a runtime without threads needs no resources"));
        let clock = system.block_on(async { Clock::simulated(now) });
        Self(Rc::new(Inner { system, clock, network: Network::default() }))
    }

    /// Starts an organism in it, as [`Kit::start`] does.
    ///
    /// # Errors
    /// As [`OrganismBuilder::start`].
    pub fn start(&self, builder: OrganismBuilder) -> Result<Kit, StartError> {
        Kit::start_in(self.clone(), builder)
    }

    /// Waits for a future; time passes when nothing else can happen.
    ///
    /// # Panics
    /// Panics inside of a tokio runtime.
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        let _entered = (self.0.clock.enter(), self.0.network.enter());
        self.0.system.block_on(future)
    }

    /// Returns the simulated time.
    pub fn now(&self) -> Time {
        self.block_on(async { self.0.clock.now() })
    }

    /// Returns the network.
    pub fn network(&self) -> &Network {
        &self.0.network
    }
}

impl Default for World {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("World").field("network", &self.0.network).finish_non_exhaustive()
    }
}
